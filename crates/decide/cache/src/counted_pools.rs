//! All pools of a cache, and counters of tenants that stay in step with them.
//!
//! For: what is dirty, whose it is and how many blocks a tenant holds, whatever comes in or leaves.
//! Must never know: write modes, why a block comes in or leaves. Units: blocks. Invariants: a dirty
//! block is resident; occupancy is the number of resident blocks; both are audited.

use crate::Quotas;
use crate::ledger::Ledger;
use crate::pool::PolicyPool;
use crate::tenant_pools::TenantPools;
use cachewright_policy::{BackgroundOp, Policy, Verdict};
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, TenantId};
use std::ops::{Index, IndexMut};

/// Pools by index, who uses them, and what is counted for whom.
#[derive(Clone, Debug)]
pub(crate) struct CountedPools<P> {
    pools: Vec<PolicyPool<P>>,
    tenants: TenantPools,
    ledger: Ledger,
}

impl<P> Index<usize> for CountedPools<P> {
    type Output = PolicyPool<P>;

    #[inline(always)]
    fn index(&self, pool: usize) -> &PolicyPool<P> {
        &self.pools[pool]
    }
}

impl<P> IndexMut<usize> for CountedPools<P> {
    #[inline(always)]
    fn index_mut(&mut self, pool: usize) -> &mut PolicyPool<P> {
        &mut self.pools[pool]
    }
}

impl<P: Policy> CountedPools<P> {
    /// Empty pools for `tenants` tenants; `make` builds the policy of each.
    pub(crate) fn new(
        tenants: usize,
        quotas: &Quotas,
        mut make: impl FnMut(usize, u32) -> P,
    ) -> CountedPools<P> {
        let map = TenantPools::new(tenants, quotas);
        let pool = |(index, capacity): (usize, &u32)| {
            let policy = make(index, *capacity);
            PolicyPool::new(policy, map.first_of(index), map.is_common(index))
        };
        let pools = quotas.blocks().iter().enumerate().map(pool).collect();
        CountedPools { pools, tenants: map, ledger: Ledger::new(tenants) }
    }

    /// One more tenant, unless some but not all share a pool; `make` builds the policy of a pool
    /// that it has for itself.
    pub(crate) fn add_tenant(
        &mut self,
        capacity_blocks: u32,
        make: impl FnOnce(usize, u32) -> P,
    ) -> Option<TenantId> {
        let pool = if self.tenants.is_shared() {
            self.pools[0].share();
            Some(0)
        } else if self.tenants.some_share() {
            return None;
        } else {
            let (index, tenant) = (self.pools.len(), self.tenants.count() as u16);
            self.pools.push(PolicyPool::new(make(index, capacity_blocks), tenant, false));
            None
        };
        self.ledger.add();
        Some(self.tenants.add(pool))
    }

    /// Number of pools.
    pub(crate) fn count(&self) -> usize {
        self.pools.len()
    }

    /// Which tenants use which pools.
    pub(crate) fn tenants(&self) -> &TenantPools {
        &self.tenants
    }

    /// The index of the pool of a tenant.
    #[inline(always)]
    pub(crate) fn pool_of(&self, tenant: TenantId) -> usize {
        self.tenants.pool_of(tenant)
    }

    /// What is counted.
    #[inline(always)]
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The same, for accesses and requests to be counted.
    #[inline(always)]
    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Dirty blocks in all pools.
    pub(crate) fn dirty_blocks(&self) -> u64 {
        self.pools.iter().map(|pool| u64::from(pool.dirty_blocks())).sum()
    }

    /// The policy has decided about a tenant's block; returns whether a dirty block left for it.
    #[inline(always)]
    pub(crate) fn admit(&mut self, tenant: TenantId, block: BlockId, verdict: Verdict) -> bool {
        let pool = &mut self.pools[self.tenants.pool_of(tenant)];
        let mut writeback = false;
        if let Verdict::Admit { evicted } = verdict {
            if let Some(evicted) = evicted {
                writeback = pool.take_dirty(evicted);
                debug_assert!(!pool.policy.contains(evicted), "an evicted block has left");
                self.ledger.evict(pool.owner_of(evicted), writeback);
            }
            debug_assert!(pool.policy.contains(block), "an admitted block is resident");
            pool.set_owner(block, tenant);
            self.ledger.enter(tenant);
        }
        writeback
    }

    /// A block is written back while it stays; returns whether it was dirty. Counted for `tenant`.
    pub(crate) fn clean(&mut self, tenant: TenantId, block: BlockId) -> bool {
        let dirty = self.pools[self.tenants.pool_of(tenant)].take_dirty(block);
        self.ledger.write_back(tenant, dirty);
        dirty
    }

    /// Drops a block without writing it back; returns whether it was cached and whether it was
    /// dirty.
    pub(crate) fn lose(
        &mut self,
        tenant: TenantId,
        block: BlockId,
        reason: LossReason,
    ) -> (bool, bool) {
        let pool = &mut self.pools[self.tenants.pool_of(tenant)];
        let cached = pool.policy.remove(block);
        let dirty = cached && pool.take_dirty(block);
        if cached {
            self.ledger.discard(tenant, reason, dirty);
        }
        (cached, dirty)
    }

    /// Blocks that the policy of a pool has given up; the others are within its capacity. Each is
    /// given to `left` as (pool, block, was dirty).
    pub(crate) fn leave(
        &mut self,
        index: usize,
        evicted: impl IntoIterator<Item = BlockId>,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let pool = &mut self.pools[index];
        for block in evicted {
            assert!(!pool.policy.contains(block), "block {} left pool {index}", block.0);
            let dirty = pool.take_dirty(block);
            self.ledger.evict(pool.owner_of(block), dirty);
            left(index, block, dirty);
        }
        let (held, capacity) = (pool.policy.len(), pool.policy.capacity());
        assert!(held <= capacity, "pool {index} holds {held} blocks of {capacity}");
    }

    /// Changes the blocks of one pool; those that leave for it are given to `left`.
    pub(crate) fn resize(
        &mut self,
        index: usize,
        capacity_blocks: u32,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let pool = &mut self.pools[index];
        if pool.policy.capacity() == capacity_blocks {
            return;
        }
        let mut evicted = Vec::new();
        pool.policy.resize(capacity_blocks, &mut evicted);
        assert_eq!(pool.policy.capacity(), capacity_blocks, "a resize sets the capacity");
        self.leave(index, evicted, left);
    }

    /// The next background operation of a pool's policy, and whether the block that it names first
    /// is dirty.
    #[inline(always)]
    pub(crate) fn background_op(&mut self, index: usize) -> Option<(BackgroundOp, bool)> {
        let op = self.pools[index].policy.background_op()?;
        let mut dirty = false;
        match op {
            BackgroundOp::Demote(block) => {
                self.leave(index, [block], &mut |_, _, was_dirty| dirty = was_dirty);
            }
            BackgroundOp::Clean(block) => {
                let pool = &mut self.pools[index];
                assert!(pool.policy.contains(block), "a block that is cleaned stays");
                dirty = pool.take_dirty(block);
                self.ledger.write_back(TenantId(pool.owner_of(block)), dirty);
            }
            BackgroundOp::Swap(one, other) => {
                let policy = &self.pools[index].policy;
                assert!(policy.contains(one) && policy.contains(other), "swapped blocks stay");
            }
        }
        Some((op, dirty))
    }

    /// Checks every invariant, slowly. Errors: the rule broken, in words.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut resident = 0;
        for (index, pool) in self.pools.iter().enumerate() {
            pool.policy.audit().map_err(|error| format!("pool {index}: {error}"))?;
            resident += u64::from(pool.policy.len());
            pool.audit().map_err(|error| format!("pool {index}: {error}"))?;
        }
        let counted = self.ledger.held();
        if counted == resident {
            Ok(())
        } else {
            Err(format!("{resident} blocks are resident, {counted} are counted"))
        }
    }
}
