//! What a data cache has done.
//!
//! For: results. Must never know: the cache. Units: pages, bytes.

use cachewright_types::Bytes;

/// What the cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Pages written to flash by the cache.
    pub destaged_pages: u64,
    /// Pages that entered the cache from flash.
    pub filled_pages: u64,
    /// Writes that had to wait while too much was on its way to flash.
    pub held_writes: u64,
    /// Bytes of one pool that were on their way to flash at most.
    pub max_outgoing: Bytes,
    /// Dirty pages that left because their pool had to give up space.
    pub given_up_pages: u64,
}
