//! Rules every registered partitioner keeps, whatever it is shown and whatever its models say.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cachewright_curve::signal::{
    BINS, FEATURES, Price, Prices, ResponseClasses, StepCounts, TenantSignals,
};
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_model::NetworkKind;
use cachewright_partition::{
    CacheDivision, Entry, Models, Need, Partitioner, TenantConstants, TenantGoal, TenantView,
    registry,
};
use cachewright_snapshot::{restore, saved};
use cachewright_testkit::models::small_random_model;
use cachewright_types::registry::check_needs;
use cachewright_types::{Seed, Value};
use proptest::prelude::*;

/// Steps of an interval.
const STEPS: usize = 6;
/// Granules of the cache.
const GRANULES: usize = 10;
/// The window of models, as their files note it.
const WINDOW: (&str, &str) = ("window_steps", "6");

/// A tenant in one interval.
#[derive(Clone, Debug)]
struct Interval {
    facts: TenantConstants,
    hits: u64,
    curves: Option<Curves>,
    signals: OtherSignals,
}

/// Signals besides counts and curves.
#[derive(Clone, Debug, Default)]
struct OtherSignals {
    steps: Vec<StepCounts>,
    prices: Option<Prices>,
    reuse: [u32; BINS],
    future_ns: Vec<f64>,
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
    let schedule = prop::collection::vec(0.0_f64..10.0, 0..3);
    (weight, schedule, hits, prop::option::weighted(0.9, curves()), signals()).prop_map(
        |(weight, schedule, hits, curves, signals)| {
            let goal = Some(TenantGoal { hit_ratio: Some(0.5), ..TenantGoal::default() });
            let facts = TenantConstants { weight, schedule, goal, ..TenantConstants::default() };
            Interval { facts, hits, curves, signals }
        },
    )
}

/// Curves of reads, of writes and of both.
fn curves() -> impl Strategy<Value = Curves> {
    (curve(), curve(), curve()).prop_map(|(all, reads, writes)| Curves { all, reads, writes })
}

fn step() -> impl Strategy<Value = StepCounts> {
    let busy = (1_u32..100_000, 0.0_f64..1.0, 0.0_f64..1.0, 1_u64..10_000_000);
    let busy = busy.prop_map(|(requests, writes, unique, bytes)| {
        let share = |ratio: f64| (f64::from(requests) * ratio) as u32;
        StepCounts { requests, writes: share(writes), bytes, unique: share(unique) }
    });
    prop_oneof![1 => Just(StepCounts::default()), 3 => busy]
}

fn price() -> impl Strategy<Value = Price> {
    let some = (1_u64..1_000, 0_u64..1 << 40, 0.0_f64..1.0).prop_map(|(count, sum_ns, behind)| {
        Price { count, sum_ns, behind_ns: (sum_ns as f64 * behind) as u64 }
    });
    prop_oneof![1 => Just(Price::default()), 3 => some]
}

fn signals() -> impl Strategy<Value = OtherSignals> {
    let steps = prop_oneof![1 => Just(Vec::new()), 3 => prop::collection::vec(step(), STEPS)];
    let prices = (price(), price(), price(), price()).prop_map(
        |(read_hits, read_misses, write_hits, write_misses)| {
            let mut responses = ResponseClasses::default();
            for price in [read_hits, read_misses, write_hits, write_misses] {
                let mean_ns = price.sum_ns / price.count.max(1);
                (0..price.count).for_each(|_| responses.add(mean_ns));
            }
            Prices { read_hits, read_misses, write_hits, write_misses, responses }
        },
    );
    let reuse = prop::array::uniform10(prop_oneof![Just(0), 0_u32..40_000]);
    let future_ns = prop_oneof![
        1 => Just(Vec::new()),
        1 => Just(vec![0.0; GRANULES + 1]),
        4 => prop::collection::vec(0.0_f64..1e9, GRANULES + 1),
    ];
    (steps, prop::option::weighted(0.8, prices), reuse, future_ns).prop_map(
        |(steps, prices, reuse, future_ns)| OtherSignals { steps, prices, reuse, future_ns },
    )
}

/// Several intervals of the same tenants.
fn story() -> impl Strategy<Value = Vec<Vec<Interval>>> {
    (1_usize..9).prop_flat_map(|tenants| {
        let intervals = prop::collection::vec(prop::collection::vec(interval(), tenants), 1..5);
        let sensitive = prop::collection::vec(any::<bool>(), tenants);
        (intervals, sensitive).prop_map(|(mut story, sensitive)| {
            for intervals in &mut story {
                for (interval, sensitive) in intervals.iter_mut().zip(&sensitive) {
                    interval.facts.sensitive = *sensitive;
                }
            }
            story
        })
    })
}

fn views(intervals: &[Interval]) -> Vec<TenantView<'_>> {
    fn view(interval: &Interval) -> TenantView<'_> {
        let Interval { facts, hits, curves, signals } = interval;
        TenantView {
            facts,
            accesses: *hits * 2,
            hits: *hits,
            signals: TenantSignals {
                curves: curves.as_ref(),
                steps: Some(&signals.steps),
                reuse: Some(&signals.reuse),
                prices: signals.prices.as_ref(),
            },
            future_ns: Some(&signals.future_ns),
            ..TenantView::default()
        }
    }
    intervals.iter().map(view).collect()
}

/// A partitioner as it is by default, but one that lends does so after one idle interval, one that
/// looks at steps after one interval, with random models.
fn make(name: &str, tenants: usize) -> Box<dyn Partitioner> {
    make_with(name, tenants, &[])
}

/// One with further settings, where it has them.
fn make_with(name: &str, tenants: usize, more: &[(&str, Value)]) -> Box<dyn Partitioner> {
    let small = [("lend_after", 1), ("steps_per_interval", 6), ("window_steps", 6)];
    let small = small.map(|(key, number)| (key, Value::Int(number)));
    let specs = registry::keys(name).unwrap();
    let given = small.iter().chain(more);
    let pairs: Vec<(String, Value)> = given
        .filter(|(key, _)| specs.iter().any(|spec| spec.name == *key))
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect();
    let mut made = registry::boxed(name, &pairs, tenants, Seed(1)).unwrap();
    if tenants == 0 {
        return made;
    }
    if let Err(error) = made.learn(&models(name, tenants)) {
        panic!("`{name}` needs another model here: {error}");
    }
    made
}

/// Random models of the shapes that partitioners ask for; all tenants' are the same one.
fn models(name: &str, tenants: usize) -> Models {
    let needs = registry::entry(name).unwrap().needs;
    let mut given = Models::default();
    if needs.contains(&Need::Model) {
        let (names, notes) = (FEATURES.map(str::to_owned), [("granules", "10"), WINDOW]);
        let file = small_random_model(NetworkKind::Lstm, &names, 2, &notes, 1).to_bytes().unwrap();
        given.each = vec![file; tenants];
    }
    if needs.contains(&Need::JointModel) {
        let bins = |tenant| (0..BINS).map(move |bin| format!("reuse.{tenant}.{bin}"));
        let names: Vec<String> = (0..tenants).flat_map(bins).collect();
        let file =
            small_random_model(NetworkKind::Mlp, &names, tenants, &[], 1).to_bytes().unwrap();
        given.joint = Some(file);
    }
    given
}

fn divisions(name: &str, story: &[Vec<Interval>], total: u32) -> Vec<CacheDivision> {
    divisions_of(make(name, story[0].len()), story, total)
}

fn divisions_of(
    mut partitioner: Box<dyn Partitioner>,
    story: &[Vec<Interval>],
    total: u32,
) -> Vec<CacheDivision> {
    story.iter().map(|intervals| partitioner.divide(&views(intervals), total)).collect()
}

fn per_tenant(quotas: &CacheDivision) -> Vec<u32> {
    match quotas {
        CacheDivision::Shared | CacheDivision::Elastic => Vec::new(),
        CacheDivision::PerTenant(quotas) => quotas.clone(),
        CacheDivision::Pools { pool_of, blocks } => {
            pool_of.iter().map(|pool| blocks[usize::from(*pool)]).collect()
        }
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
            for quotas in divisions(entry.name, &story, total) {
                prop_assert_eq!(quotas.audit(tenants, total, floor), Ok(()), "{}", entry.name);
            }
        }
    }

    #[test]
    fn the_same_story_gives_the_same_quotas(story in story(), total in 0_u32..2_000) {
        for entry in registry::entries() {
            let divided = || divisions(entry.name, &story, total);
            prop_assert_eq!(divided(), divided());
        }
    }

    #[test]
    fn what_continues_from_a_snapshot_divides_alike(
        (story, moment) in story().prop_flat_map(|story| {
            let moments = story.len() + 1;
            (Just(story), 0..moments)
        }),
        total in 0_u32..2_000,
    ) {
        for entry in registry::entries() {
            let make = || make(entry.name, story[0].len());
            let mut first = make();
            let (before, after) = story.split_at(moment);
            before.iter().for_each(|intervals| {
                first.divide(&views(intervals), total);
            });
            let bytes = saved(first.as_ref()).unwrap();
            let mut second = make();
            prop_assert_eq!(restore(second.as_mut(), &bytes), Ok(()), "{}", entry.name);
            prop_assert_eq!(saved(second.as_ref()).unwrap(), bytes);
            // Goes round, so that what is remembered is used.
            for intervals in after.iter().chain(&story) {
                let views = views(intervals);
                let expected = first.divide(&views, total);
                prop_assert_eq!(second.divide(&views, total), expected, "{}", entry.name);
            }
            prop_assert_eq!(saved(first.as_ref()), saved(second.as_ref()), "{}", entry.name);
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
        // `soft-qos` grants equal demands in the order of tenants; its own test relabels others. A
        // model of all tenants knows them by their places. Where a division stays unless another
        // gains enough, a block that a place has more at the start may decide.
        let by_place = |entry: &Entry| {
            let needs = |need| entry.needs.contains(&need);
            // Of divisions that are as good in time to come, `opt` takes one by place.
            entry.name == "soft-qos" || needs(Need::JointModel) || needs(Need::Future)
        };
        // Of those that grow alike `icache` gives what remains to the first, unless it spreads.
        let spread = [("spread", Value::Bool(true))];
        // Beside a weight that no stack file may have, sums of responses, or of rates, round others
        // away.
        let heaviest = story.iter().flatten().map(|own| own.facts.weight).fold(0.0, f64::max);
        let sums = |entry: &Entry| ["dp-response", "hare"].contains(&entry.name);
        let rounds = |entry: &Entry| sums(entry) && heaviest > 1e9;
        let entries = registry::entries();
        for entry in entries.iter().filter(|entry| !by_place(entry) && !rounds(entry)) {
            let divisions = |story: &[Vec<Interval>]| {
                divisions_of(make_with(entry.name, story[0].len(), &spread), story, total)
            };
            let quotas = divisions(&story);
            // One that moves part of the way rounds what is gained and what is lost, each time.
            let specs = registry::keys(entry.name).unwrap();
            let limits = |names: &[&str], no_limit: f64| {
                let mut given = specs.iter().filter(|spec| names.contains(&spec.name));
                given.any(|spec| spec.default_number() != no_limit)
            };
            let steps = limits(&["most_moved", "max_moved", "tax"], 1.0);
            let max_gap = if steps { 2 * story.len() as u32 } else { 1 };
            let stays = limits(&["least_gain", "min_gain"], 0.0);
            let even = total.is_multiple_of(order.len() as u32);
            // One that reads a curve just beyond a quota sees a cliff there or not by one block.
            let by_edge = specs.iter().any(|spec| spec.name == "shadow");
            let compared = match (stays || by_edge, by_edge) {
                (true, _) if !even => 0,
                (_, true) => 1,
                _ => story.len(),
            };
            for (there, here) in quotas.iter().zip(&divisions(&turned)).take(compared) {
                let (there, here) = (per_tenant(there), per_tenant(here));
                let mut is_equal = true;
                for (place, &tenant) in order.iter().enumerate().take(here.len()) {
                    // Remainders go to the first, so a place may decide about one block.
                    let gap = here[place].abs_diff(there[tenant]);
                    prop_assert!(gap <= max_gap, "{}: {there:?} {here:?} {order:?}", entry.name);
                    is_equal &= gap == 0;
                }
                // That block may decide whether the next division stays.
                if stays && !is_equal {
                    break;
                }
            }
        }
    }
}

#[test]
fn more_tenants_than_blocks_share_what_there_is() {
    let facts = TenantConstants { sensitive: true, ..TenantConstants::default() };
    let interval = Interval { facts, hits: 9, curves: None, signals: OtherSignals::default() };
    let story = vec![vec![interval; 5]];
    for entry in registry::entries() {
        for quotas in divisions(entry.name, &story, 3) {
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
    let check = |entry, provided: &[Need]| {
        let missing = |need| (!provided.contains(&need)).then(|| "one".to_owned());
        check_needs("partitioner", entry, missing).map_err(|error| error.to_string())
    };
    assert_eq!(check(hull, &[Need::Interval, Need::Curve]), Ok(()));
    let error = check(hull, &[Need::Interval, Need::Goal]).unwrap_err();
    let expected = "partitioner `hull` needs a curve per tenant, found none, expected one";
    assert_eq!(error, expected);
    assert_eq!(check(registry::entry("shared").unwrap(), &[]), Ok(()));
}

#[test]
fn the_audit_finds_what_is_broken() {
    let quotas = CacheDivision::PerTenant(vec![3, 4]);
    assert_eq!(quotas.audit(2, 7, 3), Ok(()));
    assert!(quotas.audit(2, 8, 0).is_err_and(|e| e.contains("sum to 7 of 8")));
    assert!(quotas.audit(2, 7, 4).is_err_and(|e| e.contains("tenant 0 has 3")));
    assert!(quotas.audit(3, 7, 0).is_err_and(|e| e.contains("2 quotas for 3 tenants")));
    let pools =
        |pool_of: &[u16]| CacheDivision::Pools { pool_of: pool_of.to_vec(), blocks: vec![3, 4] };
    assert_eq!(pools(&[1, 0, 1]).audit(3, 7, 3), Ok(()));
    assert!(pools(&[1, 0]).audit(3, 7, 0).is_err_and(|e| e.contains("2 quotas for 3")));
    assert!(pools(&[1, 1]).audit(2, 7, 0).is_err_and(|e| e == "pool 0 has no tenant"));
    assert!(pools(&[0, 2]).audit(2, 7, 0).is_err_and(|e| e == "pool 2 of 2 pools"));
    assert!(pools(&[0, 1]).audit(2, 8, 0).is_err_and(|e| e.contains("sum to 7 of 8")));
    assert!(pools(&[0, 1]).audit(2, 7, 4).is_err_and(|e| e.contains("pool 0 has 3")));
}
