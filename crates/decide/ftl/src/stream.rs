//! Streams: pages placed on one stream share superblocks; what is known of the streams' lifetimes.
//!
//! For: separations, which choose streams, and reclaim policies, which read them. Must never know:
//! any scheme. Units: pages.

/// A stream: pages placed on one stream fill the same superblock one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stream(pub u8);

impl Stream {
    /// The index into per-stream arrays.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The set that holds only this stream.
    #[inline(always)]
    pub fn mask(self) -> u64 {
        1 << (self.0 & 63)
    }
}

/// What reclaim may know of a separation's classes (Shiro's equation 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortLived {
    /// Streams whose pages are believed to be overwritten soon, a bit each.
    pub streams: u64,
    /// Lifetime in pages below which a page counts as short-lived.
    pub threshold: u64,
}
