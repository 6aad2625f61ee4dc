//! CACHEUS: two experts, scan-resistant LRU and churn-resistant LFU, weighted by their regrets.
//!
//! For: workloads whose kind changes. Must never know: engines, tenants, requests. Source:
//! Rodriguez et al., "Learning cache replacement with CACHEUS", FAST'21: SR-LRU (two stacks whose
//! sizes follow hits of demoted blocks and returns of new ones), CR-LFU (of the lowest counts, the
//! one used last leaves), a weight per expert that falls at each return from its history of half
//! the cache, and an adaptive rate (`learning_rate.rs`). Where the paper leaves something open, the
//! authors' code (`sylab/cacheus`) decides: a block that returns keeps its count without this
//! access; a block on which both experts agree goes to no history; weights stay within 0.01 and
//! 0.99.
//!
//! Ours: in a cache of one block, which has no history, the reused block leaves if the other stack
//! is empty. After a change of capacity the limit of the stack of new blocks keeps its share. Unit:
//! blocks. Memory: 24 bytes per id, 16 per resident block; a hit costs O(log n).

mod blocks;
mod learning_rate;

use crate::entry::{Entry, Registered};
use crate::ghost_lists::OUT;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use blocks::{CacheusBlocks, LFU_HISTORY, LRU_HISTORY, REUSED, SCANNED};
use cachewright_types::{BlockId, Rng, Seed, declare};
use learning_rate::LearningRate;

declare! {
    /// How CACHEUS starts, and what it remembers.
    pub struct CacheusSettings {
        /// share of the cache for new and demoted blocks at first
        scanned_share: f64 = 0.01, "ratio", 0.0 ..= 1.0;
        /// blocks remembered per expert, as a share of the cache
        history: f64 = 0.5, "ratio", 0.0 ..= 1.0;
        /// weight of scan-resistant LRU at first
        lru_weight: f64 = 0.5, "ratio", 0.01 ..= 0.99;
    }
}

/// CACHEUS.
#[derive(Clone, Debug)]
pub struct Cacheus {
    blocks: CacheusBlocks,
    capacity: u32,
    /// The most blocks that are reused, and those that are not.
    reused_limit: u32,
    scanned_limit: u32,
    /// The capacity for which the limits are.
    divided: u32,
    history_blocks: u32,
    /// The weight of SR-LRU; that of CR-LFU is the rest.
    lru_weight: f64,
    rate: LearningRate,
    now: u64,
    rng: Rng,
    settings: CacheusSettings,
}

impl Cacheus {
    /// An expert regrets: its weight falls.
    #[inline(always)]
    fn regret(&mut self, of_lru: bool) {
        let factor = (-self.rate.get()).exp();
        let (lru, lfu) = (self.lru_weight, 1.0 - self.lru_weight);
        let (lru, lfu) = if of_lru { (lru * factor, lfu) } else { (lru, lfu * factor) };
        self.lru_weight = (lru / (lru + lfu)).clamp(0.01, 0.99);
    }

    /// A demoted block was hit: it should have stayed among the reused ones.
    #[inline(always)]
    fn grow_reused(&mut self) {
        let (demoted, new) = self.blocks.demoted_and_new();
        let step = rounded_share(new, demoted);
        self.reused_limit = (self.reused_limit + step).min(self.capacity - 1);
        self.scanned_limit = self.capacity - self.reused_limit;
    }

    /// A new block came back: it should have stayed longer. It is not in the history any more.
    #[inline(always)]
    fn grow_scanned(&mut self) {
        let (demoted, new) = self.blocks.demoted_and_new();
        let step = rounded_share(demoted, new);
        self.scanned_limit = (self.scanned_limit + step).min(self.capacity - 1);
        self.reused_limit = self.capacity - self.scanned_limit;
    }

    #[inline(always)]
    fn hit(&mut self, list: u8, block: BlockId) {
        self.rate.count_hit();
        if list == SCANNED {
            if self.blocks.is_new_or_demoted(block).1 {
                self.grow_reused();
            }
            if self.blocks.len(REUSED) >= self.reused_limit {
                self.blocks.demote();
            }
        }
        self.blocks.hit(block, self.now);
    }

    /// A block that an expert let go comes back.
    #[inline(always)]
    fn hit_in_history(&mut self, list: u8, block: BlockId) -> Option<BlockId> {
        let (is_new, _) = self.blocks.is_new_or_demoted(block);
        let count = self.blocks.recall(block);
        if list == LRU_HISTORY && is_new {
            self.grow_scanned();
        }
        self.regret(list == LRU_HISTORY);
        let evicted = self.evict_if_full();
        self.blocks.insert(REUSED, block, (count, false), self.now);
        self.demote_beyond(self.reused_limit.saturating_sub(1));
        evicted
    }

    #[inline(always)]
    fn miss(&mut self, block: BlockId) -> Option<BlockId> {
        let (reused, scanned) = (self.blocks.len(REUSED), self.blocks.len(SCANNED));
        if reused < self.reused_limit && scanned == 0 {
            self.blocks.insert(REUSED, block, (1, false), self.now);
            return None;
        }
        if reused + scanned < self.capacity && scanned < self.scanned_limit {
            self.blocks.insert(SCANNED, block, (1, false), self.now);
            return None;
        }
        let evicted = self.evict_if_full();
        self.blocks.insert(SCANNED, block, (1, true), self.now);
        self.demote_beyond(self.reused_limit.saturating_sub(1));
        evicted
    }

    #[inline(always)]
    fn evict_if_full(&mut self) -> Option<BlockId> {
        if self.blocks.resident() == self.capacity { self.evict() } else { None }
    }

    #[inline(always)]
    fn demote_beyond(&mut self, limit: u32) {
        while self.blocks.len(REUSED) > limit {
            self.blocks.demote();
        }
    }
}

/// A quotient, rounded, at least 1.
#[inline(always)]
fn rounded_share(part: u32, whole: u32) -> u32 {
    ((f64::from(part) / f64::from(whole.max(1)) + 0.5) as u32).max(1)
}

impl Registered for Cacheus {
    type Settings = CacheusSettings;
    const ENTRY: Entry = Entry {
        name: "cacheus",
        doc: "scan-resistant lru and churn-resistant lfu choose by weights that follow regrets",
        source: "Rodriguez et al., FAST'21",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &CacheusSettings, seed: Seed) -> Self {
        let mut policy = Cacheus {
            blocks: CacheusBlocks::default(),
            capacity: capacity_blocks,
            reused_limit: 0,
            scanned_limit: 0,
            divided: 0,
            history_blocks: 0,
            lru_weight: settings.lru_weight,
            rate: LearningRate::new(capacity_blocks),
            now: 0,
            rng: seed.derive("cacheus").rng(),
            settings: settings.clone(),
        };
        policy.on_capacity();
        policy
    }
}

impl PolicyHooks for Cacheus {}

impl StoredPolicy for Cacheus {
    stored_in!(blocks: CacheusBlocks);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.now += 1;
        self.rate.tick(&mut self.rng);
        let evicted = match self.blocks.list_of(block) {
            list @ (REUSED | SCANNED) => {
                self.hit(list, block);
                return Verdict::Hit;
            }
            OUT => self.miss(block),
            list => self.hit_in_history(list, block),
        };
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let by_lru = self.rng.unit() < self.lru_weight;
        let (lru, lfu) = (self.blocks.lru()?, self.blocks.lfu()?);
        let (victim, history) = if lru == lfu {
            (lru, None)
        } else if by_lru {
            (lru, Some(LRU_HISTORY))
        } else {
            (lfu, Some(LFU_HISTORY))
        };
        self.blocks.leave(victim, history);
        if let Some(history) = history {
            self.blocks.trim(history, self.history_blocks);
        }
        Some(victim)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(2 * self.history_blocks)
    }

    /// The stack of new blocks keeps its share of the cache, at least a block.
    fn on_capacity(&mut self) {
        self.history_blocks = (self.settings.history * f64::from(self.capacity)) as u32;
        self.rate.set_period(self.capacity);
        if self.capacity == 0 {
            return;
        }
        let share = match self.divided {
            0 => self.settings.scanned_share,
            divided => f64::from(self.scanned_limit) / f64::from(divided),
        };
        let blocks = (share * f64::from(self.capacity) + 0.5) as u32;
        self.scanned_limit = blocks.min(self.capacity - 1).max(1);
        self.reused_limit = self.capacity - self.scanned_limit;
        self.divided = self.capacity;
        self.demote_beyond(self.reused_limit);
    }

    fn trim_ghosts(&mut self) {
        self.blocks.trim(LRU_HISTORY, self.history_blocks);
        self.blocks.trim(LFU_HISTORY, self.history_blocks);
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.blocks.lru_after(later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        if self.capacity > 0 && self.reused_limit + self.scanned_limit != self.capacity {
            return Err(format!(
                "stacks of {} and {} in a cache of {}",
                self.reused_limit, self.scanned_limit, self.capacity
            ));
        }
        if !(0.01..=0.99).contains(&self.lru_weight) {
            return Err(format!("a weight of {}", self.lru_weight));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn stacks(cache: &Cacheus) -> [Vec<u32>; 4] {
        [REUSED, SCANNED, LRU_HISTORY, LFU_HISTORY]
            .map(|list| cache.blocks.iter(list).map(|block| block.0).collect())
    }

    fn run(cache: &mut Cacheus, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| cache.access(Access::read(BlockId(*id)))).collect()
    }

    /// Capacity 4, 1 for new blocks, histories of 2; newest first; LRU chooses almost always. 0 1 2
    /// fill the stack of reused blocks, 3 the other one. Blocks 0, 1 and 2 are hit. Block 4 is new:
    /// 3 is LRU's and LFU's choice (count 1) and goes to no history; the reused stack gives up 0,
    /// to stay below its limit. Block 5: LRU would drop 4, as would LFU, and so on. A hit on 0,
    /// demoted, makes the reused stack as large as may be, 3, and it has room for 0. Block 6: LRU
    /// chooses 5, alone in its stack, as does LFU; 1 is demoted. A hit on 6 makes its count 2, as
    /// those of 1 and 2; 6 was used last. Block 7: LRU drops 1, LFU would drop 6; 2 is demoted.
    /// Block 1 comes back, not new: LRU's weight falls, and LRU and LFU agree on 7.
    #[test]
    fn the_stacks_by_hand() {
        let settings = CacheusSettings { lru_weight: 0.99, ..Default::default() };
        let mut cache = Cacheus::new(4, &settings, Seed(0));
        cache.reserve_ids(8);
        run(&mut cache, &[0, 1, 2, 3]);
        assert_eq!(stacks(&cache), [vec![2, 1, 0], vec![3], vec![], vec![]]);
        let out = |id| Verdict::Admit { evicted: Some(BlockId(id)) };
        assert_eq!(run(&mut cache, &[0, 1, 2, 4])[3], out(3));
        assert_eq!(stacks(&cache), [vec![2, 1], vec![0, 4], vec![], vec![]]);
        assert_eq!(run(&mut cache, &[5]), [out(4)]);
        assert_eq!(stacks(&cache), [vec![2, 1], vec![5, 0], vec![], vec![]]);
        assert_eq!(run(&mut cache, &[0, 6]), [Verdict::Hit, out(5)]);
        assert_eq!((cache.reused_limit, cache.scanned_limit), (3, 1));
        assert_eq!(stacks(&cache), [vec![0, 2], vec![1, 6], vec![], vec![]]);
        run(&mut cache, &[6]);
        assert_eq!(stacks(&cache), [vec![6, 0, 2], vec![1], vec![], vec![]]);
        assert_eq!(run(&mut cache, &[7]), [out(1)]);
        assert_eq!(stacks(&cache), [vec![6, 0], vec![2, 7], vec![1], vec![]]);
        let weight = cache.lru_weight;
        assert_eq!(run(&mut cache, &[1]), [out(7)]);
        assert!(cache.lru_weight < weight, "{}", cache.lru_weight);
        assert_eq!(stacks(&cache), [vec![1, 6], vec![0, 2], vec![], vec![]]);
        assert_eq!(cache.audit(), Ok(()));
    }
}
