//! oc-smq: the multiqueue of OC-Cache, with a promote level, a hot level and two regions.
//!
//! For: caches of which a tenant has one part to itself and shares another. Must never know:
//! engines, tenants, time, channels. Source: Wang et al., "OC-Cache" (oc-cache), sections II and
//! IV, on the stochastic multiqueue of Linux (see `smq`). A block held climbs one level per hit, at
//! most once per period of ten ticks; a block that is not held but was missed, or left, is
//! remembered and climbs one level per miss, at most once per tick; a tick is `tick` accesses.
//! Levels are evened out at the end of each period and tick. A missed block at the promote level or
//! above enters the cache: below the hot level with the shared bit, hence into the shared region,
//! from the hot level on into the private region. Files: `level_lists`, `thresholds` (both levels),
//! `regions` (sizes), `place` (region and victim), `background` (demotion, cleaning, migration),
//! `pool` (write rate of the shared region).
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

mod background;
#[cfg(test)]
mod cases;
mod held_order;
mod level_lists;
mod place;
mod pool;
mod regions;
mod round;
mod thresholds;

use crate::entry::{Entry, Registered};
use crate::levels::LEVELS;
use crate::renumber::Renumbering;
use crate::{Access, BackgroundOp, Policy, PolicyHooks, Region, RegionSizes, Verdict};
use cachewright_types::{BlockId, Seed};
use held_order::LevelList;
use level_lists::LevelLists;
use pool::PoolWrites;
use regions::RegionDivision;
use round::RoundWork;
use thresholds::Thresholds;

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
#[derive(Clone, Debug)]
pub struct OcSmq {
    level_lists: LevelLists,
    sizes: RegionDivision,
    thresholds: Thresholds,
    background: RoundWork,
    pool: PoolWrites,
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
