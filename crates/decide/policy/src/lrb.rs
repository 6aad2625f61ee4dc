//! LRB: of a few blocks drawn at random, the one that is predicted to be used last leaves.
//!
//! For: a bound on what learning from re-use gains, at thousands of decisions per second. Source:
//! Song et al., "Learning relaxed Belady for content distribution network caching", NSDI'20: 64
//! candidates; boosted trees trained online predict the logarithm of the accesses until the next
//! use; a block is sampled per access, of all that were used within the memory window; one that is
//! not used within it counts as used after twice the window; a resident block beyond the window
//! leaves first, and before the first model the least recently used one does. From the authors'
//! code: 32 trees of 32 leaves, a rate of 0.1, four fifths of rows and inputs; samples are taken
//! from the first eviction on.
//!
//! Ours: blocks outside the cache are remembered up to `history` times the capacity, which can make
//! the window shorter; candidates may be drawn twice; distances that are not known are infinite
//! inputs, as in the paper (the code gives zeroes); a batch of 32,768 rows in place of 131,072, so
//! that short traces are learned; samples beyond four per block are left out. A training takes tens
//! of milliseconds to a second and stops decisions. Unit: accesses. Memory: 200 bytes per id, 32 to
//! 64 per cached block for the circle of accesses, 5.8 MiB of rows.

use crate::links::Links;
use crate::online_trees::OnlineTrees;
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::sampled_blocks::SampledBlocks;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_memory::{lengthen, prefetch};
use cachewright_model::learn::BoostingSettings;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Rng, Seed, declare};

declare! {
    /// How LRB draws, remembers and learns.
    pub struct LrbSettings {
        /// blocks drawn per eviction
        candidates: u32 = 64, "blocks", 1 ..= 1024;
        /// memory window, as a multiple of the capacity
        window: f64 = 8.0, "accesses per block", 1.0 ..= 1000.0;
        /// blocks outside the cache that are remembered, as a multiple of the capacity
        history: f64 = 3.0, "ratio", 0.0 ..= 100.0;
        /// rows of a training
        batch: u32 = 32_768, "rows", 64 ..= 1_048_576;
        /// trees of a model
        trees: u32 = 32, "trees", 1 ..= 256;
    }
}

/// Waiting samples per block that may be tracked.
const SAMPLES_PER_BLOCK: usize = 4;

/// Learning relaxed Belady.
#[derive(Clone, Debug, Snapshot)]
pub struct Lrb {
    blocks: LrbBlocks,
    capacity: u32,
    /// Accesses so far, modulo 2^32.
    now: u32,
    window: u32,
    ghost_blocks: u32,
    has_evicted: bool,
    /// Predicts the logarithm of the accesses until a block is used.
    model: OnlineTrees,
    /// The blocks drawn: the candidates.
    drawn: Vec<BlockId>,
    rng: Rng,
    #[snapshot(settings)]
    settings: LrbSettings,
}

impl Lrb {
    /// All samples of a block become rows: it is used, or taken as used, at the time `then`.
    #[inline(always)]
    fn label_samples(&mut self, block: BlockId, then: impl Fn(u32) -> u32) {
        while let Some(time) = self.blocks.take_sample(block) {
            let known = self.blocks.history(block);
            let target = (then(time) as f32).ln_1p();
            self.model.learn(target, |row| known.inputs(time, self.window, row));
            if self.model.waiting() >= self.settings.batch as usize {
                self.train();
            }
        }
    }

    #[cold]
    fn train(&mut self) {
        let seed = Seed(self.rng.next_u64());
        self.model.train(seed);
    }

    /// Forgets ghosts beyond the window and the limit.
    #[inline(always)]
    fn forget_ghosts(&mut self) {
        let beyond = self.window.saturating_mul(2);
        while let Some(block) = self.blocks.next_forgotten(self.now, self.window, self.ghost_blocks)
        {
            self.label_samples(block, |_| beyond);
            self.blocks.remove(block);
        }
    }

    /// Samples one of all blocks that are tracked.
    #[inline(always)]
    fn sample(&mut self) {
        let tracked = self.blocks.resident() + self.blocks.ghosts();
        if tracked > 0 {
            let block = self.blocks.by_place(self.rng.below(u64::from(tracked)) as u32);
            let tracked_limit = self.capacity as usize + self.ghost_blocks as usize;
            self.blocks.sample(block, self.now, SAMPLES_PER_BLOCK * tracked_limit);
        }
    }

    /// The block that leaves next.
    fn choose(&mut self) -> Option<BlockId> {
        let oldest = self.blocks.oldest(0)?;
        if !self.model.is_trained() || self.blocks.history(oldest).age(self.now) >= self.window {
            return Some(oldest);
        }
        self.drawn.clear();
        self.model.clear_candidates();
        let resident = u64::from(self.blocks.resident());
        for _ in 0..self.settings.candidates {
            let block = self.blocks.by_place(self.rng.below(resident) as u32);
            let known = self.blocks.history(block);
            self.model.add_candidate(|row| known.inputs(self.now, self.window, row));
            self.drawn.push(block);
        }
        self.model.highest().and_then(|latest| self.drawn.get(latest).copied())
    }
}

impl Registered for Lrb {
    type Settings = LrbSettings;
    const ENTRY: Entry = Entry {
        name: "lrb",
        doc: "boosted trees, trained online, predict which of some blocks is used again last",
        source: "Song et al. (LRB), NSDI'20",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &LrbSettings, seed: Seed) -> Self {
        let boosting = BoostingSettings { trees: settings.trees as usize, ..Default::default() };
        let mut policy = Lrb {
            blocks: LrbBlocks::new(),
            capacity: capacity_blocks,
            now: 0,
            window: 0,
            ghost_blocks: 0,
            has_evicted: false,
            model: OnlineTrees::new(INPUTS, boosting),
            drawn: Vec::new(),
            rng: seed.derive("lrb").rng(),
            settings: settings.clone(),
        };
        policy.on_capacity();
        policy
    }
}

impl PolicyHooks for Lrb {}

impl StoredPolicy for Lrb {
    stored_in!(blocks: LrbBlocks);

    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.now = self.now.wrapping_add(1);
        self.forget_ghosts();
        let now = self.now;
        self.label_samples(block, |time| now.wrapping_sub(time));
        self.blocks.use_now(block, now);
        if self.has_evicted {
            self.sample();
        }
        if self.blocks.contains(block) {
            return Verdict::Hit;
        }
        // A sample of a ghost that enters the cache goes on waiting.
        self.blocks.take_ghost(block);
        let full = self.blocks.resident() == self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.blocks.enter(block);
        Verdict::Admit { evicted }
    }

    fn evict(&mut self) -> Option<BlockId> {
        let victim = self.choose()?;
        self.has_evicted = true;
        if self.blocks.is_beyond_horizon(victim, self.now) {
            let then = self.blocks.history(victim).age(self.now).saturating_add(self.window);
            self.label_samples(victim, |_| then);
            self.blocks.remove(victim);
        } else {
            self.blocks.leave(victim);
            self.forget_ghosts();
        }
        Some(victim)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_blocks)
    }

    fn on_capacity(&mut self) {
        let part = |ratio: f64| (ratio * f64::from(self.capacity)).min(f64::from(1 << 30)) as u32;
        self.window = part(self.settings.window).max(1);
        self.ghost_blocks = part(self.settings.history);
        self.blocks.remember_accesses(self.window, self.now);
    }

    fn trim_ghosts(&mut self) {
        self.forget_ghosts();
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.blocks.oldest(later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let ghosts = self.blocks.ghosts();
        if ghosts > self.ghost_blocks {
            return Err(format!("{ghosts} blocks are remembered, of {}", self.ghost_blocks));
        }
        self.model.audit()
    }
}
/// Distances between uses that are kept.
const DISTANCES: usize = 31;
/// Decayed counters.
const COUNTERS: usize = 10;
/// Inputs of the model: age, distances from the last one on, how many of them lie within the memory
/// window, counters.
const INPUTS: usize = 1 + DISTANCES + 1 + COUNTERS;
/// log2 of the half-life of the first counter.
const FIRST_HALF_LIFE_LOG2: u32 = 10;

/// The history of one block.
///
/// Source: Song et al., NSDI'20, section 4.3: the distances between its last 32 uses, and ten
/// exponentially decayed counters whose half-lives double from 2^10 accesses on. The size of an
/// object and its type fall away: blocks are alike. 172 bytes per id.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct BlockHistory {
    /// The time of its last use, modulo 2^32.
    pub used: u32,
    /// A circle of the last distances; those there are, and the next place.
    distances: [u32; DISTANCES],
    count: u8,
    next: u8,
    /// At its last use.
    counters: [f32; COUNTERS],
}

impl BlockHistory {
    /// A block that is used for the first time.
    pub fn first(now: u32) -> BlockHistory {
        BlockHistory {
            used: now,
            distances: [0; DISTANCES],
            count: 0,
            next: 0,
            counters: [1.0; COUNTERS],
        }
    }

    /// Accesses since the last use.
    #[inline(always)]
    pub fn age(&self, now: u32) -> u32 {
        now.wrapping_sub(self.used)
    }

    /// The block is used.
    #[inline(always)]
    pub fn use_now(&mut self, now: u32) {
        let distance = self.age(now);
        self.used = now;
        self.distances[usize::from(self.next)] = distance;
        self.next = (self.next + 1) % DISTANCES as u8;
        self.count = (self.count + 1).min(DISTANCES as u8);
        for (number, counter) in self.counters.iter_mut().enumerate() {
            *counter = *counter * decay(distance, number) + 1.0;
        }
    }

    /// Appends the inputs of the model at a time, with a memory window of so many accesses. A
    /// distance that is not known is infinite.
    #[inline(always)]
    pub fn inputs(&self, now: u32, window: u32, inputs: &mut Vec<f32>) {
        let age = self.age(now);
        inputs.push(age as f32);
        let (mut sum, mut within) = (0_u64, 0.0);
        for back in 1..=DISTANCES {
            if back > usize::from(self.count) {
                inputs.push(f32::INFINITY);
                continue;
            }
            let place = (usize::from(self.next) + DISTANCES - back) % DISTANCES;
            let distance = self.distances[place];
            sum += u64::from(distance);
            within += if sum < u64::from(window) { 1.0 } else { 0.0 };
            inputs.push(distance as f32);
        }
        inputs.push(within);
        for (number, counter) in self.counters.iter().enumerate() {
            inputs.push(counter * decay(age, number));
        }
    }
}

/// One half to the number of whole half-lives of a counter.
#[inline(always)]
fn decay(accesses: u32, counter: usize) -> f32 {
    let halvings = accesses >> (FIRST_HALF_LIFE_LOG2 + counter as u32);
    if halvings > 126 { 0.0 } else { f32::from_bits((127 - halvings) << 23) }
}

/// No sample, no block.
const NONE: u32 = u32::MAX;

/// A sample that waits, or an unused entry.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct WaitingSample {
    time: u32,
    /// The next sample of the block, or the next unused entry.
    next: u32,
}

/// The blocks; see the top of the file.
///
/// A sample is a block and a time; it waits until the block is used next or forgotten, which says
/// what should have been predicted. Blocks outside the cache are forgotten in the order of their
/// last uses: a circle names the block of each of the last accesses. 200 bytes per id, 4 to 8 per
/// access of the window, 8 per waiting sample.
#[derive(Clone, Debug, SnapshotValue)]
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
    fn new() -> LrbBlocks {
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
    fn history(&self, block: BlockId) -> &BlockHistory {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn run(cache: &mut Lrb, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| cache.access(Access::read(BlockId(*id)))).collect()
    }

    /// Capacity 2, a window of 4 accesses, 2 ghosts. Before a model blocks leave by their last use:
    /// 0 at time 3, 1 at time 4. At time 5, block 0 was used 4 accesses ago and is forgotten; 2
    /// leaves for block 4, and 1 is a ghost still. At time 6, 1 is 4 accesses old as well; it is
    /// forgotten before it is used, and comes in as if for the first time.
    #[test]
    fn the_window_by_hand() {
        let settings = LrbSettings { window: 2.0, history: 1.0, ..Default::default() };
        let mut cache = Lrb::new(2, &settings, Seed(0));
        cache.reserve_ids(8);
        let out = |id| Verdict::Admit { evicted: Some(BlockId(id)) };
        assert_eq!(run(&mut cache, &[0, 1, 2, 3])[2..], [out(0), out(1)]);
        assert!(cache.tracks(BlockId(0)) && cache.tracks(BlockId(1)));
        assert_eq!(run(&mut cache, &[4]), [out(2)]);
        assert_eq!([0, 1, 2].map(|id| cache.tracks(BlockId(id))), [false, true, true]);
        assert_eq!(run(&mut cache, &[1]), [out(3)]);
        let mut inputs = Vec::new();
        cache.blocks.history(BlockId(1)).inputs(6, 4, &mut inputs);
        assert_eq!(inputs[..2], [0.0, f32::INFINITY]);
        assert_eq!(cache.audit(), Ok(()));
    }

    /// Ten blocks in turn, with two blocks between that never return: LRU of 12 hits nothing, as a
    /// round is 30 blocks. Once a block's distances tell the ten from the others, they stay.
    #[test]
    fn blocks_that_return_are_kept() {
        const ROUNDS: u32 = 400;
        let settings = LrbSettings { batch: 1000, ..Default::default() };
        let mut cache = Lrb::new(12, &settings, Seed(3));
        cache.reserve_ids(10 + 20 * ROUNDS as usize);
        let mut hits = 0;
        for access in 0..30 * ROUNDS {
            let (round, step) = (access / 30, access % 30);
            let id = if step % 3 == 0 { step / 3 } else { 10 + 20 * round + step * 2 / 3 };
            let verdict = cache.access(Access::read(BlockId(id)));
            hits += u32::from(round >= ROUNDS / 2 && verdict == Verdict::Hit);
        }
        let returns = 10 * ROUNDS / 2;
        assert!(hits * 10 > returns * 9, "{hits} hits of {returns}");
        assert_eq!(cache.audit(), Ok(()));
    }

    /// Used at 100, 1200 and 4000, asked at 4100 with a window of 3000: age 100; distances 2800 and
    /// 1100, of which the first is within. The first counter: 1 halved once by 1100, and 1; halved
    /// twice by 2800, and 1: 1.375. The second: 2, halved once, and 1: 2. The third: 3.
    #[test]
    fn inputs_by_hand() {
        let mut block = BlockHistory::first(100);
        block.use_now(1200);
        block.use_now(4000);
        let mut inputs = Vec::new();
        block.inputs(4100, 3000, &mut inputs);
        assert_eq!(inputs.len(), INPUTS);
        assert_eq!(inputs[..4], [100.0, 2800.0, 1100.0, f32::INFINITY]);
        assert_eq!(inputs[1 + DISTANCES..][..4], [1.0, 1.375, 2.0, 3.0]);
        (0..40).for_each(|step| block.use_now(4000 + 10 * (step + 1)));
        inputs.clear();
        block.inputs(4400, 3000, &mut inputs);
        assert_eq!(inputs[..DISTANCES + 2], [&[0.0][..], &[10.0; DISTANCES], &[31.0]].concat());
    }
}
