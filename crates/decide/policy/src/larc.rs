//! LARC: a block enters the cache only when it is missed twice within a ghost queue.
//!
//! For: few writes into flash: what is asked for once never gets in. Must never know: engines,
//! tenants, time. Source: Huang, Wei, Chen et al., MSST'13, "Improving flash-based disk cache with
//! Lazy Adaptive Replacement", Alg. 1 (and ACM TOS 12(2), 2016). The ghost queue's length Cr starts
//! at 0.1 C, shrinks by C/(C - Cr) at every hit and grows by C/Cr at every miss (a hit in the ghost
//! queue is a miss), within [0.1 C, 0.9 C]. It is real-valued here as in the paper. Beyond the
//! paper: at least one ghost is kept, else caches below 2 blocks would never admit. As in the
//! paper, a cache that is not full admits no sooner. Unit: blocks.

use crate::entry::{Entry, Registered};
use crate::links::Links;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// Lists, which are also the tags of blocks; a block with tag [`OUT`] is in none.
const OUT: u8 = 0;
/// The paper's Q: resident, in order of use.
const CACHED: u8 = 1;
/// The paper's Qr: ids missed once, in order of that miss.
const GHOST: u8 = 2;

/// Lazy adaptive replacement cache.
#[derive(Clone, Debug)]
pub struct Larc {
    links: Links<u8, 3>,
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
        Larc { links: Links::new(), capacity: capacity_blocks, ghost_target }
    }
}

impl Larc {
    #[inline(always)]
    fn size(&self, list: u8) -> u32 {
        self.links.len(usize::from(list))
    }

    #[inline(always)]
    fn place(&mut self, list: u8, block: BlockId) {
        self.links.push_head(usize::from(list), block);
        *self.links.tag_mut(block) = list;
    }

    #[inline(always)]
    fn drop_tail(&mut self, list: u8) -> Option<BlockId> {
        let block = self.links.pop_tail(usize::from(list))?;
        *self.links.tag_mut(block) = OUT;
        Some(block)
    }

    fn trim_ghosts(&mut self) {
        let limit = if self.capacity == 0 { 0.0 } else { self.ghost_target.max(1.0) };
        while f64::from(self.size(GHOST)) > limit {
            self.drop_tail(GHOST);
        }
    }

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
}

impl PolicyHooks for Larc {}

impl Policy for Larc {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let list = self.links.tag(block);
        if list == CACHED {
            self.links.move_to_head(usize::from(CACHED), block);
            self.shrink_ghosts();
            return Verdict::Hit;
        }
        self.grow_ghosts();
        if list == OUT {
            self.place(GHOST, block);
            self.trim_ghosts();
            return Verdict::Bypass;
        }
        self.links.unlink(usize::from(GHOST), block);
        let full = self.size(CACHED) == self.capacity;
        let evicted = if full { self.drop_tail(CACHED) } else { None };
        self.place(CACHED, block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.links.tag(block) == CACHED
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.links.tag(block) != OUT
    }

    fn len(&self) -> u32 {
        self.size(CACHED)
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.size(CACHED) > capacity_blocks {
            evicted.extend(self.drop_tail(CACHED));
        }
        let c = f64::from(capacity_blocks);
        self.ghost_target = self.ghost_target.clamp(0.1 * c, 0.9 * c);
        self.trim_ghosts();
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let list = self.links.tag(block);
        if list != OUT {
            self.links.unlink(usize::from(list), block);
            *self.links.tag_mut(block) = OUT;
        }
        list == CACHED
    }

    fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) -> u32 {
        self.links.touch(block)
    }

    fn audit(&self) -> Result<(), String> {
        self.links.audit()?;
        let c = f64::from(self.capacity);
        if self.size(CACHED) > self.capacity {
            return Err(format!("{} blocks in a cache of {}", self.size(CACHED), self.capacity));
        }
        if !(0.1 * c..=0.9 * c).contains(&self.ghost_target) {
            return Err(format!("ghost target {} outside 0.1..0.9 of {c}", self.ghost_target));
        }
        // Hits lower the target at once; the queue follows at the next stranger.
        if f64::from(self.size(GHOST)) > (0.9 * c).max(1.0) {
            return Err(format!("{} ghosts in a cache of {c}", self.size(GHOST)));
        }
        for list in [OUT, CACHED, GHOST] {
            if let Some(b) = self.links.iter(list.into()).find(|b| self.links.tag(*b) != list) {
                return Err(format!("block {} of list {list} is tagged otherwise", b.0));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
