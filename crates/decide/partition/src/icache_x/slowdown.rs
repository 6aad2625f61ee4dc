//! Predicted slowdown of a tenant by its blocks.
//!
//! For: curves of reads and writes averaged over intervals, and their effect on response times.
//! Must never know: other tenants, how costs were measured. Units: blocks. A slowdown is the mean
//! response with some blocks over that with the whole cache, at least 1. Invariant: it never rises
//! with blocks.

use super::costs::RequestCost;
use super::queueing::WaitGrowth;
use cachewright_curve::{Curve, Curves, Provenance};

/// Parts of the grid; curves are linear between its sizes.
const PARTS: u64 = 512;

/// Units of a [`Curve`] per unit of slowdown.
const FINE: f64 = 1e9;
/// The largest power of a slowdown: with [`FINE`] it fits 64 bits.
const MAX_POWERED: f64 = 1e9;

/// Sizes of the grid, ascending from 0 to the whole cache.
pub fn grid(total_blocks: u32) -> Vec<u32> {
    let total = u64::from(total_blocks);
    let parts = total.min(PARTS);
    (0..=parts).map(|part| (part * total).checked_div(parts).unwrap_or(0) as u32).collect()
}

/// Accesses of one kind and their misses at the sizes of a grid; earlier intervals fade.
#[derive(Clone, Debug, Default, PartialEq)]
struct MissCounts {
    accesses: f64,
    misses: Vec<f64>,
}

/// Averaged curves of a tenant's reads and writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessPattern([MissCounts; 2]);

impl MissCounts {
    fn learn(&mut self, curve: &Curve, grid: &[u32], share_of_past: f64) {
        self.accesses = self.accesses * share_of_past + curve.accesses() as f64;
        self.misses.resize(grid.len(), 0.0);
        let (sizes, misses) = (curve.sizes(), curve.knot_misses());
        let mut right = 0;
        for (sum, &size) in self.misses.iter_mut().zip(grid) {
            while right < sizes.len() && sizes[right] < size {
                right += 1;
            }
            // Sizes begin at 0, so that whatever has none to its right has one to its left.
            let here = match (right.checked_sub(1), sizes.get(right)) {
                (Some(lower), Some(&next)) => {
                    let share = f64::from(size - sizes[lower]) / f64::from(next - sizes[lower]);
                    misses[lower] + share * (misses[right] - misses[lower])
                }
                (Some(lower), None) => misses[lower],
                (None, _) => misses[0],
            };
            *sum = *sum * share_of_past + here;
        }
    }

    /// Misses per access at an index of the grid.
    fn ratio(&self, index: usize) -> f64 {
        if self.accesses > 0.0 { self.misses[index] / self.accesses } else { 0.0 }
    }
}

impl AccessPattern {
    /// Adds the curves of an interval; earlier ones count for `share_of_past`.
    pub fn learn(&mut self, curves: &Curves, grid: &[u32], share_of_past: f64) {
        let [reads, writes] = &mut self.0;
        reads.learn(&curves.reads, grid, share_of_past);
        writes.learn(&curves.writes, grid, share_of_past);
    }

    /// The sum of the tenant's response times by blocks, in ns; it never rises. The weights of
    /// reads and writes are the measured requests, otherwise the accesses of the curves. Misses
    /// wait as their queue would let them. Nothing for a tenant without requests.
    pub fn responses(
        &self,
        costs: &[RequestCost; 2],
        queue: WaitGrowth,
        grid: &[u32],
    ) -> Option<Vec<f64>> {
        let [reads, writes] = &self.0;
        let priced = costs[0].requests + costs[1].requests > 0.0;
        let count = |cost: &RequestCost, known: &MissCounts| {
            if priced { cost.requests } else { known.accesses }
        };
        let (read, write) = (count(&costs[0], reads), count(&costs[1], writes));
        let expected = costs[0].expected + costs[1].expected;
        let response = |index: usize| {
            let misses = read * reads.ratio(index) + write * writes.ratio(index);
            let wait = if expected > 0.0 { queue.wait(misses / expected) } else { 1.0 };
            let response_ns = |cost: &RequestCost, known: &MissCounts| {
                let added_ns = cost.added_miss_ns * known.ratio(index);
                cost.hit_ns + wait * added_ns.min(cost.max_added_ns)
            };
            read * response_ns(&costs[0], reads) + write * response_ns(&costs[1], writes)
        };
        if reads.misses.len() != grid.len() || read + write <= 0.0 {
            return None;
        }
        let mut values: Vec<f64> = (0..grid.len()).map(response).collect();
        for index in 1..values.len() {
            values[index] = values[index].min(values[index - 1]);
        }
        Some(values)
    }

    /// The tenant's mean response by blocks, over that with the whole cache.
    pub fn slowdown(&self, costs: &[RequestCost; 2], queue: WaitGrowth, grid: &[u32]) -> Slowdown {
        let Some(mut values) = self.responses(costs, queue, grid) else {
            return Slowdown { values: vec![1.0; grid.len()] };
        };
        let best = values[values.len() - 1];
        values.iter_mut().for_each(|value| *value = if best > 0.0 { *value / best } else { 1.0 });
        Slowdown { values }
    }
}

/// A value between those at the sizes of a grid; beyond the last that of the last.
pub fn interpolated(values: &[f64], blocks: u32, grid: &[u32]) -> f64 {
    let right = grid.partition_point(|&size| size < blocks).min(grid.len() - 1);
    if right == 0 || grid[right] <= blocks {
        return values[right];
    }
    let share = f64::from(blocks - grid[right - 1]) / f64::from(grid[right] - grid[right - 1]);
    values[right - 1] + share * (values[right] - values[right - 1])
}

/// Slowdown at the sizes of a grid; it never rises and ends at 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowdown {
    values: Vec<f64>,
}

impl Slowdown {
    /// The slowdown with `blocks`, at most the whole cache.
    pub fn value_at(&self, blocks: u32, grid: &[u32]) -> f64 {
        interpolated(&self.values, blocks, grid)
    }

    /// The fewest blocks, at least `floor_blocks`, with a slowdown of at most `level`, which is 1
    /// or more.
    pub fn need(&self, level: f64, floor_blocks: u32, grid: &[u32]) -> u32 {
        let right = self.values.partition_point(|&value| value > level).min(grid.len() - 1);
        if right == 0 {
            return floor_blocks;
        }
        let (low, high) = (grid[right - 1], grid[right]);
        let fall = self.values[right - 1] - self.values[right];
        let share = if fall > 0.0 { (self.values[right - 1] - level) / fall } else { 1.0 };
        let blocks = low + (share * f64::from(high - low)).ceil() as u32;
        // Rounding up the product may overshoot by one where the exact answer is whole.
        let over = blocks > low + 1 && self.value_at(blocks - 1, grid) <= level;
        (blocks - u32::from(over)).clamp(low + 1, high).max(floor_blocks)
    }

    /// The slowdown to this power, which is 1 or more; at most 1e9, so that a curve can hold it.
    pub fn powered(&self, power: f64) -> Slowdown {
        let values = self.values.iter().map(|value| value.powf(power).min(MAX_POWERED));
        Slowdown { values: if power > 1.0 { values.collect() } else { self.values.clone() } }
    }

    /// The slowdown beyond 1 as a curve.
    pub fn curve(&self, grid: &[u32]) -> Curve {
        let fine = |value: &f64| (value - 1.0) * FINE;
        let max_value = self.values.first().map_or(0.0, fine).ceil() as u64;
        let knots = grid.iter().copied().zip(self.values.iter().map(fine));
        Curve::from_knots(knots, max_value, Provenance::Exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icache_x::queueing::IdleWait;
    use proptest::prelude::*;

    const NONE: WaitGrowth = WaitGrowth::NONE;

    fn curves(reads: &[(u32, f64)], writes: &[(u32, f64)]) -> Curves {
        let curve =
            |knots: &[(u32, f64)]| Curve::from_knots(knots.iter().copied(), 100, Provenance::Exact);
        Curves { all: curve(&[]), reads: curve(reads), writes: curve(writes) }
    }

    fn cost(requests: f64, added_miss_ns: f64) -> RequestCost {
        let max_added_ns = added_miss_ns;
        RequestCost { requests, hit_ns: 20.0, added_miss_ns, max_added_ns, expected: 0.0 }
    }

    #[test]
    fn a_grid_has_every_size_or_512_parts() {
        assert_eq!(grid(3), [0, 1, 2, 3]);
        assert_eq!(grid(0), [0]);
        let large = grid(u32::MAX);
        assert_eq!((large.len(), large[1], large[512]), (513, (1 << 23) - 1, u32::MAX));
    }

    #[test]
    fn reads_and_writes_count_by_their_requests_and_costs() {
        // Reads miss 100, 50, 0 of 100 with 0, 10, 20 blocks, writes 100, 60, 20.
        let sizes = grid(20);
        let mut pattern = AccessPattern::default();
        let both = curves(&[(20, 0.0)], &[(20, 20.0)]);
        pattern.learn(&both, &sizes, 0.5);
        let slowdown = pattern.slowdown(&[cost(300.0, 100.0), cost(100.0, 50.0)], NONE, &sizes);
        let response = |reads: f64, writes: f64| 300.0 * (20.0 + reads) + 100.0 * (20.0 + writes);
        let alone = response(0.0, 10.0);
        for (blocks, expected) in [(0, response(100.0, 50.0)), (10, response(50.0, 30.0))] {
            assert!(
                (slowdown.value_at(blocks, &sizes) - expected / alone).abs() < 1e-12,
                "{blocks}"
            );
        }
        assert_eq!((slowdown.value_at(20, &sizes), slowdown.value_at(99, &sizes)), (1.0, 1.0));
        // Nothing priced: as many of each as the curves counted, here the same.
        let slowdown = pattern.slowdown(&[cost(0.0, 100.0), cost(0.0, 50.0)], NONE, &sizes);
        assert!((slowdown.value_at(0, &sizes) - (120.0 + 70.0) / (20.0 + 30.0)).abs() < 1e-12);
        let silent = AccessPattern::default().slowdown(&[cost(0.0, 1.0); 2], NONE, &sizes);
        assert_eq!(silent.value_at(0, &sizes), 1.0);
    }

    #[test]
    fn misses_wait_as_their_queue_lets_them() {
        // Reads miss 100, 50, 0 of 100; with 10 of 20 blocks they waited five times as long as at
        // an idle device: a utilisation of 0.8.
        let sizes = grid(20);
        let mut pattern = AccessPattern::default();
        pattern.learn(&curves(&[(20, 0.0)], &[]), &sizes, 0.5);
        let read = RequestCost { expected: 50.0, ..cost(100.0, 80.0) };
        let mut idle = IdleWait::default();
        idle.learn(100, 1_600);
        let queue = WaitGrowth::new(100.0, 8_000.0, idle, 8.0);
        let costs = [read, cost(0.0, 0.0)];
        let of = |queue: WaitGrowth| pattern.responses(&costs, queue, &sizes).unwrap();
        let (queued, constant) = (of(queue), of(NONE));
        assert_eq!((constant[0], constant[10], constant[20]), (10_000.0, 6_000.0, 2_000.0));
        // Twice the misses of today wait 1 + 4 times as long; half of them 0.2 / 0.6 times.
        let expected = [2_000.0 + 8_000.0 * 5.0, 6_000.0, 2_000.0];
        for (blocks, expected) in [0, 10, 20].into_iter().zip(expected) {
            assert!((queued[blocks] - expected).abs() < 1e-6, "{blocks}: {queued:?}");
        }
        assert!((queued[15] - (2_000.0 + 2_000.0 / 3.0)).abs() < 1e-6, "{queued:?}");
    }

    #[test]
    fn earlier_curves_fade_by_their_accesses() {
        let sizes = grid(10);
        let mut pattern = AccessPattern::default();
        pattern.learn(&curves(&[(10, 0.0)], &[]), &sizes, 0.5);
        pattern.learn(&curves(&[(10, 100.0)], &[]), &sizes, 0.5);
        // Misses with all 10 blocks: 0 of 50 and 100 of 100.
        assert!((pattern.0[0].ratio(10) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(pattern.0[0].ratio(0), 1.0);
    }

    #[test]
    fn the_slowdown_is_a_curve_of_what_is_beyond_1() {
        let sizes = grid(4);
        let slowdown = Slowdown { values: vec![3.0, 2.0, 2.0, 1.5, 1.0] };
        let curve = slowdown.curve(&sizes);
        assert_eq!((curve.misses(0), curve.misses(3), curve.misses(4)), (2e9, 0.5e9, 0.0));
    }

    proptest! {
        #[test]
        fn a_need_is_the_fewest_blocks(
            mut values in prop::collection::vec(1.0_f64..9.0, 2..40),
            total in prop_oneof![1_u32..40, 1_000_u32..3_000],
            floor in 0_u32..10,
            level in 1.0_f64..9.0,
        ) {
            let sizes = grid(total);
            values.sort_by(|a, b| b.total_cmp(a));
            values.push(1.0);
            let last = values.len() - 1;
            let value = |index: usize| values[index * last / (sizes.len() - 1)];
            let values = (0..sizes.len()).map(value).collect();
            let slowdown = Slowdown { values };
            let floor = floor.min(total);
            for level in [level, 1.0, slowdown.value_at(total / 2, &sizes)] {
                let slow = (floor..=total).find(|&q| slowdown.value_at(q, &sizes) <= level);
                prop_assert_eq!(Some(slowdown.need(level, floor, &sizes)), slow, "{}", level);
            }
        }

        #[test]
        fn curves_are_read_as_they_are(
            knots in prop::collection::btree_map(1_u32..3_000, 0.0_f64..100.0, 0..20),
            total in 0_u32..2_000,
        ) {
            let knots: Vec<(u32, f64)> = knots.into_iter().collect();
            let (both, sizes) = (curves(&knots, &[]), grid(total));
            let mut pattern = AccessPattern::default();
            pattern.learn(&both, &sizes, 0.0);
            for (index, &size) in sizes.iter().enumerate() {
                prop_assert!((pattern.0[0].misses[index] - both.reads.misses(size)).abs() < 1e-9);
            }
        }
    }
}
