//! LRU: the block not used for the longest time leaves.
//!
//! For: the policy every other is measured against. Source: Mattson et al., IBM Systems Journal
//! 1970; the order of one list is its whole state. Unit: blocks. Memory: 8 bytes per id.

use crate::links::Links;
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// Least recently used.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Lru {
    links: Links<(), 1>,
    capacity: u32,
}

impl Registered for Lru {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "lru",
        doc: "evicts the block that was not used for the longest time",
        source: "Mattson et al., IBM Systems Journal 9(2), 1970",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Lru { links: Links::new(), capacity: capacity_blocks }
    }
}

impl PolicyHooks for Lru {}

impl StoredPolicy for Lru {
    stored_in!(links: Links<(), 1>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        if self.links.linked(access.block) {
            self.links.move_to_head(0, access.block);
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let evicted = if self.links.len(0) == self.capacity { self.evict() } else { None };
        self.links.push_head(0, access.block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.links.pop_tail(0)
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.links.near_tail(0, later)
    }
}

/// One list of resident blocks, most recently used first.
impl BlockStore for Links<(), 1> {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.linked(block)
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.len(0)
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.linked(block);
        if resident {
            self.unlink(0, block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        Links::reserve_ids(self, count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        Links::renumber(self, ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        Links::touch(self, block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        if self.len(0) > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.len(0)));
        }
        Links::audit(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

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
