//! `dp-response`: the least mean response by dynamic programming over curves and response times.
//!
//! For: the second objective of LAMA, where tenants' misses do not cost the same. Must never know:
//! how curves and response times were measured. Units: blocks, nanoseconds. Source: Hu et al., LAMA
//! (ATC 2015), section 3.2 (average response time) and 3.3.
//!
//! Deviations: LAMA multiplies misses by a mean miss penalty of a class. Here reads and writes have
//! costs of their own, and a miss costs the time that requests spent behind memory over the misses
//! that the curve expects (the costs of `icache-x`): most writes cost the same, cached or not.
//! Curves and response times fade by `half_life`. `min_gain` and `max_moved` hold divisions back,
//! as LAMA does by a bound on moved slabs.

use crate::entry::{Entry, Need, Registered};
use crate::icache_x::ResponseModel;
use crate::icache_x::costs::Prior;
use crate::icache_x::slowdown::interpolated;
use crate::steady::{ChangeLimits, Steady};
use crate::{CacheDivision, Partitioner, TenantView, granular, share};
use cachewright_types::{Seed, declare};

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

/// Exact division of granules by response time.
#[derive(Clone, Debug)]
pub struct DpResponse {
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
        let next = granular::divide(cost, total_blocks, &floors, &open, self.settings.granules);
        let limits = ChangeLimits { moved: self.settings.max_moved, gain: self.settings.min_gain };
        let sum =
            |quotas: &[u32]| quotas.iter().enumerate().map(|(t, size)| cost(t, *size)).sum::<f64>();
        CacheDivision::PerTenant(self.steady.follow(tenants, next, limits, sum))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}
