//! A workload as block accesses: decoded once, replayed through any number of caches.
//!
//! Size: 5 bytes per block access and 8 per request; with several tenants 6 more per access, with
//! the bytes of accesses 4 more per access, with requests of several blocks 4 more per request.
//! Long columns lie in scratch files, and a replay gives back what it has passed: memory does not
//! grow with them. In memory are extents (16 bytes per request), processes of requests, and keys (8
//! bytes per distinct block). Source of the dense ids: docs/design/cache.md, C-1.

use cachewright_curve::BlockName;
use cachewright_memory::Column;
use cachewright_policy::RequestInfo;
use cachewright_trace::intern::InternError;
use cachewright_trace::merge::WorkloadBatch;
use cachewright_trace::next_use::{NEVER, next_uses};
use cachewright_trace::{Call, TraceError};
use cachewright_types::{BlockId, BlockKey, Op, TenantId};
use std::ops::Range;
use thiserror::Error;

/// The access is a write.
pub const WRITE: u8 = 1;
/// The access ends its request.
pub const LAST: u8 = 2;
/// The block is trimmed; no access.
pub const TRIM: u8 = 4;
/// The block is read ahead of its use; no access.
pub(crate) const AHEAD: u8 = 8;
/// The request of the access goes past the cache.
pub const CUT_OFF: u8 = 16;
/// Bytes that are placed together, unless a block is larger.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;
/// Accesses, or times, read before their memory is given back.
const PIECE: usize = 1 << 20;

/// What a tenant's requests add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantTotals {
    /// Requests by kind, indexed by [`cachewright_types::Op`].
    pub requests: [u64; 4],
    /// Bytes asked for by kind, indexed by [`cachewright_types::Op`].
    pub bytes: [u64; 4],
    /// Blocks read or written.
    pub block_accesses: u64,
    /// Distinct blocks read or written.
    pub distinct_blocks: u32,
    /// Time of the last request in nanoseconds since the start of the workload.
    pub last_ns: u64,
}

/// Block accesses by columns.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Dense over all tenants.
    pub ids: Column<u32>,
    /// Dense per tenant; empty when there is one tenant (then `ids` serves).
    pub locals: Column<u32>,
    /// The key of each dense id, for measures that sample blocks; empty where left out.
    pub keys: Vec<BlockKey>,
    /// [`WRITE`], [`LAST`], [`TRIM`], [`CUT_OFF`].
    pub flags: Column<u8>,
    /// Empty when there is one tenant.
    pub tenants: Column<u16>,
    /// When each read, write or trim arrives, and where its accesses begin.
    pub arrivals: Arrivals,
    /// Bytes of its block that each access asks for, 0 for a trim; empty unless recorded.
    pub bytes: Column<u32>,
    /// Bytes that each access asks for where all ask for as many and `bytes` is empty; 0 where
    /// that is not known.
    pub even_bytes: u32,
    /// Where each request lies, for policies that hear of it; empty unless recorded.
    pub extents: Extents,
    /// The process of each request and its pause; empty unless recorded and named by a trace.
    pub calls: Vec<Call>,
    /// Whether every access is a read of one block: the shortest replay loop applies.
    pub plain: bool,
    /// Totals per tenant.
    pub totals: Vec<TenantTotals>,
    /// Distinct blocks of all tenants.
    pub distinct: u32,
    /// When the tenants' traces begin, where other traces come before them; else 0.
    pub begin_ns: u64,
}

impl Recording {
    /// Block accesses and trims held.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Time of the last request in nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.totals.iter().map(|totals| totals.last_ns).max().unwrap_or(0)
    }

    /// Blocks read or written by all tenants.
    pub fn block_accesses(&self) -> u64 {
        self.totals.iter().map(|totals| totals.block_accesses).sum()
    }

    /// Arrival of each request in nanoseconds; empty when recorded without times.
    #[inline(always)]
    pub fn times_ns(&self) -> &[u64] {
        self.arrivals.times_ns()
    }

    /// Position of the first access that arrives at `time_ns` or later.
    pub fn position_at(&self, time_ns: u64) -> usize {
        let request = self.times_ns().partition_point(|time| *time < time_ns);
        self.start_of(request)
    }

    /// Reads and writes held.
    pub fn data_requests(&self) -> u64 {
        let data = |totals: &TenantTotals| {
            totals.requests[Op::Read as usize] + totals.requests[Op::Write as usize]
        };
        self.totals.iter().map(data).sum()
    }

    /// The read or write of this number, from 0, as an index in `arrivals`; the number of requests
    /// behind the last. Trims are not counted.
    pub fn data_request(&self, number: u64) -> usize {
        let requests = self.times_ns().len();
        if self.data_requests() == requests as u64 {
            return (number as usize).min(requests);
        }
        let is_data = |request: &usize| self.flags[self.start_of(*request)] & TRIM == 0;
        (0..requests).filter(is_data).nth(number as usize).unwrap_or(requests)
    }

    /// Accesses of a request, by its index in `arrivals`.
    pub fn accesses_of(&self, request: usize) -> Range<usize> {
        self.start_of(request)..self.start_of(request + 1)
    }

    /// The first access of a request; the number of accesses behind the last.
    #[inline]
    pub fn start_of(&self, request: usize) -> usize {
        self.arrivals.start_of(request, self.len())
    }

    /// Whose access it is.
    #[inline(always)]
    pub fn tenant_at(&self, position: usize) -> TenantId {
        TenantId(self.tenants.get(position).copied().unwrap_or_default())
    }

    /// The ids a cache uses: dense over all tenants when it is shared, per tenant otherwise.
    pub fn ids_for(&self, shared: bool) -> &[u32] {
        if shared || self.locals.is_empty() { &self.ids } else { &self.locals }
    }

    /// The block at a position as meters know it; ids as [`Recording::ids_for`].
    #[inline(always)]
    pub fn block_at(&self, position: usize, shared: bool) -> BlockName<'_> {
        let id = BlockId(self.ids_for(shared)[position]);
        BlockName::Recorded { id, keys: &self.keys, index: self.ids[position] }
    }

    /// For each access the position of the same block's next access; a trim in between, or no
    /// next access, is "never". Nothing when there are too many accesses to number.
    pub fn next_uses(&self) -> Option<Vec<u32>> {
        let mut next = next_uses(&self.ids, self.distinct)?;
        if self.flags.iter().any(|flags| flags & TRIM != 0) {
            for next in &mut next {
                if *next != NEVER && self.flags[*next as usize] & TRIM != 0 {
                    *next = NEVER;
                }
            }
        }
        Some(next)
    }

    /// Gives back the memory of accesses that will not be read soon, where it can be read again.
    pub fn release(&self, accesses: Range<usize>) {
        if !self.ids.is_mapped() {
            return;
        }
        if !self.times_ns().is_empty() {
            let first = self.arrivals.request_from(accesses.start);
            self.arrivals.release(first..self.arrivals.request_from(accesses.end));
        }
        self.ids.release(accesses.clone());
        self.flags.release(accesses.clone());
        self.locals.release(accesses.clone());
        self.tenants.release(accesses.clone());
        self.bytes.release(accesses);
    }

    /// Whether it holds the requests that policies observe.
    pub fn has_requests(&self) -> bool {
        let requests = self.times_ns().len();
        self.extents.offset.len() == requests && (requests > 0 || self.is_empty())
    }

    /// A request that arrives at `time_ns`, as its policy sees it; nothing for a trim, and unless
    /// recorded.
    pub fn request_info(&self, request: usize, time_ns: u64) -> Option<RequestInfo> {
        let offset = *self.extents.offset.get(request)?;
        let length = *self.extents.length.get(request)?;
        let flags = *self.flags.get(self.accesses_of(request).start)?;
        let write = flags & WRITE != 0;
        (flags & TRIM == 0).then_some(RequestInfo { time_ns, offset, length, write })
    }

    /// Whether a tenant's trace names processes, where they are recorded.
    pub fn names_processes(&self, tenant: TenantId) -> bool {
        let named = |request: &usize| self.calls[*request] != Call::default();
        let own = |request: usize| self.tenant_at(self.start_of(request)) == tenant;
        (0..self.calls.len()).filter(named).any(own)
    }

    /// A number that differs for different accesses, times or extents, but for accidents of one in
    /// 2^64.
    pub fn fingerprint(&self) -> u64 {
        let fold =
            |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        let mut hash = 1;
        for from in (0..self.len()).step_by(PIECE) {
            let range = from..(from + PIECE).min(self.len());
            let accesses = self.ids[range.clone()].iter().zip(&self.flags[range.clone()]);
            hash = accesses.fold(hash, |hash, (id, flags)| {
                fold(hash, u64::from(*id) << 8 | u64::from(*flags))
            });
            self.release(range);
        }
        hash = self.keys.iter().fold(hash, |hash, key| fold(hash, key.0));
        for from in (0..self.times_ns().len()).step_by(PIECE) {
            let range = from..(from + PIECE).min(self.times_ns().len());
            hash = self.times_ns()[range.clone()].iter().fold(hash, |hash, word| fold(hash, *word));
            self.arrivals.release(range);
        }
        let words = self.extents.offset.iter().chain(&self.extents.length);
        words.fold(hash, |hash, word| fold(hash, *word))
    }

    /// Adds the processes of requests, which follow those added before.
    pub(crate) fn add_calls(&mut self, batch: &WorkloadBatch, range: Range<usize>) {
        let call = |index: usize| batch.calls.get(index).copied().unwrap_or_default();
        self.calls.extend(range.map(call));
    }
}

/// The requests of a recording, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Empty when recorded without times.
    times_ns: Column<u64>,
    /// First access of each request; empty when every request is one access.
    starts: Column<u32>,
}

impl Arrivals {
    /// Requests at these times; `starts` is empty when every request is one access.
    pub(crate) fn new(times_ns: Column<u64>, starts: Column<u32>) -> Arrivals {
        Arrivals { times_ns, starts }
    }

    /// The time of each request in nanoseconds.
    #[inline(always)]
    fn times_ns(&self) -> &[u64] {
        &self.times_ns
    }

    /// The first access of a request; `accesses`, which is their number, behind the last request.
    #[inline]
    fn start_of(&self, request: usize, accesses: usize) -> usize {
        if request >= self.times_ns.len() {
            accesses
        } else if self.starts.is_empty() {
            request
        } else {
            self.starts[request] as usize
        }
    }

    /// The first request whose accesses begin at `position` or later.
    pub fn request_from(&self, position: usize) -> usize {
        if self.starts.is_empty() {
            position
        } else {
            self.starts.partition_point(|start| (*start as usize) < position)
        }
    }

    /// Gives back the memory of requests that will not be read soon, where it can be read again.
    pub fn release(&self, requests: Range<usize>) {
        self.times_ns.release(requests.clone());
        self.starts.release(requests);
    }
}

/// First bytes and lengths of requests; empty unless recorded.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// First byte of each request.
    pub(crate) offset: Vec<u64>,
    /// Bytes of each request.
    pub(crate) length: Vec<u64>,
}

/// Why a workload could not be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Too many distinct blocks.
    #[error("{tenant}: {source}; a larger `cache.block` makes fewer")]
    Intern {
        /// The tenant.
        tenant: String,
        /// The reason.
        source: InternError,
    },
    /// What is too long for memory could not be kept in a file.
    #[error("found no place for a scratch file in the temporary folder, TMPDIR ({0})")]
    Scratch(#[from] std::io::Error),
    /// Too many block accesses for the given bound.
    #[error(
        "`replay.max_accesses`: found more than {limit} block accesses, expected at most so many \
         in memory; a larger `cache.block` makes fewer"
    )]
    TooLong {
        /// The bound.
        limit: u64,
    },
    /// More intervals than a run may have, in a loop whose time the trace does not give.
    #[error(
        "found more than {limit} ends of `replay.interval` in the closed loop, expected fewer; a \
         longer interval makes fewer"
    )]
    Intervals {
        /// The bound.
        limit: u64,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_by_accesses_and_accesses_by_requests() {
        // Two accesses, one, and three.
        let arrivals = Arrivals::new(vec![5, 6, 9].into(), vec![0, 2, 3].into());
        let starts: Vec<usize> = (0..5).map(|request| arrivals.start_of(request, 6)).collect();
        assert_eq!(starts, [0, 2, 3, 6, 6]);
        let requests: Vec<usize> = (0..5).map(|access| arrivals.request_from(access)).collect();
        assert_eq!(requests, [0, 1, 1, 2, 3]);
        let single = Arrivals::new(vec![5, 6].into(), Vec::new().into());
        assert_eq!(
            (single.start_of(1, 2), single.start_of(2, 2), single.request_from(1)),
            (1, 2, 1)
        );
    }
}
