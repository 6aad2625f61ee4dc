//! Whatever standings and signals a control loop is given, its quotas keep the rules.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_cache::Quotas;
use cachewright_control::{Control, RequestMeter, SignalNeeds, Signals, TenantUsage};
use cachewright_curve::signal::SignalSet;
use cachewright_curve::{CurveSet, windows::Method};
use cachewright_partition::{
    CacheDivision, Need, Partitioner, TenantConstants, TenantGoal, TenantView, registry,
};
use cachewright_types::measure::Counts;
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const INTERVAL_NS: u64 = 1_000;

/// One interval: hits and misses of each tenant, and requests for its signals.
type Interval = (Vec<(u32, u32)>, Vec<(u16, u64, bool)>);

fn story(tenants: usize) -> impl Strategy<Value = Vec<Interval>> {
    let counts = prop::collection::vec((0_u32..5_000, 0_u32..5_000), tenants);
    let requests = prop::collection::vec((0..tenants as u16, 0_u64..400, any::<bool>()), 0..60);
    prop::collection::vec((counts, requests), 1..5)
}

fn request(tenant: u16, number: u64, write: bool, time_ns: u64) -> Request {
    Request {
        time: Nanos(time_ns),
        offset: Bytes(number << 12),
        length: Bytes(4096),
        op: if write { Op::Write } else { Op::Read },
        tenant: TenantId(tenant),
    }
}

/// Everything that any partitioner without a model or a drive reads.
fn meter(tenants: usize, steps: u32) -> RequestMeter {
    let curves = Some(CurveSet::new(tenants, &Method::Exact, Seed(3)));
    let signals = SignalSet { curves: true, steps: true, reuse: true, prices: true };
    let needs = SignalNeeds { curves, steps, signals };
    RequestMeter::new(needs.meter(tenants, INTERVAL_NS).unwrap(), 12)
}

fn add(standing: &mut TenantUsage, hits: u32, misses: u32) {
    standing.counts.reads += u64::from(hits) + u64::from(misses);
    standing.counts.read_hits += u64::from(hits);
}

fn constants() -> TenantConstants {
    let goal = Some(TenantGoal { hit_ratio: Some(0.5), ..TenantGoal::default() });
    TenantConstants { weight: 1.0, goal, ..TenantConstants::default() }
}

fn sum(blocks: &[u32]) -> u64 {
    blocks.iter().map(|blocks| u64::from(*blocks)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn quotas_sum_to_the_cache_within_the_bounds(
        (tenants, story) in (1_usize..5).prop_flat_map(|tenants| (Just(tenants), story(tenants))),
        total in 40_u32..2_000,
        limits in prop::collection::vec(1_u32..900, 5),
        bounded in any::<bool>(),
    ) {
        let hard = [Need::Model, Need::JointModel, Need::Future, Need::Channels];
        for entry in registry::entries() {
            if hard.iter().any(|need| entry.needs.contains(need)) {
                continue;
            }
            let partitioner = registry::boxed(entry.name, &[], tenants, Seed(1)).unwrap();
            let mut meter = meter(tenants, partitioner.steps().max(1));
            let mut control = Control::new(partitioner, vec![constants(); tenants], total);
            let limits = bounded.then(|| limits[..tenants].to_vec());
            limits.iter().for_each(|limits| control.bound(limits.clone()));
            let first = control.first();
            let mut quotas = control.within(first);
            let mut now = vec![TenantUsage::default(); tenants];
            for (interval, (counts, requests)) in story.iter().enumerate() {
                for (tenant, number, write) in requests {
                    let time_ns = interval as u64 * INTERVAL_NS;
                    meter.request(&request(*tenant, *number, *write, time_ns), time_ns);
                }
                let pools = quotas.pools_of(tenants);
                for (tenant, (hits, misses)) in counts.iter().enumerate() {
                    add(&mut now[tenant], *hits, *misses);
                    now[tenant].quota_blocks = quotas.blocks()[usize::from(pools[tenant])];
                    now[tenant].held_blocks = now[tenant].quota_blocks / 2;
                }
                let Some(next) = control.next(&now, &meter.end_interval()) else { break };
                prop_assert_eq!(next.pools_of(tenants).len(), tenants);
                match (&next, &limits) {
                    (Quotas::PerTenant(each), Some(limits)) => {
                        let all = u64::from(total).min(sum(limits));
                        prop_assert_eq!(sum(each), all, "{}", entry.name);
                        prop_assert!(each.iter().zip(limits).all(|(quota, limit)| quota <= limit));
                    }
                    (Quotas::Pools { of: pool_of, blocks }, Some(limits)) => {
                        for (pool, limit) in pool_of.iter().zip(limits) {
                            prop_assert!(blocks[usize::from(*pool)] <= *limit, "{}", entry.name);
                        }
                        prop_assert!(sum(blocks) <= u64::from(total));
                    }
                    (quotas, _) => {
                        prop_assert_eq!(sum(quotas.blocks()), u64::from(total), "{}", entry.name);
                    }
                }
                quotas = next;
            }
            let moved = control.churn();
            prop_assert!(moved.is_none_or(|churn| churn.max <= 1.0 && churn.mean <= churn.max));
        }
    }

    #[test]
    fn a_division_sees_the_interval_since_the_last_one_and_the_tenants_present(
        steps in prop::collection::vec((any::<bool>(), 0_u32..90, 0_u32..90, any::<bool>()), 1..20),
    ) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut control = Control::new(Box::new(Spy(seen.clone())), vec![constants(); 2], 100);
        control.set_futures(vec![(0..40).map(|number| vec![f64::from(number)]).collect()]);
        control.first();
        let (mut now, mut since) = ([TenantUsage::default(); 2], (0, 0));
        let mut intervals = 1;
        seen.lock().unwrap().clear();
        for (within, hits, misses, absent) in steps {
            add(&mut now[0], hits, misses);
            since = (since.0 + u64::from(hits + misses), since.1 + u64::from(hits));
            control.set_absent(vec![absent, false]);
            let quotas = if within {
                control.redivide(&now)
            } else {
                control.next(&now, &Signals::default())
            };
            prop_assert_eq!(quotas, Some(Quotas::PerTenant(vec![60, 40])));
            let view = seen.lock().unwrap().pop().unwrap();
            let expected = (since.0, since.1, absent, Some(f64::from(intervals)));
            prop_assert_eq!(view, expected, "the first tenant");
            if !within {
                (since, intervals) = ((0, 0), intervals + 1);
            }
        }
    }
}

/// Accesses, hits, absence and future of a tenant at a division.
type Seen = (u64, u64, bool, Option<f64>);

/// Keeps what the last division saw of the first tenant.
struct Spy(Arc<Mutex<Vec<Seen>>>);

cachewright_snapshot::refused!(Spy: "a partitioner of this test");

impl Partitioner for Spy {
    fn divide(&mut self, tenants: &[TenantView], _: u32) -> CacheDivision {
        let view = &tenants[0];
        let future = view.future_ns.map(|row| row[0]);
        self.0.lock().unwrap().push((view.accesses, view.hits, view.absent, future));
        assert!(tenants[1].future_ns.is_none() && !tenants[1].absent);
        CacheDivision::PerTenant(vec![60, 40])
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        1
    }
}

#[test]
fn two_engines_divide_as_one_that_holds_both_halves() {
    let whole = |halves: &[TenantUsage; 2]| {
        let mut sum = halves[0];
        sum.add(&halves[1]);
        sum
    };
    let counts = |reads, read_hits| Counts { reads, read_hits, ..Counts::default() };
    let half = |reads, hits| TenantUsage { counts: counts(reads, hits), ..TenantUsage::default() };
    let (a, b) = ([half(100, 90), half(50, 5)], [half(10, 1), half(7, 6)]);
    let quotas = |now: Vec<TenantUsage>| {
        let partitioner = registry::boxed("soft-qos", &[], 2, Seed(1)).unwrap();
        let mut control = Control::new(partitioner, vec![constants(); 2], 64);
        control.first();
        control.next(&now, &Signals::default())
    };
    let together = vec![
        TenantUsage { counts: counts(150, 95), ..a[0] },
        TenantUsage { counts: counts(17, 7), ..b[0] },
    ];
    assert_eq!(quotas(vec![whole(&a), whole(&b)]), quotas(together));
}
