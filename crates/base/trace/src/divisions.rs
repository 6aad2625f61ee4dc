//! Divisions of a cache among tenants, recorded beside a trace.
//!
//! For: a replay that divides as a live server did. Must never know: what divides, what is divided.
//! Units: nanoseconds of the trace's times, bytes, blocks. A file is text: what it was recorded
//! from, then a line per division that changed a quota, then how many there were, so that a file
//! that was cut short is known. The first line is the division at time 0.

mod read;

use crate::TraceError;
use crate::write::atomic::AtomicFile;
use crate::write::{TraceWriter, WriteSummary};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// How the first line begins, before the version.
const MAGIC: &str = "cachewright divisions";
/// The version of the format.
const VERSION: u32 = 1;

/// What divisions were recorded from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DivisionsHead {
    /// The name of the partitioner.
    pub partition: String,
    /// Time between two divisions.
    pub interval_ns: u64,
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
        let DivisionsHead { partition, interval_ns, block_bytes, capacity_blocks, tenants } = head;
        let mut text = format!(
            "{MAGIC} {VERSION}\npartition {partition}\ninterval_ns {interval_ns}\nblock_bytes \
             {block_bytes}\ncapacity_blocks {capacity_blocks}\n"
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
