//! Segments of one LRU order: a hit lifts a block one segment up, overflow sinks one segment down.
//!
//! For: `slru`, and the main area of `w-tinylfu`. Segments are consecutive lists of a
//! [`GhostLists`]. The lowest has no limit: it takes what the others do not hold. Unit: blocks.
//! O(1) per hit and segment.

use crate::ghost_lists::GhostLists;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The most segments.
pub const MAX_SEGMENTS: usize = 8;

/// Which lists are segments, and how many blocks each may hold.
#[derive(Clone, Copy, Debug, SnapshotValue)]
pub struct Segmented {
    lowest: u8,
    highest: u8,
    /// By segment from the lowest; that of the lowest is not read.
    limits: [u32; MAX_SEGMENTS],
}

impl Segmented {
    /// Lists `lowest..=highest`, at most [`MAX_SEGMENTS`], of no blocks.
    pub fn new(lowest: u8, highest: u8) -> Segmented {
        debug_assert!(usize::from(highest - lowest) < MAX_SEGMENTS, "too many segments");
        Segmented { lowest, highest, limits: [0; MAX_SEGMENTS] }
    }

    /// The most blocks of each segment above the lowest.
    pub fn limit_upper(&mut self, blocks: u32) {
        self.limits = [blocks; MAX_SEGMENTS];
    }

    /// The most blocks of a list above the lowest.
    #[inline(always)]
    pub fn limit(&self, list: u8) -> u32 {
        self.limits[usize::from(list - self.lowest)]
    }

    /// A block of segment `list` was hit: it becomes the newest of the next higher one. What does
    /// not fit there sinks.
    #[inline(always)]
    pub fn hit<const SLOTS: usize, const RESIDENT: u8>(
        &self,
        lists: &mut GhostLists<SLOTS, RESIDENT>,
        list: u8,
        block: BlockId,
    ) {
        if list == self.highest {
            lists.refresh(list, block);
            return;
        }
        lists.transfer(list, list + 1, block);
        self.sink(lists, list + 1);
    }

    /// Moves what segment `list` holds beyond its limit to the newest end of the next lower one,
    /// and so on down.
    #[inline(always)]
    pub fn sink<const SLOTS: usize, const RESIDENT: u8>(
        &self,
        lists: &mut GhostLists<SLOTS, RESIDENT>,
        mut list: u8,
    ) {
        while list > self.lowest && lists.len(list) > self.limit(list) {
            while lists.len(list) > self.limit(list) {
                lists.demote(list, list - 1);
            }
            list -= 1;
        }
    }

    /// Lets all segments sink after their limits have changed.
    pub fn sink_all<const SLOTS: usize, const RESIDENT: u8>(
        &self,
        lists: &mut GhostLists<SLOTS, RESIDENT>,
    ) {
        for list in (self.lowest + 1..=self.highest).rev() {
            self.sink(lists, list);
        }
    }

    /// Takes out the oldest block of the lowest segment that holds any.
    #[inline(always)]
    pub fn pop<const SLOTS: usize, const RESIDENT: u8>(
        &self,
        lists: &mut GhostLists<SLOTS, RESIDENT>,
    ) -> Option<BlockId> {
        (self.lowest..=self.highest).find_map(|list| lists.pop(list))
    }

    /// Checks that no segment is beyond its limit.
    pub fn audit<const SLOTS: usize, const RESIDENT: u8>(
        &self,
        lists: &GhostLists<SLOTS, RESIDENT>,
    ) -> Result<(), String> {
        for list in self.lowest + 1..=self.highest {
            let (blocks, limit) = (lists.len(list), self.limit(list));
            if blocks > limit {
                return Err(format!("segment {list}: {blocks} blocks of {limit}"));
            }
        }
        Ok(())
    }
}
