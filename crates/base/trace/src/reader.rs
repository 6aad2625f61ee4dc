//! The seam between formats and everything that consumes traces: requests by columns, the options
//! of reading, and the trait that every format implements.
//!
//! Readers report records in file order; ordering by time is the workload's task. Times are in the
//! trace's own epoch.

use crate::{Skipped, TraceError};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Op, visible};
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

/// The process that sent a request, where a trace names processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The process, by its number in the trace.
    pub process: u32,
    /// Nanoseconds since its last call ended; of its first call, since the call before it in the
    /// trace did.
    pub pause_ns: u64,
}

/// One request as a trace file states it: no tenant yet, only the file's own volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds in the trace's own epoch.
    pub time_ns: u64,
    /// First byte.
    pub offset_bytes: u64,
    /// Length; 0 for a flush.
    pub length_bytes: u64,
    /// What is asked.
    pub op: Op,
    /// Index into [`TraceReader::volumes`].
    pub volume: u32,
}

/// Requests by columns; all columns have the same length, but `calls` may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Nanoseconds in the trace's own epoch.
    pub time_ns: Vec<u64>,
    /// First byte of each request.
    pub offset_bytes: Vec<u64>,
    /// Length of each request; 0 for a flush.
    pub length_bytes: Vec<u64>,
    /// What is asked.
    pub op: Vec<Op>,
    /// Index into the reader's volumes.
    pub volume: Vec<u32>,
    /// The process of each request and its pause; empty where the format names none.
    pub calls: Vec<Call>,
}

impl Batch {
    /// Requests held.
    pub fn len(&self) -> usize {
        self.op.len()
    }

    /// Whether no request is held.
    pub fn is_empty(&self) -> bool {
        self.op.is_empty()
    }

    /// Drops all requests, keeps the memory.
    pub fn clear(&mut self) {
        self.time_ns.clear();
        self.offset_bytes.clear();
        self.length_bytes.clear();
        self.op.clear();
        self.volume.clear();
        self.calls.clear();
    }

    /// Appends one request.
    #[inline]
    pub fn push(&mut self, record: Record) {
        self.time_ns.push(record.time_ns);
        self.offset_bytes.push(record.offset_bytes);
        self.length_bytes.push(record.length_bytes);
        self.op.push(record.op);
        self.volume.push(record.volume);
    }

    /// The request at `index`. Panics when out of bounds, as indexing does.
    #[inline]
    pub fn get(&self, index: usize) -> Record {
        Record {
            time_ns: self.time_ns[index],
            offset_bytes: self.offset_bytes[index],
            length_bytes: self.length_bytes[index],
            op: self.op[index],
            volume: self.volume[index],
        }
    }

    /// All requests in order.
    pub fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// Options as they are declared, from their texts. Errors: a value that its key does not accept.
pub(crate) fn declared<T: Declared>(texts: &BTreeMap<String, String>) -> Result<T, TraceError> {
    let mut declared = T::default();
    for (key, text) in texts {
        let set = declared.set_text(key, text);
        set.map_err(|error| bad_option(&error.key, text, error.expected))?;
    }
    Ok(declared)
}

/// The refusal of the value `found` of option `key`.
pub(crate) fn bad_option(key: &str, found: &str, expected: impl Into<String>) -> TraceError {
    let (key, found) = (shown(key.as_bytes()), shown(found.as_bytes()));
    TraceError::Option { key, found, expected: expected.into() }
}

/// `bytes` as shown in messages: at most 60 characters, none of them hidden.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    let text = visible(&String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LONGEST)]));
    if text.chars().count() <= LONGEST && bytes.len() <= 4 * LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 3).chain("...".chars()).collect()
}
