//! `soft-qos`: the smallest partitions that meet the tenants' hit-ratio goals.
//!
//! A curve per tenant is fitted through measurements; demands are read from it, and granted in
//! ascending order. A latency goal is converted to a hit ratio before. Source: Patrick et al.,
//! "Improving I/O Performance Using Soft-QoS-Based Dynamic Storage Cache Partitioning", section III
//! and figure 5. Ours: `most_moved`, off by default; grants are at least one block; without a
//! profile a tenant starts from (1, 0), (half, 0.5), (all, 1).
//!
//! The paper does not treat idle tenants. Here an idle tenant keeps its table, and its demand
//! stays. With `lend_after` (off by default) its blocks are lent after so many idle intervals,
//! until it sends requests again. If no tenant sends requests, nothing is learned and the division
//! stays.
//!
//! Three readings of the paper are settings. `cumulative`: the recorded hit ratio is that since the
//! start (figure 5: hits by accesses; "more cumulative rather than reactive"), not that of the last
//! interval. `gain_at_demand`: spare blocks follow `max(hr) - hr` with `hr` "for the minimum QoS
//! predicted" (the text), not the current hit ratio (figure 5 and the first example; the default).
//! `profile_on_devices`: "applications are statically profiled before they are initiated on the
//! system", where a run's own hit ratios come from the simulated devices too.

#[cfg(test)]
mod recovery;

use crate::history::Idle;
use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_snapshot::{Snapshot, SnapshotValue};
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
        /// profile each tenant alone on the stack's devices to its end, not by its first accesses
        profile_on_devices: bool = false, "";
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
#[derive(Clone, Debug, Snapshot)]
pub struct SoftQos {
    #[snapshot(settings)]
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

    fn profiles_on_devices(&self) -> bool {
        self.settings.profile_on_devices
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
/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, SnapshotValue)]
struct Measurement {
    blocks: u32,
    hit_ratio: f64,
    /// Number of the recording that wrote it.
    written: u64,
}

/// A tenant's performance table: hit ratios measured at cache sizes in ascending order, one per
/// size, and the curve through them. Source: Patrick et al., section III-B; 1,024 entries as in
/// section V-A.
#[derive(Clone, Debug, Default, PartialEq, SnapshotValue)]
struct PerformanceTable {
    entries: Vec<Measurement>,
    recordings: u64,
}

impl PerformanceTable {
    /// Largest number of entries; a new entry replaces the one with the oldest recording.
    const LIMIT: usize = 1024;

    /// Records the hit ratio at a size; it replaces an earlier one at the same size.
    fn record(&mut self, blocks: u32, hit_ratio: f64) {
        let entry = Measurement { blocks, hit_ratio, written: self.recordings };
        self.recordings += 1;
        match self.entries.binary_search_by_key(&blocks, |entry| entry.blocks) {
            Ok(index) => self.entries[index] = entry,
            Err(_) => {
                if self.entries.len() == PerformanceTable::LIMIT {
                    let stalest =
                        (0..self.entries.len()).min_by_key(|&index| self.entries[index].written);
                    stalest.map(|index| self.entries.remove(index));
                }
                let index = self.entries.partition_point(|known| known.blocks < blocks);
                self.entries.insert(index, entry);
            }
        }
    }

    /// Whether the table has no entry.
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The best known hit ratio; 0 without an entry.
    fn best(&self) -> f64 {
        self.entries.iter().map(|entry| entry.hit_ratio).fold(0.0, f64::max)
    }

    /// The curve at a size: linear between measurements, constant beyond the first and the last.
    fn hit_ratio_at(&self, blocks: u32) -> f64 {
        let above = self.entries.partition_point(|entry| entry.blocks < blocks);
        match (
            above.checked_sub(1).and_then(|index| self.entries.get(index)),
            self.entries.get(above),
        ) {
            (Some(low), Some(high)) => {
                let share = f64::from(blocks - low.blocks) / f64::from(high.blocks - low.blocks);
                low.hit_ratio + share * (high.hit_ratio - low.hit_ratio)
            }
            (Some(only), None) | (None, Some(only)) => only.hit_ratio,
            (None, None) => 0.0,
        }
    }

    /// The smallest size, at least 1, at which the curve reaches `goal`; nothing if it never does.
    fn demand(&self, goal: f64) -> Option<u32> {
        let first = self.entries.first()?;
        if first.hit_ratio >= goal {
            return Some(1);
        }
        self.entries.windows(2).find(|pair| pair[1].hit_ratio >= goal).map(|pair| {
            let (low, high) = (pair[0], pair[1]);
            let share = (goal - low.hit_ratio) / (high.hit_ratio - low.hit_ratio);
            let span = f64::from(high.blocks - low.blocks);
            // Rounding up the product may overshoot by one where the exact answer is whole.
            let mut blocks = low.blocks + (share * span).ceil() as u32;
            if blocks > low.blocks + 1 && self.hit_ratio_at(blocks - 1) >= goal {
                blocks -= 1;
            }
            blocks.clamp(1, high.blocks)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TenantConstants, TenantGoal};

    /// Facts of a tenant with a goal.
    pub(super) fn facts(hit_ratio: f64, profile: &[(u32, f64)]) -> TenantConstants {
        let goal =
            TenantGoal { hit_ratio: Some(hit_ratio), profile: profile.to_vec(), response: None };
        TenantConstants { goal: Some(goal), ..TenantConstants::default() }
    }

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
    fn every_tenant_keeps_a_block() {
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
            let turned = grant(&[2, 0, 3, 1].map(|index| claim(demands[index])), total);
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
        let facts = [facts(0.4, &profiles[0]), facts(0.25, &profiles[1])];
        let view = |tenant: usize, accesses, hits| TenantView {
            facts: &facts[tenant],
            accesses,
            hits,
            ..TenantView::default()
        };
        let first = soft.divide(&[view(0, 0, 0), view(1, 0, 0)], 100);
        // Demands 50 and 26; 24 blocks by the gains 0.5 and 0.05.
        assert_eq!(first, CacheDivision::PerTenant(vec![72, 28]));
        // The first meets its goal with ease, the second measures what it had known.
        let second = soft.divide(&[view(0, 100, 90), view(1, 100, 25)], 100);
        assert_eq!(soft.tables.first().map(|table| table.hit_ratio_at(72)), Some(0.9));
        let CacheDivision::PerTenant(second) = second else { panic!("quotas of its own for each") };
        assert!(second[1] > 28 && second.iter().sum::<u32>() == 100, "{second:?}");
    }

    #[test]
    fn a_tenant_that_sleeps_keeps_its_table_and_lends_its_blocks_if_allowed() {
        const SILENT: (u64, u64) = (0, 0);
        let facts = facts(0.4, &[(1, 0.0), (50, 0.5), (100, 0.6)]);
        let view = |(accesses, hits)| TenantView {
            facts: &facts,
            accesses,
            hits,
            ..TenantView::default()
        };
        let quotas = |soft: &mut SoftQos, counts: [(u64, u64); 2]| match soft
            .divide(&counts.map(view), 100)
        {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("quotas of its own for each, not {other:?}"),
        };
        for lend_after in [0, 3] {
            let settings = SoftQosSettings { lend_after, ..SoftQosSettings::default() };
            let mut soft = SoftQos::new(&settings, 2, Seed(1));
            quotas(&mut soft, [SILENT; 2]);
            let awake = quotas(&mut soft, [(100, 50); 2]);
            assert_eq!(quotas(&mut soft, [SILENT; 2]), awake, "nothing was learned");
            let table = soft.tables.get(1).cloned();
            let asleep: Vec<u32> =
                (0..6).map(|_| quotas(&mut soft, [(100, 50), SILENT])[1]).collect();
            assert_eq!(soft.tables.get(1).cloned(), table);
            let demand = table.and_then(|table| table.demand(0.4)).unwrap_or(0);
            // The silent interval was the first of the three.
            let kept = if lend_after == 0 { 6 } else { 1 };
            assert!(asleep[..kept].iter().all(|&quota| quota >= demand), "{asleep:?}");
            assert!(asleep[kept..].iter().all(|&quota| quota == 1), "{asleep:?}");
            let hits = if lend_after == 0 { 50 } else { 0 };
            assert!(quotas(&mut soft, [(100, 50), (100, hits)])[1] >= demand, "it is back");
        }
    }

    fn table(points: &[(u32, f64)]) -> PerformanceTable {
        let mut table = PerformanceTable::default();
        points.iter().for_each(|&(blocks, hit_ratio)| table.record(blocks, hit_ratio));
        table
    }

    #[test]
    fn the_curve_is_linear_between_measurements_and_level_beyond() {
        let table = table(&[(100, 1.0), (1, 0.0), (51, 0.5)]);
        for (blocks, expected) in [(0, 0.0), (1, 0.0), (26, 0.25), (51, 0.5), (200, 1.0)] {
            assert!((table.hit_ratio_at(blocks) - expected).abs() < 1e-12, "{blocks}");
        }
        assert_eq!(table.demand(0.0), Some(1));
        assert_eq!(table.demand(0.25), Some(26));
        assert_eq!(table.demand(1.0), Some(100));
        assert_eq!(table.demand(1.1), None);
        assert_eq!(PerformanceTable::default().demand(0.1), None);
    }

    #[test]
    fn the_smallest_size_counts_when_the_curve_falls_again() {
        let table = table(&[(10, 0.2), (20, 0.8), (30, 0.4), (40, 0.9)]);
        assert_eq!(table.demand(0.5), Some(15));
        assert_eq!(table.demand(0.9), Some(40));
    }

    #[test]
    fn a_new_measurement_replaces_the_old_and_the_stalest_leaves() {
        let mut full = PerformanceTable::default();
        (0..PerformanceTable::LIMIT as u32).for_each(|blocks| full.record(blocks, 0.1));
        full.record(0, 0.9);
        assert_eq!((full.entries.len(), full.best()), (PerformanceTable::LIMIT, 0.9));
        full.record(5000, 0.3);
        assert_eq!(full.entries.len(), PerformanceTable::LIMIT);
        let sizes: Vec<u32> = full.entries.iter().map(|entry| entry.blocks).collect();
        assert_eq!((sizes[0], sizes[1], sizes[PerformanceTable::LIMIT - 1]), (0, 2, 5000));
    }

    #[test]
    fn a_demand_is_the_first_size_that_reaches_the_goal() {
        let table = table(&[(1, 0.05), (37, 0.31), (90, 0.33), (400, 0.97)]);
        for goal in (6..97).map(|percent| f64::from(percent) / 100.0) {
            let demand = table.demand(goal).unwrap_or(0);
            let slow = (1..=400).find(|&blocks| table.hit_ratio_at(blocks) >= goal);
            assert_eq!(Some(demand), slow, "{goal}");
        }
    }
}
