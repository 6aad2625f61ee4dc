//! What was asked for in one stretch of a trace.
//!
//! For: counts, classes of requests and the working set of a period. Must never know: kinds, where
//! a period ends. Units: bytes, nanoseconds; the working set is of 4 KiB pages read or written.

use cachewright_policy::characterize::RequestClass;
use cachewright_result::characterize::{ClassShares, PeriodCounts};
use cachewright_trace::Record;
use cachewright_trace::intern::Interner;
use cachewright_types::Op;
use cachewright_types::measure::ratio;

const PAGE_BITS: u32 = 12;

/// One record as a period hears it.
pub struct Classified<'a> {
    /// The record.
    pub record: &'a Record,
    /// Since the trace's first request.
    pub time_ns: u64,
    /// Its class, if it reads or writes.
    pub class: Option<RequestClass>,
}

/// Counts of one stretch of a trace.
pub struct Period {
    /// Where it begins.
    pub start_ns: u64,
    latest_ns: u64,
    requests: [u64; 4],
    bytes: [u64; 4],
    classes: [u64; 4],
    class_bytes: [u64; 4],
    pages: Interner,
    ids: Vec<u32>,
}

impl Period {
    /// One in which nothing was asked for yet.
    pub fn beginning(start_ns: u64) -> Period {
        Period {
            start_ns,
            latest_ns: start_ns,
            requests: [0; 4],
            bytes: [0; 4],
            classes: [0; 4],
            class_bytes: [0; 4],
            pages: Interner::new(),
            ids: Vec::new(),
        }
    }

    /// Reads and writes.
    pub fn accesses(&self) -> u64 {
        self.requests[Op::Read as usize] + self.requests[Op::Write as usize]
    }

    /// Counts a record. Errors: more pages than can be numbered.
    pub fn add(&mut self, classified: &Classified) -> Result<(), String> {
        let Classified { record, time_ns, class } = classified;
        self.latest_ns = self.latest_ns.max(*time_ns);
        let add = |sum: &mut u64| *sum = sum.saturating_add(record.length_bytes);
        self.requests[record.op as usize] += 1;
        add(&mut self.bytes[record.op as usize]);
        let Some(class) = class else { return Ok(()) };
        self.classes[*class as usize] += 1;
        add(&mut self.class_bytes[*class as usize]);
        let first = record.offset_bytes >> PAGE_BITS;
        let last = record.offset_bytes.saturating_add(record.length_bytes.max(1)) - 1;
        let count = (last >> PAGE_BITS) - first + 1;
        self.ids.clear();
        let interned = self.pages.intern_range(record.volume, first, count, &mut self.ids);
        interned.map_err(|error| error.to_string())
    }

    /// The counts and shares by their names.
    pub fn counts(&self) -> PeriodCounts {
        let count = |op: Op| self.requests[op as usize];
        let bytes = |op: Op| self.bytes[op as usize];
        let span_s = (self.latest_ns - self.start_ns) as f64 / 1e9;
        let accesses = self.accesses();
        PeriodCounts {
            start_ns: self.start_ns,
            end_ns: self.latest_ns,
            reads: count(Op::Read),
            writes: count(Op::Write),
            trims: count(Op::Trim),
            flushes: count(Op::Flush),
            rate_per_s: if span_s > 0.0 { accesses as f64 / span_s } else { 0.0 },
            read_share: ratio(count(Op::Read), accesses),
            read_bytes: bytes(Op::Read),
            write_bytes: bytes(Op::Write),
            mean_bytes: ratio(bytes(Op::Read).saturating_add(bytes(Op::Write)), accesses),
            classes: shares(&self.classes),
            class_bytes: shares(&self.class_bytes),
            working_set_bytes: u64::from(self.pages.distinct()) << PAGE_BITS,
        }
    }
}

fn shares(counts: &[u64; 4]) -> ClassShares {
    let total: u64 = counts.iter().sum();
    let share = |class: RequestClass| ratio(counts[class as usize], total);
    ClassShares {
        sequential: share(RequestClass::Sequential),
        overlapped: share(RequestClass::Overlapped),
        strided: share(RequestClass::Strided),
        random: share(RequestClass::Random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_shares_and_pages_by_hand() {
        let mut period = Period::beginning(0);
        let record = |op, offset_bytes, length_bytes| Record {
            time_ns: 0,
            offset_bytes,
            length_bytes,
            op,
            volume: 0,
        };
        let requests = [
            (record(Op::Read, 0, 8192), Some(RequestClass::Random)),
            (record(Op::Write, 8192, 4096), Some(RequestClass::Sequential)),
            (record(Op::Read, 6000, 4096), Some(RequestClass::Overlapped)),
            (record(Op::Flush, 0, 0), None),
        ];
        for (time, (record, class)) in requests.iter().enumerate() {
            let time_ns = time as u64 * 1_000_000_000;
            period.add(&Classified { record, time_ns, class: *class }).unwrap();
        }
        let found = period.counts();
        assert_eq!(found.rate_per_s, 1.0);
        assert_eq!(found.read_share, 2.0 / 3.0);
        assert_eq!(found.mean_bytes, 16384.0 / 3.0);
        assert_eq!(found.class_bytes.random, 0.5);
        assert_eq!(found.classes.strided, 0.0);
        assert_eq!(found.working_set_bytes, 3 * 4096);
        assert_eq!(found.flushes, 1);
    }
}
