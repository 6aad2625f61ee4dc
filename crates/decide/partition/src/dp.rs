//! `dp` and `dp-response`: the fewest misses, or the least mean response, by dynamic programming
//! over measured curves. Exact where curves have cliffs, on which greedy and convex division go
//! wrong.
//!
//! Source: Hu et al., LAMA (ATC 2015), section 3; Stone, Turek and Wolf, IEEE Trans. Computers
//! 1992, for the optimum on convex curves. Cost: O(tenants granules^2) per division.
//!
//! Deviations: tenants stand in for slab classes, and curves are those of LRU by sampling, averaged
//! over intervals, not footprints. LAMA counts misses of all classes alike; `weighted` counts them
//! by the tenants' weights, which are then prices of a miss. LAMA bounds the slabs that it moves
//! and wants a gain; `max_moved` and `min_gain` do so, off by default in `dp`. Blocks that save no
//! misses are divided equally.

use crate::history::{Averages, ChangeLimits, Steady};
use crate::registry::{Entry, Need, Registered};
use crate::response_model::{Prior, ResponseModel, interpolated};
use crate::{CacheDivision, CurveKind, Partitioner, TenantView, share};
use cachewright_curve::Curve;
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `dp`.
    pub struct DpSettings {
        /// granules that the cache is divided in; fewer if it has fewer blocks
        granules: u32 = 200, "granules", 1 ..= 1000;
        /// count misses times the tenant's weight, as the price of a miss
        weighted: bool = false, "";
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
        /// share of earlier intervals in the averaged curve; 0 uses the last interval alone
        smoothing: f64 = 0.5, "ratio", 0.0 ..= 0.99;
        /// use curves of the cache's own policy, by miniature simulation, not of LRU
        own_policy: bool = false, "";
        /// smallest fall of the predicted misses that changes the division
        min_gain: f64 = 0.0, "ratio", 0.0 ..= 1.0;
        /// largest share of the cache that one division moves
        max_moved: f64 = 1.0, "ratio", 0.001 ..= 1.0;
    }
}

/// Exact division of granules by misses.
#[derive(Clone, Debug, Snapshot)]
pub struct Dp {
    #[snapshot(settings)]
    settings: DpSettings,
    averages: Averages,
    steady: Steady,
}

impl Registered for Dp {
    type Settings = DpSettings;
    const ENTRY: Entry = Entry {
        name: "dp",
        doc: "fewest misses by dynamic programming over curves, also where they have cliffs",
        source: "Hu et al., LAMA (ATC 2015), section 3",
        needs: &[Need::Interval, Need::Curve],
    };

    fn new(settings: &DpSettings, _: usize, _: Seed) -> Self {
        let (averages, steady) = (Averages::default(), Steady::default());
        Dp { settings: settings.clone(), averages, steady }
    }
}

/// The price of a miss of a tenant: its weight if misses are weighted; no blocks for an absent one.
fn miss_price(tenant: &TenantView, weighted: bool) -> f64 {
    match (tenant.absent, weighted) {
        (true, _) => 0.0,
        (false, true) => tenant.facts.weight,
        (false, false) => 1.0,
    }
}

impl Partitioner for Dp {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.averages.learn(tenants, self.settings.smoothing);
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let floors: Vec<u32> =
            tenants.iter().map(|tenant| if tenant.absent { 0 } else { floor }).collect();
        let open: Vec<bool> = tenants.iter().map(|tenant| !tenant.absent).collect();
        let curves: Option<Vec<&Curve>> = self.averages.all();
        let prices: Vec<f64> =
            tenants.iter().map(|tenant| miss_price(tenant, self.settings.weighted)).collect();
        let cost = |tenant: usize, size: u32| match &curves {
            Some(curves) => curves[tenant].misses(size) * prices[tenant],
            None => 0.0,
        };
        let next = share::by_least_cost(cost, total_blocks, &floors, &open, self.settings.granules);
        let limits = ChangeLimits { moved: self.settings.max_moved, gain: self.settings.min_gain };
        let sum =
            |quotas: &[u32]| quotas.iter().enumerate().map(|(t, size)| cost(t, *size)).sum::<f64>();
        CacheDivision::PerTenant(self.steady.follow(tenants, next, limits, sum))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }

    fn curves(&self) -> CurveKind {
        CurveKind { own_policy: self.settings.own_policy, ahead: false }
    }
}

declare! {
    /// Settings of `dp-response`.
    pub struct DpResponseSettings {
        /// granules that the cache is divided in; fewer if it has fewer blocks
        granules: u32 = 200, "granules", 1 ..= 1000;
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
        /// intervals after which curves and response times count half
        half_life: f64 = 4.0, "intervals", 0.1 ..= 1000.0;
        /// smallest fall of the predicted response time that changes the division
        min_gain: f64 = 0.02, "ratio", 0.0 ..= 1.0;
        /// largest share of the cache that one division moves
        max_moved: f64 = 0.25, "ratio", 0.001 ..= 1.0;
        /// response time of a hit, if none was measured
        prior_hit: f64 = 10.0, "us", 0.001 ..= 1000000.0;
        /// response time of a miss, if none was measured
        prior_miss: f64 = 100.0, "us", 0.001 ..= 1000000.0;
        /// weight of the mean of all tenants, in requests of one tenant
        prior_requests: f64 = 20.0, "requests", 0.0 ..= 1000000.0;
    }
}

/// Exact division of granules by response time: the second objective of LAMA (sections 3.2 and
/// 3.3), where tenants' misses do not cost the same.
///
/// Deviations: LAMA multiplies misses by a mean miss penalty of a class. Here reads and writes have
/// costs of their own, and a miss costs the time that requests spent behind memory over the misses
/// that the curve expects (the costs of `icache-x`): most writes cost the same, cached or not.
/// Curves and response times fade by `half_life`.
#[derive(Clone, Debug, Snapshot)]
pub struct DpResponse {
    #[snapshot(settings)]
    settings: DpResponseSettings,
    model: ResponseModel,
    steady: Steady,
}

impl Registered for DpResponse {
    type Settings = DpResponseSettings;
    const ENTRY: Entry = Entry {
        name: "dp-response",
        doc: "smallest mean response by dynamic programming over curves and measured times",
        source: "Hu et al., LAMA (ATC 2015), section 3; costs as in icache-x",
        needs: &[Need::Interval, Need::Curve, Need::Prices],
    };

    fn new(settings: &DpResponseSettings, _: usize, _: Seed) -> Self {
        let prior = Prior {
            hit_ns: settings.prior_hit * 1e3,
            miss_ns: settings.prior_miss * 1e3,
            requests: settings.prior_requests,
        };
        let model = ResponseModel::new(prior, settings.half_life, 0.0);
        DpResponse { settings: settings.clone(), model, steady: Steady::default() }
    }
}

impl Partitioner for DpResponse {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.model.learn(tenants, total_blocks);
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let floors: Vec<u32> =
            tenants.iter().map(|tenant| if tenant.absent { 0 } else { floor }).collect();
        let open: Vec<bool> = tenants.iter().map(|tenant| !tenant.absent).collect();
        let responses = self.model.responses();
        let cost = |tenant: usize, size: u32| match &responses {
            Some(responses) => interpolated(&responses[tenant], size, self.model.grid()),
            None => 0.0,
        };
        let next = share::by_least_cost(cost, total_blocks, &floors, &open, self.settings.granules);
        let limits = ChangeLimits { moved: self.settings.max_moved, gain: self.settings.min_gain };
        let sum =
            |quotas: &[u32]| quotas.iter().enumerate().map(|(t, size)| cost(t, *size)).sum::<f64>();
        CacheDivision::PerTenant(self.steady.follow(tenants, next, limits, sum))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}
