//! Alibaba cloud block traces (`io_traces.csv`), and our own captures in the same columns.
//!
//! The columns `device_id,opcode,offset,length,timestamp`. Units: offset and length bytes,
//! timestamp microseconds. Source: the README of github:alibaba/block-traces (Li et al., IISWC'20).
//! Deviation: besides `R` and `W`, the captured variant has `T` (trim or write-zeroes) and `F`
//! (flush, offset and length 0).

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, Fields, expected};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "alibaba",
    doc: "device_id,opcode,offset,length,timestamp: R, W, T (trim), F (flush); bytes; microseconds",
    source: "github:alibaba/block-traces README; Li et al., IISWC'20",
    time: Unit::Of(1_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "a header",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(Alibaba::new(&ClockOptions::default()), head, 90),
    near_miss: |head| near_miss(Alibaba::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Alibaba::new),
};

const DEVICE: &str = "a device number";
const OPCODE: &str = "R, W, T or F";
const EXTENT: Extent =
    Extent { offset_column: 3, offset_unit: 1, length_column: 4, length_unit: 1 };

#[derive(Clone)]
struct Alibaba {
    clock: Clock,
}

impl Alibaba {
    fn new(own: &ClockOptions) -> Alibaba {
        Alibaba { clock: Clock::new(own, TimeUnit::MICROSECOND, expected::MICROSECONDS) }
    }
}

impl LineParser for Alibaba {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let device = fields.number(DEVICE)?;
        let op = fields.op(opcode, OPCODE)?;
        let offset = fields.number(expected::OFFSET_BYTES)?;
        let length = fields.number(expected::LENGTH_BYTES)?;
        let time_ns = fields.ticks(&self.clock)?;
        fields.end()?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(device, 1)?;
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
        b"R" => Some(Op::Read),
        b"W" => Some(Op::Write),
        b"T" => Some(Op::Trim),
        b"F" => Some(Op::Flush),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};

    #[test]
    fn requests_of_a_capture() {
        let text = "3,R,35786752,4096,594610\n4,W,2147618816,12288,594972\n3,F,0,0,594973\n\
                    3,T,0,4294967296,594974\n";
        let (records, volumes) = read_all("alibaba", text);
        let expected = [
            record(594_610_000, Op::Read, 35_786_752, 4096, 0),
            record(594_972_000, Op::Write, 2_147_618_816, 12_288, 1),
            record(594_973_000, Op::Flush, 0, 0, 0),
            record(594_974_000, Op::Trim, 0, 4_294_967_296, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["3", "4"]);
    }

    #[test]
    fn bad_lines_are_named() {
        assert_eq!(
            bad("alibaba", "3,R,0,4096,1\r\n3,R,-4096,4096,2\n"),
            "sample: line 2, column 3: found `-4096`, expected an offset in bytes, a whole number \
             from 0"
        );
        assert!(bad("alibaba", "3,R,0,0,1\n").contains("column 4: found `0`, expected a length"));
        assert!(bad("alibaba", "3,r,0,1,1\n").contains("column 2: found `r`, expected R, W, T"));
        assert!(bad("alibaba", "3,R,0\n").contains("column 4: found `end of line`"));
        assert!(bad("alibaba", "3,R,0,1,1,1\n").contains("column 6: found `1`, expected the end"));
    }
}
