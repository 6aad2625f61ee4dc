//! Linux blktrace's binary events, version 7.
//!
//! 48 B events, each followed by `pdu_len` bytes that are skipped. Fields: `u32 magic, u32 seq, u64
//! time, u64 sector, u32 bytes, u32 action, u32 pid, u32 device, u32 cpu, u16 error, u16 pdu_len`.
//! Units: time nanoseconds, sector 512 B. One kind of event is taken (option `event`), as one
//! request causes many; the rest, and notifications, count as irrelevant. The machine's byte order
//! shows in the magic number. There is one file per CPU: give each to a tenant, or merge them.
//! Source: `blktrace_api.h`.

use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::binary::{Parsed, Records, extent, field};
use crate::reader::declared;
use crate::{Batch, ByteSource, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Op, choices, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "blktrace",
    doc: "Linux blktrace binary v7, either byte order; one kind of event is taken",
    source: "blktrace_api.h",
    time: Unit::Of(1),
    offset: Unit::Of(512),
    length: Unit::Of(1),
    detected: "the byte order",
    to_say: &["event"],
    options: BlktraceOptions::keys,
    recognise: |head| if ByteOrder::detect(head).is_some() { 98 } else { 0 },
    near_miss: NO_LINES,
    open,
};

declare! {
    /// Options of reading.
    pub struct BlktraceOptions {
        /// kind of event taken: Q queued (what was asked), D issued to the device, C completed
        event: BlktraceEvent = BlktraceEvent::Queued, "";
    }
}

choices! {
    /// The kinds of event that a user may choose.
    pub enum BlktraceEvent {
        /// What was asked.
        Queued = "Q",
        /// Issued to the device.
        Issued = "D",
        /// Completed by the device.
        Completed = "C",
        /// A request structure was taken.
        Taken = "G",
        /// Inserted into the scheduler.
        Inserted = "I",
        /// Merged behind a request.
        Merged = "M",
        /// Split.
        Split = "X",
    }
}

impl BlktraceEvent {
    /// The number in blktrace's records.
    fn number(self) -> u32 {
        match self {
            BlktraceEvent::Queued => 1,
            BlktraceEvent::Merged => 2,
            BlktraceEvent::Taken => 4,
            BlktraceEvent::Issued => 7,
            BlktraceEvent::Completed => 8,
            BlktraceEvent::Inserted => 12,
            BlktraceEvent::Split => 13,
        }
    }
}

const EVENT_BYTES: usize = 48;
const SECTOR_BYTES: u64 = 512;
/// The upper 24 bits of the magic number; the lower 8 are the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

// Bits of the category, the upper half of the action.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The byte order in which `bytes` begin with the magic number, of any version.
    fn detect(bytes: &[u8]) -> Option<ByteOrder> {
        [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| bytes.len() >= 4 && order.u32(bytes, 0) & !0xff == MAGIC)
    }

    fn u16(self, bytes: &[u8], offset: usize) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(field(bytes, offset)),
            ByteOrder::Big => u16::from_be_bytes(field(bytes, offset)),
        }
    }

    fn u32(self, bytes: &[u8], offset: usize) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(field(bytes, offset)),
            ByteOrder::Big => u32::from_be_bytes(field(bytes, offset)),
        }
    }

    fn u64(self, bytes: &[u8], offset: usize) -> u64 {
        match self {
            ByteOrder::Little => u64::from_le_bytes(field(bytes, offset)),
            ByteOrder::Big => u64::from_be_bytes(field(bytes, offset)),
        }
    }
}

struct Blktrace {
    records: Records,
    order: ByteOrder,
    event: u32,
    devices: Vec<u32>,
    volumes: Vec<String>,
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: BlktraceOptions = declared(&options.format_options)?;
    let refuse = |found: String| TraceError::File {
        path: source.path().to_owned(),
        found,
        expected: "blktrace events of version 7".to_owned(),
    };
    let order =
        ByteOrder::detect(source.head()).ok_or_else(|| refuse("no magic number".to_owned()))?;
    match order.u32(source.head(), 0) & 0xff {
        VERSION => {}
        other => return Err(refuse(format!("blktrace events of version {other}"))),
    }
    let records = Records::new(source.into_stream(), options);
    Ok(Box::new(Blktrace {
        records,
        order,
        event: own.event.number(),
        devices: Vec::new(),
        volumes: Vec::new(),
    }))
}

impl Blktrace {
    /// A request, nothing for other events, or where and what is wrong.
    fn parse_event(&mut self, event: &[u8]) -> Parsed {
        let action = self.order.u32(event, 28);
        let category = action >> 16;
        if category & NOTIFY != 0 || action & 0xffff != self.event {
            return Ok(None);
        }
        let length = u64::from(self.order.u32(event, 24));
        let op = match category {
            _ if category & DISCARD != 0 => Op::Trim,
            _ if category & FLUSH != 0 && length == 0 => Op::Flush,
            _ if category & WRITE != 0 => Op::Write,
            _ => Op::Read,
        };
        let (offset_bytes, length_bytes) =
            extent(op, self.order.u64(event, 16), SECTOR_BYTES, length)
                .map_err(|expected| (if length == 0 { 24 } else { 16 }, expected))?;
        let volume = self.volume(self.order.u32(event, 36));
        let time_ns = self.order.u64(event, 8);
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    /// The volume of a device number: 12 bits major, 20 bits minor, named as blkparse does.
    fn volume(&mut self, device: u32) -> u32 {
        let known = self.devices.iter().position(|other| *other == device);
        let index = known.unwrap_or_else(|| {
            self.devices.push(device);
            self.volumes.push(format!("{},{}", device >> 20, device & 0xf_ffff));
            self.devices.len() - 1
        });
        index as u32
    }

    /// Passes over bytes up to the next magic number, which `skip` asked for.
    fn resynchronise(&mut self) -> Result<(), TraceError> {
        let magic = MAGIC | VERSION;
        let wanted = match self.order {
            ByteOrder::Little => magic.to_le_bytes(),
            ByteOrder::Big => magic.to_be_bytes(),
        };
        self.records.pass(1, 1);
        loop {
            let ahead = self.records.ahead(EVENT_BYTES)?;
            if ahead.len() < wanted.len() {
                let left = ahead.len();
                self.records.pass(left, 0);
                return Ok(());
            }
            match memchr::memmem::find(ahead, &wanted) {
                Some(offset) => {
                    self.records.pass(offset, 0);
                    return Ok(());
                }
                None => {
                    let searched = ahead.len() - (wanted.len() - 1);
                    self.records.pass(searched, 0);
                }
            }
        }
    }
}

impl TraceReader for Blktrace {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let ahead = self.records.ahead(EVENT_BYTES)?;
            if ahead.is_empty() {
                break;
            }
            if ahead.len() < EVENT_BYTES {
                self.records.cut_off("an event of 48 bytes")?;
                break;
            }
            let event: [u8; EVENT_BYTES] = field(ahead, 0);
            if self.order.u32(&event, 0) != MAGIC | VERSION {
                self.records.bad(0, 0, 0, "the magic number of blktrace version 7")?;
                self.resynchronise()?;
                continue;
            }
            let whole = EVENT_BYTES + usize::from(self.order.u16(&event, 46));
            if self.records.ahead(whole)?.len() < whole {
                self.records.cut_off(&format!("an event of {whole} bytes"))?;
                break;
            }
            let parsed = self.parse_event(&event);
            count += self.records.take(parsed, whole, 24, batch)?;
        }
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        &self.volumes
    }

    fn skipped(&self) -> &Skipped {
        &self.records.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::testing::{bad_bytes, read_bytes};
    use crate::formats::testing::{options, record};
    use crate::{OnBadRecord, recognise_bytes};

    fn event(big: bool, action: u32, sector: u64, bytes: u32, pdu: &[u8]) -> Vec<u8> {
        let put = |words: &mut Vec<u8>, value: u64, size: usize| {
            let all = if big { value.to_be_bytes() } else { value.to_le_bytes() };
            words.extend_from_slice(if big { &all[8 - size..] } else { &all[..size] });
        };
        let mut out = Vec::new();
        let device = (8 << 20) | 16;
        let words = [
            (u64::from(MAGIC | VERSION), 4),
            (1, 4),
            (1234, 8),
            (sector, 8),
            (u64::from(bytes), 4),
            (u64::from(action), 4),
            (77, 4),
            (device, 4),
            (0, 4),
            (0, 2),
            (pdu.len() as u64, 2),
        ];
        for (value, size) in words {
            put(&mut out, value, size);
        }
        out.extend_from_slice(pdu);
        out
    }

    fn sample(big: bool) -> Vec<u8> {
        [
            event(big, NOTIFY << 16, 0, 0, b"kworker\0"),
            event(big, 1 << 16 | 1, 10, 4096, b""),
            event(big, 1 << 16 | 4, 10, 4096, b""),
            event(big, WRITE << 16 | 1, 20, 512, b"xyz"),
            event(big, (WRITE | DISCARD) << 16 | 1, 30, 8192, b""),
            event(big, (WRITE | FLUSH) << 16 | 1, 0, 0, b""),
            event(big, 1 << 16 | 7, 11, 512, b""),
        ]
        .concat()
    }

    #[test]
    fn one_kind_of_event_is_taken_in_either_byte_order() {
        for big in [false, true] {
            let bytes = sample(big);
            assert_eq!(recognise_bytes(&bytes).unwrap().name, "blktrace");
            let (records, volumes) = read_bytes(&options("blktrace", &[]), &bytes);
            let expected = [
                record(1234, Op::Read, 5120, 4096, 0),
                record(1234, Op::Write, 10_240, 512, 0),
                record(1234, Op::Trim, 15_360, 8192, 0),
                record(1234, Op::Flush, 0, 0, 0),
            ];
            assert_eq!(records, expected);
            assert_eq!(volumes, ["8,16"]);
            let issued = options("blktrace", &[("event", "D")]);
            assert_eq!(read_bytes(&issued, &bytes).0.len(), 1);
        }
        assert!(bad_bytes(&options("blktrace", &[("event", "Z")]), b"x").contains("`Z`"));
    }

    #[test]
    fn damage_is_named_or_passed_over_to_the_next_event() {
        let mut bytes = sample(false);
        let offset = bytes.len();
        bytes.extend(b"garbage");
        bytes.extend(event(false, 1 << 16 | 1, u64::MAX, 4096, b""));
        bytes.extend(event(false, 1 << 16 | 1, 40, 4096, b""));
        bytes.extend(&event(false, 1 << 16 | 1, 50, 4096, b"long")[..50]);
        let mut format = options("blktrace", &[]);
        let error = bad_bytes(&format, &bytes);
        assert!(error.contains(&format!("record 8, byte {offset}: found `0x67617262")), "{error}");
        format.on_bad_record = OnBadRecord::Skip;
        let mut reader = crate::open_bytes("sample", &bytes, &format).unwrap();
        let mut batch = Batch::default();
        while reader.read(&mut batch, 2).unwrap() > 0 {}
        assert_eq!(batch.offset_bytes, [5120, 10_240, 15_360, 0, 20_480]);
        assert_eq!((reader.skipped().bad, reader.skipped().irrelevant), (3, 3));
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let mut bytes = sample(false);
        bytes[0] = 6;
        let error = bad_bytes(&options("blktrace", &[]), &bytes);
        assert!(error.contains("found blktrace events of version 6"), "{error}");
    }
}
