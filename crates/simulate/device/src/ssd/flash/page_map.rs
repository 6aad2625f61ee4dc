//! A value for each of some pages, by the page's number, and the sectors with data of pages in
//! part.
//!
//! Numbers are spread over a table of many megabytes, where a look-up costs one line of memory.
//! Open addressing with linear probing; at most three quarters of the buckets are used. A page that
//! is removed leaves no mark: those behind it move up (Knuth, The Art of Computer Programming 3,
//! section 6.4, algorithm R).

use cachewright_memory::prefetch;

/// Buckets of a map with its first page.
const FIRST_BUCKETS: usize = 16;
/// 2^64 over the golden section: numbers in a row come to lie apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Values by page; a page is below `u32::MAX`.
#[derive(Clone, Debug)]
pub struct PageMap<V> {
    /// A page's number and one more, or 0, and its value.
    buckets: Vec<(u32, V)>,
    len: usize,
}

impl<V> Default for PageMap<V> {
    fn default() -> PageMap<V> {
        PageMap { buckets: Vec::new(), len: 0 }
    }
}

impl<V: Copy + Default> PageMap<V> {
    /// Pages with a value.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no page has a value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bucket at which the search for a page begins; there must be buckets.
    #[inline]
    fn home(&self, page: u32) -> usize {
        let spread = u64::from(page).wrapping_mul(SPREAD);
        (spread >> (64 - self.buckets.len().trailing_zeros())) as usize
    }

    /// The bucket of a page, or the free one where it would be; there must be buckets.
    #[inline]
    fn find(&self, page: u32) -> usize {
        let mut bucket = self.home(page);
        while self.buckets[bucket].0 != page + 1 && self.buckets[bucket].0 != 0 {
            bucket = (bucket + 1) & (self.buckets.len() - 1);
        }
        bucket
    }

    /// The value of a page.
    #[inline]
    pub fn get(&self, page: u32) -> Option<V> {
        if self.len == 0 {
            return None;
        }
        let (key, value) = self.buckets[self.find(page)];
        (key != 0).then_some(value)
    }

    /// Starts to load what the search for a page reads first.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        if self.len > 0 {
            prefetch(&self.buckets, self.home(page));
        }
    }

    /// Sets the value of a page.
    #[inline]
    pub fn insert(&mut self, page: u32, value: V) {
        debug_assert!(page < u32::MAX);
        if 4 * (self.len + 1) > 3 * self.buckets.len() {
            self.grow();
        }
        let bucket = self.find(page);
        self.len += usize::from(self.buckets[bucket].0 == 0);
        self.buckets[bucket] = (page + 1, value);
    }

    /// Forgets a page, if it is known.
    pub fn remove(&mut self, page: u32) {
        if self.len == 0 {
            return;
        }
        let mask = self.buckets.len() - 1;
        let mut hole = self.find(page);
        if self.buckets[hole].0 == 0 {
            return;
        }
        let mut bucket = hole;
        loop {
            bucket = (bucket + 1) & mask;
            let (key, _) = self.buckets[bucket];
            if key == 0 {
                break;
            }
            // It may move up if its search passes the hole.
            let home = self.home(key - 1);
            if (bucket.wrapping_sub(home) & mask) >= (bucket.wrapping_sub(hole) & mask) {
                self.buckets[hole] = self.buckets[bucket];
                hole = bucket;
            }
        }
        self.buckets[hole] = (0, V::default());
        self.len -= 1;
    }

    #[cold]
    fn grow(&mut self) {
        let buckets = (2 * self.buckets.len()).max(FIRST_BUCKETS);
        let old = std::mem::replace(&mut self.buckets, vec![(0, V::default()); buckets]);
        for (key, value) in old.into_iter().filter(|(key, _)| *key != 0) {
            let bucket = self.find(key - 1);
            self.buckets[bucket] = (key, value);
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;
    use std::collections::BTreeMap;

    #[test]
    fn it_agrees_with_a_plain_map() {
        for (seed, pages) in [(1, 20), (2, 300), (3, 5000)] {
            let (mut map, mut plain) = (PageMap::default(), BTreeMap::new());
            let mut rng = Seed(seed).rng();
            // Pages far apart, next to each other, and at both ends.
            let number = |draw: u32| match draw % 3 {
                0 => draw,
                1 => draw.wrapping_mul(2_654_435_761) % (u32::MAX - 1),
                _ => u32::MAX - 1 - draw,
            };
            for step in 0..30 * pages {
                let page = number(rng.below(u64::from(pages)) as u32);
                if rng.below(5) < 2 {
                    map.remove(page);
                    plain.remove(&page);
                } else {
                    map.insert(page, u64::from(step));
                    plain.insert(page, u64::from(step));
                }
                assert_eq!(map.get(page), plain.get(&page).copied());
            }
            for page in (0..pages).map(number) {
                assert_eq!(map.get(page), plain.get(&page).copied());
            }
            assert_eq!((map.len(), map.is_empty()), (plain.len(), plain.is_empty()));
            plain.keys().for_each(|page| map.remove(*page));
            assert!(map.is_empty() && map.buckets.iter().all(|(key, _)| *key == 0));
        }
    }
}
