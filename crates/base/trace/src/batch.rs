//! A run of requests by columns.
//!
//! For: handing many requests at once from reader to consumer without a call per request.
//! Must never know: formats. Units: nanoseconds (in the trace's own epoch), bytes.

use cachewright_types::Op;

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
    /// Index into [`TraceReader::volumes`](crate::TraceReader::volumes).
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
