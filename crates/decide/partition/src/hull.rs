//! `hull`: each block goes where the convex minorants of the tenants' curves say it saves most.
//!
//! For: the fewest misses when curves are convex, and a good division when they are not. Must
//! never know: how curves were measured. Source: Wang et al. (OC-Cache) section III-A. Deviations:
//! the paper minimises the sum of miss ratios, which is `by_ratio`; the default minimises the
//! number of misses, which is what a backing store feels. Curves are averaged over intervals
//! (`smoothing`; the paper measures once, which is 0), so that quotas do not follow noise. Blocks
//! that save nothing to anyone are divided equally. Units: blocks.

use crate::registry::{Entry, Need, Registered};
use crate::{Partitioner, Quotas, TenantView, share};
use cachewright_curve::Curve;
use cachewright_curve::hull::{Hull, divide};
use cachewright_types::{Seed, settings};

/// Knots kept of each interval's curve when it is averaged.
const KNOTS: usize = 512;

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
    /// Each tenant's averaged curve; nothing before its first.
    averages: Vec<Option<Curve>>,
}

impl Registered for HullShares {
    type Settings = HullSettings;
    const ENTRY: Entry = Entry {
        name: "hull",
        doc: "each block where the convex minorants of the miss-ratio curves fall most",
        source: "Wang et al., OC-Cache, section III-A",
        needs: &[Need::Curve],
    };

    fn new(settings: &HullSettings, tenants: usize, _: Seed) -> Self {
        HullShares { settings: settings.clone(), averages: vec![None; tenants] }
    }
}

impl HullShares {
    /// Takes the last interval's curve, if there is one, into the tenant's average.
    fn learn(&mut self, tenant: usize, curve: Option<&Curve>) {
        let (Some(average), Some(curve)) = (self.averages.get_mut(tenant), curve) else { return };
        *average = Some(match average {
            Some(past) => curve.blended(past, self.settings.smoothing, KNOTS),
            None => curve.resampled(KNOTS),
        });
    }

    fn weight(&self, curve: &Curve) -> f64 {
        if self.settings.by_ratio { 1.0 / curve.accesses().max(1) as f64 } else { 1.0 }
    }
}

impl Partitioner for HullShares {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> Quotas {
        self.averages.resize(tenants.len(), None);
        for (number, tenant) in tenants.iter().enumerate() {
            self.learn(number, tenant.curve);
        }
        let known: Vec<&Curve> = self.averages.iter().flatten().collect();
        if known.len() < tenants.len() {
            return Quotas::PerTenant(share::equal(total_blocks, tenants.len()));
        }
        let hulls: Vec<Hull> = known.iter().map(|curve| Hull::of(curve)).collect();
        let weights: Vec<f64> = known.iter().map(|curve| self.weight(curve)).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let mut quotas = divide(&hulls, &weights, total_blocks, floor);
        let given: u32 = quotas.iter().sum();
        let spare = share::equal(total_blocks - given, tenants.len());
        quotas.iter_mut().zip(spare).for_each(|(quota, more)| *quota += more);
        Quotas::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}
