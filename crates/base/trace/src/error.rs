//! What can be wrong with a trace, said with file, line, column and expectation.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// One record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// 1-based line of a text file or row of a Parquet file, or 1-based record of a binary one.
    pub position: u64,
    /// Whether `position` counts lines or records.
    pub is_line: bool,
    /// 1-based column of a text or Parquet file, or byte offset of a binary one.
    pub column: u64,
    /// The offending text, shortened.
    pub found: String,
    /// What would have been accepted.
    pub expected: String,
}

impl fmt::Display for UnreadableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, column) = if self.is_line { ("line", "column") } else { ("record", "byte") };
        write!(
            f,
            "{what} {}, {column} {}: found `{}`, expected {}",
            self.position, self.column, self.found, self.expected
        )
    }
}

/// Why a trace could not be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A record is malformed.
    #[error("{path}: {record}", path = path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What and where.
        record: UnreadableRecord,
    },
    /// The file as a whole is not what it was taken for (empty, truncated container, wrong magic).
    #[error("{path}: found {found}, expected {expected}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What would have been accepted.
        expected: String,
    },
    /// No format fits the content.
    #[error(
        "{path}: the format was not recognised from the content{detail}; \
         name it with `format`, one of {known}{advice}",
        path = path.display()
    )]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// What the first bytes look like.
        detail: String,
        /// All format names.
        known: String,
        /// How it would be read as a table, in lines of their own; empty for what is none.
        advice: String,
    },
    /// A table of which not enough is said to read it.
    #[error("{path}: {reason}{advice}", path = path.display())]
    Unmapped {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
        /// How it would be read, in lines of their own.
        advice: String,
    },
    /// An option is wrong.
    #[error("`{key}`: found `{found}`, expected {expected}")]
    Option {
        /// The key.
        key: String,
        /// What was found.
        found: String,
        /// What would have been accepted.
        expected: String,
    },
}

/// Records left out, counted and with the first few kept to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Malformed records passed over (only with `--on-bad-record skip`).
    pub bad: u64,
    /// Well-formed records that carry no request of ours (other event kinds, comments, headers).
    pub irrelevant: u64,
    /// The first malformed ones.
    pub examples: Vec<UnreadableRecord>,
    /// Why the irrelevant ones were passed over, for those of which that is worth a word.
    pub reasons: Vec<PassedOver>,
}

/// Records that carry no request of ours, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// What they are, in one word or a few: `comment`, `zone reset`.
    pub what: &'static str,
    /// How many.
    pub records: u64,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.records == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.records, self.what)
    }
}

impl Skipped {
    /// Malformed records kept as examples.
    pub const EXAMPLES: usize = 5;

    /// Counts one record that carries no request, with what it is.
    #[cold]
    pub fn pass_over(&mut self, what: &'static str) {
        self.irrelevant += 1;
        self.add_reasons(&[PassedOver { what, records: 1 }]);
    }

    /// What was passed over and why, in one sentence; nothing where that is not worth a word.
    pub fn sentence(&self) -> Option<String> {
        let each: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        (!each.is_empty()).then(|| format!("passed over: {}", each.join(", ")))
    }

    /// Adds reasons for which records were passed over, each with its number.
    pub(crate) fn add_reasons(&mut self, more: &[PassedOver]) {
        for reason in more {
            match self.reasons.iter_mut().find(|known| known.what == reason.what) {
                Some(known) => known.records += reason.records,
                None => self.reasons.push(*reason),
            }
        }
    }

    /// Counts one malformed record.
    pub fn count_bad(&mut self, record: UnreadableRecord) {
        self.bad += 1;
        if self.examples.len() < Self::EXAMPLES {
            self.examples.push(record);
        }
    }
}
