//! `icache-x`: the least mean slowdown, predicted from curves and prices measured while running.
//!
//! For: the question of `icache`, answered without training. Must never know: how curves and prices
//! were measured. Ours, not the paper's: a model of demand is trained on replays that a drive
//! cannot do, and two points per tenant say little of what lies between. Instead a tenant's mean
//! response with so many blocks is predicted: its reads and writes times what they take in memory,
//! and the misses on its sampled curves times what each adds to the time behind memory. Objective:
//! the least mean slowdown against having the whole cache; with `worst_first` the worst is made as
//! low as it can be, then the second worst, and so on, and what is left goes where the mean falls
//! most. Slowdown by interference outside the cache is not seen. Curves and prices fade by
//! `half_life`; moves are held back, because blocks that change hands lose what they hold. Units:
//! blocks, nanoseconds. Cost: O(tenants (knots + tenants log sizes)).

pub mod balance;
pub mod costs;
pub mod slowdown;

use crate::entry::{Entry, Need, Registered};
use crate::idle::Idle;
use crate::steepest::steepest;
use crate::{Division, Partitioner, TenantView, share};
use cachewright_curve::Curve;
use cachewright_signal::Prices;
use cachewright_types::{Seed, declare};
use costs::{Prior, Spending, costs};
use slowdown::{Pattern, Slowdown, grid};

declare! {
    /// Settings of `icache-x`.
    pub struct ICacheXSettings {
        /// lower the worst slowdown first, and only then the mean
        worst_first: bool = false, "";
        /// intervals after which curves and prices count half
        half_life: f64 = 4.0, "intervals", 0.1 ..= 1000.0;
        /// by how much the predicted slowdown must fall for a division to change
        least_gain: f64 = 0.02, "ratio", 0.0 ..= 1.0;
        /// most of the cache that changes hands at one division
        most_moved: f64 = 0.25, "ratio", 0.001 ..= 1.0;
        /// what every tenant keeps, of an equal share
        reserve: f64 = 0.1, "ratio", 0.0 ..= 1.0;
        /// intervals without an access after which a tenant keeps the reserve only; 0 is never
        lend_after: u32 = 4, "intervals", 0 ..= 1000000;
        /// what a hit takes where none was measured
        prior_hit: f64 = 10.0, "us", 0.001 ..= 1000000.0;
        /// what a miss takes where none was measured
        prior_miss: f64 = 100.0, "us", 0.001 ..= 1000000.0;
        /// requests of a tenant's own that prices of all tenants count as
        prior_requests: f64 = 20.0, "requests", 0.0 ..= 1000000.0;
    }
}

/// Partitions by predicted slowdown.
#[derive(Clone, Debug)]
pub struct ICacheX {
    settings: ICacheXSettings,
    /// Sizes at which curves are kept; empty before the first.
    grid: Vec<u32>,
    patterns: Vec<Option<Pattern>>,
    spendings: Vec<Spending>,
    idle: Idle,
    /// Division of the last division; empty before the first.
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

    fn new(settings: &ICacheXSettings, tenants: usize, _: Seed) -> Self {
        ICacheX {
            settings: settings.clone(),
            grid: Vec::new(),
            patterns: vec![None; tenants],
            spendings: vec![Spending::default(); tenants],
            idle: Idle::default(),
            last: Vec::new(),
        }
    }
}

/// Worst and mean slowdown of a division.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Judged {
    worst: f64,
    mean: f64,
}

impl ICacheX {
    /// Takes the interval that ended, unless nobody sent anything.
    fn learn(&mut self, tenants: &[TenantView], total_blocks: u32) {
        self.idle.learn(tenants);
        self.patterns.resize(tenants.len(), None);
        self.spendings.resize(tenants.len(), Spending::default());
        if self.grid.last() != Some(&total_blocks) {
            self.grid = grid(total_blocks);
            self.patterns.iter_mut().for_each(|pattern| *pattern = None);
        }
        if tenants.iter().all(|tenant| tenant.accesses == 0) && self.last.len() == tenants.len() {
            return;
        }
        let past = 0.5_f64.powf(1.0 / self.settings.half_life);
        for ((tenant, pattern), spending) in
            tenants.iter().zip(&mut self.patterns).zip(&mut self.spendings)
        {
            let Some(curves) = tenant.signals.curves else { continue };
            pattern.get_or_insert_default().learn(curves, &self.grid, past);
            let held = match tenant.quota_blocks {
                0 => tenant.occupancy_blocks,
                quota => quota,
            };
            let ratios = [curves.reads.miss_ratio(held), curves.writes.miss_ratio(held)];
            let none = Prices::default();
            let blocks = [curves.reads.accesses() as f64, curves.writes.accesses() as f64];
            spending.learn(tenant.signals.prices.unwrap_or(&none), ratios, blocks, past);
        }
    }

    /// Each tenant's slowdown by blocks, once every tenant has curves.
    fn slowdowns(&self) -> Option<Vec<Slowdown>> {
        let patterns: Option<Vec<&Pattern>> = self.patterns.iter().map(Option::as_ref).collect();
        let prior = Prior {
            hit_ns: self.settings.prior_hit * 1e3,
            miss_ns: self.settings.prior_miss * 1e3,
            requests: self.settings.prior_requests,
        };
        let costs = costs(&self.spendings, prior);
        let both = patterns?.into_iter().zip(&costs);
        Some(both.map(|(pattern, cost)| pattern.slowdown(cost, &self.grid)).collect())
    }

    /// The best division for these slowdowns.
    fn best(&self, slowdowns: &[Slowdown], lent: &[bool], total_blocks: u32) -> Vec<u32> {
        let floors = vec![self.floor_blocks(slowdowns.len(), total_blocks); slowdowns.len()];
        let grants = if self.settings.worst_first {
            let open = (0..slowdowns.len()).filter(|&tenant| !lent[tenant]).collect();
            balance::least_worst(slowdowns, &self.grid, total_blocks, &floors, open)
        } else {
            floors
        };
        let curves: Vec<Curve> = slowdowns.iter().map(|one| one.curve(&self.grid)).collect();
        steepest(&curves.iter().collect::<Vec<_>>(), total_blocks, &grants, lent)
    }

    fn judged(&self, slowdowns: &[Slowdown], lent: &[bool], quotas: &[u32]) -> Judged {
        let all = slowdowns.iter().zip(quotas).zip(lent).filter(|(_, lent)| !**lent);
        let all: Vec<f64> = all.map(|((one, quota), _)| one.at(*quota, &self.grid)).collect();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        Judged { worst: all.into_iter().fold(1.0, f64::max), mean }
    }

    /// Whether `next` is so much better than `now` that blocks may move for it.
    fn is_worth(&self, now: Judged, next: Judged) -> bool {
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
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> Division {
        self.learn(tenants, total_blocks);
        let known = self.last.len() == tenants.len()
            && self.last.iter().copied().map(u64::from).sum::<u64>() == u64::from(total_blocks);
        if !known {
            self.last = share::equal(total_blocks, tenants.len());
        }
        let silent = tenants.iter().all(|tenant| tenant.accesses == 0);
        if let Some(slowdowns) = self.slowdowns().filter(|_| !silent) {
            let limit = self.settings.lend_after;
            let lent: Vec<bool> =
                (0..tenants.len()).map(|tenant| self.idle.beyond(tenant, limit)).collect();
            let best = self.best(&slowdowns, &lent, total_blocks);
            let now = self.judged(&slowdowns, &lent, &self.last);
            if self.is_worth(now, self.judged(&slowdowns, &lent, &best)) {
                self.last = share::towards(&self.last, &best, self.settings.most_moved);
            }
        }
        Division::PerTenant(self.last.clone())
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        let equal = f64::from(total_blocks) / tenants.max(1) as f64;
        let asked = (self.settings.reserve * equal).ceil() as u32;
        share::feasible_floor(asked, tenants, total_blocks)
    }
}
