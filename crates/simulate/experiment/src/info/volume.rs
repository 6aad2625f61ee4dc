//! Totals of one volume (or of a whole trace).
//!
//! For: counting requests and bytes by kind. Must never know: blocks' identities.

use cachewright_result::info::VolumeTotals;
use cachewright_trace::Record;
use cachewright_types::Op;

/// Requests and bytes by kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeFacts {
    requests: [u64; 4],
    bytes: [u64; 4],
    distinct_blocks: u64,
    distinct_bytes: u64,
    /// Bytes of the distinct blocks that are written.
    pub written_bytes: u64,
}

impl VolumeFacts {
    /// Counts one request.
    pub fn add(&mut self, record: &Record) {
        let kind = record.op as usize;
        self.requests[kind] += 1;
        self.bytes[kind] = self.bytes[kind].saturating_add(record.length_bytes);
    }

    /// Counts blocks that were not met before, each of so many bytes.
    pub fn add_distinct(&mut self, blocks: u64, bytes: u64) {
        self.distinct_blocks += blocks;
        self.distinct_bytes = self.distinct_bytes.saturating_add(blocks.saturating_mul(bytes));
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// The totals by their names; rates are over `span_ns`, that of the whole trace, so that those
    /// of its volumes add up. Without times there is no rate.
    pub fn totals(&self, span_ns: Option<u64>) -> VolumeTotals {
        let rate_per_s = span_ns.map(|span_ns| match span_ns {
            0 => 0.0,
            _ => self.requests() as f64 / (span_ns as f64 / 1e9),
        });
        let count = |op: Op| self.requests[op as usize];
        let data = count(Op::Read) + count(Op::Write);
        VolumeTotals {
            requests: self.requests(),
            reads: count(Op::Read),
            writes: count(Op::Write),
            trims: count(Op::Trim),
            flushes: count(Op::Flush),
            read_share: cachewright_types::measure::ratio(count(Op::Read), data),
            read_bytes: self.bytes[Op::Read as usize],
            write_bytes: self.bytes[Op::Write as usize],
            trim_bytes: self.bytes[Op::Trim as usize],
            distinct_blocks: self.distinct_blocks,
            working_set_bytes: self.distinct_bytes,
            written_working_set_bytes: self.written_bytes,
            rate_per_s,
        }
    }
}
