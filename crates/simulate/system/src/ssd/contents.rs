//! The pages in the cache: what the engine decides about, with their addresses and sectors.
//!
//! Invariant (audited): pages known here are those of the policies.

use cachewright_cache::Engine;
use cachewright_cache::index::{BlockAddress, SparseIndex};
use cachewright_policy::Policy;
use cachewright_types::{BlockId, TenantId};
use std::collections::VecDeque;

/// Entries that the order of dirty pages may have beyond two per page that was dirty before.
const SPARE_ENTRIES: usize = 1024;

/// A pool of the cache engine: all pages, or those of one tenant or a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolId(pub u16);

impl PoolId {
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A moment of the cache: stamps count upwards and are never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(pub u64);

impl Stamp {
    /// No moment.
    pub const NONE: Stamp = Stamp(0);
}

/// The engine, and what it does not know of its pages.
pub struct CacheContents<P> {
    engine: Engine<P>,
    indexes: Vec<SparseIndex>,
    pools: Vec<PoolPages>,
    last_stamp: Stamp,
}

impl<P: Policy> CacheContents<P> {
    /// An empty cache.
    pub fn new(engine: Engine<P>) -> CacheContents<P> {
        let pools = engine.pools();
        CacheContents {
            engine,
            indexes: vec![SparseIndex::default(); pools],
            pools: vec![PoolPages::default(); pools],
            last_stamp: Stamp::NONE,
        }
    }

    #[inline]
    pub fn engine(&self) -> &Engine<P> {
        &self.engine
    }

    #[inline]
    pub fn engine_mut(&mut self) -> &mut Engine<P> {
        &mut self.engine
    }

    /// The pool of a tenant.
    #[inline]
    pub fn pool_of(&self, tenant: TenantId) -> PoolId {
        PoolId(self.engine.pool_of(tenant) as u16)
    }

    /// All pools.
    pub fn pools(&self) -> impl Iterator<Item = PoolId> + use<P> {
        (0..self.engine.pools() as u16).map(PoolId)
    }

    /// Pages that a pool may hold, and those it holds.
    #[inline]
    pub fn size(&self, pool: PoolId) -> (u32, u32) {
        let policy = self.engine.policy(pool.index());
        (policy.capacity(), policy.len())
    }

    /// Changes the pages that a pool may hold; those that leave, and whether they are dirty.
    pub fn resize(&mut self, pool: PoolId, pages: u32) -> Vec<(BlockId, bool)> {
        let mut leaving = Vec::new();
        self.engine.resize(pool.index(), pages, &mut |_, id, dirty| leaving.push((id, dirty)));
        leaving
    }

    /// The id of a page under which its pool knows it, if it is in the cache.
    #[inline]
    pub fn cached_id(&self, tenant: TenantId, number: u64) -> Option<BlockId> {
        let pool = self.pool_of(tenant).index();
        let id = self.indexes[pool].get(BlockAddress { tenant, number })?;
        (self.pools[pool].get(id).life != Stamp::NONE).then_some(id)
    }

    /// The id of a page in its pool, made if it has none.
    pub fn intern(&mut self, tenant: TenantId, number: u64) -> BlockId {
        let pool = self.pool_of(tenant).index();
        let engine = &self.engine;
        let tracked = |id: BlockId| engine.policy(pool).tracks(id);
        let id = self.indexes[pool].intern(BlockAddress { tenant, number }, tracked);
        let ids = self.indexes[pool].ids();
        self.engine.reserve_ids(pool, ids);
        self.pools[pool].reserve(ids);
        id
    }

    /// The tenant and the number of a page.
    pub fn address(&self, pool: PoolId, id: BlockId) -> BlockAddress {
        self.indexes[pool.index()].address(id)
    }

    #[inline]
    pub fn page(&self, pool: PoolId, id: BlockId) -> &CachedPage {
        self.pools[pool.index()].get(id)
    }

    #[inline]
    pub fn page_mut(&mut self, pool: PoolId, id: BlockId) -> &mut CachedPage {
        self.pools[pool.index()].get_mut(id)
    }

    /// The next stamp.
    #[inline]
    pub fn stamp(&mut self) -> Stamp {
        self.last_stamp.0 += 1;
        self.last_stamp
    }

    /// A page comes in, empty.
    #[inline]
    pub fn enter(&mut self, pool: PoolId, id: BlockId) {
        let stamp = self.stamp();
        self.pools[pool.index()].enter(id, stamp);
    }

    /// A page that the engine no longer holds leaves; returns what it was.
    #[inline]
    pub fn leave(&mut self, pool: PoolId, id: BlockId) -> CachedPage {
        self.pools[pool.index()].leave(id)
    }

    /// Gives the id of a page that has left back once its policy has forgotten it: its address is
    /// no longer known.
    #[inline]
    pub fn release(&mut self, pool: PoolId, id: BlockId) {
        if !self.engine.policy(pool.index()).tracks(id) {
            self.indexes[pool.index()].release(id);
        }
    }

    /// Takes a page out of the cache.
    pub fn discard(&mut self, tenant: TenantId, id: BlockId) {
        let pool = self.pool_of(tenant);
        self.engine.discard(tenant, id);
        self.pools[pool.index()].leave(id);
        self.release(pool, id);
    }

    /// A page becomes dirty.
    pub fn mark_dirty(&mut self, pool: PoolId, id: BlockId, stamp: Stamp) {
        self.pools[pool.index()].mark_dirty(id, stamp);
    }

    /// The page of a pool that is longest dirty, which is clean from now on, and its tenant.
    pub fn clean_oldest(&mut self, pool: PoolId) -> Option<BlockId> {
        let (engine, index) = (&self.engine, &self.indexes[pool.index()]);
        let is_dirty = |id: BlockId| engine.is_dirty(index.address(id).tenant, id);
        let id = self.pools[pool.index()].take_oldest_dirty(is_dirty)?;
        let tenant = self.address(pool, id).tenant;
        self.engine.clean(tenant, id);
        Some(id)
    }

    /// The engine holds what it promises, and the pages known here are those of the policies.
    pub fn audit(&self) -> Result<(), String> {
        self.engine.audit()?;
        for (pool, pages) in self.pools.iter().enumerate() {
            let policy = self.engine.policy(pool);
            let mut alive = 0;
            for id in pages.alive() {
                alive += 1;
                if !policy.contains(id) {
                    return Err(format!("pool {pool}: page {} is here, not in the cache", id.0));
                }
            }
            if alive != policy.len() {
                let held = policy.len();
                return Err(format!("pool {pool}: {alive} pages are here, {held} in the cache"));
            }
        }
        Ok(())
    }
}

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
struct PoolPages {
    pages: Vec<CachedPage>,
    /// Pages in the order in which they became dirty, with that stamp; some are clean by now.
    dirty: VecDeque<(BlockId, Stamp)>,
    /// Entries of that order that are not stale as far as is known.
    dirty_before: usize,
}

impl PoolPages {
    /// Prepares for ids `0..count`.
    #[inline]
    fn reserve(&mut self, count: usize) {
        if count > self.pages.len() {
            self.pages.resize(count, CachedPage::default());
        }
    }

    #[inline]
    fn get(&self, id: BlockId) -> &CachedPage {
        &self.pages[id.index()]
    }

    #[inline]
    fn get_mut(&mut self, id: BlockId) -> &mut CachedPage {
        &mut self.pages[id.index()]
    }

    /// A page comes in, empty.
    #[inline]
    fn enter(&mut self, id: BlockId, stamp: Stamp) {
        self.pages[id.index()] = CachedPage { life: stamp, ..CachedPage::default() };
    }

    /// A page leaves; returns what it was.
    #[inline]
    fn leave(&mut self, id: BlockId) -> CachedPage {
        std::mem::take(&mut self.pages[id.index()])
    }

    /// A clean page becomes dirty.
    fn mark_dirty(&mut self, id: BlockId, stamp: Stamp) {
        self.pages[id.index()].dirty_since = stamp;
        self.dirty.push_back((id, stamp));
        if self.dirty.len() > 2 * self.dirty_before + SPARE_ENTRIES {
            let pages = &self.pages;
            self.dirty.retain(|(id, stamp)| pages[id.index()].dirty_since == *stamp);
            self.dirty_before = self.dirty.len();
        }
    }

    /// The page longest dirty, taken from the order. `is_dirty` says what is still dirty.
    fn take_oldest_dirty(&mut self, is_dirty: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        while let Some((id, stamp)) = self.dirty.pop_front() {
            if self.pages[id.index()].dirty_since == stamp && is_dirty(id) {
                return Some(id);
            }
        }
        None
    }

    /// Pages in the cache, for audits.
    fn alive(&self) -> impl Iterator<Item = BlockId> + '_ {
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

    #[test]
    fn the_order_of_dirty_pages_does_not_grow_with_the_trace() {
        let mut pages = PoolPages::default();
        pages.reserve(8);
        for stamp in 1..100 * SPARE_ENTRIES as u64 {
            let id = BlockId((stamp % 8) as u32);
            pages.enter(id, Stamp(stamp));
            pages.mark_dirty(id, Stamp(stamp));
            assert!(pages.dirty.len() <= SPARE_ENTRIES + 16);
            if stamp % 3 == 0 {
                pages.leave(id);
            }
        }
    }
}
