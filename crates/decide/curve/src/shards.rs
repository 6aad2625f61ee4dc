//! SHARDS: LRU curves from a sample of the blocks, at a hundredth of the cost and memory of the
//! exact pass.
//!
//! Source: Waldspurger, Park, Garthwaite, Ahmad, FAST'15: fixed rate (section 3.2), fixed size
//! (3.3), and the SHARDS-adj correction (3.4). The correction counts the difference between the
//! sampled accesses and their expectation as hits at the shortest distance. Ours averages several
//! samples (`sample.rs`), and so has an interval. A distance of d sampled blocks represents d/rate
//! blocks. Weights are accesses of the whole stream.

use crate::curve::MIN_SCALED_BLOCKS;
use crate::sample::{BlockIndex, Circle, mean_and_half_width, rate, threshold, together};
use crate::{Curve, Curves, Provenance, StackDistance};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, BlockKey, Seed, VolumeKeys, declare};
use std::collections::BinaryHeap;
use std::ops::Range;

declare! {
    /// Settings of fixed-rate SHARDS.
    pub struct ShardsRateSettings {
        /// share of the blocks in each sample
        rate: f64 = 0.01, "ratio", 0.000001 ..= 1.0;
        /// samples averaged; their spread makes the interval
        salts: u32 = 8, "samples", 1 ..= 16;
    }
}

declare! {
    /// Settings of fixed-size SHARDS.
    pub struct ShardsSizeSettings {
        /// most blocks in each sample
        max_blocks: u32 = 8192, "blocks", 16 ..= 16777216;
        /// samples averaged; their spread makes the interval
        salts: u32 = 4, "samples", 1 ..= 16;
    }
}

/// Fixed-rate SHARDS over all samples at once.
#[derive(Clone, Debug, Snapshot)]
pub struct FixedRate {
    #[snapshot(settings)]
    circle: Circle,
    #[snapshot(settings)]
    threshold: u64,
    #[snapshot(settings)]
    rate: f64,
    samples: Vec<SampledStack>,
    /// Per numbered member its sample, and its id there.
    members: Vec<(u32, BlockId)>,
    accesses: [u64; 2],
}

/// The blocks of a sample and the stack of them.
#[derive(Clone, Debug, SnapshotValue)]
struct SampledStack {
    index: BlockIndex,
    stack: StackDistance,
}

impl FixedRate {
    /// Empty samples. At rate 1 one sample is everything and the curve is exact.
    pub fn new(settings: &ShardsRateSettings, seed: Seed) -> FixedRate {
        let salts = if settings.rate >= 1.0 { 1 } else { settings.salts };
        let sample = SampledStack { index: BlockIndex::default(), stack: StackDistance::new() };
        FixedRate {
            circle: Circle::new(salts, seed),
            threshold: threshold(settings.rate),
            rate: settings.rate,
            samples: vec![sample; salts as usize],
            members: Vec::new(),
            accesses: [0; 2],
        }
    }

    /// Numbers a block that a sample holds: the count of those numbered before. Returns whether it
    /// did; while samples overlap, a block may be in several and gets no number.
    pub(crate) fn keep(&mut self, block: BlockKey) -> bool {
        if self.threshold > self.circle.disjoint_below() {
            return false;
        }
        let (sample, _) = self.circle.only(self.circle.place(block));
        let Some(local) = self.samples[sample].index.get(block) else { return false };
        self.members.push((sample as u32, BlockId(local)));
        true
    }

    /// Counts an access to a block that [`FixedRate::keep`] numbered.
    #[inline]
    pub(crate) fn access_member(&mut self, number: u32, write: bool) {
        self.count(write);
        let (sample, local) = self.members[number as usize];
        self.samples[sample as usize].stack.access(local, write);
    }

    /// Counts one access; returns whether any sample holds the block.
    #[inline]
    pub fn access(&mut self, block: BlockKey, write: bool) -> bool {
        self.count(write);
        let place = self.circle.place(block);
        if self.threshold <= self.circle.disjoint_below() {
            let (sample, seen) = self.circle.only(place);
            let sampled = seen <= self.threshold;
            if sampled {
                self.samples[sample].access(block, write);
            }
            return sampled;
        }
        let mut sampled = false;
        for (number, sample) in self.samples.iter_mut().enumerate() {
            if self.circle.seen(place, number) <= self.threshold {
                sample.access(block, write);
                sampled = true;
            }
        }
        sampled
    }

    /// Counts an access to a block that no sample holds.
    #[inline(always)]
    pub fn count(&mut self, write: bool) {
        self.accesses[usize::from(write)] += 1;
    }

    /// Puts a block on top of the stacks that was read ahead of its use: nothing is counted.
    pub fn bring_in(&mut self, block: BlockKey) {
        let place = self.circle.place(block);
        for (number, sample) in self.samples.iter_mut().enumerate() {
            if self.circle.seen(place, number) <= self.threshold {
                let local = sample.local(block);
                sample.stack.bring_in(local);
            }
        }
    }

    /// Takes a trimmed block out of the stacks.
    pub fn remove(&mut self, block: BlockKey) {
        self.samples.iter_mut().for_each(|sample| sample.remove(block));
    }

    /// Takes the trimmed blocks of a range of a volume out of the stacks.
    pub fn remove_range(&mut self, volume: VolumeKeys, numbers: Range<u64>) {
        self.samples.iter_mut().for_each(|sample| sample.remove_range(volume, numbers.clone()));
    }

    /// The curves of the accesses counted so far; counts are reset, stacks stay.
    pub fn take_curves(&mut self) -> Curves {
        let accesses = std::mem::take(&mut self.accesses);
        let scale = 1.0 / self.rate;
        let measured: Vec<Weights> = self
            .samples
            .iter_mut()
            .map(|sample| {
                let histogram = sample.stack.take_histogram();
                let steps = histogram
                    .iter()
                    .filter(|(_, both)| *both != [0; 2])
                    .map(|(d, both)| (f64::from(d) * scale, both.map(|n| n as f64 * scale)))
                    .collect();
                Weights {
                    grid: scale,
                    steps,
                    total: histogram.accesses().map(|n| n as f64 * scale),
                }
            })
            .collect();
        if self.rate >= 1.0 {
            return curves(&measured, accesses, 0, &Provenance::Exact);
        }
        let provenance =
            Provenance::ShardsRate { rate: self.rate, salts: self.samples.len() as u32 };
        curves(&measured, accesses, trusted_from(self.rate), &provenance)
    }
}

impl SampledStack {
    #[inline]
    fn access(&mut self, block: BlockKey, write: bool) {
        let local = self.local(block);
        self.stack.access(local, write);
    }

    #[inline]
    fn local(&mut self, block: BlockKey) -> BlockId {
        BlockId(self.index.enter(block))
    }

    /// Takes a trimmed block out of the stack.
    fn remove(&mut self, block: BlockKey) {
        if let Some(local) = self.index.get(block) {
            self.stack.remove(BlockId(local));
        }
    }

    /// Takes the trimmed blocks of a range of a volume out of the stack.
    fn remove_range(&mut self, volume: VolumeKeys, numbers: Range<u64>) {
        for local in self.index.within(volume, numbers) {
            self.stack.remove(BlockId(local));
        }
    }
}

/// Fixed-size SHARDS over all samples at once.
#[derive(Clone, Debug, Snapshot)]
pub struct FixedSize {
    #[snapshot(settings)]
    circle: Circle,
    samples: Vec<SizeSample>,
    /// The highest threshold of any sample.
    highest: u64,
    #[snapshot(settings)]
    max_blocks: u32,
    accesses: [u64; 2],
}

/// Misses at some sizes, estimated from samples.
#[derive(Clone, Debug, PartialEq)]
pub struct MissesAt {
    /// Accesses that were counted.
    pub accesses: u64,
    /// Misses at each size, and the low and high end of their 95 % interval.
    pub misses: Vec<[f64; 3]>,
    /// The smallest size at which the samples are large enough.
    pub trusted_from_blocks: u32,
    /// The size from which on misses do not fall any more.
    pub largest_blocks: u32,
}

#[derive(Clone, Debug, SnapshotValue)]
struct SizeSample {
    threshold: u64,
    /// 1 / rate: the weight of one sampled block or access.
    scale: f64,
    blocks: SampledStack,
    /// (place, block, dense id), the highest place first out.
    members: BinaryHeap<(u64, BlockKey, u32)>,
    weights: WeightedHistogram,
}

impl FixedSize {
    /// Empty samples at rate 1, which falls as they fill.
    pub fn new(settings: &ShardsSizeSettings, seed: Seed) -> FixedSize {
        let sample = SizeSample {
            threshold: u64::MAX,
            scale: 1.0,
            blocks: SampledStack { index: BlockIndex::default(), stack: StackDistance::new() },
            members: BinaryHeap::new(),
            weights: WeightedHistogram::new(settings.max_blocks as usize * 4),
        };
        FixedSize {
            circle: Circle::new(settings.salts, seed),
            samples: vec![sample; settings.salts.max(1) as usize],
            highest: u64::MAX,
            max_blocks: settings.max_blocks,
            accesses: [0; 2],
        }
    }

    /// Counts one access; returns whether any sample holds the block or may have held it.
    #[inline]
    pub fn access(&mut self, block: BlockKey, write: bool) -> bool {
        self.count(write);
        let place = self.circle.place(block);
        if self.highest <= self.circle.disjoint_below() {
            let (number, seen) = self.circle.only(place);
            return seen <= self.highest && self.offer(number, seen, block, Some(write));
        }
        let mut sampled = false;
        for number in 0..self.samples.len() {
            sampled |= self.offer(number, self.circle.seen(place, number), block, Some(write));
        }
        sampled
    }

    /// Counts an access to a block that no sample holds.
    #[inline(always)]
    pub fn count(&mut self, write: bool) {
        self.accesses[usize::from(write)] += 1;
    }

    /// Puts a block on top of the stacks that was read ahead of its use: nothing is counted.
    pub fn bring_in(&mut self, block: BlockKey) {
        let place = self.circle.place(block);
        for number in 0..self.samples.len() {
            self.offer(number, self.circle.seen(place, number), block, None);
        }
    }

    /// Shows a block to a sample: written or read, or (nothing) brought in ahead of its use.
    /// Returns whether its place was below the threshold.
    #[inline]
    fn offer(&mut self, number: usize, seen: u64, block: BlockKey, write: Option<bool>) -> bool {
        let sample = &mut self.samples[number];
        let sampled = seen <= sample.threshold;
        if sampled && sample.access(seen, block, write, self.max_blocks as usize) {
            self.highest = self.samples.iter().map(|s| s.threshold).max().unwrap_or(u64::MAX);
        }
        sampled
    }

    /// Takes a trimmed block out of the stacks.
    pub fn remove(&mut self, block: BlockKey) {
        self.samples.iter_mut().for_each(|sample| sample.blocks.remove(block));
    }

    /// Takes the trimmed blocks of a range of a volume out of the stacks.
    pub fn remove_range(&mut self, volume: VolumeKeys, numbers: Range<u64>) {
        for sample in &mut self.samples {
            sample.blocks.remove_range(volume, numbers.clone());
        }
    }

    /// The curves of the accesses counted so far; counts are reset, samples stay.
    pub fn take_curves(&mut self) -> Curves {
        let accesses = std::mem::take(&mut self.accesses);
        let (measured, trusted) = self.take_weights();
        let provenance = Provenance::ShardsSize {
            max_blocks: self.max_blocks,
            salts: self.samples.len() as u32,
        };
        curves(&measured, accesses, trusted, &provenance)
    }

    /// The misses of the accesses counted so far at ascending sizes in blocks, for a small part of
    /// the cost of [`FixedSize::take_curves`]; counts are reset, samples stay.
    pub fn take_misses(&mut self, sizes_blocks: &[u32]) -> MissesAt {
        let accesses = std::mem::take(&mut self.accesses).iter().sum();
        let (measured, trusted_from_blocks) = self.take_weights();
        let ends = measured.iter().filter_map(|weights| weights.steps.last());
        MissesAt {
            accesses,
            misses: misses_at(&measured, accesses, sizes_blocks),
            trusted_from_blocks,
            largest_blocks: ends.map(|(distance, _)| distance.ceil() as u32).max().unwrap_or(0),
        }
    }

    /// The weights that each sample has counted, and the smallest size they are enough for.
    fn take_weights(&mut self) -> (Vec<Weights>, u32) {
        let lowest = self.samples.iter().map(|s| 1.0 / s.scale).fold(1.0, f64::min);
        let trusted = if lowest >= 1.0 { 0 } else { trusted_from(lowest) };
        (self.samples.iter_mut().map(|sample| sample.weights.take()).collect(), trusted)
    }
}

impl SizeSample {
    /// Counts an access to a block below the threshold, or brings it in; returns whether the
    /// threshold fell.
    #[inline]
    fn access(&mut self, seen: u64, block: BlockKey, write: Option<bool>, capacity: usize) -> bool {
        let known = self.blocks.index.get(block).map(BlockId);
        match (known, write) {
            (Some(local), Some(write)) => {
                let distance = self.blocks.stack.access(local, write);
                self.weights.count(distance.map(|d| f64::from(d) * self.scale), write, self.scale);
            }
            (Some(local), None) => self.blocks.stack.bring_in(local),
            (None, Some(write)) => self.weights.count(None, write, self.scale),
            (None, None) => {}
        }
        known.is_none() && self.enter(seen, block, capacity)
    }

    /// Takes in a new block and, when that is one too many, throws out those with the highest
    /// place. Its dense id goes to the next newcomer.
    fn enter(&mut self, seen: u64, block: BlockKey, capacity: usize) -> bool {
        let local = if self.members.len() < capacity {
            self.members.len() as u32
        } else {
            let Some((place, thrown, local)) = self.members.pop() else { return false };
            if place < seen {
                self.members.push((place, thrown, local));
                return self.lower(seen);
            }
            self.blocks.index.remove(thrown);
            self.blocks.stack.forget(BlockId(local));
            self.lower(place);
            local
        };
        self.members.push((seen, block, local));
        self.blocks.index.insert(block, local);
        self.blocks.stack.bring_in(BlockId(local));
        self.members.len() >= capacity
    }

    fn lower(&mut self, thrown: u64) -> bool {
        self.threshold = thrown.saturating_sub(1);
        self.scale = 1.0 / rate(self.threshold);
        true
    }
}

/// Weights by distance: their sum, and each step of the sum.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    /// Distance between neighbouring steps in blocks: a step's weight lies evenly in one of it.
    pub grid: f64,
    /// (distance in blocks, weight of reads and writes), ascending.
    pub steps: Vec<(f64, [f64; 2])>,
    /// Weight of all accesses.
    pub total: [f64; 2],
}

/// Weights in equal buckets of distance, twice as wide whenever a distance does not fit.
#[derive(Clone, Debug, SnapshotValue)]
pub struct WeightedHistogram {
    width_blocks: f64,
    buckets: Vec<[f64; 2]>,
    limit: usize,
    total: [f64; 2],
}

impl WeightedHistogram {
    /// No weights, in at most so many buckets.
    pub fn new(limit: usize) -> WeightedHistogram {
        WeightedHistogram { width_blocks: 1.0, buckets: Vec::new(), limit, total: [0.0; 2] }
    }

    /// Counts an access at a distance, or without one.
    #[inline]
    pub fn count(&mut self, distance: Option<f64>, write: bool, weight: f64) {
        let kind = usize::from(write);
        self.total[kind] += weight;
        let Some(distance) = distance else { return };
        let mut bucket = self.bucket(distance);
        while bucket >= self.limit {
            self.widen();
            bucket = self.bucket(distance);
        }
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, [0.0; 2]);
        }
        self.buckets[bucket][kind] += weight;
    }

    /// The bucket of distances in `(bucket * width, (bucket + 1) * width]`.
    fn bucket(&self, distance: f64) -> usize {
        ((distance / self.width_blocks).ceil() as usize).saturating_sub(1)
    }

    fn widen(&mut self) {
        let pairs = self.buckets.chunks(2);
        self.buckets = pairs
            .map(|pair| pair.iter().fold([0.0; 2], |sum, b| [sum[0] + b[0], sum[1] + b[1]]))
            .collect();
        self.width_blocks *= 2.0;
    }

    /// The weights so far, which are then forgotten.
    pub fn take(&mut self) -> Weights {
        let width = self.width_blocks;
        let buckets = std::mem::take(&mut self.buckets);
        let total = std::mem::take(&mut self.total);
        let ends = (1..).map(|bucket| f64::from(bucket) * width);
        let steps = ends.zip(buckets).filter(|(_, both)| *both != [0.0; 2]).collect();
        Weights { grid: width, steps, total }
    }
}

/// The size from which a curve of a sample at this rate is trusted, in blocks.
pub fn trusted_from(rate: f64) -> u32 {
    (f64::from(MIN_SCALED_BLOCKS) / rate).ceil().min(f64::from(u32::MAX)) as u32
}

/// The mean of the samples' curves: of all accesses, of reads and of writes.
pub fn curves(measured: &[Weights], accesses: [u64; 2], trusted: u32, from: &Provenance) -> Curves {
    let weighted = |kinds: [f64; 2], accesses: u64| {
        let each: Vec<Curve> =
            measured.iter().map(|weights| curve(weights, kinds, accesses, from)).collect();
        together(&each, accesses, from.clone()).trusted_from(trusted)
    };
    Curves {
        all: weighted([1.0, 1.0], accesses[0] + accesses[1]),
        reads: weighted([1.0, 0.0], accesses[0]),
        writes: weighted([0.0, 1.0], accesses[1]),
    }
}

/// Misses in caches of `sizes`, ascending, with the ends of their 95 % interval: those of
/// [`curves`] for reads and writes together, for a small part of its cost.
pub fn misses_at(measured: &[Weights], accesses: u64, sizes: &[u32]) -> Vec<[f64; 3]> {
    let all_misses = accesses as f64;
    let each: Vec<Vec<f64>> =
        measured.iter().map(|weights| sample_misses_at(weights, sizes)).collect();
    let mut values = Vec::with_capacity(each.len());
    let interval = |(place, size): (usize, &u32)| {
        if *size == 0 {
            return [all_misses; 3];
        }
        values.clear();
        values.extend(each.iter().map(|misses| misses[place].clamp(0.0, all_misses)));
        let (mean, half) = mean_and_half_width(&values);
        [mean, (mean - half).max(0.0), (mean + half).min(all_misses)]
    };
    sizes.iter().enumerate().map(interval).collect()
}

/// One sample's misses at ascending sizes.
fn sample_misses_at(weights: &Weights, sizes: &[u32]) -> Vec<f64> {
    let all = |both: [f64; 2]| both[0] + both[1];
    let (mut misses, mut steps) = (all(weights.total), weights.steps.iter().peekable());
    let misses_of = |size: &u32| {
        let size = f64::from(*size);
        while let Some((_, both)) = steps.next_if(|(distance, _)| *distance <= size) {
            misses -= all(*both);
        }
        // A step's weight lies evenly in one of the grid.
        let part = steps.peek().map_or(0.0, |(distance, both)| {
            all(*both) * (1.0 - (distance - size) / weights.grid).max(0.0)
        });
        misses - part
    };
    sizes.iter().map(misses_of).collect()
}

/// One sample's curve with the SHARDS-adj correction (FAST'15 section 3.4).
fn curve(weights: &Weights, kinds: [f64; 2], accesses: u64, from: &Provenance) -> Curve {
    let weigh = |both: [f64; 2]| both[0] * kinds[0] + both[1] * kinds[1];
    let mut misses = weigh(weights.total);
    let mut knots: Vec<(u32, f64)> = Vec::with_capacity(weights.steps.len() + 2);
    for (distance, both) in &weights.steps {
        knots.push(((distance - weights.grid).round() as u32, misses));
        misses -= weigh(*both);
        knots.push((distance.round() as u32, misses));
    }
    Curve::from_knots(knots, accesses, from.clone())
}
