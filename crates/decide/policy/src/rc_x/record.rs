//! What `rc-x` knows of a block.
//!
//! For: blocks in the cache and ghosts alike. Must never know: other blocks, what is learned.
//! Units: accesses, uses, places. Memory: 12 bytes per block id.

/// The place of a block that is not in the cache.
pub(super) const OUT: u32 = u32::MAX;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockRecord {
    /// The last access; of blocks in the cache and ghosts.
    pub last: u32,
    /// Its place in the cache, or [`OUT`].
    pub place: u32,
    pub class: u16,
    /// Uses so far, up to 255; 0 for a block of which nothing is known.
    pub uses: u8,
    /// Whether its wait is counted: in turns, true in one period and false in the next.
    pub counted: bool,
}

impl BlockRecord {
    /// Whether the block is in the cache or a ghost.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        self.uses > 0
    }

    /// Whether the block is in the cache.
    #[inline(always)]
    pub fn is_held(&self) -> bool {
        self.uses > 0 && self.place != OUT
    }

    /// Whether the block is known and not in the cache.
    #[inline(always)]
    pub fn is_ghost(&self) -> bool {
        self.uses > 0 && self.place == OUT
    }
}
