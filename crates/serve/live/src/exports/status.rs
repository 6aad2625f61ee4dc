//! The status of ranges: what is allocated, cached and dirty.
//!
//! For: `NBD_CMD_BLOCK_STATUS`. Must never know: how a connection works. Units: bytes, blocks. What
//! is allocated says the backing device, which may take its time: other requests go on meanwhile.
//! Where it does not say, every byte is allocated and may be anything: that is always right.

use super::connection::ConnectionId;
use crate::blocks::{AllocationQuery, BlockServer};
use crate::io::{FileExtent, Output};
use cachewright_nbd::protocol::{STATE_HOLE, STATE_ZERO};
use cachewright_nbd::{NbdRequest, Range, StatusExtent};
use cachewright_types::TenantId;
use slab::Slab;

/// The contexts of every export; the place in the list is the context's number. In the second, bit
/// 0 says that the block is in the cache; in the third, that only the cache has its content.
pub const CONTEXTS: [&str; 3] = ["base:allocation", "x-cachewright:cached", "x-cachewright:dirty"];

/// The number of `base:allocation`.
pub const ALLOCATION: u32 = 0;

/// Blocks that one answer looks at: beyond them the client asks again.
const MAX_BLOCKS: u64 = 1 << 15;
/// Extents of a backing device that one answer looks for.
pub const MAX_DEVICE_EXTENTS: usize = 512;

/// A request for status that waits for its backing device.
#[derive(Debug)]
pub struct StatusRequest {
    /// Where its answer goes.
    pub connection: ConnectionId,
    /// As the client sent it.
    pub request: NbdRequest,
    /// Whose volume it is for.
    pub tenant: TenantId,
    /// Bytes of memory that it was taken with.
    pub bytes: u64,
    query: Option<AllocationQuery>,
}

/// The requests for status that wait for backing devices.
#[derive(Debug, Default)]
pub struct StatusRequests {
    waiting: Slab<StatusRequest>,
}

impl StatusRequests {
    /// A request begins that was taken with so many bytes of memory; returns its number.
    pub fn begin(
        &mut self,
        connection: ConnectionId,
        request: NbdRequest,
        tenant: TenantId,
        bytes: u64,
    ) -> usize {
        self.waiting.insert(StatusRequest { connection, request, tenant, bytes, query: None })
    }

    /// The backing device is asked for a request.
    pub fn ask(&mut self, number: usize, query: AllocationQuery) {
        if let Some(waiting) = self.waiting.get_mut(number) {
            waiting.query = Some(query);
        }
    }

    /// The backing device has answered, or is not asked; returns the request, and what is allocated
    /// of its range.
    pub fn end(
        &mut self,
        number: usize,
        output: Output,
    ) -> Option<(StatusRequest, Vec<FileExtent>)> {
        let mut ended = self.waiting.try_remove(number)?;
        let found = ended.query.take().map(|query| query.end(output)).unwrap_or_default();
        Some((ended, found))
    }
}

/// What is allocated of a range of so many bytes as runs, at most `max_extents`.
pub fn allocated(found: &[FileExtent], length: u64, max_extents: usize) -> Vec<StatusExtent> {
    let run = |FileExtent { bytes, is_hole }: &FileExtent| StatusExtent {
        length: *bytes,
        status: if *is_hole { STATE_HOLE | STATE_ZERO } else { 0 },
    };
    let mut runs: Vec<StatusExtent> = found.iter().take(max_extents).map(run).collect();
    if runs.is_empty() {
        runs.push(StatusExtent { length, status: 0 });
    }
    runs
}

/// The runs of a range in a context besides what is allocated, from its start, at most
/// `max_extents`.
pub fn extents(
    server: &BlockServer,
    (tenant, context): (TenantId, u32),
    range: Range,
    max_extents: usize,
) -> Vec<StatusExtent> {
    let block_bytes = server.block_bytes();
    let end = range.offset + range.length;
    let (first, last) = (range.offset / block_bytes, end.div_ceil(block_bytes));
    let mut runs: Vec<StatusExtent> = Vec::new();
    for number in first..last.min(first + MAX_BLOCKS) {
        let status = u64::from(if context == 1 {
            server.is_cached(tenant, number)
        } else {
            server.is_dirty(tenant, number)
        });
        let start = (number * block_bytes).max(range.offset);
        let length = ((number + 1) * block_bytes).min(end) - start;
        let full = runs.len() == max_extents;
        match runs.last_mut() {
            Some(run) if run.status == status => run.length += length,
            _ if full => break,
            _ => runs.push(StatusExtent { length, status }),
        }
    }
    runs
}
