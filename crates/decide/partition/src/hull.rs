//! `hull`: each block goes where the convex minorants of the tenants' curves say it saves most.
//!
//! For: the fewest misses when curves are convex, and a good division when they are not. Must
//! never know: how curves were measured. Source: Wang et al. (OC-Cache) section III-A. Deviations:
//! the paper minimises the sum of miss ratios, which is `by_ratio`; the default minimises the
//! number of misses, which is what a backing store feels. Curves are averaged over intervals
//! (`smoothing`; the paper measures once, which is 0), so that quotas do not follow noise. Blocks
//! that save nothing to anyone are divided equally. Units: blocks.

use crate::averages::Averages;
use crate::registry::{Entry, Need, Registered};
use crate::{Partitioner, Quotas, TenantView, share};
use cachewright_curve::Curve;
use cachewright_curve::hull::{Hull, divide};
use cachewright_types::{Seed, settings};

settings! {
    /// Settings of `hull`.
    pub struct HullSettings {
        /// minimise the sum of miss ratios as in the paper, not the number of misses
        by_ratio: bool = false, "", 0 ..= 1;
        /// blocks that everyone keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295_u32;
        /// share of earlier intervals in the averaged curve; 0 uses the last interval alone
        smoothing: f64 = 0.5, "ratio", 0.0 ..= 0.99;
    }
}

/// Greedy division on convex minorants.
#[derive(Clone, Debug)]
pub struct HullShares {
    settings: HullSettings,
    averages: Averages,
}

impl Registered for HullShares {
    type Settings = HullSettings;
    const ENTRY: Entry = Entry {
        name: "hull",
        doc: "each block where the convex minorants of the miss-ratio curves fall most",
        source: "Wang et al., OC-Cache, section III-A",
        needs: &[Need::Interval, Need::Curve],
    };

    fn new(settings: &HullSettings, _: usize, _: Seed) -> Self {
        HullShares { settings: settings.clone(), averages: Averages::default() }
    }
}

impl HullShares {
    fn weight(&self, curve: &Curve) -> f64 {
        if self.settings.by_ratio { 1.0 / curve.accesses().max(1) as f64 } else { 1.0 }
    }
}

impl Partitioner for HullShares {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> Quotas {
        self.averages.learn(tenants, self.settings.smoothing);
        let Some(known) = self.averages.all() else {
            return Quotas::PerTenant(share::equal(total_blocks, tenants.len()));
        };
        let hulls: Vec<Hull> = known.iter().map(|curve| Hull::of(curve)).collect();
        let weights: Vec<f64> = known.iter().map(|curve| self.weight(curve)).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let floors = vec![floor; tenants.len()];
        let mut quotas = divide(&hulls, &weights, total_blocks, &floors);
        let given: u32 = quotas.iter().sum();
        let spare = share::equal(total_blocks - given, tenants.len());
        quotas.iter_mut().zip(spare).for_each(|(quota, more)| *quota += more);
        Quotas::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}
