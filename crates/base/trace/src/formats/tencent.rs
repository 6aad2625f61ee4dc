//! Tencent cloud block storage (CBS) traces.
//!
//! The columns `Timestamp,Offset,Size,IOType,VolumeID`. Units: timestamp seconds, offset and size
//! sectors of 512 B; IOType 0 is a read, 1 a write. Times have a resolution of one second and run
//! backwards in places. Source: SNIA IOTTA trace 28064, README (Zhang et al., OSCA, ATC'20). The
//! re-release of cacheMon has byte offsets: the options `offset_unit` and `length_unit` say so, and
//! a note asks for them where every number shows it.

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, Fields, SECTOR_BYTES, expected, whole};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial, whole_lines};
use crate::units::{AddressUnit, TimeUnit};
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, Op, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "tencent",
    doc: "Timestamp,Offset,Size,IOType,VolumeID: seconds; sectors of 512 B; 0 read, 1 write",
    source: "SNIA IOTTA 28064 README; Zhang et al., OSCA, ATC'20",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "bytes in place of sectors, where every number shows them: a note asks for the \
               options",
    to_say: &["offset_unit", "length_unit"],
    options: TencentOptions::keys,
    recognise,
    near_miss: |head| near_miss(Tencent::new(&TencentOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Tencent::new),
};

declare! {
    /// Options of reading.
    pub struct TencentOptions {
        /// unit of times; default: seconds
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
        /// unit of the offset; re-releases of the set have bytes
        offset_unit: AddressUnit = AddressUnit(SECTOR_BYTES), "";
        /// unit of the size
        length_unit: AddressUnit = AddressUnit(SECTOR_BYTES), "";
    }
}

const TIME: &str = "seconds since 1970, a decimal number below 2^64 nanoseconds";
const IO_TYPE: &str = "0 (read) or 1 (write)";
const VOLUME: &str = "a volume number";
/// 2001 to 2286 as seconds since 1970: what tells the first column from other numbers.
const PLAUSIBLE_SECONDS: std::ops::Range<u64> = 1_000_000_000..10_000_000_000;

#[derive(Clone)]
struct Tencent {
    clock: Clock,
    extent: Extent,
}

impl Tencent {
    fn new(own: &TencentOptions) -> Tencent {
        let given = ClockOptions { time_unit: own.time_unit, time_shift: own.time_shift };
        let extent = Extent {
            offset_column: 2,
            offset_unit: own.offset_unit.0,
            length_column: 3,
            length_unit: own.length_unit.0,
        };
        Tencent { clock: Clock::new(&given, TimeUnit::SECOND, TIME), extent }
    }
}

fn recognise(head: &[u8]) -> u8 {
    let first_time = |line: &[u8]| {
        let line = line.strip_prefix(b"\"").unwrap_or(line);
        let end = line.iter().position(|byte| b",\"".contains(byte))?;
        whole(&line[..end])
    };
    let plausible = whole_lines(head)
        .find_map(first_time)
        .is_some_and(|seconds| PLAUSIBLE_SECONDS.contains(&seconds));
    if plausible { trial(Tencent::new(&TencentOptions::default()), head, 80) } else { 0 }
}

impl LineParser for Tencent {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let time_ns = fields.ticks(&self.clock)?;
        let offset = fields.number(expected::OFFSET_SECTORS)?;
        let length = fields.number(expected::LENGTH_SECTORS)?;
        let op = fields.op(io_type, IO_TYPE)?;
        let number = fields.number(VOLUME)?;
        fields.end()?;
        let (offset_bytes, length_bytes) = self.extent.bytes(op, offset, length)?;
        let volume = volumes.numbered(number, 5)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        self.extent.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }
}

#[inline]
fn io_type(word: &[u8]) -> Option<Op> {
    match whole(word)? {
        0 => Some(Op::Read),
        1 => Some(Op::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, options, read_all, read_with, record};
    use crate::{Batch, OpenOptions, open_bytes};

    #[test]
    fn sectors_and_seconds() {
        let (records, volumes) =
            read_all("tencent", "1538323200,4247200,128,1,1058\n1538323199,13896880,8,0,1063\n");
        let expected = [
            record(1_538_323_200_000_000_000, Op::Write, 4_247_200 * 512, 65_536, 0),
            record(1_538_323_199_000_000_000, Op::Read, 13_896_880 * 512, 4096, 1),
        ];
        assert_eq!(records, expected, "times may run backwards");
        assert_eq!(volumes, ["1058", "1063"]);
    }

    #[test]
    fn units_are_options_and_bytes_are_asked_for_where_every_number_shows_them() {
        let notes = |text: &str, own: &OpenOptions| {
            let mut reader = open_bytes("sample", text.as_bytes(), own).unwrap();
            while reader.read(&mut Batch::default(), 2).unwrap() > 0 {}
            reader.notes()
        };
        let rows = |offset: u64, length: u64| -> String {
            (0..9).map(|n| format!("1538323200,{},{length},0,1\n", n * offset)).collect()
        };
        let plain = OpenOptions::default();
        let note = notes(&rows(36_864, 4096), &plain).join("");
        assert_eq!(
            note,
            "every offset and length is a multiple of 512: bytes may be meant, not sectors of \
             512 B; `offset_unit=B` and `length_unit=B` say so"
        );
        assert!(notes(&rows(8192, 8), &plain)[0].contains("every offset is a multiple of 4096"));
        assert!(notes(&rows(8, 8192), &plain)[0].contains("`length_unit=B` says so"));
        assert!(notes(&rows(8, 8), &plain).is_empty(), "sectors of pages");
        let bytes = options("tencent", &[("offset_unit", "B"), ("length_unit", "B")]);
        assert!(notes(&rows(36_864, 4096), &bytes).is_empty(), "said");
        let (records, _) = read_with(&bytes, &rows(36_864, 4096));
        assert_eq!((records[1].offset_bytes, records[1].length_bytes), (36_864, 4096));
        let mixed = options("tencent", &[("offset_unit", "B")]);
        assert_eq!(read_with(&mixed, &rows(36_864, 8)).0[1].length_bytes, 4096);
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("tencent", "1538323200,0,8,2,1\n").contains("column 4: found `2`, expected 0"));
        assert!(bad("tencent", "1538323200,0,-8,1,1\n").contains("line 1, column 3: found `-8`"));
        assert!(bad("tencent", "99999999999,0,8,1,1\n").contains("column 1"), "time overflows");
    }
}
