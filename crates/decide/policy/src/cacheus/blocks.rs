//! The blocks of CACHEUS: two stacks, two histories, and the order of counts.
//!
//! For: `cacheus`. Must never know: limits, weights. Every resident block stands in a stack and in
//! the order; one that has left stands in the history of the expert that chose it. Unit: blocks.
//! Memory: 24 bytes per id, 16 per resident block.

use crate::ghost_lists::{GhostLists, OUT};
use crate::least_first::LeastFirst;
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_types::BlockId;

/// Reused blocks (R in the paper, `s` in the authors' code), in order of use.
pub const REUSED: u8 = 1;
/// New and demoted blocks (SR in the paper, `q` in the code).
pub const SCANNED: u8 = 2;
/// Blocks that SR-LRU chose.
pub const LRU_HISTORY: u8 = 3;
/// Blocks that CR-LFU chose.
pub const LFU_HISTORY: u8 = 4;

/// A count stops here, so that it stands above the time in a key.
const MAX_COUNT: u32 = (1 << 24) - 1;
const TIME_BITS: u32 = 40;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

#[derive(Clone, Copy, Debug, Default)]
struct CountedBlock {
    count: u32,
    is_new: bool,
    is_demoted: bool,
}

/// The blocks; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct CacheusBlocks {
    lists: GhostLists<5, 2>,
    /// Resident blocks, the lowest count first and of equal counts the one used last.
    order: LeastFirst,
    blocks: Vec<CountedBlock>,
    /// Demoted blocks in [`SCANNED`].
    demoted: u32,
    /// New blocks in [`LRU_HISTORY`].
    new_in_history: u32,
}

impl CacheusBlocks {
    /// The list of a block, or [`OUT`].
    #[inline(always)]
    pub fn list_of(&self, block: BlockId) -> u8 {
        self.lists.list_of(block)
    }

    /// Blocks of a list.
    #[inline(always)]
    pub fn len(&self, list: u8) -> u32 {
        self.lists.len(list)
    }

    /// Demoted blocks that are resident, and new ones in the history of SR-LRU.
    #[inline(always)]
    pub fn demoted_and_new(&self) -> (u32, u32) {
        (self.demoted, self.new_in_history)
    }

    /// Whether a block counts as new, and whether as demoted.
    #[inline(always)]
    pub fn is_new_or_demoted(&self, block: BlockId) -> (bool, bool) {
        let CountedBlock { is_new, is_demoted, .. } = self.blocks[block.index()];
        (is_new, is_demoted)
    }

    /// Adds a block that is not tracked, or was just taken out of a history.
    #[inline(always)]
    pub fn insert(&mut self, list: u8, block: BlockId, (count, is_new): (u32, bool), now: u64) {
        self.blocks[block.index()] = CountedBlock { count, is_new, is_demoted: false };
        self.lists.push(list, block);
        self.order.set(block, key(count, now));
    }

    /// Counts a hit of a resident block, which becomes the newest of the reused ones.
    #[inline(always)]
    pub fn hit(&mut self, block: BlockId, now: u64) {
        let counted = &mut self.blocks[block.index()];
        counted.count = (counted.count + 1).min(MAX_COUNT);
        self.order.set(block, key(counted.count, now));
        self.demoted -= u32::from(std::mem::take(&mut counted.is_demoted));
        match self.lists.list_of(block) {
            REUSED => self.lists.refresh(REUSED, block),
            list => self.lists.transfer(list, REUSED, block),
        }
    }

    /// The least recently used of the reused blocks becomes the newest of the others.
    #[inline(always)]
    pub fn demote(&mut self) {
        if let Some(block) = self.lists.demote(REUSED, SCANNED) {
            self.blocks[block.index()].is_demoted = true;
            self.demoted += 1;
        }
    }

    /// The choice of SR-LRU.
    #[inline(always)]
    pub fn lru(&self) -> Option<BlockId> {
        self.lists.near_tail(SCANNED, 0).or_else(|| self.lists.near_tail(REUSED, 0))
    }

    /// The choice of CR-LFU.
    #[inline(always)]
    pub fn lfu(&self) -> Option<BlockId> {
        self.order.lowest().map(|(_, block)| block)
    }

    /// The block that [`CacheusBlocks::lru`] returns after so many others.
    #[inline(always)]
    pub fn lru_after(&self, later: u32) -> Option<BlockId> {
        self.lists.near_tail(SCANNED, later)
    }

    /// A resident block leaves for `history`, if there is one.
    #[inline(always)]
    pub fn leave(&mut self, block: BlockId, history: Option<u8>) {
        self.order.remove(block);
        let list = self.lists.list_of(block);
        self.lists.take(list, block);
        let counted = &mut self.blocks[block.index()];
        self.demoted -= u32::from(std::mem::take(&mut counted.is_demoted));
        if let Some(history) = history {
            self.new_in_history += u32::from(history == LRU_HISTORY && counted.is_new);
            self.lists.push(history, block);
        }
    }

    /// Takes a block out of its history; returns its count.
    #[inline(always)]
    pub fn recall(&mut self, block: BlockId) -> u32 {
        let list = self.lists.list_of(block);
        let counted = self.blocks[block.index()];
        self.new_in_history -= u32::from(list == LRU_HISTORY && counted.is_new);
        self.lists.take(list, block);
        counted.count
    }

    /// Forgets the oldest blocks of a history beyond a limit.
    #[inline(always)]
    pub fn trim(&mut self, history: u8, limit: u32) {
        while self.lists.len(history) > limit
            && let Some(block) = self.lists.near_tail(history, 0)
        {
            self.recall(block);
        }
    }

    /// The blocks of a list from newest to oldest.
    pub fn iter(&self, list: u8) -> impl Iterator<Item = BlockId> + '_ {
        self.lists.iter(list)
    }
}

/// The order of [`CacheusBlocks::lfu`]: time counts down.
#[inline(always)]
fn key(count: u32, now: u64) -> u64 {
    u64::from(count) << TIME_BITS | (TIME_MASK - (now & TIME_MASK))
}

impl BlockStore for CacheusBlocks {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.lists.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.lists.list_of(block) != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.lists.resident()
    }

    fn remove(&mut self, block: BlockId) -> bool {
        if self.contains(block) {
            self.leave(block, None);
            return true;
        }
        if self.tracks(block) {
            self.recall(block);
        }
        false
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.lists.reserve_ids(count, capacity, ghosts);
        self.order.reserve_ids(count, capacity, ghosts);
        lengthen(&mut self.blocks, count, CountedBlock::default());
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        ids.close_up(&mut self.blocks, 0);
        self.order.renumber(ids) && self.lists.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.lists.touch(block);
        self.order.touch(block);
        prefetch(&self.blocks, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.lists.audit(capacity)?;
        self.order.audit(capacity)?;
        if self.order.resident() != self.resident() {
            return Err(format!("{} of {} are ordered", self.order.resident(), self.resident()));
        }
        let is = |list, holds: fn(&CountedBlock) -> bool| {
            self.iter(list).filter(|block| holds(&self.blocks[block.index()])).count() as u32
        };
        let found = (is(SCANNED, |block| block.is_demoted), is(LRU_HISTORY, |block| block.is_new));
        if found != self.demoted_and_new() || is(REUSED, |block| block.is_demoted) > 0 {
            return Err(format!("{found:?} demoted and new, {:?} counted", self.demoted_and_new()));
        }
        Ok(())
    }
}
