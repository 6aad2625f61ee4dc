//! Block events of Linux as ftrace, trace-cmd and perf print them.
//!
//! Lines of `trace`, `trace_pipe`, `trace-cmd report` and `perf script`: `TASK-PID [CPU] FLAGS
//! TIME: EVENT: maj,min RWBS [BYTES (COMMAND)] SECTOR + COUNT ...`. Units: seconds with a fraction,
//! sectors of 512 B. A volume is a device, named `maj,min`. One request passes many events, so that
//! one kind (option `event`) is read; all other lines of these tools (other events, stacks,
//! comments) ask nothing. RWBS: see [`rwbs`]. Source: Linux `include/trace/events/block.h`,
//! `kernel/trace/trace_output.c`; perf-script(1), trace-cmd-report(1).

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, SECTOR_BYTES, device_number, expected, whole};
use crate::rwbs::{self, RWBS};
use crate::text::{Header, LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, Op, choices, declare};
use memchr::memmem;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "ftrace",
    doc: "block events of ftrace, trace-cmd, perf script: seconds; sectors of 512 B; one event \
          kind",
    source: "Linux trace/events/block.h; perf-script(1), trace-cmd-report(1)",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "which of the three tools wrote it; process names with blanks",
    to_say: &["event"],
    options: FtraceOptions::keys,
    recognise,
    near_miss: |head| match recognise(head) {
        0 => None,
        _ => near_miss(Ftrace::new(&FtraceOptions::default()), head),
    },
    open: |source, options| TextReader::opened(source, options, Ftrace::new),
};

declare! {
    /// Options of reading.
    pub struct FtraceOptions {
        /// event that counts as a request: issued to the device, completed, queued (asked),
        /// inserted
        event: FtraceEvent = FtraceEvent::Issue, "";
        /// unit of times; default: seconds
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
    }
}

choices! {
    /// Events that carry `sector + count`.
    pub enum FtraceEvent {
        /// Issued to the device.
        Issue = "block_rq_issue",
        /// Completed by the device.
        Complete = "block_rq_complete",
        /// What was asked.
        Queue = "block_bio_queue",
        /// Inserted into the scheduler.
        Insert = "block_rq_insert",
        /// Completed, seen from what was asked.
        BioComplete = "block_bio_complete",
    }
}

const LINE: &str = "a line of ftrace, trace-cmd or perf script: `TASK-PID [CPU] TIME: EVENT: ...`";
const TIME: &str = "seconds and a colon, a decimal number from 0 below 2^64 nanoseconds";
const DEVICE: &str = "a device as `major,minor`";
const SECTOR: &str = "a first sector and `+ count`";

#[derive(Clone)]
struct Ftrace {
    /// Its name and a colon.
    event: Vec<u8>,
    clock: Clock,
    passed_over: Option<&'static str>,
}

impl Ftrace {
    fn new(own: &FtraceOptions) -> Ftrace {
        let given = ClockOptions { time_unit: own.time_unit, time_shift: own.time_shift };
        let clock = Clock::new(&given, TimeUnit::SECOND, TIME);
        Ftrace { event: format!("{}:", own.event.word()).into_bytes(), clock, passed_over: None }
    }
}

/// Events of all kinds are told by one that is a block event.
fn recognise(head: &[u8]) -> u8 {
    let is_there =
        |event: &FtraceEvent| memmem::find(head, format!("{}:", event.word()).as_bytes()).is_some();
    match FtraceEvent::ALL.iter().any(is_there) {
        true => trial(Ftrace::new(&FtraceOptions::default()), head, 95),
        false => 0,
    }
}

/// A part of a line, which knows where it stands.
#[derive(Clone, Copy)]
struct Part<'a> {
    line: &'a [u8],
    /// Bytes of the line before what is left.
    start: usize,
}

impl<'a> Part<'a> {
    /// The next word, empty at the end of the line.
    #[inline]
    fn word(&mut self) -> &'a [u8] {
        let rest = &self.line[self.start..];
        let begin = rest.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(rest.len());
        let length = rest[begin..].iter().position(u8::is_ascii_whitespace);
        let end = length.map_or(rest.len(), |length| begin + length);
        self.start += end;
        &rest[begin..end]
    }

    /// The refusal of the word that was read last.
    #[cold]
    fn fault(&self, expected: &'static str) -> FieldFault {
        let words = self.line[..self.start].split(u8::is_ascii_whitespace);
        let count = words.filter(|word| !word.is_empty()).count().max(1);
        FieldFault { column: u32::try_from(count).unwrap_or(u32::MAX), expected }
    }
}

impl LineParser for Ftrace {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let Some(start) = event_at(line, &self.event) else {
            self.passed_over = other_line(line)?;
            return Ok(None);
        };
        let time_ns = self.time_ns(line, start)?;
        let mut part = Part { line, start: start + self.event.len() };
        let word = part.word();
        let device = device_number(word).ok_or_else(|| part.fault(DEVICE))?;
        let letters = part.word();
        let request = rwbs::request(letters).ok_or_else(|| part.fault(RWBS))?;
        let mut sector = part;
        if !find_sector(&mut sector)? {
            self.passed_over = Some("command that passes the block layer");
            return Ok(None);
        }
        let mut count = sector;
        let first = whole(sector.word()).ok_or_else(|| sector.fault(SECTOR))?;
        count = Part { start: sector.start, ..count };
        count.word();
        let length = whole(count.word()).ok_or_else(|| count.fault(expected::LENGTH_SECTORS))?;
        let op = match request.data {
            Some(op) if length > 0 || !request.flush => op,
            _ if request.flush => Op::Flush,
            _ => {
                self.passed_over = request.is_of_zone.then_some("zone command");
                return Ok(None);
            }
        };
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, first, length).map_err(|fault| {
            let part = if fault.column == EXTENT.offset_column { sector } else { count };
            part.fault(fault.expected)
        })?;
        let name = |_| format!("{},{}", device >> 32, device & 0xffff_ffff);
        let volume = volumes.numbered_as(device, 1, name)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        EXTENT.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        self.passed_over
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }

    fn header(&self) -> Header {
        Header::Never
    }
}

/// The columns of a line of ftrace whose task is one word.
const EXTENT: Extent = Extent {
    offset_column: 9,
    offset_unit: SECTOR_BYTES,
    length_column: 11,
    length_unit: SECTOR_BYTES,
};

impl Ftrace {
    /// The time that stands before the event at `start`; perf may put a count between them.
    #[inline]
    fn time_ns(&self, line: &[u8], start: usize) -> Result<u64, FieldFault> {
        let before = &line[..start];
        let before = before.strip_suffix(b"block:").unwrap_or(before).trim_ascii_end();
        let last = |text: &'_ [u8]| {
            text.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1)
        };
        let mut end = before.len();
        let mut begin = last(before);
        if !before[begin..].ends_with(b":") && whole(&before[begin..]).is_some() {
            end = before[..begin].trim_ascii_end().len();
            begin = last(&before[..end]);
        }
        let part = Part { line, start: end };
        let time = before[begin..end].strip_suffix(b":").ok_or_else(|| part.fault(TIME))?;
        self.clock.ns(time).map_err(|expected| part.fault(expected))
    }
}

/// Where `event` (its name and a colon) begins in `line`: behind a blank or `block:`.
#[inline]
fn event_at(line: &[u8], event: &[u8]) -> Option<usize> {
    memmem::find_iter(line, event)
        .find(|start| line[..*start].last().is_none_or(|before| b" \t:".contains(before)))
}

/// Moves `part` to the first sector: behind the bytes and the command of a request, if any. False
/// for one that passes a command of its own.
#[inline]
fn find_sector(part: &mut Part<'_>) -> Result<bool, FieldFault> {
    loop {
        let before = *part;
        let word = part.word();
        if word.is_empty() {
            return Err(FieldFault { column: part.fault(SECTOR).column + 1, expected: SECTOR });
        }
        if word.starts_with(b"(") {
            let open = part.start - word.len();
            let rest = &part.line[open + 1..];
            let close = rest.iter().position(|byte| *byte == b')');
            let close = close.ok_or_else(|| part.fault(SECTOR))?;
            if !rest[..close].trim_ascii().is_empty() {
                return Ok(false);
            }
            part.start = open + close + 2;
            continue;
        }
        if word.starts_with(b"[") || whole(word).is_none() {
            return Err(part.fault(SECTOR));
        }
        if part.clone().word() == b"+" {
            *part = before;
            return Ok(true);
        }
    }
}

/// What a line is that is not of the event wanted. Errors: none of these tools.
#[cold]
fn other_line(line: &[u8]) -> Result<Option<&'static str>, FieldFault> {
    let text = line.trim_ascii();
    if text.starts_with(b"#") {
        // A comment, which is counted as in all text formats.
        return Err(FieldFault { column: 1, expected: LINE });
    }
    if text.windows(6).any(|part| part == b"[LOST ") || text.starts_with(b"LOST ") {
        return Ok(Some("line that says that events were lost"));
    }
    let is_event = memmem::find(text, b": ").is_some() || text.ends_with(b":");
    let is_stack = text.starts_with(b"=>")
        || text
            .split(u8::is_ascii_whitespace)
            .next()
            .is_some_and(|word| word.len() >= 8 && word.iter().all(u8::is_ascii_hexdigit));
    let is_said = [&b"cpus="[..], b"CPU ", b"version = "].iter().any(|b| text.starts_with(b));
    match is_event || is_stack || is_said {
        true => Ok(None),
        false => Err(FieldFault { column: 1, expected: LINE }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenOptions;
    use crate::formats::testing::{bad, bad_with, options, read_with, record};

    const FTRACE: &str = "# tracer: nop\n#\n\
        \x20          fio-1234    [003] ..... 1000.000001: block_rq_issue: 259,0 WS 4096 () 2048 \
        + 8 [fio]\n\
        \x20         <idle>-0     [003] d.h.. 1000.000101: block_rq_complete: 259,0 WS () 2048 + \
        8 [0]\n\
        CPU:3 [LOST 23 EVENTS]\n\
        \x20my app: x-77 [000] d..1. 1000.5: block_rq_issue: 8,16 RA 4096 () 16 + 8 none,0,0 [my \
        (a)]\n\
        \x20 x-7 [000] .... 1000.6: block_rq_issue: 8,16 FF 0 () 0 + 0 [x]\n\
        \x20 x-7 [000] .... 1000.7: block_rq_issue: 8,16 N 36 (12 00 00 00 24 00) 0 + 0 [x]\n\
        \x20 x-7 [000] .... 1000.8: sched_switch: prev_comm=block_rq_issue: x\n";

    #[test]
    fn events_of_ftrace_and_trace_cmd() {
        let (records, volumes) = read_with(&OpenOptions::default(), FTRACE);
        let expected = [
            record(1_000_000_001_000, Op::Write, 1_048_576, 4096, 0),
            record(1_000_500_000_000, Op::Read, 8192, 4096, 1),
            record(1_000_600_000_000, Op::Flush, 0, 0, 1),
        ];
        assert_eq!(records, expected, "recognised");
        assert_eq!(volumes, ["259,0", "8,16"]);
        let complete = options("ftrace", &[("event", "block_rq_complete")]);
        let (records, _) = read_with(&complete, FTRACE);
        assert_eq!(records, [record(1_000_000_101_000, Op::Write, 1_048_576, 4096, 0)]);
        let none = bad_with(&options("ftrace", &[("event", "block_bio_queue")]), FTRACE);
        assert!(none.contains("no request (0 bad and"), "{none}");
    }

    #[test]
    fn events_of_perf_script() {
        let text = "# ========\nmysqld 1965 [001] 160501.158573: block:block_rq_issue: 259,0 WS \
        12288 () \
                    10329704 + 24 [mysqld]\n\
                    ffffffffb12d5040 blk_mq_start_request+0xa0 ([kernel.kallsyms])\n\n\
                    dd  7 [001] 160501.158574123:          1 block:block_bio_queue: 8,0 W 2048 + \
                    8 [dd]\n\
                    my prog  7 [001]  2.5:  1  block:block_rq_issue: 8,0 R 0 + 8 [my prog]\n";
        let (records, _) = read_with(&OpenOptions::default(), text);
        let expected = [
            record(160_501_158_573_000, Op::Write, 10_329_704 * 512, 12_288, 0),
            record(2_500_000_000, Op::Read, 0, 4096, 1),
        ];
        assert_eq!(records, expected, "recognised");
        let (records, _) = read_with(&options("ftrace", &[("event", "block_bio_queue")]), text);
        assert_eq!(records, [record(160_501_158_574_123, Op::Write, 1_048_576, 4096, 0)]);
    }

    #[test]
    fn bad_lines_are_named() {
        let line =
            |rest: &str| bad("ftrace", &format!("x-7 [000] .... 1.5: block_rq_issue: {rest}\n"));
        assert!(
            line("8 R 4096 () 8 + 8 [x]").contains("line 1, column 6: found `8`, expected a dev")
        );
        assert!(line("8,0 q 4096 () 8 + 8 [x]").contains("column 7: found `q`, expected letters"));
        assert!(line("8,0 R 4096 () x + 8 [x]").contains("column 10: found `x`, expected a first"));
        assert!(
            line("8,0 R 4096 () 8 + x [x]").contains("column 12: found `x`, expected a length")
        );
        assert!(
            line("8,0 R 8 + 0 [x]").contains("column 10: found `0`, expected a length above 0")
        );
        assert!(
            line("8,0 R 4096").contains("column 9: found `end of line`"),
            "{}",
            line("8,0 R 4096")
        );
        let time = bad("ftrace", "x-7 [000] 1.5 block_rq_issue: 8,0 R 8 + 8 [x]\n");
        assert!(time.contains("column 3: found `1.5`, expected seconds and a colon"), "{time}");
        assert!(
            bad("ftrace", "garbage\n").contains("column 1: found `garbage`, expected a line of")
        );
    }
}
