//! oc-smq: the multiqueue of OC-Cache, with a promote level, a hot level and two rooms.
//!
//! For: caches of which a tenant has one part to itself and shares another. Must never know:
//! engines, tenants, time, channels. Source: Wang et al., "OC-Cache" (oc-cache), sections II and
//! IV, on the stochastic multiqueue of Linux (see `smq`). A block held climbs one level per hit, at
//! most once per period of ten ticks; a block that is not held but was missed, or left, is
//! remembered and climbs one level per miss, at most once per tick; a tick is `tick` accesses.
//! Levels are evened out at the end of each period and tick. A missed block at the promote level or
//! above enters the cache: below the hot level with the shared bit, hence into the common room,
//! from the hot level on into its tenant's own. Files: `shelves` (lists), `thresholds` (both
//! levels), `rooms` (sizes), `place` (which room, which victim), `background` (demotion, cleaning,
//! migration), `pool` (how much is written into the common room).
//!
//! What the paper leaves open, and deviations. Levels are evened out over clean and dirty blocks of
//! both rooms together, because heat is compared across rooms. A block enters at the top of its
//! kind (the level below the hot one, or the highest), not where it stood among the missed: at the
//! bottom it would leave next. A block that leaves is remembered at the level it stood at. Space
//! that is free beyond the reserve is used by whoever comes. When none is, a hot newcomer takes the
//! place of a cold block of the own room, and one with the shared bit that of the colder of both
//! rooms' victims: it disturbs nobody in the own room, and no room keeps cold blocks while the
//! other gives up warm ones. Victims are clean blocks of the lower levels, else dirty ones, else
//! whatever is coldest; unlike `smq` it never turns a newcomer away for want of a victim, since the
//! write budget does. Promotion, demotion and migration happen at once in the eyes of this policy.
//! A write makes a block dirty whatever the engine's write mode. With one room all blocks are of
//! one kind. Unit: blocks.

mod background;
#[cfg(test)]
mod cases;
mod place;
mod pool;
mod rooms;
mod shelves;
mod thresholds;

use crate::entry::{Entry, Registered};
use crate::levels::LEVELS;
use crate::{Access, BackgroundOp, Policy, PolicyHooks, Region, RegionSizes, Verdict};
use background::Background;
use cachewright_types::{BlockId, Seed};
use pool::PoolWrites;
use rooms::Sizes;
use shelves::{Shelf, Shelves};
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
        /// share of the common room's blocks that may be hot before they are swapped; 1 for all
        hot_share: f64 = 0.2, "share", 0.0 ..= 1.0;
        /// blocks per second written into the common room, beyond which none is admitted; 0: none
        pool_writes: f64 = 0.0, "blocks/s", 0.0 ..= 1e9;
        /// pairs swapped after one request, at most
        swaps: u32 = 1, "pairs", 0 ..= 1e6;
    }
}

/// Ticks per period of the cache.
const PERIOD_TICKS: u32 = 10;
/// Blocks remembered however small the cache: with fewer than levels hardly any could climb.
const FEWEST_REMEMBERED: u32 = LEVELS as u32;

/// The multiqueue of OC-Cache.
#[derive(Clone, Debug)]
pub struct OcSmq {
    shelves: Shelves,
    sizes: Sizes,
    thresholds: Thresholds,
    background: Background,
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
        doc: "smq whose hot blocks lie in the tenant's own region, warm ones in the shared one",
        source: "Wang et al., OC-Cache",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &OcSmqSettings, _: Seed) -> Self {
        let mut policy = OcSmq {
            shelves: Shelves::new(),
            sizes: Sizes::new(capacity_blocks),
            thresholds: Thresholds::default(),
            background: Background::default(),
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
        self.tracks(block).then(|| self.shelves.tag(block).level)
    }

    /// Blocks held in a room.
    pub fn len_in(&self, room: Region) -> u32 {
        match room {
            Region::Any => self.shelves.held(),
            Region::Private => self.shelves.held_in(false),
            Region::Shared => self.shelves.held_in(true),
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
        self.sizes.capacity() - self.shelves.held()
    }

    /// Brings all that depends on the sizes of the rooms in line with them.
    fn fit(&mut self) {
        self.memory = self.part(self.settings.history).max(FEWEST_REMEMBERED);
        self.reserve = self.part(self.settings.free);
        self.shelves.forget_beyond(self.memory);
        self.thresholds.follow(&self.shelves, self.sizes.of(false));
    }

    /// The end of a tick and, every tenth time, of a period.
    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1).max(1);
        let budget = self.settings.budget * f64::from(self.settings.tick);
        self.thresholds.end_tick(budget as u32);
        self.shelves.even_out_missed();
        if (self.ticks - 1).is_multiple_of(PERIOD_TICKS) {
            self.period = self.period.wrapping_add(1).max(1);
            self.shelves.even_out();
            self.thresholds.follow(&self.shelves, self.sizes.of(false));
            self.plan_migration();
        }
        self.plan_cleaning();
    }

    fn remember(&mut self, block: BlockId, level: u8) {
        self.shelves.forget_beyond(self.memory - 1);
        self.shelves.remember(block, level);
    }

    /// A block held leaves and is remembered.
    fn leave(&mut self, block: BlockId) {
        let level = self.shelves.release(block);
        self.remember(block, level);
    }

    fn on_hit(&mut self, block: BlockId, write: bool, shelf: Shelf) {
        self.thresholds.hit();
        self.shelves.climb(block, self.period);
        if write && shelf.common {
            self.pool.written();
        }
        if write && !shelf.dirty {
            self.shelves.shift(block, Shelf { dirty: true, ..shelf });
        }
    }

    fn on_miss(&mut self, block: BlockId, write: bool) -> Verdict {
        let known = self.shelves.tracks(block);
        let level = if known { self.shelves.climb_missed(block, self.ticks) } else { 0 };
        if level < self.thresholds.promote {
            if !known {
                self.remember(block, 0);
            }
            return Verdict::Bypass;
        }
        let hot = level >= self.thresholds.hot;
        let (common, evicted) = self.place(hot);
        if common && !self.pool.allows() {
            if !known {
                self.remember(block, 0);
            }
            return Verdict::Bypass;
        }
        if known {
            self.shelves.forget(block);
        }
        if common {
            self.pool.written();
        }
        if let Some(victim) = evicted {
            self.leave(victim);
        }
        let top = if hot { LEVELS as u8 } else { self.thresholds.hot };
        self.shelves.hold(block, top - 1, Shelf { common, dirty: write });
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
        self.thresholds.follow(&self.shelves, self.sizes.of(false));
    }

    fn region(&self, block: BlockId) -> Region {
        match self.shelves.tag(block).shelf {
            Some(shelf) if shelf.common => Region::Shared,
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
        match self.shelves.tag(access.block).shelf {
            Some(shelf) => {
                self.on_hit(access.block, access.write, shelf);
                Verdict::Hit
            }
            None => self.on_miss(access.block, access.write),
        }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.shelves.tag(block).shelf.is_some()
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.shelves.tracks(block)
    }

    fn len(&self) -> u32 {
        self.shelves.held()
    }

    fn capacity(&self) -> u32 {
        self.sizes.capacity()
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.shrink(capacity_blocks, evicted);
        let [own, common] = [false, true].map(|room| self.shelves.held_in(room));
        self.sizes.resize(capacity_blocks, own, common);
        self.fit();
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let held = self.contains(block);
        if held {
            self.shelves.release(block);
        } else if self.tracks(block) {
            self.shelves.forget(block);
        }
        held
    }

    fn reserve_ids(&mut self, count: usize) {
        self.shelves.reserve_ids(count);
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) -> u32 {
        self.shelves.touch(block)
    }

    fn audit(&self) -> Result<(), String> {
        self.shelves.audit()?;
        for (common, name) in [(false, "own"), (true, "common")] {
            let (held, room) = (self.shelves.held_in(common), self.sizes.of(common));
            if held > room {
                return Err(format!("{held} blocks in the {name} room of {room}"));
            }
        }
        if self.shelves.missed() > self.memory {
            return Err(format!("{} blocks remembered of {}", self.shelves.missed(), self.memory));
        }
        let (promote, hot) = (self.promote_level(), self.hot_level());
        if usize::from(promote) >= LEVELS || usize::from(hot) > LEVELS {
            return Err(format!("promote level {promote}, hot level {hot}"));
        }
        Ok(())
    }
}
