//! What a drive has done so far.
//!
//! How evenly blocks are worn. Units are erases.

use std::ops::Sub;

/// Counters; the difference of two is what happened between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounts {
    /// Pages written by the host.
    pub user_pages: u64,
    /// Valid pages moved out of victims.
    pub moved_pages: u64,
    /// Pages of metadata that a separation keeps in flash.
    pub meta_pages: u64,
    /// Pages of metadata read back from flash for host writes.
    pub meta_reads: u64,
    /// Superblocks cleaned (and erased).
    pub collections: u64,
    /// Invalid pages in them.
    pub reclaimed_pages: u64,
    /// Pages trimmed by the host that were mapped.
    pub trimmed_pages: u64,
    /// Moved pages that joined another stream than their own because no superblock was free.
    pub misplaced_pages: u64,
    /// Valid pages of victims that were forgotten instead of moved.
    pub dropped_pages: u64,
}

impl FtlCounts {
    /// Pages programmed to flash.
    pub fn flash_pages(&self) -> u64 {
        self.user_pages + self.moved_pages + self.meta_pages
    }

    /// Flash page writes per host page write (F/U); 1 when the host wrote nothing. Shiro's measure,
    /// (F-U)/U, is this minus 1.
    pub fn write_amplification(&self) -> f64 {
        if self.user_pages == 0 { 1.0 } else { self.flash_pages() as f64 / self.user_pages as f64 }
    }
}

impl Sub for FtlCounts {
    type Output = FtlCounts;

    fn sub(self, before: FtlCounts) -> FtlCounts {
        FtlCounts {
            user_pages: self.user_pages - before.user_pages,
            moved_pages: self.moved_pages - before.moved_pages,
            meta_pages: self.meta_pages - before.meta_pages,
            meta_reads: self.meta_reads - before.meta_reads,
            collections: self.collections - before.collections,
            reclaimed_pages: self.reclaimed_pages - before.reclaimed_pages,
            trimmed_pages: self.trimmed_pages - before.trimmed_pages,
            misplaced_pages: self.misplaced_pages - before.misplaced_pages,
            dropped_pages: self.dropped_pages - before.dropped_pages,
        }
    }
}
/// Erases of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EraseCounts {
    /// Fewest of any block.
    pub min: u32,
    /// On average.
    pub mean: f64,
    /// Most of any block.
    pub max: u32,
    /// Standard deviation between blocks.
    pub deviation: f64,
}

impl EraseCounts {
    /// The wear of blocks that were erased so often; none at all is no wear.
    pub fn from_erases(erases: impl IntoIterator<Item = u32>) -> EraseCounts {
        let (mut min, mut max) = (u32::MAX, 0);
        let (mut blocks, mut sum, mut squares) = (0_u64, 0_u64, 0_u128);
        for count in erases {
            min = min.min(count);
            max = max.max(count);
            blocks += 1;
            sum += u64::from(count);
            squares += u128::from(count).pow(2);
        }
        if blocks == 0 {
            return EraseCounts::default();
        }
        // In whole numbers, so that even wear has a deviation of exactly 0.
        let variance = u128::from(blocks) * squares - u128::from(sum).pow(2);
        let count = blocks as f64;
        let deviation = (variance as f64).sqrt() / count;
        EraseCounts { min, mean: sum as f64 / count, max, deviation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_least_mean_most_and_spread() {
        assert_eq!(EraseCounts::from_erases([]), EraseCounts::default());
        let even = EraseCounts::from_erases([7; 100]);
        assert_eq!((even.min, even.mean, even.max, even.deviation), (7, 7.0, 7, 0.0));
        let found = EraseCounts::from_erases([2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((found.min, found.mean, found.max, found.deviation), (2, 5.0, 9, 2.0));
    }
}
