//! The blocks that `oc-smq` holds, by level, with counts of each level list.
//!
//! For: [`super::level_lists`]. Must never know: blocks remembered, thresholds, capacities. Every
//! block held is in one list of `order` (its level), whose chunks count their blocks by level list
//! (region, clean or dirty). Unit: blocks.

use crate::level_chunks::{
    ChunkLists, Chunked, Climb, End, KINDS, KindTally, PlaceTag, Placed, Places,
};
use crate::levels::{LEVELS, LevelLook, LevelStore};
use cachewright_types::BlockId;

/// Where a block held lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelList {
    /// In the region that tenants share: the paper's shared bit.
    pub shared: bool,
    /// Written since it came or was cleaned.
    pub dirty: bool,
}

impl LevelList {
    pub const ALL: [LevelList; 4] = [
        LevelList { shared: false, dirty: false },
        LevelList { shared: false, dirty: true },
        LevelList { shared: true, dirty: false },
        LevelList { shared: true, dirty: true },
    ];

    #[inline(always)]
    pub fn index(self) -> usize {
        2 * usize::from(self.shared) + usize::from(self.dirty)
    }
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LevelTag {
    /// The period in which it last climbed, of the cache or of misses; 0 for none.
    pub climbed: u32,
    /// Where it lies if it is held.
    pub level_list: Option<LevelList>,
}

impl PlaceTag for LevelTag {
    #[inline(always)]
    fn kind(self) -> usize {
        self.level_list.map_or(0, LevelList::index)
    }
}

/// What is known of a block, and its place.
pub(super) type LevelNode = Placed<LevelTag>;

/// Blocks of a level list, by level.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelCounts {
    pub levels: [u32; LEVELS],
    pub all: u32,
    /// Bit l is set when there are blocks at level l.
    pub occupied: u64,
}

impl LevelCounts {
    fn add(&mut self, level: usize, count: u32) {
        self.levels[level] += count;
        self.all += count;
        self.occupied |= 1 << level;
    }

    fn subtract(&mut self, level: usize, count: u32) {
        self.levels[level] -= count;
        self.all -= count;
        self.occupied &= !(u64::from(self.levels[level] == 0) << level);
    }

    pub fn from(&self, level: usize) -> u32 {
        self.levels[level..].iter().sum()
    }
}

/// The lists of blocks held, with counts of each level list.
#[derive(Clone, Debug)]
pub(super) struct HeldOrder {
    pub nodes: Vec<LevelNode>,
    pub order: ChunkLists<KindTally, LEVELS>,
    pub counts: [LevelCounts; KINDS],
}

impl Default for HeldOrder {
    fn default() -> Self {
        let none = LevelCounts { levels: [0; LEVELS], all: 0, occupied: 0 };
        HeldOrder { nodes: Vec::new(), order: ChunkLists::default(), counts: [none; KINDS] }
    }
}

impl HeldOrder {
    /// The lists, without what they have to do with the counts.
    #[inline(always)]
    pub fn whole(&mut self) -> Chunked<'_, &mut [LevelNode], KindTally, LEVELS> {
        Chunked { places: &mut self.nodes, lists: &mut self.order }
    }

    fn note_moved(&mut self, from: usize, to: usize, moved: [u32; KINDS]) {
        for (counts, count) in self.counts.iter_mut().zip(moved).filter(|(_, count)| *count > 0) {
            counts.subtract(from, count);
            counts.add(to, count);
        }
    }

    /// The block of a level list that is the first from an end of a level that has one.
    pub fn last(&mut self, level_list: LevelList, level: usize, end: End) -> Option<BlockId> {
        self.order.last_of_kind(level, end, level_list.index())
    }
}

impl LevelStore for HeldOrder {
    fn look(&self) -> &impl LevelLook {
        &self.order
    }
    #[inline(always)]
    fn put_newest(&mut self, list: usize, entry: BlockId) {
        self.whole().put_newest(list, entry);
        let nodes: &mut [LevelNode] = &mut self.nodes;
        self.counts[nodes.kind(entry.0)].add(list, 1);
    }
    fn lower(&mut self, from: usize, to: usize, count: u32) {
        let moved = self.whole().splice_oldest(from, to, count);
        self.note_moved(from, to, moved);
    }
    fn raise(&mut self, from: usize, to: usize, count: u32) {
        let moved = self.whole().splice_newest(from, to, count);
        self.note_moved(from, to, moved);
    }
    #[inline(always)]
    fn climb(&mut self, entry: BlockId, jump: u8) -> (usize, usize) {
        let Climb { from, to, kind, other } = self.whole().climb(entry, jump);
        if from != to && other != Some(kind) {
            self.counts[kind].subtract(from, 1);
            self.counts[kind].add(to, 1);
            if let Some(other) = other {
                self.counts[other].subtract(to, 1);
                self.counts[other].add(from, 1);
            }
        }
        (from, to)
    }
    #[inline(always)]
    fn take(&mut self, entry: BlockId) {
        let level = usize::from(self.level_of(entry));
        self.whole().take(entry);
        let nodes: &mut [LevelNode] = &mut self.nodes;
        self.counts[nodes.kind(entry.0)].subtract(level, 1);
    }
    fn pop_oldest_of(&mut self, list: usize) -> Option<BlockId> {
        let entry = self.order.oldest_of(list)?;
        self.take(entry);
        Some(entry)
    }
    #[inline(always)]
    fn level_of(&self, entry: BlockId) -> u8 {
        self.order.level_at(self.nodes[entry.index()].place)
    }
}
