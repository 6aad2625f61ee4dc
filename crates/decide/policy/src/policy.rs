//! The core of every policy.
//!
//! For: engines and simulations, which drive policies through it. Must never know: any policy, the
//! cache engine, tenants, time.

use crate::access::{Access, Verdict};
use crate::future::Future;
use crate::hooks::PolicyHooks;
use crate::renumber::Renumbering;
use cachewright_types::BlockId;

/// A replacement policy over unit blocks; see [`PolicyHooks`] for what it may do besides.
///
/// Ids passed in must be below the bound given to [`Policy::reserve_ids`].
pub trait Policy: PolicyHooks + Send {
    /// Decides about one access.
    fn access(&mut self, access: Access) -> Verdict;

    /// Whether the block is in the cache.
    fn contains(&self, block: BlockId) -> bool;

    /// Whether the policy remembers anything about the block (resident, ghost or counted). Once
    /// this is false the id may be given to another block.
    fn tracks(&self, block: BlockId) -> bool;

    /// The most blocks that are remembered at one time at the present capacity.
    fn max_tracked(&self) -> u64 {
        u64::from(self.capacity())
    }

    /// Takes in a block that is not in the cache, past admission control: recovery, or a write-back
    /// that failed. Blocks adopted one after the other are in the order of their last uses. Only a
    /// cache of no blocks, code outside, and policies that need the future answer `Bypass`.
    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        self.access(Access { block, write: dirty, future: Future::None })
    }

    /// Blocks in the cache.
    fn len(&self) -> u32;

    /// Whether nothing is in the cache.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Blocks the cache may hold.
    fn capacity(&self) -> u32;

    /// Changes the capacity; blocks that must leave are appended to `evicted`, first out first.
    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>);

    /// Forgets a block wherever it is remembered (trim); returns whether it was in the cache.
    fn remove(&mut self, block: BlockId) -> bool;

    /// Makes room for ids `0..count`.
    fn reserve_ids(&mut self, count: usize);

    /// Gives the blocks that are kept new ids, in the same order, and frees the others' space;
    /// every block that is tracked is kept. Decisions stay what they would have been. False, and
    /// nothing is changed, where ids are known outside or stand for what they number.
    fn renumber(&mut self, _ids: &Renumbering) -> bool {
        false
    }

    /// Starts to load the block's state into the processor's cache, ahead of its access.
    fn touch(&self, block: BlockId);

    /// A block that is likely to leave after `later` others, so that what its departure needs can
    /// be loaded ahead; a guess that may be wrong or nothing. O(`later`).
    fn leaves_after(&self, _later: u32) -> Option<BlockId> {
        None
    }

    /// Checks every invariant, slowly. The error says which one is broken and how.
    fn audit(&self) -> Result<(), String>;
}
