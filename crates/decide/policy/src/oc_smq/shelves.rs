//! Where the blocks of `oc-smq` stand: levels of all, and of each room's clean and dirty ones.
//!
//! For: climbing and evening out over the whole cache, and finding victims in one room, both
//! without searching. Must never know: thresholds, periods, capacities. Every block held is in one
//! list of `order` (its level) and in one of `parts` (its level on its shelf: room, clean or
//! dirty), in the same order; blocks that were missed and are remembered are in the upper half of
//! `order`. A block that changes its shelf becomes the newest of its level. Unit: blocks.

use crate::levels::{LEVELS, LevelQueue, Levelled, Lists};
use crate::links::Links;
use cachewright_types::BlockId;

/// Where a block held lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shelf {
    /// In the room that tenants share: the paper's shared bit.
    pub common: bool,
    /// Written since it came or was cleaned.
    pub dirty: bool,
}

impl Shelf {
    const ALL: [Shelf; 4] = [
        Shelf { common: false, dirty: false },
        Shelf { common: false, dirty: true },
        Shelf { common: true, dirty: false },
        Shelf { common: true, dirty: true },
    ];

    #[inline(always)]
    fn index(self) -> usize {
        2 * usize::from(self.common) + usize::from(self.dirty)
    }
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tag {
    /// The period in which it last climbed, of the cache or of misses; 0 for none.
    pub climbed: u32,
    pub level: u8,
    /// Where it lies if it is held.
    pub shelf: Option<Shelf>,
}

impl Levelled for Tag {
    fn level(&self) -> u8 {
        self.level
    }
    fn set_level(&mut self, level: u8) {
        self.level = level;
    }
}

/// The lists of blocks held; what changes in `order` changes in `parts`.
#[derive(Clone, Debug)]
struct Order {
    order: Links<Tag, { 2 * LEVELS }>,
    parts: Links<u8, { 4 * LEVELS }>,
    queues: [LevelQueue; 4],
}

impl Lists for Order {
    fn put_newest(&mut self, list: usize, level: u8, entry: BlockId) {
        self.order.put_newest(list, level, entry);
        if let Some(shelf) = self.order.tag(entry).shelf {
            self.queues[shelf.index()].push(&mut self.parts, level, entry);
        }
    }
    fn put_oldest(&mut self, list: usize, level: u8, entry: BlockId) {
        self.order.put_oldest(list, level, entry);
        if let Some(shelf) = self.order.tag(entry).shelf {
            self.queues[shelf.index()].push_oldest(&mut self.parts, level, entry);
        }
    }
    fn take(&mut self, list: usize, entry: BlockId) {
        self.order.unlink(list, entry);
        if let Some(shelf) = self.order.tag(entry).shelf {
            self.queues[shelf.index()].unlink(&mut self.parts, entry);
        }
    }
    fn level_of(&self, entry: BlockId) -> u8 {
        self.order.tag(entry).level
    }
    fn count(&self, list: usize) -> u32 {
        self.order.len(list)
    }
    fn newest_of(&self, list: usize) -> Option<BlockId> {
        self.order.head(list)
    }
    fn oldest_of(&self, list: usize) -> Option<BlockId> {
        self.order.tail(list)
    }
}

/// Blocks held and blocks remembered.
#[derive(Clone, Debug)]
pub(super) struct Shelves {
    lists: Order,
    held: LevelQueue,
    missed: LevelQueue,
}

impl Shelves {
    /// Empty shelves over no ids.
    pub fn new() -> Self {
        let queue = |part: usize| LevelQueue::new(part * LEVELS, 0, 0);
        Shelves {
            lists: Order {
                order: Links::new(),
                parts: Links::new(),
                queues: std::array::from_fn(queue),
            },
            held: LevelQueue::new(0, 0, 0),
            missed: LevelQueue::new(LEVELS, 0, 0),
        }
    }

    pub fn reserve_ids(&mut self, count: usize) {
        self.lists.order.reserve_ids(count);
        self.lists.parts.reserve_ids(count);
    }

    #[inline(always)]
    pub fn tag(&self, block: BlockId) -> Tag {
        self.lists.order.tag(block)
    }

    #[inline(always)]
    pub fn touch(&self, block: BlockId) -> u32 {
        self.lists.order.touch(block)
    }

    /// Whether the block is held or remembered.
    #[inline(always)]
    pub fn tracks(&self, block: BlockId) -> bool {
        self.lists.order.linked(block)
    }

    /// Blocks held.
    #[inline(always)]
    pub fn held(&self) -> u32 {
        self.held.len()
    }

    /// Blocks held in one room.
    pub fn held_in(&self, common: bool) -> u32 {
        self.of(common).map(LevelQueue::len).iter().sum()
    }

    /// Blocks held at levels from `level` on, in both rooms.
    pub fn held_from(&self, level: usize) -> u32 {
        self.held.len_from(&self.lists, level)
    }

    /// The same in one room.
    pub fn held_in_from(&self, common: bool, level: usize) -> u32 {
        self.of(common).map(|queue| queue.len_from(&self.lists.parts, level)).iter().sum()
    }

    /// Clean blocks held below `level`, in both rooms.
    pub fn clean_below(&self, level: usize) -> u32 {
        let below = |common| {
            let [clean, _] = self.of(common);
            clean.len() - clean.len_from(&self.lists.parts, level)
        };
        below(false) + below(true)
    }

    /// Blocks remembered.
    pub fn missed(&self) -> u32 {
        self.missed.len()
    }

    /// The clean and the dirty blocks of a room.
    fn of(&self, common: bool) -> [&LevelQueue; 2] {
        [false, true].map(|dirty| &self.lists.queues[Shelf { common, dirty }.index()])
    }

    /// Takes a block in that is neither held nor remembered, as the newest of `level`.
    pub fn hold(&mut self, block: BlockId, level: u8, shelf: Shelf) {
        *self.lists.order.tag_mut(block) = Tag { climbed: 0, level, shelf: Some(shelf) };
        self.held.push(&mut self.lists, level, block);
    }

    /// Gives a block up that is held; returns the level it stood at.
    pub fn release(&mut self, block: BlockId) -> u8 {
        let level = self.tag(block).level;
        self.held.unlink(&mut self.lists, block);
        *self.lists.order.tag_mut(block) = Tag::default();
        level
    }

    /// Moves a block held to another shelf, where it is the newest of its level.
    pub fn shift(&mut self, block: BlockId, shelf: Shelf) {
        let level = self.tag(block).level;
        self.held.unlink(&mut self.lists, block);
        self.lists.order.tag_mut(block).shelf = Some(shelf);
        self.held.push(&mut self.lists, level, block);
    }

    /// A block held was hit in `period`: it climbs a level, once per period.
    #[inline(always)]
    pub fn climb(&mut self, block: BlockId, period: u32) {
        if self.tag(block).climbed != period {
            self.lists.order.tag_mut(block).climbed = period;
            self.held.requeue(&mut self.lists, block, 1);
        }
    }

    /// Remembers a block that is not held as the newest of `level`.
    pub fn remember(&mut self, block: BlockId, level: u8) {
        self.missed.push(&mut self.lists.order, level, block);
    }

    /// A remembered block was missed in `period`: it climbs a level, once per period. Returns the
    /// level it then stands at.
    pub fn climb_missed(&mut self, block: BlockId, period: u32) -> u8 {
        let jump = u8::from(self.tag(block).climbed != period);
        self.lists.order.tag_mut(block).climbed = period;
        self.missed.requeue(&mut self.lists.order, block, jump);
        self.tag(block).level
    }

    /// Forgets a remembered block.
    pub fn forget(&mut self, block: BlockId) {
        self.missed.unlink(&mut self.lists.order, block);
        *self.lists.order.tag_mut(block) = Tag::default();
    }

    /// Forgets the oldest remembered blocks of the lowest levels until so many are left.
    pub fn forget_beyond(&mut self, count: u32) {
        while self.missed.len() > count {
            let Some(oldest) = self.missed.oldest(&self.lists.order, 0, LEVELS) else { return };
            self.forget(oldest);
        }
    }

    /// Evens out the levels of the blocks held.
    pub fn even_out(&mut self) {
        self.held.redistribute(&mut self.lists);
    }

    /// Evens out the levels of the blocks remembered.
    pub fn even_out_missed(&mut self) {
        self.missed.redistribute(&mut self.lists.order);
    }

    /// The oldest clean or dirty block of a room's lowest level, below `below`.
    pub fn oldest(&self, shelf: Shelf, below: usize) -> Option<BlockId> {
        self.lists.queues[shelf.index()].oldest(&self.lists.parts, 0, below)
    }

    /// The oldest block of a room's lowest level below `below`, the clean one if it has both.
    pub fn coldest(&self, common: bool, below: usize) -> Option<BlockId> {
        let [clean, dirty] = [false, true].map(|dirty| self.oldest(Shelf { common, dirty }, below));
        self.colder(clean, dirty)
    }

    /// The newest block of a room's highest level from `from` on, the clean one if the level has
    /// both.
    pub fn hottest(&self, common: bool, from: usize) -> Option<BlockId> {
        let newest = |queue: &LevelQueue| queue.newest(&self.lists.parts, from);
        match self.of(common).map(newest) {
            [Some(clean), Some(dirty)] if self.tag(dirty).level > self.tag(clean).level => {
                Some(dirty)
            }
            [clean, dirty] => clean.or(dirty),
        }
    }

    /// Whichever stands lower, the first if neither does.
    pub fn colder(&self, one: Option<BlockId>, other: Option<BlockId>) -> Option<BlockId> {
        match (one, other) {
            (Some(one), Some(other)) if self.tag(other).level < self.tag(one).level => Some(other),
            (one, other) => one.or(other),
        }
    }

    /// Checks that lists, levels and shelves agree.
    pub fn audit(&self) -> Result<(), String> {
        let Order { order, parts, queues } = &self.lists;
        order.audit()?;
        parts.audit()?;
        self.held.audit(order)?;
        self.missed.audit(order)?;
        for shelf in Shelf::ALL {
            queues[shelf.index()].audit(parts)?;
            for level in 0..LEVELS {
                let here = |block: &BlockId| order.tag(*block).shelf == Some(shelf);
                let part = parts.iter(shelf.index() * LEVELS + level);
                if !order.iter(level).filter(here).eq(part) {
                    return Err(format!("level {level} of {shelf:?} is not as in the whole order"));
                }
            }
        }
        if queues.iter().map(LevelQueue::len).sum::<u32>() != self.held() {
            return Err(format!("{} blocks held, other numbers on shelves", self.held()));
        }
        let missed = |list| order.iter(list).any(|block| order.tag(block).shelf.is_some());
        match (LEVELS..2 * LEVELS).find(|list| missed(*list)) {
            Some(list) => Err(format!("a block held is remembered at level {}", list - LEVELS)),
            None => Ok(()),
        }
    }
}
