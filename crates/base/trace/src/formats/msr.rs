//! MSR Cambridge traces.
//!
//! The columns `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Units: timestamp in
//! Windows file time (100 ns since 1601), offset and size bytes; the response time is not used. A
//! volume is a host and a disk, named `host_disk`. Source: SNIA IOTTA traces 387 and 388, README
//! (Narayanan et al., FAST'08). Times run backwards in places.

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
    name: "msr",
    doc: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime: 100 ns; Read, Write; bytes",
    source: "SNIA IOTTA 387/388 README; Narayanan et al., FAST'08",
    time: Unit::Of(100),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "-",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(Msr::new(&ClockOptions::default()), head, 95),
    near_miss: |head| near_miss(Msr::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Msr::new),
};

const TIME: &str = "Windows file time, a number of 100 ns below 2^64 ns";
const HOST: &str = "a host name";
const DISK: &str = "a disk number";
const TYPE: &str = "Read or Write";
const RESPONSE: &str = "a response time, a whole number of 100 ns";
const EXTENT: Extent =
    Extent { offset_column: 5, offset_unit: 1, length_column: 6, length_unit: 1 };

#[derive(Clone)]
struct Msr {
    clock: Clock,
}

impl Msr {
    fn new(own: &ClockOptions) -> Msr {
        Msr { clock: Clock::new(own, TimeUnit::FILE_TIME, TIME) }
    }
}

impl LineParser for Msr {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let time_ns = fields.ticks(&self.clock)?;
        let from_host = fields.rest();
        if fields.word(HOST)?.is_empty() {
            return Err(fields.fault(HOST));
        }
        fields.number(DISK)?;
        let key = &from_host[..from_host.len().saturating_sub(fields.rest().len() + 1)];
        let op = fields.op(kind, TYPE)?;
        let offset = fields.number(expected::OFFSET_BYTES)?;
        let length = fields.number(expected::LENGTH_BYTES)?;
        fields.number(RESPONSE)?;
        fields.end()?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.keyed(key, 2, |key| key.replace(',', "_"))?;
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
        b"Read" => Some(Op::Read),
        b"Write" => Some(Op::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};

    #[test]
    fn file_time_and_host_with_disk() {
        let text = "128166465299039421,web,3,Read,32256,8192,112509\r\n\
                    128166465299119535,web,0,Write,182082715136,4096,32396\n\
                    128166465299119536,web,3,Write,0,512,0\n";
        let (records, volumes) = read_all("msr", text);
        let expected = [
            record(12_816_646_529_903_942_100, Op::Read, 32_256, 8192, 0),
            record(12_816_646_529_911_953_500, Op::Write, 182_082_715_136, 4096, 1),
            record(12_816_646_529_911_953_600, Op::Write, 0, 512, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["web_3", "web_0"]);
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |fields: &str| bad("msr", &format!("128166465299039421,{fields}\n"));
        assert!(line("web,3,read,0,512,1").contains("column 4: found `read`, expected Read"));
        assert!(line("web,x,Read,0,512,1").contains("column 3: found `x`, expected a disk"));
        assert!(line(",3,Read,0,512,1").contains("column 2: found ``, expected a host"));
        assert!(line("web,3,Read,0,0,1").contains("zero-length read"));
        assert!(line("web,3,Read,0,512").contains("column 7: found `end of line`"));
        assert!(bad("msr", "184467440737095517,w,0,Read,0,1,1\n").contains("column 1"), "overflow");
    }
}
