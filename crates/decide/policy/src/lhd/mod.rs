//! LHD: of a few blocks drawn at random, the one with the lowest hit density leaves.
//!
//! For: hits per space and time, learned from hits and evictions by age and class. Must never know:
//! engines, tenants, requests. Source: Beckmann, Chen, Cidon, "LHD: improving cache hit rate by
//! maximizing hit density", NSDI'18, sections 3 and 4: 32 candidates, classes by the ages at the
//! last two hits, counts that fade by 0.9 per interval, and a hundredth of the cache for explorers,
//! which one access of 32 makes and which leave at the greatest age only. From the authors' code:
//! the densities before anything is known, and the last 8 blocks that came with a density below the
//! average victim's are candidates as well.
//!
//! Blocks have equal size, and a policy has one application, so that the other classes of the paper
//! fall away. Ours: 4,096 ages in place of 20,000; their buckets follow from the capacity and not
//! from counted objects; an interval is 65,536 accesses, or one per block, in place of 2^20, so
//! that short traces are learned, too; there are always explorers, not in the first 50 intervals
//! only; a victim of the greatest age is not in the average. Unit: accesses. Memory: 4 bytes per
//! id, 16 per cached block, 768 KiB of counts.

mod densities;

use crate::entry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::sampled_blocks::SampledBlocks;
use crate::stored::BlockStore;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::{BlockId, Rng, Seed, declare};
use densities::Densities;

declare! {
    /// How LHD draws and learns.
    pub struct LhdSettings {
        /// blocks drawn per eviction
        candidates: u32 = 32, "blocks", 1 ..= 1024;
        /// accesses between two models, or one per cached block if that is more
        interval: u32 = 65_536, "accesses", 16 ..= 1_073_741_824;
        /// share of the cache for blocks that stay until the greatest age
        explorers: f64 = 0.01, "ratio", 0.0 ..= 0.5;
    }
}

/// Blocks that came lately and look like victims.
const ADMISSIONS: usize = 8;
/// One access of so many makes an explorer.
const EXPLORED: u64 = 32;
/// What the average density of victims keeps at each one.
const VICTIM_DECAY: f32 = 0.9;
/// The sum of ages of a block that was not hit yet.
const NEW: u32 = u32::MAX;
const NO_BLOCK: BlockId = BlockId(u32::MAX);
/// Candidates drawn before the first of them is looked at, so that their loads overlap.
const TOGETHER: usize = 32;

/// What is known of a resident block.
#[derive(Clone, Copy, Debug)]
struct LhdBlock {
    /// The time of its last access.
    used: u32,
    /// Its age at its last hit, 31 bits, and whether it is an explorer.
    last_age: u32,
    /// Its age at the hit before, or [`NEW`].
    age_before: u32,
}

const EXPLORER: u32 = 1 << 31;

impl LhdBlock {
    fn is_explorer(self) -> bool {
        self.last_age & EXPLORER != 0
    }

    /// What is added to the density of an explorer, so that it stays.
    #[inline(always)]
    fn bonus(self) -> f32 {
        if self.is_explorer() { 1.0 } else { 0.0 }
    }

    /// The sum of the last two ages.
    #[inline(always)]
    fn ages(self) -> u64 {
        if self.age_before == NEW {
            return u64::MAX;
        }
        u64::from(self.last_age & !EXPLORER) + u64::from(self.age_before)
    }
}

/// A block drawn, in the order in which it becomes known: where it lies, which it is, where its
/// density stands.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    place: u32,
    block: BlockId,
    cell: u32,
    bonus: f32,
}

/// Least hit density.
#[derive(Clone, Debug)]
pub struct Lhd {
    blocks: SampledBlocks<LhdBlock>,
    capacity: u32,
    densities: Densities,
    /// Accesses so far, modulo 2^32.
    now: u32,
    to_model: u32,
    /// Explorers that there are.
    explorers: u32,
    /// The last blocks that came and looked like victims, and the next to be replaced.
    admissions: [BlockId; ADMISSIONS],
    next_admission: usize,
    victim_density: f32,
    rng: Rng,
    settings: LhdSettings,
}

impl Registered for Lhd {
    type Settings = LhdSettings;
    const ENTRY: Entry = Entry {
        name: "lhd",
        doc: "evicts, of some random blocks, the one with least expected hits per space and time",
        source: "Beckmann, Chen, Cidon, NSDI'18",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &LhdSettings, seed: Seed) -> Self {
        let mut densities = Densities::new();
        densities.fit(capacity_blocks);
        Lhd {
            blocks: SampledBlocks::default(),
            capacity: capacity_blocks,
            densities,
            now: 0,
            to_model: settings.interval.max(capacity_blocks),
            explorers: 0,
            admissions: [NO_BLOCK; ADMISSIONS],
            next_admission: 0,
            victim_density: 0.0,
            rng: seed.derive("lhd").rng(),
            settings: settings.clone(),
        }
    }
}

impl PolicyHooks for Lhd {}

impl Lhd {
    /// The class and the bucket of a block now.
    #[inline(always)]
    fn place(&self, state: LhdBlock) -> (usize, usize) {
        let bucket = self.densities.bucket(self.now.wrapping_sub(state.used));
        (self.densities.class(state.ages()), bucket)
    }

    /// The density by which a block is compared; nothing at the greatest age.
    #[inline(always)]
    fn density(&self, state: LhdBlock) -> Option<f32> {
        let (class, bucket) = self.place(state);
        Some(self.densities.density(self.densities.cell(class, bucket))? + state.bonus())
    }

    /// One access is over.
    #[inline(always)]
    fn tick(&mut self) {
        self.now = self.now.wrapping_add(1);
        self.to_model -= 1;
        if self.to_model == 0 {
            self.densities.reconfigure();
            self.to_model = self.settings.interval.max(self.capacity);
        }
    }

    /// Whether this access explores, and whether it makes an explorer: there may be no more.
    #[inline(always)]
    fn draw_explorer(&mut self) -> (bool, bool) {
        let limit = (self.settings.explorers * f64::from(self.capacity)) as u32;
        let explores = self.rng.below(EXPLORED) == 0;
        let made = explores && self.explorers < limit;
        self.explorers += u32::from(made);
        (explores, made)
    }

    /// Counts a hit if the block is resident.
    #[inline(always)]
    fn hit(&mut self, block: BlockId) -> bool {
        let Some(state) = self.blocks.get(block) else { return false };
        let (class, bucket) = self.place(state);
        self.densities.count_hit(class, bucket);
        self.explorers -= u32::from(state.is_explorer());
        let (_, explorer) = self.draw_explorer();
        let age = self.now.wrapping_sub(state.used) & !EXPLORER;
        if let Some(state) = self.blocks.get_mut(block) {
            state.age_before = state.last_age & !EXPLORER;
            state.last_age = age | if explorer { EXPLORER } else { 0 };
            state.used = self.now;
        }
        true
    }

    #[inline(always)]
    fn admit(&mut self, block: BlockId) {
        let (explores, explorer) = self.draw_explorer();
        let last_age = if explorer { EXPLORER } else { 0 };
        let state = LhdBlock { used: self.now, last_age, age_before: NEW };
        self.blocks.push(block, state);
        if !explores && self.density(state).is_none_or(|density| density < self.victim_density) {
            self.admissions[self.next_admission] = block;
            self.next_admission = (self.next_admission + 1) % ADMISSIONS;
        }
    }

    /// The block of least density among those drawn and those that came lately; the first of
    /// equals.
    #[inline(always)]
    fn choose(&mut self) -> Option<(BlockId, Option<f32>)> {
        let resident = u64::from(self.blocks.resident());
        if resident == 0 {
            return None;
        }
        let mut victim = NO_BLOCK;
        let mut lowest = Some(f32::INFINITY);
        let mut compare = |block: BlockId, density: Option<f32>| {
            // Nothing, the greatest age, is below all numbers.
            if density < lowest {
                (victim, lowest) = (block, density);
            }
        };
        let mut left = self.settings.candidates as usize;
        let mut drawn = [Candidate::default(); TOGETHER];
        while left > 0 {
            let drawn = &mut drawn[..left.min(TOGETHER)];
            left -= drawn.len();
            for candidate in drawn.iter_mut() {
                candidate.place = self.rng.below(resident) as u32;
                self.blocks.load_place(candidate.place as usize);
            }
            for candidate in drawn.iter_mut() {
                let (block, state) = self.blocks.by_place(candidate.place as usize);
                let (class, bucket) = self.place(state);
                let cell = self.densities.cell(class, bucket);
                *candidate = Candidate { block, cell, bonus: state.bonus(), ..*candidate };
            }
            for Candidate { block, cell, bonus, .. } in drawn {
                compare(*block, self.densities.density(*cell).map(|density| density + *bonus));
            }
        }
        for block in self.admissions.into_iter().filter(|block| *block != NO_BLOCK) {
            if let Some(state) = self.blocks.get(block) {
                compare(block, self.density(state));
            }
        }
        Some((victim, lowest))
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let (victim, density) = self.choose()?;
        if let Some(density) = density {
            self.victim_density =
                VICTIM_DECAY * self.victim_density + (1.0 - VICTIM_DECAY) * density;
        }
        let state = self.drop_block(victim)?;
        let (class, bucket) = self.place(state);
        self.densities.count_eviction(class, bucket);
        Some(victim)
    }

    /// Takes a block out of everything, if it is resident.
    #[inline(always)]
    fn drop_block(&mut self, block: BlockId) -> Option<LhdBlock> {
        let state = self.blocks.take(block)?;
        self.explorers -= u32::from(state.is_explorer());
        for admitted in &mut self.admissions {
            *admitted = if *admitted == block { NO_BLOCK } else { *admitted };
        }
        Some(state)
    }
}

impl Policy for Lhd {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let verdict = if self.hit(access.block) {
            Verdict::Hit
        } else {
            let full = self.blocks.resident() == self.capacity;
            let evicted = if full { self.evict() } else { None };
            self.admit(access.block);
            Verdict::Admit { evicted }
        };
        self.tick();
        verdict
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.blocks.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.blocks.contains(block)
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.blocks.resident()
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.blocks.resident() > capacity_blocks {
            evicted.extend(self.evict());
        }
        self.densities.fit(capacity_blocks);
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.drop_block(block).is_some()
    }

    fn reserve_ids(&mut self, count: usize) {
        self.blocks.reserve_ids(count, self.capacity, 0);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        for block in self.admissions.iter_mut().filter(|block| **block != NO_BLOCK) {
            *block = ids.get(*block).unwrap_or(NO_BLOCK);
        }
        self.blocks.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.blocks.touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        self.blocks.audit(self.capacity)?;
        let places = 0..self.blocks.resident() as usize;
        let explorers = places.filter(|place| self.blocks.by_place(*place).1.is_explorer()).count();
        if explorers != self.explorers as usize {
            return Err(format!("{explorers} explorers, {} counted", self.explorers));
        }
        let is_gone = |block: &&BlockId| **block != NO_BLOCK && !self.blocks.contains(**block);
        if let Some(block) = self.admissions.iter().find(is_gone) {
            return Err(format!("block {} came lately and is not resident", block.0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cache: &mut Lhd, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| cache.access(Access::read(BlockId(*id)))).collect()
    }

    /// Capacity 4, so many candidates that all blocks are drawn, an interval of 16. Blocks 0 and 1
    /// are hit after 2 accesses each time, 2 and 3 came once and 4 to 6 come once each. Before
    /// anything is known, densities are (class + 1) / (age + 1). Blocks 2 and 3, new, are of class
    /// 0: at block 4 they are 6 and 5 old, 1/7 and 1/6, and 2 leaves. At block 5, block 3 at 1/7
    /// leaves and at block 6 block 4 at 1/5: 0 and 1 are of class 10 or more.
    #[test]
    fn unknown_densities_by_hand() {
        let settings = LhdSettings { candidates: 200, interval: 16, explorers: 0.0 };
        let mut cache = Lhd::new(4, &settings, Seed(0));
        cache.reserve_ids(8);
        run(&mut cache, &[0, 1, 2, 3, 0, 1, 0, 1]);
        let out = |id| Verdict::Admit { evicted: Some(BlockId(id)) };
        assert_eq!(run(&mut cache, &[4, 5]), [out(2), out(3)]);
        assert_eq!(run(&mut cache, &[0, 1, 6]), [Verdict::Hit, Verdict::Hit, out(4)]);
        assert_eq!(cache.audit(), Ok(()));
    }

    /// Blocks 0 and 1 are hit after 2 or 3 accesses, all others come once: class 0 has two hits in
    /// all, which fade, and an eviction per round.
    #[test]
    fn blocks_that_hit_soon_outlive_those_that_never_did() {
        let settings = LhdSettings { candidates: 200, interval: 16, explorers: 0.0 };
        let mut cache = Lhd::new(4, &settings, Seed(0));
        cache.reserve_ids(200);
        for round in 0..50 {
            run(&mut cache, &[0, 1, 0, 1, 4 + round]);
        }
        assert!(cache.contains(BlockId(0)) && cache.contains(BlockId(1)));
        let new = cache.density(LhdBlock { used: cache.now, last_age: 0, age_before: NEW });
        let known = cache.blocks.get(BlockId(0)).and_then(|state| cache.density(state));
        assert!(new < Some(0.05) && known > Some(0.3), "{new:?} and {known:?}");
        assert_eq!(cache.audit(), Ok(()));
    }
}
