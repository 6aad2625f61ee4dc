//! The hotspot queue of `smq`: regions that miss climb, and how well that foresees what is missed.
//!
//! For: whether a missed block is promoted. Must never know: what is resident, capacities beyond
//! its own limit, when a period ends. Source: `drivers/md/dm-cache-policy-smq.c`. Units: regions.

use super::TOP_LEVELS;
use crate::level_chunks::{LevelChunks, PlaceTag};
use crate::levels::{LEVELS, LevelQueue};
use crate::renumber::Renumbering;
use cachewright_types::BlockId;

/// A region at this level or above counts as foreseen.
const FORESEEN_LEVEL: u8 = (LEVELS * 3 / 4) as u8;

/// What is known of a region.
#[derive(Clone, Copy, Debug, Default)]
struct RegionTag {
    /// The hotspot period in which it last climbed; 0 for none.
    climbed: u32,
    /// Bit i is set when the region's block i was missed since the region entered.
    seen: u32,
}

impl PlaceTag for RegionTag {}

/// The queue; see the top of the file.
#[derive(Clone, Debug)]
pub struct Hotspot {
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
