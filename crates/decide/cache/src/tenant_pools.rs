//! Which pool holds the blocks of which tenant.
//!
//! For: one place for the map and for what follows from it. Must never know: policies, quotas in
//! blocks, counters. All tenants in one pool is a case of its own: its look-up loads nothing.

use crate::Quotas;
use cachewright_types::TenantId;

/// The pool of each tenant.
#[derive(Clone, Debug)]
pub(crate) struct TenantPools {
    /// All tenants use pool 0.
    shared: bool,
    pool_of: Vec<u16>,
    /// Tenants of each pool.
    users: Vec<u32>,
}

impl TenantPools {
    /// The map of `quotas` for so many tenants.
    pub(crate) fn new(tenants: usize, quotas: &Quotas) -> TenantPools {
        let (pool_of, pools) = (quotas.pools_of(tenants), quotas.blocks().len());
        let exists = |pool: &u16| usize::from(*pool) < pools;
        assert!(pool_of.len() == tenants && pool_of.iter().all(exists), "each tenant has a pool");
        let mut users = vec![0; pools];
        pool_of.iter().for_each(|pool| users[usize::from(*pool)] += 1);
        TenantPools { shared: matches!(quotas, Quotas::Shared(_)), pool_of, users }
    }

    /// The pool of a tenant.
    #[inline(always)]
    pub(crate) fn pool_of(&self, tenant: TenantId) -> usize {
        if self.shared { 0 } else { usize::from(self.pool_of[tenant.index()]) }
    }

    /// Tenants.
    pub(crate) fn count(&self) -> usize {
        self.pool_of.len()
    }

    /// All tenants are in pool 0.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether several tenants share a pool.
    pub(crate) fn is_common(&self, pool: usize) -> bool {
        self.users[pool] > 1
    }

    /// The first tenant of a pool.
    pub(crate) fn first_of(&self, pool: usize) -> u16 {
        let found = self.pool_of.iter().position(|of| usize::from(*of) == pool);
        found.map_or(0, |tenant| tenant as u16)
    }

    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    pub(crate) fn mixed(&self) -> Vec<u16> {
        let some_share = self.users.iter().any(|users| *users > 1);
        if self.users.len() > 1 && some_share { self.pool_of.clone() } else { Vec::new() }
    }

    /// Whether quotas are for the same pools of the same tenants.
    pub(crate) fn fits(&self, quotas: &Quotas) -> bool {
        let kind = matches!(quotas, Quotas::Shared(_)) == self.shared;
        kind && quotas.blocks().len() == self.users.len()
            && match quotas {
                Quotas::Pools { of, .. } => *of == self.pool_of,
                Quotas::PerTenant(each) => {
                    each.len() == self.pool_of.len() && self.users.iter().all(|users| *users < 2)
                }
                Quotas::Shared(_) => true,
            }
    }

    /// One more tenant, in `pool` or, with none, in a pool of its own. Returns the tenant.
    pub(crate) fn add(&mut self, pool: Option<usize>) -> TenantId {
        let pool = pool.unwrap_or_else(|| {
            self.users.push(0);
            self.users.len() - 1
        });
        self.users[pool] += 1;
        self.pool_of.push(pool as u16);
        TenantId(self.pool_of.len() as u16 - 1)
    }
}
