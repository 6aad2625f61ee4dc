//! LFU: the block hit least often since it came leaves; among equals, the one that has been at that
//! count longest.
//!
//! Counts are forgotten on eviction. Source: textbook; buckets of equal count in a list make it
//! O(1) (Shah, Mitra, Matani, 2010). Source of ageing: Robinson and Devarakonda, SIGMETRICS'90,
//! section 3: when the average count exceeds a limit, every count C becomes ceil(C/2). Blocks whose
//! counts become equal keep their order: the lower count leaves first.

use crate::count_buckets::CountBuckets;
use crate::registry::{Entry, PolicyVisitor, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::{BlockId, Seed, declare};

declare! {
    /// Whether and when counts are halved.
    pub struct LfuSettings {
        /// halve all counts when their average exceeds a limit
        aging: bool = false, "true or false";
        /// average count of the resident blocks above which all counts are halved
        average_limit: u32 = 10, "accesses per block", 2 ..= 1_000_000; applies "with `aging`";
    }
}

/// Least frequently used. `AGING`, a setting, is a parameter of the type: without it no access pays
/// for the counts that a halving needs.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Lfu<const AGING: bool> {
    blocks: CountBuckets<AGING>,
    capacity: u32,
    /// The average that triggers halving.
    average_limit: u32,
}

impl<const AGING: bool> Lfu<AGING> {
    /// Halves all counts when the average is beyond the limit. After that the average is below
    /// (limit + 1) / 2, so the next halving is about len * limit / 2 hits off.
    #[inline(always)]
    fn age(&mut self) {
        if self.blocks.counts() > u64::from(self.blocks.resident()) * u64::from(self.average_limit)
        {
            self.blocks.halve();
        }
    }
}

impl<const AGING: bool> Registered for Lfu<AGING> {
    type Settings = LfuSettings;
    const ENTRY: Entry = Entry {
        name: "lfu",
        doc: "evicts the block accessed least often since it was admitted",
        source: "textbook; O(1) form of Shah, Mitra, Matani, 2010; ageing of Robinson, \
                 Devarakonda, SIGMETRICS'90, section 3",
        needs: &[],
    };

    fn new(capacity: u32, settings: &LfuSettings, _: Seed) -> Self {
        Lfu { blocks: CountBuckets::default(), capacity, average_limit: settings.average_limit }
    }

    fn accept<V: PolicyVisitor>(settings: LfuSettings, visitor: V) -> V::Output {
        if settings.aging {
            visitor.visit::<Lfu<true>>(settings)
        } else {
            visitor.visit::<Lfu<false>>(settings)
        }
    }
}

impl<const AGING: bool> PolicyHooks for Lfu<AGING> {}

impl<const AGING: bool> StoredPolicy for Lfu<AGING> {
    stored_in!(blocks: CountBuckets<AGING>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let hit = self.blocks.contains(access.block);
        let mut evicted = None;
        if hit {
            self.blocks.raise(access.block);
        } else {
            if self.capacity == 0 {
                return Verdict::Bypass;
            }
            if self.blocks.resident() == self.capacity {
                evicted = self.evict();
            }
            self.blocks.insert(access.block);
        }
        if AGING {
            self.age();
        }
        if hit { Verdict::Hit } else { Verdict::Admit { evicted } }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.blocks.pop_lowest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    /// Capacity 3. After 1 2 3 1 2: counts 1:2, 2:2, 3:1. Block 4 takes 3. Block 5 takes 4. A hit
    /// raises 5 to 2; of 1, 2, 5, all at 2, block 1 has been there longest: 6 takes 1.
    #[test]
    fn ties_go_to_the_block_longest_at_its_count() {
        let mut lfu = Lfu::<false>::new(3, &LfuSettings::default(), Seed(0));
        lfu.reserve_ids(7);
        let mut step = |id| lfu.access(Access::read(BlockId(id)));
        for id in [1, 2, 3, 1, 2] {
            step(id);
        }
        assert_eq!(step(4), Verdict::Admit { evicted: Some(BlockId(3)) });
        assert_eq!(step(5), Verdict::Admit { evicted: Some(BlockId(4)) });
        assert_eq!(step(5), Verdict::Hit);
        assert_eq!(step(6), Verdict::Admit { evicted: Some(BlockId(1)) });
    }

    /// Capacity 2, limit 2. 1 is accessed three times: at the third the average 3 exceeds 2 and
    /// the count becomes 2. Block 2 comes in at 1, is hit to 2, and hit to 3: the average 2.5
    /// exceeds 2, so 1 falls to 1 and 2 to 2. Block 3 takes 1.
    #[test]
    fn halving_lets_old_fame_fade() {
        let settings = LfuSettings { aging: true, average_limit: 2 };
        let mut lfu = Lfu::<true>::new(2, &settings, Seed(0));
        lfu.reserve_ids(4);
        for id in [1, 1, 1, 2, 2, 2] {
            lfu.access(Access::read(BlockId(id)));
        }
        let mut counts = Vec::new();
        lfu.blocks.each(|block, count| counts.push((block, count)));
        assert_eq!(counts, [(1, 1), (2, 2)]);
        let verdict = lfu.access(Access::read(BlockId(3)));
        assert_eq!(verdict, Verdict::Admit { evicted: Some(BlockId(1)) });
    }
}
