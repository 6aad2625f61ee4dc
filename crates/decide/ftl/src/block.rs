//! One superblock: the facts that schemes and reclaim policies see.
//!
//! For: separations, reclaim policies, the table of superblocks. Must never know: scores, lists.
//! Units: pages; moments are values of the clock of host page writes.

use crate::stream::Stream;

/// One superblock, as schemes see it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Index; given again after an erase.
    pub id: u32,
    /// The stream its pages were placed on.
    pub stream: Stream,
    /// Whether it is full and closed.
    pub sealed: bool,
    /// Data pages when full.
    pub pages: u32,
    /// Pages overwritten, moved or trimmed since.
    pub invalid: u32,
    /// The clock when it was opened.
    pub opened_at: u64,
    /// The clock at its last page, once sealed.
    pub sealed_at: u64,
    /// How many superblocks had been opened before it (distinguishes lives of one index).
    pub number: u64,
    /// Times erased.
    pub erases: u32,
}

impl Block {
    /// Share of invalid pages, of a sealed superblock.
    #[inline(always)]
    pub fn invalid_share(&self) -> f64 {
        f64::from(self.invalid) / f64::from(self.pages)
    }

    /// Share of valid pages, of a sealed superblock.
    #[inline(always)]
    pub fn valid_share(&self) -> f64 {
        f64::from(self.pages - self.invalid) / f64::from(self.pages)
    }
}
