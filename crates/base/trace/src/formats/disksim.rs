//! DiskSim's ASCII traces.
//!
//! The columns `time device block count flags`, separated by blanks. Units: milliseconds with a
//! fraction, blocks of 512 B, flags in hexadecimal of which bit 0 is a READ. A volume is a device.
//! The times tell it from MQSim's traces, whose last column means the same and which have whole
//! nanoseconds. Source: DiskSim 4.0, `disksim_iotrace.c` (ascii).

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, Fields, SECTOR_BYTES};
use crate::text::{LineParser, TextReader, VolumeNames, is_comment, near_miss, trial, whole_lines};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "disksim",
    doc: "time device block count flags: milliseconds; blocks of 512 B; hex flags, bit 0 a read",
    source: "DiskSim 4.0, disksim_iotrace.c",
    time: Unit::Of(1_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "-",
    to_say: &[],
    options: ClockOptions::keys,
    recognise,
    near_miss: |head| near_miss(DiskSim::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, DiskSim::new),
};

const TIME: &str = "milliseconds, a decimal number from 0 below 2^64 nanoseconds";
const DEVICE: &str = "a device number";
const BLOCK: &str = "a first block of 512 B, a whole number from 0";
const COUNT: &str = "a number of blocks of 512 B";
const FLAGS: &str = "flags in hexadecimal, of which bit 0 is a read";
const EXTENT: Extent = Extent {
    offset_column: 3,
    offset_unit: SECTOR_BYTES,
    length_column: 4,
    length_unit: SECTOR_BYTES,
};

#[derive(Clone)]
struct DiskSim {
    clock: Clock,
}

impl DiskSim {
    fn new(own: &ClockOptions) -> DiskSim {
        DiskSim { clock: Clock::new(own, TimeUnit::MILLISECOND, TIME) }
    }
}

/// Every time has a point: DiskSim prints six digits behind it.
fn recognise(head: &[u8]) -> u8 {
    let has_point = |line: &[u8]| {
        let time = Fields::<BLANKS>::new(line).next();
        time.is_some_and(|time| time.contains(&b'.') && time[0].is_ascii_digit())
    };
    let rows = || whole_lines(head).filter(|line| !is_comment(line)).take(64);
    let pointed = rows().filter(|line| has_point(line)).count();
    if pointed == 0 || pointed + 1 < rows().count() {
        return 0;
    }
    trial(DiskSim::new(&ClockOptions::default()), head, 80)
}

impl LineParser for DiskSim {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<BLANKS>::new(line);
        let time_ns = fields.time(&self.clock)?;
        let device = fields.number(DEVICE)?;
        let offset = fields.number(BLOCK)?;
        let length = fields.number(COUNT)?;
        let flags = fields.word(FLAGS)?;
        let op = op(flags).ok_or_else(|| fields.fault(FLAGS))?;
        fields.end()?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(device, 2)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        EXTENT.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }
}

/// What flags ask, of which only the last digit counts.
#[inline]
fn op(flags: &[u8]) -> Option<Op> {
    let digits = flags.strip_prefix(b"0x").unwrap_or(flags);
    let is_hexadecimal = (1..=8).contains(&digits.len());
    if !is_hexadecimal || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let last = char::from(digits[digits.len() - 1]).to_digit(16)?;
    Some(if last & 1 == 1 { Op::Read } else { Op::Write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, options, read_all, read_with, record};
    use crate::recognise_bytes;

    const TEXT: &str = "13.191135 0 0 8 0\n14.691135    1  16    8    1\n15.000000 0 24 1 9\n\
                        16.5 0 32 1 80000000\n";

    #[test]
    fn milliseconds_blocks_and_hexadecimal_flags() {
        let expected = [
            record(13_191_135, Op::Write, 0, 4096, 0),
            record(14_691_135, Op::Read, 8192, 4096, 1),
            record(15_000_000, Op::Read, 12_288, 512, 0),
            record(16_500_000, Op::Write, 16_384, 512, 0),
        ];
        let (records, volumes) = read_all("disksim", TEXT);
        assert_eq!((records, volumes), (expected.to_vec(), vec!["0".to_owned(), "1".to_owned()]));
        assert_eq!(recognise_bytes(TEXT.as_bytes()).unwrap().name, "disksim");
        let seconds = options("disksim", &[("time_unit", "s")]);
        assert_eq!(read_with(&seconds, TEXT).0[2].time_ns, 15_000_000_000);
        assert_eq!(recognise(b"13 0 0 8 0\n14 0 8 8 1\n"), 0, "MQSim's");
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("disksim", "1.5 0 8 8 g\n").contains("column 5: found `g`, expected flags"));
        assert!(bad("disksim", "1.5 0 8 0 1\n").contains("column 4: found `0`, expected a length"));
        assert!(bad("disksim", "x 0 8 8 1\n").contains("column 1: found `x`, expected millisec"));
        assert!(
            bad("disksim", "1.5 0 8 8 1 1\n").contains("column 6: found `1`, expected the end")
        );
    }
}
