//! CACHEUS: two experts, scan-resistant LRU and churn-resistant LFU, weighted by their regrets.
//!
//! For: workloads whose kind changes. Source: Rodriguez et al., "Learning cache replacement with
//! CACHEUS", FAST'21: SR-LRU (two stacks whose sizes follow hits of demoted blocks and returns of
//! new ones), CR-LFU (of the lowest counts, the one used last leaves), a weight per expert that
//! falls at each return from its history of half the cache, and an adaptive rate
//! ([`LearningRate`]). Where the paper leaves something open, the authors' code (`sylab/cacheus`)
//! decides: a block that returns keeps its count without this access; a block on which both experts
//! agree goes to no history; weights stay within 0.01 and 0.99.
//!
//! Ours: in a cache of one block, which has no history, the reused block leaves if the other stack
//! is empty. After a change of capacity the limit of the stack of new blocks keeps its share. Unit:
//! blocks. Memory: 24 bytes per id, 16 per resident block; a hit costs O(log n).

use crate::ghost_lists::{GhostLists, OUT};
use crate::least_first::LeastFirst;
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Rng, Seed, declare};

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
#[derive(Clone, Debug, Snapshot)]
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
    #[snapshot(settings)]
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
        self.blocks.insert(REUSED, block, count, false, self.now);
        self.demote_beyond(self.reused_limit.saturating_sub(1));
        evicted
    }

    #[inline(always)]
    fn miss(&mut self, block: BlockId) -> Option<BlockId> {
        let (reused, scanned) = (self.blocks.len(REUSED), self.blocks.len(SCANNED));
        if reused < self.reused_limit && scanned == 0 {
            self.blocks.insert(REUSED, block, 1, false, self.now);
            return None;
        }
        if reused + scanned < self.capacity && scanned < self.scanned_limit {
            self.blocks.insert(SCANNED, block, 1, false, self.now);
            return None;
        }
        let evicted = self.evict_if_full();
        self.blocks.insert(SCANNED, block, 1, true, self.now);
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

const LOWEST: f64 = 0.001;
const HIGHEST: f64 = 1.0;
/// Periods of no gain after which the rate starts again.
const PATIENCE: u32 = 10;

/// The rate, and what the last periods said.
///
/// Source: Rodriguez et al., FAST'21, section 4.3 and Algorithm 4, with the authors' code
/// (`sylab/cacheus`) for what it leaves open: hit ratios and rates are compared after rounding to
/// three digits.
#[derive(Clone, Debug, SnapshotValue)]
struct LearningRate {
    rate: f64,
    initial: f64,
    /// The rates during the last period and the one before.
    current: f64,
    previous: f64,
    /// Accesses of a period, those of this one, and the hits among them.
    period: u32,
    elapsed: u32,
    hits: u32,
    hit_ratio_before: f64,
    /// Periods without a hit or with fewer hits, and those with fewer hits.
    idle_periods: u32,
    worse_periods: u32,
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1000.0).round() / 1000.0
}

impl LearningRate {
    /// The rate with the least regret over a period (`sqrt(2 ln 2 / period)`).
    pub fn new(period: u32) -> LearningRate {
        let rate = (2.0 * std::f64::consts::LN_2 / f64::from(period.max(1))).sqrt();
        LearningRate {
            rate,
            initial: rate.clamp(LOWEST, HIGHEST),
            current: rate,
            previous: 0.0,
            period: period.max(1),
            elapsed: 0,
            hits: 0,
            hit_ratio_before: 0.0,
            idle_periods: 0,
            worse_periods: 0,
        }
    }

    /// The rate now.
    #[inline(always)]
    pub fn get(&self) -> f64 {
        self.rate
    }

    /// Periods have so many accesses from now on.
    pub fn set_period(&mut self, period: u32) {
        self.period = period.max(1);
    }

    /// Counts a hit.
    #[inline(always)]
    pub fn count_hit(&mut self) {
        self.hits += 1;
    }

    /// An access begins; the last one of a period ends it before it is decided.
    #[inline(always)]
    pub fn tick(&mut self, rng: &mut Rng) {
        self.elapsed += 1;
        if self.elapsed >= self.period {
            self.end_period(rng);
        }
    }

    #[cold]
    fn end_period(&mut self, rng: &mut Rng) {
        let hit_ratio = rounded(f64::from(self.hits) / f64::from(self.elapsed));
        let gain = rounded(hit_ratio - self.hit_ratio_before);
        let change = rounded(self.current) - rounded(self.previous);
        let step = (self.rate * change).abs();
        if change * gain > 0.0 {
            self.rate = (self.rate + step).min(HIGHEST);
            (self.idle_periods, self.worse_periods) = (0, 0);
        } else if change * gain < 0.0 {
            self.rate = (self.rate - step).max(LOWEST);
            (self.idle_periods, self.worse_periods) = (0, 0);
        } else if gain <= 0.0 {
            self.without_direction(hit_ratio, gain, rng);
        }
        (self.previous, self.current) = (self.current, self.rate);
        self.hit_ratio_before = hit_ratio;
        (self.elapsed, self.hits) = (0, 0);
    }

    /// The rate did not change, or the hit ratio did not: start again, or try another rate.
    fn without_direction(&mut self, hit_ratio: f64, gain: f64, rng: &mut Rng) {
        let worse = u32::from(gain < 0.0);
        self.worse_periods += worse;
        self.idle_periods += worse + u32::from(hit_ratio <= 0.0 && gain == 0.0);
        if self.idle_periods >= PATIENCE {
            self.rate = self.initial;
            self.idle_periods = 0;
        } else if self.worse_periods >= PATIENCE && gain < 0.0 {
            self.rate = self.initial;
            self.worse_periods = 0;
        } else if gain < 0.0 {
            self.try_another(rng);
        }
    }

    fn try_another(&mut self, rng: &mut Rng) {
        self.rate = if self.rate >= HIGHEST {
            0.9
        } else if self.rate <= LOWEST {
            0.005
        } else if rng.below(2) == 0 {
            (self.rate * 1.25).min(HIGHEST)
        } else {
            (self.rate * 0.75).max(LOWEST)
        };
    }
}

/// Reused blocks (R in the paper, `s` in the authors' code), in order of use.
const REUSED: u8 = 1;
/// New and demoted blocks (SR in the paper, `q` in the code).
const SCANNED: u8 = 2;
/// Blocks that SR-LRU chose.
const LRU_HISTORY: u8 = 3;
/// Blocks that CR-LFU chose.
const LFU_HISTORY: u8 = 4;

/// A count stops here, so that it stands above the time in a key.
const MAX_COUNT: u32 = (1 << 24) - 1;
const TIME_BITS: u32 = 40;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct CountedBlock {
    count: u32,
    is_new: bool,
    is_demoted: bool,
}

/// The blocks; see the top of the file.
///
/// Every resident block stands in a stack and in the order of counts; one that has left stands in
/// the history of the expert that chose it.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct CacheusBlocks {
    lists: GhostLists<5, 2>,
    /// Resident blocks, the lowest count first and of equal counts the one used last.
    order: LeastFirst,
    blocks: Vec<CountedBlock>,
    /// Demoted blocks in [`SCANNED`].
    demoted: u32,
    /// New blocks in [`LRU_HISTORY`].
    new_in_history: u32,
}

impl CacheusBlocks {
    /// The list of a block, or [`OUT`].
    #[inline(always)]
    pub fn list_of(&self, block: BlockId) -> u8 {
        self.lists.list_of(block)
    }

    /// Blocks of a list.
    #[inline(always)]
    pub fn len(&self, list: u8) -> u32 {
        self.lists.len(list)
    }

    /// Demoted blocks that are resident, and new ones in the history of SR-LRU.
    #[inline(always)]
    pub fn demoted_and_new(&self) -> (u32, u32) {
        (self.demoted, self.new_in_history)
    }

    /// Whether a block counts as new, and whether as demoted.
    #[inline(always)]
    pub fn is_new_or_demoted(&self, block: BlockId) -> (bool, bool) {
        let CountedBlock { is_new, is_demoted, .. } = self.blocks[block.index()];
        (is_new, is_demoted)
    }

    /// Adds a block that is not tracked, or was just taken out of a history.
    #[inline(always)]
    pub fn insert(&mut self, list: u8, block: BlockId, count: u32, is_new: bool, now: u64) {
        self.blocks[block.index()] = CountedBlock { count, is_new, is_demoted: false };
        self.lists.push(list, block);
        self.order.set(block, key(count, now));
    }

    /// Counts a hit of a resident block, which becomes the newest of the reused ones.
    #[inline(always)]
    pub fn hit(&mut self, block: BlockId, now: u64) {
        let counted = &mut self.blocks[block.index()];
        counted.count = (counted.count + 1).min(MAX_COUNT);
        self.order.set(block, key(counted.count, now));
        self.demoted -= u32::from(std::mem::take(&mut counted.is_demoted));
        match self.lists.list_of(block) {
            REUSED => self.lists.refresh(REUSED, block),
            list => self.lists.transfer(list, REUSED, block),
        }
    }

    /// The least recently used of the reused blocks becomes the newest of the others.
    #[inline(always)]
    pub fn demote(&mut self) {
        if let Some(block) = self.lists.demote(REUSED, SCANNED) {
            self.blocks[block.index()].is_demoted = true;
            self.demoted += 1;
        }
    }

    /// The choice of SR-LRU.
    #[inline(always)]
    pub fn lru(&self) -> Option<BlockId> {
        self.lists.near_tail(SCANNED, 0).or_else(|| self.lists.near_tail(REUSED, 0))
    }

    /// The choice of CR-LFU.
    #[inline(always)]
    pub fn lfu(&self) -> Option<BlockId> {
        self.order.lowest().map(|(_, block)| block)
    }

    /// The block that [`CacheusBlocks::lru`] returns after so many others.
    #[inline(always)]
    pub fn lru_after(&self, later: u32) -> Option<BlockId> {
        self.lists.near_tail(SCANNED, later)
    }

    /// A resident block leaves for `history`, if there is one.
    #[inline(always)]
    pub fn leave(&mut self, block: BlockId, history: Option<u8>) {
        self.order.remove(block);
        let list = self.lists.list_of(block);
        self.lists.take(list, block);
        let counted = &mut self.blocks[block.index()];
        self.demoted -= u32::from(std::mem::take(&mut counted.is_demoted));
        if let Some(history) = history {
            self.new_in_history += u32::from(history == LRU_HISTORY && counted.is_new);
            self.lists.push(history, block);
        }
    }

    /// Takes a block out of its history; returns its count.
    #[inline(always)]
    pub fn recall(&mut self, block: BlockId) -> u32 {
        let list = self.lists.list_of(block);
        let counted = self.blocks[block.index()];
        self.new_in_history -= u32::from(list == LRU_HISTORY && counted.is_new);
        self.lists.take(list, block);
        counted.count
    }

    /// Forgets the oldest blocks of a history beyond a limit.
    #[inline(always)]
    pub fn trim(&mut self, history: u8, limit: u32) {
        while self.lists.len(history) > limit
            && let Some(block) = self.lists.near_tail(history, 0)
        {
            self.recall(block);
        }
    }

    /// The blocks of a list from newest to oldest.
    pub fn iter(&self, list: u8) -> impl Iterator<Item = BlockId> + '_ {
        self.lists.iter(list)
    }
}

/// The order of [`CacheusBlocks::lfu`]: time counts down.
#[inline(always)]
fn key(count: u32, now: u64) -> u64 {
    u64::from(count) << TIME_BITS | (TIME_MASK - (now & TIME_MASK))
}

impl BlockStore for CacheusBlocks {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.lists.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.lists.list_of(block) != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.lists.resident()
    }

    fn remove(&mut self, block: BlockId) -> bool {
        if self.contains(block) {
            self.leave(block, None);
            return true;
        }
        if self.tracks(block) {
            self.recall(block);
        }
        false
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.lists.reserve_ids(count, capacity, ghosts);
        self.order.reserve_ids(count, capacity, ghosts);
        lengthen(&mut self.blocks, count, CountedBlock::default());
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        ids.close_up(&mut self.blocks, 0);
        self.order.renumber(ids) && self.lists.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.lists.touch(block);
        self.order.touch(block);
        prefetch(&self.blocks, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.lists.audit(capacity)?;
        self.order.audit(capacity)?;
        if self.order.resident() != self.resident() {
            return Err(format!("{} of {} are ordered", self.order.resident(), self.resident()));
        }
        let is = |list, holds: fn(&CountedBlock) -> bool| {
            self.iter(list).filter(|block| holds(&self.blocks[block.index()])).count() as u32
        };
        let found = (is(SCANNED, |block| block.is_demoted), is(LRU_HISTORY, |block| block.is_new));
        if found != self.demoted_and_new() || is(REUSED, |block| block.is_demoted) > 0 {
            return Err(format!("{found:?} demoted and new, {:?} counted", self.demoted_and_new()));
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

    /// A period of 4: the rate starts at sqrt(2 ln 2 / 4) = 0.5887, before it was 0. A first period
    /// of 2 hits in 4: both rose, so the rate grows by 0.5887 x 0.589. The second one has no hits:
    /// the rate had risen and hits fell, so that it falls by the share 0.346, its last change.
    #[test]
    fn the_rate_follows_hits_by_hand() {
        let mut rng = Seed(0).rng();
        let mut rate = LearningRate::new(4);
        let first = (0.5 * std::f64::consts::LN_2).sqrt();
        assert_eq!(rate.get(), first);
        rate.count_hit();
        rate.count_hit();
        (0..4).for_each(|_| rate.tick(&mut rng));
        let second = first + first * 0.589;
        assert!((rate.get() - second).abs() < 1e-12, "{}", rate.get());
        (0..4).for_each(|_| rate.tick(&mut rng));
        let third = second - second * (0.935 - 0.589);
        assert!((rate.get() - third).abs() < 1e-12, "{}", rate.get());
        (0..400).for_each(|_| rate.tick(&mut rng));
        assert_eq!(rate.get(), first, "without hits it starts again");
    }
}
