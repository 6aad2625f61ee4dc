//! The page that lies at each place of the device, where it is followed.
//!
//! For: tests, which find reads of a place that does not hold its page. Must never know: how pages
//! come there. Units: pages; 4 bytes each.

/// A place without a page.
const NOTHING: u32 = u32::MAX;

/// What lies where; nothing is known until it is followed.
#[derive(Clone, Debug, Default)]
pub struct StoredPages {
    by_place: Option<Vec<u32>>,
    /// Reads of a place where the page was not.
    lost: u64,
}

impl StoredPages {
    /// Follows so many places from now on, which hold `pages`: place and page.
    pub fn follow(&mut self, places: usize, pages: impl Iterator<Item = (u64, u32)>) {
        let mut by_place = vec![NOTHING; places];
        for (place, page) in pages {
            by_place[place as usize] = page;
        }
        self.by_place = Some(by_place);
    }

    /// A page has arrived at a place.
    pub fn write(&mut self, place: u64, page: u32) {
        if let Some(by_place) = &mut self.by_place {
            by_place[place as usize] = page;
        }
    }

    /// A page is read at a place.
    pub fn read(&mut self, place: u64, page: u32) {
        self.lost += u64::from(!self.holds(place, page));
    }

    /// Places from `first` on are reset.
    pub fn reset(&mut self, first: u64, places: u32) {
        if let Some(by_place) = &mut self.by_place {
            by_place[first as usize..][..places as usize].fill(NOTHING);
        }
    }

    /// Whether a place holds a page, as far as is known.
    pub fn holds(&self, place: u64, page: u32) -> bool {
        self.by_place.as_ref().is_none_or(|pages| pages[place as usize] == page)
    }

    /// Checks that every page was read where it was. Errors: how many were not, in words.
    pub fn audit(&self) -> Result<(), String> {
        if self.lost == 0 {
            Ok(())
        } else {
            Err(format!("{} pages were read where they were not", self.lost))
        }
    }
}
