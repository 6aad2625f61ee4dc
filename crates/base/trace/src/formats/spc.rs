//! UMass traces in the SPC format (`.spc`): Financial and WebSearch.
//!
//! The columns `ASU,LBA,Size,Opcode,Timestamp[,more]`. Units: LBA in sectors of 512 B, size bytes,
//! timestamp decimal seconds from the start. The opcode is of either case, white space around
//! fields and further fields are allowed. A volume is an ASU (application storage unit). Source:
//! SPC Trace File Format Specification 1.0.1.

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, Fields, SECTOR_BYTES, expected};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "spc",
    doc: "ASU,LBA,Size,Opcode,Timestamp: LBA in sectors of 512 B, size bytes; r, w; seconds",
    source: "SPC Trace File Format Specification 1.0.1",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(1),
    detected: "-",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(Spc::new(&ClockOptions::default()), head, 85),
    near_miss: |head| near_miss(Spc::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Spc::new),
};

const ASU: &str = "an application storage unit, a whole number";
const OPCODE: &str = "R or W in either case";
const EXTENT: Extent =
    Extent { offset_column: 2, offset_unit: SECTOR_BYTES, length_column: 3, length_unit: 1 };

#[derive(Clone)]
struct Spc {
    clock: Clock,
}

impl Spc {
    fn new(own: &ClockOptions) -> Spc {
        Spc { clock: Clock::new(own, TimeUnit::SECOND, expected::SECONDS) }
    }
}

impl LineParser for Spc {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let asu = fields.number(ASU)?;
        let offset = fields.number(expected::OFFSET_SECTORS)?;
        let length = fields.number(expected::LENGTH_BYTES)?;
        let op = fields.op(opcode, OPCODE)?;
        let time_ns = fields.time(&self.clock)?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(asu, 1)?;
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
fn opcode(word: &[u8]) -> Option<Op> {
    match word {
        b"R" | b"r" => Some(Op::Read),
        b"W" | b"w" => Some(Op::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};

    #[test]
    fn sectors_bytes_and_seconds() {
        let text = "0,303567,3584,w,0.000000\n1, 55590 ,3072,R,0.026214,7,x\n";
        let (records, volumes) = read_all("spc", text);
        let expected = [
            record(0, Op::Write, 303_567 * 512, 3584, 0),
            record(26_214_000, Op::Read, 55_590 * 512, 3072, 1),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["0", "1"]);
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("spc", "0,1,512,d,0.5\n").contains("column 4: found `d`, expected R or W"));
        assert!(bad("spc", "0,1,512,r,1f5\n").contains("column 5: found `1f5`, expected seconds"));
        assert!(bad("spc", "0,1,0,w,0.5\n").contains("column 3: found `0`"));
        assert!(bad("spc", "0,-1,512,w,0.5\n").contains("column 2: found `-1`"));
    }
}
