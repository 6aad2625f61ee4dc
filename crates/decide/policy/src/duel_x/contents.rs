//! What the cache holds, beside what the leader's directory says that it should hold.
//!
//! For: `duel-x`. Must never know: which policy leads, and why. Units: blocks.
//!
//! A block that is held and not in the leader's directory is a stray: the first to leave. Blocks
//! that leave the directory become strays one by one. After a change of leader any block may be
//! one, so that all are checked, a few at each access. Invariant: each stray is in the queue or is
//! not checked yet. O(1) per access; evictions check at most [`MAX_CHECKED`] blocks.

use crate::renumber::Renumbering;
use crate::sampled_blocks::SampledBlocks;
use crate::stored::BlockStore;
use cachewright_types::BlockId;
use std::collections::VecDeque;

/// Blocks checked at each access after a change of leader.
const CHECKED_PER_ACCESS: u32 = 4;
/// The most blocks that one eviction checks.
const MAX_CHECKED: u32 = 64;
/// The number of a block that was not queued since it came in.
const NEVER_QUEUED: u32 = 0;

/// The blocks in the cache; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The blocks, each with the number of its last place in the queue, or [`NEVER_QUEUED`].
    blocks: SampledBlocks<u32>,
    /// Blocks that were strays when they were queued, in that order, with their numbers. Some may
    /// be none any more, or stand in the queue again, or have left and given their id away.
    strays: VecDeque<(BlockId, u32)>,
    /// The number of the last place; 0 is passed over.
    queued: u32,
    /// Blocks at places below it are not checked yet.
    unchecked: u32,
}

impl Contents {
    /// Blocks held.
    #[inline(always)]
    pub fn resident(&self) -> u32 {
        self.blocks.resident()
    }

    /// Whether the block is held.
    #[inline(always)]
    pub fn contains(&self, block: BlockId) -> bool {
        self.blocks.contains(block)
    }

    /// Adds a block that is not held. It is in the leader's directory.
    #[inline(always)]
    pub fn insert(&mut self, block: BlockId) {
        self.blocks.push(block, NEVER_QUEUED);
    }

    /// Takes a block out; returns whether it was held.
    pub fn remove(&mut self, block: BlockId) -> bool {
        let held = self.blocks.remove(block);
        self.unchecked = self.unchecked.min(self.resident());
        held
    }

    /// Notes that a block has left the leader's directory. Where the queue is long because most of
    /// it has come back since, it is made anew.
    #[inline(always)]
    pub fn has_left(&mut self, block: BlockId) {
        if !self.contains(block) {
            return;
        }
        self.queue(block);
        if self.strays.len() > 2 * self.resident() as usize + MAX_CHECKED as usize {
            self.check_anew();
        }
    }

    /// Begins to check all blocks: the leader has changed.
    pub fn check_anew(&mut self) {
        self.strays.clear();
        self.unchecked = self.resident();
    }

    /// Checks some blocks. `directed` says which blocks the leader's directory holds.
    #[inline(always)]
    pub fn check_some(&mut self, directed: impl Fn(BlockId) -> bool) {
        if self.unchecked > 0 {
            self.check(CHECKED_PER_ACCESS, directed);
        }
    }

    /// Evicts the stray that was queued first. Where no stray is found soon, a block that is not
    /// checked yet leaves in its place.
    pub fn evict(&mut self, directed: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        let stray = self.next_stray(&directed).or_else(|| {
            self.check(MAX_CHECKED, &directed);
            self.next_stray(&directed)
        });
        let last = self.resident().checked_sub(1)?;
        let evicted = stray.unwrap_or_else(|| self.block_at(self.unchecked.min(last)));
        self.remove(evicted);
        Some(evicted)
    }

    /// The stray after `later` others, as far as is known.
    pub fn stray_after(&self, later: u32) -> Option<BlockId> {
        self.strays.get(later as usize).map(|(block, _)| *block)
    }

    /// Queues a block that is held.
    #[inline(always)]
    fn queue(&mut self, block: BlockId) {
        self.queued = self.queued.wrapping_add(1).max(1);
        if let Some(number) = self.blocks.get_mut(block) {
            *number = self.queued;
            self.strays.push_back((block, self.queued));
        }
    }

    fn block_at(&self, place: u32) -> BlockId {
        self.blocks.by_place(place as usize).0
    }

    /// Takes the next block from the queue that is a stray still.
    fn next_stray(&mut self, directed: &impl Fn(BlockId) -> bool) -> Option<BlockId> {
        while let Some((block, number)) = self.strays.pop_front() {
            if self.blocks.get(block) == Some(number) && !directed(block) {
                return Some(block);
            }
        }
        None
    }

    /// Checks blocks from the last unchecked one on: what fills a gap comes from the end, and so is
    /// checked already.
    fn check(&mut self, limit: u32, directed: impl Fn(BlockId) -> bool) {
        for _ in 0..limit.min(self.unchecked) {
            self.unchecked -= 1;
            let block = self.block_at(self.unchecked);
            if !directed(block) {
                self.queue(block);
            }
        }
    }

    /// Makes room for ids `0..count` and `capacity` blocks.
    pub fn reserve_ids(&mut self, count: usize, capacity: u32) {
        self.blocks.reserve_ids(count, capacity, 0);
    }

    /// Gives the blocks that are kept new ids.
    pub fn renumber(&mut self, ids: &Renumbering) {
        self.blocks.renumber(ids);
        self.strays = self
            .strays
            .iter()
            .filter_map(|(block, number)| Some((ids.get(*block)?, *number)))
            .collect();
    }

    /// Loads the block's state ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        self.blocks.touch(block);
    }

    /// Checks that at most `capacity` blocks are held, and that each stray can be found.
    pub fn audit(&self, capacity: u32, directed: impl Fn(BlockId) -> bool) -> Result<(), String> {
        self.blocks.audit(capacity)?;
        if self.unchecked > self.resident() {
            return Err(format!("{} unchecked of {} blocks", self.unchecked, self.resident()));
        }
        for place in self.unchecked..self.resident() {
            let (block, number) = self.blocks.by_place(place as usize);
            if !directed(block) && !self.strays.contains(&(block, number)) {
                return Err(format!("block {} is a stray and in no queue", block.0));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(ids: &[u32]) -> Contents {
        let mut contents = Contents::default();
        contents.reserve_ids(200, 100);
        ids.iter().for_each(|id| contents.insert(BlockId(*id)));
        contents
    }

    #[test]
    fn strays_leave_in_the_order_in_which_they_left_the_directory() {
        let mut contents = holding(&[1, 2, 3, 4]);
        [3, 9, 1, 2].iter().for_each(|id| contents.has_left(BlockId(*id)));
        // 9 was never held, and 1 has come back to the directory.
        let directed = |block: BlockId| block.0 == 1 || block.0 == 4;
        assert_eq!(contents.audit(4, directed), Ok(()));
        assert_eq!(contents.evict(directed), Some(BlockId(3)));
        assert_eq!(contents.evict(directed), Some(BlockId(2)));
        assert_eq!((contents.resident(), contents.contains(BlockId(3))), (2, false));
    }

    #[test]
    fn an_id_that_becomes_another_blocks_has_no_place_in_the_queue() {
        let mut contents = holding(&[1, 2]);
        contents.has_left(BlockId(1));
        contents.has_left(BlockId(2));
        assert!(contents.remove(BlockId(1)));
        contents.insert(BlockId(1));
        assert_eq!(contents.evict(|block| block.0 == 1), Some(BlockId(2)));
        contents.has_left(BlockId(1));
        assert_eq!(
            (contents.audit(2, |_| false), contents.evict(|_| false)),
            (Ok(()), Some(BlockId(1)))
        );
    }

    #[test]
    fn after_a_change_of_leader_strays_are_found_by_checks() {
        let ids: Vec<u32> = (0..100).collect();
        let mut contents = holding(&ids);
        contents.has_left(BlockId(7));
        contents.check_anew();
        let directed = |block: BlockId| block.0 != 7 && block.0 != 70;
        assert_eq!(contents.audit(100, directed), Ok(()));
        assert_eq!(contents.evict(directed), Some(BlockId(70)), "checked from the end");
        // 7 is beyond the blocks that one eviction checks: another one leaves in its place.
        contents.insert(BlockId(100));
        contents.check_anew();
        let other = contents.evict(directed);
        assert_eq!(other, Some(BlockId(36)));
        (0..9).for_each(|_| contents.check_some(directed));
        assert_eq!(contents.evict(directed), Some(BlockId(7)));
        assert_eq!(contents.audit(100, directed), Ok(()));
    }

    #[test]
    fn a_queue_of_blocks_that_came_back_is_made_anew() {
        let mut contents = holding(&[1, 2]);
        for _ in 0..1_000 {
            contents.has_left(BlockId(1));
        }
        assert!(contents.strays.len() <= 2 * 2 + MAX_CHECKED as usize);
        assert_eq!(contents.evict(|block| block.0 != 1), Some(BlockId(1)));
        assert_eq!(contents.evict(|_| true), Some(BlockId(2)), "whatever is there, if it must");
        assert_eq!(contents.evict(|_| true), None);
    }
}
