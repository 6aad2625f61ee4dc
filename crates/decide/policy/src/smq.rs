//! smq: the stochastic multiqueue of Linux's dm-cache, in pure form.
//!
//! For: comparing with what Linux ships. Source: `drivers/md/dm-cache-policy-smq.c` of the mainline
//! kernel (since 4.12). Three queues of 64 levels: missed regions (the hotspot queue), clean
//! blocks, dirty blocks. A miss makes its region climb; it is promoted when its region stands at
//! the promote level or above. A hit makes a block climb one level, at most once per cache period.
//! The share of misses whose region was in the top quarter of the hotspot queue tells how well the
//! queue foresees: poorly (below 1/16) promotes only from level 48 and lets regions climb 4 levels
//! at a time, fairly (below 1/8) from level 32 and 2 levels, well everything and 1 level. New
//! blocks start at the top level; levels are evened out at the end of each period. Nothing is drawn
//! at random there nor here, whatever the name; the seed is unused.
//!
//! Deviations, because a policy has neither clock nor worker threads: a second is `tick` accesses
//! (hotspot period 1 s, cache period 10 s); promotion and demotion happen at the access that wants
//! them (the kernel demotes at one miss and promotes at a later one); sentinels, which keep a dirty
//! block from being cleaned within seconds, are left out; full-block writes get no short cut. As in
//! the kernel the victim is the oldest clean block of the lower half of the levels; if there is
//! none a dirty one is cleaned and leaves at once; if all are clean and in the upper half nothing
//! is promoted. A write makes a block dirty in the eyes of this policy only, whatever the engine's
//! write mode; `idle` cleans all at each tick, as dm-cache does when the disks rest. Ids are
//! numbers of first appearance, not addresses, so a region is one block unless `region_blocks` says
//! otherwise (dm-cache: 16 blocks, a quarter as many regions as blocks cached, hence as much
//! history); an id given to another block within a region of several inherits the region's level.
//! Unit: blocks.

use crate::level_chunks::{LevelChunks, PlaceTag};
use crate::levels::{LEVELS, LevelQueue};
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Seed};

cachewright_types::declare! {
    /// What dm-cache takes from clocks and devices.
    pub struct SmqSettings {
        /// accesses that stand for one second
        tick: u32 = 1000, "accesses", 1 ..= 1e9;
        /// blocks remembered by the hotspot queue, as a multiple of the capacity
        history: f64 = 3.0, "ratio", 0.0 ..= 100.0;
        /// neighbouring block numbers that share one entry of the hotspot queue
        region_blocks: u32 = 1, "blocks", 1 ..= 32;
        /// whether the disks rest at each tick, so that all dirty blocks are cleaned
        idle: bool = false, "true or false";
    }
}

/// Ticks per cache period.
const CACHE_PERIOD_TICKS: u32 = 10;
/// Levels of the hotspot queue that hold the few regions most worth promoting.
const TOP_LEVELS: usize = 8;
/// Regions remembered however small the cache: with fewer than levels none could reach the promote
/// level (dm-cache: 1024).
const MIN_REGIONS: u32 = LEVELS as u32;
/// Blocks at this level or above are not demoted.
const SAFE_LEVEL: usize = LEVELS / 2;
/// The level at which blocks enter the cache.
const ENTRY_LEVEL: u8 = LEVELS as u8 - 1;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct BlockTag {
    /// The cache period in which it last climbed; 0 for none.
    climbed: u32,
    resident: bool,
    dirty: bool,
}

impl PlaceTag for BlockTag {}

/// Stochastic multiqueue.
#[derive(Clone, Debug, Snapshot)]
pub struct Smq {
    blocks: LevelChunks<BlockTag, { 2 * LEVELS }>,
    clean: LevelQueue,
    dirty: LevelQueue,
    hotspot: Hotspot,
    capacity: u32,
    #[snapshot(settings)]
    settings: SmqSettings,
    accesses_to_tick: u32,
    /// Ticks so far, modulo the cache period.
    ticks: u32,
    /// Number of the cache period, from one.
    cache_period: u32,
}

impl Registered for Smq {
    type Settings = SmqSettings;
    const ENTRY: Entry = Entry {
        name: "smq",
        doc: "blocks climb levels when used, regions that climb by misses are promoted",
        source: "Linux dm-cache, drivers/md/dm-cache-policy-smq.c",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &SmqSettings, _: Seed) -> Self {
        let mut policy = Smq {
            blocks: LevelChunks::default(),
            clean: LevelQueue::new(0, 0, 0),
            dirty: LevelQueue::new(LEVELS, 0, 0),
            hotspot: Hotspot::new(settings.region_blocks),
            capacity: 0,
            settings: settings.clone(),
            accesses_to_tick: settings.tick,
            ticks: 0,
            cache_period: 1,
        };
        policy.set_capacity(capacity_blocks);
        policy
    }
}

impl Smq {
    fn set_capacity(&mut self, capacity_blocks: u32) {
        self.capacity = capacity_blocks;
        let region_blocks = self.settings.region_blocks;
        let history_blocks = (self.settings.history * f64::from(capacity_blocks)) as u32;
        let regions = (history_blocks / region_blocks).max(MIN_REGIONS);
        let top = regions / LEVELS as u32;
        self.hotspot.set_limit(regions, top.min(capacity_blocks / region_blocks));
    }

    /// The end of a hotspot period and, every tenth time, of a cache period.
    fn tick(&mut self) {
        self.hotspot.end_period();
        self.ticks += 1;
        if self.ticks == CACHE_PERIOD_TICKS {
            self.ticks = 0;
            self.cache_period = self.cache_period.wrapping_add(1).max(1);
            self.dirty.redistribute(&mut self.blocks.store());
            self.clean.redistribute(&mut self.blocks.store());
        }
        if self.settings.idle {
            while let Some(block) = self.dirty.oldest(&self.blocks.lists, 0, LEVELS) {
                let level = self.blocks.level(block);
                self.dirty.unlink(&mut self.blocks.store(), block);
                self.enqueue(block, level, false);
            }
        }
    }

    fn enqueue(&mut self, block: BlockId, level: u8, dirty: bool) {
        let tag = self.blocks.tag_mut(block);
        (tag.resident, tag.dirty) = (true, dirty);
        let queue = if dirty { &mut self.dirty } else { &mut self.clean };
        queue.push(&mut self.blocks.store(), level, block);
    }

    fn dequeue(&mut self, block: BlockId) {
        let dirty = self.blocks.tag(block).dirty;
        let queue = if dirty { &mut self.dirty } else { &mut self.clean };
        queue.unlink(&mut self.blocks.store(), block);
    }

    fn on_hit(&mut self, block: BlockId, write: bool, tag: BlockTag) {
        if tag.climbed != self.cache_period {
            self.blocks.tag_mut(block).climbed = self.cache_period;
            let queue = if tag.dirty { &mut self.dirty } else { &mut self.clean };
            queue.requeue(&mut self.blocks.store(), block, 1);
        }
        if write && !tag.dirty {
            let level = self.blocks.level(block);
            self.dequeue(block);
            self.enqueue(block, level, true);
        }
    }

    /// The oldest clean block of the lowest level, else the oldest dirty one.
    fn coldest(&self) -> Option<BlockId> {
        let clean = self.clean.oldest(&self.blocks.lists, 0, LEVELS);
        clean.or_else(|| self.dirty.oldest(&self.blocks.lists, 0, LEVELS))
    }

    fn evict(&mut self, victim: BlockId) {
        self.dequeue(victim);
        *self.blocks.tag_mut(victim) = BlockTag::default();
    }

    fn on_miss(&mut self, block: BlockId, write: bool) -> Verdict {
        if !self.hotspot.note_miss(block) {
            return Verdict::Bypass;
        }
        let mut evicted = None;
        if self.len() >= self.capacity {
            let clean = self.clean.oldest(&self.blocks.lists, 0, SAFE_LEVEL);
            evicted = clean.or_else(|| self.dirty.oldest(&self.blocks.lists, 0, LEVELS));
            match evicted {
                Some(victim) => self.evict(victim),
                None => return Verdict::Bypass,
            }
        }
        self.enqueue(block, ENTRY_LEVEL, write);
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for Smq {
    fn has_adjacent_ids(&self) -> bool {
        self.settings.region_blocks > 1
    }
}

impl Policy for Smq {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.accesses_to_tick -= 1;
        if self.accesses_to_tick == 0 {
            self.accesses_to_tick = self.settings.tick;
            self.tick();
        }
        let tag = self.blocks.tag(access.block);
        if tag.resident {
            self.on_hit(access.block, access.write, tag);
            return Verdict::Hit;
        }
        self.on_miss(access.block, access.write)
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.blocks.tag(block).resident
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.contains(block) || self.hotspot.tracks(block)
    }

    fn max_tracked(&self) -> u64 {
        let regions = u64::from(self.hotspot.limit());
        u64::from(self.capacity) + regions * u64::from(self.settings.region_blocks)
    }

    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let evicted = if self.len() >= self.capacity { self.coldest() } else { None };
        if let Some(victim) = evicted {
            self.evict(victim);
        }
        self.enqueue(block, ENTRY_LEVEL, dirty);
        Verdict::Admit { evicted }
    }

    fn len(&self) -> u32 {
        self.clean.len() + self.dirty.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.set_capacity(capacity_blocks);
        while self.len() > capacity_blocks {
            let Some(victim) = self.coldest() else { break };
            self.evict(victim);
            evicted.push(victim);
        }
        self.hotspot.trim();
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.hotspot.forget(block);
        let resident = self.contains(block);
        if resident {
            self.evict(block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize) {
        self.blocks.reserve_ids(count);
        self.hotspot.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        // The ids of a region of several blocks number neighbours.
        let alone = self.settings.region_blocks == 1;
        if alone {
            self.blocks.renumber(ids);
            self.hotspot.renumber(ids);
        }
        alone
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.blocks.touch(block);
        self.hotspot.touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        self.blocks.audit()?;
        self.clean.audit(&self.blocks.lists)?;
        self.dirty.audit(&self.blocks.lists)?;
        self.hotspot.audit()?;
        if self.len() > self.capacity {
            return Err(format!("{} blocks in a cache of {}", self.len(), self.capacity));
        }
        for list in 0..2 * LEVELS {
            let stray = |block: &BlockId| {
                let tag = self.blocks.tag(*block);
                !tag.resident || tag.dirty != (list >= LEVELS)
            };
            if let Some(block) = self.blocks.lists.iter(list).find(stray) {
                return Err(format!("block {} is in the wrong queue", block.0));
            }
        }
        Ok(())
    }
}

/// A region at this level or above counts as foreseen.
const FORESEEN_LEVEL: u8 = (LEVELS * 3 / 4) as u8;

/// What is known of a region.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct RegionTag {
    /// The hotspot period in which it last climbed; 0 for none.
    climbed: u32,
    /// Bit i is set when the region's block i was missed since the region entered.
    seen: u32,
}

impl PlaceTag for RegionTag {}

/// The queue; see the top of the file.
///
/// Regions that miss climb; how many of those missed stood high says how well that foresees what is
/// missed, and so whether a missed block is promoted.
#[derive(Clone, Debug, SnapshotValue)]
struct Hotspot {
    regions: LevelChunks<RegionTag, LEVELS>,
    queue: LevelQueue,
    region_limit: u32,
    region_blocks: u32,
    /// Number of the period, from one.
    period: u32,
    /// Misses of this period whose region was foreseen, and the others.
    foreseen: u64,
    unforeseen: u64,
    promote_level: u8,
    jump: u8,
}

impl Hotspot {
    /// An empty queue of regions of so many blocks, which remembers none yet.
    pub fn new(region_blocks: u32) -> Self {
        Hotspot {
            regions: LevelChunks::default(),
            queue: LevelQueue::new(0, TOP_LEVELS, 0),
            region_limit: 0,
            region_blocks,
            period: 1,
            foreseen: 0,
            unforeseen: 0,
            promote_level: LEVELS as u8,
            jump: 1,
        }
    }

    /// The most regions that are remembered.
    pub fn limit(&self) -> u32 {
        self.region_limit
    }

    /// Remembers at most so many regions, of which `in_top` stand in the top levels.
    pub fn set_limit(&mut self, regions: u32, in_top: u32) {
        self.region_limit = regions;
        self.queue.in_top = in_top;
    }

    /// Forgets the regions beyond the limit.
    pub fn trim(&mut self) {
        while self.queue.len() > self.region_limit {
            self.forget_oldest_region();
        }
    }

    /// The region of a block, and the block's bit in it.
    #[inline(always)]
    fn region(&self, block: BlockId) -> (BlockId, u32) {
        match self.region_blocks {
            1 => (block, 1),
            region_blocks => (BlockId(block.0 / region_blocks), 1 << (block.0 % region_blocks)),
        }
    }

    /// Whether the block was missed since its region entered.
    pub fn tracks(&self, block: BlockId) -> bool {
        let (region, bit) = self.region(block);
        self.regions.tag(region).seen & bit != 0
    }

    /// Ends a period: the share of misses that were foreseen decides from which level on blocks are
    /// promoted, and levels are evened out.
    pub fn end_period(&mut self) {
        self.period = self.period.wrapping_add(1).max(1);
        let all = (self.foreseen + self.unforeseen).max(1);
        let share_of_256 = self.foreseen * 256 / all;
        (self.promote_level, self.jump) = match share_of_256 {
            0..16 => (48, 4),
            16..32 => (32, 2),
            _ => (0, 1),
        };
        self.queue.redistribute(&mut self.regions.store());
        (self.foreseen, self.unforeseen) = (0, 0);
    }

    /// Notes a miss; returns whether the block is promoted.
    #[inline(always)]
    pub fn note_miss(&mut self, block: BlockId) -> bool {
        let (region, bit) = self.region(block);
        let mut level = 0;
        if self.regions.linked(region) {
            let tag = self.regions.tag(region);
            let foreseen = self.regions.level(region) >= FORESEEN_LEVEL;
            self.foreseen += u64::from(foreseen);
            self.unforeseen += u64::from(!foreseen);
            let jump = if tag.climbed == self.period { 0 } else { self.jump };
            self.regions.tag_mut(region).climbed = self.period;
            self.queue.requeue(&mut self.regions.store(), region, jump);
        } else {
            self.unforeseen += 1;
            if self.queue.len() >= self.region_limit {
                // The entry is reused where it stands, as in the kernel.
                level = self.forget_oldest_region();
            }
            self.queue.push(&mut self.regions.store(), level, region);
        }
        self.regions.tag_mut(region).seen |= bit;
        self.regions.level(region) >= self.promote_level
    }

    fn forget_oldest_region(&mut self) -> u8 {
        let Some((level, region)) = self.queue.pop_oldest(&mut self.regions.store()) else {
            return 0;
        };
        *self.regions.tag_mut(region) = RegionTag::default();
        level
    }

    /// Forgets a block, and its region with the last of its blocks.
    pub fn forget(&mut self, block: BlockId) {
        let (region, bit) = self.region(block);
        if self.regions.linked(region) {
            self.regions.tag_mut(region).seen &= !bit;
            if self.regions.tag(region).seen == 0 {
                self.queue.unlink(&mut self.regions.store(), region);
                *self.regions.tag_mut(region) = RegionTag::default();
            }
        }
    }

    /// Makes room for blocks `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        self.regions.reserve_ids(count.div_ceil(self.region_blocks as usize));
    }

    /// Gives the ids that are kept new numbers; for regions of one block.
    pub fn renumber(&mut self, ids: &Renumbering) {
        self.regions.renumber(ids);
    }

    /// A value that depends on the state of the block's region: loads it ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        self.regions.touch(self.region(block).0);
    }

    /// Checks lists, limit, and that every region has a block.
    pub fn audit(&self) -> Result<(), String> {
        self.regions.audit()?;
        self.queue.audit(&self.regions.lists)?;
        if self.queue.len() > self.region_limit {
            return Err(format!("{} regions of {}", self.queue.len(), self.region_limit));
        }
        let unseen = |region: &BlockId| self.regions.tag(*region).seen == 0;
        match (0..LEVELS).find_map(|level| self.regions.lists.iter(level).find(unseen)) {
            Some(region) => Err(format!("region {} has no block", region.0)),
            None => Ok(()),
        }
    }

    #[cfg(test)]
    pub fn level(&self, region: BlockId) -> u8 {
        self.regions.level(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(smq: &mut Smq, ids: impl IntoIterator<Item = u32>, write: bool) -> Vec<Verdict> {
        let access = |id| Access { write, ..Access::read(BlockId(id)) };
        ids.into_iter().map(|id| smq.access(access(id))).collect()
    }

    fn region_level(smq: &Smq, id: u32) -> u8 {
        smq.hotspot.level(BlockId(id))
    }

    /// Capacity 2, 64 accesses per tick, so 64 regions with one in the top levels.
    #[test]
    fn the_hand_worked_case() {
        let settings = SmqSettings { tick: 64, ..Default::default() };
        let mut smq = Smq::new(2, &settings, Seed(0));
        smq.reserve_ids(80);
        let admit = |victim: Option<u32>| vec![Verdict::Admit { evicted: victim.map(BlockId) }];
        // Before the first tick nothing is promoted. The 64th access ticks first: no miss was
        // foreseen, so promote from level 48 and climb by 4. 63 regions are evened out: one at
        // level 56, 62 over 56 levels (two each on the lowest 6). The oldest stay lowest.
        assert!(feed(&mut smq, 0..64, false).iter().all(|verdict| *verdict == Verdict::Bypass));
        assert_eq!(
            [0, 1, 11, 12, 53, 61, 62, 63].map(|id| region_level(&smq, id)),
            [0, 0, 5, 6, 47, 55, 56, 0]
        );
        // 62 climbs from 56 to 60 and is promoted, to the top level of the clean queue.
        assert_eq!(feed(&mut smq, [62], false), admit(None));
        // 54 is written: it climbs from 48 to 52, where 58 makes room, and enters dirty.
        assert_eq!(feed(&mut smq, [54], true), admit(None));
        assert_eq!([54, 58].map(|id| region_level(&smq, id)), [52, 48]);
        // 53 climbs from 47 to 51. The clean block is in the upper half, so dirty 54 leaves.
        assert_eq!(feed(&mut smq, [53], false), admit(Some(54)));
        // 0 climbs to level 4 only.
        assert_eq!(feed(&mut smq, [0], false), [Verdict::Bypass]);
        // 62 is hit by a write and turns dirty; 54, still at level 52, then takes its place.
        assert_eq!(feed(&mut smq, [62], true), [Verdict::Hit]);
        assert_eq!(feed(&mut smq, [54], false), admit(Some(62)));
        assert_eq!(region_level(&smq, 54), 52, "climbs once per period");
        // Now both are clean and in the upper half: 62 may not enter.
        assert_eq!(feed(&mut smq, [62], false), [Verdict::Bypass]);
        assert_eq!(smq.audit(), Ok(()));
    }
}
