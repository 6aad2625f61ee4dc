//! Whole requests beside block accesses, for policies that observe them.
//!
//! For: what a replay without devices passes to a policy that declares `Need::Requests`, as a timed
//! machine would where every tenant has a device of its own and volumes are put there as they are:
//! a tenant's volumes one behind the other, each from a whole chunk on. Must never know: caches.
//! Units: bytes. Memory: 16 bytes per request.

use crate::recording::{Recording, TRIM, WRITE};
use crate::timed::requests::CHUNK_BYTES;
use cachewright_policy::RequestInfo;
use cachewright_trace::Call;
use cachewright_trace::merge::WorkloadBatch;
use cachewright_types::TenantId;
use std::ops::Range;

/// First bytes and lengths of requests; empty unless recorded.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    offset: Vec<u64>,
    length: Vec<u64>,
}

/// Extents as they are recorded: on their volumes, whose places are not known yet.
#[derive(Debug)]
pub(crate) struct Gathered {
    chunk_bytes: u64,
    extents: Extents,
    /// (its first request, its volume) of every run of requests to one volume.
    runs: Vec<(usize, u32)>,
    /// The tenant of each volume and the end of what is read and written there.
    volumes: Vec<(u16, u64)>,
}

impl Gathered {
    /// Of no request yet; blocks have `1 << shift` bytes.
    pub(crate) fn new(shift: u32) -> Gathered {
        let chunk_bytes = CHUNK_BYTES.max(1 << shift);
        Gathered { chunk_bytes, extents: Extents::default(), runs: Vec::new(), volumes: Vec::new() }
    }

    /// Adds requests of one volume; `data` says whether they read or write.
    pub(crate) fn add(&mut self, batch: &WorkloadBatch, range: Range<usize>, data: bool) {
        let (tenant, volume) = (batch.tenant[range.start], batch.space[range.start]);
        if self.runs.last().is_none_or(|run| run.1 != volume) {
            self.runs.push((self.extents.offset.len(), volume));
        }
        if self.volumes.len() <= volume as usize {
            self.volumes.resize(volume as usize + 1, (0, 0));
        }
        let known = &mut self.volumes[volume as usize];
        known.0 = tenant;
        for index in range {
            let (offset, length) = (batch.offset_bytes[index], batch.length_bytes[index]);
            let length = length.max(u64::from(data));
            self.extents.offset.push(offset);
            self.extents.length.push(length);
            if data {
                known.1 = known.1.max(offset.saturating_add(length));
            }
        }
    }

    /// Puts every tenant's volumes one behind the other.
    pub(crate) fn settle(mut self) -> Extents {
        let tenants = self.volumes.iter().map(|volume| usize::from(volume.0) + 1).max();
        let mut ends = vec![0_u64; tenants.unwrap_or(0)];
        let base = |&(tenant, bytes): &(u16, u64)| {
            let end = &mut ends[usize::from(tenant)];
            let base = *end;
            *end = end.saturating_add(bytes.div_ceil(self.chunk_bytes) * self.chunk_bytes);
            base
        };
        let bases: Vec<u64> = self.volumes.iter().map(base).collect();
        let ends = self.runs.iter().skip(1).map(|run| run.0).chain([self.extents.offset.len()]);
        for ((from, volume), to) in self.runs.iter().zip(ends) {
            let base = bases[*volume as usize];
            for offset in &mut self.extents.offset[*from..to] {
                *offset = offset.saturating_add(base);
            }
        }
        self.extents
    }
}

impl Recording {
    /// Whether it holds the requests that policies observe.
    pub fn has_requests(&self) -> bool {
        let requests = self.times_ns.len();
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

    /// The first request whose accesses begin at `position` or later.
    pub(crate) fn request_from(&self, position: usize) -> usize {
        if self.starts.is_empty() {
            position
        } else {
            self.starts.partition_point(|start| (*start as usize) < position)
        }
    }

    /// Whether a tenant's trace names processes, where they are recorded.
    pub fn names_processes(&self, tenant: TenantId) -> bool {
        let named = |request: &usize| self.calls[*request] != Call::default();
        let own = |request: usize| self.tenant_at(self.start_of(request)) == tenant;
        (0..self.calls.len()).filter(named).any(own)
    }

    /// Adds the processes of requests, which follow those added before.
    pub(crate) fn add_calls(&mut self, batch: &WorkloadBatch, range: Range<usize>) {
        let call = |index: usize| batch.calls.get(index).copied().unwrap_or_default();
        self.calls.extend(range.map(call));
    }

    /// A number that differs for different accesses, times or extents, but for accidents of one in
    /// 2^64.
    pub fn fingerprint(&self) -> u64 {
        let fold =
            |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        let accesses = self.ids.iter().zip(&self.flags);
        let hash = accesses
            .fold(1, |hash, (id, flags)| fold(hash, u64::from(*id) << 8 | u64::from(*flags)));
        let Extents { offset, length } = &self.extents;
        let words = self.times_ns.iter().chain(offset).chain(length);
        words.fold(hash, |hash, word| fold(hash, *word))
    }
}
