//! Blocks that are cleaned or taken out beside requests, some at a time.
//!
//! For: writing back ahead of need, and tenants that are removed. Must never know: why, when.
//! Units: blocks, ids of a pool.

use super::{BlockAddress, Cache};
use crate::plan::{Move, Plan};
use cachewright_policy::Policy;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, TenantId};

impl<P: Policy> Cache<P> {
    /// Cleans dirty blocks of a pool, at most `max_blocks`, from the id `from` on; the write-backs
    /// replace what `plan` held. Returns where to go on, or nothing at the end.
    pub fn clean_some(
        &mut self,
        pool: usize,
        from: BlockId,
        max_blocks: u32,
        plan: &mut Plan,
    ) -> Option<BlockId> {
        plan.moves.clear();
        let mut next = from;
        for _ in 0..max_blocks {
            let (tenant, block) = self.engine.next_dirty(pool, next)?;
            self.engine.clean(tenant, block);
            plan.moves.push(Move::Clean(self.cached(pool, block)));
            next = BlockId(block.0 + 1);
        }
        Some(next)
    }

    /// Takes blocks of a tenant out of the cache because it is removed: of at most `max_ids` ids
    /// from `from` on. Dirty ones are written back; the moves replace what `plan` held. Returns
    /// where to go on, or nothing at the end.
    pub fn remove_some(
        &mut self,
        tenant: TenantId,
        from: BlockId,
        max_ids: u32,
        plan: &mut Plan,
    ) -> Option<BlockId> {
        plan.moves.clear();
        let pool = self.engine.pool_of(tenant);
        let ids = self.indexes[pool].ids() as u32;
        let end = from.0.saturating_add(max_ids).min(ids);
        for id in (from.0..end).map(BlockId) {
            let address = self.indexes[pool].address_of(id);
            let own = address.is_some_and(|address| address.tenant == tenant);
            if !own || !self.engine.policy(pool).contains(id) {
                continue;
            }
            let cached = self.cached(pool, id);
            let dirty = self.engine.clean(tenant, id);
            self.engine.lose(tenant, id, LossReason::Removal);
            plan.leave(cached, dirty);
            self.release(pool, id);
        }
        (end < ids).then_some(BlockId(end))
    }

    /// Marks a cached block clean because it is being written back while it stays; returns whether
    /// it was dirty. Counted as a write-back.
    pub fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        let pool = self.engine.pool_of(tenant);
        let known = self.indexes[pool].get(BlockAddress { tenant, number });
        known.is_some_and(|id| self.engine.clean(tenant, id))
    }
}
