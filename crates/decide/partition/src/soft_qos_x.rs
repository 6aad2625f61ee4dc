//! `soft-qos-x`: goals met from measured curves, the rest where it saves most.
//!
//! For: the question of `soft-qos`, answered without its performance tables. Must never know: how
//! curves were measured. Units: blocks; hit ratios from 0 to 1. Ours, not the paper's: a table that
//! keeps the last hit ratio seen at a size takes one lucky interval for the truth; a curve measured
//! at every interval and averaged does not. Demands are read off that curve, corrected by how far
//! the tenant is from its goal since it began (a goal is judged over the whole run); they are
//! granted in ascending order as in Patrick et al.; what is left goes, block by block, where the
//! curves beyond the grants fall most, to tenants whose goal cannot be met as to all others.

use crate::averages::Averages;
use crate::idle::Idle;
use crate::registry::{Entry, Need, Registered};
use crate::{Partitioner, Quotas, TenantView, share};
use cachewright_curve::Curve;
use cachewright_curve::hull::{Hull, divide};
use cachewright_types::{Seed, settings};

settings! {
    /// Settings of `soft-qos-x`.
    pub struct SoftQosXSettings {
        /// share of earlier intervals in the averaged curve
        smoothing: f64 = 0.8, "ratio", 0.0 ..= 0.99;
        /// how much of the distance from its goal so far a tenant's next target makes up for
        correction: f64 = 1.0, "ratio", 0.0 ..= 10.0;
        /// intervals without an access after which a tenant's blocks, but one, are lent; 0 is never
        lend_after: u32 = 10, "intervals", 0 ..= 1000000_u32;
    }
}

/// Goals from curves.
#[derive(Clone, Debug)]
pub struct SoftQosX {
    settings: SoftQosXSettings,
    averages: Averages,
    /// Accesses and hits of each tenant so far.
    totals: Vec<(u64, u64)>,
    idle: Idle,
}

impl Registered for SoftQosX {
    type Settings = SoftQosXSettings;
    const ENTRY: Entry = Entry {
        name: "soft-qos-x",
        doc: "goals met from curves measured while running, the rest where curves fall most",
        source: "ours, after Patrick et al. (soft-qos) and Wang et al. (hull)",
        needs: &[Need::Interval, Need::Goal, Need::Curve],
    };

    fn new(settings: &SoftQosXSettings, tenants: usize, _: Seed) -> Self {
        SoftQosX {
            settings: settings.clone(),
            averages: Averages::default(),
            totals: vec![(0, 0); tenants],
            idle: Idle::default(),
        }
    }
}

impl SoftQosX {
    /// The hit ratio to aim at next: the goal, moved by how far it was missed or passed so far.
    fn target(&self, tenant: &TenantView, (accesses, hits): (u64, u64)) -> Option<f64> {
        let goal = tenant.goal_hit_ratio?;
        let so_far = if accesses == 0 { goal } else { hits as f64 / accesses as f64 };
        Some((goal + self.settings.correction * (goal - so_far)).clamp(0.0, 1.0))
    }
}

impl Partitioner for SoftQosX {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> Quotas {
        self.averages.learn(tenants, self.settings.smoothing);
        self.idle.learn(tenants);
        self.totals.resize(tenants.len(), (0, 0));
        for (total, tenant) in self.totals.iter_mut().zip(tenants) {
            *total = (total.0 + tenant.accesses, total.1 + tenant.hits);
        }
        let Some(curves) = self.averages.all() else {
            return Quotas::PerTenant(share::equal(total_blocks, tenants.len()));
        };
        let lent = |place: usize| self.idle.beyond(place, self.settings.lend_after);
        let demands: Vec<u32> = tenants
            .iter()
            .zip(&self.totals)
            .zip(&curves)
            .enumerate()
            .map(|(place, ((tenant, total), curve))| {
                let target = self.target(tenant, *total).filter(|_| !lent(place));
                target.map_or(0, |target| demand(curve, target))
            })
            .collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let saved: Vec<f64> = curves
            .iter()
            .zip(&demands)
            .map(|(curve, demand)| curve.misses(floor) - curve.misses(*demand))
            .collect();
        let grants = grant(&demands, &saved, floor, total_blocks);
        let parts = curves.iter().zip(&grants);
        let hulls: Vec<Hull> = parts.map(|(curve, grant)| Hull::beyond(curve, *grant)).collect();
        let weights: Vec<f64> =
            (0..tenants.len()).map(|place| if lent(place) { 0.0 } else { 1.0 }).collect();
        let mut quotas = divide(&hulls, &weights, total_blocks, &grants);
        let left = total_blocks - quotas.iter().sum::<u32>();
        let spare = share::proportional(left, &weights);
        quotas.iter_mut().zip(spare).for_each(|(quota, more)| *quota += more);
        Quotas::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(1, tenants, total_blocks)
    }
}

/// The smallest size with a hit ratio of `target`, or the smallest with the best there is.
fn demand(curve: &Curve, target: f64) -> u32 {
    let largest = curve.largest_blocks();
    let most_misses = (1.0 - target) * curve.accesses() as f64;
    let most_misses = most_misses.max(curve.misses(largest));
    let (mut low, mut high) = (0, largest);
    while low < high {
        let middle = low + (high - low) / 2;
        if curve.misses(middle) <= most_misses { high = middle } else { low = middle + 1 }
    }
    high
}

/// Demands in ascending order while they fit, the floor to everyone else; among equal demands the
/// one that saves more misses first.
fn grant(demands: &[u32], saved: &[f64], floor: u32, total_blocks: u32) -> Vec<u32> {
    let mut grants = vec![floor; demands.len()];
    let mut free = total_blocks - floor * demands.len() as u32;
    let mut order: Vec<usize> = (0..demands.len()).collect();
    let more = |a: usize, b: usize| saved[b].total_cmp(&saved[a]);
    order.sort_by(|&a, &b| demands[a].cmp(&demands[b]).then(more(a, b)));
    for tenant in order {
        let more = demands[tenant].saturating_sub(floor);
        if more <= free {
            grants[tenant] += more;
            free -= more;
        }
    }
    grants
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::Provenance;

    fn curve(knots: &[(u32, f64)]) -> Curve {
        Curve::from_knots(knots.iter().copied(), 100, Provenance::Exact)
    }

    fn view<'a>(curve: &'a Curve, goal: f64, hits: u64) -> TenantView<'a> {
        TenantView {
            name: "tenant",
            weight: 1.0,
            accesses: 100,
            hits,
            write_share: 0.0,
            quota_blocks: 0,
            occupancy_blocks: 0,
            curve: Some(curve),
            goal_hit_ratio: Some(goal),
            profile: &[],
        }
    }

    #[test]
    fn demands_first_then_the_steepest_curve() {
        let steep = curve(&[(0, 100.0), (100, 0.0)]);
        let flat = curve(&[(0, 100.0), (100, 80.0)]);
        let mut scheme = SoftQosX::new(&SoftQosXSettings::default(), 2, Seed(1));
        // The flat one asks for a tenth: 50 blocks; what is left saves more with the steep one.
        let views = [view(&steep, 0.2, 20), view(&flat, 0.1, 10)];
        assert_eq!(scheme.divide(&views, 100), Quotas::PerTenant(vec![50, 50]));
        // It had less than its goal so far: it aims higher to make up for it.
        let views = [view(&steep, 0.2, 20), view(&flat, 0.1, 4)];
        let Quotas::PerTenant(quotas) = scheme.divide(&views, 100) else { panic!("quotas") };
        assert_eq!(quotas, [35, 65], "7 of 100 so far: 13 of 100 next");
    }

    #[test]
    fn a_tenant_that_stops_lends_its_blocks_and_has_them_back_at_once() {
        let busy = curve(&[(0, 100.0), (60, 0.0)]);
        let silent = Curve::from_knots([], 0, Provenance::Exact);
        let mut scheme = SoftQosX::new(&SoftQosXSettings::default(), 2, Seed(1));
        let mut quotas =
            |second: TenantView| match scheme.divide(&[view(&busy, 0.5, 50), second], 60) {
                Quotas::PerTenant(quotas) => quotas,
                Quotas::Shared => panic!("quotas of its own for each"),
            };
        let gone = TenantView { accesses: 0, ..view(&silent, 0.5, 0) };
        let awake = quotas(view(&busy, 0.5, 50));
        assert_eq!(awake, [30, 30]);
        quotas(view(&busy, 0.5, 50));
        let asleep: Vec<u32> = (0..12).map(|_| quotas(gone)[1]).collect();
        assert_eq!(asleep[..9], [30; 9]);
        assert_eq!(asleep[9..], [1; 3]);
        assert_eq!(quotas(view(&busy, 0.5, 50)), awake);
    }

    #[test]
    fn a_goal_out_of_reach_starves_nobody_who_can_be_served() {
        let never = curve(&[(0, 100.0), (400, 50.0)]);
        let easy = curve(&[(0, 100.0), (10, 40.0), (20, 35.0)]);
        let mut scheme = SoftQosX::new(&SoftQosXSettings::default(), 2, Seed(1));
        let views = [view(&never, 0.9, 50), view(&easy, 0.6, 60)];
        assert_eq!(scheme.divide(&views, 100), Quotas::PerTenant(vec![80, 20]));
    }
}
