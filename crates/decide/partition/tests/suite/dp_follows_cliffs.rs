//! What `dp` and `dp-response` do with curves that have cliffs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cachewright_curve::signal::{Price, Prices, TenantSignals};
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_partition::{CacheDivision, Partitioner, TenantConstants, TenantView, boxed};
use cachewright_types::{Seed, Value};
use proptest::prelude::*;

/// Misses stay up to a size, and there fall to 0.
fn cliff(accesses: u64, blocks: u32) -> Curve {
    let edge = [(blocks - 1, accesses as f64), (blocks, 0.0)];
    Curve::from_knots(edge, accesses, Provenance::Exact)
}

/// Misses fall in a straight line to 0.
fn line(accesses: u64, blocks: u32) -> Curve {
    Curve::from_knots([(blocks, 0.0)], accesses, Provenance::Exact)
}

/// Curves of a tenant that reads only.
fn reads(curve: &Curve) -> Curves {
    let none = Curve::from_knots([], 0, Provenance::Exact);
    Curves { all: curve.clone(), reads: curve.clone(), writes: none }
}

/// A tenant that holds `quota_blocks`, with as many hits as its curve expects there.
fn view<'a>(
    facts: &'a TenantConstants,
    curves: &'a Curves,
    prices: Option<&'a Prices>,
    quota_blocks: u32,
) -> TenantView<'a> {
    let accesses = curves.all.accesses();
    let hits = accesses - curves.all.misses(quota_blocks) as u64;
    let signals = TenantSignals { curves: Some(curves), prices, ..TenantSignals::default() };
    TenantView { facts, accesses, hits, quota_blocks, signals, ..TenantView::default() }
}

fn settings(pairs: &[(&str, Value)]) -> Vec<(String, Value)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

fn quotas(made: &mut dyn Partitioner, views: &[TenantView], total: u32) -> Vec<u32> {
    match made.divide(views, total) {
        CacheDivision::PerTenant(quotas) => quotas,
        other => panic!("quotas of its own for each, not {other:?}"),
    }
}

/// The division of tenants of these curves and weights.
fn divided(name: &str, pairs: &[(&str, Value)], given: &[(&Curve, f64)], total: u32) -> Vec<u32> {
    let mut made = boxed(name, &settings(pairs), given.len(), Seed(1)).unwrap();
    let facts = |weight: f64| TenantConstants { weight, ..TenantConstants::default() };
    let given: Vec<(TenantConstants, Curves)> =
        given.iter().map(|(curve, weight)| (facts(*weight), reads(curve))).collect();
    let views: Vec<TenantView> =
        given.iter().map(|(facts, curves)| view(facts, curves, None, 0)).collect();
    quotas(made.as_mut(), &views, total)
}

const NO_FLOOR: (&str, Value) = ("floor_blocks", Value::Int(0));

#[test]
fn a_cliff_that_does_not_fit_gets_nothing() {
    // Cliffs of 100 and of 90 misses need 60 blocks each, a line saves 30 misses in 40 blocks.
    let (high, low, slope) = (cliff(100, 60), cliff(90, 60), line(30, 40));
    let tenants = [(&high, 1.0), (&low, 1.0), (&slope, 1.0)];
    // By minorants the lower cliff falls by 1.5 per block, the line by 0.75: its 40 blocks are
    // wasted, and 120 misses are left. The optimum leaves 90.
    assert_eq!(divided("hull", &[NO_FLOOR], &tenants, 100), [60, 40, 0]);
    assert_eq!(divided("dp", &[NO_FLOOR], &tenants, 100), [60, 0, 40]);
    // In granules of 25 blocks the high cliff takes 75, and the line the rest.
    let coarse = [NO_FLOOR, ("granules", Value::Int(4))];
    assert_eq!(divided("dp", &coarse, &tenants, 100), [75, 0, 25]);
}

#[test]
fn misses_can_have_prices() {
    let (high, low, slope) = (cliff(100, 60), cliff(90, 60), line(30, 40));
    let tenants = [(&high, 1.0), (&low, 2.0), (&slope, 1.0)];
    assert_eq!(divided("dp", &[NO_FLOOR], &tenants, 100), [60, 0, 40], "weights do not count");
    let weighted = [NO_FLOOR, ("weighted", Value::Bool(true))];
    assert_eq!(divided("dp", &weighted, &tenants, 100), [0, 60, 40], "180 against 100");
}

#[test]
fn blocks_that_save_nothing_are_divided_equally() {
    let (small, silent) = (line(100, 20), line(0, 1));
    assert_eq!(divided("dp", &[], &[(&small, 1.0), (&silent, 1.0)], 100), [60, 40]);
    let mut made = boxed("dp", &[], 2, Seed(1)).unwrap();
    let views = [TenantView::default(); 2];
    assert_eq!(quotas(made.as_mut(), &views, 81), [41, 40], "before the first curves");
}

#[test]
fn a_small_gain_moves_nothing_and_a_large_one_a_part() {
    let (first, second) = (reads(&line(100, 100)), reads(&line(105, 100)));
    let limits = [("min_gain", Value::Float(0.1)), ("max_moved", Value::Float(0.2)), NO_FLOOR];
    let limits: Vec<(&str, Value)> =
        limits.into_iter().chain([("smoothing", Value::Float(0.0))]).collect();
    let mut made = boxed("dp", &settings(&limits), 2, Seed(1)).unwrap();
    let facts = TenantConstants::default();
    let of = |curves| view(&facts, curves, None, 0);
    assert_eq!(quotas(made.as_mut(), &[of(&first), of(&second)], 100), [0, 100]);
    // The other way round: 100 misses instead of 105, less than a tenth.
    assert_eq!(quotas(made.as_mut(), &[of(&second), of(&first)], 100), [0, 100]);
    let twice = reads(&line(200, 100));
    assert_eq!(quotas(made.as_mut(), &[of(&twice), of(&first)], 100), [20, 80]);
}

#[test]
fn the_mean_response_counts_misses_by_their_measured_time() {
    let (many, few) = (reads(&cliff(1000, 60)), reads(&cliff(100, 60)));
    let facts = TenantConstants::default();
    // Requests that missed, all of them: of the first 0.1 ms each behind memory, of the second 5.
    let missed = |count, behind_ns| {
        let read_misses =
            Price { count, sum_ns: count * (behind_ns + 1_000), behind_ns: count * behind_ns };
        Prices { read_misses, ..Prices::default() }
    };
    let (cheap, dear) = (missed(1000, 100_000), missed(100, 5_000_000));
    let views = [view(&facts, &many, Some(&cheap), 50), view(&facts, &few, Some(&dear), 50)];
    let exact = [("prior_requests", Value::Float(0.0)), ("max_moved", Value::Float(1.0)), NO_FLOOR];
    let by_time = boxed("dp-response", &settings(&exact), 2, Seed(1)).unwrap();
    let by_misses = boxed("dp", &[], 2, Seed(1)).unwrap();
    for (mut made, expected) in [(by_time, [20, 80]), (by_misses, [80, 20])] {
        assert_eq!(quotas(made.as_mut(), &views, 100), expected);
    }
}

/// The least misses of all divisions, by trying each.
fn tried(curves: &[Curve], total: u32) -> f64 {
    let Some((own, rest)) = curves.split_first() else { return 0.0 };
    let with = |blocks| own.misses(blocks) + tried(rest, total - blocks);
    (0..=total).map(with).fold(f64::INFINITY, f64::min)
}

proptest! {
    #[test]
    fn no_division_misses_less(
        curves in prop::collection::vec(
            (prop::collection::btree_map(1_u32..14, 0.0_f64..1.0, 0..6), 0_u64..1000), 1..4,
        ),
        total in 3_u32..12,
    ) {
        let curve = |(knots, accesses): &(std::collections::BTreeMap<u32, f64>, u64)| {
            // Shares of the misses that are left from knot to knot.
            let fall = knots.iter().scan(*accesses as f64, |left, (size, share)| {
                *left *= share;
                Some((*size, *left))
            });
            Curve::from_knots(fall, *accesses, Provenance::Exact)
        };
        let curves: Vec<Curve> = curves.iter().map(curve).collect();
        let given: Vec<(&Curve, f64)> = curves.iter().map(|curve| (curve, 1.0)).collect();
        let each = divided("dp", &[NO_FLOOR], &given, total);
        let misses: f64 = curves.iter().zip(&each).map(|(c, blocks)| c.misses(*blocks)).sum();
        prop_assert!((misses - tried(&curves, total)).abs() < 1e-6, "{:?}", each);
    }
}
