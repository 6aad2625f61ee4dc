//! The greatest convex minorant of a curve, and the division of blocks over several of them.
//!
//! For: `hull` partitioning: on convex curves, always giving the next block where it saves most
//! is optimal. Must never know: tenants' names or quotas. Source: Wang et al. (OC-Cache) section
//! III-A, after Thiebaut, Stone and Wolf, IEEE Trans. Computers 1992. Whole segments are handed
//! out at once, so the cost is O((knots + segments) log tenants), whatever the number of blocks
//! (`cargo run --release -p cachewright-curve --example hull_speed`).
//! Sizes in blocks, gains in misses saved (times the caller's weight).

use crate::Curve;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A convex, falling, piecewise linear curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Hull {
    sizes: Vec<u32>,
    misses: Vec<f64>,
}

impl Hull {
    /// The greatest convex minorant of `curve`. Where misses would rise with size (some policies
    /// can) the minorant stays flat.
    pub fn of(curve: &Curve) -> Hull {
        Hull::beyond(curve, 0)
    }

    /// The same of the part of `curve` from `from_blocks` on, for a cache that already has so many.
    pub fn beyond(curve: &Curve, from_blocks: u32) -> Hull {
        let mut hull = Hull { sizes: vec![from_blocks], misses: vec![curve.misses(from_blocks)] };
        let knots = curve.sizes().iter().zip(curve.knot_misses());
        for (&size, &misses) in knots.filter(|(size, _)| **size > from_blocks) {
            if hull.misses.last().is_some_and(|&lowest| misses >= lowest) {
                continue;
            }
            while hull.last_is_above(size, misses) {
                hull.sizes.pop();
                hull.misses.pop();
            }
            hull.sizes.push(size);
            hull.misses.push(misses);
        }
        hull
    }

    /// The part of it that falls by more than so many misses per block; flat from there on.
    pub fn falling(mut self, least_per_block: f64) -> Hull {
        let falls = |at: &usize| self.gain(*at) > least_per_block;
        let kept = 1 + (0..self.sizes.len() - 1).take_while(falls).count();
        self.sizes.truncate(kept);
        self.misses.truncate(kept);
        self
    }

    /// Whether the last corner lies on or above the chord from the one before it to this point.
    fn last_is_above(&self, size: u32, misses: f64) -> bool {
        let [.., a, b] = self.sizes[..] else { return false };
        let [.., ya, yb] = self.misses[..] else { return false };
        let (to_b, to_new) = (f64::from(b - a), f64::from(size - a));
        (yb - ya) * to_new >= (misses - ya) * to_b
    }

    /// Sizes of the corners, ascending from where the part begins; the hull is flat beyond the
    /// last.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Misses at `size_blocks`; below the first corner as there.
    pub fn misses(&self, size_blocks: u32) -> f64 {
        let right = self.sizes.partition_point(|&size| size < size_blocks);
        if right == 0 {
            return self.misses[0];
        }
        if right == self.sizes.len() {
            return self.misses[right - 1];
        }
        if self.sizes[right] == size_blocks {
            return self.misses[right];
        }
        let start = f64::from(self.sizes[right - 1]);
        self.misses[right - 1] - self.gain(right - 1) * (f64::from(size_blocks) - start)
    }

    /// Misses saved per block between corners `at` and `at + 1`.
    fn gain(&self, at: usize) -> f64 {
        (self.misses[at] - self.misses[at + 1]) / f64::from(self.sizes[at + 1] - self.sizes[at])
    }
}

/// The next segment of one hull.
struct Offer {
    gain: f64,
    which: usize,
    segment: usize,
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Offer {}
impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Offer {
    /// Most gain first; among equals the earlier hull.
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.which.cmp(&self.which))
    }
}

/// Divides `total_blocks` over `hulls` so that the sum of weighted misses is least, everyone
/// having at least its floor (which together must fit). Returns the blocks each is given;
/// their sum is below the total when no block saves anything more.
pub fn divide(
    hulls: &[Hull],
    weights: &[f64],
    total_blocks: u32,
    floor_blocks: &[u32],
) -> Vec<u32> {
    let mut given = floor_blocks.to_vec();
    given.resize(hulls.len(), 0);
    let floors: u64 = given.iter().copied().map(u64::from).sum();
    let mut left = u64::from(total_blocks).saturating_sub(floors);
    let offer = |which: usize, segment: usize| {
        let hull = &hulls[which];
        let weight = weights.get(which).copied().unwrap_or(1.0);
        let more = segment + 1 < hull.sizes.len() && weight > 0.0;
        more.then(|| Offer { gain: hull.gain(segment) * weight, which, segment })
    };
    let first = |which: usize| {
        let passed = hulls[which].sizes.partition_point(|&size| size <= given[which]);
        offer(which, passed.saturating_sub(1))
    };
    let mut heap: BinaryHeap<Offer> = (0..hulls.len()).filter_map(first).collect();
    while left > 0 {
        let Some(best) = heap.pop() else { break };
        let end = hulls[best.which].sizes[best.segment + 1];
        let blocks = u64::from(end.saturating_sub(given[best.which])).min(left);
        given[best.which] += blocks as u32;
        left -= blocks;
        heap.extend(offer(best.which, best.segment + 1));
    }
    given
}
