//! oc-smq: the multiqueue of OC-Cache, with a promote level, a hot level and two regions.
//!
//! For: caches of which a tenant has one part to itself and shares another. Source: Wang et al.,
//! "OC-Cache" (oc-cache), sections II and IV, on the stochastic multiqueue of Linux (see `smq`). A
//! block held climbs one level per hit, at most once per period of ten ticks; a block that is not
//! held but was missed, or left, is remembered and climbs one level per miss, at most once per
//! tick; a tick is `tick` accesses. Levels are evened out at the end of each period and tick. A
//! missed block at the promote level or above enters the cache: below the hot level with the shared
//! bit, hence into the shared region, from the hot level on into the private region.
//!
//! What the paper leaves open, and deviations. Levels are evened out over clean and dirty blocks of
//! both regions together, because heat is compared across regions. A block enters at the top of its
//! kind (the level below the hot one, or the highest), not where it stood among the missed: at the
//! bottom it would leave next. A block that leaves is remembered at the level it stood at. Space
//! that is free beyond the reserve is used by any newcomer. Without such space, a hot newcomer
//! replaces a cold block of the private region. A newcomer with the shared bit replaces the colder
//! of both regions' victims, so that no region keeps cold blocks while the other evicts warm ones.
//! Victims are clean blocks of the lower levels, else dirty ones, else the coldest. Unlike `smq`,
//! no newcomer is rejected for want of a victim; the write budget rejects newcomers. Promotion,
//! demotion and migration take no time here. A write makes a block dirty whatever the engine's
//! write mode. With one region all blocks are of one kind. Unit: blocks.

mod level_lists;

use crate::levels::LEVELS;
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::{Access, BackgroundOp, Policy, PolicyHooks, Region, RegionSizes, Verdict};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Seed};
use level_lists::{LevelList, LevelLists};

cachewright_types::declare! {
    /// Periods, budgets and watermarks.
    pub struct OcSmqSettings {
        /// accesses that stand for one second
        tick: u32 = 1000, "accesses", 1 ..= 1e9;
        /// missed blocks remembered, as a multiple of the capacity
        history: f64 = 3.0, "ratio", 0.0 ..= 100.0;
        /// promotions per access, over a tick, beyond which the promote level rises
        budget: f64 = 0.2, "ratio", 0.0 ..= 1.0;
        /// share of the capacity kept free by demotion ahead of need
        free: f64 = 0.01, "share", 0.0 ..= 1.0;
        /// share of the capacity kept clean at low levels by write-back ahead of need
        clean: f64 = 0.0, "share", 0.0 ..= 1.0;
        /// blocks demoted or cleaned after one request, at most
        demotions: u32 = 4, "blocks", 0 ..= 1e6;
        /// share of the shared region's blocks that may be hot before they are swapped; 1 for all
        hot_share: f64 = 0.2, "share", 0.0 ..= 1.0;
        /// blocks per second written into the shared region, beyond which none is admitted; 0: none
        pool_writes: f64 = 0.0, "blocks/s", 0.0 ..= 1e9;
        /// pairs swapped after one request, at most
        swaps: u32 = 1, "pairs", 0 ..= 1e6;
    }
}

/// Ticks per period of the cache.
const PERIOD_TICKS: u32 = 10;
/// Blocks remembered however small the cache: with fewer than levels hardly any could climb.
const MIN_REMEMBERED: u32 = LEVELS as u32;

/// The multiqueue of OC-Cache.
#[derive(Clone, Debug, Snapshot)]
pub struct OcSmq {
    level_lists: LevelLists,
    sizes: RegionDivision,
    thresholds: Thresholds,
    background: RoundWork,
    pool: PoolWrites,
    #[snapshot(settings)]
    settings: OcSmqSettings,
    /// Blocks remembered at most.
    memory: u32,
    /// Blocks kept free.
    reserve: u32,
    accesses_to_tick: u32,
    /// Ticks so far, plus one.
    ticks: u32,
    /// Number of the period, from one.
    period: u32,
}

impl Registered for OcSmq {
    type Settings = OcSmqSettings;
    const ENTRY: Entry = Entry {
        name: "oc-smq",
        doc: "smq with hot blocks in the tenant's own region, warm ones in the shared one",
        source: "Wang et al., OC-Cache",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &OcSmqSettings, _: Seed) -> Self {
        let mut policy = OcSmq {
            level_lists: LevelLists::new(),
            sizes: RegionDivision::new(capacity_blocks),
            thresholds: Thresholds::default(),
            background: RoundWork::default(),
            pool: PoolWrites::new(settings.pool_writes),
            settings: settings.clone(),
            memory: 0,
            reserve: 0,
            accesses_to_tick: settings.tick,
            ticks: 1,
            period: 1,
        };
        policy.fit();
        policy
    }
}

impl OcSmq {
    /// The level from which on missed blocks enter the cache.
    pub fn promote_level(&self) -> u8 {
        self.thresholds.promote
    }

    /// The level from which on blocks are hot; 64 for none.
    pub fn hot_level(&self) -> u8 {
        self.thresholds.hot
    }

    /// The level of a block that is held or remembered.
    pub fn level(&self, block: BlockId) -> Option<u8> {
        self.tracks(block).then(|| self.level_lists.level(block))
    }

    /// Blocks held in a region.
    pub fn len_in(&self, region: Region) -> u32 {
        match region {
            Region::Any => self.level_lists.held(),
            Region::Private => self.level_lists.held_in(false),
            Region::Shared => self.level_lists.held_in(true),
        }
    }

    /// Pairs swapped so far.
    pub fn swaps(&self) -> u64 {
        self.background.swaps
    }

    /// Blocks demoted ahead of need so far.
    pub fn demotions(&self) -> u64 {
        self.background.demotions
    }

    /// Blocks cleaned ahead of need so far.
    pub fn cleanings(&self) -> u64 {
        self.background.cleanings
    }

    /// A share of the capacity, in whole blocks.
    fn part(&self, share: f64) -> u32 {
        (share * f64::from(self.sizes.capacity())) as u32
    }

    /// Blocks that could enter without any leaving.
    #[inline(always)]
    fn free(&self) -> u32 {
        self.sizes.capacity() - self.level_lists.held()
    }

    /// Brings all that depends on the sizes of the regions in line with them.
    fn fit(&mut self) {
        self.memory = self.part(self.settings.history).max(MIN_REMEMBERED);
        self.reserve = self.part(self.settings.free);
        self.level_lists.trim_remembered(self.memory);
        self.thresholds.follow(&self.level_lists, self.sizes.of(false));
    }

    /// The end of a tick and, every tenth time, of a period.
    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1).max(1);
        let budget = self.settings.budget * f64::from(self.settings.tick);
        self.thresholds.end_tick(budget as u32);
        self.level_lists.even_out_missed();
        if (self.ticks - 1).is_multiple_of(PERIOD_TICKS) {
            self.period = self.period.wrapping_add(1).max(1);
            self.level_lists.even_out();
            self.thresholds.follow(&self.level_lists, self.sizes.of(false));
            self.plan_migration();
        }
        self.plan_cleaning();
    }

    fn remember(&mut self, block: BlockId, level: u8) {
        self.level_lists.trim_remembered(self.memory - 1);
        self.level_lists.remember(block, level);
    }

    /// A block held leaves and is remembered.
    fn leave(&mut self, block: BlockId) {
        let level = self.level_lists.release(block);
        self.remember(block, level);
    }

    fn on_hit(&mut self, block: BlockId, write: bool, level_list: LevelList) {
        self.thresholds.hit();
        self.level_lists.climb(block, self.period);
        if write && level_list.shared {
            self.pool.written();
        }
        if write && !level_list.dirty {
            self.level_lists.shift(block, LevelList { dirty: true, ..level_list });
        }
    }

    fn on_miss(&mut self, block: BlockId, write: bool) -> Verdict {
        let known = self.level_lists.tracks(block);
        let level = if known { self.level_lists.take_missed(block, self.ticks) } else { 0 };
        let hot = level >= self.thresholds.hot;
        let promoted = level >= self.thresholds.promote;
        let place = promoted.then(|| self.place(hot));
        let Some((shared, evicted)) = place.filter(|(shared, _)| !shared || self.pool.allows())
        else {
            if known {
                self.level_lists.remember(block, level);
            } else {
                self.remember(block, 0);
            }
            return Verdict::Bypass;
        };
        if shared {
            self.pool.written();
        }
        if let Some(victim) = evicted {
            self.leave(victim);
        }
        let top = if hot { LEVELS as u8 } else { self.thresholds.hot };
        self.level_lists.hold(block, top - 1, LevelList { shared, dirty: write });
        self.thresholds.promoted();
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for OcSmq {
    fn clock(&mut self, now_ns: u64) {
        self.pool.clock(now_ns);
    }

    fn divide_regions(&mut self, sizes: RegionSizes, evicted: &mut Vec<BlockId>) {
        self.sizes.divide(sizes);
        self.fit();
        self.clear_out(evicted);
        self.thresholds.follow(&self.level_lists, self.sizes.of(false));
    }

    fn region(&self, block: BlockId) -> Region {
        match self.level_lists.tag(block).level_list {
            Some(level_list) if level_list.shared => Region::Shared,
            Some(_) => Region::Private,
            None => Region::Any,
        }
    }

    #[inline(always)]
    fn has_regions_or_background_ops() -> bool {
        true
    }

    #[inline(always)]
    fn background_op(&mut self) -> Option<BackgroundOp> {
        self.next_background_op()
    }
}

impl Policy for OcSmq {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.sizes.capacity() == 0 {
            return Verdict::Bypass;
        }
        self.accesses_to_tick -= 1;
        if self.accesses_to_tick == 0 {
            self.accesses_to_tick = self.settings.tick;
            self.tick();
        }
        match self.level_lists.tag(access.block).level_list {
            Some(level_list) => {
                self.on_hit(access.block, access.write, level_list);
                Verdict::Hit
            }
            None => self.on_miss(access.block, access.write),
        }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.level_lists.tag(block).level_list.is_some()
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.level_lists.tracks(block)
    }

    fn max_tracked(&self) -> u64 {
        u64::from(self.sizes.capacity()) + u64::from(self.memory) + 1
    }

    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        if self.sizes.capacity() == 0 {
            return Verdict::Bypass;
        }
        if self.level_lists.tracks(block) {
            self.level_lists.erase(block);
        }
        // Where the hot level is the lowest, every block is hot.
        let hot = self.thresholds.hot == 0;
        let (shared, evicted) = self.place(hot);
        if let Some(victim) = evicted {
            self.leave(victim);
        }
        let top = if hot { LEVELS as u8 } else { self.thresholds.hot };
        self.level_lists.hold(block, top - 1, LevelList { shared, dirty });
        Verdict::Admit { evicted }
    }

    fn len(&self) -> u32 {
        self.level_lists.held()
    }

    fn capacity(&self) -> u32 {
        self.sizes.capacity()
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.shrink(capacity_blocks, evicted);
        let [private, shared] = [false, true].map(|region| self.level_lists.held_in(region));
        self.sizes.resize(capacity_blocks, private, shared);
        self.fit();
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let held = self.contains(block);
        if held {
            self.level_lists.release(block);
        } else if self.tracks(block) {
            self.level_lists.erase(block);
        }
        held
    }

    fn reserve_ids(&mut self, count: usize) {
        self.level_lists.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.level_lists.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.level_lists.touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        self.level_lists.audit()?;
        for (shared, name) in [(false, "private"), (true, "shared")] {
            let (held, region) = (self.level_lists.held_in(shared), self.sizes.of(shared));
            if held > region {
                return Err(format!("{held} blocks in the {name} region of {region}"));
            }
        }
        if self.level_lists.missed() > self.memory {
            return Err(format!(
                "{} blocks remembered of {}",
                self.level_lists.missed(),
                self.memory
            ));
        }
        let (promote, hot) = (self.promote_level(), self.hot_level());
        if usize::from(promote) >= LEVELS || usize::from(hot) > LEVELS {
            return Err(format!("promote level {promote}, hot level {hot}"));
        }
        Ok(())
    }
}

/// Both levels and the counts that move them.
///
/// Wang et al. (oc-cache), section II, say only that both follow the workload; the rules are ours.
/// The promote level rises by one when the promotions of a tick exceed the write budget; otherwise
/// it falls by one when the tick had fewer hits than the one before. Ticks are equally long, so
/// hits compare as hit ratios do. The hot level is the lowest at which no more blocks stand, there
/// and above, than the tenant's private region holds.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct Thresholds {
    /// A missed block at this level or above enters the cache.
    pub promote: u8,
    /// A block at this level or above is hot.
    pub hot: u8,
    hits: u32,
    last_hits: u32,
    promotions: u32,
}

impl Thresholds {
    #[inline(always)]
    pub fn hit(&mut self) {
        self.hits += 1;
    }

    pub fn promoted(&mut self) {
        self.promotions += 1;
    }

    /// A tick has ended.
    pub fn end_tick(&mut self, budget_blocks: u32) {
        if self.promotions > budget_blocks {
            self.promote = (self.promote + 1).min(LEVELS as u8 - 1);
        } else if self.hits < self.last_hits {
            self.promote = self.promote.saturating_sub(1);
        }
        self.last_hits = self.hits;
        (self.hits, self.promotions) = (0, 0);
    }

    /// The populations of the levels, or the regions, have changed.
    pub fn follow(&mut self, level_lists: &LevelLists, private_blocks: u32) {
        let fits = |level: &usize| level_lists.held_from(*level) <= private_blocks;
        self.hot = (0..LEVELS).find(fits).unwrap_or(LEVELS) as u8;
    }
}

/// The regions as they are, and as they were last wanted.
///
/// They add up to the capacity whatever order resizes and divisions come in. A division is wanted
/// until the next one: a resize keeps its proportions as far as what is held allows, and comes back
/// to them as soon as it can.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct RegionDivision {
    wanted: RegionSizes,
    now: RegionSizes,
}

impl RegionDivision {
    /// One region of `capacity_blocks`, the tenant's own.
    pub fn new(capacity_blocks: u32) -> Self {
        let all_private = RegionSizes { private_blocks: capacity_blocks, shared_blocks: 0 };
        RegionDivision { wanted: all_private, now: all_private }
    }

    /// Both together.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.now.private_blocks + self.now.shared_blocks
    }

    /// One of them.
    #[inline(always)]
    pub fn of(&self, shared: bool) -> u32 {
        if shared { self.now.shared_blocks } else { self.now.private_blocks }
    }

    /// Whether both are there.
    pub fn both(&self) -> bool {
        self.now.private_blocks > 0 && self.now.shared_blocks > 0
    }

    /// Takes a division; the shared region gives way where both are more than can be counted.
    pub fn divide(&mut self, regions: RegionSizes) {
        let shared_blocks = regions.shared_blocks.min(u32::MAX - regions.private_blocks);
        self.wanted = RegionSizes { shared_blocks, ..regions };
        self.now = self.wanted;
    }

    /// The wanted proportions at another capacity.
    pub fn at(&self, capacity_blocks: u32) -> RegionSizes {
        let private = u64::from(self.wanted.private_blocks);
        let all = private + u64::from(self.wanted.shared_blocks);
        let part = (u64::from(capacity_blocks) * private + all / 2).checked_div(all);
        let private_blocks = part.map_or(capacity_blocks, |part| part as u32);
        RegionSizes { private_blocks, shared_blocks: capacity_blocks - private_blocks }
    }

    /// Resizes to the wanted proportions, or as near as lets what is held stay where it is.
    /// `capacity_blocks` holds it all.
    pub fn resize(&mut self, capacity_blocks: u32, private_held: u32, shared_held: u32) {
        let max_private = capacity_blocks - shared_held;
        let private_blocks =
            self.at(capacity_blocks).private_blocks.clamp(private_held, max_private);
        self.now = RegionSizes { private_blocks, shared_blocks: capacity_blocks - private_blocks };
    }
}
const NS_PER_S: f64 = 1e9;

/// What may still be written.
///
/// It keeps the pool from being accessed too intensively (Wang et al., section IV), in terms of
/// what its channels can write, not in accesses of the tenant. The paper names no rate; this is one
/// reading, off by default. A bucket of tokens: so many come in per second, those of a second at
/// most are kept. A new block needs one; a block rewritten there takes one whether or not there is
/// one, so that new blocks wait.
#[derive(Clone, Debug, SnapshotValue)]
struct PoolWrites {
    /// Blocks per second; 0 for any number.
    rate: f64,
    left: f64,
    /// The last time; none without a clock, and then there is no limit.
    now_ns: Option<u64>,
}

impl PoolWrites {
    pub fn new(rate: f64) -> PoolWrites {
        PoolWrites { rate, left: rate, now_ns: None }
    }

    /// It is `now_ns` now; never earlier than before.
    pub fn clock(&mut self, now_ns: u64) {
        let passed = self.now_ns.map_or(0, |before| now_ns.saturating_sub(before));
        self.left = (self.left + self.rate * passed as f64 / NS_PER_S).min(self.rate.max(1.0));
        self.now_ns = Some(now_ns);
    }

    /// Whether a new block may be written.
    pub fn allows(&self) -> bool {
        self.rate == 0.0 || self.now_ns.is_none() || self.left >= 1.0
    }

    /// A block is written; what is owed is that of a second at most.
    pub fn written(&mut self) {
        self.left = (self.left - 1.0).max(-self.rate);
    }
}

impl OcSmq {
    /// The region of a newcomer, and the block that leaves for it if both are full.
    ///
    /// A region with space is taken first, the fitting one before the other; but a hot newcomer
    /// leaves the shared region's last free blocks, those of the reserve, to others, as long as the
    /// private region has a cold block to give.
    fn place(&mut self, hot: bool) -> (bool, Option<BlockId>) {
        let shared = if self.sizes.both() { !hot } else { self.sizes.of(true) > 0 };
        let has_space = |shared| self.level_lists.held_in(shared) < self.sizes.of(shared);
        if has_space(shared) {
            return (shared, None);
        }
        let spill = has_space(!shared) && (shared || self.free() > self.reserve);
        if spill {
            return (!shared, None);
        }
        let shared_has_space = has_space(true);
        let [private, other] = [false, true].map(|region| self.cold_victim(region));
        let victim = match (self.sizes.both(), hot) {
            (false, _) => None,
            (true, true) if private.is_some() => private,
            (true, true) if shared_has_space => return (true, None),
            (true, true) => other,
            (true, false) => self.level_lists.colder(other, private),
        };
        let victim =
            victim.or_else(|| self.any_victim(shared)).or_else(|| self.any_victim(!shared));
        let region = victim.and_then(|block| self.level_lists.tag(block).level_list);
        (region.map_or(shared, |level_list| level_list.shared), victim)
    }

    /// The oldest clean cold block of the region's lower levels, else the oldest dirty cold one.
    fn cold_victim(&mut self, shared: bool) -> Option<BlockId> {
        let hot = usize::from(self.thresholds.hot);
        let clean =
            self.level_lists.oldest(LevelList { shared, dirty: false }, hot.min(SAFE_LEVEL));
        clean.or_else(|| self.level_lists.oldest(LevelList { shared, dirty: true }, hot))
    }

    /// The oldest clean block of the region's lower levels, else the oldest dirty one, else
    /// whatever is coldest.
    fn any_victim(&mut self, shared: bool) -> Option<BlockId> {
        let clean = self.level_lists.oldest(LevelList { shared, dirty: false }, SAFE_LEVEL);
        let dirty = || self.level_lists.oldest(LevelList { shared, dirty: true }, LEVELS);
        clean.or_else(dirty).or_else(|| self.level_lists.coldest(shared, LEVELS))
    }

    /// Blocks leave until `capacity_blocks` are enough, out of regions that hold more than their
    /// part of it, the coldest first.
    fn shrink(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        let regions = self.sizes.at(capacity_blocks);
        while self.level_lists.held() > capacity_blocks {
            let sizes = [(false, regions.private_blocks), (true, regions.shared_blocks)];
            let [private, shared] = sizes.map(|(shared, region)| {
                let over = self.level_lists.held_in(shared) > region;
                self.level_lists.coldest(shared, LEVELS).filter(|_| over)
            });
            let Some(victim) = self.level_lists.colder(shared, private) else { return };
            self.leave(victim);
            evicted.push(victim);
        }
    }

    /// The coldest blocks leave regions that have become too small.
    fn clear_out(&mut self, evicted: &mut Vec<BlockId>) {
        for shared in [false, true] {
            while self.level_lists.held_in(shared) > self.sizes.of(shared)
                && let Some(victim) = self.level_lists.coldest(shared, LEVELS)
            {
                self.leave(victim);
                evicted.push(victim);
            }
        }
    }
}

/// Levels below this one are low: their blocks leave first.
const SAFE_LEVEL: usize = LEVELS / 2;

/// What is due, and what has been done.
///
/// A round is all background work that is asked for after one request; it ends when there is
/// nothing more to do or when it has done as much as one round may (Wang et al., section IV).
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct RoundWork {
    /// Blocks demoted or cleaned in this round.
    pub moved: u32,
    /// Pairs swapped in this round.
    pub swapped: u32,
    /// Blocks to be cleaned before the tick ends.
    pub uncleaned: u32,
    /// More blocks of the shared region were hot than may be.
    pub migrating: bool,
    /// Since the beginning.
    pub demotions: u64,
    pub cleanings: u64,
    pub swaps: u64,
}

impl OcSmq {
    /// A tick has ended: how many low blocks are too few among the clean ones.
    fn plan_cleaning(&mut self) {
        let wanted = self.part(self.settings.clean);
        if wanted > 0 {
            self.background.uncleaned =
                wanted.saturating_sub(self.level_lists.clean_below(SAFE_LEVEL));
        }
    }

    /// A period has ended: whether the hot blocks of the shared region are too many.
    fn plan_migration(&mut self) {
        self.background.migrating = self.sizes.both() && self.too_hot();
    }

    /// Whether a larger share of the shared region is hot than may be.
    fn too_hot(&self) -> bool {
        let hot = self.level_lists.held_in_from(true, self.thresholds.hot.into());
        f64::from(hot) > self.settings.hot_share * f64::from(self.level_lists.held_in(true))
    }

    /// The next operation of this round.
    #[inline(always)]
    fn next_background_op(&mut self) -> Option<BackgroundOp> {
        let work = self.background;
        let short = self.free() < self.reserve;
        if !short && work.uncleaned == 0 && !work.migrating && work.moved + work.swapped == 0 {
            return None;
        }
        let mut op = None;
        if work.moved < self.settings.demotions {
            op = if short { self.demote() } else { self.clean() };
        }
        if op.is_none() && work.migrating && work.swapped < self.settings.swaps {
            op = self.swap();
        }
        if op.is_none() {
            (self.background.moved, self.background.swapped) = (0, 0);
        }
        op
    }

    /// The coldest low block leaves ahead of need.
    fn demote(&mut self) -> Option<BackgroundOp> {
        let [private, shared] =
            [false, true].map(|region| self.level_lists.coldest(region, SAFE_LEVEL));
        let block = self.level_lists.colder(shared, private)?;
        self.leave(block);
        self.background.moved += 1;
        self.background.demotions += 1;
        Some(BackgroundOp::Demote(block))
    }

    /// The coldest low dirty block is written back ahead of need.
    fn clean(&mut self) -> Option<BackgroundOp> {
        if self.background.uncleaned == 0 {
            return None;
        }
        self.background.uncleaned -= 1;
        let [private, shared] = [false, true]
            .map(|shared| self.level_lists.oldest(LevelList { shared, dirty: true }, SAFE_LEVEL));
        let Some(block) = self.level_lists.colder(shared, private) else {
            self.background.uncleaned = 0;
            return None;
        };
        let shared =
            self.level_lists.tag(block).level_list.is_some_and(|level_list| level_list.shared);
        self.level_lists.shift(block, LevelList { shared, dirty: false });
        self.background.moved += 1;
        self.background.cleanings += 1;
        Some(BackgroundOp::Clean(block))
    }

    /// The hottest block of the shared region and the coldest of the private one change places,
    /// until no more of the shared region is hot than may be or nothing cold is left to take its
    /// place.
    fn swap(&mut self) -> Option<BackgroundOp> {
        let hot_level = usize::from(self.thresholds.hot);
        let pair = self.level_lists.hottest(true, hot_level).filter(|_| self.too_hot());
        let Some((hot, cold)) = pair.zip(self.level_lists.coldest(false, hot_level)) else {
            self.background.migrating = false;
            return None;
        };
        self.change_region(hot);
        self.change_region(cold);
        self.background.swapped += 1;
        self.background.swaps += 1;
        Some(BackgroundOp::Swap(hot, cold))
    }

    fn change_region(&mut self, block: BlockId) {
        if let Some(level_list) = self.level_lists.tag(block).level_list {
            self.level_lists.shift(block, LevelList { shared: !level_list.shared, ..level_list });
        }
    }
}

#[cfg(test)]
mod tests;
