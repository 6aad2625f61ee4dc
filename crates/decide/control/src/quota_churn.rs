//! How much a division of the cache moves, and whether it moves to and fro.
//!
//! For: telling a division that follows its tenants from one that oscillates. Must never know:
//! which partitioner divides. Units: blocks; shares of the cache from 0 to 1.
//!
//! Definitions. A division *moves* the blocks by which quotas grow (as many are lost by others).
//! A tenant's quota *turns* when it falls by at least 1 % of the cache (and a block) from the
//! highest it was since its last turn, after having risen by as much, or the other way round; so
//! steps that go on in one direction are one way, however small, and jitter below 1 % is none.
//! Divisions of the first [`WARM_UP`] intervals are left out: nothing is known yet then.

use cachewright_cache::Quotas;

/// Intervals before the first that counts.
pub const WARM_UP: u32 = 10;
/// The smallest change of direction, as a share of the cache.
const TURN: f64 = 0.01;

/// What moved in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChurnTotals {
    /// Divisions that count.
    pub divisions: u32,
    /// Share of the cache moved by one of them: the mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// Turns of each tenant's quota, or of the pool it shares.
    pub turns: Vec<u32>,
}

/// Follows the divisions of a cache.
#[derive(Clone, Debug, Default)]
pub struct QuotaChurn {
    total_blocks: u32,
    /// Quotas of the last division by pool; empty before the first and where all share one.
    last: Vec<u32>,
    /// The pool of each tenant.
    pool_of: Vec<u16>,
    /// Divisions after the first.
    intervals: u32,
    moved_blocks: u64,
    max_blocks: u64,
    ways: Vec<QuotaPath>,
}

/// The way of one quota since its last turn.
#[derive(Clone, Copy, Debug)]
struct QuotaPath {
    low: u32,
    high: u32,
    rising: Option<bool>,
    turns: u32,
}

impl QuotaChurn {
    /// Of a cache of `total_blocks`.
    pub fn new(total_blocks: u32) -> QuotaChurn {
        QuotaChurn { total_blocks, ..QuotaChurn::default() }
    }

    /// Takes the next division; the first is the start.
    pub fn next(&mut self, quotas: &Quotas) {
        let pools = quotas.blocks();
        match quotas {
            Quotas::Shared(_) => return,
            Quotas::PerTenant(each) => self.pool_of = quotas.pools_of(each.len()),
            Quotas::Pools { of, .. } => self.pool_of.clone_from(of),
        }
        let quotas = pools;
        if self.last.len() == quotas.len() {
            self.intervals += 1;
            let pairs = self.last.iter().zip(quotas);
            let moved = pairs.map(|(was, is)| u64::from(is.saturating_sub(*was))).sum();
            if self.intervals > WARM_UP {
                self.moved_blocks += moved;
                self.max_blocks = self.max_blocks.max(moved);
                let min_blocks = (f64::from(self.total_blocks) * TURN).ceil().max(1.0) as u32;
                self.ways
                    .iter_mut()
                    .zip(quotas)
                    .for_each(|(way, quota)| way.advance(*quota, min_blocks));
            }
        }
        if self.intervals <= WARM_UP {
            self.ways = quotas.iter().map(|quota| QuotaPath::from(*quota)).collect();
        }
        self.last = quotas.to_vec();
    }

    /// What moved so far; nothing where all share one pool.
    pub fn totals(&self) -> Option<ChurnTotals> {
        if self.last.is_empty() {
            return None;
        }
        let divisions = self.intervals.saturating_sub(WARM_UP);
        let share = |blocks: u64, times: u32| {
            blocks as f64 / (f64::from(times.max(1)) * f64::from(self.total_blocks.max(1)))
        };
        Some(ChurnTotals {
            divisions,
            mean: share(self.moved_blocks, divisions),
            max: share(self.max_blocks, 1),
            turns: self.pool_of.iter().map(|pool| self.ways[usize::from(*pool)].turns).collect(),
        })
    }
}

impl QuotaPath {
    fn from(quota: u32) -> QuotaPath {
        QuotaPath { low: quota, high: quota, rising: None, turns: 0 }
    }

    /// The quota becomes `quota`; a change of less than `min_blocks` is no turn.
    fn advance(&mut self, quota: u32, min_blocks: u32) {
        let was = self.rising;
        if was != Some(true) {
            self.low = self.low.min(quota);
            if quota - self.low >= min_blocks {
                (self.rising, self.high) = (Some(true), quota);
            }
        }
        if was != Some(false) {
            self.high = self.high.max(quota);
            if self.high - quota >= min_blocks {
                (self.rising, self.low) = (Some(false), quota);
            }
        }
        self.turns += u32::from(was.is_some() && was != self.rising);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(divisions: &[[u32; 2]]) -> Option<ChurnTotals> {
        let mut churn = QuotaChurn::new(200);
        for _ in 0..=WARM_UP {
            churn.next(&Quotas::PerTenant(vec![divisions[0][0], divisions[0][1]]));
        }
        divisions[1..].iter().for_each(|each| churn.next(&Quotas::PerTenant(each.to_vec())));
        churn.totals()
    }

    /// 200 blocks: a turn is 2 blocks or more.
    #[test]
    fn blocks_moved_and_turns_worked_by_hand() {
        let found = moved(&[[100, 100], [110, 90], [120, 80], [80, 120], [81, 119], [80, 120]]);
        // ChurnTotals 10, 10, 40, 1 and 1 of 200; up by 20, then down by 40; one block is no turn.
        let expected =
            ChurnTotals { divisions: 5, mean: 62.0 / 1000.0, max: 0.2, turns: vec![1, 1] };
        assert_eq!(found, Some(expected));
        // Back and forth at every division: the first goes out, the three others come back.
        let found = moved(&[[100, 100], [102, 98], [100, 100], [102, 98], [100, 100]]);
        assert_eq!(found.map(|found| found.turns), Some(vec![3, 3]));
        // One way, in steps that are each too small to tell, and back.
        let there = (0..=4).map(|step| [100 - step, 100 + step]);
        let back = (0..4).rev().map(|step| [100 - step, 100 + step]);
        let found = moved(&there.chain(back).collect::<Vec<_>>());
        assert_eq!(found.map(|found| (found.turns, found.max)), Some((vec![1, 1], 0.005)));
    }

    #[test]
    fn the_warm_up_does_not_count_and_a_shared_pool_has_nothing_to_move() {
        let mut churn = QuotaChurn::new(200);
        for at in 0..=WARM_UP {
            let odd = 100 * (at % 2);
            churn.next(&Quotas::PerTenant(vec![odd, 200 - odd]));
        }
        let still = ChurnTotals { turns: vec![0, 0], ..ChurnTotals::default() };
        assert_eq!(churn.totals(), Some(still));
        let mut shared = QuotaChurn::new(200);
        shared.next(&Quotas::Shared(200));
        shared.next(&Quotas::Shared(200));
        assert_eq!(shared.totals(), None);
        let mut pools = QuotaChurn::new(200);
        for at in 0..=WARM_UP + 2 {
            let odd = if at > WARM_UP { 10 * (at % 2) } else { 0 };
            pools.next(&Quotas::Pools { of: vec![1, 0, 1], blocks: vec![100 + odd, 100 - odd] });
        }
        let moved = ChurnTotals { divisions: 2, mean: 0.05, max: 0.05, turns: vec![1, 1, 1] };
        assert_eq!(pools.totals(), Some(moved), "both pools go there and back");
    }
}
