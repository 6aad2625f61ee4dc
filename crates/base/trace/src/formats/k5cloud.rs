//! K5 cloud traces (Fujitsu): the volumes of 3,088 virtual machines for a week.
//!
//! The columns `ID,Timestamp,Type,Offset,Length`. Units: decimal seconds since the recording began,
//! bytes. `ID` names the volume, within one of the three sets. Source: SNIA IOTTA, README of the K5
//! cloud traces (iotta.snia.org/traces/parallel/26930).

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
    name: "k5cloud",
    doc: "ID,Timestamp,Type,Offset,Length: volume; decimal seconds; R, W; bytes",
    source: "SNIA IOTTA, K5 cloud (Fujitsu) README",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "a header",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(K5Cloud::new(&ClockOptions::default()), head, 90),
    near_miss: |head| near_miss(K5Cloud::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, K5Cloud::new),
};

const VOLUME: &str = "the number of a volume";
const TYPE: &str = "R or W";
const EXTENT: Extent =
    Extent { offset_column: 4, offset_unit: 1, length_column: 5, length_unit: 1 };

#[derive(Clone)]
struct K5Cloud {
    clock: Clock,
}

impl K5Cloud {
    fn new(own: &ClockOptions) -> K5Cloud {
        K5Cloud { clock: Clock::new(own, TimeUnit::SECOND, expected::SECONDS) }
    }
}

impl LineParser for K5Cloud {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let id = fields.number(VOLUME)?;
        let time_ns = fields.time(&self.clock)?;
        let op = fields.op(kind, TYPE)?;
        let offset = fields.number(expected::OFFSET_BYTES)?;
        let length = fields.number(expected::LENGTH_BYTES)?;
        fields.end()?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(id, 1)?;
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
fn kind(word: &[u8]) -> Option<Op> {
    match word {
        b"R" => Some(Op::Read),
        b"W" => Some(Op::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};
    use crate::recognise_bytes;

    const TEXT: &str = "ID,Timestamp,Type,Offset,Length\n12,0.000000,W,59049095168,4096\n\
                        7,0.000125,R,0,512\n12,3.5,R,59049095168,8192\n";

    #[test]
    fn ids_are_volumes() {
        let (records, volumes) = read_all("k5cloud", TEXT);
        let expected = [
            record(0, Op::Write, 59_049_095_168, 4096, 0),
            record(125_000, Op::Read, 0, 512, 1),
            record(3_500_000_000, Op::Read, 59_049_095_168, 8192, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["12", "7"]);
        assert_eq!(recognise_bytes(TEXT.as_bytes()).unwrap().name, "k5cloud");
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(
            bad("k5cloud", "12,0.5,T,0,512\n").contains("column 3: found `T`, expected R or W")
        );
        assert!(bad("k5cloud", "12,0.5,R,0,0\n").contains("column 5: found `0`"));
    }
}
