//! Exact LRU stack distances in one pass.
//!
//! For: the miss counts of every LRU size at once. Must never know: requests, time, tenants. The
//! distance of an access is one more than the number of blocks used since its block was last used
//! (Mattson et al., IBM Systems Journal 1970). The access hits in every LRU cache of at least that
//! many blocks. Blocks live in time slots (Bennett and Kruskal, IBM J. R&D 1975) that are compacted
//! when no slot is free. Memory per distinct block: 4 B latest slot, 0.65 B slots, 8 B histogram,
//! and at most a quarter more while growing: 16 B. Blocks are dense ids; compaction stays rare up
//! to 2^30 of them.

use crate::Histogram;
use crate::slots::TimeSlots;
use cachewright_types::BlockId;
use std::collections::BinaryHeap;

/// The slot of a block that is not in the stack.
const NONE: u32 = u32::MAX;
/// Slots per live slot after compaction: one compaction per three times as many accesses.
const SLOTS_PER_LIVE: u64 = 4;
/// Distances counted together.
const COUNT_BATCH: usize = 64;
/// Slots at least.
const MIN_SLOTS: u64 = 2048;

/// An LRU stack that measures the depth of each accessed block.
#[derive(Clone, Debug, Default)]
pub struct StackDistance {
    latest: Vec<u32>,
    slots: TimeSlots,
    /// Slots still set after a removal: free frames at some depth of the stack, newest first.
    holes: BinaryHeap<u32>,
    histogram: Histogram,
    /// Distances not yet counted. They are counted together, so that their processor cache misses
    /// overlap.
    pending: Vec<(u32, bool)>,
}

impl StackDistance {
    /// An empty stack.
    pub fn new() -> StackDistance {
        StackDistance::default()
    }

    /// Reserves ids `0..count`; optional, saves growth later.
    pub fn reserve_ids(&mut self, count: usize) {
        if self.latest.len() < count {
            self.latest.resize(count, NONE);
        }
    }

    /// Blocks in the stack.
    pub fn distinct(&self) -> u32 {
        self.slots.live() - self.holes.len() as u32
    }

    /// Distances counted so far.
    pub fn histogram(&mut self) -> &Histogram {
        self.count_pending();
        &self.histogram
    }

    /// Returns the distances counted so far and resets the counts. The stack stays, so that the
    /// next window does not start cold.
    pub fn take_histogram(&mut self) -> Histogram {
        self.count_pending();
        let taken = std::mem::take(&mut self.histogram);
        self.histogram.reserve(self.slots.live());
        taken
    }

    /// Counts one access and returns its distance; nothing at the first use of a block.
    #[inline(always)]
    pub fn access(&mut self, block: BlockId, write: bool) -> Option<u32> {
        if block.index() >= self.latest.len() || self.slots.is_full() {
            self.grow(block);
        }
        let slot = self.latest[block.index()];
        if slot == NONE {
            self.enter(block, write);
            return None;
        }
        let distance = self.slots.after(slot) + 1;
        self.vacate(slot);
        self.latest[block.index()] = self.slots.push();
        self.pending.push((distance, write));
        if self.pending.len() >= COUNT_BATCH {
            self.count_pending();
        }
        Some(distance)
    }

    /// Puts a prefetched block on top of the stack; no access is counted.
    pub fn bring_in(&mut self, block: BlockId) {
        if block.index() >= self.latest.len() || self.slots.is_full() {
            self.grow(block);
        }
        match self.latest[block.index()] {
            NONE => self.push(block),
            slot => {
                self.vacate(slot);
                self.latest[block.index()] = self.slots.push();
            }
        }
    }

    /// Counts many accesses, all reads or all writes, as [`StackDistance::access`] would.
    #[inline(never)]
    pub fn access_all(&mut self, blocks: &[BlockId], write: bool) {
        for group in blocks.chunks(COUNT_BATCH) {
            let loaded =
                group.iter().fold(0, |sum: u32, block| sum.wrapping_add(self.touch(*block)));
            std::hint::black_box(loaded);
            for block in group {
                self.access(*block, write);
            }
        }
    }

    /// Loads the block's state into the processor cache before its access. The value has no
    /// meaning; it is returned so that the compiler keeps the load.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) -> u32 {
        self.latest.get(block.index()).copied().unwrap_or(NONE)
    }

    /// Removes a trimmed block; returns whether it was in the stack. Its frame stays free until a
    /// miss reaches it, as in an LRU cache of every size.
    pub fn remove(&mut self, block: BlockId) -> bool {
        let Some(slot) = self.take_slot(block) else { return false };
        self.holes.push(slot);
        true
    }

    /// Removes a block as if it had never been accessed, because the sample dropped it; returns
    /// whether it was in the stack. Blocks below it move up.
    pub fn forget(&mut self, block: BlockId) -> bool {
        let Some(slot) = self.take_slot(block) else { return false };
        self.slots.clear(slot);
        true
    }

    /// Bytes held, everything included.
    pub fn memory_bytes(&self) -> usize {
        let holes = self.holes.capacity() * 4 + self.pending.capacity() * 8;
        self.latest.capacity() * 4
            + holes
            + self.slots.memory_bytes()
            + self.histogram.memory_bytes()
    }

    /// Checks, slowly, that every block in the stack has its own set slot.
    pub fn audit(&self) -> Result<(), String> {
        let mut used: Vec<u32> = self.latest.iter().copied().filter(|&s| s != NONE).collect();
        used.extend(&self.holes);
        used.sort_unstable();
        if used.len() != self.slots.live() as usize {
            return Err(format!("{} slots used, {} set", used.len(), self.slots.live()));
        }
        match (1..).zip(&used).find(|(rank, slot)| self.slots.rank(**slot) != *rank) {
            Some((rank, slot)) => {
                Err(format!("slot {slot} has rank {}, expected {rank}", self.slots.rank(*slot)))
            }
            None => Ok(()),
        }
    }

    fn take_slot(&mut self, block: BlockId) -> Option<u32> {
        let latest = self.latest.get_mut(block.index())?;
        let slot = std::mem::replace(latest, NONE);
        (slot != NONE).then_some(slot)
    }

    #[inline(never)]
    fn count_pending(&mut self) {
        for (distance, write) in self.pending.drain(..) {
            self.histogram.count(distance, write);
        }
    }

    /// Moves a block's frame from `slot` to the top. It fills the newest free frame above it and
    /// frees its own; without one, the stack closes its own frame.
    #[inline(always)]
    fn vacate(&mut self, slot: u32) {
        if self.holes.is_empty() {
            self.slots.clear(slot);
        } else {
            self.vacate_beside_holes(slot);
        }
    }

    #[cold]
    fn vacate_beside_holes(&mut self, slot: u32) {
        let filled = self.fill_hole_above(slot);
        if filled {
            self.holes.push(slot);
        } else {
            self.slots.clear(slot);
        }
    }

    /// Fills the newest free frame if it is newer than `slot`.
    fn fill_hole_above(&mut self, slot: u32) -> bool {
        match self.holes.peek().copied() {
            Some(hole) if hole > slot => {
                self.holes.pop();
                self.slots.clear(hole);
                true
            }
            _ => false,
        }
    }

    #[inline(never)]
    fn enter(&mut self, block: BlockId, write: bool) {
        self.push(block);
        self.histogram.count_cold(write);
    }

    /// Puts a new block on top.
    fn push(&mut self, block: BlockId) {
        if let Some(hole) = self.holes.pop() {
            self.slots.clear(hole);
        }
        self.latest[block.index()] = self.slots.push();
        self.histogram.reserve(self.slots.live());
    }

    #[cold]
    fn grow(&mut self, block: BlockId) {
        if block.index() >= self.latest.len() {
            let count = (block.index() + 1).max(self.latest.len() + self.latest.len() / 4);
            self.latest.reserve_exact(count - self.latest.len());
            self.latest.resize(count, NONE);
        }
        if self.slots.is_full() {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let slots = &self.slots;
        for slot in self.latest.iter_mut().filter(|slot| **slot != NONE) {
            *slot = slots.rank(*slot) - 1;
        }
        let holes = std::mem::take(&mut self.holes);
        self.holes = holes.into_iter().map(|slot| slots.rank(slot) - 1).collect();
        let slots = (u64::from(slots.live()) * SLOTS_PER_LIVE).max(MIN_SLOTS);
        self.slots.compact(slots);
    }
}
