//! BIOTracer: block requests of a Nexus 5, by the driver of its flash.
//!
//! Eight columns separated by blanks, `lba sectors bytes flags` and four times. Units: sectors of
//! 512 B, decimal seconds. Bit 0 of the flags is a write. A request comes when it is generated;
//! when it started, was submitted and finished is only checked to be times. The clock may jump
//! where the phone booted. Source: the readme of BIOTracer (Zhou et al., IISWC'15, "I/O
//! characteristics of smartphone applications").

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, Fields, SECTOR_BYTES, expected};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "biotracer",
    doc: "lba sectors bytes flags generated started submitted finished: sectors; decimal seconds",
    source: "BIOTracer readme; Zhou et al., IISWC'15",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "-",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(BioTracer::new(&ClockOptions::default()), head, 95),
    near_miss: |head| near_miss(BioTracer::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, BioTracer::new),
};

const BYTES: &str = "the bytes of the request, 512 for each sector";
const FLAGS: &str = "flags, a whole number from 0 (bit 0: a write)";
/// Columns of times after the one that counts.
const LATER_TIMES: usize = 3;
const EXTENT: Extent = Extent {
    offset_column: 1,
    offset_unit: SECTOR_BYTES,
    length_column: 2,
    length_unit: SECTOR_BYTES,
};

#[derive(Clone)]
struct BioTracer {
    clock: Clock,
}

impl BioTracer {
    fn new(own: &ClockOptions) -> BioTracer {
        BioTracer { clock: Clock::new(own, TimeUnit::SECOND, expected::SECONDS) }
    }
}

impl LineParser for BioTracer {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<BLANKS>::new(line);
        let offset = fields.number(expected::OFFSET_SECTORS)?;
        let length = fields.number(expected::LENGTH_SECTORS)?;
        let bytes = fields.number(BYTES)?;
        if length.checked_mul(SECTOR_BYTES) != Some(bytes) {
            return Err(fields.fault(BYTES));
        }
        let op = if fields.number(FLAGS)? & 1 == 1 { Op::Write } else { Op::Read };
        let time_ns = fields.time(&self.clock)?;
        for _ in 0..LATER_TIMES {
            fields.time(&self.clock)?;
        }
        fields.end()?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(0, 0)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }

    fn length_column(&self) -> u32 {
        EXTENT.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};
    use crate::recognise_bytes;

    const TEXT: &str = "4043872\t\t96\t\t49152\t\t5\t\t1398396860.168065791\t\t1398396860.168307510\
                        \t\t1398396860.168322874\t\t1398396860.171732249\n\
                        8 16 8192 4 1398396860.2 1398396860.2 1398396860.3 1398396860.4\n";

    #[test]
    fn a_request_comes_when_it_is_generated() {
        let (records, volumes) = read_all("biotracer", TEXT);
        let expected = [
            record(1_398_396_860_168_065_791, Op::Write, 2_070_462_464, 49_152, 0),
            record(1_398_396_860_200_000_000, Op::Read, 4096, 8192, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["0"]);
        assert_eq!(recognise_bytes(TEXT.as_bytes()).unwrap().name, "biotracer");
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("biotracer", "8 16 4096 4 1 1 1 1\n").contains("column 3: found `4096`"));
        assert!(bad("biotracer", "8 16 8192 4 1 1 1\n").contains("column 8"));
    }
}
