//! Belady's MIN: the block whose next use lies furthest ahead leaves.
//!
//! For: the bound no policy beats. Source: Belady, IBM Systems Journal 5(2), 1966 (`belady`, which
//! takes in every block); Mattson et al., 1970 (`belady-bypass`, which leaves out a block that
//! would be the next to leave). Unit: positions in the stream of accesses.

use crate::far_first::FarFirst;
use crate::registry::{Entry, Need, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, NEVER, PolicyHooks, Verdict};
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// The next use stored for a block that is not in the cache. No access is the next one of an
/// earlier access at position 0, so no block in the cache has this.
const ABSENT: u32 = 0;

/// The blocks in the cache by their next uses.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct NextUses {
    /// Position of each block's next use, or [`ABSENT`].
    next_use: Vec<u32>,
    order: FarFirst,
    len: u32,
}

impl NextUses {
    /// Adds a block that is not in the cache.
    #[inline(always)]
    fn insert(&mut self, block: BlockId, next_use: u32) {
        self.next_use[block.index()] = next_use;
        self.len += 1;
        self.order.insert(next_use, block, &self.next_use, self.len);
    }

    /// If the block is in the cache, notes that its next use, which is now, has passed.
    #[inline(always)]
    fn advance(&mut self, block: BlockId, next_use: u32) -> bool {
        let known = self.next_use[block.index()];
        if known == ABSENT {
            return false;
        }
        self.order.pass(known);
        if known != next_use {
            self.next_use[block.index()] = next_use;
            self.order.insert(next_use, block, &self.next_use, self.len);
        }
        true
    }

    /// The furthest next use.
    #[inline(always)]
    fn furthest(&mut self) -> Option<u32> {
        self.order.furthest(&self.next_use).map(|(next_use, _)| next_use)
    }

    #[inline(always)]
    fn pop_furthest(&mut self) -> Option<BlockId> {
        let victim = self.order.furthest(&self.next_use)?.1;
        self.next_use[victim.index()] = ABSENT;
        self.order.pop_furthest();
        self.len -= 1;
        Some(victim)
    }
}

impl BlockStore for NextUses {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.next_use[block.index()] != ABSENT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.len
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let known = std::mem::replace(&mut self.next_use[block.index()], ABSENT);
        self.len -= u32::from(known != ABSENT);
        known != ABSENT
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        lengthen(&mut self.next_use, count, ABSENT);
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.next_use, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        if self.len > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.len));
        }
        let resident = self.next_use.iter().filter(|next| **next != ABSENT).count() as u32;
        if resident != self.len {
            return Err(format!("{resident} resident, {} counted", self.len));
        }
        self.order.audit(&self.next_use)
    }
}

/// Belady's MIN, with or without bypass.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Belady<const BYPASS: bool> {
    blocks: NextUses,
    capacity: u32,
}

impl<const BYPASS: bool> Belady<BYPASS> {
    fn empty(capacity: u32) -> Self {
        Belady { blocks: NextUses::default(), capacity }
    }
}

impl Registered for Belady<false> {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "belady",
        doc: "evicts the block used again last; every block is admitted",
        source: "Belady, IBM Systems Journal 5(2), 1966",
        needs: &[Need::Future],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Self::empty(capacity_blocks)
    }
}

impl Registered for Belady<true> {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "belady-bypass",
        doc: "belady, but a block used again later than all cached ones is not admitted",
        source: "Mattson et al., IBM Systems Journal 9(2), 1970",
        needs: &[Need::Future],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Self::empty(capacity_blocks)
    }
}

impl<const BYPASS: bool> PolicyHooks for Belady<BYPASS> {}

impl<const BYPASS: bool> StoredPolicy for Belady<BYPASS> {
    stored_in!(blocks: NextUses);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let next_use = access.future.next_use().max(ABSENT + 1);
        if self.blocks.advance(access.block, next_use) {
            return Verdict::Hit;
        }
        let full = self.blocks.resident() == self.capacity;
        if self.capacity == 0 || (BYPASS && full && next_use == NEVER) {
            return Verdict::Bypass;
        }
        if BYPASS && full && self.blocks.furthest().is_some_and(|furthest| furthest <= next_use) {
            return Verdict::Bypass;
        }
        let evicted = if full { self.evict() } else { None };
        self.blocks.insert(access.block, next_use);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.blocks.pop_furthest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Future, Policy};

    /// Capacity 2, blocks 1 2 3 1 2 3 1 with the next use beside each. Taking in 3 drives out 2,
    /// used at 4, after 1, used at 3. At 4 block 2 drives out 1 (6) and keeps 3 (5). At 6 block 1
    /// comes back.
    const STEPS: [(u32, u32); 7] =
        [(1, 3), (2, 4), (3, 5), (1, 6), (2, NEVER), (3, NEVER), (1, NEVER)];

    fn run<const BYPASS: bool>() -> Vec<Verdict> {
        let mut belady = Belady::<BYPASS>::empty(2);
        belady.reserve_ids(4);
        let access = |&(id, next_use): &(u32, u32)| Access {
            future: Future::NextUse(next_use),
            ..Access::read(BlockId(id))
        };
        STEPS.iter().map(|step| belady.access(access(step))).collect()
    }

    #[test]
    fn the_block_used_last_leaves() {
        let admit = |evicted: Option<u32>| Verdict::Admit { evicted: evicted.map(BlockId) };
        let verdicts = run::<false>();
        assert_eq!(verdicts[..4], [admit(None), admit(None), admit(Some(2)), Verdict::Hit]);
        assert_eq!(verdicts[4..6], [admit(Some(1)), Verdict::Hit]);
    }

    /// Block 3 would be used after both: it stays out, and 1 and 2 hit. Then nothing that is used
    /// never comes in.
    #[test]
    fn a_block_used_last_of_all_stays_out() {
        let (hit, bypass) = (Verdict::Hit, Verdict::Bypass);
        assert_eq!(run::<true>()[2..], [bypass, hit, hit, bypass, hit]);
    }
}
