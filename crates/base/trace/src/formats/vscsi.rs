//! VMware vscsiStats traces, versions 1 and 2, as in CloudPhysics.
//!
//! v1, 32 B: `u32 sn, u32 len, u32 nSG, u16 cmd, u16 ver, u64 lbn, u64 ts`; v2, 40 B: `u16 cmd, u16
//! ver, u32 sn, u32 len, u32 nSG, u64 lbn, u64 ts, u64 rt`; little-endian. Units: length bytes, lbn
//! 512 B, ts microseconds. The version is the high byte of `ver`. `cmd` is a SCSI operation code
//! (SBC-3). Source: libCacheSim `vscsi.h`.

use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::binary::{Parsed, Records, extent, le_u16, le_u32, le_u64};
use crate::reader::declared;
use crate::units::TimeUnit;
use crate::{Batch, ByteSource, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Op, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "vscsi",
    doc: "VMware vscsiStats binary, v1 (32 B) or v2 (40 B): SCSI command, 512 B blocks, us",
    source: "libCacheSim vscsi.h; CloudPhysics (Waldspurger et al., FAST'15)",
    time: Unit::Of(1_000),
    offset: Unit::Of(512),
    length: Unit::Of(1),
    detected: "the version",
    to_say: &[],
    options: VscsiOptions::keys,
    recognise: |head| VscsiVersion::detect(head).map_or(0, |version| version.confidence(head)),
    near_miss: NO_LINES,
    open,
};

const SECTOR_BYTES: u64 = 512;

declare! {
    /// Options of reading.
    pub struct VscsiOptions {
        /// unit of times
        time_unit: TimeUnit = TimeUnit::MICROSECOND, "";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VscsiVersion {
    One,
    Two,
}

/// Byte positions of a version's fields.
struct VscsiLayout {
    size: usize,
    version: usize,
    cmd: usize,
    len: usize,
    lbn: usize,
    ts: usize,
}

impl VscsiVersion {
    /// The version whose mark the first two records carry.
    fn detect(head: &[u8]) -> Option<VscsiVersion> {
        [VscsiVersion::Two, VscsiVersion::One].into_iter().find(|version| {
            let size = version.layout().size;
            head.len() >= size && head.chunks_exact(size).take(2).all(|r| version.marks(r))
        })
    }

    fn layout(self) -> VscsiLayout {
        match self {
            VscsiVersion::One => {
                VscsiLayout { size: 32, version: 14, cmd: 12, len: 4, lbn: 16, ts: 24 }
            }
            VscsiVersion::Two => {
                VscsiLayout { size: 40, version: 2, cmd: 0, len: 8, lbn: 16, ts: 24 }
            }
        }
    }

    fn number(self) -> u8 {
        match self {
            VscsiVersion::One => 1,
            VscsiVersion::Two => 2,
        }
    }

    fn marks(self, record: &[u8]) -> bool {
        le_u16(record, self.layout().version) >> 8 == u16::from(self.number())
    }

    /// Every record of the head must carry the mark and an operation code of one byte.
    fn confidence(self, head: &[u8]) -> u8 {
        let layout = self.layout();
        let mut records = head.chunks_exact(layout.size);
        if !records.all(|r| self.marks(r) && le_u16(r, layout.cmd) <= 0xff) {
            return 0;
        }
        if head.len() >= 4 * layout.size { 95 } else { 70 }
    }
}

/// What a SCSI operation code asks; nothing for those that carry no request of ours.
fn op_of(cmd: u16) -> Option<Op> {
    match cmd {
        // READ (6), (10), (12), (16)
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        // WRITE (6), (10), (12), (16)
        0x0a | 0x2a | 0xaa | 0x8a => Some(Op::Write),
        // SYNCHRONIZE CACHE (10), (16)
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

struct Vscsi {
    records: Records,
    version: VscsiVersion,
    time_unit: TimeUnit,
    volumes: [String; 1],
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let Some(version) = VscsiVersion::detect(source.head()) else {
        return Err(TraceError::File {
            path: source.path().to_owned(),
            found: "no version mark in the first records".to_owned(),
            expected: "32 B records of vscsi v1 or 40 B records of v2".to_owned(),
        });
    };
    let VscsiOptions { time_unit } = declared(&options.format_options)?;
    let records = Records::new(source.into_stream(), options);
    Ok(Box::new(Vscsi { records, version, time_unit, volumes: ["0".to_owned()] }))
}

impl Vscsi {
    /// A request, nothing for another command, or where and what is wrong.
    fn parse_record(&self, record: &[u8]) -> Parsed {
        let layout = self.version.layout();
        if !self.version.marks(record) {
            return Err((layout.version, "the version mark of the first records"));
        }
        let Some(op) = op_of(le_u16(record, layout.cmd)) else { return Ok(None) };
        let length = u64::from(le_u32(record, layout.len));
        let (offset_bytes, length_bytes) =
            extent(op, le_u64(record, layout.lbn), SECTOR_BYTES, length).map_err(|expected| {
                (if length == 0 { layout.len } else { layout.lbn }, expected)
            })?;
        let time_ns = self
            .time_unit
            .ticks_ns(le_u64(record, layout.ts))
            .ok_or((layout.ts, "a time below 2^64 nanoseconds"))?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume: 0 }))
    }
}

impl TraceReader for Vscsi {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let VscsiLayout { size, len: length, .. } = self.version.layout();
        let mut count = 0;
        while count < max {
            let Some(record) = self.records.whole::<40>(size)? else { break };
            let parsed = self.parse_record(&record[..size]);
            count += self.records.take(parsed, size, length, batch)?;
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

    fn v1(cmd: u16, ver: u16, len: u32, lbn: u64, ts: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [2_147_483_892_u32, len, 1] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(cmd.to_le_bytes());
        bytes.extend(ver.to_le_bytes());
        bytes.extend(lbn.to_le_bytes());
        bytes.extend(ts.to_le_bytes());
        bytes
    }

    fn v2(cmd: u16, len: u32, lbn: u64, ts: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(cmd.to_le_bytes());
        bytes.extend(0x0200_u16.to_le_bytes());
        for word in [1_u32, len, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [lbn, ts, 99] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn both_versions_are_recognised_and_read() {
        let parse_record = [v1(0x2a, 0x100, 512, 42, 7), v1(0x88, 0x101, 4096, 43, 8)].concat();
        let expected =
            [record(7000, Op::Write, 42 * 512, 512, 0), record(8000, Op::Read, 43 * 512, 4096, 0)];
        assert_eq!(recognise_bytes(&parse_record).unwrap().name, "vscsi");
        assert_eq!(read_bytes(&options("vscsi", &[]), &parse_record).0, expected);
        let two = [v2(0x2a, 512, 42, 7), v2(0x12, 36, 0, 7), v2(0x28, 4096, 43, 8)].concat();
        assert_eq!(recognise_bytes(&two).unwrap().name, "vscsi");
        assert_eq!(read_bytes(&options("vscsi", &[]), &two).0, expected);
    }

    #[test]
    fn bad_records_are_named_or_counted() {
        let bytes = [
            v1(0x2a, 0x100, 512, 42, 7),
            v1(0x2a, 0x100, 0, 42, 7),
            v1(0x2a, 0x300, 512, 42, 7),
            v1(0x2a, 0x100, 512, u64::MAX, 7),
            v1(0x2a, 0x100, 512, 42, u64::MAX),
            v1(0x35, 0x100, 0, 0, 9),
            vec![0; 31],
        ]
        .concat();
        let mut format = options("vscsi", &[]);
        let error = bad_bytes(&format, &bytes);
        assert!(error.starts_with("sample: record 2, byte 36: found `0x00000000"), "{error}");
        format.on_bad_record = OnBadRecord::Skip;
        let mut reader = crate::open_bytes("sample", &bytes, &format).unwrap();
        let mut batch = Batch::default();
        while reader.read(&mut batch, 100).unwrap() > 0 {}
        assert_eq!(batch.op, [Op::Write, Op::Flush]);
        assert_eq!(reader.skipped().bad, 5);
    }

    #[test]
    fn other_bytes_are_not_taken_for_it() {
        for other in [vec![0; 4096], vec![1; 20], b"a,b,c\n1,2,3\n".repeat(40)] {
            assert_eq!((ENTRY.recognise)(&other), 0);
        }
        let named = bad_bytes(&options("vscsi", &[]), &[0; 64]);
        assert!(named.contains("no version mark"), "{named}");
    }
}
