//! LHD: of a few blocks drawn at random, the one with the lowest hit density leaves.
//!
//! For: hits per space and time, learned from hits and evictions by age and class. Source:
//! Beckmann, Chen, Cidon, "LHD: improving cache hit rate by maximizing hit density", NSDI'18,
//! sections 3 and 4: 32 candidates, classes by the ages at the last two hits, counts that fade by
//! 0.9 per interval, and a hundredth of the cache for explorers, which one access of 32 makes and
//! which leave at the greatest age only. From the authors' code: the densities before anything is
//! known, and the last 8 blocks that came with a density below the average victim's are candidates
//! as well.
//!
//! Blocks have equal size, and a policy has one application, so that the other classes of the paper
//! fall away. Ours: 4,096 ages in place of 20,000; their buckets follow from the capacity and not
//! from counted objects; an interval is 65,536 accesses, or one per block, in place of 2^20, so
//! that short traces are learned, too; there are always explorers, not in the first 50 intervals
//! only; a victim of the greatest age is not in the average. Unit: accesses. Memory: 4 bytes per
//! id, 16 per cached block, 768 KiB of counts.

use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::sampled_blocks::SampledBlocks;
use crate::stored::BlockStore;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_memory::prefetch;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Rng, Seed, declare};

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
#[derive(Clone, Copy, Debug, SnapshotValue)]
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
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct Candidate {
    place: u32,
    block: BlockId,
    cell: u32,
    bonus: f32,
}

/// Least hit density.
#[derive(Clone, Debug, Snapshot)]
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
    #[snapshot(settings)]
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

/// Classes of blocks.
const CLASSES: usize = 16;
/// Buckets of ages; the last one takes all that is older.
const AGES: usize = 1 << AGES_LOG2;
const AGES_LOG2: u32 = 12;
/// Accesses per cached block that the buckets reach at least.
const REACH: u64 = 64;
/// What is left of the counts of an interval after the next one.
const DECAY: f32 = 0.9;
/// Events below which a density is 0.
const FEWEST_EVENTS: f64 = 1e-5;

/// The counts of one class and age.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct Events {
    hits: f32,
    evictions: f32,
}

/// The densities; see the top of the file.
///
/// Source: Beckmann, Chen, Cidon, NSDI'18, section 3: the density of a class at an age is the hits
/// expected from there on over the time that they and the evictions take. Ages are coarse: a bucket
/// is a power of two of accesses, such that all buckets together reach [`REACH`] accesses per
/// cached block. Densities are per bucket.
#[derive(Clone, Debug, SnapshotValue)]
struct Densities {
    /// By class, then age.
    events: Vec<Events>,
    densities: Vec<f32>,
    /// log2 of the accesses of a bucket.
    shift: u32,
}

impl Densities {
    /// No events: the densities fall with age and rise with class.
    pub fn new() -> Densities {
        let density = |index: usize| (1 + index / AGES) as f32 / (1 + index % AGES) as f32;
        Densities {
            events: vec![Events::default(); CLASSES * AGES],
            densities: (0..CLASSES * AGES).map(density).collect(),
            shift: 0,
        }
    }

    /// The bucket of an age.
    #[inline(always)]
    pub fn bucket(&self, age: u32) -> usize {
        ((age >> self.shift) as usize).min(AGES - 1)
    }

    /// The class of a block by the sum of its ages at its last two hits: 0 for the longest, one
    /// more for each halving.
    #[inline(always)]
    pub fn class(&self, ages: u64) -> usize {
        match (ages >> self.shift).checked_ilog2() {
            None => CLASSES - 1,
            Some(log) => (AGES_LOG2.saturating_sub(log) as usize).min(CLASSES - 1),
        }
    }

    /// Where the density of a class in a bucket stands; it starts to be loaded.
    #[inline(always)]
    pub fn cell(&self, class: usize, bucket: usize) -> u32 {
        let cell = class * AGES + bucket;
        prefetch(&self.densities, cell);
        cell as u32
    }

    /// The density in a cell; nothing at the greatest age.
    #[inline(always)]
    pub fn density(&self, cell: u32) -> Option<f32> {
        let cell = cell as usize;
        (cell % AGES < AGES - 1).then(|| self.densities[cell])
    }

    /// Counts a hit.
    #[inline(always)]
    pub fn count_hit(&mut self, class: usize, bucket: usize) {
        self.events[class * AGES + bucket].hits += 1.0;
    }

    /// Counts an eviction.
    #[inline(always)]
    pub fn count_eviction(&mut self, class: usize, bucket: usize) {
        self.events[class * AGES + bucket].evictions += 1.0;
    }

    /// Ends an interval: older counts fade, and densities are made anew. O(classes x ages).
    #[cold]
    pub fn reconfigure(&mut self) {
        for events in &mut self.events {
            events.hits *= DECAY;
            events.evictions *= DECAY;
        }
        self.model();
    }

    /// Makes the buckets fit a cache of so many blocks; counts move to the buckets of their ages.
    /// Buckets become smaller only when they are four times too large.
    pub fn fit(&mut self, capacity: u32) {
        let per_bucket = (REACH * u64::from(capacity)).div_ceil(AGES as u64).max(1);
        let wanted = per_bucket.next_power_of_two().ilog2();
        if wanted <= self.shift && wanted + 2 > self.shift {
            return;
        }
        let has_events = self.events.iter().any(|events| events.hits + events.evictions > 0.0);
        for ages in self.events.chunks_exact_mut(AGES) {
            (self.shift..wanted).for_each(|_| merge_pairs(ages));
            (wanted..self.shift).for_each(|_| split_in_pairs(ages));
        }
        self.shift = wanted;
        if has_events {
            self.model();
        }
    }

    /// Densities from the oldest bucket down: each adds its events to those that come later, and
    /// all of these wait one bucket more.
    fn model(&mut self) {
        let classes = self.events.chunks_exact(AGES).zip(self.densities.chunks_exact_mut(AGES));
        for (events, densities) in classes {
            let (mut hits, mut later, mut waits) = (0.0_f64, 0.0_f64, 0.0_f64);
            for (here, density) in events.iter().zip(densities).rev() {
                hits += f64::from(here.hits);
                later += f64::from(here.hits + here.evictions);
                waits += later;
                *density = if later > FEWEST_EVENTS { (hits / waits) as f32 } else { 0.0 };
            }
        }
    }
}

/// Buckets become twice as large.
fn merge_pairs(ages: &mut [Events]) {
    for bucket in 0..AGES {
        let mut sum = Events::default();
        for half in ages.iter().skip(2 * bucket).take(2) {
            sum.hits += half.hits;
            sum.evictions += half.evictions;
        }
        ages[bucket] = sum;
    }
}

/// Buckets become half as large; what is beyond the last one joins it.
fn split_in_pairs(ages: &mut [Events]) {
    let mut beyond = Events::default();
    for events in &ages[AGES / 2..] {
        beyond.hits += events.hits;
        beyond.evictions += events.evictions;
    }
    for bucket in (0..AGES).rev() {
        let Events { hits, evictions } = ages[bucket / 2];
        ages[bucket] = Events { hits: hits / 2.0, evictions: evictions / 2.0 };
    }
    let last = &mut ages[AGES - 1];
    last.hits += beyond.hits;
    last.evictions += beyond.evictions;
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

    /// Class 3: 6 hits at bucket 0, 2 at bucket 2, 2 evictions at bucket 4. From bucket 4 on, no
    /// hit: 0. Bucket 3: 0 of 2 events that wait 2 buckets: 0. Bucket 2: 2 hits; 4 + 2 + 2 waits:
    /// 1/4. Bucket 1: 4 more: 2/12. Bucket 0: 8 hits, 10 more: 8/22.
    #[test]
    fn densities_by_hand() {
        let mut table = Densities::new();
        (0..6).for_each(|_| table.count_hit(3, 0));
        (0..2).for_each(|_| table.count_hit(3, 2));
        (0..2).for_each(|_| table.count_eviction(3, 4));
        table.model();
        let density = |class, bucket| table.density(table.cell(class, bucket));
        let densities: Vec<f32> = (0..6).filter_map(|bucket| density(3, bucket)).collect();
        assert_eq!(densities, [8.0 / 22.0, 2.0 / 12.0, 0.25, 0.0, 0.0, 0.0]);
        assert_eq!(density(2, 0), Some(0.0), "a class without events");
        assert_eq!([density(3, AGES - 2), density(3, AGES - 1)], [Some(0.0), None]);
    }

    #[test]
    fn classes_halve_the_ages() {
        let table = Densities::new();
        let classes = [u64::MAX / 2, 4096, 4095, 2048, 1024, 3, 1, 0].map(|ages| table.class(ages));
        assert_eq!(classes, [0, 0, 1, 1, 2, 11, 12, 15]);
    }

    #[test]
    fn counts_follow_their_ages_to_other_buckets() {
        let mut table = Densities::new();
        table.fit(64);
        assert_eq!((table.shift, table.bucket(7), table.bucket(1 << 20)), (0, 7, AGES - 1));
        table.count_hit(0, table.bucket(40));
        table.count_eviction(0, table.bucket(1 << 20));
        table.fit(256);
        assert_eq!((table.shift, table.bucket(40), table.bucket(9000)), (2, 10, 2250));
        assert_eq!(table.events[10].hits, 1.0);
        assert_eq!(table.events[AGES / 4 - 1].evictions, 1.0, "its true age is not known");
        table.fit(129);
        assert_eq!(table.shift, 2, "twice too large is not too large");
        table.fit(60);
        assert_eq!((table.shift, table.events[40].hits), (0, 0.25));
    }
}
