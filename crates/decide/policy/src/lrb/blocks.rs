//! The blocks of LRB: resident ones and those within the memory window, and samples that wait.
//!
//! For: `lrb`. Must never know: models, inputs. A sample is a block and a time; it waits until the
//! block is used next or forgotten, which says what should have been predicted. Blocks outside the
//! cache are forgotten in the order of their last uses: a circle names the block of each of the
//! last accesses. Memory: 200 bytes per id, 4 to 8 per access of the window, 8 per waiting sample.

use super::history::BlockHistory;
use crate::links::Links;
use crate::renumber::Renumbering;
use crate::sampled_blocks::SampledBlocks;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_types::BlockId;

/// No sample, no block.
const NONE: u32 = u32::MAX;

/// A sample that waits, or an unused entry.
#[derive(Clone, Copy, Debug)]
struct WaitingSample {
    time: u32,
    /// The next sample of the block, or the next unused entry.
    next: u32,
}

/// The blocks; see the top of the file.
#[derive(Clone, Debug)]
pub struct LrbBlocks {
    resident: SampledBlocks<()>,
    /// Blocks outside the cache that are remembered.
    ghosts: SampledBlocks<()>,
    /// Resident blocks in order of use.
    order: Links<(), 1>,
    histories: Vec<BlockHistory>,
    /// Per id the last of its samples.
    samples: Vec<u32>,
    waiting: Vec<WaitingSample>,
    unused: u32,
    /// The block of each access; a power of two of places.
    used_at: Vec<u32>,
    /// Ghosts used before are forgotten.
    horizon: u32,
}

impl LrbBlocks {
    /// No blocks, at time 0.
    pub fn new() -> LrbBlocks {
        LrbBlocks {
            resident: SampledBlocks::default(),
            ghosts: SampledBlocks::default(),
            order: Links::new(),
            histories: Vec::new(),
            samples: Vec::new(),
            waiting: Vec::new(),
            unused: NONE,
            used_at: vec![NONE],
            horizon: 0,
        }
    }

    /// What is known of a block that is tracked.
    #[inline(always)]
    pub fn history(&self, block: BlockId) -> &BlockHistory {
        &self.histories[block.index()]
    }

    /// Blocks outside the cache that are remembered.
    #[inline(always)]
    pub fn ghosts(&self) -> u32 {
        self.ghosts.resident()
    }

    /// The block is used now; it has no samples.
    #[inline(always)]
    pub fn use_now(&mut self, block: BlockId, now: u32) {
        if self.tracks(block) {
            self.histories[block.index()].use_now(now);
        } else {
            self.histories[block.index()] = BlockHistory::first(now);
        }
        if self.resident.contains(block) {
            self.order.move_to_head(0, block);
        }
        let place = now as usize & (self.used_at.len() - 1);
        self.used_at[place] = block.0;
    }

    /// A block that is used now enters the cache.
    #[inline(always)]
    pub fn enter(&mut self, block: BlockId) {
        self.resident.push(block, ());
        self.order.push_head(0, block);
    }

    /// A block that is used now is a ghost no more, if it was one.
    #[inline(always)]
    pub fn take_ghost(&mut self, block: BlockId) {
        self.ghosts.take(block);
    }

    /// A resident block becomes a ghost.
    #[inline(always)]
    pub fn leave(&mut self, block: BlockId) {
        self.resident.take(block);
        self.order.unlink(0, block);
        self.ghosts.push(block, ());
    }

    /// Accesses from the horizon to the last one; none if the last one was forgotten.
    #[inline(always)]
    fn within_horizon(&self, now: u32) -> u32 {
        now.wrapping_add(1).wrapping_sub(self.horizon)
    }

    /// Whether ghosts that were used when this block was are forgotten.
    #[inline(always)]
    pub fn is_beyond_horizon(&self, block: BlockId, now: u32) -> bool {
        self.history(block).age(now) >= self.within_horizon(now)
    }

    /// The next ghost to forget while the oldest is `window` accesses old, or there are more than
    /// `limit`; the caller removes it. Amortised O(1) per access.
    #[inline(always)]
    pub fn next_forgotten(&mut self, now: u32, window: u32, limit: u32) -> Option<BlockId> {
        loop {
            let within = self.within_horizon(now);
            if within == 0 || (within <= window && self.ghosts() <= limit) {
                return None;
            }
            let time = self.horizon;
            self.horizon = self.horizon.wrapping_add(1);
            let block = self.used_at[time as usize & (self.used_at.len() - 1)];
            let is_there = block != NONE && {
                let block = BlockId(block);
                self.ghosts.contains(block) && self.history(block).used == time
            };
            if is_there {
                return Some(BlockId(block));
            }
        }
    }

    /// Makes the circle hold so many accesses.
    pub fn remember_accesses(&mut self, window: u32, now: u32) {
        let len = (window as usize + 2).next_power_of_two();
        if len <= self.used_at.len() && len * 4 > self.used_at.len() {
            return;
        }
        self.used_at = vec![NONE; len];
        let blocks =
            (0..self.resident.resident() + self.ghosts()).map(|place| self.by_place(place));
        for block in blocks.collect::<Vec<BlockId>>() {
            let history = *self.history(block);
            if (history.age(now) as usize) < len {
                self.used_at[history.used as usize & (len - 1)] = block.0;
            }
        }
        // What is older than the circle is not forgotten by it.
        if self.within_horizon(now) as usize > len {
            self.horizon = now.wrapping_add(1).wrapping_sub(len as u32);
            self.drop_beyond_horizon(now);
        }
    }

    /// Forgets ghosts beyond the horizon, with their samples. O(ghosts).
    #[cold]
    fn drop_beyond_horizon(&mut self, now: u32) {
        let ghosts = (0..self.ghosts() as usize).map(|place| self.ghosts.by_place(place).0);
        let is_beyond = |block: &BlockId| self.is_beyond_horizon(*block, now);
        for block in ghosts.filter(is_beyond).collect::<Vec<BlockId>>() {
            self.remove(block);
        }
    }

    /// The resident block that was used longest ago, after so many others.
    #[inline(always)]
    pub fn oldest(&self, later: u32) -> Option<BlockId> {
        self.order.near_tail(0, later)
    }

    /// A block by its place: resident ones, then ghosts.
    #[inline(always)]
    pub fn by_place(&self, place: u32) -> BlockId {
        let resident = self.resident.resident();
        if place < resident {
            self.resident.by_place(place as usize).0
        } else {
            self.ghosts.by_place((place - resident) as usize).0
        }
    }

    /// Adds a sample of a tracked block, if fewer than `limit` wait.
    #[inline(always)]
    pub fn sample(&mut self, block: BlockId, time: u32, limit: usize) {
        let sample = WaitingSample { time, next: self.samples[block.index()] };
        let place = if self.unused != NONE {
            let place = self.unused;
            self.unused = self.waiting[place as usize].next;
            self.waiting[place as usize] = sample;
            place
        } else if self.waiting.len() < limit {
            self.waiting.push(sample);
            self.waiting.len() as u32 - 1
        } else {
            return;
        };
        self.samples[block.index()] = place;
    }

    /// Takes the last sample of a block: its time.
    #[inline(always)]
    pub fn take_sample(&mut self, block: BlockId) -> Option<u32> {
        let place = self.samples[block.index()];
        let sample = *self.waiting.get(place as usize)?;
        self.samples[block.index()] = sample.next;
        self.waiting[place as usize].next = self.unused;
        self.unused = place;
        Some(sample.time)
    }
}

impl BlockStore for LrbBlocks {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.resident.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.resident.contains(block) || self.ghosts.contains(block)
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.resident.resident()
    }

    fn remove(&mut self, block: BlockId) -> bool {
        while self.take_sample(block).is_some() {}
        self.ghosts.take(block);
        let resident = self.resident.take(block).is_some();
        if resident {
            self.order.unlink(0, block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.resident.reserve_ids(count, capacity, 0);
        self.ghosts.reserve_ids(count, ghosts, 0);
        self.order.reserve_ids(count);
        lengthen(&mut self.histories, count, BlockHistory::first(0));
        lengthen(&mut self.samples, count, NONE);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        for block in &mut self.used_at {
            *block = ids.get(BlockId(*block)).map_or(NONE, |new| new.0);
        }
        self.order.renumber(ids);
        ids.close_up(&mut self.histories, 0);
        ids.close_up(&mut self.samples, 0);
        self.resident.renumber(ids) && self.ghosts.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.histories, block.index());
        self.resident.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.resident.audit(capacity)?;
        self.ghosts.audit(u32::MAX)?;
        self.order.audit()?;
        let resident = self.resident.resident();
        if self.order.len(0) != resident {
            return Err(format!("{} of {resident} blocks are ordered", self.order.len(0)));
        }
        let tracked = (0..resident + self.ghosts()).map(|place| self.by_place(place));
        if let Some(block) =
            tracked.clone().skip(resident as usize).find(|block| self.resident.contains(*block))
        {
            return Err(format!("block {} is resident and a ghost", block.0));
        }
        let mut waiting = 0;
        for block in tracked {
            let mut place = self.samples[block.index()];
            while let Some(sample) = self.waiting.get(place as usize) {
                waiting += 1;
                place = sample.next;
            }
        }
        let heads = self.samples.iter().filter(|head| **head != NONE).count();
        let unused = std::iter::successors(self.waiting.get(self.unused as usize), |sample| {
            self.waiting.get(sample.next as usize)
        });
        let unused = unused.count();
        if waiting + unused != self.waiting.len() || heads > waiting {
            return Err(format!(
                "{waiting} samples wait, {unused} unused, of {}; {heads} blocks have any",
                self.waiting.len()
            ));
        }
        Ok(())
    }
}
