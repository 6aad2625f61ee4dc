//! A first-in first-out queue of block ids with removal from anywhere.
//!
//! For: the queues of FIFO, Clock, SIEVE and S3-FIFO, whose hits must not move anything: a push and
//! a pop touch consecutive memory, unlike a linked list. A block may be queued once at a time.
//! Unit: blocks; 4 bytes per entry, capacity a power of two.
//!
//! Removal is lazy: the entry stays and the block's count of stale entries grows. Entries of one
//! block leave in the order they came, so the first ones to reach the tail are the stale ones.
//! Stale entries never outnumber live ones by more than [`SLACK`]. All operations are amortised
//! O(1); 2 bytes per id once something has been removed, none before.

use crate::renumber::Renumbering;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// Stale entries tolerated beyond the number of live ones before the queue is compacted.
const SLACK: u32 = 64;

/// The queue; entries are pushed at the head (newest) and popped at the tail (oldest).
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct BlockQueue {
    /// A power of two of entries, used in a circle.
    ring: Vec<u32>,
    /// Entries ever popped, modulo 2^32.
    tail: u32,
    /// Entries ever pushed, modulo 2^32.
    head: u32,
    /// Stale entries in the ring.
    dead: u32,
    /// Stale entries of each block; empty until the first removal.
    stale: Vec<u16>,
}

impl BlockQueue {
    /// Blocks in the queue.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.head.wrapping_sub(self.tail) - self.dead
    }

    /// Whether no block is queued.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for so many entries, stale ones among them, so that no push moves what is queued
    /// as long as there are no more.
    pub fn reserve(&mut self, entries: usize) {
        if entries > self.ring.len() {
            self.enlarge(entries.next_power_of_two());
        }
    }

    /// Gives the ids that are kept, all blocks queued among them, new numbers, and gives back room.
    pub fn renumber(&mut self, ids: &Renumbering) {
        let mut ring: Vec<u32> =
            self.blocks().into_iter().filter_map(|block| ids.get(block)).map(|id| id.0).collect();
        (self.tail, self.head, self.dead) = (0, ring.len() as u32, 0);
        ring.resize(ring.len().next_power_of_two(), 0);
        (self.ring, self.stale) = (ring, Vec::new());
    }

    /// Adds a block that is not queued as the newest.
    #[inline(always)]
    pub fn push(&mut self, block: BlockId) {
        if self.head.wrapping_sub(self.tail) as usize == self.ring.len() {
            self.grow();
        }
        let at = self.slot(self.head);
        self.ring[at] = block.0;
        self.head = self.head.wrapping_add(1);
    }

    /// Takes out the oldest block.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<BlockId> {
        let block = self.oldest()?;
        self.tail = self.tail.wrapping_add(1);
        Some(block)
    }

    /// The oldest block. Stale entries before it are dropped.
    #[inline(always)]
    pub fn oldest(&mut self) -> Option<BlockId> {
        while self.tail != self.head {
            let block = BlockId(self.ring[self.slot(self.tail)]);
            if self.dead == 0 || !self.was_stale(block) {
                return Some(block);
            }
            self.tail = self.tail.wrapping_add(1);
        }
        None
    }

    /// The entry that comes out after so many others, if none is stale.
    #[inline(always)]
    pub fn peek(&self, later: u32) -> Option<BlockId> {
        let queued = self.head.wrapping_sub(self.tail);
        let position = self.tail.wrapping_add(later);
        (later < queued).then(|| BlockId(self.ring[self.slot(position)]))
    }

    /// Takes a block out that is queued.
    pub fn remove(&mut self, block: BlockId) {
        if self.stale.len() <= block.index() {
            self.stale.resize(block.index() + 1, 0);
        }
        if self.stale[block.index()] == u16::MAX || self.dead > self.len() + SLACK {
            self.compact();
        }
        self.stale[block.index()] += 1;
        self.dead += 1;
    }

    /// The blocks from oldest to newest; for audits.
    pub fn blocks(&self) -> Vec<BlockId> {
        let mut stale = self.stale.clone();
        let mut live = Vec::with_capacity(self.len() as usize);
        for offset in 0..self.head.wrapping_sub(self.tail) {
            let id = self.ring[self.slot(self.tail.wrapping_add(offset))];
            match stale.get_mut(id as usize) {
                Some(count) if *count > 0 => *count -= 1,
                _ => live.push(BlockId(id)),
            }
        }
        live
    }

    /// Checks that the stale entries counted per block are those counted in all.
    pub fn audit(&self) -> Result<(), String> {
        let stale: u32 = self.stale.iter().map(|count| u32::from(*count)).sum();
        let live = self.blocks().len() as u32;
        if stale == self.dead && live == self.len() {
            return Ok(());
        }
        Err(format!("queue: {} live of {live}, {stale} stale of {}", self.len(), self.dead))
    }

    #[inline(always)]
    fn slot(&self, position: u32) -> usize {
        position as usize & self.ring.len().wrapping_sub(1)
    }

    #[cold]
    fn was_stale(&mut self, block: BlockId) -> bool {
        match self.stale.get_mut(block.index()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                self.dead -= 1;
                true
            }
            _ => false,
        }
    }

    /// Makes room: by dropping stale entries and, if that frees less than a fifth, by doubling.
    #[cold]
    fn grow(&mut self) {
        self.compact();
        let live = self.len() as usize;
        if live + live / 4 >= self.ring.len() {
            self.enlarge((2 * self.ring.len()).max(16));
        }
    }

    /// Takes a ring of so many entries, a power of two, and copies what is queued.
    fn enlarge(&mut self, size: usize) {
        // Zeroes that are not touched cost no memory yet.
        let mut ring = vec![0; size];
        cachewright_memory::advise(&mut ring);
        for offset in 0..self.head.wrapping_sub(self.tail) {
            ring[offset as usize] = self.ring[self.slot(self.tail.wrapping_add(offset))];
        }
        let entries = self.head.wrapping_sub(self.tail);
        (self.ring, self.tail, self.head) = (ring, 0, entries);
    }

    /// Drops the stale entries and closes the gaps.
    #[cold]
    fn compact(&mut self) {
        let (mut from, mut to) = (self.tail, self.tail);
        while from != self.head && self.dead > 0 {
            let block = BlockId(self.ring[self.slot(from)]);
            from = from.wrapping_add(1);
            if !self.was_stale(block) {
                let kept = self.slot(to);
                self.ring[kept] = block.0;
                to = to.wrapping_add(1);
            }
        }
        while from != self.head {
            let (kept, entry) = (self.slot(to), self.slot(from));
            self.ring[kept] = self.ring[entry];
            (from, to) = (from.wrapping_add(1), to.wrapping_add(1));
        }
        self.head = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_removed_and_queued_again_has_its_new_place() {
        let mut queue = BlockQueue::default();
        for id in [5, 6, 7] {
            queue.push(BlockId(id));
        }
        queue.remove(BlockId(5));
        queue.push(BlockId(5));
        assert_eq!(queue.blocks(), [6, 7, 5].map(BlockId));
        assert_eq!(queue.audit(), Ok(()));
        let popped: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|b| b.0).collect();
        assert_eq!(popped, [6, 7, 5]);
        assert!(queue.is_empty());
    }

    #[test]
    fn removals_without_end_stay_in_bounded_memory() {
        let mut queue = BlockQueue::default();
        queue.push(BlockId(1));
        for _ in 0..10_000 {
            queue.push(BlockId(0));
            queue.remove(BlockId(0));
            assert!(queue.dead <= queue.len() + SLACK + 1);
        }
        assert!(queue.ring.len() <= 256, "{} entries for one block", queue.ring.len());
        assert_eq!(queue.pop(), Some(BlockId(1)));
        assert_eq!(queue.pop(), None);
        assert_eq!(queue.audit(), Ok(()));
    }
}
