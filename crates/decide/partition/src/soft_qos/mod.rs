//! `soft-qos`: the smallest partitions that meet the tenants' hit-ratio goals.
//!
//! For: a curve per tenant, fitted through what was measured; demands read off it; a grant in
//! ascending order of demand. Must never know: how hit ratios are measured, latencies (a goal in
//! time is a hit ratio before it comes here). Units: blocks; hit ratios from 0 to 1. Source:
//! Patrick et al., "Improving I/O Performance Using Soft-QoS-Based Dynamic Storage Cache
//! Partitioning", section III and figure 5. Ours: `most_moved`, off by default; grants are not
//! below one block; without a profile a tenant starts from (1, 0), (half, 0.5), (all, 1). The paper
//! says nothing of tenants that send nothing: one keeps its table, its demand stands, and with
//! `lend_after` (off by default) its blocks are lent after so many idle intervals, until it comes
//! back. When nobody sends anything, nothing is learned and nothing moves.

mod table;

pub use table::Table;

use crate::idle::Idle;
use crate::registry::{Entry, Need, Registered};
use crate::{Partitioner, Quotas, TenantView, share};
use cachewright_types::{Seed, settings};

settings! {
    /// Settings of `soft-qos`.
    pub struct SoftQosSettings {
        /// a hit ratio recorded is that since the start, as the paper's; else the last interval's
        cumulative: bool = true, "", 0 ..= 1;
        /// the rest follows the gain over the hit ratio at the demand (the paper's text), not over
        /// the one now (its figure 5 and example)
        gain_at_demand: bool = false, "", 0 ..= 1;
        /// most of the cache that changes hands at one division; 1 is the paper's
        most_moved: f64 = 1.0, "ratio", 0.001 ..= 1.0;
        /// intervals without an access after which a tenant's blocks, but one, are lent; 0 is never
        lend_after: u32 = 0, "intervals", 0 ..= 1000000_u32;
    }
}

/// What the grant needs to know of a tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Blocks that meet the goal; nothing if no size does.
    pub demand_blocks: Option<u32>,
    /// The best hit ratio known less the one now, at least 0.
    pub gain: f64,
}

/// Partitions that meet goals.
#[derive(Clone, Debug)]
pub struct SoftQos {
    settings: SoftQosSettings,
    tables: Vec<Table>,
    /// Quotas given at the last division; empty before the first.
    last: Vec<u32>,
    idle: Idle,
    /// Accesses and hits of each tenant so far.
    totals: Vec<(u64, u64)>,
}

impl Registered for SoftQos {
    type Settings = SoftQosSettings;
    const ENTRY: Entry = Entry {
        name: "soft-qos",
        doc: "smallest quotas that meet hit-ratio goals, read off curves fitted while running",
        source: "Patrick et al., soft-QoS-based cache partitioning, section III",
        needs: &[Need::Interval, Need::Goal],
    };

    fn new(settings: &SoftQosSettings, tenants: usize, _: Seed) -> Self {
        let tables = vec![Table::default(); tenants];
        let totals = vec![(0, 0); tenants];
        let (last, idle) = (Vec::new(), Idle::default());
        SoftQos { settings: settings.clone(), tables, last, idle, totals }
    }
}

impl SoftQos {
    /// The table of a tenant.
    pub fn table(&self, tenant: usize) -> Option<&Table> {
        self.tables.get(tenant)
    }

    /// Seeds empty tables and records the last interval.
    fn learn(&mut self, tenants: &[TenantView], total_blocks: u32) {
        self.tables.resize(tenants.len(), Table::default());
        self.totals.resize(tenants.len(), (0, 0));
        for (place, tenant) in tenants.iter().enumerate() {
            let total = &mut self.totals[place];
            *total = (total.0 + tenant.accesses, total.1 + tenant.hits);
            let measured = self.measured(place, tenant);
            let table = &mut self.tables[place];
            if table.is_empty() {
                let guess = [(1, 0.0), (total_blocks / 2, 0.5), (total_blocks, 1.0)];
                let profile = if tenant.profile.is_empty() { &guess } else { tenant.profile };
                profile.iter().for_each(|&(blocks, ratio)| table.record(blocks.max(1), ratio));
            }
            if let Some((&quota, ratio)) = self.last.get(place).zip(measured) {
                table.record(quota, ratio);
            }
        }
    }

    /// The hit ratio of a tenant that is recorded now; nothing while it asks for nothing.
    fn measured(&self, place: usize, tenant: &TenantView) -> Option<f64> {
        let (accesses, hits) = match self.settings.cumulative {
            true => self.totals[place],
            false => (tenant.accesses, tenant.hits),
        };
        (tenant.accesses > 0).then(|| hits as f64 / accesses as f64)
    }

    fn claim(&self, place: usize, tenant: &TenantView) -> Claim {
        let table = &self.tables[place];
        let demand_blocks = match tenant.goal_hit_ratio {
            Some(goal) => table.demand(goal),
            None => Some(1),
        };
        let least = demand_blocks.unwrap_or(1);
        let held = self.last.get(place).copied().unwrap_or(least);
        let now = match self.measured(place, tenant) {
            _ if self.settings.gain_at_demand => table.hit_ratio_at(least),
            Some(ratio) => ratio,
            None => table.hit_ratio_at(held),
        };
        Claim { demand_blocks, gain: (table.best() - now).max(0.0) }
    }
}

impl Partitioner for SoftQos {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> Quotas {
        self.learn(tenants, total_blocks);
        self.idle.learn(tenants);
        let silent = tenants.iter().all(|tenant| tenant.accesses == 0);
        let known =
            self.last.len() == tenants.len() && self.last.iter().sum::<u32>() == total_blocks;
        if silent && known {
            return Quotas::PerTenant(self.last.clone());
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
        Quotas::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(1, tenants, total_blocks)
    }
}

/// Blocks per tenant: demands in ascending order (ties: tenant order) while they fit. If all fit,
/// the rest goes to everybody in proportion to the gains (equally if there are none); otherwise it
/// goes to those left out, equally.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(demands: [u32; 3], gains: [f64; 3]) -> Vec<Claim> {
        let claim = |(demand, gain)| Claim { demand_blocks: Some(demand), gain };
        demands.into_iter().zip(gains).map(claim).collect()
    }

    #[test]
    fn the_papers_first_example() {
        let (now, best) = ([0.70, 0.90, 0.90], [0.85, 0.92, 0.95]);
        let gains = [0, 1, 2].map(|tenant| best[tenant] - now[tenant]);
        let quotas = grant(&claims([15, 30, 30], gains), 100);
        assert_eq!(quotas, [15 + 17, 30 + 2, 30 + 6]);
    }

    #[test]
    fn the_papers_second_example() {
        assert_eq!(grant(&claims([80, 70, 40], [0.1; 3]), 100), [30, 30, 40]);
    }

    #[test]
    fn a_goal_out_of_reach_is_flagged_and_shares_what_is_left() {
        let mut claims = claims([10, 20, 30], [0.0; 3]);
        claims[1].demand_blocks = None;
        assert_eq!(grant(&claims, 100), [10, 60, 30]);
        assert_eq!(grant(&claims, 35), [10, 13, 12]);
    }

    #[test]
    fn nobody_is_left_without_a_block() {
        let mut quotas = vec![0, 100, 0];
        share::raise(&mut quotas, &[1; 3]);
        assert_eq!(quotas, [1, 98, 1]);
        let mut none = vec![0, 0];
        share::raise(&mut none, &[1; 2]);
        assert_eq!(none, [0, 0]);
    }

    #[test]
    fn unequal_demands_are_met_in_ascending_order_whatever_the_order_of_tenants() {
        let demands = [400_u32, 90, 250, 10];
        let claim = |demand| Claim { demand_blocks: Some(demand), gain: f64::from(demand) / 1e3 };
        for total in [0, 9, 10, 99, 100, 349, 350, 500, 749, 750, 2000] {
            let quotas = grant(&demands.map(claim), total);
            let turned = grant(&[2, 0, 3, 1].map(|at| claim(demands[at])), total);
            for (place, tenant) in [2, 0, 3, 1].into_iter().enumerate() {
                assert!(turned[place].abs_diff(quotas[tenant]) <= 1, "{total}: {quotas:?}");
            }
            let (mut ascending, mut free) = (demands, total);
            ascending.sort_unstable();
            let met = ascending.iter().take_while(|&&demand| {
                let fits = demand <= free;
                free -= if fits { demand } else { 0 };
                fits
            });
            let met = met.count();
            let got = demands.iter().zip(&quotas).filter(|(demand, quota)| quota >= demand);
            assert!(got.count() >= met, "{total}: {quotas:?}");
            assert_eq!(quotas.iter().sum::<u32>(), total);
        }
    }

    #[test]
    fn what_was_measured_moves_the_demand() {
        let mut soft = SoftQos::new(&SoftQosSettings::default(), 2, Seed(1));
        let profiles = [[(1, 0.0), (50, 0.4), (100, 0.9)], [(1, 0.2), (50, 0.3), (100, 0.3)]];
        let view = |tenant: usize, accesses, hits| TenantView {
            name: "tenant",
            weight: 1.0,
            accesses,
            hits,
            write_share: 0.0,
            quota_blocks: 0,
            occupancy_blocks: 0,
            curve: None,
            goal_hit_ratio: Some([0.4, 0.25][tenant]),
            profile: &profiles[tenant],
            ..TenantView::default()
        };
        let first = soft.divide(&[view(0, 0, 0), view(1, 0, 0)], 100);
        // Demands 50 and 26; 24 blocks by the gains 0.5 and 0.05.
        assert_eq!(first, Quotas::PerTenant(vec![72, 28]));
        // The first meets its goal with ease, the second measures what it had known.
        let second = soft.divide(&[view(0, 100, 90), view(1, 100, 25)], 100);
        assert_eq!(soft.table(0).map(|table| table.hit_ratio_at(72)), Some(0.9));
        let Quotas::PerTenant(second) = second else { panic!("quotas of its own for each") };
        assert!(second[1] > 28 && second.iter().sum::<u32>() == 100, "{second:?}");
    }

    #[test]
    fn a_tenant_that_sleeps_keeps_its_table_and_lends_its_blocks_if_allowed() {
        const SILENT: (u64, u64) = (0, 0);
        let profile = [(1, 0.0), (50, 0.5), (100, 0.6)];
        let view = |(accesses, hits)| TenantView {
            name: "tenant",
            weight: 1.0,
            accesses,
            hits,
            write_share: 0.0,
            quota_blocks: 0,
            occupancy_blocks: 0,
            curve: None,
            goal_hit_ratio: Some(0.4),
            profile: &profile,
            ..TenantView::default()
        };
        let quotas = |soft: &mut SoftQos, counts: [(u64, u64); 2]| match soft
            .divide(&counts.map(view), 100)
        {
            Quotas::PerTenant(quotas) => quotas,
            other => panic!("quotas of its own for each, not {other:?}"),
        };
        for lend_after in [0, 3] {
            let settings = SoftQosSettings { lend_after, ..SoftQosSettings::default() };
            let mut soft = SoftQos::new(&settings, 2, Seed(1));
            quotas(&mut soft, [SILENT; 2]);
            let awake = quotas(&mut soft, [(100, 50); 2]);
            assert_eq!(quotas(&mut soft, [SILENT; 2]), awake, "nothing was learned");
            let table = soft.table(1).cloned();
            let asleep: Vec<u32> =
                (0..6).map(|_| quotas(&mut soft, [(100, 50), SILENT])[1]).collect();
            assert_eq!(soft.table(1).cloned(), table);
            let demand = table.and_then(|table| table.demand(0.4)).unwrap_or(0);
            // The silent interval was the first of the three.
            let kept = if lend_after == 0 { 6 } else { 1 };
            assert!(asleep[..kept].iter().all(|&quota| quota >= demand), "{asleep:?}");
            assert!(asleep[kept..].iter().all(|&quota| quota == 1), "{asleep:?}");
            let hits = if lend_after == 0 { 50 } else { 0 };
            assert!(quotas(&mut soft, [(100, 50), (100, hits)])[1] >= demand, "it is back");
        }
    }
}
