//! Where requests lie on their tenants' devices, as recorded beside block accesses.
//!
//! For: requests as a timed machine would see them, where every tenant has a device of its own and
//! volumes are put there as they are: one behind the other, each from a whole chunk on. Must never
//! know: caches, policies. Units: bytes. Memory: 16 bytes per request.

use cachewright_trace::merge::WorkloadBatch;
use std::ops::Range;

/// Bytes that are placed together, unless a block is larger.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;

/// First bytes and lengths of requests; empty unless recorded.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// First byte of each request.
    pub(crate) offset: Vec<u64>,
    /// Bytes of each request.
    pub(crate) length: Vec<u64>,
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
