//! Blocks ordered by the position of their next use, the furthest first.
//!
//! For: Belady's MIN. Units: positions in the stream of accesses; 8 bytes per entry.
//!
//! Entries are never updated: a block that moves gets a second entry, and an entry counts only
//! while it agrees with the caller's table of next uses. Entries before the current position lie in
//! buckets of [`BUCKET_BITS`] bits of positions and are dropped by the bucket; of the buckets ahead
//! only the furthest is kept as a heap. So most entries are written once and never read.

use crate::NEVER;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;
use std::collections::BinaryHeap;

/// Positions per bucket, as a power of two.
const BUCKET_BITS: u32 = 12;
/// Entries in the heap before the nearer ones are moved out to buckets.
const HEAP_LIMIT: usize = 1 << 10;
/// Entries tolerated beyond twice the number of blocks.
const SLACK: usize = 1 << 14;

/// The order; see the top of the file.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct FarFirst {
    /// Blocks that are never used again, latest last.
    never: Vec<u32>,
    /// Entries at or beyond the first position of bucket `heap_from`.
    heap: BinaryHeap<u64>,
    heap_from: usize,
    heap_limit: usize,
    /// Entries before it, by position; those of buckets before `now` are gone.
    buckets: Vec<Vec<u64>>,
    now: usize,
    /// Emptied buckets, for their memory.
    spare: Vec<Vec<u64>>,
    /// Entries in all of the above.
    entries: usize,
}

impl FarFirst {
    /// Adds an entry. `current` is the table of next uses that makes entries valid, with the new
    /// one in it, and `live` the number of blocks in it.
    #[inline(always)]
    pub fn insert(&mut self, next_use: u32, block: BlockId, current: &[u32], live: u32) {
        self.entries += 1;
        if next_use == NEVER {
            self.never.push(block.0);
        } else {
            self.place(entry(next_use, block));
            if self.heap.len() > self.heap_limit.max(HEAP_LIMIT) {
                self.spill();
            }
        }
        if self.entries > 2 * live as usize + SLACK {
            self.compact(current);
        }
    }

    /// Notes that the stream has reached `position`.
    #[inline(always)]
    pub fn pass(&mut self, position: u32) {
        let bucket = (position >> BUCKET_BITS) as usize;
        if position != NEVER && bucket > self.now {
            self.drop_past(bucket);
        }
    }

    /// The valid entry furthest ahead; those of no use again come first, the latest of them first.
    #[inline(always)]
    pub fn furthest(&mut self, current: &[u32]) -> Option<(u32, BlockId)> {
        while let Some(&id) = self.never.last() {
            if current[id as usize] == NEVER {
                return Some((NEVER, BlockId(id)));
            }
            self.never.pop();
            self.entries -= 1;
        }
        loop {
            while let Some(&top) = self.heap.peek() {
                let (next_use, block) = parts(top);
                if current[block.index()] == next_use {
                    return Some((next_use, block));
                }
                self.heap.pop();
                self.entries -= 1;
            }
            if !self.refill() {
                return self.recover(current);
            }
        }
    }

    /// Drops the entry that [`FarFirst::furthest`] has just returned.
    #[inline(always)]
    pub fn pop_furthest(&mut self) {
        let popped = self.never.pop().is_some() || self.heap.pop().is_some();
        self.entries -= usize::from(popped);
    }

    /// Checks that every block whose next use is not over has an entry.
    pub fn audit(&self, current: &[u32]) -> Result<(), String> {
        let mut all: Vec<u64> = self.never.iter().map(|id| entry(NEVER, BlockId(*id))).collect();
        all.extend(self.heap.iter().chain(self.buckets.iter().flatten()));
        if all.len() != self.entries {
            return Err(format!("{} entries, {} counted", all.len(), self.entries));
        }
        all.sort_unstable();
        for (id, &next_use) in current.iter().enumerate() {
            let ahead = next_use != 0 && (next_use >> BUCKET_BITS) as usize >= self.now;
            if ahead && all.binary_search(&entry(next_use, BlockId(id as u32))).is_err() {
                return Err(format!("block {id}, used at {next_use}, is not ordered"));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn place(&mut self, entry: u64) {
        let bucket = (entry >> (32 + BUCKET_BITS)) as usize;
        if bucket >= self.heap_from {
            self.heap.push(entry);
            return;
        }
        let entries = &mut self.buckets[bucket];
        if entries.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            *entries = spare;
        }
        entries.push(entry);
    }

    /// Makes the furthest bucket that has entries the heap; false when there is none.
    #[cold]
    fn refill(&mut self) -> bool {
        while self.heap_from > self.now {
            self.heap_from -= 1;
            let bucket = std::mem::take(&mut self.buckets[self.heap_from]);
            if !bucket.is_empty() {
                self.heap_limit = 4 * bucket.len();
                let emptied = std::mem::replace(&mut self.heap, BinaryHeap::from(bucket));
                self.spare.push(emptied.into_vec());
                return true;
            }
        }
        false
    }

    /// Moves all entries of the heap but those of the furthest bucket out to buckets.
    #[cold]
    fn spill(&mut self) {
        let entries = std::mem::take(&mut self.heap).into_vec();
        let furthest = entries.iter().max().map_or(0, |top| top >> (32 + BUCKET_BITS)) as usize;
        self.heap_from = furthest.max(self.now);
        if self.buckets.len() < self.heap_from {
            self.buckets.resize(self.heap_from, Vec::new());
        }
        self.entries -= entries.len();
        for entry in entries {
            if (entry >> (32 + BUCKET_BITS)) as usize >= self.now {
                self.entries += 1;
                self.place(entry);
            }
        }
        self.heap_limit = 4 * self.heap.len();
    }

    #[cold]
    fn drop_past(&mut self, now: usize) {
        for bucket in self.now..now.min(self.buckets.len()) {
            let mut past = std::mem::take(&mut self.buckets[bucket]);
            self.entries -= past.len();
            if past.capacity() > 0 {
                past.clear();
                self.spare.push(past);
            }
        }
        self.now = now;
    }

    /// Drops every entry that is not valid, and all but one of equal ones.
    #[cold]
    fn compact(&mut self, current: &[u32]) {
        let mut entries: Vec<u64> = self.heap.drain().collect();
        entries.extend(self.buckets.iter_mut().flat_map(|bucket| bucket.drain(..)));
        entries.extend(self.never.drain(..).map(|id| entry(NEVER, BlockId(id))));
        entries.retain(|entry| is_valid(*entry, current));
        entries.sort_unstable();
        entries.dedup();
        self.rebuild(&entries);
    }

    /// What the caller's table holds although its entries were dropped: blocks whose announced
    /// next use went by without one.
    #[cold]
    fn recover(&mut self, current: &[u32]) -> Option<(u32, BlockId)> {
        let mut entries: Vec<u64> = Vec::new();
        for (id, next_use) in current.iter().enumerate().filter(|(_, next_use)| **next_use != 0) {
            entries.push(entry(*next_use, BlockId(id as u32)));
        }
        self.rebuild(&entries);
        entries.into_iter().max().map(parts)
    }

    fn rebuild(&mut self, entries: &[u64]) {
        self.entries = entries.len();
        (self.heap_from, self.heap_limit) = (0, entries.len());
        for &entry in entries {
            match parts(entry) {
                (NEVER, block) => self.never.push(block.0),
                _ => self.heap.push(entry),
            }
        }
    }
}

#[inline(always)]
fn entry(next_use: u32, block: BlockId) -> u64 {
    (u64::from(next_use) << 32) | u64::from(block.0)
}

#[inline(always)]
fn parts(entry: u64) -> (u32, BlockId) {
    ((entry >> 32) as u32, BlockId(entry as u32))
}

#[inline(always)]
fn is_valid(entry: u64, current: &[u32]) -> bool {
    let (next_use, block) = parts(entry);
    current[block.index()] == next_use
}
