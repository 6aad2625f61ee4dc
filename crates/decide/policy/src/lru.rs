//! LRU: the block not used for the longest time leaves.
//!
//! For: the policy every other is measured against. Source: Mattson et al., IBM Systems Journal
//! 1970; the order of one list is its whole state. Unit: blocks. Memory: 8 bytes per id.

use crate::entry::{Entry, Registered};
use crate::links::Links;
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// Least recently used.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links<(), 1>,
    capacity: u32,
}

impl Registered for Lru {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "lru",
        doc: "the block not used for the longest time leaves",
        source: "Mattson et al., IBM Systems Journal 9(2), 1970",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Lru { links: Links::new(), capacity: capacity_blocks }
    }
}

impl PolicyHooks for Lru {}

impl Policy for Lru {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.links.linked(access.block) {
            self.links.move_to_head(0, access.block);
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let evicted =
            if self.links.len(0) == self.capacity { self.links.pop_tail(0) } else { None };
        self.links.push_head(0, access.block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.links.linked(block)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.contains(block)
    }

    fn len(&self) -> u32 {
        self.links.len(0)
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.links.len(0) > capacity_blocks {
            evicted.extend(self.links.pop_tail(0));
        }
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.links.linked(block);
        if resident {
            self.links.unlink(0, block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.links.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    #[inline(always)]
    fn leaves_after(&self, later: u32) -> Option<BlockId> {
        self.links.near_tail(0, later)
    }

    fn audit(&self) -> Result<(), String> {
        if self.links.len(0) > self.capacity {
            return Err(format!("{} blocks in a cache of {}", self.links.len(0), self.capacity));
        }
        self.links.audit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity 2. 1 and 2 come in; the hit on 1 leaves 2 as the oldest, so 3 drives out 2; then
    /// 2 drives out 1.
    #[test]
    fn a_hit_makes_a_block_the_newest() {
        let mut lru = Lru::new(2, &NoSettings::default(), Seed(0));
        lru.reserve_ids(4);
        let mut step = |id| lru.access(Access::read(BlockId(id)));
        assert_eq!(step(1), Verdict::Admit { evicted: None });
        assert_eq!(step(2), Verdict::Admit { evicted: None });
        assert_eq!(step(1), Verdict::Hit);
        assert_eq!(step(3), Verdict::Admit { evicted: Some(BlockId(2)) });
        assert_eq!(step(2), Verdict::Admit { evicted: Some(BlockId(1)) });
    }
}
