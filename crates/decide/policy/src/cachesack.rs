//! `cachesack`: LRU whose misses are admitted by category, as costs of reads and writes weigh.
//!
//! For: a flash cache in which writes cost. Source: Yang, Wu, Cai et al., "CacheSack: Admission
//! Optimization for Google Datacenter Flash Caches", USENIX ATC 2022. Each category of traffic gets
//! one of four policies of admission: at every miss, at the second miss, when it is written, never.
//! A model of the cache, which keeps a block for a time after each use, says what each policy would
//! have cost and which space it would have taken, for a list of such times ([`CategoryTally`]). A
//! knapsack chooses ([`plan`]); at most one category goes two ways. Units: blocks, accesses, bytes.
//!
//! Beyond the paper: its categories are users and tables, which a block cache does not know. Here a
//! category is where the request lies (extents of the volume, hashed to `regions` groups), its
//! shape and whether it writes. The share of a category that goes another way is every so manieth
//! miss, so that nothing is drawn. Before the first plan every miss is admitted. What a block's
//! waits were is remembered for `ghosts` times the capacity. Ages wrap after 2^32 accesses.

use crate::links::Links;
use crate::rc_x::life::Shapes;
use crate::registry::{Entry, Need, Registered};
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, RequestInfo, Verdict};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, Bytes, Seed};

cachewright_types::declare! {
    /// What CacheSack weighs and remembers.
    pub struct CacheSackSettings {
        /// reads of a block from the backing device that a block written into the cache costs
        write_price: f64 = 0.1, "reads", 0.0 ..= 100.0;
        /// blocks remembered beyond the capacity, as a multiple of it
        ghosts: f64 = 2.0, "ratio", 0.0 ..= 16.0;
        /// accesses between two plans, as a multiple of the capacity
        every: f64 = 2.0, "capacities", 0.01 ..= 1000.0;
        /// groups of extents; 1 tells none apart
        regions: u32 = 16, "groups", 1 ..= 256;
        /// bytes of an extent
        extent: Bytes = Bytes(1 << 30), "bytes", 4096 ..= 1099511627776;
    }
}

/// Shapes of requests, reads and writes apart.
const KINDS: usize = 8;
/// The fewest accesses between two plans.
const MIN_EVERY: u64 = 1_000;
/// The lists: blocks in the cache by their last use, and what is remembered beyond them.
const CACHED: usize = 0;
const GHOSTS: usize = 1;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct SackState {
    last: u32,
    category: u16,
    presence: BlockPresence,
    /// The times that `presence` is of: those after so many changes of them.
    times: u8,
    /// 0 for a block of which nothing is known, else its list and 1.
    place: u8,
}

/// Blocks in the cache and remembered ones.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct SackLists {
    links: Links<SackState, 2>,
}

/// LRU with admission by category.
#[derive(Clone, Debug, Snapshot)]
pub struct CacheSack {
    lists: SackLists,
    capacity: u32,
    #[snapshot(settings)]
    settings: CacheSackSettings,
    shapes: Shapes,
    region: usize,
    now: u32,
    tallies: Vec<CategoryTally>,
    plan: AdmissionMemory,
}

/// The plan that holds, and when the next one is made.
#[derive(Clone, Debug, SnapshotValue)]
struct AdmissionMemory {
    retention: Retention,
    /// How often other times were tried than before; wraps.
    changes: u8,
    held: Option<AdmissionPlan>,
    /// By category: what remains of the shares of misses that went the base way.
    rests: Vec<f64>,
    left: u64,
}

impl AdmissionMemory {
    /// Whether a missed block of a category is admitted; `index` is of its last wait.
    fn admits(&mut self, category: usize, index: u8, write: bool) -> bool {
        let Some(plan) = &self.held else { return true };
        let AdmissionChoice { base, next, share } = plan.choices[category];
        let rest = &mut self.rests[category];
        *rest += share;
        let turns = *rest >= 1.0;
        *rest -= f64::from(u8::from(turns));
        match if turns { next } else { base } {
            None => false,
            Some(Way::Miss) => true,
            Some(Way::SecondMiss) => usize::from(index) <= plan.time,
            Some(Way::Write) => write,
        }
    }
}

impl Registered for CacheSack {
    type Settings = CacheSackSettings;
    const ENTRY: Entry = Entry {
        name: "cachesack",
        doc: "lru that admits each category at misses, second misses, writes or never, by cost",
        source: "Yang et al., CacheSack (ATC 2022)",
        needs: &[Need::Requests],
    };

    fn new(capacity_blocks: u32, settings: &CacheSackSettings, _: Seed) -> Self {
        let categories = KINDS * settings.regions as usize;
        CacheSack {
            lists: SackLists::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            shapes: Shapes::default(),
            region: 0,
            now: 0,
            tallies: vec![CategoryTally::default(); categories],
            plan: AdmissionMemory {
                retention: retention_grid(capacity_blocks),
                changes: 0,
                held: None,
                rests: vec![0.0; categories],
                left: every(capacity_blocks, settings.every),
            },
        }
    }
}

/// The times that are tried: the same for sizes of one power of two.
fn retention_grid(capacity_blocks: u32) -> Retention {
    Retention::new(capacity_blocks.checked_next_power_of_two().unwrap_or(u32::MAX))
}

/// Accesses until the next plan.
fn every(capacity_blocks: u32, factor: f64) -> u64 {
    ((f64::from(capacity_blocks) * factor) as u64).max(MIN_EVERY)
}

impl CacheSack {
    fn ghost_limit(&self) -> u32 {
        (f64::from(self.capacity) * self.settings.ghosts) as u32
    }

    fn category(&self, write: bool) -> usize {
        let shape = usize::from(self.shapes.class(None, write, 1) >> 5 & 3);
        (self.region * 4 + shape) * 2 + usize::from(write)
    }

    /// Makes the next plan from what was counted, and halves the counts.
    fn learn(&mut self) {
        let begun: f64 = self.tallies.iter().map(|tally| tally.begun).sum();
        let space = f64::from(self.capacity) * begun;
        let price = self.settings.write_price;
        self.plan.held = Some(plan(&self.tallies, &self.plan.retention, space, price));
        self.plan.left = every(self.capacity, self.settings.every);
        self.tallies.iter_mut().for_each(CategoryTally::halve);
    }

    /// Notes a use; returns the index of the wait that it ends.
    #[inline(always)]
    fn note(&mut self, access: Access) -> u8 {
        let category = self.category(access.write);
        let record = self.lists.links.tag_mut(access.block);
        let mut index = NEVER;
        if record.place > 0 {
            let wait = u64::from(self.now.wrapping_sub(record.last));
            index = self.plan.retention.index(wait);
            if record.times == self.plan.changes {
                let ended = &mut self.tallies[usize::from(record.category)];
                ended.end_wait(record.presence.from(), index, wait);
            } else {
                record.presence = BlockPresence::default();
            }
        }
        record.times = self.plan.changes;
        record.presence.note(index, access.write, &mut self.tallies[category]);
        (record.last, record.category) = (self.now, category as u16);
        index
    }

    /// A new time, and a new plan if it is due.
    #[inline(always)]
    fn step(&mut self) {
        self.now = self.now.wrapping_add(1);
        self.shapes.uses();
        self.plan.left -= 1;
        if self.plan.left == 0 {
            self.learn();
        }
    }

    fn admit(&mut self, block: BlockId) -> Verdict {
        let full = self.lists.resident() == self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.lists.push(CACHED, block);
        self.trim_ghosts();
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for CacheSack {
    #[inline(always)]
    fn on_request(&mut self, request: &RequestInfo) {
        self.shapes.next(request);
        let extent = request.offset / self.settings.extent.0;
        self.region = (mix(extent) % u64::from(self.settings.regions)) as usize;
    }
}

impl StoredPolicy for CacheSack {
    stored_in!(lists: SackLists);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.step();
        let index = self.note(access);
        let category = usize::from(self.lists.links.tag(block).category);
        if self.lists.contains(block) {
            self.lists.links.move_to_head(CACHED, block);
            return Verdict::Hit;
        }
        self.lists.take(block);
        if self.plan.admits(category, index, access.write) {
            return self.admit(block);
        }
        self.lists.push(GHOSTS, block);
        self.trim_ghosts();
        Verdict::Bypass
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let block = self.lists.links.pop_tail(CACHED)?;
        self.lists.push(GHOSTS, block);
        Some(block)
    }

    fn adopt_block(&mut self, block: BlockId, dirty: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.step();
        self.note(Access { write: dirty, ..Access::read(block) });
        self.lists.take(block);
        self.admit(block)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_limit())
    }

    fn on_capacity(&mut self) {
        self.plan.left = self.plan.left.min(every(self.capacity, self.settings.every));
        let retention = retention_grid(self.capacity);
        if retention != self.plan.retention {
            // Of other times nothing is known yet; the plan holds until the next one.
            self.plan.retention = retention;
            self.plan.changes = self.plan.changes.wrapping_add(1);
            self.tallies.fill(CategoryTally::default());
        }
    }

    fn trim_ghosts(&mut self) {
        let limit = self.ghost_limit();
        while self.lists.links.len(GHOSTS) > limit {
            let Some(block) = self.lists.links.pop_tail(GHOSTS) else { return };
            let record = std::mem::take(self.lists.links.tag_mut(block));
            let wait = u64::from(self.now.wrapping_sub(record.last));
            if record.times == self.plan.changes {
                let tally = &mut self.tallies[usize::from(record.category)];
                tally.end_wait(record.presence.from(), NEVER, wait);
            }
        }
    }

    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.lists.links.near_tail(CACHED, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let (ghosts, limit) = (self.lists.links.len(GHOSTS), self.ghost_limit());
        if ghosts > limit {
            return Err(format!("{ghosts} ghosts, expected at most {limit}"));
        }
        Ok(())
    }
}

impl SackLists {
    /// Puts a block that is in no list at the newest end of one.
    #[inline(always)]
    fn push(&mut self, list: usize, block: BlockId) {
        self.links.push_head(list, block);
        self.links.tag_mut(block).place = list as u8 + 1;
    }

    /// Takes a block out of its list, if it is in one; what is known of it stays.
    #[inline(always)]
    fn take(&mut self, block: BlockId) {
        let place = self.links.tag(block).place;
        if place > 0 {
            self.links.unlink(usize::from(place) - 1, block);
        }
    }
}

impl BlockStore for SackLists {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        usize::from(self.links.tag(block).place) == CACHED + 1
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.links.tag(block).place > 0
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.links.len(CACHED)
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        self.take(block);
        *self.links.tag_mut(block) = SackState::default();
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
        for list in [CACHED, GHOSTS] {
            let wrong = |block: &BlockId| usize::from(self.links.tag(*block).place) != list + 1;
            if let Some(block) = self.links.iter(list).find(wrong) {
                return Err(format!("block {} of list {list} is noted otherwise", block.0));
            }
        }
        if self.resident() > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.resident()));
        }
        Ok(())
    }
}
/// Times that are tried.
const TIMES: usize = 13;
/// The index of a wait that is longer than all times.
const NEVER: u8 = TIMES as u8;

/// The times that are tried in a cache of one size, in accesses, rising.
///
/// A cache that keeps a block for a time after each use is near to LRU of some size (Che's
/// approximation). The times tried lie half an octave apart, from a quarter of the capacity to 16
/// times that, in accesses.
#[derive(Clone, Debug, PartialEq, Eq, SnapshotValue)]
struct Retention {
    times: [u64; TIMES],
}

impl Retention {
    /// The times of a cache of so many blocks.
    pub fn new(capacity_blocks: u32) -> Retention {
        let time = |index| {
            let octaves = index as f64 / 2.0 - 2.0;
            (f64::from(capacity_blocks) * octaves.exp2()).ceil().max(1.0) as u64
        };
        Retention { times: std::array::from_fn(time) }
    }

    /// The first of the times in which a block would stay for so long; [`NEVER`] if none.
    #[inline(always)]
    pub fn index(&self, wait: u64) -> u8 {
        self.times.partition_point(|time| *time < wait) as u8
    }

    /// A time by its index.
    pub fn time(&self, index: usize) -> u64 {
        self.times[index]
    }
}

const CUTS: usize = TIMES + 1;

/// Ways to admit a missed block. Nothing of a category without a way is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
enum Way {
    /// Every missed block.
    Miss,
    /// A block missed before, not longer ago than the retention time.
    SecondMiss,
    /// A block that is written.
    Write,
}

/// All ways, by index.
const WAYS: [Way; 3] = [Way::Miss, Way::SecondMiss, Way::Write];

/// One way's waits: arrays by the first retention time that is long enough.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct WayTally {
    /// Waits that end in a hit from this time on.
    hits: [f64; CUTS],
    /// The lengths of these waits.
    held: [f64; CUTS],
    /// Change of the waits during which the block leaves, from this time on.
    cut: [f64; CUTS],
    /// Change of the blocks written into the cache, from this time on.
    written: [f64; CUTS],
}

/// All ways of one category.
///
/// A block that would be in the cache under a long retention time but not under a short one is
/// described by the first time under which it would ([`Retention`]). Counts halve with each plan,
/// so that the past is forgotten; halves of whole numbers are exact.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct CategoryTally {
    ways: [WayTally; WAYS.len()],
    /// Waits that have ended, by a use or as the block was forgotten.
    ended: f64,
    /// Waits that began.
    pub begun: f64,
}

/// What a way would have brought under one retention time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct WayOutcome {
    /// Blocks times accesses.
    pub space: f64,
    /// Blocks read from the backing device, and blocks written into the cache times their price.
    pub cost: f64,
}

impl CategoryTally {
    /// A wait has ended, for whose block each way had `from`, the first time under which it would
    /// have been in the cache.
    #[inline(always)]
    pub fn end_wait(&mut self, from: [u8; WAYS.len()], index: u8, length: u64) {
        self.ended += 1.0;
        for (way, from) in self.ways.iter_mut().zip(from) {
            let hit = from.max(index);
            way.hits[usize::from(hit)] += 1.0;
            way.held[usize::from(hit)] += length as f64;
            if from < index {
                way.cut[usize::from(from)] += 1.0;
                way.cut[usize::from(index)] -= 1.0;
            }
        }
    }

    /// A way would have written a block into the cache under the times `from..to`.
    #[inline(always)]
    pub fn write(&mut self, way: Way, from: u8, to: u8) {
        if from < to {
            let written = &mut self.ways[way as usize].written;
            written[usize::from(from)] += 1.0;
            written[usize::from(to)] -= 1.0;
        }
    }

    /// The outcome of each way under each time, and of no way.
    pub fn outcomes(
        &self,
        retention: &Retention,
        write_price: f64,
    ) -> [[WayOutcome; WAYS.len()]; TIMES] {
        let mut found = [[WayOutcome::default(); WAYS.len()]; TIMES];
        for (number, way) in self.ways.iter().enumerate() {
            let (mut hits, mut held, mut cut, mut written) = (0.0, 0.0, 0.0, 0.0);
            for (index, outcomes) in found.iter_mut().enumerate() {
                hits += way.hits[index];
                held += way.held[index];
                cut += way.cut[index];
                written += way.written[index];
                let space = held + cut * retention.time(index) as f64;
                outcomes[number] =
                    WayOutcome { space, cost: self.ended - hits + write_price * written };
            }
        }
        found
    }

    /// The outcome without admission.
    pub fn without(&self) -> WayOutcome {
        WayOutcome { space: 0.0, cost: self.ended }
    }

    /// Halves all counts.
    pub fn halve(&mut self) {
        for way in &mut self.ways {
            let arrays = [&mut way.hits, &mut way.held, &mut way.cut, &mut way.written];
            arrays.into_iter().flatten().for_each(|count| *count /= 2.0);
        }
        self.ended /= 2.0;
        self.begun /= 2.0;
    }
}

/// What is known of a block between two uses: the first retention time under which each way would
/// have it in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
struct BlockPresence {
    /// On its second miss.
    second: u8,
    /// On its last write.
    written: u8,
}

impl Default for BlockPresence {
    /// Of a block that was never used.
    fn default() -> BlockPresence {
        BlockPresence { second: NEVER, written: NEVER }
    }
}

impl BlockPresence {
    /// By way.
    #[inline(always)]
    pub fn from(self) -> [u8; WAYS.len()] {
        [0, self.second, self.written]
    }

    /// Notes a use after a wait of this index in the tally of the use's category.
    #[inline(always)]
    pub fn note(&mut self, index: u8, write: bool, tally: &mut CategoryTally) {
        tally.begun += 1.0;
        tally.write(Way::Miss, 0, index);
        tally.write(Way::SecondMiss, index, self.second);
        self.second = index;
        let missed = self.written.max(index);
        if write {
            tally.write(Way::Write, 0, missed);
        }
        self.written = if write { 0 } else { missed };
    }
}

/// What becomes of a category: a share of its misses goes one way, the rest another.
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
struct AdmissionChoice {
    /// The way of most steps of the hull that are taken whole; none admits nothing.
    pub base: Option<Way>,
    /// The way of the step that is taken in part.
    pub next: Option<Way>,
    /// The share of misses that go the way of `next`.
    pub share: f64,
}

/// Choices for all categories, and the retention time that they are made for.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
struct AdmissionPlan {
    /// By category.
    pub choices: Vec<AdmissionChoice>,
    /// An index of [`Retention`].
    pub time: usize,
}

/// A step up a category's hull.
#[derive(Clone, Copy, Debug)]
struct HullStep {
    category: usize,
    way: Way,
    space: f64,
    saving: f64,
}

/// The plan for a cache with so much space, in blocks times accesses. At a price of 0 all that is
/// written into the cache is free.
///
/// Source: Yang et al., CacheSack (ATC 2022), section 4: for each retention time a fractional
/// knapsack over the lower hulls of (space, cost), one per category; the time whose knapsack costs
/// least is taken.
fn plan(tallies: &[CategoryTally], retention: &Retention, space: f64, price: f64) -> AdmissionPlan {
    let outcomes: Vec<_> = tallies.iter().map(|tally| tally.outcomes(retention, price)).collect();
    let mut best: Option<(f64, AdmissionPlan)> = None;
    for time in 0..TIMES {
        let hull = |(category, outcomes): (usize, &[[WayOutcome; WAYS.len()]; TIMES])| {
            steps(category, tallies[category].without(), &outcomes[time])
        };
        let steps: Vec<HullStep> = outcomes.iter().enumerate().flat_map(hull).collect();
        let (saving, choices) = filled(steps, space, tallies.len());
        if best.as_ref().is_none_or(|(highest, _)| saving > *highest) {
            best = Some((saving, AdmissionPlan { choices, time }));
        }
    }
    best.map_or_else(|| AdmissionPlan { choices: Vec::new(), time: 0 }, |(_, plan)| plan)
}

/// The lower hull of a category's ways, from nothing admitted on, as long as it falls.
fn steps(category: usize, without: WayOutcome, ways: &[WayOutcome; WAYS.len()]) -> Vec<HullStep> {
    let mut found = Vec::new();
    let mut current = without;
    loop {
        // The steepest step; of steps as steep the longest.
        let mut steepest: Option<(f64, HullStep, WayOutcome)> = None;
        for (way, outcome) in WAYS.into_iter().zip(ways) {
            let (space, saving) = (outcome.space - current.space, current.cost - outcome.cost);
            if saving <= 0.0 || space < 0.0 {
                continue;
            }
            let slope = if space > 0.0 { saving / space } else { f64::INFINITY };
            let better = steepest.as_ref().is_none_or(|(highest, step, _)| {
                slope > *highest || slope == *highest && saving > step.saving
            });
            if better {
                steepest = Some((slope, HullStep { category, way, space, saving }, *outcome));
            }
        }
        let Some((_, step, outcome)) = steepest else { return found };
        found.push(step);
        current = outcome;
    }
}

/// The steps that fit, the steepest first; what they save, and the choices.
fn filled(mut steps: Vec<HullStep>, space: f64, categories: usize) -> (f64, Vec<AdmissionChoice>) {
    // Steps of one category are in falling order of slope: a stable order keeps them so.
    let slope =
        |step: &HullStep| if step.space > 0.0 { step.saving / step.space } else { f64::INFINITY };
    steps.sort_by(|first, second| slope(second).total_cmp(&slope(first)));
    let mut choices = vec![AdmissionChoice::default(); categories];
    let (mut left, mut saving) = (space, 0.0);
    for step in steps {
        let choice = &mut choices[step.category];
        if step.space <= left {
            left -= step.space;
            saving += step.saving;
            choice.base = Some(step.way);
            continue;
        }
        let share = left / step.space;
        saving += share * step.saving;
        (choice.next, choice.share) = (Some(step.way), share);
        break;
    }
    (saving, choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_by_hand() {
        let retention = Retention::new(100);
        assert_eq!([0, 2, 4, 6, 12].map(|index| retention.time(index)), [25, 50, 100, 200, 1600]);
        assert_eq!(
            [1, 25, 26, 36, 37, 1600].map(|wait| retention.index(wait)),
            [0, 0, 1, 1, 2, 12]
        );
        assert_eq!(retention.index(1601), NEVER);
        assert_eq!(Retention::new(1).time(0), 1);
    }

    /// A block is read, read again 30 accesses later, written 60 later and read 10 later; times
    /// are 25, 36, 50, 71 and so on.
    #[test]
    fn four_uses_by_hand() {
        let retention = Retention::new(100);
        let (mut tally, mut block) = (CategoryTally::default(), BlockPresence::default());
        block.note(NEVER, false, &mut tally);
        for (wait, write) in [(30, false), (60, true), (10, false)] {
            let index = retention.index(wait);
            tally.end_wait(block.from(), index, wait);
            block.note(index, write, &mut tally);
        }
        let found = tally.outcomes(&retention, 0.0);
        // Under 25: a hit after 10; else each stays for 25. Under 36: two hits. Under 71: all.
        let on_miss = [0, 1, 3].map(|index| (found[index][0].cost, found[index][0].space));
        assert_eq!(on_miss, [(2.0, 60.0), (1.0, 76.0), (0.0, 100.0)]);
        // Under 25 it is never missed twice in time before the last read, which hits nothing.
        assert_eq!((found[0][1].cost, found[0][1].space), (3.0, 0.0));
        // Under 71 it enters at the second use and is hit at the third and fourth.
        assert_eq!((found[3][1].cost, found[3][1].space), (1.0, 70.0));
        // It is written at the third use and hit at the fourth.
        assert_eq!((found[0][2].cost, found[0][2].space), (2.0, 10.0));
        // Blocks written at a price of 1: under 25 three, under 71 one; on second misses one.
        let priced = tally.outcomes(&retention, 1.0);
        assert_eq!(priced[0][0].cost - found[0][0].cost, 3.0);
        assert_eq!(priced[3][0].cost - found[3][0].cost, 1.0);
        assert_eq!(priced[3][1].cost - found[3][1].cost, 1.0);
        assert_eq!(tally.without(), WayOutcome { space: 0.0, cost: 3.0 });
        tally.halve();
        assert_eq!(tally.without().cost, 1.5);
    }

    fn outcome(space: f64, cost: f64) -> WayOutcome {
        WayOutcome { space, cost }
    }

    #[test]
    fn steps_are_the_lower_hull() {
        let without = outcome(0.0, 10.0);
        let hull = |ways| -> Vec<(Way, f64, f64)> {
            let steps = steps(0, without, &ways);
            steps.into_iter().map(|step| (step.way, step.space, step.saving)).collect()
        };
        // On second misses half of the space saves most of it.
        let ways = [outcome(10.0, 2.0), outcome(5.0, 4.0), outcome(1.0, 9.9)];
        assert_eq!(hull(ways), [(Way::SecondMiss, 5.0, 6.0), (Way::Miss, 5.0, 2.0)]);
        // What costs more than nothing admitted is never taken.
        let ways = [outcome(10.0, 12.0), outcome(5.0, 10.0), outcome(0.0, 9.0)];
        assert_eq!(hull(ways), [(Way::Write, 0.0, 1.0)]);
    }

    #[test]
    fn the_last_step_is_taken_in_part() {
        let step = |category, way, space, saving| HullStep { category, way, space, saving };
        let steps = vec![
            step(0, Way::Miss, 10.0, 10.0),
            step(1, Way::SecondMiss, 4.0, 8.0),
            step(1, Way::Miss, 8.0, 4.0),
        ];
        let (saving, choices) = filled(steps, 16.0, 3);
        assert_eq!(saving, 10.0 + 8.0 + 1.0);
        assert_eq!(choices[0], AdmissionChoice { base: Some(Way::Miss), next: None, share: 0.0 });
        let partly =
            AdmissionChoice { base: Some(Way::SecondMiss), next: Some(Way::Miss), share: 0.25 };
        assert_eq!(choices[1], partly);
        assert_eq!(choices[2], AdmissionChoice::default());
    }
}
