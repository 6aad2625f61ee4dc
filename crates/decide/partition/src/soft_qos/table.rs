//! A tenant's performance table: hit ratios measured at cache sizes, and the curve through them.
//!
//! For: recording, replacing, reading the curve and inverting it. Must never know: tenants, goals,
//! other tables. Units: blocks; hit ratios from 0 to 1. Source: Patrick et al., section III-B;
//! 1,024 entries as in section V-A.

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measurement {
    blocks: u32,
    hit_ratio: f64,
    /// Number of the recording that wrote it.
    written: u64,
}

/// Measurements in ascending order of size, one per size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerformanceTable {
    entries: Vec<Measurement>,
    recordings: u64,
}

impl PerformanceTable {
    /// Largest number of entries; a new entry replaces the one with the oldest recording.
    pub const LIMIT: usize = 1024;

    /// Records the hit ratio at a size; it replaces an earlier one at the same size.
    pub fn record(&mut self, blocks: u32, hit_ratio: f64) {
        let entry = Measurement { blocks, hit_ratio, written: self.recordings };
        self.recordings += 1;
        match self.entries.binary_search_by_key(&blocks, |entry| entry.blocks) {
            Ok(index) => self.entries[index] = entry,
            Err(_) => {
                if self.entries.len() == PerformanceTable::LIMIT {
                    let stalest =
                        (0..self.entries.len()).min_by_key(|&index| self.entries[index].written);
                    stalest.map(|index| self.entries.remove(index));
                }
                let index = self.entries.partition_point(|known| known.blocks < blocks);
                self.entries.insert(index, entry);
            }
        }
    }

    /// Whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The best known hit ratio; 0 without an entry.
    pub fn best(&self) -> f64 {
        self.entries.iter().map(|entry| entry.hit_ratio).fold(0.0, f64::max)
    }

    /// The curve at a size: linear between measurements, constant beyond the first and the last.
    pub fn hit_ratio_at(&self, blocks: u32) -> f64 {
        let above = self.entries.partition_point(|entry| entry.blocks < blocks);
        match (
            above.checked_sub(1).and_then(|index| self.entries.get(index)),
            self.entries.get(above),
        ) {
            (Some(low), Some(high)) => {
                let share = f64::from(blocks - low.blocks) / f64::from(high.blocks - low.blocks);
                low.hit_ratio + share * (high.hit_ratio - low.hit_ratio)
            }
            (Some(only), None) | (None, Some(only)) => only.hit_ratio,
            (None, None) => 0.0,
        }
    }

    /// The smallest size, at least 1, at which the curve reaches `goal`; nothing if it never does.
    pub fn demand(&self, goal: f64) -> Option<u32> {
        let first = self.entries.first()?;
        if first.hit_ratio >= goal {
            return Some(1);
        }
        self.entries.windows(2).find(|pair| pair[1].hit_ratio >= goal).map(|pair| {
            let (low, high) = (pair[0], pair[1]);
            let share = (goal - low.hit_ratio) / (high.hit_ratio - low.hit_ratio);
            let span = f64::from(high.blocks - low.blocks);
            // Rounding up the product may overshoot by one where the exact answer is whole.
            let mut blocks = low.blocks + (share * span).ceil() as u32;
            if blocks > low.blocks + 1 && self.hit_ratio_at(blocks - 1) >= goal {
                blocks -= 1;
            }
            blocks.clamp(1, high.blocks)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(points: &[(u32, f64)]) -> PerformanceTable {
        let mut table = PerformanceTable::default();
        points.iter().for_each(|&(blocks, hit_ratio)| table.record(blocks, hit_ratio));
        table
    }

    #[test]
    fn the_curve_is_linear_between_measurements_and_level_beyond() {
        let table = table(&[(100, 1.0), (1, 0.0), (51, 0.5)]);
        for (blocks, expected) in [(0, 0.0), (1, 0.0), (26, 0.25), (51, 0.5), (200, 1.0)] {
            assert!((table.hit_ratio_at(blocks) - expected).abs() < 1e-12, "{blocks}");
        }
        assert_eq!(table.demand(0.0), Some(1));
        assert_eq!(table.demand(0.25), Some(26));
        assert_eq!(table.demand(1.0), Some(100));
        assert_eq!(table.demand(1.1), None);
        assert_eq!(PerformanceTable::default().demand(0.1), None);
    }

    #[test]
    fn the_smallest_size_counts_when_the_curve_falls_again() {
        let table = table(&[(10, 0.2), (20, 0.8), (30, 0.4), (40, 0.9)]);
        assert_eq!(table.demand(0.5), Some(15));
        assert_eq!(table.demand(0.9), Some(40));
    }

    #[test]
    fn a_new_measurement_replaces_the_old_and_the_stalest_leaves() {
        let mut full = PerformanceTable::default();
        (0..PerformanceTable::LIMIT as u32).for_each(|blocks| full.record(blocks, 0.1));
        full.record(0, 0.9);
        assert_eq!((full.entries.len(), full.best()), (PerformanceTable::LIMIT, 0.9));
        full.record(5000, 0.3);
        assert_eq!(full.entries.len(), PerformanceTable::LIMIT);
        let sizes: Vec<u32> = full.entries.iter().map(|entry| entry.blocks).collect();
        assert_eq!((sizes[0], sizes[1], sizes[PerformanceTable::LIMIT - 1]), (0, 2, 5000));
    }

    #[test]
    fn a_demand_is_the_first_size_that_reaches_the_goal() {
        let table = table(&[(1, 0.05), (37, 0.31), (90, 0.33), (400, 0.97)]);
        for goal in (6..97).map(|percent| f64::from(percent) / 100.0) {
            let demand = table.demand(goal).unwrap_or(0);
            let slow = (1..=400).find(|&blocks| table.hit_ratio_at(blocks) >= goal);
            assert_eq!(Some(demand), slow, "{goal}");
        }
    }
}
