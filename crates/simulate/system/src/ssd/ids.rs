//! Numbers of things in the data cache, a type for each.
//!
//! For: that a pool is never taken for a tenant, nor a job for a slot. Must never know: what the
//! things do.

/// A pool of the cache engine: all pages, or those of one tenant or a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolId(pub u16);

impl PoolId {
    /// As an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A transaction of flash that the cache asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheJobId(pub u32);

/// A moment of the cache: stamps count upwards and are never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(pub u64);

impl Stamp {
    /// No moment.
    pub const NONE: Stamp = Stamp(0);
}
