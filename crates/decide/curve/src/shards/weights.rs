//! Weights of sampled accesses by distance, and the curves that they make.
//!
//! For: SHARDS of both kinds. Must never know: which blocks a sample holds. Source: Waldspurger et
//! al., FAST'15, section 3.4 (the correction). Units: blocks; weights are accesses of the whole
//! stream.

use crate::curve::MIN_SCALED_BLOCKS;
use crate::sample::{mean_and_half_width, together};
use crate::{Curve, Curves, Provenance};

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
#[derive(Clone, Debug)]
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
