//! Which sectors of a mapped page hold data.
//!
//! For: pages written in part. Must never know: where pages lie. Units: sectors, a bit each.

use super::page_map::PageMap;

/// Masks of sectors, by the number of the page over all groups.
#[derive(Clone, Debug)]
pub struct SectorMasks {
    /// Pages where not all sectors hold data.
    partial: PageMap<u64>,
    whole: u64,
}

impl SectorMasks {
    /// All pages of so many sectors are whole.
    pub fn new(sectors_per_page: u32) -> SectorMasks {
        SectorMasks { partial: PageMap::default(), whole: u64::MAX >> (64 - sectors_per_page) }
    }

    /// The mask of all sectors of a page.
    #[inline]
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Sectors of a mapped page that hold data.
    #[inline]
    pub fn get(&self, page: u32) -> u64 {
        if self.partial.is_empty() {
            return self.whole;
        }
        self.partial.get(page).unwrap_or(self.whole)
    }

    /// Starts to load what [`SectorMasks::get`] and [`SectorMasks::set`] of a page read first.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.partial.prefetch(page);
    }

    /// Notes which sectors of a page hold data.
    #[inline]
    pub fn set(&mut self, page: u32, sectors: u64) {
        if sectors != self.whole {
            self.partial.insert(page, sectors);
        } else if !self.partial.is_empty() {
            self.partial.remove(page);
        }
    }
}
