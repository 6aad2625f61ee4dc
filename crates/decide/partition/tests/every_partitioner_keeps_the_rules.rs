//! Rules every registered partitioner keeps, whatever it is shown.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_curve::{Curve, Provenance};
use cachewright_partition::{Need, Partitioner, Quotas, TenantView, registry};
use cachewright_types::{Seed, SettingSpec, Value};
use proptest::prelude::*;

/// What a tenant looks like in one interval.
#[derive(Clone, Debug)]
struct Interval {
    weight: f64,
    hits: u64,
    curve: Option<Curve>,
    sensitive: bool,
}

fn curve() -> impl Strategy<Value = Curve> {
    let knot = (1_u32..400, 0.0_f64..1.0);
    (prop::collection::vec(knot, 0..12), 0_u64..5_000).prop_map(|(mut knots, accesses)| {
        knots.sort_by_key(|knot| knot.0);
        let knots = knots.into_iter().map(|(size, share)| (size, share * accesses as f64));
        Curve::from_knots(knots, accesses, Provenance::Exact)
    })
}

fn interval() -> impl Strategy<Value = Interval> {
    let weight = prop_oneof![4 => 0.0_f64..10.0, 1 => Just(0.0), 1 => Just(1e12)];
    let hits = prop_oneof![1 => Just(0), 3 => 0_u64..5_000];
    (weight, hits, prop::option::weighted(0.9, curve())).prop_map(|(weight, hits, curve)| {
        let sensitive = false;
        Interval { weight, hits, curve, sensitive }
    })
}

/// Several intervals of the same tenants.
fn story() -> impl Strategy<Value = Vec<Vec<Interval>>> {
    (1_usize..9).prop_flat_map(|tenants| {
        let intervals = prop::collection::vec(prop::collection::vec(interval(), tenants), 1..5);
        let sensitive = prop::collection::vec(any::<bool>(), tenants);
        (intervals, sensitive).prop_map(|(mut story, sensitive)| {
            for intervals in &mut story {
                for (interval, sensitive) in intervals.iter_mut().zip(&sensitive) {
                    interval.sensitive = *sensitive;
                }
            }
            story
        })
    })
}

fn views(intervals: &[Interval]) -> Vec<TenantView<'_>> {
    fn view(interval: &Interval) -> TenantView<'_> {
        let Interval { weight, hits, curve, sensitive } = interval;
        TenantView {
            name: "tenant",
            weight: *weight,
            accesses: *hits * 2,
            hits: *hits,
            write_share: 0.5,
            quota_blocks: 0,
            occupancy_blocks: 0,
            curve: curve.as_ref(),
            goal_hit_ratio: Some(0.5),
            profile: &[],
            sensitive: *sensitive,
            ..TenantView::default()
        }
    }
    intervals.iter().map(view).collect()
}

/// A partitioner as it is by default, but one that lends does so after one idle interval.
fn make(name: &str, tenants: usize) -> Box<dyn Partitioner> {
    let lends = |spec: &SettingSpec| spec.name == "lend_after";
    let specs = registry::setting_specs(name).unwrap();
    let pairs = specs.iter().find(|spec| lends(spec)).map(|_| ("lend_after".into(), Value::Int(1)));
    registry::boxed(name, pairs.as_slice(), tenants, Seed(1)).unwrap()
}

fn told(name: &str, story: &[Vec<Interval>], total: u32) -> Vec<Quotas> {
    let mut partitioner = make(name, story[0].len());
    story.iter().map(|intervals| partitioner.divide(&views(intervals), total)).collect()
}

fn per_tenant(quotas: &Quotas) -> Vec<u32> {
    match quotas {
        Quotas::Shared | Quotas::Elastic => Vec::new(),
        Quotas::PerTenant(quotas) => quotas.clone(),
        Quotas::Pools { of, blocks } => of.iter().map(|pool| blocks[usize::from(*pool)]).collect(),
    }
}

proptest! {
    #[test]
    fn quotas_sum_to_the_cache_and_floors_are_kept(
        story in story(),
        total in prop_oneof![0_u32..12, 0_u32..2_000, Just(u32::MAX)],
    ) {
        for entry in registry::entries() {
            let tenants = story[0].len();
            let floor = make(entry.name, tenants).floor_blocks(tenants, total);
            for quotas in told(entry.name, &story, total) {
                prop_assert_eq!(quotas.audit(tenants, total, floor), Ok(()), "{}", entry.name);
            }
        }
    }

    #[test]
    fn the_same_story_gives_the_same_quotas(story in story(), total in 0_u32..2_000) {
        for entry in registry::entries() {
            prop_assert_eq!(told(entry.name, &story, total), told(entry.name, &story, total));
        }
    }

    #[test]
    fn tenants_in_another_order_get_the_same(
        (story, order) in story().prop_flat_map(|story| {
            let order: Vec<usize> = (0..story[0].len()).collect();
            (Just(story), Just(order).prop_shuffle())
        }),
        total in 0_u32..2_000,
    ) {
        let turned: Vec<Vec<Interval>> = story
            .iter()
            .map(|intervals| order.iter().map(|&tenant| intervals[tenant].clone()).collect())
            .collect();
        // `soft-qos` grants equal demands in the order of tenants; its own test relabels others.
        for entry in registry::entries().iter().filter(|entry| entry.name != "soft-qos") {
            let quotas = told(entry.name, &story, total);
            // One that moves part of the way rounds what is gained and what is lost, each time.
            let specs = registry::setting_specs(entry.name).unwrap();
            let steps = specs.iter().any(|spec| spec.name == "most_moved");
            let most = if steps { 2 * story.len() as u32 } else { 1 };
            for (there, here) in quotas.iter().zip(&told(entry.name, &turned, total)) {
                let (there, here) = (per_tenant(there), per_tenant(here));
                for (place, &tenant) in order.iter().enumerate().take(here.len()) {
                    // Remainders go to the first, so a place may decide about one block.
                    let gap = here[place].abs_diff(there[tenant]);
                    prop_assert!(gap <= most, "{}: {there:?} {here:?} {order:?}", entry.name);
                }
            }
        }
    }
}

#[test]
fn more_tenants_than_blocks_share_what_there_is() {
    let interval = Interval { weight: 1.0, hits: 9, curve: None, sensitive: true };
    let story = vec![vec![interval; 5]];
    for entry in registry::entries() {
        for quotas in told(entry.name, &story, 3) {
            assert_eq!(quotas.audit(5, 3, 0), Ok(()), "{}", entry.name);
            assert!(per_tenant(&quotas).iter().all(|&blocks| blocks <= 1), "{}", entry.name);
        }
    }
}

#[test]
fn no_tenants_are_no_reason_to_fail() {
    for entry in registry::entries() {
        let quotas = make(entry.name, 0).divide(&[], 10);
        assert_eq!(per_tenant(&quotas), Vec::<u32>::new(), "{}", entry.name);
    }
}

#[test]
fn needs_are_checked_before_a_run() {
    let hull = registry::entry("hull").unwrap();
    assert_eq!(registry::check_needs(hull, &[Need::Interval, Need::Curve]), Ok(()));
    let error = registry::check_needs(hull, &[Need::Interval, Need::Goal]).unwrap_err();
    assert_eq!(error.to_string(), "partitioner `hull` needs a curve per tenant, found none");
    assert_eq!(registry::check_needs(registry::entry("shared").unwrap(), &[]), Ok(()));
}

#[test]
fn the_audit_finds_what_is_broken() {
    let quotas = Quotas::PerTenant(vec![3, 4]);
    assert_eq!(quotas.audit(2, 7, 3), Ok(()));
    assert!(quotas.audit(2, 8, 0).is_err_and(|e| e.contains("sum to 7 of 8")));
    assert!(quotas.audit(2, 7, 4).is_err_and(|e| e.contains("tenant 0 has 3")));
    assert!(quotas.audit(3, 7, 0).is_err_and(|e| e.contains("2 quotas for 3 tenants")));
    let pools = |of: &[u16]| Quotas::Pools { of: of.to_vec(), blocks: vec![3, 4] };
    assert_eq!(pools(&[1, 0, 1]).audit(3, 7, 3), Ok(()));
    assert!(pools(&[1, 0]).audit(3, 7, 0).is_err_and(|e| e.contains("2 quotas for 3")));
    assert!(pools(&[1, 1]).audit(2, 7, 0).is_err_and(|e| e == "pool 0 is nobody's"));
    assert!(pools(&[0, 2]).audit(2, 7, 0).is_err_and(|e| e == "pool 2 of 2 pools"));
    assert!(pools(&[0, 1]).audit(2, 8, 0).is_err_and(|e| e.contains("sum to 7 of 8")));
    assert!(pools(&[0, 1]).audit(2, 7, 4).is_err_and(|e| e.contains("pool 0 has 3")));
}
