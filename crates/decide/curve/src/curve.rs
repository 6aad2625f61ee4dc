//! Misses as a function of cache size, whatever way they were measured.
//!
//! A curve is piecewise linear between knots `(size in blocks, misses)`. An exact curve has a knot
//! wherever the slope changes, so that it is exact at every size. Misses are accesses of the whole
//! stream, also for samples.

use crate::Histogram;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::RegistryError;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use thiserror::Error;

/// How a curve was made.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
pub enum Provenance {
    /// Every access counted; LRU.
    Exact,
    /// SHARDS at a fixed rate (FAST'15); LRU.
    ShardsRate {
        /// Share of blocks in each sample.
        rate: f64,
        /// Samples averaged.
        salts: u32,
    },
    /// SHARDS with a fixed number of blocks (FAST'15); LRU.
    ShardsSize {
        /// Most blocks in each sample.
        max_blocks: u32,
        /// Samples averaged.
        salts: u32,
    },
    /// Miniature simulation (ATC'17).
    Mini {
        /// Name of the policy.
        policy: String,
        /// The lowest rate used; sizes that needed more had more.
        rate: f64,
        /// Samples averaged where the rate is below 1.
        salts: u32,
    },
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Exact => f.write_str("exact"),
            Provenance::ShardsRate { rate, salts } => {
                write!(f, "shards, rate {rate}, {salts} salts")
            }
            Provenance::ShardsSize { max_blocks, salts } => {
                write!(f, "shards, {max_blocks} blocks, {salts} salts")
            }
            // Every size was simulated with all blocks.
            Provenance::Mini { rate, .. } if *rate >= 1.0 => f.write_str("exact"),
            Provenance::Mini { policy, rate, salts } => {
                write!(f, "miniature simulation of {policy}, rate {rate}, {salts} salts")
            }
        }
    }
}

/// Low and high ends of a 95 % confidence interval at each knot, in misses.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
pub struct Band {
    /// Low ends.
    pub low: Vec<f64>,
    /// High ends.
    pub high: Vec<f64>,
}

/// Misses as a function of cache size.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
pub struct Curve {
    sizes: Vec<u32>,
    misses: Vec<f64>,
    band: Option<Band>,
    accesses: u64,
    trusted_from_blocks: u32,
    provenance: Provenance,
}

/// The curves of all accesses, of reads and of writes, in the same cache.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
pub struct Curves {
    /// Reads and writes together.
    pub all: Curve,
    /// Reads only: their misses wait for the backing device.
    pub reads: Curve,
    /// Writes only.
    pub writes: Curve,
}

impl Curve {
    /// A curve through `knots` (size in blocks, misses); sizes must ascend strictly and are cut
    /// where they do not. A knot at size 0, where every access misses, is put first if absent.
    /// Misses are clamped to `0..=accesses`.
    pub fn from_knots(
        knots: impl IntoIterator<Item = (u32, f64)>,
        accesses: u64,
        provenance: Provenance,
    ) -> Curve {
        let mut curve = Curve {
            sizes: vec![0],
            misses: vec![accesses as f64],
            band: None,
            accesses,
            trusted_from_blocks: 0,
            provenance,
        };
        for (size, misses) in knots {
            if size > curve.sizes[curve.sizes.len() - 1] {
                curve.sizes.push(size);
                curve.misses.push(misses.clamp(0.0, accesses as f64));
            }
        }
        curve
    }

    /// The same curve with a confidence interval. Ends are per knot, the knot at 0 included; with
    /// another number of ends the band is left out.
    pub(crate) fn with_band(mut self, low: Vec<f64>, high: Vec<f64>) -> Curve {
        if low.len() == self.sizes.len() && high.len() == self.sizes.len() {
            self.band = Some(Band { low, high });
        }
        self
    }

    /// The same curve, claimed only from `blocks` up.
    pub(crate) fn trusted_from(mut self, blocks: u32) -> Curve {
        self.trusted_from_blocks = blocks;
        self
    }

    /// Sizes of the knots in blocks, ascending from 0.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Misses at the knots.
    pub fn knot_misses(&self) -> &[f64] {
        &self.misses
    }

    /// The confidence interval at the knots, if the curve is approximate.
    pub fn band(&self) -> Option<&Band> {
        self.band.as_ref()
    }

    /// Accesses of the stream: misses at size 0.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// How the curve was made.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The smallest trusted size (above 0); below it the value is a guess.
    pub fn trusted_from_blocks(&self) -> u32 {
        self.trusted_from_blocks
    }

    /// The largest size with a knot; beyond it the curve is flat.
    pub fn largest_blocks(&self) -> u32 {
        self.sizes[self.sizes.len() - 1]
    }

    /// Misses of a cache of `size_blocks`, interpolated.
    pub fn misses(&self, size_blocks: u32) -> f64 {
        self.interpolate(&self.misses, size_blocks)
    }

    /// Misses per access; 0 when there was no access.
    pub fn miss_ratio(&self, size_blocks: u32) -> f64 {
        if self.accesses == 0 { 0.0 } else { self.misses(size_blocks) / self.accesses as f64 }
    }

    /// Ends of the 95 % confidence interval of [`Curve::misses`]; both equal it when exact.
    pub fn interval(&self, size_blocks: u32) -> (f64, f64) {
        match &self.band {
            Some(band) => (
                self.interpolate(&band.low, size_blocks),
                self.interpolate(&band.high, size_blocks),
            ),
            None => (self.misses(size_blocks), self.misses(size_blocks)),
        }
    }

    /// [`Curve::miss_ratio`]. Errors: the sample is too small for this size.
    pub fn trusted_miss_ratio(&self, size_blocks: u32) -> Result<f64, CurveError> {
        if size_blocks == 0 || size_blocks >= self.trusted_from_blocks {
            return Ok(self.miss_ratio(size_blocks));
        }
        let minimum = MIN_SCALED_BLOCKS;
        let rate = f64::from(minimum) / f64::from(self.trusted_from_blocks);
        Err(CurveError::TooSmall {
            size_blocks,
            rate,
            scaled_blocks: rate * f64::from(size_blocks),
            minimum_blocks: minimum,
            needed_rate: (f64::from(minimum) / f64::from(size_blocks)).min(1.0),
        })
    }

    /// Whether misses never rise with size (they may for fifo and clock).
    pub fn is_monotone(&self) -> bool {
        self.misses.windows(2).all(|pair| pair[1] <= pair[0])
    }

    /// A curve of at most `points` knots (at least 2) that keeps the knees.
    pub fn resampled(&self, points: usize) -> Curve {
        let kept = knots_to_keep(&self.sizes, &self.misses, points);
        let pick = |values: &[f64]| kept.iter().map(|&i| values[i]).collect::<Vec<f64>>();
        Curve {
            sizes: kept.iter().map(|&i| self.sizes[i]).collect(),
            misses: pick(&self.misses),
            band: self.band.as_ref().map(|b| Band { low: pick(&b.low), high: pick(&b.high) }),
            accesses: self.accesses,
            trusted_from_blocks: self.trusted_from_blocks,
            provenance: self.provenance.clone(),
        }
    }

    /// The average of this curve and an earlier one, which counts for `share_of_past` (0 to 1), at
    /// no more than `points` knots of each. Accesses are averaged too; there is no band.
    pub fn blended(&self, past: &Curve, share_of_past: f64, points: usize) -> Curve {
        let share = share_of_past.clamp(0.0, 1.0);
        let mut sizes = self.resampled(points).sizes;
        sizes.extend(past.resampled(points).sizes);
        sizes.sort_unstable();
        sizes.dedup();
        let mix = |now: f64, then: f64| now + share * (then - now);
        let accesses = mix(self.accesses as f64, past.accesses as f64).round() as u64;
        let knots = sizes.into_iter().map(|size| (size, mix(self.misses(size), past.misses(size))));
        Curve::from_knots(knots, accesses, self.provenance.clone())
            .trusted_from(self.trusted_from_blocks.max(past.trusted_from_blocks))
    }

    fn interpolate(&self, values: &[f64], size_blocks: u32) -> f64 {
        let right = self.sizes.partition_point(|&size| size < size_blocks);
        if right == self.sizes.len() {
            return values[right - 1];
        }
        if self.sizes[right] == size_blocks {
            return values[right];
        }
        let (x0, x1) = (f64::from(self.sizes[right - 1]), f64::from(self.sizes[right]));
        let share = (f64::from(size_blocks) - x0) / (x1 - x0);
        values[right - 1] + share * (values[right] - values[right - 1])
    }
}

/// The fewest sampled blocks for which a SHARDS curve is trusted.
pub const MIN_SCALED_BLOCKS: u32 = 100;

impl Curves {
    /// The exact LRU curves of a histogram.
    pub fn exact(histogram: &Histogram) -> Curves {
        let weighted = |weights: [u64; 2]| exact_curve(histogram, weights);
        Curves { all: weighted([1, 1]), reads: weighted([1, 0]), writes: weighted([0, 1]) }
    }
}

/// The exact curve of reads times `weights[0]` and writes times `weights[1]`: a knot wherever the
/// number of hits per size changes.
fn exact_curve(histogram: &Histogram, weights: [u64; 2]) -> Curve {
    let weigh = |both: [u64; 2]| both[0] * weights[0] + both[1] * weights[1];
    let accesses = weigh(histogram.accesses());
    let mut knots = Vec::new();
    let (mut misses, mut slope) = (accesses, 0);
    for (distance, both) in histogram.iter() {
        let hits = weigh(both);
        if hits != slope {
            knots.push((distance - 1, misses as f64));
            slope = hits;
        }
        misses -= hits;
    }
    if slope != 0 {
        knots.push((histogram.longest(), misses as f64));
    }
    Curve::from_knots(knots, accesses, Provenance::Exact)
}

/// A stretch between two kept knots and the knot of it furthest from the chord.
struct CurveStretch {
    deviation: f64,
    first: usize,
    worst: usize,
    last: usize,
}

impl PartialEq for CurveStretch {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for CurveStretch {}

impl PartialOrd for CurveStretch {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CurveStretch {
    fn cmp(&self, other: &Self) -> Ordering {
        self.deviation.total_cmp(&other.deviation).then(other.first.cmp(&self.first))
    }
}

/// Indices of at most `points` knots (at least the two ends), ascending. The knot furthest from its
/// chord is kept first (Ramer, Computer Graphics and Image Processing 1972; Douglas and Peucker,
/// Cartographica 1973); a heap orders them, so that the number of knots is given and not a
/// tolerance. O(knots x depth), depth about log2(points) for curves that fall steeply first.
pub(crate) fn knots_to_keep(sizes: &[u32], values: &[f64], points: usize) -> Vec<usize> {
    if sizes.len() <= points.max(2) {
        return (0..sizes.len()).collect();
    }
    let mut kept = vec![0, sizes.len() - 1];
    let mut heap = BinaryHeap::from_iter(stretch(sizes, values, 0, sizes.len() - 1));
    while kept.len() < points {
        let Some(next) = heap.pop() else { break };
        kept.push(next.worst);
        heap.extend(stretch(sizes, values, next.first, next.worst));
        heap.extend(stretch(sizes, values, next.worst, next.last));
    }
    kept.sort_unstable();
    kept
}

/// The stretch from `first` to `last`, unless every knot between lies on the chord.
fn stretch(sizes: &[u32], values: &[f64], first: usize, last: usize) -> Option<CurveStretch> {
    let (x0, y0) = (f64::from(sizes[first]), values[first]);
    let slope = (values[last] - y0) / (f64::from(sizes[last]) - x0);
    let mut found = CurveStretch { deviation: 0.0, first, worst: first, last };
    for index in first + 1..last {
        let deviation = (values[index] - y0 - slope * (f64::from(sizes[index]) - x0)).abs();
        if deviation > found.deviation {
            found.deviation = deviation;
            found.worst = index;
        }
    }
    (found.worst != first).then_some(found)
}

/// A curve, or a point of a curve, that is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CurveError {
    /// The sampled cache is too small to represent the real one.
    #[error(
        "a cache of {size_blocks} blocks sampled at rate {rate} has {scaled_blocks:.1} blocks, \
         expected at least {minimum_blocks}; raise the rate to {needed_rate} or let it escalate"
    )]
    TooSmall {
        /// Size of the real cache.
        size_blocks: u32,
        /// Sampling rate.
        rate: f64,
        /// Size of the sampled cache.
        scaled_blocks: f64,
        /// The fewest blocks the settings accept.
        minimum_blocks: u32,
        /// The lowest rate at which the size would be accepted.
        needed_rate: f64,
    },
    /// The sample of the working set would be too small.
    #[error(
        "{distinct_blocks} distinct blocks sampled at rate {rate} leave {sampled_blocks:.0}, \
         expected at least {minimum_blocks}; raise the rate to {needed_rate} or let it escalate"
    )]
    FewBlocks {
        /// Distinct blocks of the whole stream.
        distinct_blocks: u64,
        /// Sampling rate.
        rate: f64,
        /// Distinct blocks expected in the sample.
        sampled_blocks: f64,
        /// The fewest blocks the settings accept.
        minimum_blocks: u32,
        /// The lowest rate at which the stream would be accepted.
        needed_rate: f64,
    },
    /// A list of sizes that describes no curve.
    #[error("sizes: found {found}, expected one or more sizes in ascending order, each above 0")]
    Sizes {
        /// What was found.
        found: String,
    },
    /// The policy needs more than a stream of accesses.
    #[error("policy `{policy}` needs {need}, which samples of block accesses do not have")]
    Lacking {
        /// The policy.
        policy: &'static str,
        /// What it needs.
        need: &'static str,
    },
    /// The policy or one of its settings was refused.
    #[error(transparent)]
    Policy(#[from] RegistryError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_knots_are_interpolated_and_flat_beyond() {
        let curve = Curve::from_knots([(10, 50.0), (20, 30.0)], 100, Provenance::Exact);
        assert_eq!(curve.misses(0), 100.0);
        assert_eq!(curve.misses(5), 75.0);
        assert_eq!(curve.misses(15), 40.0);
        assert_eq!(curve.misses(999), 30.0);
        assert!(curve.is_monotone());
    }

    #[test]
    fn blending_averages_misses_and_accesses() {
        let now = Curve::from_knots([(10, 50.0)], 100, Provenance::Exact);
        let past = Curve::from_knots([(20, 0.0)], 200, Provenance::Exact);
        let both = now.blended(&past, 0.25, 16);
        assert_eq!(both.accesses(), 125);
        assert_eq!((both.misses(10), both.misses(20)), (0.75 * 50.0 + 0.25 * 100.0, 37.5));
        assert_eq!(now.blended(&past, 0.0, 16).misses(10), 50.0);
    }

    #[test]
    fn a_curve_refuses_sizes_below_its_resolution() {
        let curve = Curve::from_knots([(1000, 50.0)], 100, Provenance::Exact).trusted_from(1000);
        assert!(curve.trusted_miss_ratio(1000).is_ok());
        let error = curve.trusted_miss_ratio(500).unwrap_err().to_string();
        assert!(error.contains("500 blocks") && error.contains("50.0 blocks"), "{error}");
    }

    #[test]
    fn the_knee_is_kept_first() {
        let sizes: Vec<u32> = (0..=100).collect();
        let values: Vec<f64> = sizes.iter().map(|&s| f64::from(100 - s.min(30))).collect();
        assert_eq!(knots_to_keep(&sizes, &values, 3), vec![0, 30, 100]);
        assert_eq!(knots_to_keep(&sizes, &values, 50), vec![0, 30, 100], "the rest lies on chords");
        assert_eq!(knots_to_keep(&sizes[..2], &values[..2], 50), vec![0, 1]);
    }
}
