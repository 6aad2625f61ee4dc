//! Disk events of Windows (ETW), as xperf's dumper prints them.
//!
//! Rows `DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize,
//! ElapsedTime, DiskNum, ...`, the same for `DiskWrite`, and `DiskFlush`. Units: microseconds,
//! bytes (`0x` and hexadecimal, or decimal). A volume is a disk. Which column is which may be said
//! by rows of names in a header from `BeginHeader` to `EndHeader`; rows of all other events ask
//! nothing. Source: SNIA IOTTA 149 and 158, README; xperf -a dumper.

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, Fields, expected, hexadecimal_or_whole};
use crate::text::{Header, LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;
use memchr::memmem;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "etw",
    doc: "xperf rows DiskRead/DiskWrite, TimeStamp, ..., ByteOffset, IOSize, ...: us; bytes",
    source: "SNIA IOTTA 149/158 README; xperf -a dumper",
    time: Unit::Of(1_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "other events, which are passed over",
    to_say: &[],
    options: ClockOptions::keys,
    recognise,
    near_miss: |head| match has_disk_events(head) {
        true => near_miss(Etw::new(&ClockOptions::default()), head),
        false => None,
    },
    open: |source, options| TextReader::opened(source, options, Etw::new),
};

const EVENT: &str = "the name of an event, such as DiskRead";
const OFFSET: &str = "an offset in bytes, hexadecimal with 0x or decimal";
const LENGTH: &str = "a length in bytes, hexadecimal with 0x or decimal";
const DISK: &str = "a disk number";

/// The columns of an event, from 1.
#[derive(Clone, Copy)]
struct EventColumns {
    time: u32,
    offset: u32,
    length: u32,
    disk: u32,
}

/// As xperf of Windows Server 2008 to 2012 has them.
const USUAL: EventColumns = EventColumns { time: 2, offset: 6, length: 7, disk: 9 };
/// A flush has neither offset nor length.
const OF_FLUSH: EventColumns = EventColumns { time: 2, offset: 0, length: 0, disk: 7 };

#[derive(Clone)]
struct Etw {
    clock: Clock,
    read: EventColumns,
    write: EventColumns,
    flush: EventColumns,
    /// The last line was a row of names.
    was_names: bool,
}

impl Etw {
    fn new(own: &ClockOptions) -> Etw {
        let clock = Clock::new(own, TimeUnit::MICROSECOND, expected::MICROSECONDS);
        Etw { clock, read: USUAL, write: USUAL, flush: OF_FLUSH, was_names: false }
    }
}

fn has_disk_events(head: &[u8]) -> bool {
    [&b"DiskRead,"[..], b"DiskWrite,"].iter().any(|event| memmem::find(head, event).is_some())
}

fn recognise(head: &[u8]) -> u8 {
    // Many kinds of events may stand before the first of a disk, but their names stand in a header.
    match has_disk_events(head) {
        true => trial(Etw::new(&ClockOptions::default()), head, 95),
        false => 0,
    }
}

impl LineParser for Etw {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let event = fields.word(EVENT)?;
        let (op, columns) = match event {
            b"DiskRead" => (Op::Read, self.read),
            b"DiskWrite" => (Op::Write, self.write),
            b"DiskFlush" => (Op::Flush, self.flush),
            _ if is_name(event) => {
                self.was_names = false;
                return Ok(None);
            }
            _ => return Err(fields.fault(EVENT)),
        };
        if names_columns(line) {
            self.learn(op, line);
            self.was_names = true;
            return Ok(None);
        }
        let last = columns.time.max(columns.offset).max(columns.length).max(columns.disk);
        let (mut time_ns, mut offset, mut length, mut disk) = (0, 0, 0, 0);
        for column in 2..=last {
            if column == columns.time {
                time_ns = fields.time(&self.clock)?;
                continue;
            }
            let field = fields.word("a further column")?;
            let number =
                |expected| hexadecimal_or_whole(field).ok_or(FieldFault { column, expected });
            if column == columns.offset {
                offset = number(OFFSET)?;
            } else if column == columns.length {
                length = number(LENGTH)?;
            } else if column == columns.disk {
                disk = number(DISK)?;
            }
        }
        let extent = Extent {
            offset_column: columns.offset,
            offset_unit: 1,
            length_column: columns.length,
            length_unit: 1,
        };
        let (offset_bytes, length_bytes) = extent.bytes(op, offset, length)?;
        let volume = volumes.numbered(disk, columns.disk)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        self.read.length
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        self.was_names.then_some("row of names")
    }

    fn header(&self) -> Header {
        Header::Never
    }
}

impl Etw {
    /// Takes the columns of an event from a row of names, as far as they are there.
    #[cold]
    fn learn(&mut self, op: Op, line: &[u8]) {
        let names: Vec<&[u8]> = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
        let place = |name: &str| {
            let index = names.iter().position(|other| other.eq_ignore_ascii_case(name.as_bytes()));
            index.and_then(|index| u32::try_from(index + 1).ok())
        };
        let columns = match op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Flush | Op::Trim => &mut self.flush,
        };
        columns.time = place("TimeStamp").unwrap_or(columns.time);
        columns.disk = place("DiskNum").unwrap_or(columns.disk);
        if op != Op::Flush {
            columns.offset = place("ByteOffset").unwrap_or(columns.offset);
            columns.length = place("IOSize").unwrap_or(columns.length);
        }
    }
}

/// Whether a row holds names: the time is one.
fn names_columns(line: &[u8]) -> bool {
    let mut fields = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    fields.nth(1).is_some_and(|field| field.first().is_some_and(u8::is_ascii_alphabetic))
}

/// Whether a first field is the name of an event, or of a part of the header.
fn is_name(event: &[u8]) -> bool {
    event.first().is_some_and(u8::is_ascii_alphabetic)
        && event.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenOptions;
    use crate::formats::testing::{bad, read_with, record};

    const HEADER: &str = "BeginHeader\n\
        DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   \
        ByteOffset,     \
        IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,        \
        FileObject, FileName\n\
        DiskWrite,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   \
        ByteOffset,     \
        IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,        \
        FileObject, FileName\n\
        CSwitch,  TimeStamp, New Process Name ( PID),    New TID\n\
        EndHeader\nOS Version: 6.0.6001, Trace Size: 655360KB\n";
    const ROWS: &str = "\
        DiskRead,       1508,      sqlservr.exe (1688),       1340, 0xfffffa8011434010, \
        0x1d0200000, \
        0x00010000,        5071,        2, 0x060043,        5071,   Normal,    Original, 0xfff, \
        \"E:\\a, b\"\n\
        CSwitch,       1509,  Idle (   0),          0,   8\n\
        DiskWrite,     2508.5,      sqlservr.exe (1688),       1340, 0xfffffa8011434010, \
        0x200,       8192,        1,        0\n\
        DiskFlush,     2600,      System (   4),       64, 0xfffffa8011434010,  12,        0, \
        0x060043\n";

    #[test]
    fn reads_and_writes_of_a_dump() {
        let expected = [
            record(1_508_000, Op::Read, 0x1_d020_0000, 65_536, 0),
            record(2_508_500, Op::Write, 512, 8192, 1),
            record(2_600_000, Op::Flush, 0, 0, 1),
        ];
        let (records, volumes) = read_with(&OpenOptions::default(), &format!("{HEADER}{ROWS}"));
        assert_eq!((records, volumes), (expected.to_vec(), vec!["2".to_owned(), "0".to_owned()]));
        assert_eq!(read_with(&OpenOptions::default(), ROWS).0, expected, "without a header");
    }

    #[test]
    fn a_header_says_which_column_is_which() {
        let text =
            "DiskRead, TimeStamp, DiskNum, IOSize, ByteOffset\nDiskRead, 7, 3, 0x200, 1024\n";
        let (records, volumes) = read_with(&OpenOptions::default(), text);
        assert_eq!(
            (records, volumes),
            (vec![record(7_000, Op::Read, 1024, 512, 0)], vec!["3".into()])
        );
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |rest: &str| bad("etw", &format!("DiskRead, 5, p ( 4), 1, 0x1, {rest}\n"));
        assert!(
            line("0xg, 0x200, 1, 0").contains("line 1, column 6: found `0xg`, expected an offset")
        );
        assert!(
            line("0x200, -1, 1, 0").contains("column 7: found `-1`, expected a length in bytes")
        );
        assert!(line("0x200, 0, 1, 0").contains("column 7: found `0`, expected a length above 0"));
        assert!(line("0x200, 1, 1, x").contains("column 9: found `x`, expected a disk number"));
        assert!(line("0x200, 1").contains("column 8: found `end of line`"));
        assert!(
            bad("etw", "DiskRead, -5, p, 1, 1, 0, 1, 1, 0\nDiskRead, 0x, p\n").contains("column 2")
        );
        assert!(
            bad("etw", "7, 8\n").contains("column 1: found `7`, expected the name of an event")
        );
    }
}
