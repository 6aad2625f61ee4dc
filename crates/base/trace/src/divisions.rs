//! Divisions of a cache among tenants, recorded beside a trace, so that a replay divides as a live
//! server did.
//!
//! A file is text: what it was recorded from, then a line per division that changed a quota, then
//! how many there were, so that a file that was cut short is known. The first line is the division
//! at time 0. A division that is read fits the file's own head: times rise and are multiples of the
//! interval, behind the origin, each tenant has a quota, and quotas fit into the cache.

use crate::write::atomic::{AtomicFile, remove};
use crate::write::{TraceWriter, WriteSummary};
use crate::{TraceError, UnreadableRecord};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::str::{FromStr, Lines};

/// How the first line begins, before the version.
const MAGIC: &str = "cachewright divisions";
/// The version of the format. The first one had no origin, which was 0.
const VERSION: u32 = 2;

/// What divisions were recorded from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DivisionsHead {
    /// The name of the partitioner.
    pub partition: String,
    /// Time between two divisions.
    pub interval_ns: u64,
    /// The time of the server's clock of decisions at which the recording has its time 0. Intervals
    /// end at multiples of their length on that clock.
    pub origin_ns: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks of the cache.
    pub capacity_blocks: u32,
    /// The names of the tenants, in the order of quotas.
    pub tenants: Vec<String>,
}

/// A division.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DivisionRow {
    /// The end of the interval behind which it holds.
    pub time_ns: u64,
    /// The blocks of each tenant.
    pub quotas: Vec<u32>,
}

/// Divisions in the order of time, from time 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Divisions {
    /// What they were recorded from.
    pub head: DivisionsHead,
    /// Those that changed a quota.
    pub rows: Vec<DivisionRow>,
}

impl Divisions {
    /// Writes a file. Errors: the operating system's.
    pub fn write(&self, path: &Path) -> Result<(), TraceError> {
        let mut writer = DivisionsWriter::create(path, &self.head)?;
        self.rows.iter().try_for_each(|row| writer.write(row))?;
        writer.finish()
    }
}

/// The file of divisions beside a trace.
pub fn divisions_path(trace: &Path) -> PathBuf {
    let mut path = OsString::from(trace);
    path.push(".divisions");
    PathBuf::from(path)
}

/// Removes the divisions beside a recording, and what killed writers left of them; returns whether
/// there were some. Errors: the operating system's.
pub fn remove_divisions(trace: &Path) -> Result<bool, TraceError> {
    remove(&divisions_path(trace))
}

/// A file of divisions being written. Dropped before [`finish`](Self::finish), it leaves no file.
pub struct DivisionsWriter {
    file: AtomicFile,
    path: PathBuf,
    rows: u64,
}

impl DivisionsWriter {
    /// Begins a file. Errors: the operating system's.
    pub fn create(path: &Path, head: &DivisionsHead) -> Result<DivisionsWriter, TraceError> {
        let file = AtomicFile::create(path)?;
        let mut writer = DivisionsWriter { file, path: path.to_owned(), rows: 0 };
        let DivisionsHead { partition, interval_ns, origin_ns, .. } = head;
        let DivisionsHead { block_bytes, capacity_blocks, tenants, .. } = head;
        let mut text = format!(
            "{MAGIC} {VERSION}\npartition {partition}\ninterval_ns {interval_ns}\norigin_ns \
             {origin_ns}\nblock_bytes {block_bytes}\ncapacity_blocks {capacity_blocks}\n"
        );
        tenants.iter().for_each(|tenant| push(&mut text, format_args!("tenant {tenant}\n")));
        writer.append(&text)?;
        Ok(writer)
    }

    /// Appends a division. Errors: the operating system's.
    pub fn write(&mut self, row: &DivisionRow) -> Result<(), TraceError> {
        let mut text = row.time_ns.to_string();
        row.quotas.iter().for_each(|quota| push(&mut text, format_args!(" {quota}")));
        text.push('\n');
        self.rows += 1;
        self.append(&text)
    }

    /// Brings what was written so far to the device, so that
    /// [`recover_abandoned`](crate::recover_abandoned) finds it beside its trace if the process is
    /// killed. Errors: the operating system's.
    pub fn keep(&mut self) -> Result<(), TraceError> {
        let kept = self.file.sync();
        kept.map_err(|source| TraceError::Io { path: self.path.clone(), source })
    }

    /// Completes the file and puts it in place. Errors: the operating system's.
    pub fn finish(mut self) -> Result<(), TraceError> {
        let end = format!("end {}\n", self.rows);
        self.append(&end)?;
        self.file.commit()
    }

    /// Completes the file, and behind it the trace beside which it stands: there is no trace
    /// without it. Errors: the operating system's, the trace's; then there is neither.
    pub fn finish_before(self, trace: Box<dyn TraceWriter>) -> Result<WriteSummary, TraceError> {
        let path = self.path.clone();
        self.finish()?;
        let written = trace.finish();
        if written.is_err() {
            // The first error is the one to report.
            let _ = std::fs::remove_file(path);
        }
        written
    }

    fn append(&mut self, text: &str) -> Result<(), TraceError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| TraceError::Io { path: self.path.clone(), source })
    }
}

/// Appends to a text, which cannot fail.
fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}

/// The longest file that is read.
const MAX_BYTES: u64 = 1 << 30;
/// Characters of a line that an error shows.
const SHOWN: usize = 80;

impl Divisions {
    /// Reads a file. Errors: the operating system's; a line that is not as expected.
    pub fn read(path: &Path) -> Result<Divisions, TraceError> {
        let fail = |source| TraceError::Io { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(fail)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
        let refuse = |found: &str| TraceError::File {
            path: path.to_owned(),
            found: found.to_owned(),
            expected: "divisions that a live server has recorded".to_owned(),
        };
        if bytes.len() as u64 > MAX_BYTES {
            return Err(refuse("more than 1GiB"));
        }
        let text = String::from_utf8(bytes).map_err(|_| refuse("what is no text"))?;
        if text.is_empty() {
            return Err(refuse("an empty file"));
        }
        Divisions::parse(&text)
            .map_err(|record| TraceError::Record { path: path.to_owned(), record })
    }

    /// Reads what is whole at the beginning of a file that a killed writer left: nothing without
    /// the division at time 0. `bytes` may end anywhere, and hold anything behind that.
    pub fn parse_cut(bytes: &[u8]) -> Option<Divisions> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
        };
        let (text, _) = text.rsplit_once('\n')?;
        let mut lines = LineCursor { lines: text.lines(), line: "", number: 0 };
        let head = head(&mut lines).ok()?;
        let mut rows: Vec<DivisionRow> = Vec::new();
        while let Ok(row) = row(&lines, &head, rows.last()) {
            rows.push(row);
            lines.advance();
        }
        (!rows.is_empty()).then_some(Divisions { head, rows })
    }

    /// Reads a file's text. Errors: a line that is not as expected.
    pub fn parse(text: &str) -> Result<Divisions, UnreadableRecord> {
        let mut lines = LineCursor { lines: text.lines(), line: "", number: 0 };
        let head = head(&mut lines)?;
        let mut rows: Vec<DivisionRow> = Vec::new();
        while lines.key() != "end" {
            let row = row(&lines, &head, rows.last())?;
            rows.push(row);
            lines.advance();
        }
        if rows.is_empty() {
            return Err(lines.refuse("the division at time 0"));
        }
        if lines.value::<usize>("end")? != rows.len() {
            return Err(
                lines.refuse(&format!("`end {}`: so many divisions stand here", rows.len()))
            );
        }
        lines.advance();
        if lines.is_over() { Ok(Divisions { head, rows }) } else { Err(lines.refuse("no more")) }
    }
}

/// The line that is read.
struct LineCursor<'a> {
    lines: Lines<'a>,
    line: &'a str,
    /// From 1.
    number: u64,
}

impl<'a> LineCursor<'a> {
    /// Goes to the next line; behind the last one there is an empty one.
    fn advance(&mut self) {
        self.line = self.lines.next().unwrap_or_default();
        self.number += 1;
    }

    fn is_over(&self) -> bool {
        self.line.is_empty() && self.lines.clone().next().is_none()
    }

    /// The first word.
    fn key(&self) -> &'a str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// What stands behind a key. Errors: another key.
    fn text(&self, key: &str) -> Result<&'a str, UnreadableRecord> {
        let value = self.line.strip_prefix(key).and_then(|rest| rest.strip_prefix(' '));
        value.ok_or_else(|| self.refuse(&format!("`{key}` and its value")))
    }

    /// The number behind a key. Errors: another key, no number.
    fn value<T: FromStr>(&self, key: &str) -> Result<T, UnreadableRecord> {
        self.text(key)?.parse().map_err(|_| self.refuse(&format!("a number behind `{key}`")))
    }

    /// The same of the line behind which the reader goes on.
    fn take<T: FromStr>(&mut self, key: &str) -> Result<T, UnreadableRecord> {
        let value = self.value(key)?;
        self.advance();
        Ok(value)
    }

    /// A refusal of the line.
    fn refuse(&self, expected: &str) -> UnreadableRecord {
        UnreadableRecord {
            position: self.number,
            is_line: true,
            column: 1,
            found: self.line.chars().take(SHOWN).collect(),
            expected: expected.to_owned(),
        }
    }
}

fn head(lines: &mut LineCursor<'_>) -> Result<DivisionsHead, UnreadableRecord> {
    lines.advance();
    let version = lines.value::<u32>(MAGIC)?;
    if !(1..=VERSION).contains(&version) {
        return Err(lines.refuse(&format!("version 1 to {VERSION}")));
    }
    lines.advance();
    let partition = lines.text("partition")?.to_owned();
    lines.advance();
    let interval_ns = lines.value("interval_ns")?;
    if interval_ns == 0 {
        return Err(lines.refuse("an interval above 0"));
    }
    lines.advance();
    let origin_ns = if version == 1 { 0 } else { lines.take("origin_ns")? };
    let (block_bytes, capacity_blocks) =
        (lines.take("block_bytes")?, lines.take("capacity_blocks")?);
    let mut tenants = Vec::new();
    while lines.key() == "tenant" {
        tenants.push(lines.text("tenant")?.to_owned());
        lines.advance();
    }
    if tenants.is_empty() {
        return Err(lines.refuse("`tenant` and its name"));
    }
    Ok(DivisionsHead { partition, interval_ns, origin_ns, block_bytes, capacity_blocks, tenants })
}

/// The division of a line, behind `last`.
fn row(
    lines: &LineCursor<'_>,
    head: &DivisionsHead,
    last: Option<&DivisionRow>,
) -> Result<DivisionRow, UnreadableRecord> {
    let tenants = head.tenants.len();
    if lines.is_over() {
        return Err(lines.refuse("`end` and the number of divisions: the file is cut short"));
    }
    let mut words = lines.line.split(' ');
    let time_ns = words.next().and_then(|word| word.parse().ok());
    let quotas: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
    let (Some(time_ns), Some(quotas)) = (time_ns, quotas) else {
        return Err(lines.refuse("a time in nanoseconds and the blocks of each tenant"));
    };
    let row = DivisionRow { time_ns, quotas };
    match last {
        None if time_ns != 0 => return Err(lines.refuse("the division at time 0")),
        Some(last) if time_ns <= last.time_ns => {
            return Err(lines.refuse(&format!("a time after {}", last.time_ns)));
        }
        _ => {}
    }
    let on_clock_ns = time_ns.saturating_add(head.origin_ns);
    if last.is_some() && !on_clock_ns.is_multiple_of(head.interval_ns) {
        let (interval, origin) = (head.interval_ns, head.origin_ns);
        return Err(lines.refuse(&match origin {
            0 => format!("a multiple of {interval}, the interval"),
            _ => format!("a time that is {origin} below a multiple of {interval}, the interval"),
        }));
    }
    if row.quotas.len() != tenants {
        return Err(lines.refuse(&format!("the blocks of {tenants} tenants")));
    }
    let sum: u64 = row.quotas.iter().copied().map(u64::from).sum();
    if sum > u64::from(head.capacity_blocks) {
        return Err(lines.refuse(&format!(
            "at most {} blocks, the capacity, and not {sum}",
            head.capacity_blocks
        )));
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn divisions() -> Divisions {
        let tenants = vec!["a".to_owned(), "b  with blanks".to_owned()];
        let head = DivisionsHead {
            partition: "icache-x".to_owned(),
            interval_ns: 50,
            origin_ns: 0,
            block_bytes: 4096,
            capacity_blocks: 64,
            tenants,
        };
        let row = |time_ns, quotas: [u32; 2]| DivisionRow { time_ns, quotas: quotas.to_vec() };
        Divisions { head, rows: vec![row(0, [32, 32]), row(50, [60, 4]), row(200, [1, 2])] }
    }

    fn text() -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = divisions_path(&folder.path().join("x.parquet"));
        let known = divisions();
        let mut writer = DivisionsWriter::create(&path, &known.head).unwrap();
        known.rows.iter().for_each(|row| writer.write(row).unwrap());
        assert!(!path.exists());
        writer.finish().unwrap();
        assert_eq!(Divisions::read(&path).unwrap(), known);
        assert!(path.ends_with("x.parquet.divisions"));
        std::fs::read_to_string(&path).unwrap()
    }

    fn refusal(from: &str, to: &str) -> String {
        let changed = text().replace(from, to);
        assert_ne!(changed, text());
        Divisions::parse(&changed).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(
            text(),
            "cachewright divisions 2\npartition icache-x\ninterval_ns 50\norigin_ns 0\n\
             block_bytes 4096\ncapacity_blocks 64\ntenant a\ntenant b  with blanks\n\
             0 32 32\n50 60 4\n200 1 2\nend 3\n"
        );
    }

    #[test]
    fn divisions_come_at_intervals_of_the_servers_clock() {
        let later = text().replace("origin_ns 0", "origin_ns 130");
        let rows = later.replace("50 60 4\n200 1 2", "20 60 4\n170 1 2");
        let found = Divisions::parse(&rows).unwrap();
        assert_eq!(found.head.origin_ns, 130);
        assert_eq!(found.rows.iter().map(|row| row.time_ns).collect::<Vec<_>>(), [0, 20, 170]);
        let error = Divisions::parse(&later).unwrap_err().to_string();
        assert!(error.contains("a time that is 130 below a multiple of 50, the interval"));
        let first = text().replace("divisions 2", "divisions 1").replace("origin_ns 0\n", "");
        assert_eq!(Divisions::parse(&first).unwrap(), divisions(), "files of version 1 are read");
    }

    #[test]
    fn a_line_that_is_not_as_expected_is_named() {
        let cases = [
            ("divisions 2", "divisions 3", "line 1, column 1: found `cachewright divisions 3`"),
            ("divisions 2", "traces 2", "expected `cachewright divisions` and its value"),
            ("interval_ns 50", "interval_ns 0", "line 3, column 1"),
            ("capacity_blocks 64", "capacity_blocks 63", "at most 63 blocks, the capacity, and"),
            ("tenant a\ntenant b  with blanks\n", "", "expected `tenant` and its name"),
            ("0 32 32\n50", "50", "line 9, column 1: found `50 60 4`, expected the division at"),
            ("200 1 2", "50 1 2", "expected a time after 50"),
            ("200 1 2", "250 1 x", "expected a time in nanoseconds and the blocks"),
            ("200 1 2", "210 1 2", "expected a multiple of 50, the interval"),
            ("200 1 2", "200 1", "expected the blocks of 2 tenants"),
            ("200 1 2\n", "", "found `end 3`, expected `end 2`"),
            ("end 3\n", "", "expected `end` and the number of divisions: the file is cut short"),
            ("end 3\n", "end 3\n300 1 2\n", "expected no more"),
            ("0 32 32\n50 60 4\n200 1 2\nend 3", "end 0", "expected the division at time 0"),
        ];
        for (from, to, expected) in cases {
            let error = refusal(from, to);
            assert!(error.contains(expected), "{error}, not {expected}");
        }
    }

    proptest! {
        #[test]
        fn damage_is_refused_or_keeps_the_rules(place in 0_usize..150, byte in 0_u8..128) {
            let mut bytes = text().into_bytes();
            let place = place % bytes.len();
            bytes[place] = byte;
            let read = String::from_utf8(bytes).ok().and_then(|text| Divisions::parse(&text).ok());
            if let Some(Divisions { head, rows }) = read {
                prop_assert!(rows.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
                for row in &rows {
                    prop_assert_eq!(row.quotas.len(), head.tenants.len());
                    prop_assert!(row.quotas.iter().sum::<u32>() <= head.capacity_blocks);
                }
            }
        }

        #[test]
        fn whole_rows_of_a_text_that_was_cut_are_read(length in 0_usize..150, byte in 128_u8..) {
            let text = text();
            let cut = &text.as_bytes()[..length.min(text.len())];
            // The head has eight lines, the divisions three.
            let whole = cut.iter().filter(|byte| **byte == b'\n').count().saturating_sub(8).min(3);
            let expected = (whole > 0).then(|| divisions().rows[..whole].to_vec());
            for left in [&b""[..], &[byte; 5], &[0; 5], b"\0\n"] {
                let found = Divisions::parse_cut(&[cut, left].concat()).map(|found| found.rows);
                prop_assert_eq!(&found, &expected);
            }
        }

        #[test]
        fn a_text_that_is_cut_short_is_refused(length in 0_usize..150) {
            let text = text();
            let length = length.min(text.len() - 2);
            prop_assert!(Divisions::parse(&text[..length]).is_err());
        }
    }
}
