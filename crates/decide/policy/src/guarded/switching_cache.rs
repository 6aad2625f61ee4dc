//! A cache whose rule can change: blocks stay where they are, and pass to the new rule one by one.
//!
//! For: `guarded`, its cache and its miniatures. Unit: blocks, accesses. Blocks of all rules lie in
//! one array of links, in two banks of levels; one bank belongs to the rule that runs, the other
//! holds what the rule before it has not handed over. Each access hands over a few blocks from the
//! newest end, to the oldest end of the new rule; room is made at the oldest end. So the order of
//! eviction survives, no access looks at more than a fixed number of blocks, and each block is in
//! one list. Blocks that left, or were not let in, are ghosts, as many as the cache has blocks; a
//! block's count outlasts rules and its time as a ghost. Memory: 12 bytes per id.

use crate::Verdict;
use crate::links::Links;
use crate::renumber::Renumbering;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::{BlockId, Rng, Seed};

/// A way to choose which block is let in and which leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
pub enum Rule {
    /// The block not used for the longest time leaves.
    Lru,
    /// Two lists, balanced by hits of ghosts: `arc`.
    Arc,
    /// A short queue before a main one: `s3-fifo`.
    Queues,
    /// Counts admit and evict: `access-frequency`, with counts to 31 and a lead of two.
    Frequency,
    /// Of missed blocks one of 32 is let in: bimodal insertion (Qureshi et al., ISCA'07, section
    /// 3), with the others kept out in place of entering at the oldest end, for flash.
    Bimodal,
}

/// All rules; the first runs at first.
pub const RULES: [Rule; 5] = [Rule::Lru, Rule::Arc, Rule::Queues, Rule::Frequency, Rule::Bimodal];

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
struct Mark {
    /// [`OUT`], a list of ghosts, or any list of the bank that holds the block; in a bank of
    /// counts the list follows from the count.
    list: u8,
    /// Accesses, after so many halvings, modulo 256.
    count: u8,
    halvings: u8,
    /// Hits since the block entered a queue, to [`MAX_USES`]; and [`SAMPLED`].
    bits: u8,
}

impl Mark {
    fn uses(self) -> u8 {
        self.bits & MAX_USES
    }
}

/// The list of a block that is in none.
const OUT: u8 = 0;
/// Ghosts: of newcomers, and of what was used again.
const RECENT: u8 = 1;
const FREQUENT: u8 = 2;
/// The first list of each bank, and its levels: counts to 31; T1 and T2; a short and a main queue.
const BANKS: [u8; 2] = [3, 3 + LEVELS];
const LEVELS: u8 = 32;
const LISTS: usize = 3 + 2 * LEVELS as usize;
const MAX_USES: u8 = 3;
const SAMPLED: u8 = 1 << 7;

/// Blocks handed over at each access.
const HANDED_PER_ACCESS: u32 = 8;
/// Hit blocks that one eviction of the queues spares at most.
const MAX_SPARED: u32 = 4096;
/// One of so many missed blocks is let in by [`Rule::Bimodal`] (paper: 1/32).
const BIMODAL: u64 = 32;
/// The short queue's share, and the hits that lead from it to the main one, as in `s3-fifo`.
const SMALL_SHARE: u32 = 10;
const PROMOTED_USES: u8 = 2;
/// Accesses between two halvings of all counts, in capacities, as in `access-frequency`.
const HALVE_EVERY: u64 = 16;
/// Every so many accesses some counts are brought up to date: none may miss 256 halvings.
const REFRESH: u64 = 64;

/// The blocks, under the rule that runs; see the top of the file.
#[derive(Clone, Debug, SnapshotValue)]
pub struct SwitchingCache {
    links: Links<Mark, LISTS>,
    capacity: u32,
    /// Whether blocks that left are remembered.
    has_ghosts: bool,
    /// Blocks forgotten since they were taken, where they are noted.
    forgotten: Vec<BlockId>,
    notes_forgotten: bool,
    /// The rules of the two banks, and the blocks that each holds.
    rules: [Rule; 2],
    held: [u32; 2],
    /// The bank of the rule that runs.
    now: usize,
    /// Blocks that `arc` would have in its first list.
    target: f64,
    halvings: u8,
    accesses_to_halving: u64,
    rng: Rng,
    /// The next id whose count is brought up to date, and the ids that there are.
    refreshed: u32,
    ids: u32,
}

impl SwitchingCache {
    /// An empty cache.
    pub fn new(capacity: u32, rule: Rule, has_ghosts: bool, seed: Seed) -> SwitchingCache {
        let mut cache = SwitchingCache {
            links: Links::new(),
            capacity,
            has_ghosts,
            forgotten: Vec::new(),
            notes_forgotten: false,
            rules: [rule; 2],
            held: [0; 2],
            now: 0,
            target: 0.0,
            halvings: 0,
            accesses_to_halving: 0,
            rng: seed.derive("bimodal").rng(),
            refreshed: 0,
            ids: 0,
        };
        cache.accesses_to_halving = cache.halving_interval();
        cache
    }

    /// The rule that runs.
    #[inline(always)]
    pub fn rule(&self) -> Rule {
        self.rules[self.now]
    }

    /// Whether blocks of the rule before are left to be handed over.
    #[inline(always)]
    pub fn is_handing_over(&self) -> bool {
        self.held[1 - self.now] > 0
    }

    /// Lets `rule` run from now on, with the target of another cache's `arc`, as a share of the
    /// capacity. Nothing may be left to be handed over. O(1).
    pub fn follow(&mut self, rule: Rule, target_share: f64) {
        debug_assert!(!self.is_handing_over(), "one rule hands over at a time");
        self.now = 1 - self.now;
        self.rules[self.now] = rule;
        self.target = target_share * f64::from(self.capacity);
    }

    /// The target of `arc`, as a share of the capacity.
    pub fn target_share(&self) -> f64 {
        self.target / f64::from(self.capacity.max(1))
    }

    /// Decides about one access.
    #[inline(always)]
    pub fn access(&mut self, block: BlockId) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.age();
        let mark = self.links.tag(block);
        let verdict = match bank_of(mark.list) {
            Some(bank) => {
                self.on_hit(block, mark, bank);
                Verdict::Hit
            }
            None => self.on_miss(block, mark, false),
        };
        if self.is_handing_over() {
            self.hand_over();
        }
        verdict
    }

    /// Takes in a block that is not held, whatever the rule says.
    pub fn adopt(&mut self, block: BlockId) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.on_miss(block, self.links.tag(block), true)
    }

    /// Blocks held.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.held[0] + self.held[1]
    }

    /// Blocks that may be held.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether the block is held.
    #[inline(always)]
    pub fn contains(&self, block: BlockId) -> bool {
        self.links.tag(block).list >= BANKS[0]
    }

    /// Whether the block is held or a ghost.
    #[inline(always)]
    pub fn tracks(&self, block: BlockId) -> bool {
        self.links.tag(block).list != OUT
    }

    /// Whether the block was marked as sampled.
    #[inline(always)]
    pub fn is_sampled(&self, block: BlockId) -> bool {
        self.links.tag(block).bits & SAMPLED != 0
    }

    /// Marks a block as sampled or not. The mark stays when the block leaves.
    pub fn set_sampled(&mut self, block: BlockId, sampled: bool) {
        let mark = self.links.tag_mut(block);
        mark.bits = mark.bits & MAX_USES | if sampled { SAMPLED } else { 0 };
    }

    /// Has blocks noted that are forgotten, for [`SwitchingCache::take_forgotten`].
    pub fn note_forgotten(&mut self) {
        self.notes_forgotten = true;
    }

    /// A block that was forgotten, by an access or by a call from outside. It may be back.
    #[inline(always)]
    pub fn take_forgotten(&mut self) -> Option<BlockId> {
        self.forgotten.pop()
    }

    /// Changes the capacity; what must leave is appended to `evicted`.
    pub fn resize(&mut self, capacity: u32, evicted: &mut Vec<BlockId>) {
        let share = self.target_share();
        self.capacity = capacity;
        self.target = share * f64::from(capacity);
        self.accesses_to_halving = self.accesses_to_halving.min(self.halving_interval());
        while self.len() > capacity {
            evicted.extend(self.evict(false));
        }
        self.trim_ghosts();
    }

    /// Forgets a block; returns whether it was held.
    pub fn remove(&mut self, block: BlockId) -> bool {
        let held = self.contains(block);
        if self.tracks(block) {
            self.forget(block);
        }
        held
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
        self.ids = self.ids.max(count as u32);
    }

    /// Gives the ids that are kept new numbers.
    pub fn renumber(&mut self, ids: &Renumbering) {
        self.links.renumber(ids);
        (self.refreshed, self.ids) = (0, ids.kept() as u32);
    }

    /// Loads a block's state ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    /// A block that is likely to leave after `later` others.
    pub fn leaves_after(&self, later: u32) -> Option<BlockId> {
        let bank = if self.is_handing_over() { 1 - self.now } else { self.now };
        let second = self.rules[bank] == Rule::Arc
            && f64::from(self.level_len(bank, 0)) <= self.target
            && self.level_len(bank, 1) > 0;
        let level = if second { Some(1) } else { self.lowest_level(bank) };
        self.links.near_tail(list_at(bank, level?), later)
    }

    /// Checks that each block is in the list that its mark says, and that all are counted.
    pub fn audit(&self) -> Result<(), String> {
        self.links.audit()?;
        for list in 0..LISTS {
            let astray = |block: &BlockId| self.list_of(self.links.tag(*block)) != list;
            if let Some(block) = self.links.iter(list).find(astray) {
                return Err(format!("block {} of list {list} is marked otherwise", block.0));
            }
        }
        for (bank, held) in self.held.into_iter().enumerate() {
            let count: u32 = (0..LEVELS).map(|level| self.level_len(bank, level)).sum();
            if count != held {
                return Err(format!("bank {bank}: {count} blocks, {held} counted"));
            }
        }
        let ghosts = self.ghosts();
        if self.len() > self.capacity || ghosts > self.ghost_limit() {
            return Err(format!("{} blocks and {ghosts} ghosts of {}", self.len(), self.capacity));
        }
        if !(0.0..=f64::from(self.capacity)).contains(&self.target) {
            return Err(format!("target {} in a cache of {}", self.target, self.capacity));
        }
        Ok(())
    }

    /// A block that is held was used.
    #[inline(always)]
    fn on_hit(&mut self, block: BlockId, mark: Mark, bank: usize) {
        let from = self.list_of(mark);
        let count = (self.count(mark) + 1).min(LEVELS - 1);
        let here = bank == self.now;
        let uses = if here { (mark.uses() + 1).min(MAX_USES) } else { 1 };
        let level = match self.rule() {
            Rule::Lru | Rule::Bimodal => 0,
            Rule::Frequency => count,
            Rule::Arc => 1,
            // A hit moves nothing in a queue.
            Rule::Queues if here => (from - list_at(bank, 0)) as u8,
            Rule::Queues => 1,
        };
        let to = list_at(self.now, level);
        if from != to {
            self.links.unlink(from, block);
            self.links.push_head(to, block);
            self.held[bank] -= 1;
            self.held[self.now] += 1;
        } else if self.rule() != Rule::Queues {
            self.links.move_to_head(to, block);
        }
        let (halvings, bits) = (self.halvings, mark.bits & SAMPLED | uses);
        *self.links.tag_mut(block) = Mark { list: to as u8, count, halvings, bits };
    }

    /// A block that is not held was used; `forced`: it is let in.
    #[inline(always)]
    fn on_miss(&mut self, block: BlockId, mark: Mark, forced: bool) -> Verdict {
        let count = (self.count(mark) + 1).min(LEVELS - 1);
        let full = self.len() >= self.capacity;
        let stays_out = match self.rule() {
            Rule::Bimodal => self.rng.below(BIMODAL) != 0,
            // By two: what was missed has this access in its count, what is held may have it next.
            Rule::Frequency => match self.lowest_count() {
                0 => count == 0,
                lowest => count <= lowest + 1,
            },
            _ => false,
        };
        if mark.list != OUT {
            self.links.unlink(usize::from(mark.list), block);
        }
        let outside = Mark { list: OUT, count, halvings: self.halvings, bits: mark.bits & SAMPLED };
        *self.links.tag_mut(block) = outside;
        if full && stays_out && !forced {
            self.remember(block, RECENT);
            return Verdict::Bypass;
        }
        if self.rule() == Rule::Arc {
            self.balance(mark.list);
        }
        let evicted = if full { self.evict(mark.list == FREQUENT) } else { None };
        let level = match self.rule() {
            Rule::Lru | Rule::Bimodal => 0,
            Rule::Frequency => count,
            Rule::Arc => u8::from(mark.list != OUT),
            Rule::Queues => {
                let overflows = !full && self.level_len(self.now, 0) >= self.small_blocks();
                u8::from(mark.list == RECENT || overflows)
            }
        };
        let list = list_at(self.now, level);
        self.links.push_head(list, block);
        self.links.tag_mut(block).list = list as u8;
        self.held[self.now] += 1;
        Verdict::Admit { evicted }
    }

    /// Moves the target of `arc` towards the list whose ghost came back; makes room for a ghost
    /// where a stranger comes. ARC, Fig. 4, cases II to IV; `ghost` is out of its list already.
    fn balance(&mut self, ghost: u8) {
        let ghosts =
            |list: u8| f64::from(self.links.len(usize::from(list)) + u32::from(list == ghost));
        let (recent, frequent) = (ghosts(RECENT), ghosts(FREQUENT));
        match ghost {
            RECENT => {
                let most = f64::from(self.capacity);
                self.target = (self.target + (frequent / recent).max(1.0)).min(most);
            }
            FREQUENT => self.target = (self.target - (recent / frequent).max(1.0)).max(0.0),
            // Twice: other rules leave more ghosts in this list than `arc` has.
            _ => (0..2).for_each(|_| {
                let recent = self.links.len(usize::from(RECENT));
                if recent > 0 && self.level_len(self.now, 0) + recent >= self.capacity {
                    self.forget_oldest(RECENT);
                }
            }),
        }
    }

    /// Makes room for one block. Blocks that are not handed over leave first.
    #[inline(always)]
    fn evict(&mut self, for_frequent: bool) -> Option<BlockId> {
        if self.is_handing_over() {
            return self.evict_from(1 - self.now, self.lowest_level(1 - self.now)?, RECENT);
        }
        match self.rule() {
            Rule::Arc => {
                let first = self.level_len(self.now, 0);
                let length = f64::from(first);
                let over = length > self.target || (for_frequent && length == self.target);
                let from_first = first > 0 && (over || self.level_len(self.now, 1) == 0);
                let (level, ghosts) = if from_first { (0, RECENT) } else { (1, FREQUENT) };
                self.evict_from(self.now, level, ghosts)
            }
            Rule::Queues => self.evict_unused(),
            _ => self.evict_from(self.now, self.lowest_level(self.now)?, RECENT),
        }
    }

    /// S3-FIFO: the short queue gives up what was not used in it, unless the main one is beyond its
    /// share; the main one spares what was used, which becomes its newest.
    fn evict_unused(&mut self) -> Option<BlockId> {
        let main_share = self.capacity.saturating_sub(self.small_blocks());
        let is_short = self.level_len(self.now, 1) <= main_share;
        let (small, main) = (list_at(self.now, 0), list_at(self.now, 1));
        for spared in 0.. {
            let from_small = (is_short || self.links.len(main) == 0) && self.links.len(small) > 0;
            let level = u8::from(!from_small);
            let Some(block) = self.links.tail(list_at(self.now, level)) else { break };
            let mark = self.links.tag(block);
            let least = if from_small { PROMOTED_USES } else { 1 };
            if mark.uses() < least || spared >= MAX_SPARED {
                let ghosts = if from_small { RECENT } else { FREQUENT };
                return self.evict_from(self.now, level, ghosts);
            }
            self.links.unlink(usize::from(mark.list), block);
            self.links.push_head(main, block);
            let uses = if from_small { 0 } else { mark.uses() - 1 };
            let bits = mark.bits & SAMPLED | uses;
            *self.links.tag_mut(block) = Mark { list: main as u8, bits, ..mark };
        }
        None
    }

    /// The oldest block of a level leaves and becomes a ghost.
    #[inline(always)]
    fn evict_from(&mut self, bank: usize, level: u8, ghosts: u8) -> Option<BlockId> {
        let block = self.links.pop_tail(list_at(bank, level))?;
        self.held[bank] -= 1;
        self.remember(block, ghosts);
        Some(block)
    }

    /// Hands some blocks over: from the top level's newest end to the oldest end of the rule that
    /// runs.
    fn hand_over(&mut self) {
        let old = 1 - self.now;
        for _ in 0..HANDED_PER_ACCESS {
            let top = (0..LEVELS).rev().find(|level| self.level_len(old, *level) > 0);
            let Some(from) = top.map(|level| list_at(old, level)) else { return };
            let Some(block) = self.links.head(from) else { return };
            let mark = self.links.tag(block);
            let count = self.count(mark);
            let level = match self.rule() {
                Rule::Lru | Rule::Bimodal => 0,
                Rule::Arc | Rule::Queues => u8::from(count >= 2),
                Rule::Frequency => count,
            };
            let to = list_at(self.now, level);
            self.links.unlink(from, block);
            self.links.push_tail(to, block);
            self.held[old] -= 1;
            self.held[self.now] += 1;
            let bits = mark.bits & SAMPLED;
            let halvings = self.halvings;
            *self.links.tag_mut(block) = Mark { list: to as u8, count, halvings, bits };
        }
    }

    /// Makes a ghost of a block that is in no list, if ghosts are kept.
    #[inline(always)]
    fn remember(&mut self, block: BlockId, ghosts: u8) {
        let mark = self.links.tag_mut(block);
        mark.bits &= SAMPLED;
        if !self.has_ghosts {
            *mark = Mark { bits: mark.bits, ..Mark::default() };
            self.forgotten.extend(self.notes_forgotten.then_some(block));
            return;
        }
        mark.list = ghosts;
        self.links.push_head(usize::from(ghosts), block);
        self.trim_ghosts();
    }

    fn trim_ghosts(&mut self) {
        while self.ghosts() > self.ghost_limit() {
            let frequent = self.links.len(usize::from(FREQUENT)) > 0;
            self.forget_oldest(if frequent { FREQUENT } else { RECENT });
        }
    }

    fn forget_oldest(&mut self, ghosts: u8) {
        if let Some(oldest) = self.links.tail(usize::from(ghosts)) {
            self.forget(oldest);
        }
    }

    /// Takes a block that is tracked out of its list.
    fn forget(&mut self, block: BlockId) {
        let mark = self.links.tag(block);
        self.links.unlink(self.list_of(mark), block);
        if let Some(bank) = bank_of(mark.list) {
            self.held[bank] -= 1;
        }
        *self.links.tag_mut(block) = Mark { bits: mark.bits & SAMPLED, ..Mark::default() };
        self.forgotten.extend(self.notes_forgotten.then_some(block));
    }

    fn ghosts(&self) -> u32 {
        self.links.len(usize::from(RECENT)) + self.links.len(usize::from(FREQUENT))
    }

    fn ghost_limit(&self) -> u32 {
        if self.has_ghosts { self.capacity } else { 0 }
    }

    fn small_blocks(&self) -> u32 {
        (self.capacity / SMALL_SHARE).max(1)
    }

    /// The count of the block that would leave next.
    fn lowest_count(&self) -> u8 {
        let bank = if self.is_handing_over() { 1 - self.now } else { self.now };
        let level = self.lowest_level(bank);
        let next = level.and_then(|level| self.links.tail(list_at(bank, level)));
        next.map_or(0, |block| self.count(self.links.tag(block)))
    }

    #[inline(always)]
    fn level_len(&self, bank: usize, level: u8) -> u32 {
        self.links.len(list_at(bank, level))
    }

    #[inline(always)]
    fn lowest_level(&self, bank: usize) -> Option<u8> {
        (0..LEVELS).find(|level| self.level_len(bank, *level) > 0)
    }

    /// The list in which a block is.
    #[inline(always)]
    fn list_of(&self, mark: Mark) -> usize {
        match bank_of(mark.list) {
            Some(bank) if self.rules[bank] == Rule::Frequency => list_at(bank, self.count(mark)),
            _ => usize::from(mark.list),
        }
    }

    /// The count of a block now.
    #[inline(always)]
    fn count(&self, mark: Mark) -> u8 {
        let missed = u32::from(self.halvings.wrapping_sub(mark.halvings));
        mark.count.checked_shr(missed).unwrap_or(0)
    }

    fn halving_interval(&self) -> u64 {
        (HALVE_EVERY * u64::from(self.capacity)).max(1)
    }

    /// Passes one access.
    #[inline(always)]
    fn age(&mut self) {
        self.accesses_to_halving = self.accesses_to_halving.saturating_sub(1);
        if self.accesses_to_halving.is_multiple_of(REFRESH) {
            self.refresh();
        }
        if self.accesses_to_halving == 0 {
            self.halve();
            self.accesses_to_halving = self.halving_interval();
        }
    }

    /// Halves all counts: lists of counts are joined whole.
    fn halve(&mut self) {
        self.halvings = self.halvings.wrapping_add(1);
        for bank in 0..BANKS.len() {
            if self.rules[bank] == Rule::Frequency {
                for level in 1..LEVELS {
                    self.links.append(list_at(bank, level), list_at(bank, level / 2));
                }
            }
        }
    }

    /// Brings counts of some blocks up to date, of all within a hundred halvings.
    #[cold]
    fn refresh(&mut self) {
        let share = u64::from(self.ids) * REFRESH / (100 * self.halving_interval());
        for _ in 0..=share.min(u64::from(self.ids)) {
            let block = BlockId(self.refreshed);
            if block.0 < self.ids {
                let mark = self.links.tag(block);
                let (count, halvings) = (self.count(mark), self.halvings);
                if mark.list != OUT {
                    *self.links.tag_mut(block) = Mark { count, halvings, ..mark };
                }
            }
            self.refreshed = if block.0 + 1 < self.ids { block.0 + 1 } else { 0 };
        }
    }
}

/// The bank of a list, if blocks in it are held.
#[inline(always)]
fn bank_of(list: u8) -> Option<usize> {
    if list < BANKS[0] { None } else { Some(usize::from(list >= BANKS[1])) }
}

#[inline(always)]
fn list_at(bank: usize, level: u8) -> usize {
    usize::from(BANKS[bank] + level)
}

#[cfg(test)]
mod tests;
