//! Where the blocks of `oc-smq` stand: levels of all, and of each region's clean and dirty ones.
//!
//! For: climbing and evening out over the whole cache, and finding victims in one region, both with
//! little searching. Every block held is in one list of `order` (its level), whose chunks count
//! their blocks by level list (region, clean or dirty); blocks that were missed and are remembered
//! are in lists without such counts. A block that changes its level list becomes the newest of its
//! level. Unit: blocks.

use crate::level_chunks::{
    ChunkLists, Chunked, Climb, End, KINDS, KindTally, NEWEST, OLDEST, PlaceTag, Placed, Places,
};
use crate::levels::{LEVELS, LevelLook, LevelQueue, LevelStore};
use crate::renumber::Renumbering;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The lists of blocks remembered, whose nodes stand with those of blocks held.
#[inline(always)]
fn missed_of<'a>(
    held: &'a mut HeldOrder,
    missed: &'a mut ChunkLists<(), LEVELS>,
) -> Chunked<'a, &'a mut [LevelNode], (), LEVELS> {
    Chunked { places: &mut held.nodes, lists: missed }
}

/// Blocks held and blocks remembered.
#[derive(Clone, Debug, SnapshotValue)]
pub(super) struct LevelLists {
    lists: HeldOrder,
    missed_order: ChunkLists<(), LEVELS>,
    held: LevelQueue,
    missed: LevelQueue,
}

impl LevelLists {
    /// Empty level lists over no ids.
    pub fn new() -> Self {
        LevelLists {
            lists: HeldOrder::default(),
            held: LevelQueue::new(0, 0, 0),
            missed_order: ChunkLists::default(),
            missed: LevelQueue::new(0, 0, 0),
        }
    }

    pub fn reserve_ids(&mut self, count: usize) {
        let nodes = &mut self.lists.nodes;
        lengthen(nodes, count, LevelNode::default());
        self.lists.order.reserve(nodes.len());
        self.missed_order.reserve(self.lists.nodes.len());
    }

    /// Gives the ids that are kept, all blocks held or remembered among them, new numbers.
    pub fn renumber(&mut self, ids: &Renumbering) {
        ids.close_up(&mut self.lists.nodes, 0);
        self.lists.nodes.iter_mut().for_each(|node| node.place = 0);
        let held = std::mem::take(&mut self.lists.order);
        let missed = std::mem::take(&mut self.missed_order);
        self.reserve_ids(0);
        held.put_all(ids, &mut self.lists.whole());
        missed.put_all(ids, &mut missed_of(&mut self.lists, &mut self.missed_order));
    }

    #[inline(always)]
    pub fn tag(&self, block: BlockId) -> LevelTag {
        self.lists.nodes[block.index()].tag
    }

    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        prefetch(&self.lists.nodes, block.index());
    }

    /// The level of a block held or remembered.
    #[inline(always)]
    pub fn level(&self, block: BlockId) -> u8 {
        let Placed { place, tag } = self.lists.nodes[block.index()];
        match tag.level_list {
            Some(_) => self.lists.order.level_at(place),
            None => self.missed_order.level_at(place),
        }
    }

    /// Whether the block is held or remembered.
    #[inline(always)]
    pub fn tracks(&self, block: BlockId) -> bool {
        self.lists.nodes[block.index()].place != 0
    }

    /// Blocks held.
    #[inline(always)]
    pub fn held(&self) -> u32 {
        self.held.len()
    }

    /// Blocks held in one region.
    pub fn held_in(&self, shared: bool) -> u32 {
        self.counts_of(shared).map(|counts| counts.all).iter().sum()
    }

    /// Blocks held at levels from `level` on, in both regions.
    pub fn held_from(&self, level: usize) -> u32 {
        self.held.len_from(&self.lists.order, level)
    }

    /// The same in one region.
    pub fn held_in_from(&self, shared: bool, level: usize) -> u32 {
        self.counts_of(shared).map(|counts| counts.from(level)).iter().sum()
    }

    /// Clean blocks held below `level`, in both regions.
    pub fn clean_below(&self, level: usize) -> u32 {
        let below = |shared| {
            let [clean, _] = self.counts_of(shared);
            clean.all - clean.from(level)
        };
        below(false) + below(true)
    }

    /// Blocks remembered.
    pub fn missed(&self) -> u32 {
        self.missed.len()
    }

    /// The clean and the dirty blocks of a region.
    fn counts_of(&self, shared: bool) -> [&LevelCounts; 2] {
        [false, true].map(|dirty| &self.lists.counts[LevelList { shared, dirty }.index()])
    }

    /// Takes a block in that is neither held nor remembered, as the newest of `level`.
    pub fn hold(&mut self, block: BlockId, level: u8, level_list: LevelList) {
        self.lists.nodes[block.index()].tag = LevelTag { climbed: 0, level_list: Some(level_list) };
        self.held.push(&mut self.lists, level, block);
    }

    /// Gives a block up that is held; returns the level it stood at.
    pub fn release(&mut self, block: BlockId) -> u8 {
        let level = self.level(block);
        self.held.unlink(&mut self.lists, block);
        self.lists.nodes[block.index()] = LevelNode::default();
        level
    }

    /// Moves a block held to another level list, where it is the newest of its level.
    pub fn shift(&mut self, block: BlockId, level_list: LevelList) {
        let level = self.level(block);
        self.held.unlink(&mut self.lists, block);
        self.lists.nodes[block.index()].tag.level_list = Some(level_list);
        self.held.push(&mut self.lists, level, block);
    }

    /// A block held was hit in `period`: it climbs a level, once per period.
    #[inline(always)]
    pub fn climb(&mut self, block: BlockId, period: u32) {
        if self.tag(block).climbed != period {
            self.lists.nodes[block.index()].tag.climbed = period;
            self.held.requeue(&mut self.lists, block, 1);
        }
    }

    /// Remembers a block that is not held as the newest of `level`.
    pub fn remember(&mut self, block: BlockId, level: u8) {
        self.missed.push(&mut missed_of(&mut self.lists, &mut self.missed_order), level, block);
    }

    /// A remembered block was missed in `period`: it is taken out, and climbs a level, once per
    /// period. Returns the level that it has reached.
    pub fn take_missed(&mut self, block: BlockId, period: u32) -> u8 {
        let climbed = &mut self.lists.nodes[block.index()].tag.climbed;
        let jump = u8::from(std::mem::replace(climbed, period) != period);
        self.missed.take_climbing(
            &mut missed_of(&mut self.lists, &mut self.missed_order),
            block,
            jump,
        )
    }

    /// Forgets a remembered block.
    pub fn erase(&mut self, block: BlockId) {
        self.missed.unlink(&mut missed_of(&mut self.lists, &mut self.missed_order), block);
        self.lists.nodes[block.index()] = LevelNode::default();
    }

    /// Forgets the oldest remembered blocks of the lowest levels until so many are left.
    pub fn trim_remembered(&mut self, count: u32) {
        while self.missed.len() > count {
            let Some((_, oldest)) =
                self.missed.pop_oldest(&mut missed_of(&mut self.lists, &mut self.missed_order))
            else {
                return;
            };
            self.lists.nodes[oldest.index()] = LevelNode::default();
        }
    }

    /// Evens out the levels of the blocks held.
    pub fn even_out(&mut self) {
        self.held.redistribute(&mut self.lists);
    }

    /// Evens out the levels of the blocks remembered.
    pub fn even_out_missed(&mut self) {
        self.missed.redistribute(&mut missed_of(&mut self.lists, &mut self.missed_order));
    }

    /// The oldest clean or dirty block of a region's lowest level, below `below`.
    #[inline(always)]
    pub fn oldest(&mut self, level_list: LevelList, below: usize) -> Option<BlockId> {
        let level = self.lists.counts[level_list.index()].occupied.trailing_zeros() as usize;
        if level < below.min(LEVELS) { self.lists.last(level_list, level, OLDEST) } else { None }
    }

    /// The oldest block of a region's lowest level below `below`, the clean one if it has both.
    pub fn coldest(&mut self, shared: bool, below: usize) -> Option<BlockId> {
        let [clean, dirty] =
            [false, true].map(|dirty| self.oldest(LevelList { shared, dirty }, below));
        self.colder(clean, dirty)
    }

    /// The newest block of a region's highest level from `from` on, the clean one if the level has
    /// both.
    pub fn hottest(&mut self, shared: bool, from: usize) -> Option<BlockId> {
        let [clean, dirty] = [false, true].map(|dirty| {
            let level_list = LevelList { shared, dirty };
            let occupied = self.lists.counts[level_list.index()].occupied;
            let level = occupied.checked_ilog2().filter(|level| *level as usize >= from)?;
            self.lists.last(level_list, level as usize, NEWEST)
        });
        match (clean, dirty) {
            (Some(clean), Some(dirty)) if self.level(dirty) > self.level(clean) => Some(dirty),
            (clean, dirty) => clean.or(dirty),
        }
    }

    /// Whichever stands lower, the first if neither does.
    pub fn colder(&self, one: Option<BlockId>, other: Option<BlockId>) -> Option<BlockId> {
        match (one, other) {
            (Some(one), Some(other)) if self.level(other) < self.level(one) => Some(other),
            (one, other) => one.or(other),
        }
    }

    /// Checks that lists, levels and level lists agree.
    pub fn audit(&self) -> Result<(), String> {
        let HeldOrder { nodes, order, counts } = &self.lists;
        let list_of = |block: BlockId| nodes[block.index()].tag.level_list;
        order.audit(|entry| {
            let kind = list_of(BlockId(entry)).map_or(0, LevelList::index);
            (nodes[entry as usize].place, kind)
        })?;
        let linked = nodes.iter().filter(|node| node.place != 0).count();
        if linked != (self.held() + self.missed()) as usize {
            return Err(format!("{linked} blocks have a place"));
        }
        self.held.audit(order)?;
        self.missed.audit(&self.missed_order)?;
        for level_list in LevelList::ALL {
            let LevelCounts { levels, all, occupied } = &counts[level_list.index()];
            for (level, count) in levels.iter().enumerate() {
                let here = |block: &BlockId| list_of(*block) == Some(level_list);
                let held = order.iter(level).filter(here).count() as u32;
                if held != *count || (occupied >> level & 1 == 1) != (held > 0) {
                    return Err(format!("level {level} of {level_list:?}: {count} of {held}"));
                }
            }
            if levels.iter().sum::<u32>() != *all {
                return Err(format!("{all} blocks of {level_list:?} counted"));
            }
        }
        if counts.iter().map(|counts| counts.all).sum::<u32>() != self.held() {
            return Err(format!("{} blocks held, other numbers in level lists", self.held()));
        }
        let missed = |list| self.missed_order.iter(list).any(|block| list_of(block).is_some());
        match (0..LEVELS).find(|list| missed(*list)) {
            Some(list) => Err(format!("a block held is remembered at level {list}")),
            None => self.missed_order.audit(|entry| (nodes[entry as usize].place, 0)),
        }
    }
}

/// Where a block held lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
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
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
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
#[derive(Clone, Copy, Debug, SnapshotValue)]
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
#[derive(Clone, Debug, SnapshotValue)]
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
