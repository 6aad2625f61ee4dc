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
//!
//! Ours, off by default: `min_gain` and `max_moved` hold a division back that would follow noise,
//! and `floor_share` keeps a part of an equal share for tenants that have just begun.

use crate::history::Averages;
use crate::history::{ChangeLimits, Steady};
use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, CurveKind, Partitioner, Requirement, TenantView, share};
use cachewright_curve::hull::{Hull, divide};
use cachewright_curve::{Curve, Provenance};
use cachewright_snapshot::Snapshot;
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
        /// blocks that every tenant keeps, as a part of an equal share, if more than `floor_blocks`
        floor_share: f64 = 0.0, "ratio", 0.0 ..= 1.0;
        /// smallest fall of the weighted misses that changes the division; 0 is none
        min_gain: f64 = 0.0, "ratio", 0.0 ..= 1.0;
        /// largest share of the cache that one division moves
        max_moved: f64 = 1.0, "ratio", 0.001 ..= 1.0;
    }
}

/// Greedy division on convex minorants.
#[derive(Clone, Debug, Snapshot)]
pub struct HullShares {
    #[snapshot(settings)]
    settings: HullSettings,
    averages: Averages,
    steady: Steady,
    /// Requirements of the last division; nothing before all tenants had curves.
    needed: Option<Vec<Requirement>>,
}

/// The whole cache divided by curves.
struct Needs {
    /// The hull of each tenant; of an absent one it is flat.
    hulls: Vec<Hull>,
    /// Accesses of each tenant's curve, at least 1.
    accesses: Vec<f64>,
    /// Blocks that each tenant makes use of.
    blocks: Vec<u32>,
}

impl Needs {
    /// The requirement of a tenant that gets at most `quota` blocks.
    fn requirement(&self, tenant: usize, quota: u32) -> Requirement {
        let blocks = self.blocks[tenant].min(quota);
        let miss_ratio = self.hulls[tenant].misses(blocks) / self.accesses[tenant];
        Requirement { blocks, miss_ratio }
    }
}

impl Registered for HullShares {
    type Settings = HullSettings;
    const ENTRY: Entry = Entry {
        name: "hull",
        doc: "each block to the tenant whose miss-ratio curve (its convex hull) falls most",
        source: "Wang et al., OC-Cache, section III-A",
        needs: &[Need::Interval, Need::Curve],
    };

    fn new(settings: &HullSettings, _: usize, _: Seed) -> Self {
        let (averages, steady) = (Averages::default(), Steady::default());
        HullShares { settings: settings.clone(), averages, steady, needed: None }
    }
}

impl HullShares {
    fn weight(&self, curve: &Curve) -> f64 {
        if self.settings.by_ratio { 1.0 / curve.accesses().max(1) as f64 } else { 1.0 }
    }

    /// The curve of each tenant, once all have one.
    fn known<'a>(&'a self, tenants: &'a [TenantView]) -> Option<Vec<&'a Curve>> {
        match self.settings.ahead {
            true => tenants.iter().map(|tenant| tenant.facts.head_curve.as_deref()).collect(),
            false => self.averages.all(),
        }
    }

    /// The blocks that each tenant makes use of.
    fn needs(&self, tenants: &[TenantView], known: &[&Curve], total_blocks: u32) -> Needs {
        let min_slope = self.settings.least_slope / f64::from(total_blocks.max(1));
        let silent = Curve::from_knots([], 0, Provenance::Exact);
        let hull = |(curve, tenant): (&&Curve, &TenantView)| {
            Hull::minorant(if tenant.absent { &silent } else { curve })
        };
        let hulls: Vec<Hull> = known.iter().zip(tenants).map(hull).collect();
        let worth = |(hull, curve): (&Hull, &&Curve)| {
            hull.clone().falling(min_slope * curve.accesses() as f64)
        };
        let worthy: Vec<Hull> = hulls.iter().zip(known).map(worth).collect();
        let weights: Vec<f64> = known.iter().map(|curve| self.weight(curve)).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let floors: Vec<u32> =
            tenants.iter().map(|tenant| if tenant.absent { 0 } else { floor }).collect();
        let blocks = divide(&worthy, &weights, total_blocks, &floors);
        let accesses = known.iter().map(|curve| curve.accesses().max(1) as f64).collect();
        Needs { hulls, accesses, blocks }
    }

    /// The quotas: what is needed, and equal parts of the rest for tenants that are present.
    fn quotas(tenants: &[TenantView], needs: Option<&Needs>, total_blocks: u32) -> Vec<u32> {
        let mut quotas = needs.map_or_else(|| vec![0; tenants.len()], |needs| needs.blocks.clone());
        let spare = total_blocks - quotas.iter().sum::<u32>();
        let all_absent = tenants.iter().all(|tenant| tenant.absent);
        let here = |tenant: &usize| all_absent || !tenants[*tenant].absent;
        let open: Vec<usize> = (0..tenants.len()).filter(here).collect();
        for (tenant, more) in open.iter().zip(share::equal(spare, open.len())) {
            quotas[*tenant] += more;
        }
        quotas
    }

    /// Weighted misses of the tenants that are present, by their curves, which may be above hulls.
    fn misses(&self, tenants: &[TenantView], known: &[&Curve], quotas: &[u32]) -> f64 {
        let present = tenants.iter().zip(known).zip(quotas).filter(|((view, _), _)| !view.absent);
        present.map(|((_, curve), quota)| curve.misses(*quota) * self.weight(curve)).sum()
    }
}

impl Partitioner for HullShares {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        if !self.settings.ahead {
            self.averages.learn(tenants, self.settings.smoothing);
        }
        let mut steady = std::mem::take(&mut self.steady);
        let known = self.known(tenants);
        let needs = known.as_ref().map(|known| self.needs(tenants, known, total_blocks));
        let next = HullShares::quotas(tenants, needs.as_ref(), total_blocks);
        let limits = ChangeLimits { moved: self.settings.max_moved, gain: self.settings.min_gain };
        let quotas = steady.follow(tenants, next, limits, |quotas| {
            known.as_ref().map_or(0.0, |known| self.misses(tenants, known, quotas))
        });
        self.needed = needs.map(|needs| {
            let each = quotas.iter().enumerate();
            each.map(|(tenant, quota)| needs.requirement(tenant, *quota)).collect()
        });
        self.steady = steady;
        CacheDivision::PerTenant(quotas)
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        let equal = f64::from(total_blocks) / tenants.max(1) as f64;
        let part_blocks = (self.settings.floor_share * equal).floor() as u32;
        share::feasible_floor(self.settings.floor_blocks.max(part_blocks), tenants, total_blocks)
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
