//! One pool of the engine: a policy and which of its blocks are dirty.
//!
//! For: one bit per id, and how many are set. Must never know: quotas, write modes, counters.
//! Units: blocks. Ids stay below the length that the engine reserved.

use cachewright_policy::Policy;
use cachewright_types::BlockId;

#[derive(Clone, Debug)]
pub(crate) struct PolicyPool<P> {
    pub(crate) policy: P,
    /// One bit per id.
    pub(crate) dirty: Vec<u64>,
    pub(crate) dirty_blocks: u32,
    /// The tenant of each id; empty in a pool of one tenant.
    pub(crate) owner: Vec<u16>,
    /// Its only tenant, or one of several.
    pub(crate) tenant: u16,
    /// Whether several tenants share it.
    pub(crate) common: bool,
}

impl<P: Policy> PolicyPool<P> {
    #[inline(always)]
    pub(crate) fn is_dirty(&self, block: BlockId) -> bool {
        self.dirty[block.index() / 64] >> (block.index() % 64) & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn set_dirty(&mut self, block: BlockId) {
        debug_assert!(self.policy.contains(block), "a dirty block is resident");
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        self.dirty_blocks += u32::from(*word & bit == 0);
        *word |= bit;
    }

    /// Clears the dirty bit and returns what it was.
    #[inline(always)]
    pub(crate) fn take_dirty(&mut self, block: BlockId) -> bool {
        if self.dirty_blocks == 0 {
            return false;
        }
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        self.dirty_blocks -= u32::from(was);
        was
    }
}
