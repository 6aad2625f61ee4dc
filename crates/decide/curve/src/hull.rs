//! The greatest convex minorant of a curve, and the division of blocks over several minorants.
//!
//! On convex curves it is optimal to give each block where it saves most misses. Source: Wang et
//! al. (OC-Cache) section III-A, after Thiebaut, Stone and Wolf, IEEE Trans. Computers 1992. Whole
//! segments are assigned at once, so that the cost is O((knots + segments) log tenants), whatever
//! the number of blocks (`cargo run --release -p cachewright-curve --example hull_speed`). Sizes in
//! blocks, gains in misses saved (times the caller's weight).

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
    pub fn minorant(curve: &Curve) -> Hull {
        Hull::beyond(curve, 0)
    }

    /// The minorant of `curve` from `from_blocks` on, for a cache that already has these blocks.
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

    /// The part that falls by more than `min_per_block` misses per block; constant beyond.
    pub fn falling(mut self, min_per_block: f64) -> Hull {
        let falls = |corner: &usize| self.gain(*corner) > min_per_block;
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

    /// Misses at `size_blocks`; below the first corner those of the corner.
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

    /// Misses saved per block between corners `corner` and `at + 1`.
    fn gain(&self, corner: usize) -> f64 {
        (self.misses[corner] - self.misses[corner + 1])
            / f64::from(self.sizes[corner + 1] - self.sizes[corner])
    }
}

/// The next segment of one hull.
struct SegmentOffer {
    gain: f64,
    which: usize,
    segment: usize,
}

impl PartialEq for SegmentOffer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for SegmentOffer {}
impl PartialOrd for SegmentOffer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SegmentOffer {
    /// The largest gain first; among equals the earlier hull.
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.which.cmp(&self.which))
    }
}

/// Divides `total_blocks` over `hulls` with the smallest sum of weighted misses. Each hull gets at
/// least its floor; the floors together must fit. The sum is below the total if no further block
/// saves misses.
pub fn divide(
    hulls: &[Hull],
    weights: &[f64],
    total_blocks: u32,
    floor_blocks: &[u32],
) -> Vec<u32> {
    let mut granted = floor_blocks.to_vec();
    granted.resize(hulls.len(), 0);
    let floors: u64 = granted.iter().copied().map(u64::from).sum();
    let mut remaining = u64::from(total_blocks).saturating_sub(floors);
    let offer = |which: usize, segment: usize| {
        let hull = &hulls[which];
        let weight = weights.get(which).copied().unwrap_or(1.0);
        let more = segment + 1 < hull.sizes.len() && weight > 0.0;
        more.then(|| SegmentOffer { gain: hull.gain(segment) * weight, which, segment })
    };
    let first = |which: usize| {
        let passed = hulls[which].sizes.partition_point(|&size| size <= granted[which]);
        offer(which, passed.saturating_sub(1))
    };
    let mut heap: BinaryHeap<SegmentOffer> = (0..hulls.len()).filter_map(first).collect();
    while remaining > 0 {
        let Some(best) = heap.pop() else { break };
        let end = hulls[best.which].sizes[best.segment + 1];
        let blocks = u64::from(end.saturating_sub(granted[best.which])).min(remaining);
        granted[best.which] += blocks as u32;
        remaining -= blocks;
        heap.extend(offer(best.which, best.segment + 1));
    }
    granted
}
