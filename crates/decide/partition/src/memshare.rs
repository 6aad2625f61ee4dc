//! `memshare`: a guaranteed part for each tenant, and a pooled rest that follows marginal hits.
//!
//! For: tenants that pay for a reserve and share what is beyond. Must never know: how curves were
//! measured. Units: blocks. Source: Cidon et al., Memshare (ATC 2017), sections 3 and 4: reserved
//! and pooled memory, shadow queues, credits, the idle tax.
//!
//! Memshare keeps a shadow queue of keys that left. Each hit there moves a credit of memory from
//! another tenant that holds pooled memory. Deviations: hits of a shadow queue of `shadow` blocks
//! are read from the interval's curve, as its misses between the quota and that many blocks more;
//! so all credits of an interval move at its end. They are taken from all pooled blocks of other
//! tenants alike, where Memshare draws a tenant at random. At most `max_moved` of the cache moves.
//! A tenant idle for `lend_after` intervals pays `idle_tax` of its guarantee, where Memshare taxes
//! memory that was not used for some time.

use crate::history::Idle;
use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `memshare`.
    pub struct MemshareSettings {
        /// share of the cache that is guaranteed, divided by the tenants' weights
        guaranteed: f64 = 0.5, "ratio", 0.0 ..= 1.0;
        /// size of a tenant's shadow queue, as a share of the cache
        shadow: f64 = 0.05, "ratio", 0.001 ..= 1.0;
        /// blocks that a hit in the shadow queue moves
        credit: f64 = 1.0, "blocks", 0.001 ..= 1000000.0;
        /// largest share of the cache that one division moves
        max_moved: f64 = 0.05, "ratio", 0.001 ..= 1.0;
        /// share of its guarantee that an idle tenant gives to the pool
        idle_tax: f64 = 0.5, "ratio", 0.0 ..= 1.0;
        /// intervals without a request after which a tenant is idle; 0 is never
        lend_after: u32 = 10, "intervals", 0 ..= 1000000;
    }
}

/// Guaranteed and pooled blocks.
#[derive(Clone, Debug, Snapshot)]
pub struct Memshare {
    #[snapshot(settings)]
    settings: MemshareSettings,
    idle: Idle,
    /// Quotas of the last division; empty before the first.
    last: Vec<u32>,
}

impl Registered for Memshare {
    type Settings = MemshareSettings;
    const ENTRY: Entry = Entry {
        name: "memshare",
        doc: "a guarantee for each tenant by weight, and a pool for those who would hit more",
        source: "Cidon et al., Memshare (ATC 2017), sections 3 and 4",
        needs: &[Need::Interval, Need::Curve],
    };

    fn new(settings: &MemshareSettings, _: usize, _: Seed) -> Self {
        Memshare { settings: settings.clone(), idle: Idle::default(), last: Vec::new() }
    }
}

impl Memshare {
    /// The guarantee of each tenant.
    fn guarantees(&self, tenants: &[TenantView], total_blocks: u32) -> Vec<u32> {
        let all = (self.settings.guaranteed * f64::from(total_blocks)) as u32;
        let weights: Vec<f64> = tenants.iter().map(|tenant| tenant.facts.weight).collect();
        let mut each = share::proportional(all, &weights);
        for (tenant, blocks) in each.iter_mut().enumerate() {
            if self.idle.beyond(tenant, self.settings.lend_after) {
                *blocks -= (self.settings.idle_tax * f64::from(*blocks)) as u32;
            }
        }
        each
    }

    /// Hits in the shadow queue of a tenant with so many blocks.
    fn shadow_hits(&self, tenant: &TenantView, quota: u32, total_blocks: u32) -> f64 {
        let size = (self.settings.shadow * f64::from(total_blocks)).ceil() as u32;
        let Some(curves) = tenant.signals.curves else { return 0.0 };
        (curves.all.misses(quota) - curves.all.misses(quota.saturating_add(size))).max(0.0)
    }
}

/// The quotas after each tenant took its credits, in blocks, from what the others hold beyond their
/// guarantees; together at most `max_blocks`, and no more than any tenant has to give.
fn credited(quotas: &[u32], guarantees: &[u32], credits: &[f64], max_blocks: f64) -> Vec<u32> {
    let pairs = || quotas.iter().zip(guarantees);
    let pooled: Vec<f64> =
        pairs().map(|(quota, floor)| f64::from(quota.saturating_sub(*floor))).collect();
    let all: f64 = pooled.iter().sum();
    let wanted: f64 = credits.iter().sum();
    let part = if wanted > max_blocks { max_blocks / wanted } else { 1.0 };
    // Of a tenant's credits each other one pays in proportion to its pooled blocks.
    let mut paid = vec![0.0; quotas.len()];
    let mut gained = vec![0.0; quotas.len()];
    for (winner, credit) in credits.iter().enumerate() {
        let others = all - pooled[winner];
        if others > 0.0 && *credit > 0.0 {
            gained[winner] = credit * part;
            for (payer, sum) in paid.iter_mut().enumerate().filter(|(payer, _)| *payer != winner) {
                *sum += credit * part * pooled[payer] / others;
            }
        }
    }
    let affordable = paid.iter().zip(&pooled).filter(|(paid, _)| **paid > 0.0);
    let scale = affordable.map(|(paid, pooled)| pooled / paid).fold(1.0, f64::min);
    let each = quotas.iter().zip(gained.iter().zip(&paid));
    let exact: Vec<f64> =
        each.map(|(quota, (gain, loss))| f64::from(*quota) + scale * (gain - loss)).collect();
    let mut next = share::proportional(quotas.iter().sum(), &exact);
    share::raise(&mut next, guarantees);
    next
}

impl Partitioner for Memshare {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.idle.learn(tenants);
        let known = self.last.len() == tenants.len()
            && self.last.iter().copied().map(u64::from).sum::<u64>() == u64::from(total_blocks);
        if !known {
            let weights: Vec<f64> = tenants.iter().map(|tenant| tenant.facts.weight).collect();
            self.last = share::proportional(total_blocks, &weights);
        }
        let guarantees = self.guarantees(tenants, total_blocks);
        share::raise(&mut self.last, &guarantees);
        let hits: Vec<f64> = tenants
            .iter()
            .zip(&self.last)
            .map(|(tenant, quota)| self.shadow_hits(tenant, *quota, total_blocks))
            .collect();
        let credits: Vec<f64> = hits.iter().map(|hits| self.settings.credit * hits).collect();
        let max_blocks = self.settings.max_moved * f64::from(total_blocks);
        self.last = credited(&self.last, &guarantees, &credits, max_blocks);
        CacheDivision::PerTenant(self.last.clone())
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TenantConstants;
    use cachewright_curve::signal::TenantSignals;
    use cachewright_curve::{Curve, Curves, Provenance};
    use proptest::prelude::*;

    fn curves(knots: &[(u32, f64)], accesses: u64) -> Curves {
        let curve = Curve::from_knots(knots.iter().copied(), accesses, Provenance::Exact);
        let none = Curve::from_knots([], 0, Provenance::Exact);
        Curves { all: curve.clone(), reads: curve, writes: none }
    }

    fn facts(weight: f64) -> TenantConstants {
        TenantConstants { weight, ..TenantConstants::default() }
    }

    fn view<'a>(facts: &'a TenantConstants, curves: &'a Curves) -> TenantView<'a> {
        let signals = TenantSignals { curves: Some(curves), ..TenantSignals::default() };
        TenantView { facts, accesses: curves.all.accesses(), signals, ..TenantView::default() }
    }

    fn quotas(scheme: &mut Memshare, views: &[TenantView], total: u32) -> Vec<u32> {
        match scheme.divide(views, total) {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("quotas of its own for each, not {other:?}"),
        }
    }

    #[test]
    fn hits_of_the_shadow_queue_draw_pooled_blocks_and_no_guarantee() {
        // 1000 blocks, weights 3 and 1: guarantees of 375 and 125, quotas of 750 and 250 at first.
        // The second tenant's misses fall by 1 in 10 blocks, so that 5 of its misses are in a
        // shadow queue of 50 blocks; the first has none there.
        let (large, small) = (facts(3.0), facts(1.0));
        let (flat, falling) = (curves(&[(10, 20.0)], 100), curves(&[(1000, 0.0)], 100));
        let mut scheme = Memshare::new(&MemshareSettings::default(), 2, Seed(1));
        let views = [view(&large, &flat), view(&small, &falling)];
        assert_eq!(quotas(&mut scheme, &views, 1000), [745, 255], "5 credits of a block");
        let settings = MemshareSettings { credit: 1000.0, ..MemshareSettings::default() };
        let mut scheme = Memshare::new(&settings, 2, Seed(1));
        let first = quotas(&mut scheme, &views, 1000);
        assert_eq!(first, [700, 300], "a twentieth of the cache at most");
        (0..100).for_each(|_| {
            quotas(&mut scheme, &views, 1000);
        });
        assert_eq!(quotas(&mut scheme, &views, 1000), [375, 625], "the guarantee stays");
    }

    #[test]
    fn an_idle_tenant_pays_a_tax_and_has_its_guarantee_back_at_once() {
        let equal = facts(1.0);
        let (none, falling) = (curves(&[], 0), curves(&[(1000, 0.0)], 100_000));
        let settings = MemshareSettings { lend_after: 2, ..MemshareSettings::default() };
        let mut scheme = Memshare::new(&settings, 2, Seed(1));
        let gone = [view(&equal, &none), view(&equal, &falling)];
        (0..100).for_each(|_| {
            quotas(&mut scheme, &gone, 1000);
        });
        assert_eq!(quotas(&mut scheme, &gone, 1000), [125, 875]);
        let flat = curves(&[(1, 50.0)], 100);
        let back = [view(&equal, &flat), view(&equal, &falling)];
        assert_eq!(quotas(&mut scheme, &back, 1000)[0], 250);
    }

    proptest! {
        /// Credit by credit, with an expected loser, against all credits of an interval at once.
        #[test]
        fn credits_one_by_one_come_to_the_same(
            falls in prop::collection::vec(0_u32..40, 2..6),
            quotas_before in prop::collection::vec(100_u32..500, 6),
        ) {
            let tenants = falls.len();
            let before = &quotas_before[..tenants];
            let total: u32 = before.iter().sum();
            // Each has a line of misses that falls by `fall` in the shadow queue.
            let settings =
                MemshareSettings { guaranteed: 0.0, max_moved: 1.0, ..Default::default() };
            let mut scheme = Memshare::new(&settings, tenants, Seed(1));
            scheme.last = before.to_vec();
            let size = (0.05 * f64::from(total)).ceil();
            let line = |fall: &u32| {
                let per_block = f64::from(*fall) / size;
                curves(&[(2 * total, 1e6 - per_block * 2.0 * f64::from(total))], 1_000_000)
            };
            let all: Vec<Curves> = falls.iter().map(line).collect();
            let facts = facts(1.0);
            let views: Vec<TenantView> = all.iter().map(|curves| view(&facts, curves)).collect();
            let divided = quotas(&mut scheme, &views, total);
            let mut slow: Vec<f64> = before.iter().copied().map(f64::from).collect();
            for (winner, fall) in falls.iter().enumerate() {
                let others = f64::from(total - before[winner]);
                for _ in 0..*fall {
                    let payers = slow.iter_mut().zip(before).enumerate();
                    for (_, (held, start)) in payers.filter(|(payer, _)| *payer != winner) {
                        *held -= f64::from(*start) / others;
                    }
                    slow[winner] += 1.0;
                }
            }
            for (fast, slow) in divided.iter().zip(slow) {
                prop_assert!((f64::from(*fast) - slow).abs() < 2.0, "{divided:?}");
            }
        }
    }
}
