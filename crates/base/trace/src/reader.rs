//! The seam between formats and everything that consumes traces.
//!
//! For: one trait that every format implements and the options they share. Must never know: which
//! formats exist. Readers report records in file order; ordering by time is the workload's task.

use crate::{Batch, Skipped, TraceError};
use cachewright_types::{Bytes, Op};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to do with a malformed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnBadRecord {
    /// Stop with an error that names it.
    #[default]
    Fail,
    /// Count it, keep it as an example and go on.
    Skip,
}

/// Bound on the length of one read or write unless the user sets another.
///
/// Block layers split requests at some MiB; what is longer by far is damage.
pub const MAX_REQUEST: Bytes = Bytes(1 << 30);

/// How to open a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenOptions {
    /// The format by name; nothing means recognised from content.
    pub format: Option<String>,
    /// What to do with malformed records.
    pub on_bad_record: OnBadRecord,
    /// A longer read or write is a malformed record. Trims may be longer.
    pub max_request: Bytes,
    /// Options of the format (`columns`, `address_unit`, `event`, ...), checked by it; an unknown
    /// key is refused. `list formats` shows each format's keys.
    pub format_options: BTreeMap<String, String>,
    /// More files of the same recording: read with the first as one trace, by time. Patterns (`*`,
    /// `?`, `[...]`) stand for all files that fit.
    pub parts: Vec<PathBuf>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            format: None,
            on_bad_record: OnBadRecord::default(),
            max_request: MAX_REQUEST,
            format_options: BTreeMap::new(),
            parts: Vec::new(),
        }
    }
}

/// The bound on the length of one request, as readers apply it.
///
/// A trim is exempt: one record may discard a whole volume, and no consumer expands it into blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBound {
    pub(crate) bytes: u64,
}

impl RequestBound {
    /// The bound of `options`.
    pub(crate) fn from_options(options: &OpenOptions) -> RequestBound {
        RequestBound { bytes: options.max_request.0 }
    }

    /// Whether a request is longer than the bound.
    #[inline(always)]
    pub(crate) fn refuses(self, op: Op, length_bytes: u64) -> bool {
        length_bytes > self.bytes && op != Op::Trim
    }

    /// What is expected of a request that is longer.
    #[cold]
    pub(crate) fn expected(self) -> String {
        format!("at most {} in one request (`max_request`)", Bytes(self.bytes))
    }
}

/// A trace being read.
pub trait TraceReader: Send {
    /// Appends up to `max` requests to `batch`, returns how many; 0 means the end.
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError>;

    /// Names of the volumes met so far; `Batch::volume` indexes them.
    fn volumes(&self) -> &[String];

    /// Records left out so far.
    fn skipped(&self) -> &Skipped;

    /// Whether records carry times. Without, `time_ns` is the number of the request from 0.
    fn has_times(&self) -> bool {
        true
    }

    /// Requests in the file if the format states it, for progress.
    fn requests_hint(&self) -> Option<u64> {
        None
    }

    /// What was done to the trace beside reading it, and what the content read so far shows beside
    /// its records, a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Nanoseconds that were added to every time, since the trace begins before zero.
    fn shift_ns(&self) -> u64 {
        0
    }

    /// Whether offsets number objects instead of addressing bytes.
    fn counts_objects(&self) -> bool {
        false
    }
}
