//! 3L-Cache: a few blocks leave per round of predictions, drawn from new blocks and from a scan
//! that goes on where the last one stopped.
//!
//! For: what learning from re-use gains at a thirtieth of LRB's predictions. Source: Zhou, Niu,
//! Xiong, Fang, Wang, "3L-Cache: Low Overhead and Precise Learning-based Eviction Policy for
//! Caches", FAST'25, by its public code (optiq-lab/3L-Cache and libCacheSim, objective of byte
//! misses).
//!
//! - Rows. Each access samples one tracked block, unless a sample of it waits. When the block is
//!   used, or leaves the window of blocks that are remembered, the sample becomes a row: its age,
//!   its last three distances and its uses; the target is the logarithm of the accesses passed. For
//!   one that leaves the window that is its age, and the largest age at which one had left before
//!   the last training. From the first model on, one of four samples becomes a row.
//! - Window. It holds twice the cache, and grows by one cache, up to six, if at a training hits on
//!   remembered blocks are more than a hundredth of the cache's, per cache of the window.
//! - Candidates. A round predicts new blocks beyond a reserve, oldest first, and blocks of a scan
//!   from the least recently used to the most: all in its first part, then those used rarely. Half
//!   of those drawn leave, latest predicted use first; the others stay candidates until they are
//!   used, the scan ends or a model is trained.
//! - Parameters follow what left: the reserve grows while more leaves by scans than new blocks are
//!   there, the first part while it gives more victims per draw than the rest, and "rarely" is what
//!   99 % of the victims were used.
//!
//! Before the first model the least recently used block leaves. Departures: blocks have one size,
//! so that the two objectives of the source are one; a block that returns or is removed leaves the
//! window or the list of new blocks at once, not when its turn comes; rows beyond a batch are left
//! out until the round ends, when the model is trained, so that memory is bounded; the two shares
//! end at 100 %; distances that are not known are infinite inputs; of equal predictions the earlier
//! one leaves. Unit: accesses. Memory: 52 bytes per id, 4 per tracked block, 32 per cached block,
//! 1.5 MiB of rows.

use crate::links::Links;
use crate::online_trees::OnlineTrees;
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::sampled_blocks::SampledBlocks;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_model::learn::BoostingSettings;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Rng, Seed, declare};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

declare! {
    /// How 3L-Cache draws and learns.
    pub struct ThreeLCacheSettings {
        /// blocks that a round draws from its scan, at most; also at most 1 % of the cache and 2
        candidates: u32 = 1024, "blocks", 1 ..= 65_536;
        /// blocks drawn per block that leaves
        drawn_per_victim: u32 = 2, "blocks", 1 ..= 64;
        /// rows of a training
        batch: u32 = 65_536, "rows", 64 ..= 1_048_576;
        /// trees of a model
        trees: u32 = 16, "trees", 1 ..= 256;
        /// accesses after which the window of remembered blocks may grow
        widen_after: u32 = 1_000_000, "accesses", 1 ..= 1_000_000_000;
    }
}

/// Of samples that end once there is a model, one of so many becomes a row.
const SAMPLES_PER_ROW: u64 = 4;

/// 3L-Cache.
#[derive(Clone, Debug, Snapshot)]
pub struct ThreeLCache {
    blocks: WindowBlocks,
    capacity: u32,
    /// Accesses so far, modulo 2^32.
    now: u32,
    has_evicted: bool,
    /// Predicts the logarithm of the accesses until a block is used.
    model: OnlineTrees,
    /// When the model was trained.
    trained: u32,
    window: ReuseWindow,
    scan: EvictionScan,
    /// Victims that the present round has left.
    round: u32,
    /// The blocks drawn for a round.
    drawn: Vec<BlockId>,
    rng: Rng,
    #[snapshot(settings)]
    settings: ThreeLCacheSettings,
}

impl ThreeLCache {
    /// The sample of a block, if one waits, becomes a row: the block is used, or taken as used, so
    /// many accesses after it.
    #[inline(always)]
    fn end_sample(&mut self, block: BlockId, later: impl Fn(u32) -> u32) {
        let Some(sampled) = self.blocks.take_sample(block) else { return };
        if self.model.is_trained() && self.rng.below(SAMPLES_PER_ROW) != 0 {
            return;
        }
        let batch = self.settings.batch as usize;
        if self.model.waiting() < batch {
            let known = self.blocks.get(block);
            let target = (later(sampled) as f32).ln_1p();
            self.model.learn(target, |row| known.inputs(sampled, row));
        }
        if self.model.waiting() >= batch && self.round == 0 {
            self.train();
        }
    }

    #[cold]
    fn train(&mut self) {
        let seed = Seed(self.rng.next_u64());
        self.model.train(seed);
        self.trained = self.now;
        self.blocks.forget_predictions();
        self.window.trained(self.settings.widen_after);
    }

    /// Forgets the ghosts beyond the window, first left first.
    #[inline(always)]
    fn forget_ghosts(&mut self) {
        while self.blocks.ghosts() > self.window.ghosts(self.capacity) {
            self.window.is_full = true;
            let Some(block) = self.blocks.oldest_ghost() else { return };
            let age = self.blocks.get(block).age(self.now);
            let later = self.window.longest_before.saturating_add(age);
            if self.blocks.get(block).is_sampled {
                self.window.longest = self.window.longest.max(age);
            }
            self.end_sample(block, |_| later);
            self.blocks.remove(block);
        }
    }

    /// Samples one of all blocks that are tracked.
    #[inline(always)]
    fn sample(&mut self) {
        let tracked = u64::from(self.blocks.tracked());
        if tracked > 0 {
            self.blocks.sample(self.rng.below(tracked) as usize, self.now);
        }
    }

    /// The block that leaves next.
    fn choose(&mut self) -> Option<BlockId> {
        if !self.model.is_trained() {
            return self.blocks.oldest(0);
        }
        if self.round == 0 {
            self.begin_round();
        }
        let mut victim = self.blocks.last_used();
        if victim.is_none() {
            self.begin_round();
            victim = self.blocks.last_used();
        }
        self.round = self.round.saturating_sub(1);
        let known = self.blocks.get(victim?);
        self.scan.count_victim(known.uses, known.age(self.now), self.now);
        victim
    }

    /// Draws candidates and predicts when each is used.
    fn begin_round(&mut self) {
        let resident = self.blocks.resident();
        if self.scan.length == 0 {
            self.scan.length = resident;
        }
        self.drawn.clear();
        let rate = self.rate();
        // A hundred times the new blocks, beside the blocks times their hundredths.
        let reserve = u64::from(resident) * u64::from(self.scan.reserve);
        while u64::from(self.blocks.newcomers()) * 100 > reserve
            && (self.drawn.len() as u64) * 2 < u64::from(rate) * 3
            && let Some(block) = self.blocks.next_newcomer()
        {
            self.drawn.push(block);
        }
        if u64::from(self.blocks.newcomers()) * 10 < reserve {
            self.draw_from_scan();
        }
        self.round = self.drawn.len() as u32 / self.settings.drawn_per_victim;
        self.predict();
    }

    /// Blocks that a round draws from its scan.
    fn rate(&self) -> u32 {
        let share = self.scan.length / 100 + self.settings.drawn_per_victim;
        if self.scan.length > 2 { self.settings.candidates.min(share) } else { 1 }
    }

    /// Draws blocks from where the last scan stopped, in the order of their last uses.
    fn draw_from_scan(&mut self) {
        let (mut rate, mut taken) = (self.rate(), 0);
        while taken < rate && self.drawn.len() < self.scan.length as usize {
            let Some(block) = self.blocks.scanned() else { return };
            if self.scan.draws(self.blocks.get(block).uses, self.settings.drawn_per_victim) {
                self.drawn.push(block);
                taken += 1;
            }
            self.scan.position += 1;
            if self.scan.position < self.scan.length {
                self.blocks.scan_on();
                continue;
            }
            self.scan.end(self.blocks.resident(), self.blocks.newcomers());
            self.blocks.scan_from_oldest();
            self.blocks.forget_predictions();
            (rate, taken) = (self.rate(), 0);
        }
        if let Some(last) = self.drawn.last() {
            self.scan.reached = self.blocks.get(*last).used;
        }
        self.scan.rest.drawn += u64::from(rate);
    }

    fn predict(&mut self) {
        self.model.clear_candidates();
        for block in &self.drawn {
            self.model.add_candidate(|row| self.blocks.get(*block).inputs(self.now, row));
        }
        let since = f64::from(self.now.wrapping_sub(self.trained));
        for (block, prediction) in self.drawn.iter().zip(self.model.predictions()) {
            let used = f64::from(*prediction).exp() + since;
            self.blocks.predict(*block, used);
        }
        self.blocks.bound_predictions(self.drawn.len());
    }
}

/// So many hundredths of a number of blocks, rounded down.
fn percent(blocks: u32, hundredths: u32) -> u32 {
    (u64::from(blocks) * u64::from(hundredths) / 100) as u32
}

impl Registered for ThreeLCache {
    type Settings = ThreeLCacheSettings;
    const ENTRY: Entry = Entry {
        name: "3l-cache",
        doc: "boosted trees, trained online, predict rounds of new and little used blocks; half \
              of them leave",
        source: "Zhou et al. (3L-Cache), FAST'25; its public code",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &ThreeLCacheSettings, seed: Seed) -> Self {
        let boosting = BoostingSettings { trees: settings.trees as usize, ..Default::default() };
        ThreeLCache {
            blocks: WindowBlocks::default(),
            capacity: capacity_blocks,
            now: 0,
            has_evicted: false,
            model: OnlineTrees::new(INPUTS, boosting),
            trained: 0,
            window: ReuseWindow::default(),
            scan: EvictionScan::default(),
            round: 0,
            drawn: Vec::new(),
            rng: seed.derive("3l-cache").rng(),
            settings: settings.clone(),
        }
    }
}

impl PolicyHooks for ThreeLCache {}

impl StoredPolicy for ThreeLCache {
    stored_in!(blocks: WindowBlocks);

    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.now = self.now.wrapping_add(1);
        let now = self.now;
        self.window.count(self.blocks.tracks(block), self.blocks.contains(block));
        self.end_sample(block, |sampled| now.wrapping_sub(sampled));
        self.blocks.use_now(block, now);
        if self.has_evicted {
            self.sample();
        }
        if self.blocks.contains(block) {
            return Verdict::Hit;
        }
        // It must not be forgotten for the block that leaves for it.
        self.blocks.take_ghost(block);
        let full = self.blocks.resident() == self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.blocks.enter(block, now, self.model.is_trained());
        Verdict::Admit { evicted }
    }

    fn evict(&mut self) -> Option<BlockId> {
        let victim = self.choose()?;
        self.has_evicted = true;
        self.blocks.leave(victim);
        self.forget_ghosts();
        Some(victim)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.capacity.saturating_mul(MAX_WINDOW - 1))
    }

    fn trim_ghosts(&mut self) {
        self.forget_ghosts();
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.blocks.oldest(later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let (ghosts, limit) = (self.blocks.ghosts(), self.window.ghosts(self.capacity));
        if ghosts > limit {
            return Err(format!("{ghosts} blocks are remembered, of {limit}"));
        }
        let (waiting, batch) = (self.model.waiting(), self.settings.batch);
        if waiting > batch as usize {
            return Err(format!("{waiting} rows of a batch of {batch} wait"));
        }
        self.model.audit()
    }
}

/// Distances between uses that are kept.
const DISTANCES: usize = 3;
/// Inputs of the model: age, distances from the last one on, uses.
const INPUTS: usize = 1 + DISTANCES + 1;
/// No candidacy.
const NO_CANDIDATE: u32 = 0;

/// The lists of blocks, and the place of a block that is in none.
const OUT: u8 = 0;
const RESIDENT: u8 = 1;
const GHOST: u8 = 2;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct WindowBlock {
    /// The time of its last use, modulo 2^32.
    used: u32,
    /// The last distances, newest first, of which so many are known.
    distances: [u32; DISTANCES],
    known: u8,
    /// Its list, or [`OUT`].
    place: u8,
    /// Uses since it is tracked, at most 65,535.
    uses: u16,
    /// When a sample was taken that waits.
    sampled: u32,
    is_sampled: bool,
    /// The number of its last prediction, or [`NO_CANDIDATE`].
    candidate: u32,
}

impl WindowBlock {
    /// Accesses since the last use.
    #[inline(always)]
    fn age(&self, now: u32) -> u32 {
        now.wrapping_sub(self.used)
    }

    /// Appends the inputs of the model at a time.
    #[inline(always)]
    fn inputs(&self, now: u32, row: &mut Vec<f32>) {
        row.push(self.age(now) as f32);
        for (place, distance) in self.distances.iter().enumerate() {
            let is_known = place < usize::from(self.known);
            row.push(if is_known { *distance as f32 } else { f32::INFINITY });
        }
        row.push(f32::from(self.uses));
    }
}

/// Blocks in the cache in the order of their last uses, and ghosts in the order in which they left.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct WindowBlocks {
    links: Links<WindowBlock, 2>,
    /// Blocks of the cache that entered since there is a model and were not drawn, newest first.
    new: Links<(), 1>,
    /// All tracked blocks.
    tracked: SampledBlocks<()>,
    /// The block that a scan looks at next; the oldest if there is none.
    scanned: Option<BlockId>,
    /// Predictions since the last training or the start of the scan, latest use first, and how
    /// often one was made.
    candidates: BinaryHeap<Candidate>,
    predictions: u32,
}

impl WindowBlocks {
    #[inline(always)]
    fn list(place: u8) -> usize {
        usize::from(place) - 1
    }

    /// What is known of a block.
    #[inline(always)]
    fn get(&self, block: BlockId) -> WindowBlock {
        self.links.tag(block)
    }

    /// Blocks that are tracked.
    #[inline(always)]
    fn tracked(&self) -> u32 {
        self.tracked.resident()
    }

    /// Blocks outside the cache that are remembered.
    #[inline(always)]
    fn ghosts(&self) -> u32 {
        self.links.len(Self::list(GHOST))
    }

    fn oldest_ghost(&self) -> Option<BlockId> {
        self.links.tail(Self::list(GHOST))
    }

    /// The block in the cache that was used longest ago, after so many others.
    #[inline(always)]
    fn oldest(&self, later: u32) -> Option<BlockId> {
        self.links.near_tail(Self::list(RESIDENT), later)
    }

    /// Takes the time of the sample of a block, if one waits.
    #[inline(always)]
    fn take_sample(&mut self, block: BlockId) -> Option<u32> {
        let known = self.links.tag_mut(block);
        std::mem::take(&mut known.is_sampled).then_some(known.sampled)
    }

    /// Samples the tracked block at a place, unless a sample of it waits.
    #[inline(always)]
    fn sample(&mut self, place: usize, now: u32) {
        let known = self.links.tag_mut(self.tracked.by_place(place).0);
        if !known.is_sampled {
            (known.is_sampled, known.sampled) = (true, now);
        }
    }

    /// A tracked block is used; it is no candidate any more.
    #[inline(always)]
    fn use_now(&mut self, block: BlockId, now: u32) {
        let known = self.links.tag_mut(block);
        if known.place == OUT {
            return;
        }
        let distance = known.age(now);
        known.distances.rotate_right(1);
        known.distances[0] = distance;
        known.known = (known.known + 1).min(DISTANCES as u8);
        known.uses = known.uses.saturating_add(1);
        (known.used, known.candidate) = (now, NO_CANDIDATE);
        if known.place == RESIDENT {
            self.scan_past(block);
            self.links.move_to_head(Self::list(RESIDENT), block);
        }
    }

    /// A block is a ghost no more, if it was one; it is still tracked and enters the cache next.
    #[inline(always)]
    fn take_ghost(&mut self, block: BlockId) {
        if self.links.tag(block).place == GHOST {
            self.links.unlink(Self::list(GHOST), block);
        }
    }

    /// A block that is in no list enters the cache.
    #[inline(always)]
    fn enter(&mut self, block: BlockId, now: u32, as_new: bool) {
        if self.links.tag(block).place == OUT {
            let first = WindowBlock { used: now, uses: 1, ..WindowBlock::default() };
            *self.links.tag_mut(block) = first;
            self.tracked.push(block, ());
        }
        self.links.tag_mut(block).place = RESIDENT;
        self.links.push_head(Self::list(RESIDENT), block);
        if as_new {
            self.new.push_head(0, block);
        }
    }

    /// A block of the cache becomes a ghost.
    #[inline(always)]
    fn leave(&mut self, block: BlockId) {
        self.take_resident(block);
        let known = self.links.tag_mut(block);
        (known.place, known.candidate) = (GHOST, NO_CANDIDATE);
        self.links.push_head(Self::list(GHOST), block);
    }

    /// Takes a block of the cache out of all that orders those.
    #[inline(always)]
    fn take_resident(&mut self, block: BlockId) {
        self.scan_past(block);
        self.links.unlink(Self::list(RESIDENT), block);
        if self.new.linked(block) {
            self.new.unlink(0, block);
        }
    }

    /// New blocks that were not drawn yet.
    #[inline(always)]
    fn newcomers(&self) -> u32 {
        self.new.len(0)
    }

    /// Takes the oldest of them.
    fn next_newcomer(&mut self) -> Option<BlockId> {
        self.new.pop_tail(0)
    }

    /// The block that the scan looks at next.
    #[inline(always)]
    fn scanned(&self) -> Option<BlockId> {
        self.scanned.or_else(|| self.oldest(0))
    }

    /// Moves the scan to the next block, after the newest one to the oldest.
    #[inline(always)]
    fn scan_on(&mut self) {
        self.scanned = self.scanned().and_then(|block| self.links.newer(block));
    }

    fn scan_from_oldest(&mut self) {
        self.scanned = None;
    }

    /// Moves the scan on if it is at a block that is about to move or leave.
    #[inline(always)]
    fn scan_past(&mut self, block: BlockId) {
        if self.scanned == Some(block) {
            self.scan_on();
        }
    }

    /// Notes when a block of the cache is used next; it is a candidate from now on.
    fn predict(&mut self, block: BlockId, used: f64) {
        self.predictions = self.predictions.checked_add(1).unwrap_or(NO_CANDIDATE + 1);
        self.links.tag_mut(block).candidate = self.predictions;
        self.candidates.push(Candidate { used, number: self.predictions, block });
    }

    /// Whether a prediction still holds.
    fn holds(&self, candidate: &Candidate) -> bool {
        self.contains(candidate.block)
            && self.links.tag(candidate.block).candidate == candidate.number
    }

    /// Takes the candidate that is used last.
    fn last_used(&mut self) -> Option<BlockId> {
        while let Some(candidate) = self.candidates.pop() {
            if self.holds(&candidate) {
                return Some(candidate.block);
            }
        }
        None
    }

    fn forget_predictions(&mut self) {
        self.candidates.clear();
    }

    /// Drops predictions that hold no more when they may outnumber the others.
    fn bound_predictions(&mut self, drawn: usize) {
        if self.candidates.len() > 2 * self.resident() as usize + drawn {
            let mut candidates = std::mem::take(&mut self.candidates);
            candidates.retain(|candidate| self.holds(candidate));
            self.candidates = candidates;
        }
    }
}

impl BlockStore for WindowBlocks {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.links.tag(block).place == RESIDENT
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.links.tag(block).place != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.links.len(Self::list(RESIDENT))
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let place = self.links.tag(block).place;
        if place == RESIDENT {
            self.take_resident(block);
        }
        self.take_ghost(block);
        self.tracked.take(block);
        *self.links.tag_mut(block) = WindowBlock::default();
        place == RESIDENT
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.links.reserve_ids(count);
        self.new.reserve_ids(count);
        self.tracked.reserve_ids(count, capacity.saturating_add(ghosts), 0);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.links.renumber(ids);
        self.new.renumber(ids);
        self.scanned = self.scanned.and_then(|block| ids.get(block));
        let renumbered = self.candidates.drain().filter_map(|candidate| {
            Some(Candidate { block: ids.get(candidate.block)?, ..candidate })
        });
        self.candidates = renumbered.collect::<Vec<Candidate>>().into();
        self.tracked.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.links.audit()?;
        self.new.audit()?;
        self.tracked.audit(u32::MAX)?;
        for place in [RESIDENT, GHOST] {
            let wrong = |block: &BlockId| self.links.tag(*block).place != place;
            if let Some(block) = self.links.iter(Self::list(place)).find(wrong) {
                return Err(format!("block {} of list {place} is noted otherwise", block.0));
            }
        }
        let listed = self.resident() + self.ghosts();
        if listed != self.tracked() || self.resident() > capacity {
            let (resident, tracked) = (self.resident(), self.tracked());
            return Err(format!("{listed} of {tracked} in lists, {resident} of {capacity} cached"));
        }
        let mut special = self.new.iter(0).chain(self.scanned);
        if let Some(block) = special.find(|block| !self.contains(*block)) {
            return Err(format!("block {} is new or scanned, and not in the cache", block.0));
        }
        Ok(())
    }
}

/// The least and the largest window, in caches.
const MIN_WINDOW: u32 = 2;
const MAX_WINDOW: u32 = 6;

/// How many blocks are tracked, and what is counted to decide about it.
#[derive(Clone, Debug, SnapshotValue)]
struct ReuseWindow {
    /// Caches of blocks, the cache itself among them.
    caches: u32,
    /// Whether it has been full since it was changed. From then on accesses are counted, those to
    /// tracked blocks and those to blocks in the cache.
    is_full: bool,
    accesses: u64,
    known: u64,
    hits: u64,
    /// The largest age at which a sampled block left the window: so far, and before the last
    /// training.
    longest: u32,
    longest_before: u32,
}

impl Default for ReuseWindow {
    fn default() -> Self {
        ReuseWindow {
            caches: MIN_WINDOW,
            is_full: false,
            accesses: 0,
            known: 0,
            hits: 0,
            longest: 0,
            longest_before: 0,
        }
    }
}

impl ReuseWindow {
    /// Ghosts in the window of a cache of so many blocks.
    #[inline(always)]
    fn ghosts(&self, capacity: u32) -> u32 {
        capacity.saturating_mul(self.caches - 1)
    }

    /// An access.
    #[inline(always)]
    fn count(&mut self, is_known: bool, is_hit: bool) {
        if self.is_full {
            self.accesses += 1;
            self.known += u64::from(is_known);
            self.hits += u64::from(is_hit);
        }
    }

    /// A model was trained: widens the window if that promises hits.
    fn trained(&mut self, widen_after: u32) {
        self.longest_before = self.longest;
        if !self.is_full || self.accesses <= u64::from(widen_after) {
            return;
        }
        let ghost_hits = self.known - self.hits;
        let more = u64::from(self.caches - 1);
        // Where misses are few per ghost that is hit, the window has caught most of them.
        if ghost_hits * 100 > self.hits * more && more < (self.accesses - self.hits) / ghost_hits {
            self.caches = (self.caches + 1).min(MAX_WINDOW);
            self.is_full = false;
        }
        (self.accesses, self.known, self.hits) = (0, 0, 0);
    }
}

/// Victims and draws of a part of a scan.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct ScanPart {
    victims: u64,
    drawn: u64,
}

/// Uses of victims, by powers of two.
const USE_CLASSES: usize = 16;

/// A scan of the cache from the oldest block to the newest, over many rounds, and what it adapts.
#[derive(Clone, Debug, SnapshotValue)]
struct EvictionScan {
    /// Blocks of the scan, and those that were looked at.
    length: u32,
    position: u32,
    /// The last use of the last block drawn.
    reached: u32,
    /// Hundredths of the scan whose blocks are all drawn.
    first_share: u32,
    /// Beyond, blocks are drawn that were used again fewer times than this.
    fewer_than: u32,
    /// Hundredths of the cache that new blocks have before they are drawn.
    reserve: u32,
    first: ScanPart,
    rest: ScanPart,
    victims_by_uses: [u32; USE_CLASSES],
}

impl Default for EvictionScan {
    fn default() -> Self {
        EvictionScan {
            length: 0,
            position: 0,
            reached: 0,
            first_share: 1,
            fewer_than: 1,
            reserve: 2,
            first: ScanPart::default(),
            rest: ScanPart::default(),
            victims_by_uses: [0; USE_CLASSES],
        }
    }
}

impl EvictionScan {
    /// Whether the next block, used so often, is drawn.
    #[inline(always)]
    fn draws(&mut self, uses: u16, more: u32) -> bool {
        let first_part = percent(self.length, self.first_share);
        if self.first.drawn == 0 && self.position > first_part {
            self.first = std::mem::take(&mut self.rest);
        }
        let is_rare = u32::from(uses.saturating_sub(1)) < self.fewer_than;
        is_rare || self.position <= first_part.saturating_add(more)
    }

    /// A block leaves that was used so often, so many accesses ago.
    fn count_victim(&mut self, uses: u16, age: u32, now: u32) {
        self.victims_by_uses[uses.max(1).ilog2() as usize] += 1;
        if age >= now.wrapping_sub(self.reached) {
            self.rest.victims += 1;
        }
    }

    /// Ends the scan, adapts to what left, and begins the next one.
    fn end(&mut self, resident: u32, newcomers: u32) {
        (self.length, self.position) = (resident, 0);
        self.fewer_than = uses_of_most(&self.victims_by_uses);
        let (first, rest) = (self.first, self.rest);
        if first.victims * rest.drawn > rest.victims * first.drawn {
            self.first_share = (self.first_share + 1).min(100);
        } else {
            self.first_share = (self.first_share - 1).max(1);
        }
        if first.victims + rest.victims > u64::from(newcomers) {
            self.reserve = (self.reserve + 1).min(100);
        } else if self.reserve > 1 {
            self.reserve /= 2;
        }
        (self.first, self.rest) = (ScanPart::default(), ScanPart::default());
        self.victims_by_uses = [0; USE_CLASSES];
    }
}

/// The uses that 99 % of the victims did not exceed, interpolated within a power of two as the
/// source does.
fn uses_of_most(victims: &[u32; USE_CLASSES]) -> u32 {
    let most = 0.99 * f64::from(victims.iter().sum::<u32>());
    let mut counted = 0.0;
    for (class, count) in victims.iter().enumerate() {
        let before = counted;
        counted += f64::from(*count);
        if counted >= most {
            let Some(low) = class.checked_sub(1).map(|power| f64::from(1_u32 << power)) else {
                return 1;
            };
            return (low + (low * (most - before) / f64::from(*count)).ceil()) as u32;
        }
    }
    1 << (USE_CLASSES - 1)
}

/// A prediction.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct Candidate {
    /// Accesses from the last training until the block is used.
    used: f64,
    /// The number of the prediction; a block that is used, leaves or is predicted anew has another.
    number: u32,
    block: BlockId,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The later use is greater; of equal ones the earlier prediction.
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.used.total_cmp(&other.used).then(other.number.cmp(&self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn run(cache: &mut ThreeLCache, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| cache.access(Access::read(BlockId(*id)))).collect()
    }

    fn out(id: u32) -> Verdict {
        Verdict::Admit { evicted: Some(BlockId(id)) }
    }

    /// The ids of a list of blocks, oldest first.
    fn ids(links: impl Iterator<Item = BlockId>) -> Vec<u32> {
        let mut ids: Vec<u32> = links.map(|block| block.0).collect();
        ids.reverse();
        ids
    }

    /// A cache of 4 blocks whose model says the same of all: of equal candidates the one predicted
    /// first leaves. By last use there are 1 2 0 3; 0 was used twice.
    ///
    /// | access | drawn | leaves | by last use | new | scan at |
    /// |---|---|---|---|---|---|
    /// | 4 | 1 2 | 1 | 2 0 3 4 | 4 | 0 |
    /// | 5 | 4 0 3 2 | 4 | 2 0 3 5 | 5 | 0 |
    /// | 0 | a hit | | 2 3 5 0 | 5 | 3 |
    /// | 6 | none | 3 | 2 5 0 6 | 5 6 | 5 |
    ///
    /// At 4 none is new, and a scan draws 4 / 100 + 2 blocks, of which half leave. At 5 the new 4
    /// is drawn. The scan draws 0 as its third block, though it was used twice, and 3, the last;
    /// so it ends, the prediction of 2 is dropped, and the next scan draws 2: as many are drawn as
    /// it has blocks. Two are to leave. The hit takes 0 from the candidates and moves the scan on.
    #[test]
    fn rounds_by_hand() {
        let settings = ThreeLCacheSettings { batch: 64, ..Default::default() };
        let mut cache = ThreeLCache::new(4, &settings, Seed(1));
        cache.reserve_ids(16);
        run(&mut cache, &[0, 1, 2, 0, 3]);
        cache.model.learn(1.0, |row| row.extend([0.0; INPUTS]));
        cache.train();
        let lists = |cache: &ThreeLCache| {
            let blocks = &cache.blocks;
            let resident = ids(blocks.links.iter(WindowBlocks::list(RESIDENT)));
            (resident, ids(blocks.new.iter(0)), blocks.scanned.map(|block| block.0))
        };
        assert_eq!(lists(&cache), (vec![1, 2, 0, 3], vec![], None));
        assert_eq!(run(&mut cache, &[4]), [out(1)]);
        assert_eq!(cache.drawn, [1, 2].map(BlockId));
        assert_eq!((lists(&cache), cache.round), ((vec![2, 0, 3, 4], vec![4], Some(0)), 0));
        assert_eq!(run(&mut cache, &[5]), [out(4)]);
        assert_eq!(cache.drawn, [4, 0, 3, 2].map(BlockId));
        assert_eq!((lists(&cache), cache.round), ((vec![2, 0, 3, 5], vec![5], Some(0)), 1));
        assert_eq!(run(&mut cache, &[0]), [Verdict::Hit]);
        assert_eq!(lists(&cache), (vec![2, 3, 5, 0], vec![5], Some(3)));
        assert_eq!(run(&mut cache, &[6]), [out(3)]);
        assert_eq!((lists(&cache), cache.round), ((vec![2, 5, 0, 6], vec![5, 6], Some(5)), 0));
        assert_eq!(cache.audit(), Ok(()));
    }

    /// Used at 100, 1200 and 4000, and asked at 4100.
    #[test]
    fn inputs_by_hand() {
        let mut blocks = WindowBlocks::default();
        blocks.reserve_ids(1, 1, 0);
        blocks.enter(BlockId(0), 100, false);
        blocks.use_now(BlockId(0), 1200);
        blocks.use_now(BlockId(0), 4000);
        let mut row = Vec::new();
        blocks.get(BlockId(0)).inputs(4100, &mut row);
        assert_eq!(row, [100.0, 2800.0, 1100.0, f32::INFINITY, 3.0]);
        (1..4).for_each(|step| blocks.use_now(BlockId(0), 4000 + 10 * step));
        row.clear();
        blocks.get(BlockId(0)).inputs(4031, &mut row);
        assert_eq!(row, [1.0, 10.0, 10.0, 10.0, 6.0]);
    }

    /// Ten victims: eight used once, one three times, one five times. 99 % of them are 9.9; nine
    /// were used less than four times, and 0.9 of the last one is 0.9 of the way from 2 to 4.
    #[test]
    fn the_uses_of_most_victims_by_hand() {
        let mut victims = [0; USE_CLASSES];
        assert_eq!(uses_of_most(&victims), 1);
        victims[0] = 8;
        assert_eq!(uses_of_most(&victims), 1);
        (victims[1], victims[2]) = (1, 1);
        assert_eq!(uses_of_most(&victims), 4);
        victims[2] = 0;
        assert_eq!(uses_of_most(&victims), 2);
    }

    /// 1,000 accesses beside a window of two caches: 500 hits, and 10 on ghosts, more than a
    /// hundredth. 500 misses are 50 per ghost that was hit: another cache may be worth its room.
    /// With 6 on ghosts beside a window of three, they are less than a hundredth per cache.
    #[test]
    fn the_window_widens_where_ghosts_are_hit() {
        let mut window = ReuseWindow { is_full: true, ..Default::default() };
        let count = |window: &mut ReuseWindow, ghost_hits: u32| {
            (0..500).for_each(|_| window.count(true, true));
            (0..500).for_each(|miss| window.count(miss < ghost_hits, false));
        };
        count(&mut window, 10);
        window.trained(1_000);
        assert_eq!(window.caches, 2, "it was full for too short a time");
        window.trained(999);
        assert_eq!((window.caches, window.is_full, window.ghosts(100)), (3, false, 200));
        window.is_full = true;
        count(&mut window, 6);
        window.trained(999);
        assert_eq!((window.caches, window.is_full, window.accesses), (3, true, 0));
    }

    /// Ten blocks in turn, with two blocks between that never return: LRU of 12 hits nothing, as a
    /// round is 30 blocks. Once distances tell the ten from the others, they stay.
    #[test]
    fn blocks_that_return_are_kept() {
        const ROUNDS: u32 = 400;
        let settings = ThreeLCacheSettings { batch: 500, ..Default::default() };
        let mut cache = ThreeLCache::new(12, &settings, Seed(3));
        cache.reserve_ids(10 + 20 * ROUNDS as usize);
        let mut hits = 0;
        for access in 0..30 * ROUNDS {
            let (round, step) = (access / 30, access % 30);
            let id = if step % 3 == 0 { step / 3 } else { 10 + 20 * round + step * 2 / 3 };
            let verdict = cache.access(Access::read(BlockId(id)));
            hits += u32::from(round >= ROUNDS / 2 && verdict == Verdict::Hit);
        }
        let returns = 10 * ROUNDS / 2;
        assert!(hits * 10 > returns * 8, "{hits} hits of {returns}");
        assert_eq!(cache.audit(), Ok(()));
    }
}
