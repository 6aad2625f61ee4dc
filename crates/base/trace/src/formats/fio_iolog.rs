//! fio's I/O logs, versions 2 and 3.
//!
//! For: a first line `fio version N iolog`, then `[timestamp] file action [offset length]`. Must
//! never know: other formats. Units: offset and length bytes; version 3's timestamp microseconds
//! from the start. Version 2 has no times: only `wait` moves its clock, whose offset is
//! microseconds since the wait before (below 100 ignored). The calls sync, datasync and
//! sync_file_range are flushes; add, open and close ask nothing. A volume is a file. Logs may
//! follow one another in one file, each with its first line. Source: fio HOWTO, "Trace file
//! format"; `iolog.c`.

use super::entry::TraceFormat;
use crate::fields::{BLANKS, Extent, FieldFault, Fields, MICROSECOND_NS, expected};
use crate::text::{LineParser, TextReader, VolumeNames, trial, whole_lines};
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::Op;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "fio-iolog",
    doc: "fio version 2 or 3 iolog: [microseconds] file action [offset length]; bytes",
    source: "fio HOWTO, trace file format v2 and v3",
    options: Vec::new,
    recognise,
    open,
};

const FIRST_LINE: &str = "`fio version 2 iolog` or `fio version 3 iolog`";
const FILE: &str = "a file name";
const ACTION: &str =
    "read, write, trim, sync, datasync, sync_file_range, wait (version 2), add, open or close";
const WAIT: &str = "microseconds to wait, below 2^64 nanoseconds in all";
/// Shorter waits are ignored by fio.
const SHORTEST_WAIT_US: u64 = 100;

struct Iolog {
    /// 2 or 3.
    version: u8,
    /// The clock of version 2.
    time_ns: u64,
}

fn recognise(head: &[u8]) -> u8 {
    match first_version(head) {
        Some(version) => trial(Iolog { version, time_ns: 0 }, head, 100),
        None => 0,
    }
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let Some(version) = first_version(source.head()) else {
        let first = whole_lines(source.head()).next().unwrap_or_default();
        return Err(TraceError::File {
            path: source.path().to_owned(),
            found: format!("`{}` in the first line", crate::options::shown(first)),
            expected: FIRST_LINE.to_owned(),
        });
    };
    Ok(TextReader::boxed(source, Iolog { version, time_ns: 0 }, options))
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
            time_ns = fields.ticks_ns(MICROSECOND_NS, expected::MICROSECONDS)?;
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

    fn may_have_header(&self) -> bool {
        false
    }
}

impl Iolog {
    fn wait(&mut self, mut fields: Fields<'_, BLANKS>) -> Result<Option<Record>, FieldFault> {
        let microseconds = fields.number(WAIT)?;
        if microseconds >= SHORTEST_WAIT_US {
            let waited = microseconds.checked_mul(MICROSECOND_NS);
            let time_ns = waited.and_then(|waited| self.time_ns.checked_add(waited));
            self.time_ns = time_ns.ok_or_else(|| fields.fault(WAIT))?;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};

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
