//! fio's I/O logs, versions 2 and 3.
//!
//! A first line `fio version N iolog`, then `[timestamp] file action [offset length]`. Units:
//! offset and length bytes; version 3's timestamp microseconds from the start. Version 2 has no
//! times: only `wait` moves its clock. Its offset is microseconds since the wait before (below 100
//! ignored), as the HOWTO says, or, with `wait = since-start`, milliseconds since the start, as
//! `iolog.c` takes it. The calls sync, datasync and sync_file_range are flushes; add, open and
//! close ask nothing. A volume is a file. Logs may follow one another in one file, each with its
//! first line. Source: fio HOWTO, "Trace file format"; `iolog.c`.

use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, Fields, expected};
use crate::reader::declared;
use crate::text::{Header, LineParser, TextReader, VolumeNames, trial, whole_lines};
use crate::units::TimeUnit;
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, Op, choices, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "fio-iolog",
    doc: "fio version 2 or 3 iolog: [microseconds] file action [offset length]; bytes",
    source: "fio HOWTO, trace file format v2 and v3",
    time: Unit::Of(1_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "the version, from the first line",
    to_say: &["wait"],
    options: IologOptions::keys,
    recognise,
    near_miss: NO_LINES,
    open,
};

declare! {
    /// Options of reading.
    pub struct IologOptions {
        /// unit of the timestamps of version 3, and of waits; default: microseconds
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
        /// what `wait` of version 2 counts: `since-last` is the time since the wait before, in
        /// microseconds (fio's HOWTO), `since-start` that since the start, in milliseconds (fio's
        /// code)
        wait: WaitMeaning = WaitMeaning::SinceLast, "";
    }
}

choices! {
    /// What `wait` of version 2 counts.
    pub enum WaitMeaning {
        /// Microseconds since the wait before.
        SinceLast = "since-last",
        /// Milliseconds since the start.
        SinceStart = "since-start",
    }
}

const FIRST_LINE: &str = "`fio version 2 iolog` or `fio version 3 iolog`";
const FILE: &str = "a file name";
const ACTION: &str =
    "read, write, trim, sync, datasync, sync_file_range, wait (version 2), add, open or close";
const WAIT: &str = "a time to wait, below 2^64 nanoseconds in all";
/// Shorter waits are ignored by fio.
const SHORTEST_WAIT_NS: u64 = 100_000;

#[derive(Clone)]
struct Iolog {
    /// 2 or 3.
    version: u8,
    /// Of the timestamps of version 3.
    clock: Clock,
    /// Of the waits of version 2.
    waits: Clock,
    wait: WaitMeaning,
    /// What the waits of version 2 have come to.
    time_ns: u64,
}

impl Iolog {
    fn new(version: u8, own: &IologOptions) -> Iolog {
        let given = ClockOptions { time_unit: own.time_unit, time_shift: own.time_shift };
        let clock = Clock::new(&given, TimeUnit::MICROSECOND, expected::MICROSECONDS);
        let unit = match own.wait {
            WaitMeaning::SinceLast => TimeUnit::MICROSECOND,
            WaitMeaning::SinceStart => TimeUnit::MILLISECOND,
        };
        let waits = Clock::new(&given, unit, WAIT).of_durations();
        Iolog { version, clock, waits, wait: own.wait, time_ns: 0 }
    }
}

fn recognise(head: &[u8]) -> u8 {
    match first_version(head) {
        Some(version) => trial(Iolog::new(version, &IologOptions::default()), head, 100),
        None => 0,
    }
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let Some(version) = first_version(source.head()) else {
        let first = whole_lines(source.head()).next().unwrap_or_default();
        return Err(TraceError::File {
            path: source.path().to_owned(),
            found: format!("`{}` in the first line", crate::reader::shown(first)),
            expected: FIRST_LINE.to_owned(),
        });
    };
    let own: IologOptions = declared(&options.format_options)?;
    Ok(TextReader::boxed(source, Iolog::new(version, &own), options))
}

fn first_version(head: &[u8]) -> Option<u8> {
    whole_lines(head).next().and_then(version)
}

/// The version that a log's first line names.
fn version(line: &[u8]) -> Option<u8> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

impl LineParser for Iolog {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        if line.starts_with(b"fio version ") {
            let next = version(line).ok_or(FieldFault { column: 3, expected: FIRST_LINE })?;
            (self.version, self.time_ns) = (next, 0);
            return Ok(None);
        }
        let mut fields = Fields::<BLANKS>::new(line);
        let mut time_ns = self.time_ns;
        if self.version == 3 {
            time_ns = fields.ticks(&self.clock)?;
        }
        let file = fields.word(FILE)?;
        let file_column = fields.column();
        let op = match fields.word(ACTION)? {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"sync_file_range" => Op::Flush,
            b"add" | b"open" | b"close" => return fields.end().map(|()| None),
            b"wait" if self.version == 2 => return self.wait(fields),
            _ => return Err(fields.fault(ACTION)),
        };
        let first = fields.column() + 1;
        let (mut offset, mut length) = (0, 0);
        if op != Op::Flush || fields.has_more() {
            offset = fields.number(expected::OFFSET_BYTES)?;
            length = fields.number(expected::LENGTH_BYTES)?;
        }
        fields.end()?;
        let extent = Extent {
            offset_column: first,
            offset_unit: 1,
            length_column: first + 1,
            length_unit: 1,
        };
        let (offset_bytes, length_bytes) = extent.bytes(op, offset, length)?;
        let volume = volumes.keyed(file, file_column, str::to_owned)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        if self.version == 3 { 5 } else { 4 }
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }

    /// Version 2 begins at zero: only waits move its clock.
    fn clock(&mut self) -> Option<&mut Clock> {
        (self.version == 3).then_some(&mut self.clock)
    }

    fn header(&self) -> Header {
        Header::Never
    }
}

impl Iolog {
    fn wait(&mut self, mut fields: Fields<'_, BLANKS>) -> Result<Option<Record>, FieldFault> {
        let wait_ns = fields.ticks(&self.waits)?;
        match self.wait {
            WaitMeaning::SinceLast if wait_ns < SHORTEST_WAIT_NS => {}
            WaitMeaning::SinceLast => {
                let time_ns = self.time_ns.checked_add(wait_ns);
                self.time_ns = time_ns.ok_or_else(|| fields.fault(WAIT))?;
            }
            WaitMeaning::SinceStart => self.time_ns = self.time_ns.max(wait_ns),
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, options, read_all, read_with, record};

    #[test]
    fn version_2_tells_time_by_waits() {
        let text = "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb write 4096 512\n\
                    /dev/sdb wait 250 0\n/dev/sdb wait 99 0\nf read 0 4096\n/dev/sdb sync 0 0\n\
                    /dev/sdb datasync\n/dev/sdb trim 8192 4096\n/dev/sdb close\n";
        let (records, volumes) = read_all("fio-iolog", text);
        let expected = [
            record(0, Op::Write, 4096, 512, 0),
            record(250_000, Op::Read, 0, 4096, 1),
            record(250_000, Op::Flush, 0, 0, 0),
            record(250_000, Op::Flush, 0, 0, 0),
            record(250_000, Op::Trim, 8192, 4096, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["/dev/sdb", "f"]);
    }

    #[test]
    fn waits_may_count_from_the_start_as_fios_code_takes_them() {
        let text = "fio version 2 iolog\nf write 0 512\nf wait 5000 0\nf write 512 512\n\
                    f wait 4000 0\nf write 0 512\n";
        let times = |pairs: &[(&str, &str)]| -> Vec<u64> {
            let (records, _) = read_with(&options("fio-iolog", pairs), text);
            records.iter().map(|record| record.time_ns / 1_000).collect()
        };
        assert_eq!(times(&[]), [0, 5_000, 9_000]);
        assert_eq!(times(&[("wait", "since-start")]), [0, 5_000_000, 5_000_000]);
        assert_eq!(times(&[("wait", "since-start"), ("time_unit", "us")]), [0, 5_000, 5_000]);
    }

    #[test]
    fn the_unit_of_times_is_an_option() {
        let text = "fio version 3 iolog\n0 f add\n0 f open\n1000000 f write 0 4096\n\
                    2000000.5 f read 0 4096\n";
        let (records, _) = read_with(&options("fio-iolog", &[("time_unit", "ns")]), text);
        let times: Vec<u64> = records.iter().map(|record| record.time_ns).collect();
        assert_eq!(times, [1_000_000, 2_000_001]);
        let (records, _) = read_all("fio-iolog", &text.replace("1000000 f w", "-7 f w"));
        assert_eq!(records[0].time_ns, 0, "shifted");
        let source = ByteSource::from_bytes("log", b"fio version 2 iolog\nf read 0 512\n").unwrap();
        let reader = open(source, &OpenOptions::default()).unwrap();
        assert!(reader.notes().is_empty(), "version 2 has no times before zero");
    }

    #[test]
    fn version_3_has_microseconds() {
        let text = "fio version 3 iolog\r\n0 /dev/sdb add\r\n15 /dev/sdb write 4096 512\r\n\
                    20 /dev/sdb sync 0 0\r\n";
        let (records, _) = read_all("fio-iolog", text);
        let expected =
            [record(15_000, Op::Write, 4096, 512, 0), record(20_000, Op::Flush, 0, 0, 0)];
        assert_eq!(records, expected);
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |rest: &str| bad("fio-iolog", &format!("fio version 2 iolog\n{rest}\n"));
        assert!(line("f copy 0 512").contains("line 2, column 2: found `copy`, expected read"));
        assert!(line("f read 0 0").contains("column 4: found `0`, expected a length above 0"));
        assert!(line("f read -1 512").contains("column 3: found `-1`"));
        assert!(line("f write 0").contains("column 4: found `end of line`"));
        assert!(bad("fio-iolog", "fio version 1 iolog\n").contains("in the first line, expected"));
        let error = bad("fio-iolog", "fio version 3 iolog\n1 f wait 100 0\n");
        assert!(error.contains("column 3: found `wait`"), "{error}");
    }
}
