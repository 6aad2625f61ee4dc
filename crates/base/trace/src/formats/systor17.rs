//! Systor'17 traces of a virtual desktop infrastructure.
//!
//! The columns `Timestamp,Response,IOType,LUN,Offset,Size` under a header. Units: timestamp and
//! response seconds (decimal), offset and size bytes. Times are not sorted. Source: SNIA IOTTA, Lee
//! et al., SYSTOR'17, as read by Caffeine's SystorTraceReader. Deviation: a request with an empty
//! response, which that reader skips, is read. A line without IOType is not.

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, Fields, decimal, expected};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial, whole_lines};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "systor17",
    doc: "header, then Timestamp,Response,IOType,LUN,Offset,Size: decimal seconds; R, W; bytes",
    source: "SNIA IOTTA; Lee et al., SYSTOR'17",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "the header",
    to_say: &[],
    options: ClockOptions::keys,
    recognise,
    near_miss: |head| near_miss(Systor::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Systor::new),
};

const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";
const RESPONSE: &str = "a response time in decimal seconds, or nothing";
const IO_TYPE: &str = "R or W";
const LUN: &str = "a logical unit number";
const EXTENT: Extent =
    Extent { offset_column: 5, offset_unit: 1, length_column: 6, length_unit: 1 };

#[derive(Clone)]
struct Systor {
    clock: Clock,
}

impl Systor {
    fn new(own: &ClockOptions) -> Systor {
        Systor { clock: Clock::new(own, TimeUnit::SECOND, expected::SECONDS) }
    }
}

fn recognise(head: &[u8]) -> u8 {
    if whole_lines(head).next() == Some(HEADER) {
        100
    } else {
        trial(Systor::new(&ClockOptions::default()), head, 90)
    }
}

impl LineParser for Systor {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let time_ns = fields.time(&self.clock)?;
        let response = fields.word(RESPONSE)?;
        if !response.is_empty() && decimal(response, 1, 1).is_none() {
            return Err(fields.fault(RESPONSE));
        }
        let op = match fields.word(IO_TYPE)? {
            b"R" => Op::Read,
            b"W" => Op::Write,
            b"" if fields.has_more() => return Ok(None),
            _ => return Err(fields.fault(IO_TYPE)),
        };
        let lun = fields.number(LUN)?;
        let offset = fields.number(expected::OFFSET_BYTES)?;
        let length = fields.number(expected::LENGTH_BYTES)?;
        fields.end()?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(lun, 4)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
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

    const TEXT: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                        1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
                        1456095145.126285000,,W,2,4256049987072,512\n\
                        1456095145.126285000,0.1,,,,\n";

    #[test]
    fn decimal_seconds_and_empty_fields() {
        let (records, volumes) = read_all("systor17", TEXT);
        let expected = [
            record(1_456_095_145_133_076_000, Op::Read, 899_056_122_368, 131_072, 0),
            record(1_456_095_145_126_285_000, Op::Write, 4_256_049_987_072, 512, 1),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["0", "2"]);
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |fields: &str| bad("systor17", &format!("{TEXT}{fields}\n"));
        assert!(line("1.5,0.1,X,0,0,1").contains("line 5, column 3: found `X`, expected R or W"));
        assert!(line("-1.5,0.1,R,0,0,1").contains("column 1: found `-1.5`"));
        assert!(line("1.5,slow,R,0,0,1").contains("column 2: found `slow`"));
        assert!(line("1.5,0.1,R,0,0").contains("column 6: found `end of line`"));
    }
}
