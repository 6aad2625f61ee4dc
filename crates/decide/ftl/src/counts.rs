//! What a drive has done so far.
//!
//! For: write amplification over a whole run or between two moments. Must never know: the drive.
//! Units: pages, superblocks.

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
