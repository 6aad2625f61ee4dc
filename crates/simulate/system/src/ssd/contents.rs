//! The pages in the cache: what the engine decides about, with their addresses and sectors.
//!
//! For: one answer to "is this page here, under which id". Must never know: memory, flash, time.
//! Units: pages. Invariant (audited): pages known here are those of the policies.

use super::ids::{PoolId, Stamp};
use super::pages::{CachedPage, PoolPages};
use cachewright_cache::Engine;
use cachewright_cache::index::{BlockAddress, SparseIndex};
use cachewright_policy::Policy;
use cachewright_types::{BlockId, TenantId};

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

    /// The engine.
    #[inline]
    pub fn engine(&self) -> &Engine<P> {
        &self.engine
    }

    /// The engine, to be changed.
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

    /// A page.
    #[inline]
    pub fn page(&self, pool: PoolId, id: BlockId) -> &CachedPage {
        self.pools[pool.index()].get(id)
    }

    /// A page, to be changed.
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
