//! The state of the background rounds of `oc-smq`.
//!
//! For: counting what a round has done and what is still due. Must never know: blocks, levels of
//! blocks. Unit: blocks.

use crate::levels::LEVELS;

/// Levels below this one are low: their blocks leave first.
pub(super) const SAFE_LEVEL: usize = LEVELS / 2;

/// What is due, and what has been done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundWork {
    /// Blocks demoted or cleaned in this round.
    pub moved: u32,
    /// Pairs swapped in this round.
    pub swapped: u32,
    /// Blocks to be cleaned before the tick ends.
    pub uncleaned: u32,
    /// More blocks of the shared region were hot than may be.
    pub migrating: bool,
    /// Since the beginning.
    pub demotions: u64,
    pub cleanings: u64,
    pub swaps: u64,
}
