//! The control loop: what was measured goes to the partitioner, its quotas go to the cache.
//!
//! A division sees the interval that has ended and nothing later. Units: blocks.

use cachewright_cache::Quotas;
use cachewright_curve::Curves;
use cachewright_curve::signal::Signals;
use cachewright_partition::talus::{QuotaSplit, Talus, convex};
use cachewright_partition::{
    CacheDivision, Models, Partitioner, Requirement, TenantConstants, TenantView, VictimSelector,
    share,
};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::measure::Counts;

/// A partitioner with what it needs to remember between intervals.
#[derive(Snapshot)]
pub struct Control {
    partitioner: Box<dyn Partitioner>,
    tenants: Vec<TenantConstants>,
    total_blocks: u32,
    /// The largest quota of each tenant, if a layout bounds them.
    limits: Option<Vec<u32>>,
    before: Vec<Counts>,
    churn: QuotaChurn,
    /// Mean response times to come, by tenant and interval.
    #[snapshot(settings)]
    futures_ns: Vec<Vec<Vec<f64>>>,
    /// The interval that begins with the next division.
    interval: usize,
    /// What each tenant makes use of by the last division.
    required: Vec<Requirement>,
    /// Blocks that keep each goal, by the last division; empty where that is not known.
    goal_blocks: Vec<Option<u32>>,
    /// Which tenants are absent; empty where all are present.
    absent: Vec<bool>,
    /// How quotas are split in shadow partitions, if they are.
    #[snapshot(each)]
    shadows: Option<ShadowPartitions>,
}

impl Control {
    /// A control loop over `tenants` and `total_blocks` of cache.
    pub fn new(
        partitioner: Box<dyn Partitioner>,
        tenants: Vec<TenantConstants>,
        total_blocks: u32,
    ) -> Control {
        let before = vec![Counts::default(); tenants.len()];
        Control {
            partitioner,
            tenants,
            total_blocks,
            limits: None,
            before,
            churn: QuotaChurn::new(total_blocks),
            futures_ns: Vec::new(),
            interval: 0,
            required: Vec::new(),
            goal_blocks: Vec::new(),
            absent: Vec::new(),
            shadows: None,
        }
    }

    /// The same with each tenant's quota split in two shadow partitions; the partitioner reads the
    /// hulls of curves.
    pub fn with_shadows(self) -> Control {
        Control { shadows: Some(ShadowPartitions::default()), ..self }
    }

    /// Hands divisions what is to come, by tenant and interval: the mean response in ns alone with
    /// 0, 1, ... granules of the cache. Intervals beyond the table are unknown.
    pub fn set_futures(&mut self, table: Vec<Vec<Vec<f64>>>) {
        self.futures_ns = table;
    }

    /// Bounds every tenant's quota from now on: what is cut goes to tenants below their bounds.
    pub fn bound(&mut self, limits: Vec<u32>) {
        self.limits = Some(limits);
    }

    /// Quotas within the bounds.
    pub fn within(&self, quotas: Quotas) -> Quotas {
        match (quotas, &self.limits) {
            (Quotas::PerTenant(each), Some(limits)) => {
                Quotas::PerTenant(share::within(&each, limits))
            }
            (Quotas::Pools { of: pool_of, blocks }, Some(limits)) => {
                // Each tenant of a pool may fill it.
                let min_limit = |pool: usize| {
                    let users = pool_of.iter().zip(limits);
                    let users = users.filter(|(own, _)| usize::from(**own) == pool);
                    users.map(|(_, limit)| *limit).min().unwrap_or(u32::MAX)
                };
                let limits: Vec<u32> = (0..blocks.len()).map(min_limit).collect();
                let blocks = share::within(&blocks, &limits);
                Quotas::Pools { of: pool_of, blocks }
            }
            (quotas, _) => quotas,
        }
    }

    /// The quotas before anything is measured.
    pub fn first(&mut self) -> Quotas {
        let now = vec![TenantUsage::default(); self.tenants.len()];
        let Some(quotas) = self.query(&now, &Signals::default()) else {
            return Quotas::PerTenant(vec![0; self.tenants.len()]);
        };
        self.churn.next(&quotas);
        quotas
    }

    /// Asks the partitioner for the quotas of the interval that begins.
    fn query(&mut self, now: &[TenantUsage], signals: &Signals) -> Option<Quotas> {
        debug_assert_eq!(now.len(), self.tenants.len(), "every tenant has a standing");
        let hulls: Vec<Curves> = match &self.shadows {
            Some(shadows) => shadows.hulls(&signals.curves),
            None => Vec::new(),
        };
        let view = |(tenant, facts): (usize, _)| {
            let standing: TenantUsage = now.get(tenant).copied().unwrap_or_default();
            let before: &Counts = &self.before[tenant];
            let future = self.futures_ns.get(tenant).and_then(|rows| rows.get(self.interval));
            TenantView {
                facts,
                interval: self.interval as u64,
                accesses: standing.counts.accesses().saturating_sub(before.accesses()),
                hits: standing.counts.hits().saturating_sub(before.hits()),
                quota_blocks: standing.quota_blocks,
                occupancy_blocks: standing.held_blocks,
                absent: self.absent.get(tenant).copied().unwrap_or(false),
                signals: signals.of_tenant(tenant),
                future_ns: future.map(Vec::as_slice),
            }
        };
        let mut views: Vec<TenantView> = self.tenants.iter().enumerate().map(view).collect();
        if let Some(shadows) = &mut self.shadows {
            shadows.learn(&mut views, &hulls);
        }
        let divided = self.partitioner.divide(&views, self.total_blocks);
        self.interval += 1;
        let quotas = engine_quotas(divided, self.total_blocks)?;
        let pools = quotas.pools_of(views.len());
        let each: Vec<u32> = pools.iter().map(|pool| quotas.blocks()[usize::from(*pool)]).collect();
        self.required = self.partitioner.requirements(&views, &each);
        self.goal_blocks = self.partitioner.goal_blocks(&views);
        if let Some(shadows) = &mut self.shadows {
            shadows.split(&each);
        }
        Some(quotas)
    }

    /// Divisions from now on take these tenants to be absent.
    pub fn set_absent(&mut self, absent: Vec<bool>) {
        self.absent = absent;
    }

    /// Divides anew within an interval, because tenants have come or gone. The bounds are not yet
    /// applied.
    pub fn redivide(&mut self, now: &[TenantUsage]) -> Option<Quotas> {
        let divided = self.query(now, &Signals::default());
        self.interval -= 1;
        divided
    }

    /// Other bounds from now on, and quotas within them that hold until the next division.
    pub fn rebound(&mut self, limits: Vec<u32>, quotas: Quotas) -> Quotas {
        self.bound(limits);
        let quotas = self.within(quotas);
        self.churn.next(&quotas);
        quotas
    }

    /// The division after an interval in which `signals` were measured; nothing where space follows
    /// requests.
    pub fn next(&mut self, now: &[TenantUsage], signals: &Signals) -> Option<Quotas> {
        let divided = self.query(now, signals);
        self.before.clear();
        self.before.extend(now.iter().map(|standing| standing.counts));
        self.before.resize(self.tenants.len(), Counts::default());
        let quotas = self.within(divided?);
        self.churn.next(&quotas);
        Some(quotas)
    }

    /// Gives the partitioner other models, which count from the next division on. Errors: those of
    /// [`Partitioner::learn`]; the models before stay in use.
    pub fn load_models(&mut self, models: &Models) -> Result<(), String> {
        self.partitioner.learn(models)
    }

    /// Tenants.
    pub fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// What each tenant makes use of by the last division; nothing where space follows requests.
    pub fn required(&self) -> &[Requirement] {
        &self.required
    }

    /// Blocks that keep the goal of each tenant, by what was measured until the last division:
    /// nothing for a tenant without a goal, and where no size keeps it. Empty where the partitioner
    /// does not know.
    pub fn goal_blocks(&self) -> &[Option<u32>] {
        &self.goal_blocks
    }

    /// How the quota of each tenant is split by the last division; empty where it is whole.
    pub fn splits(&self) -> &[QuotaSplit] {
        self.shadows.as_ref().map_or(&[], ShadowPartitions::splits)
    }

    /// Chooses evictions where tenants' lists are elastic; no tenant has a quota then.
    pub fn victim_selector(&self) -> Option<Box<dyn VictimSelector>> {
        self.partitioner.victim_selector()
    }

    /// Blocks of the whole cache.
    pub fn total_blocks(&self) -> u32 {
        self.total_blocks
    }

    /// What divisions moved so far; nothing under a shared pool.
    pub fn churn(&self) -> Option<ChurnTotals> {
        self.churn.totals()
    }
}

/// The engine's quotas for a division; nothing for elastic lists, which have no quotas.
fn engine_quotas(division: CacheDivision, total_blocks: u32) -> Option<Quotas> {
    match division {
        CacheDivision::Shared => Some(Quotas::Shared(total_blocks)),
        CacheDivision::PerTenant(each) => Some(Quotas::PerTenant(each)),
        CacheDivision::Pools { pool_of, blocks } => Some(Quotas::Pools { of: pool_of, blocks }),
        CacheDivision::Elastic => None,
    }
}

/// What a division is decided from: a tenant's usage and limits in a cache. Those of several
/// engines are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantUsage {
    /// Its counters since the cache was opened.
    pub counts: Counts,
    /// Blocks that it may hold now: its quota, or its size of before while no other tenant has
    /// needed the room.
    pub quota_blocks: u32,
    /// Blocks that it holds.
    pub held_blocks: u32,
}

impl TenantUsage {
    /// Adds where the tenant stands in another engine.
    pub fn add(&mut self, other: &TenantUsage) {
        self.counts.add(&other.counts);
        self.quota_blocks = self.quota_blocks.saturating_add(other.quota_blocks);
        self.held_blocks = self.held_blocks.saturating_add(other.held_blocks);
    }
}

/// Quotas that are split in two shadow partitions each: what is known of the curves, and the splits
/// of the last division.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct ShadowPartitions {
    talus: Talus,
    /// Empty without any.
    splits: Vec<QuotaSplit>,
}

impl ShadowPartitions {
    /// The curves as tenants have them in shadow partitions.
    fn hulls(&self, curves: &[Curves]) -> Vec<Curves> {
        curves.iter().map(convex).collect()
    }

    /// Learns from the curves that tenants had in the interval that ended; then a partitioner sees
    /// them with these hulls.
    fn learn<'a>(&mut self, views: &mut [TenantView<'a>], hulls: &'a [Curves]) {
        self.talus.learn(views);
        for (view, curves) in views.iter_mut().zip(hulls) {
            view.signals.curves = Some(curves);
        }
    }

    /// Splits the quota of each tenant.
    fn split(&mut self, quotas: &[u32]) {
        self.splits = self.talus.splits(quotas);
    }

    /// How the quota of each tenant is split by the last division; empty where it is whole.
    fn splits(&self) -> &[QuotaSplit] {
        &self.splits
    }
}

/// Intervals before the first that counts.
pub const WARM_UP: u32 = 10;
/// The smallest change of direction, as a share of the cache.
const TURN: f64 = 0.01;

/// What moved in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChurnTotals {
    /// Divisions that count.
    pub divisions: u32,
    /// Share of the cache moved by one of them: the mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// Turns of each tenant's quota, or of the pool it shares.
    pub turns: Vec<u32>,
}

/// Follows the divisions of a cache: how much they move, and whether they move to and fro. Shares
/// of the cache are from 0 to 1.
///
/// A division *moves* the blocks by which quotas grow (as many are lost by others). A tenant's
/// quota *turns* when it falls by at least 1 % of the cache (and a block) from the highest it was
/// since its last turn, after having risen by as much, or the other way round; so steps that go on
/// in one direction are one way, however small, and jitter below 1 % is none. Divisions of the
/// first [`WARM_UP`] intervals are left out: nothing is known yet then.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct QuotaChurn {
    total_blocks: u32,
    /// Quotas of the last division by pool; empty before the first and where all share one.
    last: Vec<u32>,
    /// The pool of each tenant.
    pool_of: Vec<u16>,
    /// Divisions after the first.
    intervals: u32,
    moved_blocks: u64,
    max_blocks: u64,
    paths: Vec<QuotaPath>,
}

/// The range of one quota since its last turn.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct QuotaPath {
    low: u32,
    high: u32,
    rising: Option<bool>,
    turns: u32,
}

impl QuotaChurn {
    /// Of a cache of `total_blocks`.
    pub fn new(total_blocks: u32) -> QuotaChurn {
        QuotaChurn { total_blocks, ..QuotaChurn::default() }
    }

    /// Takes the next division; the first is the start.
    pub fn next(&mut self, quotas: &Quotas) {
        let pools = quotas.blocks();
        match quotas {
            Quotas::Shared(_) => return,
            Quotas::PerTenant(each) => self.pool_of = quotas.pools_of(each.len()),
            Quotas::Pools { of, .. } => self.pool_of.clone_from(of),
        }
        let quotas = pools;
        if self.last.len() == quotas.len() {
            self.intervals += 1;
            let pairs = self.last.iter().zip(quotas);
            let moved = pairs.map(|(was, is)| u64::from(is.saturating_sub(*was))).sum();
            if self.intervals > WARM_UP {
                self.moved_blocks += moved;
                self.max_blocks = self.max_blocks.max(moved);
                let min_blocks = (f64::from(self.total_blocks) * TURN).ceil().max(1.0) as u32;
                self.paths
                    .iter_mut()
                    .zip(quotas)
                    .for_each(|(way, quota)| way.advance(*quota, min_blocks));
            }
        }
        if self.intervals <= WARM_UP {
            self.paths = quotas.iter().map(|quota| QuotaPath::from(*quota)).collect();
        }
        self.last = quotas.to_vec();
    }

    /// What moved so far; nothing where all share one pool.
    pub fn totals(&self) -> Option<ChurnTotals> {
        if self.last.is_empty() {
            return None;
        }
        let divisions = self.intervals.saturating_sub(WARM_UP);
        let share = |blocks: u64, times: u32| {
            blocks as f64 / (f64::from(times.max(1)) * f64::from(self.total_blocks.max(1)))
        };
        Some(ChurnTotals {
            divisions,
            mean: share(self.moved_blocks, divisions),
            max: share(self.max_blocks, 1),
            turns: self.pool_of.iter().map(|pool| self.paths[usize::from(*pool)].turns).collect(),
        })
    }
}

impl QuotaPath {
    fn from(quota: u32) -> QuotaPath {
        QuotaPath { low: quota, high: quota, rising: None, turns: 0 }
    }

    /// The quota becomes `quota`; a change of less than `min_blocks` is no turn.
    fn advance(&mut self, quota: u32, min_blocks: u32) {
        let was = self.rising;
        if was != Some(true) {
            self.low = self.low.min(quota);
            if quota - self.low >= min_blocks {
                (self.rising, self.high) = (Some(true), quota);
            }
        }
        if was != Some(false) {
            self.high = self.high.max(quota);
            if self.high - quota >= min_blocks {
                (self.rising, self.low) = (Some(false), quota);
            }
        }
        self.turns += u32::from(was.is_some() && was != self.rising);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::{Curve, Provenance};

    #[test]
    fn engines_add_up_to_one_standing() {
        let counts = Counts { reads: 3, read_hits: 1, ..Counts::default() };
        let mut sum = TenantUsage { counts, quota_blocks: 10, held_blocks: 7 };
        sum.add(&TenantUsage { counts, quota_blocks: u32::MAX, held_blocks: 2 });
        assert_eq!((sum.counts.reads, sum.counts.hits()), (6, 2));
        assert_eq!((sum.quota_blocks, sum.held_blocks), (u32::MAX, 9));
    }

    /// A plateau from 2 blocks to 12.
    #[test]
    fn a_quota_on_a_plateau_is_split_and_its_hull_is_seen() {
        let all = Curve::from_knots([(2, 60.0), (11, 60.0), (12, 0.0)], 100, Provenance::Exact);
        let none = || Curve::from_knots([], 0, Provenance::Exact);
        let curves = [Curves { all, reads: none(), writes: none() }];
        let mut shadows = ShadowPartitions::default();
        shadows.split(&[7]);
        assert!(shadows.splits().is_empty(), "nothing is known of the tenant");
        let hulls = shadows.hulls(&curves);
        let mut views = [TenantView::default()];
        views[0].signals.curves = Some(&curves[0]);
        shadows.learn(&mut views, &hulls);
        assert_eq!(views[0].signals.curves.map(|curves| curves.all.misses(7)), Some(30.0));
        shadows.split(&[7]);
        assert_eq!(shadows.splits()[0].blocks, 1, "half of 2");
    }

    fn moved(divisions: &[[u32; 2]]) -> Option<ChurnTotals> {
        let mut churn = QuotaChurn::new(200);
        for _ in 0..=WARM_UP {
            churn.next(&Quotas::PerTenant(vec![divisions[0][0], divisions[0][1]]));
        }
        divisions[1..].iter().for_each(|each| churn.next(&Quotas::PerTenant(each.to_vec())));
        churn.totals()
    }

    /// 200 blocks: a turn is 2 blocks or more.
    #[test]
    fn blocks_moved_and_turns_worked_by_hand() {
        let found = moved(&[[100, 100], [110, 90], [120, 80], [80, 120], [81, 119], [80, 120]]);
        // ChurnTotals 10, 10, 40, 1 and 1 of 200; up by 20, then down by 40; one block is no turn.
        let expected =
            ChurnTotals { divisions: 5, mean: 62.0 / 1000.0, max: 0.2, turns: vec![1, 1] };
        assert_eq!(found, Some(expected));
        // Back and forth at every division: the first goes out, the three others come back.
        let found = moved(&[[100, 100], [102, 98], [100, 100], [102, 98], [100, 100]]);
        assert_eq!(found.map(|found| found.turns), Some(vec![3, 3]));
        // One way, in steps that are each too small to tell, and back.
        let there = (0..=4).map(|step| [100 - step, 100 + step]);
        let back = (0..4).rev().map(|step| [100 - step, 100 + step]);
        let found = moved(&there.chain(back).collect::<Vec<_>>());
        assert_eq!(found.map(|found| (found.turns, found.max)), Some((vec![1, 1], 0.005)));
    }

    #[test]
    fn the_warm_up_does_not_count_and_a_shared_pool_has_nothing_to_move() {
        let mut churn = QuotaChurn::new(200);
        for at in 0..=WARM_UP {
            let odd = 100 * (at % 2);
            churn.next(&Quotas::PerTenant(vec![odd, 200 - odd]));
        }
        let still = ChurnTotals { turns: vec![0, 0], ..ChurnTotals::default() };
        assert_eq!(churn.totals(), Some(still));
        let mut shared = QuotaChurn::new(200);
        shared.next(&Quotas::Shared(200));
        shared.next(&Quotas::Shared(200));
        assert_eq!(shared.totals(), None);
        let mut pools = QuotaChurn::new(200);
        for at in 0..=WARM_UP + 2 {
            let odd = if at > WARM_UP { 10 * (at % 2) } else { 0 };
            pools.next(&Quotas::Pools { of: vec![1, 0, 1], blocks: vec![100 + odd, 100 - odd] });
        }
        let moved = ChurnTotals { divisions: 2, mean: 0.05, max: 0.05, turns: vec![1, 1, 1] };
        assert_eq!(pools.totals(), Some(moved), "both pools go there and back");
    }
}
