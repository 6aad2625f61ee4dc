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

    /// Whether there is a pool that several tenants share.
    pub(crate) fn some_share(&self) -> bool {
        self.users.iter().any(|users| *users > 1)
    }

    /// The first tenant of a pool.
    pub(crate) fn first_of(&self, pool: usize) -> u16 {
        let found = self.pool_of.iter().position(|of| usize::from(*of) == pool);
        found.map_or(0, |tenant| tenant as u16)
    }

    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    pub(crate) fn mixed(&self) -> Vec<u16> {
        if self.users.len() > 1 && self.some_share() { self.pool_of.clone() } else { Vec::new() }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(of: &[u16], blocks: &[u32]) -> Quotas {
        Quotas::Pools { of: of.to_vec(), blocks: blocks.to_vec() }
    }

    #[test]
    fn quotas_fit_that_are_for_the_same_pools_of_the_same_tenants() {
        let shared = TenantPools::new(3, &Quotas::Shared(9));
        let apart = TenantPools::new(3, &Quotas::PerTenant(vec![1, 2, 3]));
        let mixed = TenantPools::new(3, &pools(&[1, 0, 1], &[4, 5]));
        let single = TenantPools::new(1, &pools(&[0], &[4]));
        let fit = |quotas: &Quotas| [&shared, &apart, &mixed, &single].map(|map| map.fits(quotas));
        assert_eq!(fit(&Quotas::Shared(0)), [true, false, false, false]);
        assert_eq!(fit(&Quotas::PerTenant(vec![7, 7, 7])), [false, true, false, false]);
        assert_eq!(fit(&Quotas::PerTenant(vec![7, 7])), [false; 4], "two pools, three tenants");
        assert_eq!(fit(&Quotas::PerTenant(vec![7])), [false, false, false, true]);
        assert_eq!(fit(&pools(&[1, 0, 1], &[0, 9])), [false, false, true, false]);
        assert_eq!(fit(&pools(&[0, 1, 1], &[0, 9])), [false; 4]);
        assert_eq!(fit(&pools(&[0, 1, 2], &[1, 1, 1])), [false, true, false, false]);
        let no_user = TenantPools::new(3, &pools(&[0, 0, 2], &[4, 5, 6]));
        assert!(!no_user.fits(&Quotas::PerTenant(vec![4, 5, 6])), "two tenants share a pool");
    }

    #[test]
    fn each_pool_has_a_first_tenant_and_new_tenants_a_pool_of_their_own_or_a_common_one() {
        let mut map = TenantPools::new(4, &pools(&[2, 0, 1, 0], &[4, 5, 6]));
        assert_eq!([0, 1, 2].map(|pool| map.first_of(pool)), [1, 2, 0]);
        assert_eq!([0, 1, 2].map(|pool| map.is_common(pool)), [true, false, false]);
        assert_eq!((map.mixed(), map.is_shared()), (vec![2, 0, 1, 0], false));
        assert!(TenantPools::new(2, &Quotas::PerTenant(vec![4, 5])).mixed().is_empty());
        assert_eq!((map.add(None), map.add(Some(1)), map.count()), (TenantId(4), TenantId(5), 6));
        assert_eq!([4, 5].map(|tenant| map.pool_of(TenantId(tenant))), [3, 1]);
        assert_eq!([1, 3].map(|pool| map.is_common(pool)), [true, false]);
        let mut shared = TenantPools::new(1, &Quotas::Shared(9));
        assert!(shared.is_shared() && !shared.is_common(0) && shared.mixed().is_empty());
        assert_eq!((shared.add(Some(0)), shared.is_common(0)), (TenantId(1), true));
        assert_eq!((shared.pool_of(TenantId(7)), shared.mixed()), (0, vec![]), "all are in it");
    }

    #[test]
    #[should_panic(expected = "each tenant has a pool")]
    fn a_tenant_without_a_pool_is_a_fault_of_the_caller() {
        TenantPools::new(2, &pools(&[0, 2], &[4, 5]));
    }

    #[test]
    #[should_panic(expected = "each tenant has a pool")]
    fn so_is_a_pool_too_few() {
        TenantPools::new(3, &pools(&[0, 1], &[4, 5]));
    }
}
