//! `hull`: each block goes to the tenant whose misses it reduces most, by convex minorants of
//! curves.
//!
//! For: the fewest misses on convex curves and a good division on others; and the requirement of
//! each tenant: its blocks S_r before no curve falls any more, and its miss ratio R_e with them.
//! Must never know: how curves were measured. Units: blocks. Source: Wang et al. (OC-Cache) section
//! III-A.
//!
//! Deviations: the paper minimises the sum of miss ratios, which is `by_ratio`; the default
//! minimises the number of misses, which is the load of the backing device. Curves are averaged
//! over intervals (`smoothing`), so that quotas do not follow noise. The paper measures once, from
//! history, which is `ahead`: then the division changes only when tenants start or leave. The paper
//! divides the whole cache. Here blocks that save no misses, or fewer than `least_slope`, are no
//! requirement; quotas divide them equally.

use crate::averages::Averages;
use crate::entry::{Entry, Need, Registered};
use crate::{CacheDivision, CurveKind, Partitioner, Requirement, TenantView, share};
use cachewright_curve::hull::{Hull, divide};
use cachewright_curve::{Curve, Provenance};
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `hull`.
    pub struct HullSettings {
        /// minimise the sum of miss ratios as in the paper, not the number of misses
        by_ratio: bool = false, "";
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
        /// share of earlier intervals in the averaged curve; 0 uses the last interval alone
        smoothing: f64 = 0.5, "ratio", 0.0 ..= 0.99;
        /// use curves of the cache's own policy, by miniature simulation, not of LRU
        own_policy: bool = false, "";
        /// use curves of the head of each trace (`replay.profile_share`), not of intervals
        ahead: bool = false, "";
        /// smallest slope of a needed block: miss ratio saved per whole cache
        least_slope: f64 = 0.0, "ratio", 0.0 ..= 100.0;
    }
}

/// Greedy division on convex minorants.
#[derive(Clone, Debug)]
pub struct HullShares {
    settings: HullSettings,
    averages: Averages,
    /// Requirements of the last division; nothing before all tenants had curves.
    needed: Option<Vec<Requirement>>,
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
        let averages = Averages::default();
        HullShares { settings: settings.clone(), averages, needed: None }
    }
}

impl HullShares {
    fn weight(&self, curve: &Curve) -> f64 {
        if self.settings.by_ratio { 1.0 / curve.accesses().max(1) as f64 } else { 1.0 }
    }

    /// The requirement of each tenant; nothing before all tenants have curves.
    fn needed(&self, tenants: &[TenantView], total_blocks: u32) -> Option<Vec<Requirement>> {
        let known: Vec<&Curve> = match self.settings.ahead {
            true => tenants
                .iter()
                .map(|tenant| tenant.facts.head_curve.as_deref())
                .collect::<Option<_>>()?,
            false => self.averages.all()?,
        };
        let min_slope = self.settings.least_slope / f64::from(total_blocks.max(1));
        let silent = Curve::from_knots([], 0, Provenance::Exact);
        let hull = |(curve, tenant): (&&Curve, &TenantView)| {
            Hull::minorant(if tenant.absent { &silent } else { curve })
        };
        let hulls: Vec<Hull> = known.iter().zip(tenants).map(hull).collect();
        let worth = |(hull, curve): (&Hull, &&Curve)| {
            hull.clone().falling(min_slope * curve.accesses() as f64)
        };
        let worthy: Vec<Hull> = hulls.iter().zip(&known).map(worth).collect();
        let weights: Vec<f64> = known.iter().map(|curve| self.weight(curve)).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let floors: Vec<u32> =
            tenants.iter().map(|tenant| if tenant.absent { 0 } else { floor }).collect();
        let quotas = divide(&worthy, &weights, total_blocks, &floors);
        let requirement = |tenant: usize| Requirement {
            blocks: quotas[tenant],
            miss_ratio: hulls[tenant].misses(quotas[tenant])
                / known[tenant].accesses().max(1) as f64,
        };
        Some((0..tenants.len()).map(requirement).collect())
    }
}

impl Partitioner for HullShares {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        if !self.settings.ahead {
            self.averages.learn(tenants, self.settings.smoothing);
        }
        self.needed = self.needed(tenants, total_blocks);
        let mut quotas = vec![0; tenants.len()];
        if let Some(needed) = &self.needed {
            quotas
                .iter_mut()
                .zip(needed)
                .for_each(|(quota, requirement)| *quota = requirement.blocks);
        }
        let spare = total_blocks - quotas.iter().sum::<u32>();
        let all_absent = tenants.iter().all(|tenant| tenant.absent);
        let here = |tenant: &usize| all_absent || !tenants[*tenant].absent;
        let open: Vec<usize> = (0..tenants.len()).filter(here).collect();
        for (tenant, more) in open.iter().zip(share::equal(spare, open.len())) {
            quotas[*tenant] += more;
        }
        CacheDivision::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }

    fn curves(&self) -> CurveKind {
        CurveKind { own_policy: self.settings.own_policy, ahead: self.settings.ahead }
    }

    fn requirements(&self, tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        match &self.needed {
            Some(needed) => needed.clone(),
            None => Requirement::whole_quotas(tenants, quotas),
        }
    }
}
