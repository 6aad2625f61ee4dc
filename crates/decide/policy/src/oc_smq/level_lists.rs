//! Where the blocks of `oc-smq` stand: levels of all, and of each region's clean and dirty ones.
//!
//! For: climbing and evening out over the whole cache, and finding victims in one region, both
//! without searching. Must never know: thresholds, periods, capacities. Every block held is in one
//! list of `order` (its level) and in one of `parts` (its level on its level list: region, clean or
//! dirty), in the same order; blocks that were missed and are remembered are in the upper half of
//! `order`. A block that changes its level list becomes the newest of its level. Unit: blocks.

use crate::level_chunks::{ChunkLists, Chunked, Places};
use crate::levels::{LEVELS, LevelLook, LevelQueue, LevelStore};
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
    const ALL: [LevelList; 4] = [
        LevelList { shared: false, dirty: false },
        LevelList { shared: false, dirty: true },
        LevelList { shared: true, dirty: false },
        LevelList { shared: true, dirty: true },
    ];

    #[inline(always)]
    fn index(self) -> usize {
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

/// A block's place among all, its place in its level list, and its tag: a line of the processor's
/// cache holds four.
#[derive(Clone, Copy, Debug, Default)]
struct LevelNode {
    in_order: u32,
    in_part: u32,
    climbed: u32,
    level_list: Option<LevelList>,
}

/// The places in the whole order.
struct InOrder<'a>(&'a mut [LevelNode]);

impl Places for InOrder<'_> {
    #[inline(always)]
    fn place(&self, entry: u32) -> u32 {
        self.0[entry as usize].in_order
    }
    #[inline(always)]
    fn set_place(&mut self, entry: u32, place: u32) {
        self.0[entry as usize].in_order = place;
    }
    #[inline(always)]
    fn kind(&self, entry: u32) -> usize {
        self.0[entry as usize].level_list.map_or(0, LevelList::index)
    }
}

/// The places in level lists.
struct InPart<'a>(&'a mut [LevelNode]);

impl Places for InPart<'_> {
    #[inline(always)]
    fn place(&self, entry: u32) -> u32 {
        self.0[entry as usize].in_part
    }
    #[inline(always)]
    fn set_place(&mut self, entry: u32, place: u32) {
        self.0[entry as usize].in_part = place;
    }
}

/// The lists of blocks held; what changes in `order` changes in `parts`.
#[derive(Clone, Debug)]
struct HeldOrder {
    nodes: Vec<LevelNode>,
    order: ChunkLists<{ 2 * LEVELS }>,
    parts: ChunkLists<{ 4 * LEVELS }>,
    queues: [LevelQueue; 4],
}

impl HeldOrder {
    /// The whole order, without what it has to do with the level lists.
    #[inline(always)]
    fn whole(&mut self) -> Chunked<'_, InOrder<'_>, { 2 * LEVELS }> {
        Chunked { places: InOrder(&mut self.nodes), lists: &mut self.order }
    }

    /// The queue of a level list, and the lists that it stands on.
    #[inline(always)]
    fn part(&mut self, part: usize) -> (&mut LevelQueue, Chunked<'_, InPart<'_>, { 4 * LEVELS }>) {
        let lists = Chunked { places: InPart(&mut self.nodes), lists: &mut self.parts };
        (&mut self.queues[part], lists)
    }

    #[inline(always)]
    fn part_of(&self, entry: BlockId) -> Option<usize> {
        self.nodes[entry.index()].level_list.map(LevelList::index)
    }
}

impl LevelStore for HeldOrder {
    fn look(&self) -> &impl LevelLook {
        &self.order
    }
    fn put_newest(&mut self, list: usize, entry: BlockId) {
        self.whole().put_newest(list, entry);
        if let Some(part) = self.part_of(entry) {
            let (queue, mut lists) = self.part(part);
            queue.push(&mut lists, (list % LEVELS) as u8, entry);
        }
    }
    fn lower(&mut self, from: usize, to: usize, count: u32) {
        let moved = self.whole().splice_oldest(from, to, count);
        for (part, count) in moved.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let (queue, mut lists) = self.part(part);
            queue.lower(&mut lists, from, to, count);
        }
    }
    fn raise(&mut self, from: usize, to: usize, count: u32) {
        let moved = self.whole().splice_newest(from, to, count);
        for (part, count) in moved.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let (queue, mut lists) = self.part(part);
            queue.raise(&mut lists, from, to, count);
        }
    }
    fn take(&mut self, entry: BlockId) {
        self.whole().take(entry);
        if let Some(part) = self.part_of(entry) {
            let (queue, mut lists) = self.part(part);
            queue.unlink(&mut lists, entry);
        }
    }
    fn pop_oldest_of(&mut self, list: usize) -> Option<BlockId> {
        let entry = self.order.oldest_of(list)?;
        self.take(entry);
        Some(entry)
    }
    fn level_of(&self, entry: BlockId) -> u8 {
        self.order.level_at(self.nodes[entry.index()].in_order)
    }
}

/// Blocks held and blocks remembered.
#[derive(Clone, Debug)]
pub(super) struct LevelLists {
    lists: HeldOrder,
    held: LevelQueue,
    missed: LevelQueue,
}

impl LevelLists {
    /// Empty level lists over no ids.
    pub fn new() -> Self {
        let queue = |part: usize| LevelQueue::new(part * LEVELS, 0, 0);
        LevelLists {
            lists: HeldOrder {
                nodes: Vec::new(),
                order: ChunkLists::default(),
                parts: ChunkLists::default(),
                queues: std::array::from_fn(queue),
            },
            held: LevelQueue::new(0, 0, 0),
            missed: LevelQueue::new(LEVELS, 0, 0),
        }
    }

    pub fn reserve_ids(&mut self, count: usize) {
        let nodes = &mut self.lists.nodes;
        nodes.resize(count.max(nodes.len()), LevelNode::default());
    }

    #[inline(always)]
    pub fn tag(&self, block: BlockId) -> LevelTag {
        let LevelNode { climbed, level_list, .. } = self.lists.nodes[block.index()];
        LevelTag { climbed, level_list }
    }

    #[inline(always)]
    pub fn touch(&self, block: BlockId) -> u32 {
        self.lists.nodes[block.index()].in_order
    }

    /// The level of a block held or remembered.
    #[inline(always)]
    pub fn level(&self, block: BlockId) -> u8 {
        self.lists.level_of(block)
    }

    /// Whether the block is held or remembered.
    #[inline(always)]
    pub fn tracks(&self, block: BlockId) -> bool {
        self.lists.nodes[block.index()].in_order != 0
    }

    /// Blocks held.
    #[inline(always)]
    pub fn held(&self) -> u32 {
        self.held.len()
    }

    /// Blocks held in one region.
    pub fn held_in(&self, shared: bool) -> u32 {
        self.of(shared).map(LevelQueue::len).iter().sum()
    }

    /// Blocks held at levels from `level` on, in both regions.
    pub fn held_from(&self, level: usize) -> u32 {
        self.held.len_from(&self.lists.order, level)
    }

    /// The same in one region.
    pub fn held_in_from(&self, shared: bool, level: usize) -> u32 {
        self.of(shared).map(|queue| queue.len_from(&self.lists.parts, level)).iter().sum()
    }

    /// Clean blocks held below `level`, in both regions.
    pub fn clean_below(&self, level: usize) -> u32 {
        let below = |shared| {
            let [clean, _] = self.of(shared);
            clean.len() - clean.len_from(&self.lists.parts, level)
        };
        below(false) + below(true)
    }

    /// Blocks remembered.
    pub fn missed(&self) -> u32 {
        self.missed.len()
    }

    /// The clean and the dirty blocks of a region.
    fn of(&self, shared: bool) -> [&LevelQueue; 2] {
        [false, true].map(|dirty| &self.lists.queues[LevelList { shared, dirty }.index()])
    }

    /// Takes a block in that is neither held nor remembered, as the newest of `level`.
    pub fn hold(&mut self, block: BlockId, level: u8, level_list: LevelList) {
        let node = &mut self.lists.nodes[block.index()];
        (node.climbed, node.level_list) = (0, Some(level_list));
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
        self.lists.nodes[block.index()].level_list = Some(level_list);
        self.held.push(&mut self.lists, level, block);
    }

    /// A block held was hit in `period`: it climbs a level, once per period.
    #[inline(always)]
    pub fn climb(&mut self, block: BlockId, period: u32) {
        if self.tag(block).climbed != period {
            self.lists.nodes[block.index()].climbed = period;
            self.held.requeue(&mut self.lists, block, 1);
        }
    }

    /// Remembers a block that is not held as the newest of `level`.
    pub fn remember(&mut self, block: BlockId, level: u8) {
        self.missed.push(&mut self.lists.whole(), level, block);
    }

    /// A remembered block was missed in `period`: it is taken out, and climbs a level, once per
    /// period. Returns the level that it has reached.
    pub fn take_missed(&mut self, block: BlockId, period: u32) -> u8 {
        let climbed = &mut self.lists.nodes[block.index()].climbed;
        let jump = u8::from(std::mem::replace(climbed, period) != period);
        self.missed.take_climbing(&mut self.lists.whole(), block, jump)
    }

    /// Forgets a remembered block.
    pub fn erase(&mut self, block: BlockId) {
        self.missed.unlink(&mut self.lists.whole(), block);
        self.lists.nodes[block.index()] = LevelNode::default();
    }

    /// Forgets the oldest remembered blocks of the lowest levels until so many are left.
    pub fn trim_remembered(&mut self, count: u32) {
        while self.missed.len() > count {
            let Some(oldest) = self.missed.pop_oldest(&mut self.lists.whole()) else { return };
            self.lists.nodes[oldest.index()] = LevelNode::default();
        }
    }

    /// Evens out the levels of the blocks held.
    pub fn even_out(&mut self) {
        self.held.redistribute(&mut self.lists);
    }

    /// Evens out the levels of the blocks remembered.
    pub fn even_out_missed(&mut self) {
        self.missed.redistribute(&mut self.lists.whole());
    }

    /// The oldest clean or dirty block of a region's lowest level, below `below`.
    pub fn oldest(&self, level_list: LevelList, below: usize) -> Option<BlockId> {
        self.lists.queues[level_list.index()].oldest(&self.lists.parts, 0, below)
    }

    /// The oldest block of a region's lowest level below `below`, the clean one if it has both.
    pub fn coldest(&self, shared: bool, below: usize) -> Option<BlockId> {
        let [clean, dirty] =
            [false, true].map(|dirty| self.oldest(LevelList { shared, dirty }, below));
        self.colder(clean, dirty)
    }

    /// The newest block of a region's highest level from `from` on, the clean one if the level has
    /// both.
    pub fn hottest(&self, shared: bool, from: usize) -> Option<BlockId> {
        let newest = |queue: &LevelQueue| queue.newest(&self.lists.parts, from);
        match self.of(shared).map(newest) {
            [Some(clean), Some(dirty)] if self.level(dirty) > self.level(clean) => Some(dirty),
            [clean, dirty] => clean.or(dirty),
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
        let HeldOrder { nodes, order, parts, queues } = &self.lists;
        let tag = |block: BlockId| nodes[block.index()].level_list;
        order.audit(|entry| {
            let kind = tag(BlockId(entry)).map_or(0, LevelList::index);
            (nodes[entry as usize].in_order, kind)
        })?;
        parts.audit(|entry| (nodes[entry as usize].in_part, 0))?;
        let linked = nodes.iter().filter(|node| node.in_order != 0).count();
        let held = nodes.iter().filter(|node| node.in_part != 0).count();
        if linked != (self.held() + self.missed()) as usize || held != self.held() as usize {
            return Err(format!("{linked} blocks have a place, {held} of them one in level lists"));
        }
        self.held.audit(order)?;
        self.missed.audit(order)?;
        for level_list in LevelList::ALL {
            queues[level_list.index()].audit(parts)?;
            for level in 0..LEVELS {
                let here = |block: &BlockId| tag(*block) == Some(level_list);
                let part = parts.iter(level_list.index() * LEVELS + level);
                if !order.iter(level).filter(here).eq(part) {
                    return Err(format!(
                        "level {level} of {level_list:?} is not as in the whole order"
                    ));
                }
            }
        }
        if queues.iter().map(LevelQueue::len).sum::<u32>() != self.held() {
            return Err(format!("{} blocks held, other numbers in level lists", self.held()));
        }
        let missed = |list| order.iter(list).any(|block| tag(block).is_some());
        match (LEVELS..2 * LEVELS).find(|list| missed(*list)) {
            Some(list) => Err(format!("a block held is remembered at level {}", list - LEVELS)),
            None => Ok(()),
        }
    }
}
