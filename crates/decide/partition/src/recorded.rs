//! Divisions that were recorded, made again.
//!
//! For: replays of what a live server divided by what only it could measure. Must never know: which
//! partitioner made them, files. Units: blocks; intervals are counted from 0, before anything was
//! measured. It stands in no list: a stack cannot name it.

use crate::{CacheDivision, Partitioner, TenantView};

/// Quotas by interval, those of one hold until the next.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The interval from which on quotas hold, and the blocks of each tenant.
    divisions: Vec<(u64, Vec<u32>)>,
    /// The division that holds.
    place: usize,
    /// The interval that begins with the next division.
    interval: u64,
}

impl Recorded {
    /// Divisions in the order of intervals, the first one at 0.
    pub fn new(divisions: Vec<(u64, Vec<u32>)>) -> Recorded {
        Recorded { divisions, place: 0, interval: 0 }
    }
}

impl Partitioner for Recorded {
    fn divide(&mut self, tenants: &[TenantView], _: u32) -> CacheDivision {
        let interval = self.interval;
        let due = |next: &&(u64, Vec<u32>)| next.0 <= interval;
        while self.divisions.get(self.place + 1).as_ref().is_some_and(due) {
            self.place += 1;
        }
        self.interval += 1;
        let quotas = self.divisions.get(self.place).map(|division| division.1.clone());
        CacheDivision::PerTenant(quotas.unwrap_or_else(|| vec![0; tenants.len()]))
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_hold_until_the_next_division() {
        let mut recorded = Recorded::new(vec![(0, vec![5, 5]), (2, vec![9, 1]), (3, vec![0, 4])]);
        let views = [TenantView::default(); 2];
        let mut divide = || match recorded.divide(&views, 10) {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("{other:?}"),
        };
        let found: Vec<Vec<u32>> = (0..5).map(|_| divide()).collect();
        assert_eq!(found, [[5, 5], [5, 5], [9, 1], [0, 4], [0, 4]]);
    }
}
