//! LRU: the block not used for the longest time leaves.
//!
//! For: the policy every other is measured against. Source: Mattson et al., IBM Systems Journal
//! 1970; the order of one list is its whole state. Unit: blocks.

use crate::links::Links;
use crate::registry::{Entry, Registered};
use crate::{Access, Policy, Verdict};
use cachewright_types::settings::NoSettings;
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

    #[inline(always)]
    fn touch(&self, block: BlockId) -> u32 {
        self.links.touch(block)
    }

    fn audit(&self) -> Result<(), String> {
        if self.links.len(0) > self.capacity {
            return Err(format!("{} blocks in a cache of {}", self.links.len(0), self.capacity));
        }
        self.links.audit()
    }
}
