//! Divisions of the cache among tenants.
//!
//! For: the value that a partitioner returns, and its checks. Must never know: how a division was
//! found. Units: blocks. Invariant, checked by [`Division::audit`]: quotas sum to the cache, and no
//! quota is below the floor.

use crate::TenantView;

/// A division of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheDivision {
    /// One pool for all tenants.
    Shared,
    /// A quota for each tenant, in the order of the tenants.
    PerTenant(Vec<u32>),
    /// Pools, each for one tenant or several.
    Pools {
        /// The pool of each tenant, in the order of the tenants; every pool has a tenant.
        pool_of: Vec<u16>,
        /// The blocks of each pool.
        blocks: Vec<u32>,
    },
    /// One cache with a list per tenant, whose lengths follow the misses; see
    /// [`VictimSelector`](crate::VictimSelector).
    Elastic,
}

/// Blocks that a tenant can use, for layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Requirement {
    /// Blocks (S_r).
    pub blocks: u32,
    /// Miss ratio with these blocks, 0 to 1 (R_e).
    pub miss_ratio: f64,
}

impl Requirement {
    /// The whole quota of each tenant, at the miss ratio of its last interval.
    pub fn whole_quotas(tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        let requirement = |(view, blocks): (&TenantView, &u32)| Requirement {
            blocks: *blocks,
            miss_ratio: view.miss_ratio(),
        };
        tenants.iter().zip(quotas).map(requirement).collect()
    }
}

impl CacheDivision {
    /// Checks that each tenant has a quota, or a pool, and each pool a tenant; quotas must sum to
    /// `total_blocks`, each at least `floor_blocks`. Errors: the rule that is broken.
    pub fn audit(
        &self,
        tenants: usize,
        total_blocks: u32,
        floor_blocks: u32,
    ) -> Result<(), String> {
        let quotas = match self {
            CacheDivision::Shared | CacheDivision::Elastic => return Ok(()),
            CacheDivision::PerTenant(quotas) => quotas,
            CacheDivision::Pools { pool_of, blocks } => {
                let pools = 0..blocks.len();
                if let Some(pool) =
                    pool_of.iter().find(|pool| !pools.contains(&usize::from(**pool)))
                {
                    return Err(format!("pool {pool} of {} pools", blocks.len()));
                }
                let unused = |pool: &usize| !pool_of.contains(&(*pool as u16));
                if let Some(pool) = pools.into_iter().find(unused) {
                    return Err(format!("pool {pool} has no tenant"));
                }
                blocks
            }
        };
        let assigned = if let CacheDivision::Pools { pool_of, .. } = self {
            pool_of.len()
        } else {
            quotas.len()
        };
        if assigned != tenants {
            return Err(format!("{assigned} quotas for {tenants} tenants"));
        }
        let sum: u64 = quotas.iter().copied().map(u64::from).sum();
        if tenants > 0 && sum != u64::from(total_blocks) {
            return Err(format!("quotas sum to {sum} of {total_blocks} blocks"));
        }
        match quotas.iter().position(|&quota| quota < floor_blocks) {
            Some(index) => Err(format!(
                "{} {index} has {} blocks, below its floor of {floor_blocks}",
                if matches!(self, CacheDivision::Pools { .. }) { "pool" } else { "tenant" },
                quotas[index]
            )),
            None => Ok(()),
        }
    }
}
