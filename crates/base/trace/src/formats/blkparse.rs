//! blkparse's default text.
//!
//! Lines `maj,min cpu seq time pid action RWBS sector + count [process]`. Units: seconds with
//! nanoseconds, sectors of 512 B. A volume is a device, named `maj,min`. One request passes many
//! events, so that one kind (option `event`) is read: Q is what was asked, D what reached the
//! device, C what it completed. Lines of other kinds, messages, passthrough commands and what
//! blkparse prints around the events (its input files before them, its totals after them) ask
//! nothing. RWBS: see [`rwbs`]; F alone is a flush; with data the request counts as the write that
//! it is. Source: blkparse(1), `blkparse.c` and `blkparse_fmt.c` of blktrace.

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{
    BLANKS, Extent, FieldFault, Fields, SECTOR_BYTES, device_number, expected, whole,
};

use crate::rwbs::{self, RWBS, Request};
use crate::text::{Header, LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, Op, choices, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "blkparse",
    doc: "maj,min cpu seq time pid action RWBS sector + count: seconds; sectors; one event kind",
    source: "blkparse(1) of blktrace",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "lines of the tool around the events, which are counted",
    to_say: &["event"],
    options: BlkparseOptions::keys,
    recognise: |head| trial(Blkparse::new(&BlkparseOptions::default()), head, 95),
    near_miss: |head| near_miss(Blkparse::new(&BlkparseOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Blkparse::new),
};

declare! {
    /// Options of reading.
    pub struct BlkparseOptions {
        /// kind of event that counts as a request: Q (asked), D (issued), C (completed)
        event: BlkparseEvent = BlkparseEvent::Queued, "";
        /// unit of times; default: seconds
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
    }
}

choices! {
    /// Events that carry `sector + count`.
    pub enum BlkparseEvent {
        /// What was asked.
        Queued = "Q",
        /// A request structure was taken.
        Taken = "G",
        /// Inserted into the scheduler.
        Inserted = "I",
        /// Merged behind a request.
        Merged = "M",
        /// Merged before a request.
        MergedBefore = "F",
        /// Issued to the device.
        Issued = "D",
        /// Completed by the device.
        Completed = "C",
        /// Given back to the scheduler.
        Requeued = "R",
        /// Mapped to another device.
        Remapped = "A",
        /// Copied to memory that the device reaches.
        Bounced = "B",
    }
}

const DEVICE: &str = "a device as `major,minor`";
const CPU: &str = "a processor number";
const SEQUENCE: &str = "a sequence number";
const PID: &str = "a process number";
const ACTION: &str = "an action of one or two letters";
const SECTOR: &str = "a first sector and `+ count`";
const EXTENT: Extent = Extent {
    offset_column: 8,
    offset_unit: SECTOR_BYTES,
    length_column: 10,
    length_unit: SECTOR_BYTES,
};

#[derive(Clone)]
struct Blkparse {
    event: &'static [u8],
    clock: Clock,
    /// The totals that blkparse writes after the events have begun.
    in_summary: bool,
    /// Whether the last line was about a zone.
    was_of_zone: bool,
}

impl Blkparse {
    fn new(own: &BlkparseOptions) -> Blkparse {
        let given = ClockOptions { time_unit: own.time_unit, time_shift: own.time_shift };
        let clock = Clock::new(&given, TimeUnit::SECOND, expected::SECONDS);
        let event = own.event.word().as_bytes();
        Blkparse { event, clock, in_summary: false, was_of_zone: false }
    }
}

impl LineParser for Blkparse {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<BLANKS>::new(line);
        let Some(device) = device_number(fields.word(DEVICE)?) else {
            let is_summary = self.in_summary || begins_summary(line);
            if !is_summary && !names_input(line) {
                return Err(fields.fault(DEVICE));
            }
            (self.in_summary, self.was_of_zone) = (is_summary, false);
            return Ok(None);
        };
        fields.number(CPU)?;
        fields.number(SEQUENCE)?;
        let time_ns = fields.time(&self.clock)?;
        fields.number(PID)?;
        let action = fields.word(ACTION)?;
        if action.len() > 2 || !action.iter().all(u8::is_ascii_alphabetic) {
            return Err(fields.fault(ACTION));
        }
        if action != self.event {
            self.was_of_zone = false;
            return Ok(None);
        }
        let letters = fields.word(RWBS)?;
        let Some(kind) = rwbs::request(letters) else {
            return Err(fields.fault(RWBS));
        };
        let Some((op, offset, length)) = extent(kind, &mut fields)? else {
            self.was_of_zone = kind.is_of_zone;
            return Ok(None);
        };
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let name = |_| format!("{},{}", device >> 32, device & 0xffff_ffff);
        let volume = volumes.numbered_as(device, 1, name)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        EXTENT.length_column
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        self.was_of_zone.then_some("zone command")
    }

    fn header(&self) -> Header {
        Header::Never
    }
}

/// The offset and length in sectors, with what is asked; nothing for what asks nothing.
#[inline]
fn extent(
    kind: Request,
    fields: &mut Fields<'_, BLANKS>,
) -> Result<Option<(Op, u64, u64)>, FieldFault> {
    let without_data = if kind.flush { Some((Op::Flush, 0, 0)) } else { None };
    let Some(sector) = fields.next().filter(|word| !word.starts_with(b"[")) else {
        return match (kind.data, without_data) {
            (None | Some(Op::Write), without_data) => Ok(without_data),
            _ => Err(FieldFault { column: 8, expected: SECTOR }),
        };
    };
    let Some(offset) = whole(sector) else {
        return Err(fields.fault(SECTOR));
    };
    match fields.next() {
        Some(b"+") => {}
        Some(word) if word.starts_with(b"(") => return Ok(None),
        _ => return Err(FieldFault { column: 9, expected: SECTOR }),
    }
    let length = fields.number(expected::LENGTH_SECTORS)?;
    match kind.data {
        Some(op) if length > 0 || !kind.flush => Ok(Some((op, offset, length))),
        _ => Ok(without_data),
    }
}

/// Whether blkparse names one of its input files here: `Input file sda.blktrace.0 added`.
fn names_input(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"Input file ") && line.ends_with(b" added")
}

/// Whether blkparse's totals begin here: `CPU0 (sda):` or `Total (sda):`.
fn begins_summary(line: &[u8]) -> bool {
    let is_total = line.starts_with(b"Total (");
    let cpu = line.strip_prefix(b"CPU").and_then(|rest| rest.first());
    (is_total || cpu.is_some_and(u8::is_ascii_digit)) && line.ends_with(b":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, bad_with, options, read_all, read_with, record};

    const TEXT: &str = "\
  8,16   5        1     0.000000000 18615  A   R 4446456 + 256 <- (8,17) 32\n\
  8,16   5        2     0.000001850 18615  Q   R 1444645666 + 256 [java]\n\
  8,16   5        0     0.000012990     0  m   N cfq18615S / insert_request\n\
  8,16   5        4     0.000008750 18615  P   N [java]\n\
259,1    2        3     1.000000517 17022  Q WFS 8 + 16 [x]\n\
259,1    2        5     1.000000600 17022  Q FWS [jbd2/sda]\n\
259,1    2        6     1.000000700 17022  Q  DS 2048 + 4194304 [fstrim]\n\
259,1    2        7     1.000000800 17022  Q FWS 0 + 0 [jbd2/sda]\n\
259,1    2        8     1.000000900 17022  Q   R 36 (12 00 00 00 24 00) [hdparm]\n\
259,1    2        9     2.000000000     0  C   W 8 + 16 [0]\n\
CPU0 (sda):\n Reads Queued:          12,     1416KiB\n\nThroughput (R/W): 1KiB/s / 2KiB/s\n";

    #[test]
    fn what_was_asked_is_read() {
        let (records, volumes) = read_all("blkparse", TEXT);
        let expected = [
            record(1_850, Op::Read, 1_444_645_666 * 512, 131_072, 0),
            record(1_000_000_517, Op::Write, 4096, 8192, 1),
            record(1_000_000_600, Op::Flush, 0, 0, 1),
            record(1_000_000_700, Op::Trim, 1_048_576, 2 << 30, 1),
            record(1_000_000_800, Op::Flush, 0, 0, 1),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["8,16", "259,1"]);
    }

    #[test]
    fn the_event_is_an_option() {
        let (records, _) = read_with(&options("blkparse", &[("event", "C")]), TEXT);
        assert_eq!(records, [record(2_000_000_000, Op::Write, 4096, 8192, 0)]);
        let refused = bad_with(&options("blkparse", &[("event", "X")]), TEXT);
        assert!(refused.starts_with("`event`: found `X`, expected one of Q"), "{refused}");
        let refused = bad_with(&options("blkparse", &[("event", "D")]), TEXT);
        assert!(refused.contains("no request (0 bad and 13 irrelevant"), "{refused}");
        assert!(refused.contains("in format blkparse with event=D"), "{refused}");
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |rest: &str| bad("blkparse", &format!("8,0 1 2 0.5 7 {rest}\n"));
        assert!(line("Q X 8 + 8 [x]").contains("line 1, column 7: found `X`"));
        assert!(line("Q R [x]").contains("column 8: found `[x]`, expected a first sector"));
        assert!(line("Q R 8 - 8 [x]").contains("column 9: found `-`"));
        assert!(line("Q R 8 + 0 [x]").contains("column 10: found `0`"));
        assert!(line("Q R 8 +").contains("column 10: found `end of line`"));
        assert!(line("Quit R 8 + 8").contains("column 6: found `Quit`"));
        assert!(bad("blkparse", "8 0 1 2 0.5 7 Q R 8 + 8\n").contains("column 1: found `8`"));
    }
}
