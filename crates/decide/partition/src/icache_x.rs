//! `icache-x`: the smallest mean slowdown, predicted from curves and response times of the run.
//!
//! The objective of `icache` without training. Cost: O(tenants (knots + tenants log sizes)).
//!
//! Ours, not the paper's: a model of demand is trained on replays that a drive cannot do, and two
//! points per tenant tell little of the sizes between. Here a tenant's mean response by blocks is
//! predicted from two parts: its reads and writes times their cost in memory, and the misses of its
//! sampled curves times the added time of a miss, which grows as the tenant's misses queue
//! ([`WaitGrowth`](crate::response_model::WaitGrowth)). The objective is the smallest mean slowdown
//! against the whole cache. With `worst_first` the worst slowdown is minimised first, then the
//! second worst, and so on; spare blocks go where the mean falls most. A `norm` above 1 lies
//! between both: the mean of the slowdowns' powers. Blocks follow hulls of slowdowns, which miss
//! cliffs; with `granules` the division is exact. Slowdown by misses of other tenants is not seen.
//!
//! Curves and response times fade by `half_life`. Moves are limited, because moved blocks lose
//! their contents.

use crate::history::Idle;
use crate::registry::{Entry, Need, Registered};
use crate::response_model::{Prior, ResponseModel, Slowdown};
use crate::share::{self, steepest};
use crate::{CacheDivision, Partitioner, TenantView};
use cachewright_curve::Curve;
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `icache-x`.
    pub struct ICacheXSettings {
        /// lower the worst slowdown first, and only then the mean
        worst_first: bool = false, "";
        /// power mean of the slowdowns that is lowered: 1 is their mean, a large one the worst
        norm: f64 = 1.0, "power", 1.0 ..= 16.0;
        /// granules of a division by dynamic programming; 0 follows the hulls of slowdowns
        granules: u32 = 0, "granules", 0 ..= 1000;
        /// intervals after which curves and response times count half
        half_life: f64 = 4.0, "intervals", 0.1 ..= 1000.0;
        /// most growth of a tenant's waits per growth of its misses; 0 keeps waits as measured
        queueing: f64 = 8.0, "ratio", 0.0 ..= 1000.0;
        /// smallest fall of the predicted slowdown that changes the division
        least_gain: f64 = 0.02, "ratio", 0.0 ..= 1.0;
        /// largest share of the cache that one division moves
        most_moved: f64 = 0.25, "ratio", 0.001 ..= 1.0;
        /// reserve of each tenant, as a part of an equal share
        reserve: f64 = 0.1, "ratio", 0.0 ..= 1.0;
        /// idle intervals after which a tenant keeps only its reserve; 0 is never
        lend_after: u32 = 4, "intervals", 0 ..= 1000000;
        /// response time of a hit, if none was measured
        prior_hit: f64 = 10.0, "us", 0.001 ..= 1000000.0;
        /// response time of a miss, if none was measured
        prior_miss: f64 = 100.0, "us", 0.001 ..= 1000000.0;
        /// weight of the mean of all tenants, in requests of one tenant
        prior_requests: f64 = 20.0, "requests", 0.0 ..= 1000000.0;
    }
}

/// Partitions by predicted slowdown.
#[derive(Clone, Debug, Snapshot)]
pub struct ICacheX {
    #[snapshot(settings)]
    settings: ICacheXSettings,
    model: ResponseModel,
    idle: Idle,
    /// Quotas of the last division; empty before the first.
    last: Vec<u32>,
}

impl Registered for ICacheX {
    type Settings = ICacheXSettings;
    const ENTRY: Entry = Entry {
        name: "icache-x",
        doc: "least mean slowdown, predicted from curves and response times measured in the run",
        source: "ours, after Li, Sun, Qin (icache)",
        needs: &[Need::Interval, Need::Curve, Need::Prices],
    };

    fn new(settings: &ICacheXSettings, _: usize, _: Seed) -> Self {
        let prior = Prior {
            hit_ns: settings.prior_hit * 1e3,
            miss_ns: settings.prior_miss * 1e3,
            requests: settings.prior_requests,
        };
        ICacheX {
            settings: settings.clone(),
            model: ResponseModel::new(prior, settings.half_life, settings.queueing),
            idle: Idle::default(),
            last: Vec::new(),
        }
    }
}

/// Worst slowdown of a division, and the power mean of all.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Evaluation {
    worst: f64,
    mean: f64,
}

impl ICacheX {
    /// The best division for these slowdowns.
    fn best(&self, slowdowns: &[Slowdown], lent: &[bool], total_blocks: u32) -> Vec<u32> {
        let floors = vec![self.floor_blocks(slowdowns.len(), total_blocks); slowdowns.len()];
        let grants = if self.settings.worst_first {
            let open = (0..slowdowns.len()).filter(|&tenant| !lent[tenant]).collect();
            minimize_worst(slowdowns, self.model.grid(), total_blocks, &floors, open)
        } else {
            floors
        };
        let (grid, norm) = (self.model.grid(), self.settings.norm);
        if self.settings.granules > 0 {
            let cost = |tenant: usize, size: u32| {
                let slowdown: &Slowdown = &slowdowns[tenant];
                slowdown.value_at(size, grid).powf(norm) - 1.0
            };
            let open: Vec<bool> = lent.iter().map(|lent| !lent).collect();
            return share::by_least_cost(
                cost,
                total_blocks,
                &grants,
                &open,
                self.settings.granules,
            );
        }
        let curves: Vec<Curve> =
            slowdowns.iter().map(|slowdown| slowdown.powered(norm).curve(grid)).collect();
        steepest(&curves.iter().collect::<Vec<_>>(), total_blocks, &grants, lent)
    }

    fn evaluate(&self, slowdowns: &[Slowdown], lent: &[bool], quotas: &[u32]) -> Evaluation {
        let all = slowdowns.iter().zip(quotas).zip(lent).filter(|(_, lent)| !**lent);
        let all: Vec<f64> = all
            .map(|((slowdown, quota), _)| slowdown.value_at(*quota, self.model.grid()))
            .collect();
        let norm = self.settings.norm;
        let sum = all.iter().map(|slowdown| slowdown.powf(norm)).sum::<f64>();
        let mean = (sum / all.len().max(1) as f64).powf(1.0 / norm);
        Evaluation { worst: all.into_iter().fold(1.0, f64::max), mean }
    }

    /// Whether `next` is enough better than `now` to justify moved blocks.
    fn is_worth(&self, now: Evaluation, next: Evaluation) -> bool {
        let gains = |now: f64, next: f64| now - next >= self.settings.least_gain * now;
        let mean = gains(now.mean, next.mean);
        let none_worse = next.worst <= now.worst * (1.0 + 1e-9);
        if self.settings.worst_first {
            gains(now.worst, next.worst) || (none_worse && mean)
        } else {
            mean
        }
    }
}

impl Partitioner for ICacheX {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.idle.learn(tenants);
        self.model.learn(tenants, total_blocks);
        let known = self.last.len() == tenants.len()
            && self.last.iter().copied().map(u64::from).sum::<u64>() == u64::from(total_blocks);
        if !known {
            self.last = share::equal(total_blocks, tenants.len());
        }
        let silent = tenants.iter().all(|tenant| tenant.accesses == 0);
        if let Some(slowdowns) = self.model.slowdowns().filter(|_| !silent) {
            let limit = self.settings.lend_after;
            let lent: Vec<bool> =
                (0..tenants.len()).map(|tenant| self.idle.beyond(tenant, limit)).collect();
            let best = self.best(&slowdowns, &lent, total_blocks);
            let now = self.evaluate(&slowdowns, &lent, &self.last);
            if self.is_worth(now, self.evaluate(&slowdowns, &lent, &best)) {
                self.last = share::towards(&self.last, &best, self.settings.most_moved);
            }
        }
        CacheDivision::PerTenant(self.last.clone())
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        let equal = f64::from(total_blocks) / tenants.max(1) as f64;
        let reserve_blocks = (self.settings.reserve * equal).ceil() as u32;
        share::feasible_floor(reserve_blocks, tenants, total_blocks)
    }
}

/// Bisections of a level; each halves its range.
const HALVINGS: u32 = 48;
/// Width of a range, relative to the level, at which bisection stops.
const CLOSE: f64 = 1e-9;

/// A range around the lowest level of slowdown that a budget can hold for all tenants.
struct LevelRange {
    /// A level that does not hold.
    low: f64,
    /// A level that holds.
    high: f64,
}

/// The fewest blocks of each tenant that minimise the worst slowdown, then the second worst, and so
/// on. `floors` together must fit in `total_blocks`; tenants that are not in `open` get their
/// floor. The sum is below the total if spare blocks would improve no single tenant.
pub fn minimize_worst(
    slowdowns: &[Slowdown],
    grid: &[u32],
    total_blocks: u32,
    floors: &[u32],
    mut open: Vec<usize>,
) -> Vec<u32> {
    let mut quotas = floors.to_vec();
    let need = |tenant: usize, level: f64| slowdowns[tenant].need(level, floors[tenant], grid);
    while !open.is_empty() {
        let held = (0..quotas.len()).filter(|tenant| !open.contains(tenant));
        let held: u64 = held.map(|tenant| u64::from(quotas[tenant])).sum();
        let budget = u64::from(total_blocks).saturating_sub(held);
        let needs = |level| open.iter().map(|&tenant| u64::from(need(tenant, level))).sum::<u64>();
        let levels = if needs(1.0) <= budget {
            None
        } else {
            let at_floor =
                open.iter().map(|&tenant| slowdowns[tenant].value_at(floors[tenant], grid));
            Some(lowest_level(at_floor.fold(1.0, f64::max), |level| needs(level) <= budget))
        };
        let level = levels.as_ref().map_or(1.0, |levels| levels.high);
        open.iter().for_each(|&tenant| quotas[tenant] = need(tenant, level));
        let Some(levels) = levels.filter(|_| needs(level) < budget) else { break };
        // Who would need most to get below the level stays there; the others may do better.
        let more = |&position: &usize| need(open[position], levels.low) - quotas[open[position]];
        let stuck =
            (0..open.len()).max_by_key(|position| (more(position), std::cmp::Reverse(*position)));
        stuck.map(|position| open.remove(position));
    }
    quotas
}

/// The lowest level that holds, between 1, which does not, and `high`, which does.
fn lowest_level(high: f64, holds: impl Fn(f64) -> bool) -> LevelRange {
    let mut levels = LevelRange { low: 1.0, high };
    for _ in 0..HALVINGS {
        if levels.high - levels.low <= CLOSE * levels.high {
            break;
        }
        let middle = levels.low + (levels.high - levels.low) / 2.0;
        if holds(middle) { levels.high = middle } else { levels.low = middle }
    }
    levels
}
