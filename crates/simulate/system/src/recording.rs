//! A workload as block accesses: decoded once, replayed through any number of caches.
//!
//! For: the accesses that every replay without devices reads. Must never know: caches, how accesses
//! are recorded. Size: 5 bytes per block access and 8 per request; with several tenants 6 more per
//! access, with the bytes of accesses 4 more per access, with requests of several blocks 4 more per
//! request. Long columns lie in scratch files, and a replay gives back what it has passed: memory
//! does not grow with them. In memory are extents (16 bytes per request), processes of requests,
//! and keys (8 bytes per distinct block). Source of the dense ids: docs/design/cache.md, C-1.

pub use crate::record_error::RecordError;

use crate::arrivals::Arrivals;
use crate::extents::Extents;
use cachewright_curve::BlockName;
use cachewright_memory::Column;
use cachewright_trace::Call;
use cachewright_trace::merge::WorkloadBatch;
use cachewright_trace::next_use::{NEVER, next_uses};
use cachewright_types::{BlockId, BlockKey, Op, TenantId};
use std::ops::Range;

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

    /// Adds the processes of requests, which follow those added before.
    pub(crate) fn add_calls(&mut self, batch: &WorkloadBatch, range: Range<usize>) {
        let call = |index: usize| batch.calls.get(index).copied().unwrap_or_default();
        self.calls.extend(range.map(call));
    }
}
