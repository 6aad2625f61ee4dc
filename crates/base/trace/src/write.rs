//! Traces to files.
//!
//! For: one trait that every written format implements. Must never know: where requests come from.
//! A file is written beside its final name and renamed once it is complete. An error therefore
//! loses nothing that was there before.

pub(crate) mod atomic;
mod csv;
mod oracle_general;
mod parquet;
pub(crate) mod recovered;
mod sink;
mod suffix;

pub use self::csv::CsvWriter;
pub use self::oracle_general::OracleGeneralWriter;
pub use self::parquet::{ColumnEncoding, Compression, ParquetOptions, ParquetWriter, TimeColumn};
pub use self::suffix::{COMPRESSIONS, format_by_suffix};

use crate::formats::objects::ObjectOptions;
use crate::source::Container;
use crate::{Batch, TraceError};
use cachewright_types::declare::Declared;
use cachewright_types::{Key, nearest};
use std::collections::BTreeMap;
use std::path::Path;

/// What became of the requests given to a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Requests in the file.
    pub requests: u64,
    /// Requests that the format cannot express (trims and flushes in `oracle-general`).
    pub left_out: u64,
    /// Seconds by which all times were moved back, because the format's clock does not reach them.
    pub moved_s: u64,
}

/// A trace being written. Dropped before [`finish`](Self::finish), it leaves no file behind.
pub trait TraceWriter: Send {
    /// Appends `batch`, whose volumes index `volumes`, the reader's list so far.
    /// Errors: the operating system's; a request that the format cannot hold.
    fn write(&mut self, batch: &Batch, volumes: &[String]) -> Result<(), TraceError>;

    /// Brings what was written so far to the device, so that
    /// [`recover_abandoned`](crate::recover_abandoned) finds it if the process is killed. Of
    /// formats other than the native one nothing is found. Errors: the operating system's.
    fn keep(&mut self) -> Result<(), TraceError> {
        Ok(())
    }

    /// Completes the file and puts it in place. Errors: the operating system's; no request to
    /// write, as no reader takes a file without one.
    fn finish(self: Box<Self>) -> Result<WriteSummary, TraceError>;
}

type Create = fn(&Path, &BTreeMap<String, String>) -> Result<Box<dyn TraceWriter>, TraceError>;

/// What is known of one format that can be written.
#[derive(Clone, Copy)]
pub struct WriteEntry {
    /// The name users write; the reader of the result has the same.
    pub name: &'static str,
    /// One sentence: what is kept and what is lost.
    pub doc: &'static str,
    /// How names of its files end.
    pub suffixes: &'static [&'static str],
    /// Whether its files can be compressed as a whole.
    pub compressed: bool,
    /// The keys of its options.
    pub options: fn() -> Vec<Key>,
    create: Create,
}

/// Every format that can be written.
pub static WRITE_FORMATS: &[WriteEntry] = &[
    WriteEntry {
        name: "parquet",
        doc: "the native format: keeps everything (docs/trace-format.md)",
        suffixes: &[".parquet"],
        compressed: false,
        options: ParquetOptions::keys,
        create: |path, options| Ok(Box::new(ParquetWriter::create(path, options)?)),
    },
    WriteEntry {
        name: "alibaba",
        doc: "CSV `volume,R|W|T|F,offset,length,timestamp`, no header; bytes, microseconds \
              (nanoseconds below are cut off)",
        suffixes: &[".csv"],
        compressed: true,
        options: Vec::new,
        create: |path, _| Ok(Box::new(CsvWriter::create(path)?)),
    },
    WriteEntry {
        name: "oracle-general",
        doc: "24 B binary records with the next access of each address; loses reads and writes' \
              difference, trims, flushes, volumes, and time below a second",
        suffixes: &[".oracleGeneral", ".oracleGeneral.bin"],
        compressed: true,
        options: ObjectOptions::keys,
        create: |path, options| Ok(Box::new(OracleGeneralWriter::create(path, options)?)),
    },
];

/// Starts writing `path` in the format called `name` (`csv` stands for `alibaba`), compressed where
/// its suffix asks for that. A file that is already there is replaced when the new one is complete.
///
/// Errors: an unknown format or option, with the nearest known one; a format whose files are not
/// compressed as a whole; the operating system's.
pub fn create_writer(
    name: &str,
    path: &Path,
    options: &BTreeMap<String, String>,
) -> Result<Box<dyn TraceWriter>, TraceError> {
    let wanted = if name == "csv" { "alibaba" } else { name };
    let names: Vec<&str> = WRITE_FORMATS.iter().map(|entry| entry.name).collect();
    let refuse = |key: &str, found: &str, known: &[&str]| TraceError::Option {
        key: key.to_owned(),
        found: found.to_owned(),
        expected: match nearest(found, known.iter().copied()) {
            Some(near) => format!("one that can be written; nearest is `{near}`"),
            None if known.is_empty() => "no option here".to_owned(),
            None => format!("one of {}", known.join(", ")),
        },
    };
    let entry = WRITE_FORMATS
        .iter()
        .find(|entry| entry.name == wanted)
        .ok_or_else(|| refuse("format", name, &names))?;
    let keys: Vec<&str> = (entry.options)().iter().map(|key| key.name).collect();
    if let Some(key) = options.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(refuse("option", key, &keys));
    }
    match suffix::container_of(path) {
        Container::Plain => {}
        container if !entry.compressed => {
            return Err(TraceError::File {
                path: path.to_owned(),
                found: format!("a suffix of {} for the format {}", container.word(), entry.name),
                expected: "a name without it; pages are compressed (option `compression`)".into(),
            });
        }
        _ => {}
    }
    (entry.create)(path, options)
}

/// The refusal to complete a file of which no reader could take anything.
fn nothing_to_write(path: &Path, left_out: u64) -> TraceError {
    let found = match left_out {
        0 => "no request to write".to_owned(),
        count => format!("no request that the format can hold ({count} left out)"),
    };
    TraceError::File { path: path.to_owned(), found, expected: "one or more requests".to_owned() }
}

#[cfg(test)]
mod tests;
