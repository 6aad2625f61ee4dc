//! FIU traces (IODedup, SRCMap; `*.blkparse`), which are not blkparse's own text.
//!
//! The columns `ts pid process lba size op major minor md5`, separated by blanks. Units:
//! nanoseconds, sectors of 512 B; `W` or `R`. A volume is a device, named `major,minor`. The
//! process name may hold blanks, so that the columns after it are read from the right. Source: SNIA
//! IOTTA 391/411 README (Koller and Rangaswami, FAST'10).

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, Fields, FromRight, SECTOR_BYTES, expected};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "fiu",
    doc: "ts pid process lba size op major minor md5: nanoseconds; sectors of 512 B; R, W",
    source: "SNIA IOTTA 391/411 README; Koller and Rangaswami, FAST'10",
    time: Unit::Of(1),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "-",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(Fiu::new(&ClockOptions::default()), head, 95),
    near_miss: |head| near_miss(Fiu::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Fiu::new),
};

const TIME: &str = "nanoseconds, a number below 2^64";
const PID: &str = "a process number";
const OP: &str = "R or W";
const DEVICE: &str = "a device number below 2^32";
const CHECKSUM: &str = "a checksum of hexadecimal digits";
const LENGTH_COLUMN: u32 = 5;
const EXTENT: Extent = Extent {
    offset_column: 4,
    offset_unit: SECTOR_BYTES,
    length_column: LENGTH_COLUMN,
    length_unit: SECTOR_BYTES,
};

#[derive(Clone)]
struct Fiu {
    clock: Clock,
}

impl Fiu {
    fn new(own: &ClockOptions) -> Fiu {
        Fiu { clock: Clock::new(own, TimeUnit::NANOSECOND, TIME) }
    }
}

impl LineParser for Fiu {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut left = Fields::<BLANKS>::new(line);
        let time_ns = left.ticks(&self.clock)?;
        left.number(PID)?;
        let mut right = FromRight::new(left.rest(), left.column());
        let checksum = right.word();
        if checksum.is_empty() || !checksum.iter().all(u8::is_ascii_hexdigit) {
            return Err(right.fault(CHECKSUM));
        }
        let minor = device(&mut right)?;
        let major = device(&mut right)?;
        let op = match right.word() {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Err(right.fault(OP)),
        };
        let length = right.number(expected::LENGTH_SECTORS)?;
        let offset = right.number(expected::OFFSET_SECTORS)?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let name = |_| format!("{major},{minor}");
        let volume = volumes.numbered_as(major << 32 | minor, 7, name)?;
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

#[inline]
fn device(right: &mut FromRight<'_>) -> Result<u64, FieldFault> {
    let number = right.number(DEVICE)?;
    if number >> 32 == 0 { Ok(number) } else { Err(right.fault(DEVICE)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};

    #[test]
    fn columns_are_read_from_the_right() {
        let text = "467651 2522 kjournald 644661632 8 W 6 0 98b9cb7e1dd888f9dac2bf08af1c3cb2\n\
                    520943 7 my 8 program 688749776 16 R 8 17 c0ac18a3\n";
        let (records, volumes) = read_all("fiu", text);
        let expected = [
            record(467_651, Op::Write, 644_661_632 * 512, 4096, 0),
            record(520_943, Op::Read, 688_749_776 * 512, 8192, 1),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["6,0", "8,17"]);
    }

    #[test]
    fn bad_lines_are_named() {
        let error = bad("fiu", "1 2 cron 64 8 X 6 0 98b9\n");
        assert!(error.contains("line 1, column 6: found `X`, expected R or W"), "{error}");
        let error = bad("fiu", "1 2 cron 64 8 W 6 0 nothex\n");
        assert!(error.contains("column 9: found `nothex`"), "{error}");
        assert!(bad("fiu", "1 2 cron 64 -8 W 6 0 98\n").contains("column 5: found `-8`"));
        assert!(bad("fiu", "1 2\n").contains("column 3: found `end of line`"));
        assert!(bad("fiu", "1 2 cron 64 0 W 6 0 98\n").contains("zero-length write"));
    }
}
