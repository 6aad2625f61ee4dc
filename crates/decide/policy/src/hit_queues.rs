//! First-in first-out queues whose blocks count their hits.
//!
//! For: FIFO, Clock, SIEVE and S3-FIFO: a hit writes at most one byte and moves nothing. Unit:
//! blocks. One byte per id says in which queue the block is and how often it was hit there, up to
//! [`MAX_HITS`].

use crate::queue::BlockQueue;
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The most hits that are counted.
pub const MAX_HITS: u8 = 3;

/// How many blocks before its turn the state of one that comes out of a queue is loaded.
const POPS_AHEAD: u32 = 8;

/// The bits of a state that count hits; the others are the number of the queue plus one.
const HITS: u8 = MAX_HITS;
const QUEUE_SHIFT: u32 = 2;

/// Queues `0..QUEUES`; each block is in at most one of them. The first `RESIDENT` hold resident
/// blocks, the others ghosts.
#[derive(Clone, Debug, SnapshotValue)]
pub struct HitQueues<const QUEUES: usize, const RESIDENT: usize> {
    queues: [BlockQueue; QUEUES],
    /// Per id: its queue and hits, or 0 for a block in no queue.
    states: Vec<u8>,
}

impl<const QUEUES: usize, const RESIDENT: usize> Default for HitQueues<QUEUES, RESIDENT> {
    fn default() -> Self {
        HitQueues { queues: std::array::from_fn(|_| BlockQueue::default()), states: Vec::new() }
    }
}

impl<const QUEUES: usize, const RESIDENT: usize> HitQueues<QUEUES, RESIDENT> {
    /// The state of a block of `queue` without hits.
    #[inline(always)]
    fn unhit(queue: usize) -> u8 {
        (queue as u8 + 1) << QUEUE_SHIFT
    }

    /// Blocks in a queue.
    #[inline(always)]
    pub fn len(&self, queue: usize) -> u32 {
        self.queues[queue].len()
    }

    /// The queue of a block, if it is in one.
    #[inline(always)]
    pub fn queue_of(&self, block: BlockId) -> Option<usize> {
        usize::from(self.states[block.index()] >> QUEUE_SHIFT).checked_sub(1)
    }

    /// Notes that a queued block was hit, for policies that do not ask how often.
    #[inline(always)]
    pub fn mark(&mut self, block: BlockId) {
        let state = &mut self.states[block.index()];
        // With one queue the new state is known without the old one.
        *state = if QUEUES == 1 { Self::unhit(0) | 1 } else { *state | 1 };
    }

    /// Counts a hit of a queued block.
    #[inline(always)]
    pub fn count_hit(&mut self, block: BlockId) {
        let state = &mut self.states[block.index()];
        *state += u8::from(*state & HITS != HITS);
    }

    /// Adds a block that is in no queue as the newest of `queue`, without hits.
    #[inline(always)]
    pub fn push(&mut self, queue: usize, block: BlockId) {
        self.states[block.index()] = Self::unhit(queue);
        self.queues[queue].push(block);
    }

    /// The block that comes out of a queue after so many others, if none was removed.
    #[inline(always)]
    pub fn peek(&self, queue: usize, later: u32) -> Option<BlockId> {
        self.queues[queue].peek(later)
    }

    /// The oldest block of a queue, taken out. The state of a later one is loaded ahead: blocks
    /// come out in no order of ids.
    #[inline(always)]
    fn pop_loading(&mut self, queue: usize) -> Option<BlockId> {
        if let Some(later) = self.queues[queue].peek(POPS_AHEAD) {
            prefetch(&self.states, later.index());
        }
        self.queues[queue].pop()
    }

    /// Takes out the oldest block of a queue; returns its hits as well.
    #[inline(always)]
    pub fn pop(&mut self, queue: usize) -> Option<(BlockId, u8)> {
        let block = self.pop_loading(queue)?;
        let hits = std::mem::take(&mut self.states[block.index()]) & HITS;
        Some((block, hits))
    }

    /// Takes out the oldest block without hits. An older block that was hit pays one hit and
    /// becomes the newest.
    #[inline(always)]
    pub fn pop_unhit(&mut self, queue: usize) -> Option<BlockId> {
        self.pop_unhit_noting(queue, |_| ())
    }

    /// The same; `again` hears of each block that becomes the newest again.
    #[inline(always)]
    pub fn pop_unhit_noting(
        &mut self,
        queue: usize,
        mut again: impl FnMut(BlockId),
    ) -> Option<BlockId> {
        loop {
            let block = self.pop_loading(queue)?;
            let state = &mut self.states[block.index()];
            if *state & HITS == 0 {
                *state = 0;
                return Some(block);
            }
            *state -= 1;
            again(block);
            self.queues[queue].push(block);
        }
    }

    /// Takes out the oldest block of queue `from`. If it was hit, it becomes the newest of queue
    /// `to`, without hits. Returns the block and whether it was hit.
    #[inline(always)]
    pub fn advance(&mut self, from: usize, to: usize) -> Option<(BlockId, bool)> {
        let block = self.pop_loading(from)?;
        let state = &mut self.states[block.index()];
        let hit = *state & HITS != 0;
        *state = if hit { Self::unhit(to) } else { 0 };
        if hit {
            self.queues[to].push(block);
        }
        Some((block, hit))
    }

    /// The blocks of a queue from oldest to newest; for audits.
    pub fn blocks(&self, queue: usize) -> Vec<BlockId> {
        self.queues[queue].blocks()
    }
}

impl<const QUEUES: usize, const RESIDENT: usize> BlockStore for HitQueues<QUEUES, RESIDENT> {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        if QUEUES == RESIDENT {
            return self.tracks(block);
        }
        self.queue_of(block).is_some_and(|queue| queue < RESIDENT)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.states[block.index()] != 0
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        // A plain loop: the sum of an iterator is not always unrolled.
        let (mut blocks, mut queue) = (0, 0);
        while queue < RESIDENT {
            blocks += self.len(queue);
            queue += 1;
        }
        blocks
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let Some(queue) = self.queue_of(block) else { return false };
        self.states[block.index()] = 0;
        self.queues[queue].remove(block);
        queue < RESIDENT
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        lengthen(&mut self.states, count, 0);
        for (number, queue) in self.queues.iter_mut().enumerate() {
            // A ghost that comes back leaves a stale entry.
            let entries = if number < RESIDENT { capacity as usize } else { 2 * ghosts as usize };
            queue.reserve(count.min(entries));
        }
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.queues.iter_mut().for_each(|queue| queue.renumber(ids));
        ids.close_up(&mut self.states, 0);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.states, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        let mut queued = 0;
        for (number, queue) in self.queues.iter().enumerate() {
            queue.audit()?;
            let blocks = queue.blocks();
            queued += blocks.len();
            if let Some(block) = blocks.iter().find(|block| self.queue_of(**block) != Some(number))
            {
                return Err(format!("block {} of queue {number} has another state", block.0));
            }
        }
        let tracked = self.states.iter().filter(|state| **state != 0).count();
        if tracked != queued {
            return Err(format!("{tracked} blocks have a queue, {queued} are queued"));
        }
        if self.resident() > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.resident()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_paid_with_a_round_and_a_removed_block_leaves_no_trace() {
        let mut queues: HitQueues<2, 2> = HitQueues::default();
        queues.reserve_ids(6, 6, 0);
        (0..4).for_each(|id| queues.push(1, BlockId(id)));
        (0..5).for_each(|_| queues.count_hit(BlockId(0)));
        queues.mark(BlockId(1));
        assert_eq!(queues.pop_unhit(1), Some(BlockId(2)));
        assert!(queues.remove(BlockId(1)));
        assert!(!queues.remove(BlockId(1)) && !queues.tracks(BlockId(2)));
        queues.push(0, BlockId(5));
        assert_eq!((queues.queue_of(BlockId(5)), queues.queue_of(BlockId(0))), (Some(0), Some(1)));
        queues.mark(BlockId(5));
        assert_eq!(queues.advance(0, 1), Some((BlockId(5), true)));
        assert_eq!(queues.pop(1), Some((BlockId(3), 0)));
        assert_eq!(queues.pop(1), Some((BlockId(0), MAX_HITS - 1)));
        assert_eq!(queues.audit(1), Ok(()));
        assert!(queues.audit(0).is_err());
        assert_eq!(queues.advance(1, 0), Some((BlockId(5), false)));
    }
}
