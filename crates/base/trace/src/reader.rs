//! The seam between formats and everything that consumes traces.
//!
//! For: one trait that every format implements and the options they share. Must never know: which
//! formats exist. Readers report records in file order; ordering by time is the workload's task.

use crate::{Batch, Skipped, TraceError};
use std::collections::BTreeMap;

/// What to do with a malformed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnBadRecord {
    /// Stop with an error that names it.
    #[default]
    Fail,
    /// Count it, keep it as an example and go on.
    Skip,
}

/// How to open a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenOptions {
    /// The format by name; nothing means recognised from content.
    pub format: Option<String>,
    /// What to do with malformed records.
    pub on_bad_record: OnBadRecord,
    /// Options of the format (`columns`, `address_unit`, `event`, ...), checked by it; an unknown
    /// key is refused. `list formats` shows each format's keys.
    pub format_options: BTreeMap<String, String>,
}

/// A trace being read.
pub trait TraceReader: Send {
    /// Appends up to `max` requests to `batch`, returns how many; 0 means the end.
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError>;

    /// Names of the volumes met so far; `Batch::volume` indexes them.
    fn volumes(&self) -> &[String];

    /// Records left out so far.
    fn skipped(&self) -> &Skipped;

    /// Requests in the file if the format states it, for progress.
    fn requests_hint(&self) -> Option<u64> {
        None
    }
}
