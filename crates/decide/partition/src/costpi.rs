//! `costpi`: own slots for tenants sensitive to latency, one pool for all others.
//!
//! For: the cache split of CostPI. Must never know: what was measured. Units: blocks. Source: Liu,
//! Wang, Feng, CostPI, ICPP'19, of which only the abstract is known: tenants sensitive to latency
//! get a dedicated part of the data cache; tenants that want throughput or capacity share the rest.
//! Taken from papers that compare with it: a dedicated part is an equal share, 1/N of the cache for
//! N tenants. iCache calls it "a fixed-ratio cache allocation policy" and "dedicated cache space":
//! `slot` is that ratio, in equal shares. Not here: its arbitration of queues, its channels by
//! class (`cache.layout` assigns channels) and a policy by class.
//!
//! Without a sensitive tenant all tenants share one pool. If all are, or with slots of one share
//! all but one, the cache is divided equally. The others keep at least a block each.

use crate::registry::{Entry, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `costpi`.
    pub struct CostPiSettings {
        /// slot of a sensitive tenant, in equal shares of the cache
        slot: f64 = 1.0, "equal shares", 0.0 ..= 1000.0;
    }
}

/// Equal quotas for sensitive tenants, one pool for the others.
#[derive(Clone, Debug, Snapshot)]
pub struct CostPi {
    /// Of a sensitive tenant, in equal shares of the cache.
    #[snapshot(settings)]
    slot: f64,
}

impl Registered for CostPi {
    type Settings = CostPiSettings;
    const ENTRY: Entry = Entry {
        name: "costpi",
        doc: "an equal share for each tenant marked sensitive, one pool for the others",
        source: "Liu, Wang, Feng, CostPI, ICPP'19 (abstract)",
        needs: &[],
    };

    fn new(settings: &CostPiSettings, _: usize, _: Seed) -> Self {
        CostPi { slot: settings.slot }
    }
}

impl Partitioner for CostPi {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let sensitive = tenants.iter().filter(|tenant| tenant.facts.sensitive).count();
        if sensitive == 0 && !tenants.is_empty() {
            return CacheDivision::Shared;
        }
        let others = tenants.len() - sensitive;
        if others == 0 || (others == 1 && self.slot == 1.0) {
            return CacheDivision::PerTenant(share::equal(total_blocks, tenants.len()));
        }
        let wanted = (f64::from(total_blocks) / tenants.len() as f64 * self.slot) as u32;
        let most = total_blocks.saturating_sub(others as u32) / sensitive as u32;
        let each = wanted.min(most);
        if others == 1 {
            let rest = total_blocks - each * sensitive as u32;
            let part = |tenant: &TenantView| if tenant.facts.sensitive { each } else { rest };
            return CacheDivision::PerTenant(tenants.iter().map(part).collect());
        }
        let mut blocks = vec![each; sensitive];
        blocks.push(total_blocks - each * sensitive as u32);
        let (mut pool_of, mut next) = (Vec::with_capacity(tenants.len()), 0);
        for tenant in tenants {
            pool_of.push(if tenant.facts.sensitive { next } else { sensitive as u16 });
            next += u16::from(tenant.facts.sensitive);
        }
        CacheDivision::Pools { pool_of, blocks }
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TenantConstants;

    fn divided(sensitive: &[bool], total: u32) -> CacheDivision {
        slotted(1.0, sensitive, total)
    }

    fn slotted(slot: f64, sensitive: &[bool], total: u32) -> CacheDivision {
        let facts = |sensitive: &bool| TenantConstants {
            sensitive: *sensitive,
            ..TenantConstants::default()
        };
        let facts: Vec<TenantConstants> = sensitive.iter().map(facts).collect();
        let view = |facts| TenantView { facts, ..TenantView::default() };
        let views: Vec<TenantView> = facts.iter().map(view).collect();
        let quotas = CostPi { slot }.divide(&views, total);
        assert_eq!(quotas.audit(sensitive.len(), total, 0), Ok(()));
        quotas
    }

    #[test]
    fn sensitive_tenants_have_equal_slots_and_the_others_share_the_rest() {
        // 102 blocks and 4 tenants: 25 for each of the two, 52 for the two others together.
        let expected = CacheDivision::Pools { pool_of: vec![2, 0, 2, 1], blocks: vec![25, 25, 52] };
        assert_eq!(divided(&[false, true, false, true], 102), expected);
        let one = CacheDivision::Pools { pool_of: vec![0, 1, 1], blocks: vec![3, 8] };
        assert_eq!(divided(&[true, false, false], 11), one);
    }

    #[test]
    fn a_slot_of_one_and_a_half_shares_is_three_to_one_of_two_tenants() {
        assert_eq!(slotted(1.5, &[false, true], 100), CacheDivision::PerTenant(vec![25, 75]));
        // 25.5 blocks and a half more, rounded down.
        let expected = CacheDivision::Pools { pool_of: vec![2, 0, 2, 1], blocks: vec![38, 38, 26] };
        assert_eq!(slotted(1.5, &[false, true, false, true], 102), expected);
        // More than there is: the other keeps a block.
        assert_eq!(slotted(3.0, &[true, false], 100), CacheDivision::PerTenant(vec![99, 1]));
    }

    #[test]
    fn all_or_none_sensitive_are_equal_parts_or_one_pool() {
        assert_eq!(divided(&[false; 3], 10), CacheDivision::Shared);
        assert_eq!(divided(&[true; 3], 10), CacheDivision::PerTenant(vec![4, 3, 3]));
        let two = CacheDivision::PerTenant(vec![4, 3, 3]);
        assert_eq!(
            divided(&[true, true, false], 10),
            two,
            "the third tenant would share with no other"
        );
    }
}
