//! SLRU: a block must be hit in the probationary segment to enter a protected one.
//!
//! For: scan resistance with one constant. Source: Karedla, Love, Wherry, "Caching strategies to
//! improve disk system performance", IEEE Computer 27(3), 1994: two segments; a miss enters the
//! probationary one, a hit moves to the newest end of the protected one, what overflows there
//! returns to the newest end of the probationary one, whose oldest block leaves. The paper leaves
//! the share of the protected segment open; 0.8 is what later papers take (W-TinyLFU, section 4).
//! More segments work alike, each a step of promotion. Unit: blocks; shares are rounded down.
//!
//! With `fill_upper` a block that comes into a cache that is not full enters the lowest segment
//! below its limit, as in libCacheSim (SLRU.c). With 4 segments of equal size its miss counts are
//! the same as there. Otherwise the upper segments start empty.

use crate::ghost_lists::{GhostLists, OUT};
use crate::registry::{Entry, Registered};
use crate::segmented::{MAX_SEGMENTS, Segmented};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Seed, declare};

declare! {
    /// The segments of SLRU.
    pub struct SlruSettings {
        /// segments; the lowest is the probationary one
        segments: u32 = 2, "segments", 2 ..= 8;
        /// share of the cache of all segments but the lowest, in equal parts
        protected_share: f64 = 0.8, "ratio", 0.0 ..= 1.0;
        /// a cache that is not full fills the lowest segment below its limit, as libCacheSim does
        fill_upper: bool = false, "true or false";
    }
}

/// The probationary segment; the others follow.
const LOWEST: u8 = 1;
const LISTS: usize = MAX_SEGMENTS + 1;
const RESIDENT: u8 = MAX_SEGMENTS as u8;

/// Segmented least recently used.
#[derive(Clone, Debug, Snapshot)]
pub struct Slru {
    lists: GhostLists<LISTS, RESIDENT>,
    capacity: u32,
    segmented: Segmented,
    #[snapshot(settings)]
    settings: SlruSettings,
}

impl Slru {
    /// The segment that a new block enters.
    #[inline(always)]
    fn entrance(&self) -> u8 {
        if !self.settings.fill_upper {
            return LOWEST;
        }
        let upper = self.settings.segments as u8;
        let lowest_blocks = self.capacity - (upper as u32 - 1) * self.segmented.limit(upper);
        let has_space = |list: &u8| {
            let limit = if *list == LOWEST { lowest_blocks } else { self.segmented.limit(*list) };
            self.lists.len(*list) < limit
        };
        (LOWEST..=upper).find(has_space).unwrap_or(LOWEST)
    }
}

impl Registered for Slru {
    type Settings = SlruSettings;
    const ENTRY: Entry = Entry {
        name: "slru",
        doc: "lru in segments: a hit moves a block one segment up, the lowest one evicts its \
              oldest",
        source: "Karedla, Love, Wherry, IEEE Computer 27(3), 1994",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &SlruSettings, _: Seed) -> Self {
        let mut policy = Slru {
            lists: GhostLists::default(),
            capacity: capacity_blocks,
            segmented: Segmented::new(LOWEST, settings.segments as u8),
            settings: settings.clone(),
        };
        policy.on_capacity();
        policy
    }
}

impl PolicyHooks for Slru {}

impl StoredPolicy for Slru {
    stored_in!(lists: GhostLists<LISTS, RESIDENT>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        let list = self.lists.list_of(block);
        if list != OUT {
            self.segmented.hit(&mut self.lists, list, block);
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let evicted = if self.lists.resident() == self.capacity { self.evict() } else { None };
        let list = self.entrance();
        self.lists.push(list, block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.segmented.pop(&mut self.lists)
    }

    fn on_capacity(&mut self) {
        let protected = self.settings.protected_share * f64::from(self.capacity);
        // Forgives the last bits of a product such as 0.7 * 10.
        let each = (protected / f64::from(self.settings.segments - 1) + 1e-6) as u32;
        self.segmented.limit_upper(each);
        self.segmented.sink_all(&mut self.lists);
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.lists.near_tail(LOWEST, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        self.segmented.audit(&self.lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn segments(cache: &Slru) -> Vec<Vec<u32>> {
        let blocks = |list| cache.lists.iter(list).map(|block| block.0).collect();
        (LOWEST..=cache.settings.segments as u8).map(blocks).collect()
    }

    fn run(cache: &mut Slru, ids: &[u32]) -> Vec<Verdict> {
        cache.reserve_ids(16);
        ids.iter().map(|id| cache.access(Access::read(BlockId(*id)))).collect()
    }

    fn out(id: u32) -> Verdict {
        Verdict::Admit { evicted: Some(BlockId(id)) }
    }

    /// Capacity 4, 2 protected; newest first. 0 1 2 come in and are probationary: 2 1 0. Hits on 0
    /// and 1 protect both: 2 | 1 0. A hit on 2 protects it, and 0 sinks: 0 | 2 1. 3 and 4 fill up
    /// and take 0, the oldest on probation: 4 3 | 2 1. A hit on 3 sinks 1: 1 4 | 3 2, so that 5
    /// takes 4: 5 1 | 3 2.
    #[test]
    fn the_papers_two_segments_by_hand() {
        let settings = SlruSettings { protected_share: 0.5, ..Default::default() };
        let mut cache = Slru::new(4, &settings, Seed(0));
        run(&mut cache, &[0, 1, 2, 0, 1]);
        assert_eq!(segments(&cache), [vec![2], vec![1, 0]]);
        run(&mut cache, &[2]);
        assert_eq!(segments(&cache), [vec![0], vec![2, 1]]);
        let none = Verdict::Admit { evicted: None };
        assert_eq!(run(&mut cache, &[3, 4]), [none, out(0)]);
        assert_eq!(segments(&cache), [vec![4, 3], vec![2, 1]]);
        assert_eq!(run(&mut cache, &[3, 5]), [Verdict::Hit, out(4)]);
        assert_eq!(segments(&cache), [vec![5, 1], vec![3, 2]]);
    }

    /// Capacity 6, 3 segments of 2. 0 to 5 fill them from the lowest up. 6 takes 0. A hit on 1
    /// lifts it to the middle, whose oldest, 2, sinks. A smaller cache of 3, 1 in each upper one:
    /// 4 sinks to the middle and 4, 3, 1 from there, the newest last; then 6, 2 and 3 leave.
    #[test]
    fn libcachesims_segments_by_hand() {
        let settings = SlruSettings { segments: 3, protected_share: 2.0 / 3.0, fill_upper: true };
        let mut cache = Slru::new(6, &settings, Seed(0));
        run(&mut cache, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(segments(&cache), [vec![1, 0], vec![3, 2], vec![5, 4]]);
        assert_eq!(run(&mut cache, &[6, 1]), [out(0), Verdict::Hit]);
        assert_eq!(segments(&cache), [vec![2, 6], vec![1, 3], vec![5, 4]]);
        let mut evicted = Vec::new();
        cache.resize(3, &mut evicted);
        assert_eq!(segments(&cache), [vec![1], vec![4], vec![5]]);
        assert_eq!(evicted, [6, 2, 3].map(BlockId));
    }
}
