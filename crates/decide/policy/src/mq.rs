//! MQ: a list for each power of two of a block's accesses; blocks that are not asked for in time
//! sink, and those that left keep their count for a while.
//!
//! For: caches below another cache, where the same block comes back after long gaps. Sources: Zhou,
//! Philbin, Li, "The Multi-Queue Replacement Algorithm for Second Level Buffer Caches", USENIX ATC
//! 2001; libCacheSim 0.3.5, MQ.c, for the order of steps. An access counts its block, puts it at
//! the new end of list min(log2(count), lists - 1), and lets it expire `lifetime` accesses later.
//! Then time passes, and the oldest block of each list, if it has expired, sinks to the new end of
//! the next lower list. The oldest block of the lowest list leaves; the history keeps its count.
//!
//! Departure: `lifetime` is a number of accesses, by default libCacheSim's 10,000. The paper sets
//! it to the temporal distance at which most accesses of the workload are, measured while it runs.
//! Unit: blocks. Memory: 20 bytes per id.

use crate::links::Links;
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Seed, declare};

/// The most lists of resident blocks.
const MAX_LISTS: u32 = 16;
/// The list of those that left.
const HISTORY: usize = MAX_LISTS as usize;

declare! {
    /// The lists of MQ, and for how long a block keeps its own; see the top of the file.
    pub struct MqSettings {
        /// lists of resident blocks
        lists: u32 = 8, "lists", 1 ..= 16;
        /// accesses after which a block that was not asked for sinks by one list
        lifetime: u32 = 10_000, "accesses", 1 ..= 1_000_000_000;
        /// blocks that have left whose counts are kept, as a share of the cache
        history: f64 = 4.0, "ratio", 0.0 ..= 64.0;
    }
}

/// Multi-Queue.
#[derive(Clone, Debug, Snapshot)]
pub struct Mq {
    lists: MqLists,
    capacity: u32,
    history_blocks: u32,
    /// Accesses so far, modulo 2^32.
    now: u32,
    #[snapshot(settings)]
    settings: MqSettings,
}

impl Mq {
    /// The list of a block that was accessed so often.
    #[inline(always)]
    fn list_for(&self, count: u32) -> usize {
        count.max(1).ilog2().min(self.settings.lists - 1) as usize
    }

    /// The paper's Adjust: a tick, after which the oldest block of each list sinks if it expired.
    #[inline(always)]
    fn adjust(&mut self) {
        self.now = self.now.wrapping_add(1);
        for list in 1..self.settings.lists as usize {
            let Some(block) = self.lists.oldest(list) else { continue };
            // No block waits for 2^31 accesses: one of each list sinks per access.
            if self.now.wrapping_sub(self.lists.expires(block)) as i32 > 0 {
                let expires = self.now.wrapping_add(self.settings.lifetime);
                self.lists.shift(block, list - 1, expires);
            }
        }
    }
}

impl Registered for Mq {
    type Settings = MqSettings;
    const ENTRY: Entry = Entry {
        name: "mq",
        doc: "a list per power of two of accesses; blocks sink in time, evicted ones keep counts",
        source: "Zhou, Philbin, Li, The Multi-Queue Replacement Algorithm, USENIX ATC 2001; \
                 libCacheSim 0.3.5, MQ.c",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &MqSettings, _: Seed) -> Self {
        let mut policy = Mq {
            lists: MqLists::default(),
            capacity: capacity_blocks,
            history_blocks: 0,
            now: 0,
            settings: settings.clone(),
        };
        policy.on_capacity();
        policy
    }
}

impl PolicyHooks for Mq {}

impl StoredPolicy for Mq {
    stored_in!(lists: MqLists);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        let was_resident = self.lists.contains(block);
        if !was_resident && self.capacity == 0 {
            return Verdict::Bypass;
        }
        let count = self.lists.take(block).saturating_add(1);
        let full = !was_resident && self.lists.resident() == self.capacity;
        let evicted = if full { self.evict() } else { None };
        let expires = self.now.wrapping_add(self.settings.lifetime);
        self.lists.put(block, self.list_for(count), count, expires);
        self.adjust();
        if was_resident { Verdict::Hit } else { Verdict::Admit { evicted } }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let victim = self.next_victim(0)?;
        self.lists.shift(victim, HISTORY, 0);
        self.trim_ghosts();
        Some(victim)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.history_blocks)
    }

    fn on_capacity(&mut self) {
        self.history_blocks = (self.settings.history * f64::from(self.capacity)) as u32;
    }

    fn trim_ghosts(&mut self) {
        while self.lists.links.len(HISTORY) > self.history_blocks {
            let Some(block) = self.lists.oldest(HISTORY) else { return };
            self.lists.take(block);
        }
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        let list = (0..HISTORY).find(|list| self.lists.links.len(*list) > 0)?;
        self.lists.links.near_tail(list, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let history = self.lists.links.len(HISTORY);
        if history > self.history_blocks {
            return Err(format!("{history} blocks in a history of {}", self.history_blocks));
        }
        Ok(())
    }
}

/// What is known of a block that is in a list.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct MqBlock {
    /// Accesses, or 0 of a block in no list.
    count: u32,
    /// When it sinks.
    expires: u32,
    list: u8,
}

/// The lists, and the history.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct MqLists {
    links: Links<MqBlock, { HISTORY + 1 }>,
    resident: u32,
}

impl MqLists {
    #[inline(always)]
    fn oldest(&self, list: usize) -> Option<BlockId> {
        self.links.tail(list)
    }

    #[inline(always)]
    fn expires(&self, block: BlockId) -> u32 {
        self.links.tag(block).expires
    }

    /// Takes a block out of its list, if it is in one; returns its count.
    #[inline(always)]
    fn take(&mut self, block: BlockId) -> u32 {
        let known = self.links.tag(block);
        if known.count > 0 {
            self.links.unlink(usize::from(known.list), block);
            self.resident -= u32::from(usize::from(known.list) < HISTORY);
            *self.links.tag_mut(block) = MqBlock::default();
        }
        known.count
    }

    /// Puts a block that is in no list at the new end of one.
    #[inline(always)]
    fn put(&mut self, block: BlockId, list: usize, count: u32, expires: u32) {
        self.links.push_head(list, block);
        self.resident += u32::from(list < HISTORY);
        *self.links.tag_mut(block) = MqBlock { count, expires, list: list as u8 };
    }

    /// Moves a block to the new end of another list.
    #[inline(always)]
    fn shift(&mut self, block: BlockId, list: usize, expires: u32) {
        let count = self.take(block);
        self.put(block, list, count, expires);
    }
}

impl BlockStore for MqLists {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        let known = self.links.tag(block);
        known.count > 0 && usize::from(known.list) < HISTORY
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.links.tag(block).count > 0
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.resident
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        self.take(block);
        resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
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

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.links.audit()?;
        for list in 0..=HISTORY {
            let elsewhere = |block: &BlockId| {
                let known = self.links.tag(*block);
                known.count == 0 || usize::from(known.list) != list
            };
            if let Some(block) = self.links.iter(list).find(elsewhere) {
                return Err(format!("block {} of list {list} is tagged otherwise", block.0));
            }
        }
        let resident: u32 = (0..HISTORY).map(|list| self.links.len(list)).sum();
        if resident != self.resident || resident > capacity {
            return Err(format!("{resident} blocks, {} counted, of {capacity}", self.resident));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    /// The lists from the lowest on, and the history; newest first.
    fn lists(cache: &Mq) -> [Vec<u32>; 4] {
        [0, 1, 2, HISTORY].map(|list| cache.lists.links.iter(list).map(|block| block.0).collect())
    }

    /// The block that each access evicts, or 0.
    fn run(cache: &mut Mq, ids: &[u32]) -> Vec<u32> {
        let evicted = |id: &u32| match cache.access(Access::read(BlockId(*id))) {
            Verdict::Admit { evicted } => evicted.map_or(0, |block| block.0),
            _ => 0,
        };
        ids.iter().map(evicted).collect()
    }

    /// Capacity 3, lifetime 4, a history of 3; newest first.
    ///
    /// 1 1 1 1 2 3: four accesses lift 1 to list 2, to expire at 3 + 4; now it is time 6. Block 4:
    /// 2 leaves; time 7, 1 has not expired. Block 2 comes back with its count of 1, now 2, to list
    /// 1: 3 leaves, and at time 8 block 1 sinks to list 1, behind which 2 came: list 1 is 1 2.
    /// Hits on 4, twice: 3 accesses, list 1. Block 5: the lowest list is empty, so 2, the oldest
    /// of list 1, leaves with its count of 2.
    #[test]
    fn lifetimes_and_history_by_hand() {
        let settings = MqSettings { lists: 3, lifetime: 4, history: 1.0 };
        let mut cache = Mq::new(3, &settings, Seed(0));
        cache.reserve_ids(8);
        run(&mut cache, &[1, 1, 1, 1, 2, 3]);
        assert_eq!(lists(&cache), [vec![3, 2], vec![], vec![1], vec![]]);
        assert_eq!(run(&mut cache, &[4]), [2]);
        assert_eq!(lists(&cache), [vec![4, 3], vec![], vec![1], vec![2]]);
        assert_eq!(run(&mut cache, &[2]), [3]);
        assert_eq!(lists(&cache), [vec![4], vec![1, 2], vec![], vec![3]]);
        assert_eq!(run(&mut cache, &[4, 4, 5]), [0, 0, 2]);
        assert_eq!(lists(&cache), [vec![5], vec![4, 1], vec![], vec![2, 3]]);
        assert_eq!(cache.lists.links.tag(BlockId(2)).count, 2);
        assert_eq!(cache.audit(), Ok(()));
    }
}
