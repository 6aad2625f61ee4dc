//! `soft-qos-x`: goals met from measured curves, spare blocks where they save most misses.
//!
//! For: the goals of `soft-qos` without its performance tables. Must never know: how curves were
//! measured. Units: blocks; hit ratios from 0 to 1.
//!
//! Ours, not the paper's: a table that keeps the last hit ratio seen at a size takes one lucky
//! interval for the truth. A goal holds for the whole run. The demand is therefore the smallest
//! size that would have met it from the start, read from the mean of all curves so far. Its target
//! moves by the distance between the goal and the hit ratio so far. A goal in response time becomes
//! such a target by what hits and misses of the tenant took ([`response_goals`]).
//!
//! An equal share is guaranteed first, or less where less keeps the goal; then larger demands of
//! goals in reach, in ascending order as in Patrick et al. ([`goal_grants`]). A share does not fall
//! before the tenant is ahead of its goal by a margin. Spare blocks go where the recent curves
//! beyond the grants fall most. Moved blocks lose their contents, so that beyond guarantees few
//! blocks move at a time.
//!
//! [`goal_grants`]: crate::goal_grants
//! [`response_goals`]: crate::response_goals

use crate::averages::{Averages, KNOTS};
use crate::entry::{Entry, Need, Registered};
use crate::goal_grants::{GoalClaim, Ratios, grants, smallest};
use crate::idle::Idle;
use crate::response_goals::ResponseRecord;
use crate::steepest::steepest;
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_curve::Curve;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `soft-qos-x`.
    pub struct SoftQosXSettings {
        /// share of earlier intervals in the averaged curve that divides spare blocks
        smoothing: f64 = 0.8, "ratio", 0.0 ..= 0.99;
        /// part of the distance to its goal so far that a tenant's next target corrects
        correction: f64 = 1.0, "ratio", 0.0 ..= 10.0;
        /// part of its goal by which a tenant is ahead of it before its guarantee falls
        margin: f64 = 0.05, "ratio", 0.0 ..= 1.0;
        /// idle intervals after which all blocks of a tenant but one are lent; 0 is never
        lend_after: u32 = 10, "intervals", 0 ..= 1000000;
        /// largest share of the cache that one division moves, beyond guarantees
        most_moved: f64 = 0.05, "ratio", 0.001 ..= 1.0;
    }
}

/// Goals met from curves.
#[derive(Clone, Debug)]
pub struct SoftQosX {
    settings: SoftQosXSettings,
    /// Averages of recent curves.
    late: Averages,
    /// The mean of each tenant's curves so far, and their number.
    whole: Vec<Option<(Curve, u32)>>,
    /// Accesses and hits of each tenant so far.
    totals: Vec<(u64, u64)>,
    /// Response times of the tenants with goals in them.
    responses: Vec<ResponseRecord>,
    idle: Idle,
    /// Quotas of the last division; empty before the first.
    last: Vec<u32>,
}

impl Registered for SoftQosX {
    type Settings = SoftQosXSettings;
    const ENTRY: Entry = Entry {
        name: "soft-qos-x",
        doc: "goals first, by curves measured in the run; the rest where curves fall most",
        source: "ours, after Patrick et al. (soft-qos) and Wang et al. (hull)",
        needs: &[Need::Interval, Need::Goal, Need::GoalResponses, Need::Curve],
    };

    fn new(settings: &SoftQosXSettings, tenants: usize, _: Seed) -> Self {
        SoftQosX {
            settings: settings.clone(),
            late: Averages::default(),
            whole: vec![None; tenants],
            totals: vec![(0, 0); tenants],
            responses: vec![ResponseRecord::default(); tenants],
            idle: Idle::default(),
            last: Vec::new(),
        }
    }
}

impl SoftQosX {
    fn learn(&mut self, tenants: &[TenantView]) {
        self.late.learn(tenants, self.settings.smoothing);
        self.idle.learn(tenants);
        self.totals.resize(tenants.len(), (0, 0));
        self.whole.resize(tenants.len(), None);
        self.learn_responses(tenants);
        for ((tenant, total), whole) in tenants.iter().zip(&mut self.totals).zip(&mut self.whole) {
            *total = (total.0 + tenant.accesses, total.1 + tenant.hits);
            let Some(curve) = tenant
                .signals
                .curves
                .map(|curves| &curves.all)
                .filter(|curve| curve.accesses() > 0)
            else {
                continue;
            };
            *whole = Some(match whole.take() {
                Some((mean, count)) => {
                    let share = f64::from(count) / f64::from(count + 1);
                    (curve.blended(&mean, share, KNOTS), count + 1)
                }
                None => (curve.resampled(KNOTS), 1),
            });
        }
    }

    fn learn_responses(&mut self, tenants: &[TenantView]) {
        self.responses.resize(tenants.len(), ResponseRecord::default());
        for (tenant, record) in tenants.iter().zip(&mut self.responses) {
            if let Some((goal, prices)) = tenant.facts.goal_response().zip(tenant.signals.prices) {
                let accesses = (tenant.accesses, tenant.hits);
                record.learn(goal, prices, accesses, self.settings.smoothing);
            }
        }
    }

    /// The hit ratios that keep a tenant's goal.
    fn ratios(&self, place: usize, tenant: &TenantView) -> Option<Ratios> {
        let (goal, corrected) = match tenant.facts.goal_response() {
            Some(goal) => {
                let ratio = |correction| self.responses[place].hit_ratio(goal, correction);
                ratio(0.0).zip(ratio(self.settings.correction))?
            }
            None => {
                let goal = tenant.facts.goal_hit_ratio()?;
                let (accesses, hits) = self.totals[place];
                let so_far = if accesses == 0 { goal } else { hits as f64 / accesses as f64 };
                (goal, (goal + self.settings.correction * (goal - so_far)).clamp(0.0, 1.0))
            }
        };
        // Ahead by the margin, the curves decide; before that, all that helps.
        let is_safe = corrected <= goal * (1.0 - self.settings.margin);
        Some(Ratios { goal, safe: if is_safe { goal } else { 1.0 }, corrected })
    }

    /// Whether a tenant's blocks are lent.
    fn lent(&self, place: usize) -> bool {
        self.idle.beyond(place, self.settings.lend_after)
    }

    /// What a tenant claims; nothing without a goal, without a curve, and while it is idle.
    fn claim(
        &self,
        (place, tenant): (usize, &TenantView),
        late: &Curve,
        shares: (u32, u32),
    ) -> Option<GoalClaim> {
        let ratios = self.ratios(place, tenant).filter(|_| !self.lent(place))?;
        let (whole, _) = self.whole[place].as_ref()?;
        // The average of an idle tenant fades, and says nothing new.
        let curves = if tenant.accesses > 0 { &[whole, late][..] } else { &[whole] };
        Some(GoalClaim::new(curves, ratios, shares))
    }
}

impl Partitioner for SoftQosX {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.learn(tenants);
        let Some(curves) = self.late.all() else {
            self.last = share::equal(total_blocks, tenants.len());
            return CacheDivision::PerTenant(self.last.clone());
        };
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let lent: Vec<bool> = (0..tenants.len()).map(|place| self.lent(place)).collect();
        let share = total_blocks / tenants.len().max(1) as u32;
        let parts = tenants.iter().enumerate().zip(&curves);
        let claims: Vec<Option<GoalClaim>> =
            parts.map(|(tenant, late)| self.claim(tenant, late, (share, total_blocks))).collect();
        let (guarantees, grants) = grants(&claims, (share, floor), total_blocks);
        let mut quotas = steepest(&curves, total_blocks, &grants, &lent);
        if self.last.len() == quotas.len() {
            quotas = share::towards(&self.last, &quotas, self.settings.most_moved);
            share::raise(&mut quotas, &guarantees);
        }
        self.last.clone_from(&quotas);
        CacheDivision::PerTenant(quotas)
    }

    fn goal_blocks(&self, tenants: &[TenantView]) -> Vec<Option<u32>> {
        let blocks = |(place, tenant): (usize, &TenantView)| {
            let goal = self.ratios(place, tenant)?.goal;
            let (curve, _) = self.whole.get(place)?.as_ref()?;
            smallest(curve, goal, u32::MAX)
        };
        tenants.iter().enumerate().map(blocks).collect()
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(1, tenants, total_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TenantConstants, TenantGoal};
    use cachewright_curve::signal::TenantSignals;
    use cachewright_curve::{Curves, Provenance};

    fn curve(knots: &[(u32, f64)]) -> Curve {
        Curve::from_knots(knots.iter().copied(), 100, Provenance::Exact)
    }

    /// A tenant that reads only, and its goal.
    struct Measured {
        facts: TenantConstants,
        curves: Curves,
    }

    fn measured(curve: &Curve, goal: f64) -> Measured {
        let goal = Some(TenantGoal { hit_ratio: Some(goal), ..TenantGoal::default() });
        let (all, reads) = (curve.clone(), curve.clone());
        let curves = Curves { all, reads, writes: Curve::from_knots([], 0, Provenance::Exact) };
        Measured { facts: TenantConstants { goal, ..TenantConstants::default() }, curves }
    }

    fn view(measured: &Measured, hits: u64) -> TenantView<'_> {
        TenantView {
            facts: &measured.facts,
            accesses: 100,
            hits,
            signals: TenantSignals { curves: Some(&measured.curves), ..TenantSignals::default() },
            ..TenantView::default()
        }
    }

    /// The quotas of a division.
    fn quotas(scheme: &mut SoftQosX, views: &[TenantView], total_blocks: u32) -> Vec<u32> {
        match scheme.divide(views, total_blocks) {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("quotas of its own for each, not {other:?}"),
        }
    }

    #[test]
    fn demands_first_then_the_steepest_curve() {
        let steep = measured(&curve(&[(0, 100.0), (100, 0.0)]), 0.2);
        let flat = measured(&curve(&[(0, 100.0), (100, 80.0)]), 0.1);
        let settings = SoftQosXSettings::default();
        let mut scheme = SoftQosX::new(&settings, 2, Seed(1));
        // The steep curve is ahead, and 20 blocks keep its goal. The flat one has its share of 50.
        // The other blocks save more on the steep curve.
        assert_eq!(quotas(&mut scheme, &[view(&steep, 30), view(&flat, 10)], 100), [50, 50]);
        // It had 7 of 100 so far and aims at 13 of 100 next, in 65 blocks; 5 of 100 move at a time.
        let views = [view(&steep, 30), view(&flat, 4)];
        assert_eq!(quotas(&mut scheme, &views, 100), [45, 55]);
        assert_eq!(quotas(&mut scheme, &views, 100), [40, 60]);
    }

    #[test]
    fn a_tenant_of_first_accesses_keeps_its_share_beside_a_large_demand() {
        let first = measured(&curve(&[]), 0.3);
        let large = measured(&curve(&[(0, 100.0), (100, 0.0)]), 0.8);
        let mut scheme = SoftQosX::new(&SoftQosXSettings::default(), 2, Seed(1));
        let views = [view(&first, 0), view(&large, 50)];
        (0..9).for_each(|_| assert_eq!(quotas(&mut scheme, &views, 100), [50, 50]));
        // From the second interval of repeats on the goal is in reach lately, and 10 blocks are all
        // that helps. The other has the 80 that it needs at once, and what is left by 5 of 100.
        let repeats = measured(&curve(&[(0, 100.0), (10, 0.0)]), 0.3);
        let views = [view(&repeats, 100), view(&large, 50)];
        let found: Vec<u32> = (0..10).map(|_| quotas(&mut scheme, &views, 100)[0]).collect();
        assert_eq!(found, [50, 19, 14, 10, 10, 10, 10, 10, 10, 10], "one block is a remainder");
    }

    #[test]
    fn a_tenant_that_stops_lends_its_blocks_and_has_them_back_at_once() {
        let busy = measured(&curve(&[(0, 100.0), (60, 0.0)]), 0.5);
        let silent = measured(&Curve::from_knots([], 0, Provenance::Exact), 0.5);
        let settings = SoftQosXSettings::default();
        let mut scheme = SoftQosX::new(&settings, 2, Seed(1));
        let mut quotas = |second: TenantView| match scheme.divide(&[view(&busy, 50), second], 60) {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("quotas of its own for each, not {other:?}"),
        };
        let gone = TenantView { accesses: 0, ..view(&silent, 0) };
        let awake = quotas(view(&busy, 50));
        assert_eq!(awake, [30, 30]);
        quotas(view(&busy, 50));
        let asleep: Vec<u32> = (0..20).map(|_| quotas(gone)[1]).collect();
        assert_eq!(asleep[..9], [30; 9]);
        assert_eq!(asleep[9..12], [27, 24, 21], "a twentieth of the cache each time");
        assert_eq!(asleep[18..], [1; 2]);
        assert_eq!(quotas(view(&busy, 50)), awake);
    }

    #[test]
    fn a_goal_out_of_reach_leaves_reachable_goals_met() {
        let never = measured(&curve(&[(0, 100.0), (400, 50.0)]), 0.9);
        let easy = measured(&curve(&[(0, 100.0), (10, 40.0), (20, 35.0)]), 0.6);
        let settings = SoftQosXSettings::default();
        let mut scheme = SoftQosX::new(&settings, 2, Seed(1));
        let views = [view(&never, 50), view(&easy, 60)];
        assert_eq!(scheme.divide(&views, 100), CacheDivision::PerTenant(vec![80, 20]));
    }
}
