//! Policies whose blocks lie in one store: what all of them do alike.
//!
//! For: policies that differ in what an access moves and in which block leaves. A store tells
//! resident blocks from ghosts; a [`StoredPolicy`] decides and evicts; everything else that a
//! [`Policy`] does follows from the two. Unit: blocks.

use crate::renumber::Renumbering;
use crate::{Access, Future, Policy, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::BlockId;

/// Blocks, resident ones and ghosts, in some order.
pub trait BlockStore: Send {
    /// Whether the block is resident.
    fn contains(&self, block: BlockId) -> bool;

    /// Whether the block is resident or a ghost.
    fn tracks(&self, block: BlockId) -> bool {
        self.contains(block)
    }

    /// Resident blocks.
    fn resident(&self) -> u32;

    /// Takes a block out, if it is tracked; returns whether it was resident.
    fn remove(&mut self, block: BlockId) -> bool;

    /// Makes room for ids `0..count`, for `capacity` resident blocks and for `ghosts`.
    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32);

    /// Gives the ids that are kept new numbers. False, and nothing is changed, if it cannot.
    fn renumber(&mut self, _ids: &Renumbering) -> bool {
        false
    }

    /// Loads the block's state ahead of use.
    fn touch(&self, block: BlockId);

    /// Checks every invariant, and that no more than `capacity` blocks are resident.
    fn audit(&self, capacity: u32) -> Result<(), String>;
}

/// A policy over one store. The engine sees it as a [`Policy`].
pub trait StoredPolicy: PolicyHooks + Snapshot + Send {
    /// Where its blocks lie.
    type Store: BlockStore;

    /// The store and the capacity.
    fn parts(&self) -> (&Self::Store, u32);

    /// The store and the capacity, to change.
    fn parts_mut(&mut self) -> (&mut Self::Store, &mut u32);

    /// See [`Policy::access`].
    fn decide(&mut self, access: Access) -> Verdict;

    /// Evicts a block. At least one must be resident.
    fn evict(&mut self) -> Option<BlockId>;

    /// See [`Policy::adopt`].
    fn adopt_block(&mut self, block: BlockId, dirty: bool) -> Verdict {
        self.decide(Access { block, write: dirty, future: Future::None })
    }

    /// The most ghosts at the present capacity, for policies that have ghosts.
    fn max_ghosts(&self) -> Option<u32> {
        None
    }

    /// The capacity has changed; blocks beyond it have not left yet.
    fn on_capacity(&mut self) {}

    /// Drops ghosts beyond the limits. The resident blocks fit.
    fn trim_ghosts(&mut self) {}

    /// A resident block was taken out at a request from outside.
    fn on_removal(&mut self) {}

    /// See [`Policy::leaves_after`].
    fn next_victim(&self, _later: u32) -> Option<BlockId> {
        None
    }

    /// Checks what the policy promises beyond its store.
    fn audit_limits(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Where a [`StoredPolicy`] keeps its blocks: in this field, beside a field `capacity`.
macro_rules! stored_in {
    ($field:ident: $store:ty) => {
        type Store = $store;

        #[inline(always)]
        fn parts(&self) -> (&Self::Store, u32) {
            (&self.$field, self.capacity)
        }

        #[inline(always)]
        fn parts_mut(&mut self) -> (&mut Self::Store, &mut u32) {
            (&mut self.$field, &mut self.capacity)
        }
    };
}

pub(crate) use stored_in;

impl<P: StoredPolicy> Policy for P {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        self.decide(access)
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.parts().0.contains(block)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.parts().0.tracks(block)
    }

    fn max_tracked(&self) -> u64 {
        let ghosts = self.max_ghosts().map_or(0, |ghosts| u64::from(ghosts) + 1);
        u64::from(self.parts().1) + ghosts
    }

    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        self.adopt_block(block, dirty)
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.parts().0.resident()
    }

    fn capacity(&self) -> u32 {
        self.parts().1
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        *self.parts_mut().1 = capacity_blocks;
        self.on_capacity();
        while self.len() > capacity_blocks {
            evicted.extend(self.evict());
        }
        self.trim_ghosts();
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.parts_mut().0.remove(block);
        if resident {
            self.on_removal();
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize) {
        let ghosts = self.max_ghosts().unwrap_or(0);
        let (store, capacity) = self.parts_mut();
        store.reserve_ids(count, *capacity, ghosts);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.parts_mut().0.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.parts().0.touch(block);
    }

    #[inline(always)]
    fn leaves_after(&self, later: u32) -> Option<BlockId> {
        self.next_victim(later)
    }

    fn audit(&self) -> Result<(), String> {
        let (store, capacity) = self.parts();
        store.audit(capacity)?;
        self.audit_limits()
    }
}
