//! Samples of blocks, and the mean of several samples.
//!
//! For: SHARDS and miniature simulation. Must never know: what is measured on a sample. A block is
//! in a sample if its hash is low (spatial hashing: all accesses of a block or none; Waldspurger et
//! al., FAST'15 section 3.1). The `salts` samples use one salted hash, rotated by equal steps of
//! the circle. Each alone is a uniform sample. At rates up to 1/salts they are disjoint, so that
//! one hash and one comparison decide for all. Disjoint samples differ slightly more than
//! independent ones, so that the interval from their spread is on the safe side.

use crate::{Curve, Provenance};
use cachewright_types::{BlockKey, Seed, seed::mix};

/// 2^64: hashes are fractions of it.
const CIRCLE: f64 = 18_446_744_073_709_551_616.0;
/// Knots each sample contributes to the common grid.
const GRID: usize = 512;
/// 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom.
const STUDENT: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131,
];

/// The highest hash of a sample of `rate`.
pub(crate) fn threshold(rate: f64) -> u64 {
    (rate * CIRCLE) as u64
}

/// The rate of a sample whose highest hash is `threshold`.
pub(crate) fn rate(threshold: u64) -> f64 {
    (threshold as f64 + 1.0) / CIRCLE
}

/// The places of blocks on the circle, as each sample sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circle {
    salt: u64,
    salts: u64,
    step: u64,
}

impl Circle {
    /// `salts` (at least 1) views of one salted hash.
    pub fn new(salts: u32, seed: Seed) -> Circle {
        let salts = u64::from(salts.max(1));
        let step = if salts == 1 { 0 } else { u64::MAX / salts };
        Circle { salt: seed.derive("sample").0, salts, step }
    }

    /// The block's hash.
    #[inline(always)]
    pub fn place(&self, block: BlockKey) -> u64 {
        mix(block.0 ^ self.salt)
    }

    /// The highest threshold at which samples are disjoint.
    pub fn disjoint_below(&self) -> u64 {
        if self.salts == 1 { u64::MAX } else { self.step - 1 }
    }

    /// The one sample that may hold `place` while thresholds are below `disjoint_below`, and the
    /// place as that sample sees it.
    #[inline(always)]
    pub fn only(&self, place: u64) -> (usize, u64) {
        let sample = ((u128::from(place) * u128::from(self.salts)) >> 64) as u64;
        (sample as usize, place - sample * self.step)
    }

    /// The place as `sample` sees it.
    #[inline(always)]
    pub fn seen(&self, place: u64, sample: usize) -> u64 {
        place.wrapping_sub(sample as u64 * self.step)
    }
}

/// The mean of several samples' curves with a 95 % interval: mean +- t * s / sqrt(n), Student's t
/// with n - 1 degrees of freedom, s the standard deviation between samples. One sample has no
/// interval. Errors common to all samples (bias at sizes below the trusted one) are not in it.
pub(crate) fn together(curves: &[Curve], accesses: u64, provenance: Provenance) -> Curve {
    let Some((first, rest)) = curves.split_first() else {
        return Curve::from_knots([], accesses, provenance);
    };
    if rest.is_empty() {
        let knots = first.sizes().iter().copied().zip(first.knot_misses().iter().copied());
        return Curve::from_knots(knots, accesses, provenance);
    }
    let mut sizes: Vec<u32> = Vec::new();
    for curve in curves {
        let kept = crate::resample::keep(curve.sizes(), curve.knot_misses(), GRID);
        sizes.extend(kept.iter().map(|&index| curve.sizes()[index]));
    }
    sizes.sort_unstable();
    sizes.dedup();
    let (mut misses, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for &size in &sizes {
        let values: Vec<f64> = curves.iter().map(|curve| curve.misses(size)).collect();
        let (mean, half) = mean_and_half_width(&values);
        misses.push(mean);
        low.push((mean - half).max(0.0));
        high.push((mean + half).min(accesses as f64));
    }
    Curve::from_knots(sizes.into_iter().zip(misses), accesses, provenance).with_band(low, high)
}

/// Mean of `values` and half the width of its 95 % interval.
pub(crate) fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = STUDENT[(values.len() - 2).min(STUDENT.len() - 1)];
    (mean, t * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_holds_its_share_and_low_rates_never_overlap() {
        let circle = Circle::new(5, Seed(3));
        let (mut held, limit) = ([0_u32; 5], threshold(0.1));
        assert!(limit <= circle.disjoint_below());
        for id in 0..50_000 {
            let place = circle.place(BlockKey(id));
            let (only, seen) = circle.only(place);
            for (sample, count) in held.iter_mut().enumerate() {
                let inside = circle.seen(place, sample) <= limit;
                assert_eq!(inside, sample == only && seen <= limit);
                *count += u32::from(inside);
            }
        }
        assert!(held.iter().all(|&count| (4_700..5_300).contains(&count)), "{held:?}");
    }

    #[test]
    fn a_rate_of_one_takes_every_block() {
        assert_eq!(threshold(1.0), u64::MAX);
        assert_eq!(rate(u64::MAX), 1.0);
    }

    #[test]
    fn the_interval_is_students() {
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(mean, 2.5);
        assert!((half - 3.182 * (5.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
    }
}
