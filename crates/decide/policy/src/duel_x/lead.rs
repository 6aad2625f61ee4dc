//! Which candidate leads: sums of what each one's directory was worth.
//!
//! For: `duel-x`. Must never know: policies, blocks. Units: thousandths of a hit.
//!
//! A hit is worth 1, a block written to flash costs its price. All sums are halved at regular
//! intervals, so that what was long ago counts less. The leader changes when another candidate is
//! ahead by a margin, because a change costs the hits of all blocks that the new leader's directory
//! holds and the cache does not.

use crate::Verdict;

/// A hit, in the unit of the sums.
const HIT: f64 = 1_000.0;
/// The least margin, in hits: in a small cache a few hits say nothing.
const MIN_MARGIN: f64 = 16.0;

/// The sums and the leader of `N` candidates.
#[derive(Clone, Debug)]
pub struct Lead<const N: usize> {
    sums: [i64; N],
    leader: usize,
    price: i64,
    margin: i64,
}

impl<const N: usize> Lead<N> {
    /// The first candidate leads. `write_price` is in hits.
    pub fn new(write_price: f64) -> Lead<N> {
        Lead { sums: [0; N], leader: 0, price: (write_price * HIT) as i64, margin: 0 }
    }

    /// Sets by how many hits another candidate must be ahead.
    pub fn set_margin(&mut self, hits: f64) {
        self.margin = (hits.max(MIN_MARGIN) * HIT) as i64;
    }

    /// The candidate that leads.
    #[inline(always)]
    pub fn leader(&self) -> usize {
        self.leader
    }

    /// Adds what a candidate decided about an access.
    #[inline(always)]
    pub fn add(&mut self, candidate: usize, verdict: Verdict, write: bool) {
        let worth = match verdict {
            Verdict::Hit if write => HIT as i64 - self.price,
            Verdict::Hit => HIT as i64,
            Verdict::Admit { .. } => -self.price,
            Verdict::Bypass => 0,
        };
        self.sums[candidate] += worth;
    }

    /// Lets the best candidate lead if it is ahead by more than the margin; returns whether the
    /// leader has changed.
    #[inline(always)]
    pub fn follow(&mut self) -> bool {
        let (mut best, bar) = (self.leader, self.sums[self.leader] + self.margin);
        for (candidate, sum) in self.sums.iter().enumerate() {
            if *sum > bar && *sum > self.sums[best] {
                best = candidate;
            }
        }
        std::mem::replace(&mut self.leader, best) != best
    }

    /// Halves all sums.
    pub fn halve(&mut self) {
        self.sums.iter_mut().for_each(|sum| *sum /= 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIT: Verdict = Verdict::Admit { evicted: None };

    #[test]
    fn another_leads_when_it_is_ahead_by_more_than_the_margin() {
        let mut lead: Lead<2> = Lead::new(0.5);
        lead.set_margin(20.0);
        for _ in 0..20 {
            lead.add(0, Verdict::Bypass, false);
            lead.add(1, Verdict::Hit, false);
            assert!(!lead.follow());
        }
        lead.add(1, ADMIT, false);
        lead.add(1, Verdict::Hit, true);
        assert!(!lead.follow(), "a block admitted and a write hit are two writes: 20 hits in all");
        lead.add(1, Verdict::Hit, false);
        assert!(lead.follow());
        assert_eq!((lead.leader(), lead.sums), (1, [0, 21_000]));
    }

    #[test]
    fn the_margin_has_a_least_and_old_hits_count_less() {
        let mut lead: Lead<3> = Lead::new(0.0);
        lead.set_margin(0.01);
        (0..16).for_each(|_| lead.add(2, Verdict::Hit, false));
        assert!(!lead.follow());
        lead.halve();
        (0..8).for_each(|_| lead.add(2, Verdict::Hit, false));
        assert!(!lead.follow());
        lead.add(2, Verdict::Hit, false);
        assert!(lead.follow());
        // The leader keeps its place while others are level.
        (0..33).for_each(|_| lead.add(1, Verdict::Hit, false));
        assert!(!lead.follow());
        lead.add(1, Verdict::Hit, false);
        assert!(lead.follow());
    }
}
