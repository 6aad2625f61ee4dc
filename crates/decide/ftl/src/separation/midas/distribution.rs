//! MiDAS: the distribution of update intervals.
//!
//! For: the chain's model, which asks for shares of writes and of valid pages between intervals.
//! Must never know: groups, the drive. Units: intervals in units of `step` superblocks of host
//! writes, and in superblocks where a name says so.

use std::ops::Range;

/// Counts of intervals, with their sums prepared: any prediction costs a few look-ups.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Superblocks per unit of an interval.
    step: f64,
    /// Entry `k`: counts of units below `k`.
    below: Vec<f64>,
    /// Entry `k`: sum of `below[1..=k]`.
    area: Vec<f64>,
    /// Entry `k`: sum of count x interval over units below `k`, in superblocks.
    span: Vec<f64>,
}

impl Distribution {
    /// From counts per unit of `step` superblocks.
    pub fn new(counts: &[u64], step: f64) -> Distribution {
        let mut made = Distribution { step, below: vec![0.0], area: vec![0.0], span: vec![0.0] };
        let (mut below, mut area, mut span) = (0.0, 0.0, 0.0);
        for (unit, count) in counts.iter().enumerate() {
            below += *count as f64;
            area += below;
            span += *count as f64 * unit as f64 * step;
            made.below.push(below);
            made.area.push(area);
            made.span.push(span);
        }
        made
    }

    /// Superblocks per unit of an interval.
    pub(super) fn step(&self) -> f64 {
        self.step
    }

    pub(super) fn units(&self) -> usize {
        self.below.len() - 1
    }

    pub(super) fn total(&self) -> f64 {
        self.below[self.units()]
    }

    /// Counts of units below `unit`.
    pub(super) fn below(&self, unit: usize) -> f64 {
        self.below[unit]
    }

    /// Sum of count x interval over units, in superblocks.
    pub(super) fn span(&self, units: Range<usize>) -> f64 {
        self.span[units.end] - self.span[units.start]
    }

    /// The first unit whose interval is at least `superblocks`.
    pub(super) fn unit_at(&self, superblocks: f64) -> usize {
        ((superblocks / self.step).ceil().max(0.0) as usize).min(self.units())
    }

    /// Mean share of pages still valid over units `from..to`, of those valid at `from`, times the
    /// number of units.
    pub(super) fn valid_units(&self, from: usize, to: usize) -> f64 {
        let units = (to - from) as f64;
        let dead = self.area[to] - self.area[from] - units * self.below[from];
        units - dead / (self.total() - self.below[from])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 4 counts at 0, 2 at 1, 1 at 2, 1 at 3 superblocks of interval.
    #[test]
    fn a_distribution_is_read_by_hand() {
        let all = Distribution::new(&[4, 2, 1, 1], 1.0);
        assert_eq!((all.total(), all.below(1), all.span(0..4)), (8.0, 4.0, 7.0));
        assert_eq!([0.0, 0.5, 1.0, 9.0].map(|share| all.unit_at(share)), [0, 1, 1, 4]);
        // Of those valid at 1 (4 of 8), half are left after one unit and a quarter after two.
        assert_eq!(all.valid_units(1, 3), 0.75);
    }
}
