//! The status of ranges: what is allocated, cached and dirty.
//!
//! For: `NBD_CMD_BLOCK_STATUS`. Must never know: connections. Units: bytes, blocks. Every byte is
//! allocated and may be anything: that is always right.

use crate::blocks::BlockServer;
use cachewright_nbd::{Range, StatusExtent};
use cachewright_types::TenantId;

/// The contexts of every export; the place in the list is the context's number. In the second, bit
/// 0 says that the block is in the cache; in the third, that only the cache has its content.
pub const CONTEXTS: [&str; 3] = ["base:allocation", "x-cachewright:cached", "x-cachewright:dirty"];

/// Blocks that one answer looks at: beyond them the client asks again.
const MAX_BLOCKS: u64 = 1 << 15;

/// The runs of a range in a context, from its start, at most `max_extents`.
pub fn extents(
    server: &BlockServer,
    (tenant, context): (TenantId, u32),
    range: Range,
    max_extents: usize,
) -> Vec<StatusExtent> {
    if context == 0 {
        return vec![StatusExtent { length: range.length, status: 0 }];
    }
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
