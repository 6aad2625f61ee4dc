//! LRB: of a few blocks drawn at random, the one that is predicted to be used last leaves.
//!
//! For: a bound on what learning from re-use gains, at thousands of decisions per second. Must
//! never know: engines, tenants, requests. Source: Song et al., "Learning relaxed Belady for
//! content distribution network caching", NSDI'20: 64 candidates; boosted trees trained online
//! predict the logarithm of the accesses until the next use; a block is sampled per access, of all
//! that were used within the memory window; one that is not used within it counts as used after
//! twice the window; a resident block beyond the window leaves first, and before the first model
//! the least recently used one does. From the authors' code: 32 trees of 32 leaves, a rate of 0.1,
//! four fifths of rows and inputs; samples are taken from the first eviction on.
//!
//! Ours: blocks outside the cache are remembered up to `history` times the capacity, which can make
//! the window shorter; candidates may be drawn twice; distances that are not known are infinite
//! inputs, as in the paper (the code gives zeroes); a batch of 32,768 rows in place of 131,072, so
//! that short traces are learned; samples beyond four per block are left out. A training takes tens
//! of milliseconds to a second and stops decisions. Unit: accesses. Memory: 200 bytes per id, 32 to
//! 64 per cached block for the circle of accesses, 5.8 MiB of rows.

mod blocks;
mod history;
mod reuse_model;

use crate::entry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use blocks::LrbBlocks;
use cachewright_types::{BlockId, Rng, Seed, declare};
use reuse_model::ReuseModel;

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
#[derive(Clone, Debug)]
pub struct Lrb {
    blocks: LrbBlocks,
    capacity: u32,
    /// Accesses so far, modulo 2^32.
    now: u32,
    window: u32,
    ghost_blocks: u32,
    has_evicted: bool,
    model: ReuseModel,
    /// The blocks drawn: the candidates.
    drawn: Vec<BlockId>,
    rng: Rng,
    settings: LrbSettings,
}

impl Lrb {
    /// All samples of a block become rows: it is used, or taken as used, at the time `then`.
    #[inline(always)]
    fn label_samples(&mut self, block: BlockId, then: impl Fn(u32) -> u32) {
        while let Some(time) = self.blocks.take_sample(block) {
            let known = self.blocks.history(block);
            let rows = self.model.learn(known, time, self.window, then(time));
            if rows >= self.settings.batch as usize {
                self.train();
            }
        }
    }

    #[cold]
    fn train(&mut self) {
        let seed = Seed(self.rng.next_u64());
        self.model.train(self.settings.trees as usize, seed);
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
            self.model.add_candidate(self.blocks.history(block), self.now, self.window);
            self.drawn.push(block);
        }
        self.model.last_used().and_then(|latest| self.drawn.get(latest).copied())
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
        let mut policy = Lrb {
            blocks: LrbBlocks::new(),
            capacity: capacity_blocks,
            now: 0,
            window: 0,
            ghost_blocks: 0,
            has_evicted: false,
            model: ReuseModel::default(),
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
}
