//! `icache-x`: worked cases, agreement with trying every division, and what holds it back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_curve::signal::{Price, Prices, TenantSignals};
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_partition::icache_x::{ICacheX, ICacheXSettings, minimize_worst};
use cachewright_partition::response_model::{
    AccessPattern, RequestCost, Slowdown, WaitGrowth, grid,
};
use cachewright_partition::{CacheDivision, Partitioner, Registered, TenantView};
use cachewright_types::Seed;
use proptest::prelude::*;

/// Responses of so long; what is beyond 20 us passes behind memory.
fn price(count: u64, mean_ns: u64) -> Price {
    let behind_ns = count * mean_ns.saturating_sub(20_000);
    Price { count, sum_ns: count * mean_ns, behind_ns }
}

/// Curves of a tenant that reads only: 1,000 reads, misses in a straight line between knots.
fn reads(knots: &[(u32, f64)]) -> Curves {
    let curve = |accesses| Curve::from_knots(knots.iter().copied(), accesses, Provenance::Exact);
    Curves { all: curve(1000), reads: curve(1000), writes: curve(0) }
}

/// Half of 1,000 reads hit; a hit takes 20 us, a miss 120.
fn half_hit() -> Prices {
    let (hits, misses) = (price(500, 20_000), price(500, 120_000));
    Prices { read_hits: hits, read_misses: misses, ..Prices::default() }
}

fn view<'a>(curves: &'a Curves, prices: &'a Prices, quota: u32) -> TenantView<'a> {
    TenantView {
        accesses: 1000,
        quota_blocks: quota,
        signals: TenantSignals {
            curves: Some(curves),
            prices: Some(prices),
            ..TenantSignals::default()
        },
        ..TenantView::default()
    }
}

/// The worst first, without damping, reserve or prior.
fn free() -> ICacheXSettings {
    ICacheXSettings {
        worst_first: true,
        most_moved: 1.0,
        least_gain: 0.0,
        reserve: 0.0,
        prior_requests: 0.0,
        ..ICacheXSettings::default()
    }
}

fn quotas(scheme: &mut ICacheX, views: &[TenantView], total: u32) -> Vec<u32> {
    match scheme.divide(views, total) {
        CacheDivision::PerTenant(quotas) => quotas,
        _ => Vec::new(),
    }
}

#[test]
fn two_tenants_are_slowed_alike_or_their_mean_is_least() {
    // Slowdowns 1 + 5 (1 - a / 100) and 1 + 5 (1 - b / 50): equal where a = 2 b, thus at 66 and
    // 34. In the mean each block saves the second twice as much until it has its 50.
    let (wide, narrow, prices) = (reads(&[(100, 0.0)]), reads(&[(50, 0.0)]), half_hit());
    let never = Prices { read_hits: price(1000, 20_000), ..Prices::default() };
    let views = [view(&wide, &prices, 50), view(&narrow, &never, 50)];
    let mut worst = ICacheX::new(&free(), 2, Seed(1));
    assert_eq!(quotas(&mut worst, &views, 100), [66, 34]);
    let settings = ICacheXSettings { worst_first: false, ..free() };
    let mut mean = ICacheX::new(&settings, 2, Seed(1));
    assert_eq!(quotas(&mut mean, &views, 100), [50, 50]);
}

#[test]
fn a_norm_lies_between_the_mean_and_the_worst() {
    // As above: the mean gives 50 and 50, the worst 66 and 34.
    let (wide, narrow, prices) = (reads(&[(100, 0.0)]), reads(&[(50, 0.0)]), half_hit());
    let never = Prices { read_hits: price(1000, 20_000), ..Prices::default() };
    let views = [view(&wide, &prices, 50), view(&narrow, &never, 50)];
    let first = |norm: f64, granules: u32| {
        let settings = ICacheXSettings { worst_first: false, norm, granules, ..free() };
        quotas(&mut ICacheX::new(&settings, 2, Seed(1)), &views, 100)[0]
    };
    assert_eq!([first(1.0, 0), first(1.0, 100)], [50, 50]);
    // The sum of squares is least where 6 - a / 20 is twice 6 - b / 10, thus at 56 and 44.
    assert_eq!([first(2.0, 0), first(2.0, 100)], [56, 56]);
    let high = first(16.0, 100);
    assert!((64..=66).contains(&high), "{high}");
}

#[test]
fn granules_follow_a_cliff_that_hulls_miss() {
    // The first tenant loses all misses at 60 blocks and none before; the second loses 2 per block.
    let cliff = reads(&[(59, 1000.0), (60, 0.0)]);
    let (line, prices) = (reads(&[(100, 800.0)]), half_hit());
    let views = [view(&cliff, &prices, 50), view(&line, &prices, 50)];
    let settings = ICacheXSettings { worst_first: false, granules: 100, ..free() };
    let exact = quotas(&mut ICacheX::new(&settings, 2, Seed(1)), &views, 100);
    assert_eq!(exact, [60, 40]);
    // Two such tenants do not fit. One has its 60 blocks; a hull would give both half.
    let views = [view(&cliff, &prices, 50), view(&cliff, &prices, 50)];
    let exact = quotas(&mut ICacheX::new(&settings, 2, Seed(1)), &views, 100);
    assert!(exact.iter().any(|quota| *quota >= 60), "{exact:?}");
}

#[test]
fn a_tenant_that_cannot_gain_does_not_starve_the_others() {
    // The first gains only with the whole cache; the others stop gaining at 40 and 20 blocks.
    let cliff = reads(&[(99, 1000.0), (100, 0.0)]);
    let (wide, narrow, prices) = (reads(&[(40, 0.0)]), reads(&[(20, 0.0)]), half_hit());
    let views = [&cliff, &wide, &narrow].map(|curves| view(curves, &prices, 30));
    let mut scheme = ICacheX::new(&free(), 3, Seed(1));
    let divided = quotas(&mut scheme, &views, 100);
    assert!(divided[1] >= 40 && divided[2] >= 20, "{divided:?}");
    assert_eq!(divided.iter().sum::<u32>(), 100);
}

#[test]
fn small_gains_move_nothing_and_large_ones_a_part() {
    let (wide, narrow, prices) = (reads(&[(100, 0.0)]), reads(&[(50, 0.0)]), half_hit());
    let views = [view(&wide, &prices, 50), view(&narrow, &prices, 50)];
    // The worst falls from 3.5 to 2.7.
    let idle = ICacheXSettings { least_gain: 0.3, ..free() };
    assert_eq!(quotas(&mut ICacheX::new(&idle, 2, Seed(1)), &views, 100), [50, 50]);
    let slow = ICacheXSettings { most_moved: 0.1, ..free() };
    let mut slow = ICacheX::new(&slow, 2, Seed(1));
    assert_eq!(quotas(&mut slow, &views, 100), [60, 40]);
    assert_eq!(quotas(&mut slow, &views, 100), [66, 34]);
}

#[test]
fn writes_that_are_taken_at_once_claim_nothing() {
    let curve = |accesses| Curve::from_knots([(100, 0.0)], accesses, Provenance::Exact);
    let writer = Curves { all: curve(1000), reads: curve(0), writes: curve(1000) };
    let at_once = Prices { write_hits: price(1000, 20_000), ..Prices::default() };
    let (reader, prices) = (reads(&[(100, 0.0)]), half_hit());
    let views = [view(&writer, &at_once, 50), view(&reader, &prices, 50)];
    let mut scheme = ICacheX::new(&free(), 2, Seed(1));
    assert_eq!(quotas(&mut scheme, &views, 100), [0, 100]);
    let reserved = ICacheXSettings { reserve: 0.2, ..free() };
    let mut scheme = ICacheX::new(&reserved, 2, Seed(1));
    assert_eq!(quotas(&mut scheme, &views, 100), [10, 90]);
}

#[test]
fn a_tenant_whose_misses_queue_has_what_shortens_its_queue_and_no_more() {
    // Half of all reads miss with 50 of 100 blocks. Misses of the first wait 100 us and then ten
    // times as long, those of the second 200 us, so that each block saves it 0.1 of its slowdown.
    let line = reads(&[(100, 0.0)]);
    let with = |mean_ns| Prices { read_misses: price(500, mean_ns), ..half_hit() };
    let (idle, overrun, other) = (with(120_000), with(1_020_000), with(220_000));
    let first = |queueing: f64| {
        let settings = ICacheXSettings { queueing, worst_first: false, half_life: 0.1, ..free() };
        let mut scheme = ICacheX::new(&settings, 2, Seed(1));
        quotas(&mut scheme, &[view(&line, &idle, 50), view(&line, &other, 50)], 100);
        quotas(&mut scheme, &[view(&line, &overrun, 50), view(&line, &other, 50)], 100)[0]
    };
    // At constant waits a block saves 0.5. In a queue of a utilisation of 8/9 it saves
    // 0.5 / 9 / (1 - 16/9 r)^2 at a miss ratio of r, which is 0.1 at 0.143.
    let found = [first(0.0), first(8.0)];
    assert!(found[0] == 100 && (84..=88).contains(&found[1]), "{found:?}");
}

#[test]
fn an_idle_tenant_keeps_its_share_for_a_while_and_regains_it() {
    let settings = ICacheXSettings { lend_after: 2, ..free() };
    let (busy, prices) = (reads(&[(100, 0.0)]), half_hit());
    let nothing = Curve::from_knots([], 0, Provenance::Exact);
    let silent = Curves { all: nothing.clone(), reads: nothing.clone(), writes: nothing };
    let none = Prices::default();
    let mut scheme = ICacheX::new(&settings, 2, Seed(1));
    let awake = view(&busy, &prices, 50);
    let asleep = TenantView { accesses: 0, ..view(&silent, &none, 50) };
    assert_eq!(quotas(&mut scheme, &[awake; 2], 100), [50, 50]);
    assert_eq!(quotas(&mut scheme, &[awake, asleep], 100), [50, 50]);
    assert_eq!(quotas(&mut scheme, &[awake, asleep], 100), [100, 0]);
    assert_eq!(quotas(&mut scheme, &[asleep; 2], 100), [100, 0], "all idle: nothing moves");
    assert_eq!(quotas(&mut scheme, &[awake; 2], 100), [50, 50]);
}

/// Slowdowns of random curves on a cache of `total` blocks.
fn slowdowns(curves: &[Vec<f64>], total: u32) -> Vec<Slowdown> {
    let sizes = grid(total);
    let slowdown = |falls: &Vec<f64>| {
        let mut remaining = 1000.0;
        let knots = falls.iter().zip(1_u32..).map(|(fall, index)| {
            remaining *= fall;
            (index * total / falls.len() as u32, remaining)
        });
        let mut pattern = AccessPattern::default();
        pattern.learn(&reads(&knots.collect::<Vec<_>>()), &sizes, 0.0);
        let cost = RequestCost {
            requests: 1000.0,
            hit_ns: 10.0,
            added_miss_ns: 90.0,
            max_added_ns: 90.0,
            ..RequestCost::default()
        };
        pattern.slowdown(&[cost, RequestCost::default()], WaitGrowth::NONE, &sizes)
    };
    curves.iter().map(slowdown).collect()
}

/// Every division of `total` blocks in which everyone has its floor.
fn divisions(tenants: usize, total: u32, floor: u32) -> Vec<Vec<u32>> {
    if tenants == 1 {
        return vec![vec![total]];
    }
    let with = |first: u32| {
        divisions(tenants - 1, total - first, floor).into_iter().map(move |mut rest| {
            rest.insert(0, first);
            rest
        })
    };
    (floor..=total - floor * (tenants as u32 - 1)).flat_map(with).collect()
}

fn falls() -> impl Strategy<Value = Vec<f64>> {
    // Some parts of a curve are flat, some are cliffs.
    let fall = prop_oneof![2 => Just(1.0), 1 => Just(0.1), 3 => 0.3_f64..1.0];
    prop::collection::vec(fall, 1..12)
}

proptest! {
    #[test]
    fn no_division_has_a_lower_worst_slowdown(
        curves in prop::collection::vec(falls(), 1..4), total in 12_u32..40, floor in 0_u32..4,
    ) {
        let (sizes, slowdowns) = (grid(total), slowdowns(&curves, total));
        let floors = vec![floor; curves.len()];
        let everyone = (0..curves.len()).collect();
        let found = minimize_worst(&slowdowns, &sizes, total, &floors, everyone);
        prop_assert!(found.iter().sum::<u32>() <= total);
        prop_assert!(found.iter().all(|&quota| quota >= floor));
        let worst = |quotas: &[u32]| {
            let both = slowdowns.iter().zip(quotas);
            both.map(|(slowdown, quota)| slowdown.value_at(*quota, &sizes)).fold(1.0, f64::max)
        };
        let all = divisions(curves.len(), total, floor);
        let best = all.iter().map(|quotas| worst(quotas)).fold(f64::INFINITY, f64::min);
        prop_assert!((worst(&found) - best).abs() <= 1e-6 * best, "{} {best}", worst(&found));
    }

    #[test]
    fn quotas_keep_the_rules_and_repeat(
        story in prop::collection::vec(prop::collection::vec(
            (falls(), 0_u64..2_000, 0_u64..2_000, 0_u64..1_000_000), 3), 1..6),
        total in prop_oneof![0_u32..40, 100_u32..100_000, Just(u32::MAX)],
        worst_first in any::<bool>(),
    ) {
        let run = || {
            let settings = ICacheXSettings { worst_first, ..ICacheXSettings::default() };
            let mut scheme = ICacheX::new(&settings, 3, Seed(1));
            let mut last = vec![0; 3];
            let divided: Vec<Vec<u32>> = story.iter().map(|interval| {
                let seen: Vec<(Curves, Prices)> = interval.iter().map(|(falls, hits, misses, ns)| {
                    let knot = |(fall, index): (&f64, u32)| (index * 7, fall * 1e3);
                    let knots = falls.iter().zip(1_u32..).map(knot);
                    let prices = Prices {
                        read_hits: price(*hits, *ns / 10),
                        read_misses: price(*misses, *ns),
                        write_hits: price(*misses, *ns % 1000),
                        write_misses: price(*hits % 7, *ns),
                        ..Prices::default()
                    };
                    (reads(&knots.collect::<Vec<_>>()), prices)
                }).collect();
                let seen = seen.iter().zip(&last).zip(interval);
                let views: Vec<TenantView> = seen.map(|(((curves, prices), quota), interval)| {
                    TenantView { accesses: interval.1, ..view(curves, prices, *quota) }
                }).collect();
                last = quotas(&mut scheme, &views, total);
                last.clone()
            }).collect();
            (divided, scheme.floor_blocks(3, total))
        };
        let (divided, floor) = run();
        for quotas in &divided {
            let audit = CacheDivision::PerTenant(quotas.clone()).audit(3, total, floor);
            prop_assert_eq!(audit, Ok(()));
        }
        prop_assert_eq!(run().0, divided);
    }
}
