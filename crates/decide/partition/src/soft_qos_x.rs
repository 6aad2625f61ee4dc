//! `soft-qos-x`: goals met from measured curves, spare blocks where they save most misses.
//!
//! Ours, not the paper's: a table that keeps the last hit ratio seen at a size takes one lucky
//! interval for the truth. A goal holds for the whole run. The demand is therefore the smallest
//! size that would have met it from the start, read from the mean of all curves so far. Its target
//! moves by the distance between the goal and the hit ratio so far. A goal in response time becomes
//! such a target by what hits and misses of the tenant took ([`ResponseRecord`]).
//!
//! An equal share is guaranteed first, or less where less keeps the goal; then larger demands of
//! goals in reach, in ascending order as in Patrick et al. ([`grants`]). A share does not fall
//! before the tenant is ahead of its goal by a margin. Spare blocks go where the recent curves
//! beyond the grants fall most. Moved blocks lose their contents, so that beyond guarantees few
//! blocks move at a time.

use crate::history::{Averages, Idle, KNOTS};
use crate::registry::{Entry, Need, Registered};
use crate::share::{self, steepest};
use crate::{CacheDivision, Partitioner, TenantView};
use cachewright_curve::Curve;
use cachewright_curve::signal::{Price, Prices};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{Nanos, Seed, declare};

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
#[derive(Clone, Debug, Snapshot)]
pub struct SoftQosX {
    #[snapshot(settings)]
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
                let smoothing = self.settings.smoothing;
                record.learn(goal, prices, tenant.accesses, tenant.hits, smoothing);
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
        place: usize,
        tenant: &TenantView,
        late: &Curve,
        share: u32,
        total_blocks: u32,
    ) -> Option<GoalClaim> {
        let ratios = self.ratios(place, tenant).filter(|_| !self.lent(place))?;
        let (whole, _) = self.whole[place].as_ref()?;
        // The average of an idle tenant fades, and says nothing new.
        let curves = if tenant.accesses > 0 { &[whole, late][..] } else { &[whole] };
        Some(GoalClaim::new(curves, ratios, share, total_blocks))
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
        let claims: Vec<Option<GoalClaim>> = parts
            .map(|((place, tenant), late)| self.claim(place, tenant, late, share, total_blocks))
            .collect();
        let (guarantees, grants) = grants(&claims, share, floor, total_blocks);
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

/// Part of the hits that a tenant can have at all, without which a size is nearly all that helps.
const NEARLY: f64 = 0.01;

/// What curves say of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outlook {
    /// Some size keeps it.
    InReach,
    /// The cache would keep it without first accesses.
    Open,
    /// The cache would not.
    OutOfReach,
}

/// Hit ratios of a tenant, by its goal and what it had so far.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratios {
    /// The goal.
    goal: f64,
    /// What keeps it from now on, with something to spare; 1 as long as nothing is spared.
    safe: f64,
    /// What makes up for the past for as long again, or what is left of it is enough.
    corrected: f64,
}

/// What a tenant claims for its goal, in blocks.
///
/// Curves hold first accesses, which no size saves, and most of them come early. So a goal that no
/// size keeps by the curves so far is a forecast and no verdict, as long as the whole cache would
/// keep it without first accesses. Each claim is therefore granted up to an equal share first,
/// which always fits. Then come claims beyond the share whose goals are in reach, in ascending
/// order as in Patrick et al., and last what is claimed for goals out of reach for good.
#[derive(Clone, Copy, Debug, PartialEq)]
struct GoalClaim {
    /// What keeps the goal safely, nearly all that helps as long as it is not safe; at least an
    /// equal share where no size keeps the goal.
    safe: u32,
    /// What is enough for the goal from now on.
    enough: u32,
    /// What also makes up for the past.
    corrected: u32,
    /// What curves say of the goal.
    outlook: Outlook,
    /// Hits that the whole cache would give, by the first curve. Of equal claims the one with more
    /// is granted first.
    hits: f64,
}

impl GoalClaim {
    /// The claim of a tenant by several curves, by the one that asks for most.
    fn new(curves: &[&Curve], ratios: Ratios, share: u32, total_blocks: u32) -> GoalClaim {
        let reached = |curve: &&Curve| smallest(curve, ratios.goal, total_blocks).is_some();
        let open = |curve: &&Curve| {
            let again = curve.accesses() as f64 - curve.misses(u32::MAX);
            curve.accesses() as f64 - curve.misses(total_blocks) >= ratios.goal * again
        };
        let outlook = match () {
            () if curves.iter().any(reached) => Outlook::InReach,
            () if curves.iter().any(open) => Outlook::Open,
            () => Outlook::OutOfReach,
        };
        let blocks_for = |ratio: f64| {
            let blocks = |curve: &&Curve| {
                let enough = smallest(curve, ratio, total_blocks);
                enough.unwrap_or_else(|| nearly_all(curve, total_blocks))
            };
            curves.iter().map(blocks).max().unwrap_or(0)
        };
        let minimum = if outlook == Outlook::InReach { 0 } else { share };
        let Ratios { goal, safe, corrected } = ratios;
        GoalClaim {
            safe: blocks_for(safe).max(minimum),
            enough: blocks_for(goal.min(corrected)),
            corrected: blocks_for(corrected),
            outlook,
            hits: curves
                .first()
                .map_or(0.0, |curve| curve.accesses() as f64 - curve.misses(total_blocks)),
        }
    }
}

/// The smallest size with a hit ratio of `target`, if it is at most `max_blocks`.
fn smallest(curve: &Curve, target: f64, max_blocks: u32) -> Option<u32> {
    fewest(curve, (1.0 - target) * curve.accesses() as f64, max_blocks)
}

/// The smallest size with nearly all hits that `max_blocks` give.
fn nearly_all(curve: &Curve, max_blocks: u32) -> u32 {
    let fewest_misses = curve.misses(max_blocks);
    let misses = fewest_misses + NEARLY * (curve.accesses() as f64 - fewest_misses);
    fewest(curve, misses, max_blocks).unwrap_or(max_blocks)
}

/// The smallest size with at most so many misses, if it is at most `max_blocks`.
fn fewest(curve: &Curve, misses: f64, max_blocks: u32) -> Option<u32> {
    let (mut low, mut high) = (0, max_blocks.min(curve.largest_blocks()));
    if curve.misses(high) > misses {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if curve.misses(middle) <= misses { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// What is guaranteed and what is granted of the claims, at least the floor to each tenant. `share`
/// is an equal share or less, and at least the floor. A guarantee is part of a grant: the share,
/// and what is enough for goals in reach.
fn grants(
    claims: &[Option<GoalClaim>],
    share: u32,
    floor: u32,
    total_blocks: u32,
) -> (Vec<u32>, Vec<u32>) {
    let claimed = |outlook: Outlook, blocks: fn(GoalClaim) -> u32, cut: u32| {
        let own = move |claim: &Option<GoalClaim>| claim.filter(|claim| claim.outlook == outlook);
        claims.iter().map(move |claim| own(claim).map_or(0, |claim| blocks(claim).min(cut)))
    };
    let hits = |tenant: usize| claims[tenant].map_or(0.0, |claim| claim.hits);
    let mut grants = vec![floor; claims.len()];
    let mut free = total_blocks - floor * claims.len() as u32;
    let mut grant = |grants: &mut [u32], claimed: &mut dyn Iterator<Item = u32>| {
        let mut wanted: Vec<(u32, usize)> = claimed.zip(0..).collect();
        wanted.sort_unstable_by(|(blocks, tenant), (others, other)| {
            let more = hits(*other).total_cmp(&hits(*tenant));
            blocks.cmp(others).then(more).then(tenant.cmp(other))
        });
        for (blocks, tenant) in wanted {
            let more = blocks.saturating_sub(grants[tenant]);
            if more <= free {
                grants[tenant] += more;
                free -= more;
            }
        }
    };
    let safe = |claim: GoalClaim| claim.safe;
    grant(&mut grants, &mut claimed(Outlook::InReach, safe, share));
    grant(&mut grants, &mut claimed(Outlook::Open, safe, share));
    grant(&mut grants, &mut claimed(Outlook::InReach, |claim| claim.enough, u32::MAX));
    let guarantees = grants.clone();
    grant(&mut grants, &mut claimed(Outlook::OutOfReach, safe, share));
    grant(&mut grants, &mut claimed(Outlook::InReach, |claim| claim.corrected, u32::MAX));
    grant(&mut grants, &mut claimed(Outlook::Open, safe, u32::MAX));
    (guarantees, grants)
}

/// Misses allowed by one division are at most so many times those measured, or part of them.
const MAX_FACTOR: f64 = 2.0;
/// Share of requests that may be beyond the limit of a percentile.
const TAIL: f64 = 0.01;

/// What was promised of a tenant's response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
pub enum ResponseGoal {
    /// The mean of all requests is at most this.
    Mean(Nanos),
    /// 99 of 100 requests take at most this.
    P99(Nanos),
}

impl ResponseGoal {
    fn limit_ns(self) -> u64 {
        match self {
            ResponseGoal::Mean(limit) | ResponseGoal::P99(limit) => limit.0,
        }
    }
}

/// Requests and their times, older ones counting less.
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
struct Sums {
    hits: f64,
    hits_ns: f64,
    misses: f64,
    misses_ns: f64,
    /// Requests beyond the goal's limit.
    beyond: f64,
    blocks: f64,
    missed_blocks: f64,
}

impl Sums {
    /// The sums with those before at a `share`.
    fn after(self, before: Sums, share: f64) -> Sums {
        let sum = |now: f64, then: f64| now + share * then;
        Sums {
            hits: sum(self.hits, before.hits),
            hits_ns: sum(self.hits_ns, before.hits_ns),
            misses: sum(self.misses, before.misses),
            misses_ns: sum(self.misses_ns, before.misses_ns),
            beyond: sum(self.beyond, before.beyond),
            blocks: sum(self.blocks, before.blocks),
            missed_blocks: sum(self.missed_blocks, before.missed_blocks),
        }
    }

    fn requests(&self) -> f64 {
        self.hits + self.misses
    }
}

/// What a tenant's requests took, of late and in the whole run, and the hit ratio that its goal
/// needs by it. Units: nanoseconds; hit ratios of block accesses, 0 to 1.
///
/// The mean response is that of hits and that of misses, each by its share of requests. Both are
/// measured, so the share of misses that a goal allows is known. For a percentile, requests beyond
/// the limit are taken to grow with misses. Misses of blocks are taken to grow with misses of
/// requests. Both are wrong where queues form, so a division changes misses by at most
/// [`MAX_FACTOR`], and the next one sees what that did.
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
struct ResponseRecord {
    late: Sums,
    whole: Sums,
}

impl ResponseRecord {
    /// Adds an interval with `accesses` to blocks, of which `hits` hit; earlier ones keep
    /// `smoothing` of their weight.
    fn learn(
        &mut self,
        goal: ResponseGoal,
        prices: &Prices,
        accesses: u64,
        hits: u64,
        smoothing: f64,
    ) {
        let pair = |read: Price, write: Price| {
            ((read.count + write.count) as f64, read.sum_ns as f64 + write.sum_ns as f64)
        };
        let (hit, hits_ns) = pair(prices.read_hits, prices.write_hits);
        let (missed, misses_ns) = pair(prices.read_misses, prices.write_misses);
        let found = Sums {
            hits: hit,
            hits_ns,
            misses: missed,
            misses_ns,
            beyond: prices.responses.beyond(goal.limit_ns()) as f64,
            blocks: accesses as f64,
            missed_blocks: accesses.saturating_sub(hits) as f64,
        };
        self.late = found.after(self.late, smoothing);
        self.whole = found.after(self.whole, 1.0);
    }

    /// The hit ratio under which the goal holds from now on, which corrects that part of the
    /// distance so far; nothing before requests were answered.
    fn hit_ratio(&self, goal: ResponseGoal, correction: f64) -> Option<f64> {
        let (late, whole) = (&self.late, &self.whole);
        if late.requests() <= 0.0 || late.blocks <= 0.0 {
            return None;
        }
        let factor = match goal {
            ResponseGoal::Mean(limit) => {
                let goal_ns = limit.0 as f64;
                let so_far_ns = (whole.hits_ns + whole.misses_ns) / whole.requests();
                late.mean_factor(goal_ns + correction * (goal_ns - so_far_ns))
            }
            ResponseGoal::P99(_) => {
                let so_far = whole.beyond / whole.requests();
                let allowed = (TAIL + correction * (TAIL - so_far)).max(0.0);
                // Without a request beyond the limit there is half a one.
                allowed * late.requests() / late.beyond.max(0.5)
            }
        };
        let factor = factor.clamp(1.0 / MAX_FACTOR, MAX_FACTOR);
        // Without a missed block there is one, or misses could never grow.
        let miss_ratio = factor * late.missed_blocks.max(1.0) / late.blocks;
        Some(1.0 - miss_ratio.min(1.0))
    }
}

impl Sums {
    /// Misses that a mean of `target_ns` allows over those measured.
    fn mean_factor(&self, target_ns: f64) -> f64 {
        if self.misses <= 0.0 {
            let mean_ns = self.hits_ns / self.hits;
            return if mean_ns <= target_ns { MAX_FACTOR } else { 0.0 };
        }
        let miss_ns = self.misses_ns / self.misses;
        // Without hits, what a hit takes is not known: as little as nothing.
        let hit_ns = if self.hits > 0.0 { self.hits_ns / self.hits } else { 0.0 };
        if miss_ns <= hit_ns {
            return if miss_ns <= target_ns { MAX_FACTOR } else { 0.0 };
        }
        let allowed = ((target_ns - hit_ns) / (miss_ns - hit_ns)).clamp(0.0, 1.0);
        allowed * self.requests() / self.misses
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

    /// Requests of one block: `hits` of 1 ms and `misses` of 9 ms.
    fn prices(hits: u64, misses: u64) -> Prices {
        let mut prices = Prices::default();
        for (count, ns, behind) in [(hits, 1_000_000, 0), (misses, 9_000_000, 8_000_000)] {
            for _ in 0..count {
                let price =
                    if behind == 0 { &mut prices.read_hits } else { &mut prices.read_misses };
                price.add(ns, behind);
                prices.responses.add(ns);
            }
        }
        prices
    }

    fn record(goal: ResponseGoal, hits: u64, misses: u64) -> ResponseRecord {
        let mut record = ResponseRecord::default();
        record.learn(goal, &prices(hits, misses), hits + misses, hits, 0.8);
        record
    }

    #[test]
    fn a_mean_is_met_by_the_share_of_misses_that_it_allows() {
        // 3 ms are a quarter of the way from 1 ms to 9 ms.
        let goal = ResponseGoal::Mean(Nanos(3_000_000));
        let found = record(goal, 60, 40).hit_ratio(goal, 0.0);
        assert!((found.unwrap() - 0.75).abs() < 1e-12, "{found:?}");
        // The mean so far, 4.2 ms, is 1.2 ms too long: 1.8 ms next, a tenth of misses; but a
        // division halves the misses at most.
        let found = record(goal, 60, 40).hit_ratio(goal, 1.0);
        assert!((found.unwrap() - 0.8).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_percentile_is_met_by_as_many_misses_less_as_requests_beyond_it() {
        let goal = ResponseGoal::P99(Nanos(5_000_000));
        // 15 of 1,000 are beyond: a third of the misses is too much.
        let found = record(goal, 985, 15).hit_ratio(goal, 0.0);
        assert!((found.unwrap() - 0.99).abs() < 1e-12, "{found:?}");
        // None is: misses may double.
        let goal = ResponseGoal::P99(Nanos(50_000_000));
        let found = record(goal, 985, 15).hit_ratio(goal, 0.0);
        assert!((found.unwrap() - 0.97).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn goals_out_of_reach_and_goals_met_by_misses_move_by_a_factor() {
        let out = ResponseGoal::Mean(Nanos(500_000));
        assert_eq!(record(out, 60, 40).hit_ratio(out, 0.0), Some(0.8));
        let easy = ResponseGoal::Mean(Nanos(20_000_000));
        let found = record(easy, 60, 40).hit_ratio(easy, 0.0);
        assert!((found.unwrap() - 0.2).abs() < 1e-12, "{found:?}");
        assert_eq!(record(easy, 50, 0).hit_ratio(easy, 0.0), Some(1.0 - 2.0 / 50.0));
        assert_eq!(ResponseRecord::default().hit_ratio(easy, 1.0), None);
    }

    #[test]
    fn recent_times_count_more() {
        let goal = ResponseGoal::Mean(Nanos(3_000_000));
        let mut record = record(goal, 60, 40);
        let late = prices(80, 20);
        record.learn(goal, &late, 100, 80, 0.0);
        // By the second interval alone 25 of 100 may miss.
        let found = record.hit_ratio(goal, 0.0).unwrap();
        assert!((found - 0.75).abs() < 1e-12, "{found}");
    }

    fn claim(blocks: u32, outlook: Outlook) -> Option<GoalClaim> {
        Some(GoalClaim { safe: blocks, enough: blocks, corrected: blocks, outlook, hits: 0.0 })
    }

    #[test]
    fn first_accesses_make_a_goal_a_forecast_and_no_verdict() {
        // 60 of 100 are first accesses. No size has 50 hits, but a repeat finds 40 of 40 in 80.
        let early = curve(&[(0, 100.0), (80, 60.0)]);
        let behind = Ratios { goal: 0.5, safe: 1.0, corrected: 0.6 };
        // All 40 hits but 1 % of them: 39.6 of 40 hits are 79.2 of 80 blocks.
        let outlook = Outlook::Open;
        let all = GoalClaim { safe: 80, enough: 80, corrected: 80, outlook, hits: 40.0 };
        assert_eq!(GoalClaim::new(&[&early], behind, 50, 200), all);
        let claim = GoalClaim::new(&[&early], behind, 90, 200);
        assert_eq!(claim, GoalClaim { safe: 90, ..all }, "at least a share");
        // In 30 blocks 15 of 40 repeats hit: less than a half.
        let claim = GoalClaim::new(&[&early], behind, 15, 30);
        assert_eq!((claim.safe, claim.outlook), (30, Outlook::OutOfReach));
        // Nothing was used twice so far, which says nothing.
        let claim = GoalClaim::new(&[&curve(&[])], behind, 15, 30);
        assert_eq!((claim.safe, claim.outlook), (15, Outlook::Open));
    }

    #[test]
    fn the_curve_that_asks_for_most_counts_and_one_in_reach_is_enough() {
        let (whole, late) = (curve(&[(0, 100.0), (50, 0.0)]), curve(&[(0, 100.0), (40, 80.0)]));
        let ahead = Ratios { goal: 0.6, safe: 0.6, corrected: 0.5 };
        // 30 blocks by the mean. Lately no size has 60 hits; 40 blocks are all that helps.
        let found = GoalClaim::new(&[&whole, &late], ahead, 70, 100);
        let outlook = Outlook::InReach;
        let all = GoalClaim { safe: 40, enough: 40, corrected: 40, outlook, hits: 100.0 };
        assert_eq!(found, all);
        let found = GoalClaim::new(&[&whole], ahead, 70, 100);
        assert_eq!((found.safe, found.enough, found.corrected), (30, 25, 25));
        let behind = Ratios { goal: 0.6, safe: 1.0, corrected: 0.7 };
        let found = GoalClaim::new(&[&whole], behind, 70, 100);
        // 100 hits are 50 blocks, which is all that helps: a size has them all.
        assert_eq!((found.safe, found.enough, found.corrected), (50, 30, 35));
    }

    #[test]
    fn claims_up_to_an_equal_share_are_granted_to_all_then_larger_ones_in_reach() {
        let claims = [
            claim(80, Outlook::InReach),
            claim(50, Outlook::Open),
            claim(20, Outlook::InReach),
            None,
        ];
        // 30 + 30 + 20 + 1 leave 39 of 120: too little for 80, and the second asks for 50.
        let found = grants(&claims, 30, 1, 120);
        assert_eq!(found, (vec![30, 30, 20, 1], vec![30, 50, 20, 1]));
        // In 140 the first has its 80, and nothing beyond the share is left for a forecast.
        assert_eq!(grants(&claims, 35, 1, 140).1, [80, 35, 20, 1]);
        // Smaller demands come first beyond the share.
        let claims = [claim(70, Outlook::InReach), claim(60, Outlook::InReach), None];
        assert_eq!(grants(&claims, 33, 1, 100).1, [33, 60, 1]);
        // Of equal ones that with more hits, whichever place it has.
        let more = claim(60, Outlook::InReach).map(|claim| GoalClaim { hits: 9.0, ..claim });
        let claims = [claim(60, Outlook::InReach), more, None];
        assert_eq!(grants(&claims, 33, 1, 100).1, [33, 60, 1]);
    }

    #[test]
    fn a_goal_from_now_on_comes_first_then_one_out_of_reach_then_the_past() {
        let outlook = Outlook::InReach;
        let behind = Some(GoalClaim { safe: 30, enough: 40, corrected: 70, outlook, hits: 0.0 });
        let claims = [behind, claim(30, Outlook::OutOfReach), None];
        assert_eq!(grants(&claims, 30, 1, 90).1, [40, 30, 1]);
        assert_eq!(grants(&claims, 40, 1, 120).1, [70, 30, 1]);
    }

    #[test]
    fn a_goal_out_of_reach_for_good_has_what_others_leave() {
        let claims = [claim(90, Outlook::OutOfReach), claim(60, Outlook::InReach)];
        let found = grants(&claims, 50, 1, 100);
        assert_eq!(found, (vec![1, 60], vec![1, 60]), "40 are less than its share");
        assert_eq!(grants(&claims, 60, 1, 120).1, [60, 60]);
        assert_eq!(grants(&[], 0, 0, 10).1, [0; 0]);
    }
}
