//! `baleen`: LRU whose misses are admitted by a model of what a write into flash saves the disk.
//!
//! For: a flash cache that may write so much and no more, over disks whose heads are the
//! bottleneck. Source: Wong et al., "Baleen: ML Admission & Prefetching for Flash Caches", FAST
//! 2024, and its public code (wonglkd/BCacheSim). Units: blocks, accesses, milliseconds of the
//! disk's heads.
//!
//! - An episode is what a block would be asked for in one stay in an LRU cache: its accesses until
//!   it is not used for longer than blocks stay ([`EvictionAge`]). All but the first save the disk
//!   the time of its heads. To serve an episode costs one write.
//! - An oracle admits the episodes that save most per write, as many as may be written. Boosted
//!   trees learn which these are, from the first six accesses of each episode: the request, and the
//!   uses of its block and of its extent in the last six slices of time.
//! - A missed block is admitted if its prediction reaches a threshold, which is set so that as much
//!   is written as may be ([`WriteBudget`]).
//!
//! Departures: Baleen also prefetches, which a policy cannot. It trains daily on the episodes of
//! the days before and searches the threshold offline by simulation; here the model learns from a
//! sample of the episodes that ended since its last training, as in the code's local variant, and
//! the threshold follows demand; an account of writes holds the rate meanwhile. Before the first
//! model the account alone decides. An episode also ends when its block is forgotten, and one that
//! runs since before the last training is taken as it is. Time is counted in accesses: a slice is
//! `slice` times the capacity, in place of an hour. A chunk is a block, so that an episode writes
//! one; what positions the heads is shared by the blocks of a request. Extents stand in for
//! Baleen's blocks of 8 MiB; name space and user of a request are not known. Writes save as reads
//! do. Trees are 32 at a rate of 0.1, fitted to squared errors, in place of up to 2,000 at 0.005
//! for log loss. Blocks put in past admission, and writes to cached blocks, take nothing of the
//! budget. Memory: 36 bytes per id, 3 MiB of episodes and as much again in a training, 64 KiB of
//! extents.

use crate::ghost_lists::GhostLists;
use crate::online_trees::OnlineTrees;
use crate::rc_x::life::Shapes;
use crate::registry::{Entry, Need, Registered};
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, RequestInfo, Verdict};
use cachewright_memory::{lengthen, prefetch};
use cachewright_model::learn::BoostingSettings;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, Bytes, Rng, Seed, declare};

declare! {
    /// What Baleen may write, and how it learns.
    pub struct BaleenSettings {
        /// blocks written into the cache per access, in the long run
        write_rate: f64 = 0.1, "blocks per access", 0.0 ..= 1.0;
        /// blocks remembered beyond the capacity, as a multiple of it
        ghosts: f64 = 2.0, "ratio", 0.0 ..= 16.0;
        /// accesses between two trainings, as a multiple of the capacity
        every: f64 = 4.0, "capacities", 0.01 ..= 1000.0;
        /// accesses of a slice in which uses are counted, as a multiple of the capacity
        slice: f64 = 1.0, "capacities", 0.01 ..= 1000.0;
        /// episodes of a training
        episodes: u32 = 8192, "episodes", 128 ..= 1_048_576;
        /// trees of a model
        trees: u32 = 32, "trees", 1 ..= 256;
        /// bytes of an extent
        extent: Bytes = Bytes(8 << 20), "bytes", 4096 ..= 1099511627776;
        /// time in which the disk positions its heads
        position: f64 = 11.5, "ms", 0.0 ..= 1000.0;
        /// what the disk reads in a second
        bandwidth: f64 = 143.0, "MiB/s", 0.1 ..= 100000.0;
    }
}

/// The fewest accesses between two trainings.
const MIN_EVERY: u64 = 1_000;
/// How often the threshold is set between two trainings.
const SETTLEMENTS: u64 = 8;
/// The fewest rows of a training.
const MIN_ROWS: usize = 100;
/// Groups of extents.
const EXTENTS: usize = 4096;
/// Accesses of an episode that are learned from.
const ROWS: usize = 6;
/// Slices in which uses are counted.
const SLICES: usize = 6;
/// Inputs of the model: whether it writes, offset, length, uses of the block and of the extent.
const INPUTS: usize = 3 + 2 * SLICES;
/// The lists: blocks in the cache by their last use, and what is remembered beyond them.
const CACHED: u8 = 1;
const GHOST: u8 = 2;

/// LRU with admission by predicted savings.
#[derive(Clone, Debug, Snapshot)]
pub struct Baleen {
    blocks: BaleenBlocks,
    capacity: u32,
    #[snapshot(settings)]
    settings: BaleenSettings,
    shapes: Shapes,
    request: RequestInputs,
    extents: Vec<SliceCounts>,
    /// Accesses so far, modulo 2^32.
    now: u32,
    slice: u32,
    slice_left: u64,
    eviction_age: EvictionAge,
    /// Predicts whether the oracle admits an episode: about 1 if it does, about 0 if not.
    model: OnlineTrees,
    budget: WriteBudget,
    interval: TrainingInterval,
    /// Accesses until the threshold is set.
    left: u64,
    /// The inputs of the present access.
    row: Vec<f32>,
    rng: Rng,
}

/// What is known of the present request.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct RequestInputs {
    offset: f32,
    length: f32,
    extent: [u16; SLICES],
}

/// What was counted since the last training.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct TrainingInterval {
    /// When it began, modulo 2^32.
    begun: u32,
    settlements: u64,
    accesses: u64,
    misses: u64,
    /// Episodes that began, and the share of them that is recorded.
    episodes: u64,
    share: f64,
}

impl TrainingInterval {
    fn new(begun: u32, share: f64) -> TrainingInterval {
        TrainingInterval { begun, settlements: 0, accesses: 0, misses: 0, episodes: 0, share }
    }
}

impl Registered for Baleen {
    type Settings = BaleenSettings;
    const ENTRY: Entry = Entry {
        name: "baleen",
        doc: "lru that admits, within a write rate, what is predicted to save a disk's heads most",
        source: "Wong et al., Baleen (FAST 2024), without its prefetching",
        needs: &[Need::Requests],
    };

    fn new(capacity_blocks: u32, settings: &BaleenSettings, seed: Seed) -> Self {
        // LightGBM's parameters in the source, but for rate and number.
        let boosting = BoostingSettings {
            trees: settings.trees as usize,
            leaves: 63,
            leaf_rows: 50,
            row_share: 0.9,
            input_share: 0.9,
            ..BoostingSettings::default()
        };
        let mut policy = Baleen {
            blocks: BaleenBlocks::new(settings.episodes as usize),
            capacity: capacity_blocks,
            settings: settings.clone(),
            shapes: Shapes::default(),
            request: RequestInputs::default(),
            extents: vec![SliceCounts::default(); EXTENTS],
            now: 0,
            slice: 0,
            slice_left: u64::MAX,
            eviction_age: EvictionAge::default(),
            model: OnlineTrees::new(INPUTS, boosting),
            budget: WriteBudget::new(settings.write_rate),
            interval: TrainingInterval::new(0, 1.0),
            left: u64::MAX,
            row: Vec::new(),
            rng: seed.derive("baleen").rng(),
        };
        policy.on_capacity();
        policy
    }
}

impl Baleen {
    /// Accesses per so many capacities.
    fn capacities(&self, factor: f64) -> u64 {
        (f64::from(self.capacity) * factor) as u64
    }

    /// Accesses until the threshold is set again.
    fn every(&self) -> u64 {
        self.capacities(self.settings.every).max(MIN_EVERY) / SETTLEMENTS
    }

    fn ghost_limit(&self) -> u32 {
        self.capacities(self.settings.ghosts).min(u64::from(u32::MAX)) as u32
    }

    /// A new time; a new slice, threshold and model if they are due.
    #[inline(always)]
    fn step(&mut self) {
        self.now = self.now.wrapping_add(1);
        self.shapes.uses();
        self.budget.accrue();
        self.interval.accesses += 1;
        self.slice_left -= 1;
        if self.slice_left == 0 {
            self.slice = self.slice.wrapping_add(1);
            self.slice_left = self.capacities(self.settings.slice).max(1);
        }
        self.left -= 1;
        if self.left == 0 {
            self.settle();
        }
    }

    /// Sets the threshold, and trains the model in its turn.
    #[cold]
    fn settle(&mut self) {
        self.left = self.every();
        self.budget.settle();
        self.interval.settlements += 1;
        if self.interval.settlements >= SETTLEMENTS {
            self.train();
        }
    }

    /// Milliseconds of the disk's heads that one block of the present request is worth.
    fn head_time(&self) -> f64 {
        let share = f64::from(self.shapes.share());
        let bytes_per_ms = self.settings.bandwidth * 1_048_576.0 / 1_000.0;
        share * (self.settings.position + f64::from(self.request.length) / bytes_per_ms)
    }

    /// Notes a use in the block's episode, or begins one, and makes the row of a miss.
    fn note(&mut self, access: Access) {
        let block = access.block;
        let history = *self.blocks.history(block);
        let goes_on =
            self.blocks.tracks(block) && history.age(self.now) <= self.eviction_age.mean();
        if goes_on {
            self.blocks.credit(block, self.head_time());
        } else {
            self.blocks.end_episode(block);
            self.interval.episodes += 1;
            if self.rng.unit() < self.interval.share {
                self.blocks.begin_episode(block, self.now);
            }
        }
        if self.blocks.records(block) || !self.blocks.contains(block) {
            self.make_row(&history, access.write);
            self.blocks.record(block, &self.row);
        }
        self.blocks.use_now(block, self.now, self.slice);
    }

    /// Makes the row of an access to a block of which so much is known.
    fn make_row(&mut self, history: &BlockHistory, write: bool) {
        self.row.clear();
        self.row.push(f32::from(u8::from(write)));
        self.row.extend([self.request.offset, self.request.length]);
        self.row.extend(history.uses.at(self.slice).map(f32::from));
        self.row.extend(self.request.extent.map(f32::from));
    }

    /// Trains a model on the episodes that ended, if they are enough.
    fn train(&mut self) {
        let since = self.now.wrapping_sub(self.interval.begun);
        let ended = self.blocks.take_ended(self.now, self.eviction_age.mean(), since);
        let Some(ended) = ended else { return };
        let TrainingInterval { accesses, episodes, misses, .. } = self.interval;
        let admitted = self.settings.write_rate * accesses as f64 / episodes.max(1) as f64;
        let mut savings: Vec<f64> = ended.iter().map(|episode| episode.saved).collect();
        let cutoff = cutoff(&mut savings, admitted * ended.len() as f64);
        self.model.clear_candidates();
        for episode in &ended {
            let label = f32::from(u8::from(episode.saved > 0.0 && episode.saved >= cutoff));
            for row in episode.rows.chunks_exact(INPUTS) {
                self.model.learn(label, |rows| rows.extend(row));
            }
            self.model.add_candidate(|rows| rows.extend(episode.rows.iter().take(INPUTS)));
        }
        let seed = Seed(self.rng.next_u64());
        self.model.train(seed);
        // The first accesses of episodes stand for misses until there are any.
        self.budget.foresee(self.model.predictions(), accesses, misses);
        self.budget.settle();
        self.eviction_age.halve();
        let share = f64::from(self.settings.episodes) / (2 * episodes.max(1)) as f64;
        self.interval = TrainingInterval::new(self.now, share);
    }

    fn admit(&mut self, block: BlockId) -> Verdict {
        let full = self.blocks.resident() == self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.blocks.lists.push(CACHED, block);
        self.trim_ghosts();
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for Baleen {
    #[inline(always)]
    fn on_request(&mut self, request: &RequestInfo) {
        self.shapes.next(request);
        let number = mix(request.offset / self.settings.extent.0) % EXTENTS as u64;
        let extent = &mut self.extents[number as usize];
        self.request = RequestInputs {
            offset: request.offset as f32,
            length: request.length as f32,
            extent: extent.at(self.slice),
        };
        extent.count(self.slice);
    }
}

impl StoredPolicy for Baleen {
    stored_in!(blocks: BaleenBlocks);

    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.step();
        self.note(access);
        if self.blocks.contains(block) {
            self.blocks.lists.refresh(CACHED, block);
            return Verdict::Hit;
        }
        self.interval.misses += 1;
        self.blocks.lists.remove(block);
        let prediction = self.model.predict(&self.row);
        if self.budget.admits(prediction) {
            return self.admit(block);
        }
        self.blocks.lists.push(GHOST, block);
        self.trim_ghosts();
        Verdict::Bypass
    }

    fn evict(&mut self) -> Option<BlockId> {
        let block = self.blocks.lists.demote(CACHED, GHOST)?;
        self.eviction_age.count(self.blocks.history(block).age(self.now));
        Some(block)
    }

    fn adopt_block(&mut self, block: BlockId, dirty: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.step();
        self.note(Access { write: dirty, ..Access::read(block) });
        self.blocks.lists.remove(block);
        self.admit(block)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_limit())
    }

    fn on_capacity(&mut self) {
        self.left = self.left.min(self.every());
        self.slice_left = self.slice_left.min(self.capacities(self.settings.slice).max(1));
        self.budget.keep_at_most(self.every() * SETTLEMENTS);
    }

    fn trim_ghosts(&mut self) {
        let limit = self.ghost_limit();
        while self.blocks.lists.len(GHOST) > limit {
            let Some(block) = self.blocks.lists.near_tail(GHOST, 0) else { return };
            self.blocks.end_episode(block);
            self.blocks.remove(block);
        }
    }

    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.blocks.lists.near_tail(CACHED, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let (ghosts, limit) = (self.blocks.lists.len(GHOST), self.ghost_limit());
        if ghosts > limit {
            return Err(format!("{ghosts} ghosts, expected at most {limit}"));
        }
        self.budget.audit()?;
        self.model.audit()
    }
}

/// The least saving that is admitted if of all episodes, one write each, so many may be written;
/// with equal ones, more may be.
fn cutoff(savings: &mut [f64], admitted: f64) -> f64 {
    savings.sort_unstable_by(|one, other| other.total_cmp(one));
    let last = (admitted.ceil() as usize).min(savings.len()).checked_sub(1);
    last.map_or(f64::INFINITY, |last| savings[last])
}

/// Uses by slice of time, the present one first.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct SliceCounts {
    slice: u32,
    counts: [u16; SLICES],
}

impl SliceCounts {
    /// The uses as seen in a slice that is not before the last use.
    #[inline(always)]
    fn at(&self, slice: u32) -> [u16; SLICES] {
        let later = (slice.wrapping_sub(self.slice) as usize).min(SLICES);
        let mut counts = [0; SLICES];
        counts[later..].copy_from_slice(&self.counts[..SLICES - later]);
        counts
    }

    #[inline(always)]
    fn count(&mut self, slice: u32) {
        *self = SliceCounts { slice, counts: self.at(slice) };
        self.counts[0] = self.counts[0].saturating_add(1);
    }
}

/// How long blocks stay unused in the cache before they leave, on average.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct EvictionAge {
    sum: f64,
    count: f64,
}

impl EvictionAge {
    fn count(&mut self, age: u32) {
        self.sum += f64::from(age);
        self.count += 1.0;
    }

    /// In accesses; for ever until a block has left.
    fn mean(&self) -> u32 {
        if self.count == 0.0 { u32::MAX } else { (self.sum / self.count) as u32 }
    }

    /// What was counted before weighs half from now on.
    fn halve(&mut self) {
        (self.sum, self.count) = (self.sum / 2.0, self.count / 2.0);
    }
}

/// Classes of predictions between 0 and 1.
const CLASSES: usize = 256;

/// What may be written: an account of writes, and the threshold that makes use of it.
///
/// Each access adds the write rate to the account, and a write takes one. The threshold is the
/// highest at which as much would have been written as was allowed, from the predictions of the
/// misses so far; earlier ones weigh less. Not all of the misses just at the threshold fit: they
/// are written while the account is half full, so that there is something left for better ones.
#[derive(Clone, Debug, SnapshotValue)]
struct WriteBudget {
    rate: f64,
    /// Writes that may be made now, and the most that are kept.
    credit: f64,
    most: f64,
    accesses: f64,
    /// Misses by the class of their prediction.
    demand: Vec<f64>,
    /// The least class that is admitted; none while all that was missed may be written.
    threshold: Option<usize>,
}

impl WriteBudget {
    fn new(rate: f64) -> WriteBudget {
        let demand = vec![0.0; CLASSES];
        WriteBudget { rate, credit: 0.0, most: 0.0, accesses: 0.0, demand, threshold: None }
    }

    /// Keeps what so many accesses allow.
    fn keep_at_most(&mut self, accesses: u64) {
        self.most = (self.rate * accesses as f64).max(1.0);
        self.credit = self.credit.min(self.most);
    }

    /// An access.
    #[inline(always)]
    fn accrue(&mut self) {
        self.accesses += 1.0;
        self.credit = (self.credit + self.rate).min(self.most);
    }

    fn class(prediction: f32) -> usize {
        (prediction.clamp(0.0, 1.0) * (CLASSES - 1) as f32) as usize
    }

    /// Whether a missed block is written.
    fn admits(&mut self, prediction: Option<f32>) -> bool {
        let class = prediction.map(Self::class);
        if let Some(class) = class {
            self.demand[class] += 1.0;
        }
        let least = match (class, self.threshold) {
            (Some(class), Some(threshold)) if class < threshold => return false,
            (Some(class), Some(threshold)) if class == threshold => (self.most / 2.0).max(1.0),
            _ => 1.0,
        };
        let admits = self.credit >= least;
        self.credit -= f64::from(u8::from(admits));
        admits
    }

    /// A new model makes such predictions for so many misses in so many accesses.
    fn foresee(&mut self, predictions: &[f32], accesses: u64, misses: u64) {
        self.accesses = accesses as f64;
        self.demand.fill(0.0);
        for prediction in predictions {
            self.demand[Self::class(*prediction)] += misses as f64 / predictions.len() as f64;
        }
    }

    /// Sets the threshold.
    fn settle(&mut self) {
        let allowed = self.rate * self.accesses;
        let mut written = 0.0;
        self.threshold = (0..CLASSES).rev().find(|class| {
            written += self.demand[*class];
            written >= allowed
        });
        self.accesses /= 2.0;
        self.demand.iter_mut().for_each(|misses| *misses /= 2.0);
    }

    fn audit(&self) -> Result<(), String> {
        if !(0.0..=self.most).contains(&self.credit) {
            return Err(format!("a credit of {} writes, at most {}", self.credit, self.most));
        }
        Ok(())
    }
}

/// No episode.
const NONE: u32 = u32::MAX;

/// What is known of a block.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct BlockHistory {
    /// The time of its last use, modulo 2^32.
    used: u32,
    /// Its running episode, if that is recorded.
    episode: u32,
    uses: SliceCounts,
}

impl BlockHistory {
    const UNKNOWN: BlockHistory = BlockHistory {
        used: 0,
        episode: NONE,
        uses: SliceCounts { slice: 0, counts: [0; SLICES] },
    };

    #[inline(always)]
    fn age(&self, now: u32) -> u32 {
        now.wrapping_sub(self.used)
    }
}

/// A recorded episode.
#[derive(Clone, Debug, SnapshotValue)]
struct Episode {
    /// Its block; none once it has ended.
    block: Option<BlockId>,
    begun: u32,
    /// Milliseconds of the disk's heads that its accesses save.
    saved: f64,
    /// The inputs of its first accesses.
    rows: Vec<f32>,
}

/// Blocks in the cache and remembered ones, and the recorded episodes.
#[derive(Clone, Debug, SnapshotValue)]
pub struct BaleenBlocks {
    lists: GhostLists<3, 1>,
    histories: Vec<BlockHistory>,
    episodes: Vec<Option<Episode>>,
    /// Places of `episodes` without one.
    unused: Vec<u32>,
    /// Episodes that may be recorded at a time.
    limit: usize,
}

impl BaleenBlocks {
    fn new(limit: usize) -> BaleenBlocks {
        BaleenBlocks {
            lists: GhostLists::default(),
            histories: Vec::new(),
            episodes: Vec::new(),
            unused: Vec::new(),
            limit,
        }
    }

    #[inline(always)]
    fn history(&self, block: BlockId) -> &BlockHistory {
        &self.histories[block.index()]
    }

    #[inline(always)]
    fn use_now(&mut self, block: BlockId, now: u32, slice: u32) {
        let history = &mut self.histories[block.index()];
        history.used = now;
        history.uses.count(slice);
    }

    fn episode(&mut self, block: BlockId) -> Option<&mut Episode> {
        let place = self.histories[block.index()].episode;
        self.episodes.get_mut(place as usize)?.as_mut()
    }

    /// Records an episode of a block that has none, if there is room.
    fn begin_episode(&mut self, block: BlockId, now: u32) {
        let episode = Episode { block: Some(block), begun: now, saved: 0.0, rows: Vec::new() };
        let place = match self.unused.pop() {
            Some(place) => place,
            None if self.episodes.len() < self.limit => {
                self.episodes.push(None);
                self.episodes.len() as u32 - 1
            }
            None => return,
        };
        self.episodes[place as usize] = Some(episode);
        self.histories[block.index()].episode = place;
    }

    /// An access of the block's episode saves so much.
    fn credit(&mut self, block: BlockId, head_time_ms: f64) {
        if let Some(episode) = self.episode(block) {
            episode.saved += head_time_ms;
        }
    }

    /// Whether the next access of the block is among the first of an episode that is recorded.
    #[inline(always)]
    fn records(&self, block: BlockId) -> bool {
        let place = self.history(block).episode;
        let episode = self.episodes.get(place as usize).and_then(Option::as_ref);
        episode.is_some_and(|episode| episode.rows.len() < ROWS * INPUTS)
    }

    /// Keeps the inputs of such an access.
    fn record(&mut self, block: BlockId, row: &[f32]) {
        if self.records(block)
            && let Some(episode) = self.episode(block)
        {
            episode.rows.extend(row);
        }
    }

    /// Ends the block's episode, if one is recorded; it waits for the next training.
    fn end_episode(&mut self, block: BlockId) {
        if let Some(episode) = self.episode(block) {
            episode.block = None;
        }
        self.histories[block.index()].episode = NONE;
    }

    /// Takes the episodes that have ended, in the order in which they began, or nothing while they
    /// have too few rows. Those of blocks unused for more than `eviction_age` have ended, and those
    /// end that began before the last `since` accesses.
    fn take_ended(&mut self, now: u32, eviction_age: u32, since: u32) -> Option<Vec<Episode>> {
        for place in 0..self.episodes.len() {
            let Some(Episode { block: Some(block), begun, .. }) = self.episodes[place] else {
                continue;
            };
            let has_ended = self.history(block).age(now) > eviction_age;
            if has_ended || now.wrapping_sub(begun) >= since {
                self.end_episode(block);
            }
        }
        let has_ended = |episode: &Episode| episode.block.is_none();
        let waiting = self.episodes.iter().flatten().filter(|episode| has_ended(episode));
        if waiting.map(|episode| episode.rows.len()).sum::<usize>() < MIN_ROWS * INPUTS {
            return None;
        }
        let mut ended = Vec::new();
        for (place, slot) in self.episodes.iter_mut().enumerate() {
            if let Some(episode) = slot.take_if(|episode| has_ended(episode)) {
                ended.push(episode);
                self.unused.push(place as u32);
            }
        }
        ended.sort_unstable_by_key(|episode| std::cmp::Reverse(now.wrapping_sub(episode.begun)));
        Some(ended)
    }
}

impl BlockStore for BaleenBlocks {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.lists.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.lists.tracks(block)
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.lists.resident()
    }

    /// An episode that runs is dropped with its block.
    fn remove(&mut self, block: BlockId) -> bool {
        let place = self.histories[block.index()].episode;
        if let Some(slot) = self.episodes.get_mut(place as usize) {
            *slot = None;
            self.unused.push(place);
        }
        self.histories[block.index()] = BlockHistory::UNKNOWN;
        self.lists.remove(block)
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.lists.reserve_ids(count, capacity, ghosts);
        lengthen(&mut self.histories, count, BlockHistory::UNKNOWN);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        for episode in self.episodes.iter_mut().flatten() {
            episode.block = episode.block.and_then(|block| ids.get(block));
        }
        ids.close_up(&mut self.histories, 0);
        self.lists.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.lists.touch(block);
        prefetch(&self.histories, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.lists.audit(capacity)?;
        let recorded = self.episodes.iter().flatten().count();
        if recorded + self.unused.len() != self.episodes.len() || self.episodes.len() > self.limit {
            let (places, unused) = (self.episodes.len(), self.unused.len());
            return Err(format!("{recorded} episodes and {unused} unused places, of {places}"));
        }
        for (place, episode) in self.episodes.iter().enumerate() {
            let block = episode.as_ref().and_then(|episode| episode.block);
            if let Some(block) = block
                && (self.history(block).episode as usize != place || !self.tracks(block))
            {
                return Err(format!("episode {place} is not that of block {}", block.0));
            }
        }
        let running = self.episodes.iter().flatten().filter(|episode| episode.block.is_some());
        let has_episode = |history: &&BlockHistory| history.episode != NONE;
        let blocks = self.histories.iter().filter(has_episode).count();
        if blocks != running.count() {
            return Err(format!("{blocks} blocks have an episode, not as many as run"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    /// A cache of `blocks` blocks over a disk that needs 10 ms to position its heads, and 1 ms for
    /// 4 KiB. Requests are of whole blocks of 4 KiB, as a first one has told.
    fn cache(blocks: u32, settings: BaleenSettings) -> Baleen {
        let settings = BaleenSettings { position: 10.0, bandwidth: 3.90625, ..settings };
        let mut cache = Baleen::new(blocks, &settings, Seed(1));
        cache.reserve_ids(1 << 16);
        read(&mut cache, 1 << 12, 1);
        cache
    }

    /// Reads blocks from `first` on in one request.
    fn read(cache: &mut Baleen, first: u32, blocks: u32) -> Vec<Verdict> {
        let (offset, length) = (u64::from(first) * 4096, u64::from(blocks) * 4096);
        cache.on_request(&RequestInfo { offset, length, ..RequestInfo::default() });
        (first..first + blocks).map(|id| cache.access(Access::read(BlockId(id)))).collect()
    }

    fn use_block(cache: &mut Baleen, id: u32) {
        cache.access(Access::read(BlockId(id)));
    }

    /// Blocks stay 3 accesses unused. Times count from 2 on, since the cache has seen one access.
    ///
    /// | time | request | episodes |
    /// |---|---|---|
    /// | 2 | 0 | 0 begins |
    /// | 3, 4 | 0 1 | 0 saves half a positioning and its block, 6 ms; 1 begins |
    /// | 5 | 0 | 0 saves 11 ms, 17 in all |
    /// | 6, 7 | 8 9 | both begin |
    /// | 8 | 1 | 1 was unused for 4 accesses: its episode ends with nothing, another one begins |
    ///
    /// At 9 block 0 has been unused for 4 accesses as well. Of the episodes that began by then, it
    /// and the first of block 1 end; so does that of the block that told the size of blocks.
    #[test]
    fn episodes_by_hand() {
        let mut cache = cache(10, BaleenSettings::default());
        cache.eviction_age.count(3);
        for (first, blocks) in [(0, 1), (0, 2), (0, 1), (8, 2), (1, 1), (8, 1)] {
            read(&mut cache, first, blocks);
        }
        assert_eq!((cache.now, cache.interval.episodes), (9, 6));
        let few = cache.blocks.take_ended(cache.now, cache.eviction_age.mean(), u32::MAX);
        assert!(few.is_none(), "five rows are too few for a training");
        let told = |episode: &Episode| (episode.begun, episode.saved, episode.block.is_none());
        let episodes: Vec<_> = cache.blocks.episodes.iter().flatten().map(told).collect();
        let ended = [(1, 0.0, true), (2, 17.0, true), (4, 0.0, true)];
        let running = [(6, 11.0, false), (7, 0.0, false), (8, 0.0, false)];
        assert_eq!(episodes, [ended, running].concat());
        assert_eq!(cache.audit(), Ok(()));
    }

    /// In slices of 10 accesses: block 0 is used twice in the first slice, once in the second, and
    /// asked in the fourth. Its extent is asked by two requests in the first and one in the second.
    #[test]
    fn inputs_by_hand() {
        let mut cache = cache(10, BaleenSettings { slice: 1.0, ..Default::default() });
        cache.extents.fill(SliceCounts::default());
        read(&mut cache, 0, 1);
        read(&mut cache, 0, 1);
        (100..110).for_each(|id| use_block(&mut cache, id));
        read(&mut cache, 0, 1);
        (110..130).for_each(|id| use_block(&mut cache, id));
        cache.on_request(&RequestInfo { offset: 0, length: 8192, ..RequestInfo::default() });
        cache.access(Access { write: true, ..Access::read(BlockId(0)) });
        assert_eq!((cache.now, cache.slice), (35, 3));
        let own = [0.0, 0.0, 1.0, 2.0, 0.0, 0.0];
        assert_eq!(cache.row, [&[1.0, 0.0, 8192.0][..], &own, &own].concat());
    }

    #[test]
    fn the_oracle_admits_what_saves_most_by_hand() {
        let savings = [4.0, 0.0, 9.0, 2.0, 4.0];
        let least = |admitted: f64| cutoff(&mut savings.clone(), admitted);
        assert_eq!(
            [0.0, 0.5, 1.0, 2.0, 3.0, 4.0].map(least),
            [f64::INFINITY, 9.0, 9.0, 4.0, 4.0, 2.0]
        );
        assert_eq!(least(9.0), 0.0);
        assert_eq!(cutoff(&mut [], 1.0), f64::INFINITY);
    }

    /// A rate of 0.25: four accesses allow one write. Of eight misses in eight accesses predictions
    /// are 1 once, 0.5 three times, 0 four times: two may be written, so that the threshold is 0.5.
    /// Of an account of at most 4 writes, blocks just at the threshold leave 2 to better ones.
    #[test]
    fn the_budget_by_hand() {
        let mut budget = WriteBudget::new(0.25);
        budget.keep_at_most(16);
        for _ in 0..3 {
            budget.accrue();
            assert!(!budget.admits(None));
        }
        budget.accrue();
        assert!(budget.admits(None) && !budget.admits(None));
        budget = WriteBudget { most: 4.0, ..WriteBudget::new(0.25) };
        for prediction in [0.0, 0.5, 1.0, 0.0, 0.5, 0.0, 0.5, 0.0] {
            budget.accrue();
            assert_eq!(budget.admits(Some(prediction)), budget.accesses % 4.0 == 0.0);
        }
        budget.settle();
        assert_eq!(budget.threshold, Some(WriteBudget::class(0.5)));
        budget.credit = 2.5;
        let admitted = [0.0, 0.5, 0.5, 1.0, 1.0].map(|prediction| budget.admits(Some(prediction)));
        assert_eq!(admitted, [false, true, false, true, false]);
        assert_eq!((budget.credit, budget.audit()), (0.5, Ok(())));
        budget.demand.fill(0.0);
        budget.settle();
        assert_eq!(budget.threshold, None, "all that is missed may be written");
    }

    /// Of five blocks one is of a small part, and comes back nine times at once; the others are of
    /// streams that never return. LRU of 60 blocks that wrote every tenth miss would write a block
    /// that returns for one in five, and late. Once their extents are known, they are written and
    /// hit.
    #[test]
    fn blocks_that_save_are_written() {
        let mut cache = cache(60, BaleenSettings { write_rate: 0.1, ..Default::default() });
        let (mut hits, mut writes, mut accesses) = (0, 0, 0);
        for round in 0..2_000 {
            let mut verdicts = read(&mut cache, round / 10 % 50, 1);
            hits += u32::from(round >= 1_000 && verdicts[0] == Verdict::Hit);
            verdicts.extend(read(&mut cache, 4096 + round * 4 % 50_000, 4));
            accesses += 5;
            writes += verdicts.iter().filter(|one| matches!(one, Verdict::Admit { .. })).count();
        }
        assert!(writes * 10 <= accesses, "{writes} writes of {accesses} accesses");
        assert!(hits > 800, "{hits} hits of 1000");
        assert_eq!(cache.audit(), Ok(()));
    }
}
