//! `dp`: the fewest misses by dynamic programming over measured curves.
//!
//! For: exact divisions where curves have cliffs, on which greedy and convex division go wrong.
//! Must never know: how curves were measured. Units: blocks. Source: Hu et al., LAMA (ATC 2015),
//! section 3; Stone, Turek and Wolf, IEEE Trans. Computers 1992, for the optimum on convex curves.
//! Cost: O(tenants granules^2) per division.
//!
//! Deviations: tenants stand in for slab classes, and curves are those of LRU by sampling, averaged
//! over intervals, not footprints. LAMA counts misses of all classes alike; `weighted` counts them
//! by the tenants' weights, which are then prices of a miss. LAMA bounds the slabs that it moves
//! and wants a gain; `max_moved` and `min_gain` do so, off by default. Blocks that save no
//! misses are divided equally.

pub mod response;

use crate::averages::Averages;
use crate::entry::{Entry, Need, Registered};
use crate::steady::{ChangeLimits, Steady};
use crate::{CacheDivision, CurveKind, Partitioner, TenantView, granular, share};
use cachewright_curve::Curve;
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
#[derive(Clone, Debug)]
pub struct Dp {
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
        let next = granular::divide(cost, total_blocks, &floors, &open, self.settings.granules);
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
