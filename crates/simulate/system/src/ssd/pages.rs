//! What a data cache knows of each page beyond what its policy does.
//!
//! For: which sectors are there, which stay of the page and which write of it something under way
//! belongs to, and the order in which pages became dirty. Must never know: devices, policies.
//! Units: sectors as bits; stamps count upwards and are never given twice.

use cachewright_types::BlockId;
use std::collections::VecDeque;

/// One page of a pool, by its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Sectors that are in the cache.
    pub have: u64,
    /// When it came in; 0 when it is not in the cache.
    pub life: u64,
    /// When it was last written.
    pub version: u64,
    /// When it became dirty.
    pub dirty_since: u64,
}

/// The pages of one pool.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    pages: Vec<Page>,
    /// Pages in the order in which they became dirty, with that stamp; some are clean by now.
    dirty: VecDeque<(BlockId, u64)>,
}

impl Pages {
    /// Makes room for ids `0..count`.
    #[inline]
    pub fn reserve(&mut self, count: usize) {
        if count > self.pages.len() {
            self.pages.resize(count, Page::default());
        }
    }

    /// A page.
    #[inline]
    pub fn get(&self, id: BlockId) -> &Page {
        &self.pages[id.index()]
    }

    /// A page.
    #[inline]
    pub fn get_mut(&mut self, id: BlockId) -> &mut Page {
        &mut self.pages[id.index()]
    }

    /// A page comes in, empty.
    #[inline]
    pub fn enter(&mut self, id: BlockId, stamp: u64) {
        self.pages[id.index()] = Page { life: stamp, ..Page::default() };
    }

    /// A page leaves; returns what it was.
    #[inline]
    pub fn leave(&mut self, id: BlockId) -> Page {
        std::mem::take(&mut self.pages[id.index()])
    }

    /// A clean page becomes dirty.
    pub fn soil(&mut self, id: BlockId, stamp: u64) {
        self.pages[id.index()].dirty_since = stamp;
        self.dirty.push_back((id, stamp));
    }

    /// The page longest dirty, taken from the order. `is_dirty` says what is still dirty.
    pub fn oldest_dirty(&mut self, is_dirty: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        while let Some((id, stamp)) = self.dirty.pop_front() {
            if self.pages[id.index()].dirty_since == stamp && is_dirty(id) {
                return Some(id);
            }
        }
        None
    }

    /// Pages in the cache, for audits.
    pub fn alive(&self) -> impl Iterator<Item = BlockId> + '_ {
        let living = |(_, page): &(u32, &Page)| page.life != 0;
        (0..).zip(&self.pages).filter(living).map(|(id, _)| BlockId(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_dirty_page_is_one_that_still_is() {
        let mut pages = Pages::default();
        pages.reserve(4);
        for (id, stamp) in [(0, 1), (1, 2), (2, 3)] {
            pages.enter(BlockId(id), stamp);
            pages.soil(BlockId(id), stamp);
        }
        pages.leave(BlockId(0));
        pages.enter(BlockId(0), 4);
        pages.soil(BlockId(0), 5);
        let dirty = |id: BlockId| id != BlockId(1);
        let order: Vec<u32> =
            std::iter::from_fn(|| pages.oldest_dirty(dirty)).map(|id| id.0).collect();
        assert_eq!(order, [2, 0], "0 left and came back, 1 was cleaned");
        assert_eq!(pages.alive().count(), 3);
    }
}
