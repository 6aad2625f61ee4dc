//! First-in first-out queues whose blocks count their hits.
//!
//! For: FIFO, Clock, SIEVE and S3-FIFO: a hit writes at most one byte and moves nothing. Must never
//! know: what a queue means, capacities. Unit: blocks. One byte per id says in which queue the
//! block is and how often it was hit there, up to [`MAX_HITS`].

use crate::queue::BlockQueue;
use crate::renumber::Renumbering;
use cachewright_memory::{lengthen, prefetch};
use cachewright_types::BlockId;

/// The most hits that are counted.
pub const MAX_HITS: u8 = 3;

/// How many blocks before its turn the state of one that comes out of a queue is loaded.
const POPS_AHEAD: u32 = 8;

/// The bits of a state that count hits; the others are the number of the queue plus one.
const HITS: u8 = MAX_HITS;
const QUEUE_SHIFT: u32 = 2;

/// Queues `0..QUEUES`; each block is in at most one of them.
#[derive(Clone, Debug)]
pub struct HitQueues<const QUEUES: usize> {
    queues: [BlockQueue; QUEUES],
    /// Per id: its queue and hits, or 0 for a block in no queue.
    states: Vec<u8>,
}

impl<const QUEUES: usize> Default for HitQueues<QUEUES> {
    fn default() -> Self {
        HitQueues { queues: std::array::from_fn(|_| BlockQueue::default()), states: Vec::new() }
    }
}

impl<const QUEUES: usize> HitQueues<QUEUES> {
    /// The state of a block of `queue` without hits.
    #[inline(always)]
    fn unhit(queue: usize) -> u8 {
        (queue as u8 + 1) << QUEUE_SHIFT
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        lengthen(&mut self.states, count, 0);
    }

    /// Gives the ids that are kept, all blocks queued among them, new numbers.
    pub fn renumber(&mut self, ids: &Renumbering) {
        self.queues.iter_mut().for_each(|queue| queue.renumber(ids));
        ids.close_up(&mut self.states, 0);
    }

    /// Makes room for so many entries of a queue; see [`BlockQueue::reserve`].
    pub fn reserve(&mut self, queue: usize, entries: usize) {
        self.queues[queue].reserve(entries);
    }

    /// Blocks in a queue.
    #[inline(always)]
    pub fn len(&self, queue: usize) -> u32 {
        self.queues[queue].len()
    }

    /// Whether the block is in some queue.
    #[inline(always)]
    pub fn tracks(&self, block: BlockId) -> bool {
        self.states[block.index()] != 0
    }

    /// The queue of a block.
    #[inline(always)]
    pub fn queue_of(&self, block: BlockId) -> Option<usize> {
        usize::from(self.states[block.index()] >> QUEUE_SHIFT).checked_sub(1)
    }

    /// A value that depends on the block's state: loads it ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        prefetch(&self.states, block.index());
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
        loop {
            let block = self.pop_loading(queue)?;
            let state = &mut self.states[block.index()];
            if *state & HITS == 0 {
                *state = 0;
                return Some(block);
            }
            *state -= 1;
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

    /// Takes a block out of its queue, if it is in one; returns which.
    pub fn remove(&mut self, block: BlockId) -> Option<usize> {
        let queue = self.queue_of(block)?;
        self.states[block.index()] = 0;
        self.queues[queue].remove(block);
        Some(queue)
    }

    /// The blocks of a queue from oldest to newest; for audits.
    pub fn blocks(&self, queue: usize) -> Vec<BlockId> {
        self.queues[queue].blocks()
    }

    /// Checks queues and states, and that the first `resident` queues hold at most `capacity`
    /// blocks.
    pub fn audit(&self, resident: usize, capacity: u32) -> Result<(), String> {
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
        let held: u32 = (0..resident).map(|queue| self.len(queue)).sum();
        if held > capacity {
            return Err(format!("{held} blocks in a cache of {capacity}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_paid_with_a_round_and_a_removed_block_leaves_no_trace() {
        let mut queues: HitQueues<2> = HitQueues::default();
        queues.reserve_ids(6);
        (0..4).for_each(|id| queues.push(1, BlockId(id)));
        (0..5).for_each(|_| queues.count_hit(BlockId(0)));
        queues.mark(BlockId(1));
        assert_eq!(queues.pop_unhit(1), Some(BlockId(2)));
        assert_eq!(queues.remove(BlockId(1)), Some(1));
        assert_eq!((queues.remove(BlockId(1)), queues.tracks(BlockId(2))), (None, false));
        queues.push(0, BlockId(5));
        assert_eq!((queues.queue_of(BlockId(5)), queues.queue_of(BlockId(0))), (Some(0), Some(1)));
        queues.mark(BlockId(5));
        assert_eq!(queues.advance(0, 1), Some((BlockId(5), true)));
        assert_eq!(queues.pop(1), Some((BlockId(3), 0)));
        assert_eq!(queues.pop(1), Some((BlockId(0), MAX_HITS - 1)));
        assert_eq!(queues.audit(2, 1), Ok(()));
        assert!(queues.audit(2, 0).is_err());
        assert_eq!(queues.advance(1, 0), Some((BlockId(5), false)));
    }
}
