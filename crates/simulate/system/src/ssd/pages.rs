//! What a data cache knows of each page beyond what its policy does.
//!
//! For: which sectors are there, which stay of the page and which write of it something under way
//! belongs to, and the order in which pages became dirty. Must never know: devices, policies.
//! Units: sectors as bits.

use super::ids::Stamp;
use cachewright_types::BlockId;
use std::collections::VecDeque;

/// One page of a pool, by its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedPage {
    /// Sectors that are in the cache.
    pub sectors: u64,
    /// When it came in; none when it is not in the cache.
    pub life: Stamp,
    /// When it was last written.
    pub version: Stamp,
    /// When it became dirty.
    dirty_since: Stamp,
}

/// The pages of one pool.
#[derive(Clone, Debug, Default)]
pub struct PoolPages {
    pages: Vec<CachedPage>,
    /// Pages in the order in which they became dirty, with that stamp; some are clean by now.
    dirty: VecDeque<(BlockId, Stamp)>,
}

impl PoolPages {
    /// Prepares for ids `0..count`.
    #[inline]
    pub fn reserve(&mut self, count: usize) {
        if count > self.pages.len() {
            self.pages.resize(count, CachedPage::default());
        }
    }

    /// A page.
    #[inline]
    pub fn get(&self, id: BlockId) -> &CachedPage {
        &self.pages[id.index()]
    }

    /// A page, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: BlockId) -> &mut CachedPage {
        &mut self.pages[id.index()]
    }

    /// A page comes in, empty.
    #[inline]
    pub fn enter(&mut self, id: BlockId, stamp: Stamp) {
        self.pages[id.index()] = CachedPage { life: stamp, ..CachedPage::default() };
    }

    /// A page leaves; returns what it was.
    #[inline]
    pub fn leave(&mut self, id: BlockId) -> CachedPage {
        std::mem::take(&mut self.pages[id.index()])
    }

    /// A clean page becomes dirty.
    pub fn mark_dirty(&mut self, id: BlockId, stamp: Stamp) {
        self.pages[id.index()].dirty_since = stamp;
        self.dirty.push_back((id, stamp));
    }

    /// The page longest dirty, taken from the order. `is_dirty` says what is still dirty.
    pub fn take_oldest_dirty(&mut self, is_dirty: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        while let Some((id, stamp)) = self.dirty.pop_front() {
            if self.pages[id.index()].dirty_since == stamp && is_dirty(id) {
                return Some(id);
            }
        }
        None
    }

    /// Pages in the cache, for audits.
    pub fn alive(&self) -> impl Iterator<Item = BlockId> + '_ {
        let living = |(_, page): &(u32, &CachedPage)| page.life != Stamp::NONE;
        (0..).zip(&self.pages).filter(living).map(|(id, _)| BlockId(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_dirty_page_is_one_that_still_is() {
        let mut pages = PoolPages::default();
        pages.reserve(4);
        for (id, stamp) in [(0, 1), (1, 2), (2, 3)] {
            pages.enter(BlockId(id), Stamp(stamp));
            pages.mark_dirty(BlockId(id), Stamp(stamp));
        }
        pages.leave(BlockId(0));
        pages.enter(BlockId(0), Stamp(4));
        pages.mark_dirty(BlockId(0), Stamp(5));
        let dirty = |id: BlockId| id != BlockId(1);
        let order: Vec<u32> =
            std::iter::from_fn(|| pages.take_oldest_dirty(dirty)).map(|id| id.0).collect();
        assert_eq!(order, [2, 0], "0 left and came back, 1 was cleaned");
        assert_eq!(pages.alive().count(), 3);
    }
}
