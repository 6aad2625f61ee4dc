//! libCacheSim's oracleGeneral and oracleGeneralOpNS records.
//!
//! 24 B little-endian records `u32 seconds, u64 object, u32 bytes, i64 next access`. The 27 B form
//! has `u8 op, u16 name space` before the last field. The next access is not used (our own pre-pass
//! is cheap and cannot be wrong). Without an op every request is a read. Sources: libCacheSim
//! `oracleGeneralBin.h`, `enum.h` (op numbers), cacheMon README.

use super::objects::{NumberedObject, ObjectNumbers, ObjectOptions};
use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::binary::{ADDRESS_LIMIT_BYTES, Parsed, Records, extent, le_u16, le_u32, le_u64};
use crate::reader::RequestBound;
use crate::reader::declared;
use crate::units::TimeUnit;
use crate::{Batch, ByteSource, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The rows of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "oracle-general",
    doc: "24 B binary: seconds, object, bytes, next access; no op, so all are reads",
    source: "libCacheSim oracleGeneralBin.h; cacheMon/cache_dataset README",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(1),
    detected: "numbers of objects in place of sectors, by their density: a note says so",
    to_say: &["address_unit"],
    options: ObjectOptions::keys,
    recognise: |head| recognise(OracleLayout::Plain, head),
    near_miss: NO_LINES,
    open: |source, options| open(OracleLayout::Plain, source, options),
};

/// The form with op and name space.
pub const OP_NS_ENTRY: TraceFormat = TraceFormat {
    name: "oracle-general-op-ns",
    doc: "27 B binary: seconds, object, bytes, op, name space (the volume), next access",
    source: "libCacheSim oracleGeneralBin.h and enum.h",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(1),
    detected: "as with `oracle-general`",
    to_say: &["address_unit"],
    options: ObjectOptions::keys,
    recognise: |head| recognise(OracleLayout::OpNs, head),
    near_miss: NO_LINES,
    open: |source, options| open(OracleLayout::OpNs, source, options),
};

/// Next accesses beyond this are not taken for record numbers when recognising.
const RECORDS_PLAUSIBLE: i64 = 1 << 40;
const OPS: &str = "an op from 1 (get) to 14 (update)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OracleLayout {
    Plain,
    OpNs,
}

impl OracleLayout {
    fn bytes(self) -> usize {
        match self {
            OracleLayout::Plain => 24,
            OracleLayout::OpNs => 27,
        }
    }

    fn next_access(self, record: &[u8]) -> i64 {
        le_u64(record, self.bytes() - 8).cast_signed()
    }
}

/// Reads either layout.
struct OracleGeneral {
    records: Records,
    layout: OracleLayout,
    numbers: ObjectNumbers,
    time_unit: TimeUnit,
    volumes: Vec<String>,
    /// Volume of each name space, `u32::MAX` for those not met.
    volume_of: Vec<u32>,
}

fn open(
    layout: OracleLayout,
    source: ByteSource,
    options: &OpenOptions,
) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: ObjectOptions = declared(&options.format_options)?;
    let first = source.head().chunks_exact(layout.bytes()).map(|record| NumberedObject {
        space: if layout == OracleLayout::OpNs { u32::from(le_u16(record, 17)) } else { 0 },
        id: le_u64(record, 4),
        bytes: u64::from(le_u32(record, 12)),
    });
    let numbers = ObjectNumbers::new(own.address_unit, first);
    Ok(Box::new(OracleGeneral {
        records: Records::new(source.into_stream(), options),
        layout,
        numbers,
        time_unit: own.time_unit,
        volumes: if layout == OracleLayout::Plain { vec!["0".to_owned()] } else { Vec::new() },
        volume_of: if layout == OracleLayout::Plain { Vec::new() } else { vec![u32::MAX; 1 << 16] },
    }))
}

/// There is no magic number: every record of the head must make sense. Times do not run backwards,
/// and sizes are below 1 GiB. The next access is "never" or a later record; if that lies within the
/// head, it is of the same object.
fn recognise(layout: OracleLayout, head: &[u8]) -> u8 {
    let size = layout.bytes();
    let records: Vec<&[u8]> = head.chunks_exact(size).collect();
    let object = |record: &[u8]| le_u64(record, 4);
    let mut time_s = 0;
    let mut confirmed = 0;
    for (index, record) in records.iter().enumerate() {
        let next = layout.next_access(record);
        let never = next == -1 || next == i64::MAX;
        let later = next > index as i64 + 1 && next < RECORDS_PLAUSIBLE;
        let op_fits = layout == OracleLayout::Plain || op_of(record[16], None).is_some();
        if le_u32(record, 0) < time_s || le_u32(record, 12) >= 1 << 30 || !op_fits {
            return 0;
        }
        if !(never || later) {
            return 0;
        }
        if !never && let Some(other) = records.get(next as usize - 1) {
            if object(other) != object(record) {
                return 0;
            }
            confirmed += 1;
        }
        time_s = le_u32(record, 0);
    }
    match (records.len(), confirmed) {
        (0, _) => 0,
        (_, 1..) => 95,
        (8.., 0) => 80,
        _ => 50,
    }
}

/// The op numbers of libCacheSim: a key-value store's as the block requests they amount to. `none`
/// is what 0, no op, amounts to.
pub(super) fn op_of(number: u8, none: Option<Op>) -> Option<Op> {
    match number {
        0 => none,
        1 | 2 | 12 => Some(Op::Read),
        3..=8 | 10 | 11 | 13 | 14 => Some(Op::Write),
        9 => Some(Op::Trim),
        _ => None,
    }
}

impl OracleGeneral {
    /// Appends the plain records of `bytes` up to the first bad one; returns how many.
    fn plain(
        batch: &mut Batch,
        bytes: &[u8],
        unit_bytes: u64,
        time_unit: TimeUnit,
        bound: RequestBound,
    ) -> usize {
        let longest = u32::try_from(bound.bytes).unwrap_or(u32::MAX);
        let records = bytes.chunks_exact(24);
        // No request below this object ends beyond the limit.
        let objects = (ADDRESS_LIMIT_BYTES - u64::from(u32::MAX)) / unit_bytes;
        let good = records
            .clone()
            .position(|record| {
                // A length of 0 wraps around and is above every bound.
                le_u64(record, 4) >= objects || le_u32(record, 12).wrapping_sub(1) >= longest
            })
            .unwrap_or(records.len());
        let records = records.take(good);
        let times = records.clone().map(|r| le_u32(r, 0));
        match time_unit.whole_ns() {
            // 32 bits of the longest unit fit.
            Some(tick_ns) => batch.time_ns.extend(times.map(|time| u64::from(time) * tick_ns)),
            None => batch.time_ns.extend(times.map(|time| time_unit.short_ns(time))),
        }
        batch.offset_bytes.extend(records.clone().map(|r| le_u64(r, 4) * unit_bytes));
        batch.length_bytes.extend(records.map(|r| u64::from(le_u32(r, 12))));
        batch.op.resize(batch.op.len() + good, Op::Read);
        batch.volume.resize(batch.volume.len() + good, 0);
        good
    }

    /// One record of either layout, or where and what is wrong.
    fn parse_record(&mut self, bytes: &[u8; 27]) -> Parsed {
        let (op, volume) = match self.layout {
            OracleLayout::Plain => (Op::Read, 0),
            OracleLayout::OpNs => {
                let op = op_of(bytes[16], None).ok_or((16, OPS))?;
                let name_space = le_u16(bytes, 17);
                let volume = &mut self.volume_of[usize::from(name_space)];
                if *volume == u32::MAX {
                    *volume = self.volumes.len() as u32;
                    self.volumes.push(name_space.to_string());
                }
                (op, *volume)
            }
        };
        let length = u64::from(le_u32(bytes, 12));
        let (offset_bytes, length_bytes) =
            extent(op, le_u64(bytes, 4), self.numbers.unit_bytes, length)
                .map_err(|expected| (if length == 0 { 12 } else { 4 }, expected))?;
        let time_ns = self.time_unit.short_ns(le_u32(bytes, 0));
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }
}

impl TraceReader for OracleGeneral {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let size = self.layout.bytes();
        let mut count = 0;
        while count < max {
            if self.layout == OracleLayout::Plain {
                let bound = self.records.bound;
                let ahead = self.records.ahead(size)?;
                let records = (ahead.len() / size).min(max - count);
                let good = Self::plain(
                    batch,
                    &ahead[..records * size],
                    self.numbers.unit_bytes,
                    self.time_unit,
                    bound,
                );
                self.records.pass(good * size, good as u64);
                count += good;
                if good == records && good > 0 {
                    continue;
                }
            }
            let Some(bytes) = self.records.whole(size)? else { break };
            let parsed = self.parse_record(&bytes);
            count += self.records.take(parsed, size, 12, batch)?;
        }
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        &self.volumes
    }

    fn skipped(&self) -> &Skipped {
        &self.records.skipped
    }

    fn notes(&self) -> Vec<String> {
        self.numbers.note.iter().cloned().collect()
    }

    fn counts_objects(&self) -> bool {
        self.numbers.are_objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::testing::{bad_bytes, read_bytes};
    use crate::formats::registry::open_bytes;
    use crate::formats::testing::{options, record};
    use crate::{OnBadRecord, recognise_bytes};

    fn plain(records: &[(u32, u64, u32, i64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (time, object, size, next) in records {
            bytes.extend(time.to_le_bytes());
            bytes.extend(object.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend(next.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn objects_are_sectors_unless_said_otherwise() {
        let bytes = plain(&[(5, 7, 4096, 3), (5, 9, 512, -1), (6, 7, 4096, i64::MAX)]);
        let (records, volumes) = read_bytes(&options("oracle-general", &[]), &bytes);
        let at = |time: u64, offset, size| record(time * 1_000_000_000, Op::Read, offset, size, 0);
        assert_eq!(records, [at(5, 3584, 4096), at(5, 4608, 512), at(6, 3584, 4096)]);
        assert_eq!(volumes, ["0"]);
        let by_object = options("oracle-general", &[("address_unit", "object")]);
        assert_eq!(read_bytes(&by_object, &bytes).0[0].offset_bytes, 7);
        for (unit, ns) in [("s", 5_000_000_000), ("ms", 5_000_000), ("ps", 0)] {
            let options = options("oracle-general", &[("time_unit", unit)]);
            assert_eq!(read_bytes(&options, &bytes).0[0].time_ns, ns, "{unit}");
        }
        for unit in ["512", "0B", "x"] {
            let options = options("oracle-general", &[("address_unit", unit)]);
            assert!(open_bytes("sample", &bytes, &options).is_err(), "{unit}");
        }
    }

    #[test]
    fn op_and_name_space_are_read() {
        let mut bytes = Vec::new();
        for (op, name_space) in [(1_u8, 7_u16), (13, 7), (9, 300), (99, 0)] {
            bytes.extend(plain(&[(1, 8, 512, -1)])[..16].to_vec());
            bytes.push(op);
            bytes.extend(name_space.to_le_bytes());
            bytes.extend((-1_i64).to_le_bytes());
        }
        let mut skip = options("oracle-general-op-ns", &[]);
        skip.on_bad_record = OnBadRecord::Skip;
        let (records, volumes) = read_bytes(&skip, &bytes);
        let ops: Vec<(Op, u32)> = records.iter().map(|r| (r.op, r.volume)).collect();
        assert_eq!(ops, [(Op::Read, 0), (Op::Write, 0), (Op::Trim, 1)]);
        assert_eq!(volumes, ["7", "300"]);
        let error = bad_bytes(&options("oracle-general-op-ns", &[]), &bytes);
        assert_eq!(
            error,
            "sample: record 4, byte 97: found `0x630000ffffffffffffffff`, expected an op from 1 \
             (get) to 14 (update)"
        );
    }

    #[test]
    fn bad_records_are_named_or_counted() {
        let mut bytes = plain(&[(5, 7, 1, -1), (5, u64::MAX, 1, -1), (5, 8, 0, -1), (5, 9, 1, -1)]);
        bytes.extend([1, 2, 3]);
        let format = options("oracle-general", &[]);
        let error = bad_bytes(&format, &bytes);
        assert!(error.starts_with("sample: record 2, byte 28: found `0xffffffff"), "{error}");
        let mut skip = format;
        skip.on_bad_record = OnBadRecord::Skip;
        let mut reader = open_bytes("sample", &bytes, &skip).unwrap();
        let mut batch = Batch::default();
        while reader.read(&mut batch, 1).unwrap() > 0 {}
        assert_eq!(batch.offset_bytes, [7 * 512, 9 * 512]);
        let skipped = reader.skipped();
        assert_eq!(skipped.bad, 3);
        assert_eq!(skipped.examples[2].position, 5);
        assert_eq!(skipped.examples[2].expected, "a record of 24 bytes");
    }

    #[test]
    fn plausible_records_are_recognised_and_other_bytes_are_not() {
        let bytes = plain(&[(5, 7, 4096, 3), (5, 9, 512, -1), (6, 7, 4096, -1)]);
        assert_eq!(recognise_bytes(&bytes).unwrap().name, "oracle-general");
        let wrong_link = plain(&[(5, 7, 4096, 2), (5, 9, 512, -1), (6, 7, 4096, -1)]);
        let backwards = plain(&[(5, 7, 4096, -1), (4, 9, 512, -1)]);
        let text = b"3,R,35786752,4096,594610\n4,W,2147618816,12288,594972\n".to_vec();
        for other in [wrong_link, backwards, vec![0; 4096], text] {
            assert_eq!(recognise(OracleLayout::Plain, &other), 0);
            assert_eq!(recognise(OracleLayout::OpNs, &other), 0);
        }
    }
}
