//! `soft-qos`: the smallest partitions that meet the tenants' hit-ratio goals.
//!
//! For: a curve per tenant, fitted through measurements; demands read from it; grants in ascending
//! order of demand. Must never know: how hit ratios are measured, latencies (a latency goal is
//! converted to a hit ratio before). Units: blocks; hit ratios from 0 to 1. Source: Patrick et al.,
//! "Improving I/O Performance Using Soft-QoS-Based Dynamic Storage Cache Partitioning", section III
//! and figure 5. Ours: `most_moved`, off by default; grants are at least one block; without a
//! profile a tenant starts from (1, 0), (half, 0.5), (all, 1).
//!
//! The paper does not treat idle tenants. Here an idle tenant keeps its table, and its demand
//! stays. With `lend_after` (off by default) its blocks are lent after so many idle intervals,
//! until it sends requests again. If no tenant sends requests, nothing is learned and the division
//! stays.
//!
//! Two readings of the paper are settings. `cumulative`: the recorded hit ratio is that since the
//! start (figure 5: hits by accesses; "more cumulative rather than reactive"), not that of the last
//! interval. `gain_at_demand`: spare blocks follow `max(hr) - hr` with `hr` "for the minimum QoS
//! predicted" (the text), not the current hit ratio (figure 5 and the first example; the default).

#[cfg(test)]
mod recovery;
mod table;
#[cfg(test)]
mod tests;

pub use table::PerformanceTable;

use crate::entry::{Entry, Need, Registered};
use crate::idle::Idle;
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `soft-qos`.
    pub struct SoftQosSettings {
        /// record hit ratios since the start, as the paper does; otherwise of the last interval
        cumulative: bool = true, "";
        /// measure gains from the hit ratio at the demand (the paper's text), not now (its example)
        gain_at_demand: bool = false, "";
        /// largest share of the cache that one division moves; 1 as in the paper
        most_moved: f64 = 1.0, "ratio", 0.001 ..= 1.0;
        /// idle intervals after which all blocks of a tenant but one are lent; 0 is never
        lend_after: u32 = 0, "intervals", 0 ..= 1000000;
    }
}

/// A tenant at the grant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Blocks that meet the goal; nothing if no size does.
    pub demand_blocks: Option<u32>,
    /// The best known hit ratio minus the current one, at least 0.
    pub gain: f64,
}

/// Partitions that meet goals.
#[derive(Clone, Debug)]
pub struct SoftQos {
    settings: SoftQosSettings,
    tables: Vec<PerformanceTable>,
    /// Quotas of the last division; empty before the first.
    last: Vec<u32>,
    idle: Idle,
    /// Accesses and hits of each tenant so far.
    totals: Vec<(u64, u64)>,
}

impl Registered for SoftQos {
    type Settings = SoftQosSettings;
    const ENTRY: Entry = Entry {
        name: "soft-qos",
        doc: "smallest quotas that meet hit-ratio goals, from curves fitted during the run",
        source: "Patrick et al., soft-QoS-based cache partitioning, section III",
        needs: &[Need::Interval, Need::Goal],
    };

    fn new(settings: &SoftQosSettings, tenants: usize, _: Seed) -> Self {
        let tables = vec![PerformanceTable::default(); tenants];
        let totals = vec![(0, 0); tenants];
        let (last, idle) = (Vec::new(), Idle::default());
        SoftQos { settings: settings.clone(), tables, last, idle, totals }
    }
}

impl SoftQos {
    /// The table of a tenant.
    pub fn table(&self, tenant: usize) -> Option<&PerformanceTable> {
        self.tables.get(tenant)
    }

    /// Seeds empty tables and records the last interval.
    fn learn(&mut self, tenants: &[TenantView], total_blocks: u32) {
        self.tables.resize(tenants.len(), PerformanceTable::default());
        self.totals.resize(tenants.len(), (0, 0));
        for (place, tenant) in tenants.iter().enumerate() {
            let total = &mut self.totals[place];
            *total = (total.0 + tenant.accesses, total.1 + tenant.hits);
            let measured = self.measured(place, tenant);
            let table = &mut self.tables[place];
            if table.is_empty() {
                let guess = [(1, 0.0), (total_blocks / 2, 0.5), (total_blocks, 1.0)];
                let profile =
                    if tenant.facts.profile().is_empty() { &guess } else { tenant.facts.profile() };
                profile.iter().for_each(|&(blocks, ratio)| table.record(blocks.max(1), ratio));
            }
            if let Some((&quota, ratio)) = self.last.get(place).zip(measured) {
                table.record(quota, ratio);
            }
        }
    }

    /// The hit ratio to record for a tenant; nothing while the tenant is idle.
    fn measured(&self, place: usize, tenant: &TenantView) -> Option<f64> {
        let (accesses, hits) = match self.settings.cumulative {
            true => self.totals[place],
            false => (tenant.accesses, tenant.hits),
        };
        (tenant.accesses > 0).then(|| hits as f64 / accesses as f64)
    }

    fn claim(&self, place: usize, tenant: &TenantView) -> Claim {
        let table = &self.tables[place];
        let demand_blocks = match tenant.facts.goal_hit_ratio() {
            Some(goal) => table.demand(goal),
            None => Some(1),
        };
        let min_blocks = demand_blocks.unwrap_or(1);
        let held = self.last.get(place).copied().unwrap_or(min_blocks);
        let now = match self.measured(place, tenant) {
            _ if self.settings.gain_at_demand => table.hit_ratio_at(min_blocks),
            Some(ratio) => ratio,
            None => table.hit_ratio_at(held),
        };
        Claim { demand_blocks, gain: (table.best() - now).max(0.0) }
    }
}

impl Partitioner for SoftQos {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.learn(tenants, total_blocks);
        self.idle.learn(tenants);
        let silent = tenants.iter().all(|tenant| tenant.accesses == 0);
        let known =
            self.last.len() == tenants.len() && self.last.iter().sum::<u32>() == total_blocks;
        if silent && known {
            return CacheDivision::PerTenant(self.last.clone());
        }
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let lent = |place: &usize| self.idle.beyond(*place, self.settings.lend_after);
        let (idle, active): (Vec<usize>, Vec<usize>) = (0..tenants.len()).partition(lent);
        let claims: Vec<Claim> =
            active.iter().map(|&place| self.claim(place, &tenants[place])).collect();
        let mut quotas = vec![floor; tenants.len()];
        let granted = grant(&claims, total_blocks - floor * idle.len() as u32);
        active.iter().zip(granted).for_each(|(&place, blocks)| quotas[place] = blocks);
        share::raise(&mut quotas, &vec![floor; tenants.len()]);
        if self.last.len() == quotas.len() {
            quotas = share::towards(&self.last, &quotas, self.settings.most_moved);
        }
        self.last.clone_from(&quotas);
        CacheDivision::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(1, tenants, total_blocks)
    }

    fn reads_profiles(&self) -> bool {
        true
    }
}

/// Blocks per tenant: demands in ascending order (ties: tenant order) while they fit. If all
/// demands fit, all tenants divide the rest in proportion to their gains, or equally without gains.
/// Otherwise the tenants without a grant divide it equally.
pub fn grant(claims: &[Claim], total_blocks: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|&tenant| claims[tenant].demand_blocks.map_or(u64::MAX, u64::from));
    let mut quotas = vec![0; claims.len()];
    let (mut free, mut flagged) = (total_blocks, Vec::new());
    for tenant in order {
        match claims[tenant].demand_blocks.filter(|&demand| demand <= free) {
            Some(demand) => {
                quotas[tenant] = demand;
                free -= demand;
            }
            None => flagged.push(tenant),
        }
    }
    if flagged.is_empty() {
        let gains: Vec<f64> = claims.iter().map(|claim| claim.gain).collect();
        let extra = share::proportional(free, &gains);
        quotas.iter_mut().zip(extra).for_each(|(quota, more)| *quota += more);
    } else {
        flagged.sort_unstable();
        let extra = share::equal(free, flagged.len());
        flagged.iter().zip(extra).for_each(|(&tenant, blocks)| quotas[tenant] = blocks);
    }
    quotas
}
