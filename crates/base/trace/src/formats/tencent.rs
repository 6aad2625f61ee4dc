//! Tencent cloud block storage (CBS) traces.
//!
//! For: the columns `Timestamp,Offset,Size,IOType,VolumeID`. Must never know: other formats. Units:
//! timestamp seconds, offset and size sectors of 512 B; IOType 0 is a read, 1 a write. Times have
//! a resolution of one second and run backwards in places. Source: SNIA IOTTA trace 28064, README
//! (Zhang et al., OSCA, ATC'20). The re-release of cacheMon has byte offsets and is not this.

use super::entry::TraceFormat;
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, Fields, SECTOR_BYTES, expected, whole};
use crate::options::declared;
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial, whole_lines};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "tencent",
    doc: "Timestamp,Offset,Size,IOType,VolumeID: seconds; sectors of 512 B; 0 read, 1 write",
    source: "SNIA IOTTA 28064 README; Zhang et al., OSCA, ATC'20",
    options: ClockOptions::keys,
    recognise,
    near_miss: |head| near_miss(Tencent::new(&ClockOptions::default()), head),
    open: |source, options| {
        let own: ClockOptions = declared(&options.format_options)?;
        Ok(TextReader::boxed(source, Tencent::new(&own), options))
    },
};

const TIME: &str = "seconds since 1970, a decimal number below 2^64 nanoseconds";
const IO_TYPE: &str = "0 (read) or 1 (write)";
const VOLUME: &str = "a volume number";
const EXTENT: Extent = Extent {
    offset_column: 2,
    offset_unit: SECTOR_BYTES,
    length_column: 3,
    length_unit: SECTOR_BYTES,
};
/// 2001 to 2286 as seconds since 1970: what tells the first column from other numbers.
const PLAUSIBLE_SECONDS: std::ops::Range<u64> = 1_000_000_000..10_000_000_000;

#[derive(Clone)]
struct Tencent {
    clock: Clock,
}

impl Tencent {
    fn new(own: &ClockOptions) -> Tencent {
        Tencent { clock: Clock::new(own, TimeUnit::SECOND, TIME) }
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
    if plausible { trial(Tencent::new(&ClockOptions::default()), head, 80) } else { 0 }
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
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(number, 5)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        EXTENT.length_column
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
    use crate::formats::testing::{bad, read_all, record};

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
    fn bad_lines_are_named() {
        assert!(bad("tencent", "1538323200,0,8,2,1\n").contains("column 4: found `2`, expected 0"));
        assert!(bad("tencent", "1538323200,0,-8,1,1\n").contains("line 1, column 3: found `-8`"));
        assert!(bad("tencent", "99999999999,0,8,1,1\n").contains("column 1"), "time overflows");
    }
}
