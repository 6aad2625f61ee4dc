//! Exact LRU stack distances in one pass: the miss counts of every LRU size at once.
//!
//! The distance of an access is one more than the number of blocks used since its block was last
//! used (Mattson et al., IBM Systems Journal 1970). The access hits in every LRU cache of at least
//! that many blocks. Blocks live in time slots (Bennett and Kruskal, IBM J. R&D 1975) that are
//! compacted when no slot is free. Memory per distinct block: 4 B latest slot, 0.65 B slots, 8 B
//! histogram, and at most a quarter more while growing: 16 B. Blocks are dense ids; compaction
//! stays rare up to 2^30 of them.

use cachewright_snapshot::SnapshotValue;
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
#[derive(Clone, Debug, Default, SnapshotValue)]
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
                group.iter().fold(0, |sum: u32, block| sum.wrapping_add(self.prefetch(*block)));
            std::hint::black_box(loaded);
            for block in group {
                self.access(*block, write);
            }
        }
    }

    /// Loads the block's state into the processor cache before its access. The value has no
    /// meaning; it is returned so that the compiler keeps the load.
    #[inline(always)]
    pub fn prefetch(&self, block: BlockId) -> u32 {
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
/// Counters per node.
const FAN: usize = 16;
/// log2(FAN).
const FAN_BITS: u32 = 4;
/// log2 of the bits below one node of `fine`.
const NODE_BITS: u32 = 6 + FAN_BITS;

/// Which recent accesses are still the latest of a block, and how many came after each.
///
/// A slot is one bit, set while it is a block's latest access. Above the bits stand nodes of 16
/// counters, each the number of set bits before it within its node. A rank is therefore one load
/// per level and one population count. Clearing a bit lowers the counters to its right with vector
/// arithmetic: no branch depends on data. Slots are assigned in ascending order. Counters to the
/// right of the newest slot are stale and written when it reaches them. Memory: 1.3 bits per slot.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct TimeSlots {
    words: Vec<u64>,
    /// Per word: set bits before it in its node.
    fine: Vec<[u16; FAN]>,
    /// `coarse[l]`, per node of the level below: set bits before it in its own node.
    coarse: Vec<Vec<[u32; FAN]>>,
    next: u32,
    live: u32,
}

impl TimeSlots {
    /// Largest number of slots.
    const MAX_SLOTS: u32 = !((1 << NODE_BITS) - 1);

    /// Set bits.
    #[inline(always)]
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        let coarse: usize = self.coarse.iter().map(Vec::capacity).sum();
        self.words.capacity() * 8 + self.fine.capacity() * FAN * 2 + coarse * FAN * 4
    }

    /// Whether the next slot does not exist.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.next as usize >= self.words.len() * 64
    }

    /// Set bits after `slot`.
    #[inline(always)]
    pub fn after(&self, slot: u32) -> u32 {
        self.live - self.rank(slot)
    }

    /// Set bits up to and including `slot`.
    #[inline(always)]
    pub fn rank(&self, slot: u32) -> u32 {
        let word = self.words[(slot >> 6) as usize] & (u64::MAX >> (63 - (slot & 63)));
        let node = &self.fine[(slot >> NODE_BITS) as usize];
        let mut rank = word.count_ones() + u32::from(node[(slot >> 6) as usize % FAN]);
        let mut index = (slot >> NODE_BITS) as usize;
        for level in &self.coarse {
            rank += level[index / FAN][index % FAN];
            index /= FAN;
        }
        rank
    }

    /// Assigns the next slot and sets it; there must be one.
    #[inline(always)]
    pub fn push(&mut self) -> u32 {
        let slot = self.next;
        if slot & 63 == 0 {
            self.enter(slot);
        }
        self.words[(slot >> 6) as usize] |= 1 << (slot & 63);
        self.next += 1;
        self.live += 1;
        slot
    }

    /// Clears `slot`, which must be set.
    #[inline(always)]
    pub fn clear(&mut self, slot: u32) {
        debug_assert!(self.words[(slot >> 6) as usize] >> (slot & 63) & 1 == 1, "slot {slot}");
        self.words[(slot >> 6) as usize] &= !(1 << (slot & 63));
        self.live -= 1;
        let child = ((slot >> 6) as usize % FAN) as u16;
        let node = &mut self.fine[(slot >> NODE_BITS) as usize];
        for (index, count) in (0..).zip(node) {
            *count = count.wrapping_sub(u16::from(index > child));
        }
        let mut index = (slot >> NODE_BITS) as usize;
        for level in &mut self.coarse {
            let child = (index % FAN) as u32;
            index /= FAN;
            for (index, count) in (0..).zip(&mut level[index]) {
                *count = count.wrapping_sub(u32::from(index > child));
            }
        }
    }

    /// Moves the set bits to the start in their order, and provides at least `slots` slots. The new
    /// position of a slot is its `rank` before this, minus one.
    pub fn compact(&mut self, slots: u64) {
        let nodes = slots.min(u64::from(Self::MAX_SLOTS)).div_ceil(1 << NODE_BITS) as usize;
        let live = self.live;
        self.words.clear();
        self.words.resize(nodes * FAN, 0);
        self.fine.clear();
        self.fine.resize(nodes, [0; FAN]);
        self.coarse.clear();
        let mut below = nodes;
        while below > 1 {
            let count = below.div_ceil(FAN);
            self.coarse.push(vec![[0; FAN]; count]);
            below = count;
        }
        for word in 0..live.div_ceil(64) {
            self.live = word * 64;
            self.enter(word * 64);
            let bits = (live - word * 64).min(64);
            self.words[word as usize] = u64::MAX >> (64 - bits);
        }
        self.live = live;
        self.next = live;
    }

    /// Writes the counters whose node or word begins at `slot`, the newest: all set bits are
    /// before it.
    #[inline(never)]
    fn enter(&mut self, slot: u32) {
        let mut before = self.live;
        for (depth, level) in self.coarse.iter_mut().enumerate().rev() {
            let shift = NODE_BITS + FAN_BITS * depth as u32;
            let index = (slot >> shift) as usize;
            let count = &mut level[index / FAN][index % FAN];
            if slot & ((1 << shift) - 1) == 0 {
                *count = before;
            }
            before -= *count;
        }
        self.fine[(slot >> NODE_BITS) as usize][(slot >> 6) as usize % FAN] = before as u16;
    }
}
/// Accesses by reuse distance, reads and writes apart. A distance is a position in the LRU stack: 1
/// is the block used last. Memory: 8 bytes per distance; counts above 2^32 carry into a list that
/// is nearly always empty.
#[derive(Clone, Debug, Default, PartialEq, SnapshotValue)]
pub struct Histogram {
    /// `counts[d]`: reads and writes at distance d, modulo 2^32; index 0 stays zero.
    counts: Vec<[u32; 2]>,
    /// One entry per wrap of a count: its distance and kind.
    carries: Vec<(u32, u8)>,
    /// Accesses to blocks never seen before, reads and writes.
    cold: [u64; 2],
    /// All accesses, reads and writes.
    accesses: [u64; 2],
}

impl Histogram {
    /// No access counted, no memory held.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Provides counts for distances up to `distance`.
    fn reserve(&mut self, distance: u32) {
        let count = distance as usize + 1;
        if self.counts.len() < count {
            if self.counts.capacity() < count {
                // A quarter, not double: histograms are most of a stack's memory.
                self.counts.reserve_exact(count / 4 + 16);
            }
            self.counts.resize(count, [0; 2]);
        }
    }

    /// Counts a reuse; `reserve` was called for `distance`.
    #[inline(always)]
    pub(crate) fn count(&mut self, distance: u32, write: bool) {
        let kind = usize::from(write);
        self.accesses[kind] += 1;
        let cell = &mut self.counts[distance as usize][kind];
        *cell = cell.wrapping_add(1);
        if *cell == 0 {
            self.carry(distance, write);
        }
    }

    #[cold]
    fn carry(&mut self, distance: u32, write: bool) {
        self.carries.push((distance, u8::from(write)));
    }

    /// Counts a first use.
    #[inline(always)]
    fn count_cold(&mut self, write: bool) {
        let kind = usize::from(write);
        self.accesses[kind] += 1;
        self.cold[kind] += 1;
    }

    /// The largest distance with a count.
    pub fn longest(&self) -> u32 {
        self.counts.len().saturating_sub(1) as u32
    }

    /// Reads and writes at `distance`.
    pub fn count_at(&self, distance: u32) -> [u64; 2] {
        let low = self.counts.get(distance as usize).copied().unwrap_or_default();
        let mut both = low.map(u64::from);
        for (_, kind) in self.carries.iter().filter(|(carried, _)| *carried == distance) {
            both[usize::from(*kind)] += 1 << 32;
        }
        both
    }

    /// First uses, reads and writes: the misses of an unlimited cache.
    pub fn cold(&self) -> [u64; 2] {
        self.cold
    }

    /// All accesses, reads and writes.
    pub fn accesses(&self) -> [u64; 2] {
        self.accesses
    }

    /// `(distance, reads and writes)` for every distance with a count, ascending from 1.
    pub fn iter(&self) -> impl Iterator<Item = (u32, [u64; 2])> + '_ {
        let plain = self.carries.is_empty();
        (1..self.counts.len() as u32).map(move |distance| {
            let low = self.counts[distance as usize];
            (distance, if plain { low.map(u64::from) } else { self.count_at(distance) })
        })
    }

    /// Hits of an LRU cache of `size_blocks`, reads and writes. O(size).
    pub fn hits(&self, size_blocks: u32) -> [u64; 2] {
        self.iter()
            .take(size_blocks as usize)
            .fold([0; 2], |sum, (_, both)| [sum[0] + both[0], sum[1] + both[1]])
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.counts.capacity() * 8 + self.carries.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_wraps_keeps_its_value() {
        let mut histogram = Histogram::new();
        histogram.reserve(3);
        histogram.counts[3] = [u32::MAX, 7];
        histogram.count(3, false);
        histogram.count(3, true);
        assert_eq!(histogram.count_at(3), [1 << 32, 8]);
        assert_eq!(histogram.hits(3), [1 << 32, 8]);
        assert_eq!(histogram.hits(2), [0, 0]);
    }
}
