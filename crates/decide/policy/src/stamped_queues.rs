//! First-in first-out queues whose blocks count their hits and know how many came in after them.
//!
//! For: policies that treat hits by where in its queue a block is. Unit: blocks. 4 bytes per id
//! beside those of [`HitQueues`].

use crate::hit_queues::HitQueues;
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The queues, of which the first `RESIDENT` hold resident blocks, the others ghosts.
#[derive(Clone, Debug, SnapshotValue)]
pub struct StampedQueues<const QUEUES: usize, const RESIDENT: usize> {
    queues: HitQueues<QUEUES, RESIDENT>,
    /// Blocks that ever entered each queue, modulo 2^32.
    entries: [u32; QUEUES],
    /// Per id: the entries of its queue when it had entered.
    stamps: Vec<u32>,
}

impl<const QUEUES: usize, const RESIDENT: usize> Default for StampedQueues<QUEUES, RESIDENT> {
    fn default() -> Self {
        StampedQueues { queues: HitQueues::default(), entries: [0; QUEUES], stamps: Vec::new() }
    }
}

impl<const QUEUES: usize, const RESIDENT: usize> StampedQueues<QUEUES, RESIDENT> {
    /// Blocks in a queue.
    #[inline(always)]
    pub fn len(&self, queue: usize) -> u32 {
        self.queues.len(queue)
    }

    /// The queue of a block, if it is in one.
    #[inline(always)]
    pub fn queue_of(&self, block: BlockId) -> Option<usize> {
        self.queues.queue_of(block)
    }

    /// How many blocks entered a queue after this one of it did.
    #[inline(always)]
    pub fn later_entries(&self, queue: usize, block: BlockId) -> u32 {
        self.entries[queue].wrapping_sub(self.stamps[block.index()])
    }

    /// Notes that a queued block was hit, for policies that do not ask how often.
    #[inline(always)]
    pub fn mark(&mut self, block: BlockId) {
        self.queues.mark(block);
    }

    /// Counts a hit of a queued block.
    #[inline(always)]
    pub fn count_hit(&mut self, block: BlockId) {
        self.queues.count_hit(block);
    }

    /// Adds a block that is in no queue as the newest of `queue`, without hits.
    #[inline(always)]
    pub fn push(&mut self, queue: usize, block: BlockId) {
        self.stamp(queue, block);
        self.queues.push(queue, block);
    }

    /// Takes out the oldest block of a queue; returns its hits as well.
    #[inline(always)]
    pub fn pop(&mut self, queue: usize) -> Option<(BlockId, u8)> {
        self.queues.pop(queue)
    }

    /// Takes out the oldest block without hits. An older block that was hit pays one hit and enters
    /// anew.
    #[inline(always)]
    pub fn pop_unhit(&mut self, queue: usize) -> Option<BlockId> {
        let StampedQueues { queues, entries, stamps } = self;
        queues.pop_unhit_noting(queue, |block| {
            entries[queue] = entries[queue].wrapping_add(1);
            stamps[block.index()] = entries[queue];
        })
    }

    /// The block that comes out of a queue after so many others, if none was removed.
    #[inline(always)]
    pub fn peek(&self, queue: usize, later: u32) -> Option<BlockId> {
        self.queues.peek(queue, later)
    }

    /// The blocks of a queue from oldest to newest; for audits.
    pub fn blocks(&self, queue: usize) -> Vec<BlockId> {
        self.queues.blocks(queue)
    }

    #[inline(always)]
    fn stamp(&mut self, queue: usize, block: BlockId) {
        self.entries[queue] = self.entries[queue].wrapping_add(1);
        self.stamps[block.index()] = self.entries[queue];
    }
}

impl<const QUEUES: usize, const RESIDENT: usize> BlockStore for StampedQueues<QUEUES, RESIDENT> {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.queues.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.queues.tracks(block)
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.queues.resident()
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.queues.remove(block)
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.queues.reserve_ids(count, capacity, ghosts);
        lengthen(&mut self.stamps, count, 0);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        ids.close_up(&mut self.stamps, 0);
        self.queues.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.stamps, block.index());
        self.queues.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.queues.audit(capacity)?;
        for queue in 0..QUEUES {
            let blocks = self.queues.blocks(queue);
            let later = |block: &BlockId| self.later_entries(queue, *block);
            if !blocks.iter().map(later).is_sorted_by(|older, newer| older > newer) {
                return Err(format!("queue {queue} is not in the order of its entries"));
            }
        }
        Ok(())
    }
}
