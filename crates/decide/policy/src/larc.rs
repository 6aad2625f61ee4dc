//! LARC: a block enters the cache only when it is missed twice within a ghost queue.
//!
//! For: few writes into flash: what is asked for once never gets in. Source: Huang, Wei, Chen et
//! al., MSST'13, "Improving flash-based disk cache with Lazy Adaptive Replacement", Alg. 1 (and ACM
//! TOS 12(2), 2016). The ghost queue's length Cr starts at 0.1 C, shrinks by C/(C - Cr) at every
//! hit and grows by C/Cr at every miss (a hit in the ghost queue is a miss), within [0.1 C, 0.9 C].
//! It is real-valued here as in the paper. Beyond the paper: at least one ghost is kept, else
//! caches below 2 blocks would never admit. As in the paper, a cache that is not full admits no
//! sooner. Unit: blocks.

use crate::ghost_lists::{GhostLists, OUT};
use crate::registry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// The paper's Q: resident, in order of use.
const CACHED: u8 = 1;
/// The paper's Qr: ids missed once, in order of that miss.
const GHOST: u8 = 2;

/// Lazy adaptive replacement cache.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Larc {
    lists: GhostLists<3, 1>,
    capacity: u32,
    /// The paper's Cr, in blocks.
    ghost_target: f64,
}

impl Registered for Larc {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "larc",
        doc: "lru that admits a block at its second miss within an adaptive ghost queue",
        source: "Huang et al., MSST'13, Alg. 1",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        let ghost_target = 0.1 * f64::from(capacity_blocks);
        Larc { lists: GhostLists::default(), capacity: capacity_blocks, ghost_target }
    }
}

impl Larc {
    #[inline(always)]
    fn shrink_ghosts(&mut self) {
        let c = f64::from(self.capacity);
        self.ghost_target = (self.ghost_target - c / (c - self.ghost_target)).max(0.1 * c);
    }

    #[inline(always)]
    fn grow_ghosts(&mut self) {
        let c = f64::from(self.capacity);
        self.ghost_target = (self.ghost_target + c / self.ghost_target).min(0.9 * c);
    }

    #[inline(always)]
    fn admit(&mut self, block: BlockId) -> Verdict {
        let full = self.lists.len(CACHED) == self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.lists.push(CACHED, block);
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for Larc {}

impl StoredPolicy for Larc {
    stored_in!(lists: GhostLists<3, 1>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let list = self.lists.list_of(block);
        if list == CACHED {
            self.lists.refresh(CACHED, block);
            self.shrink_ghosts();
            return Verdict::Hit;
        }
        self.grow_ghosts();
        if list == OUT {
            self.lists.push(GHOST, block);
            self.trim_ghosts();
            return Verdict::Bypass;
        }
        self.lists.take(GHOST, block);
        self.admit(block)
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.lists.pop(CACHED)
    }

    fn adopt_block(&mut self, block: BlockId, _: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        if self.lists.tracks(block) {
            self.lists.take(GHOST, block);
        }
        self.admit(block)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some((0.9 * f64::from(self.capacity)).max(1.0) as u32)
    }

    fn on_capacity(&mut self) {
        let c = f64::from(self.capacity);
        self.ghost_target = self.ghost_target.clamp(0.1 * c, 0.9 * c);
    }

    fn trim_ghosts(&mut self) {
        let limit = if self.capacity == 0 { 0.0 } else { self.ghost_target.max(1.0) };
        self.lists.trim(GHOST, limit as u32);
    }

    fn audit_limits(&self) -> Result<(), String> {
        let c = f64::from(self.capacity);
        if !(0.1 * c..=0.9 * c).contains(&self.ghost_target) {
            return Err(format!("ghost target {} outside 0.1..0.9 of {c}", self.ghost_target));
        }
        // Hits lower the target at once; the queue follows at the next stranger.
        if f64::from(self.lists.len(GHOST)) > (0.9 * c).max(1.0) {
            return Err(format!("{} ghosts in a cache of {c}", self.lists.len(GHOST)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn feed(larc: &mut Larc, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| larc.access(Access::read(BlockId(*id)))).collect()
    }

    /// Capacity 10, so Cr starts at 1 and stays within [1, 9].
    #[test]
    fn the_hand_worked_case() {
        let mut larc = Larc::new(10, &NoSettings {}, Seed(0));
        larc.reserve_ids(16);
        assert_eq!(larc.ghost_target, 1.0);
        // First miss of 0: Cr = min(9, 1 + 10/1) = 9; 0 becomes a ghost and stays out.
        assert_eq!(feed(&mut larc, &[0]), [Verdict::Bypass]);
        assert_eq!(larc.ghost_target, 9.0);
        // Second miss of 0: found in Qr, so it enters.
        assert_eq!(feed(&mut larc, &[0]), [Verdict::Admit { evicted: None }]);
        // A hit: Cr = max(1, 9 - 10/(10 - 9)) = 1.
        assert_eq!(feed(&mut larc, &[0]), [Verdict::Hit]);
        assert_eq!(larc.ghost_target, 1.0);
        // Ten strangers: Cr is 9 after the first, so the first of them is forgotten at the tenth.
        feed(&mut larc, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!(!larc.tracks(BlockId(1)) && larc.tracks(BlockId(2)));
        // Nine of them return and fill the cache; then 1 must be missed twice to push out 0.
        feed(&mut larc, &[2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(larc.len(), 10);
        let verdicts = feed(&mut larc, &[1, 1]);
        assert_eq!(verdicts, [Verdict::Bypass, Verdict::Admit { evicted: Some(BlockId(0)) }]);
        assert_eq!(larc.audit(), Ok(()));
    }
}
