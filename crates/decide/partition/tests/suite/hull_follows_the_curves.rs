//! What `hull` does with curves: worked cases of its settings.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_curve::signal::TenantSignals;
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_partition::{CacheDivision, Requirement, TenantConstants, TenantView, boxed};
use cachewright_types::{Seed, Value};
use std::sync::Arc;

/// Misses fall in a straight line to 0 at `blocks`.
fn line(accesses: u64, blocks: u32) -> Curve {
    Curve::from_knots([(blocks, 0.0)], accesses, Provenance::Exact)
}

/// Curves of a tenant that reads only.
fn reads(curve: &Curve) -> Curves {
    let none = Curve::from_knots([], 0, Provenance::Exact);
    Curves { all: curve.clone(), reads: curve.clone(), writes: none }
}

fn tenant(curves: &Option<Curves>) -> TenantView<'_> {
    let signals = TenantSignals { curves: curves.as_ref(), ..TenantSignals::default() };
    TenantView { accesses: 100, hits: 50, signals, ..TenantView::default() }
}

/// A tenant whose curve was measured before the run.
fn with_head(curve: &Curve) -> TenantConstants {
    TenantConstants { head_curve: Some(Arc::new(curve.clone())), ..TenantConstants::default() }
}

fn divide(pairs: &[(&str, Value)], intervals: &[[Option<&Curve>; 2]], total: u32) -> Vec<Vec<u32>> {
    let pairs: Vec<(String, Value)> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let mut hull = boxed("hull", &pairs, 2, Seed(1)).unwrap();
    let quotas = intervals.iter().map(|curves| {
        let curves = curves.map(|curve| curve.map(reads));
        let views = curves.each_ref().map(tenant);
        match hull.divide(&views, total) {
            CacheDivision::PerTenant(quotas) => quotas,
            _ => Vec::new(),
        }
    });
    quotas.collect()
}

#[test]
fn it_begins_equal_and_then_gives_to_the_steepest() {
    let (busy, idle) = (line(1_000, 60), line(10, 60));
    let quotas = divide(&[], &[[None, None], [Some(&busy), Some(&idle)]], 81);
    assert_eq!(quotas, [[41, 40], [60, 21]]);
}

#[test]
fn by_ratio_an_idle_tenant_counts_as_much_as_a_busy_one() {
    let (busy, idle) = (line(1_000, 60), line(10, 40));
    let curves = [[Some(&busy), Some(&idle)]];
    assert_eq!(divide(&[], &curves, 80), [[60, 20]]);
    assert_eq!(divide(&[("by_ratio", Value::Bool(true))], &curves, 80), [[40, 40]]);
}

#[test]
fn the_floor_is_kept_and_spare_blocks_are_shared() {
    let (busy, idle) = (line(1_000, 60), line(10, 40));
    let floor = [("floor_blocks", Value::Int(30))];
    assert_eq!(divide(&floor, &[[Some(&busy), Some(&idle)]], 80), [[50, 30]]);
    assert_eq!(divide(&[], &[[Some(&busy), Some(&idle)]], 120), [[70, 50]]);
}

#[test]
fn smoothing_remembers_earlier_intervals() {
    let (busy, idle) = (line(1_000, 60), line(10, 60));
    let swap = [[Some(&busy), Some(&idle)], [Some(&idle), Some(&busy)]];
    let none = [("smoothing", Value::Float(0.0))];
    assert_eq!(divide(&none, &swap, 61), [[60, 1], [1, 60]]);
    let strong = [("smoothing", Value::Float(0.9))];
    assert_eq!(divide(&strong, &swap, 61), [[60, 1], [60, 1]]);
}

/// What a scheme divides, and what it says tenants make use of.
fn ahead(
    pairs: &[(&str, Value)],
    views: &[TenantView],
    total: u32,
) -> (CacheDivision, Vec<Requirement>) {
    let pairs: Vec<(String, Value)> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let mut hull = boxed("hull", &pairs, views.len(), Seed(1)).unwrap();
    let quotas = hull.divide(views, total);
    let CacheDivision::PerTenant(each) = &quotas else { return (quotas, Vec::new()) };
    let needed = hull.requirements(views, each);
    (quotas, needed)
}

#[test]
fn curves_of_the_head_count_before_anything_is_measured() {
    let (busy, idle) = (line(1_000, 60), line(10, 40));
    let (busy, idle) = (with_head(&busy), with_head(&idle));
    let view = |facts| TenantView { facts, ..TenantView::default() };
    let pairs = [("ahead", Value::Bool(true)), ("by_ratio", Value::Bool(true))];
    let (quotas, needed) = ahead(&pairs, &[view(&busy), view(&idle)], 80);
    assert_eq!(quotas, CacheDivision::PerTenant(vec![40, 40]));
    assert_eq!((needed[0].blocks, needed[1].blocks), (40, 40));
    assert!((needed[0].miss_ratio - 1.0 / 3.0).abs() < 1e-12 && needed[1].miss_ratio == 0.0);
    let (quotas, needed) = ahead(&pairs, &[view(&busy), view(&idle)], 120);
    assert_eq!(quotas, CacheDivision::PerTenant(vec![70, 50]), "20 save nothing");
    assert_eq!((needed[0].blocks, needed[1].blocks), (60, 40), "nor are they required");
    let gone = TenantView { absent: true, ..view(&idle) };
    let (quotas, needed) = ahead(&pairs, &[view(&busy), gone], 80);
    assert_eq!(quotas, CacheDivision::PerTenant(vec![80, 0]));
    assert_eq!((needed[0].blocks, needed[1].blocks), (60, 0));
}

/// 10 blocks save half of the misses, 50 more a fifth of them: 0.5 and 0.04 over 10 blocks.
#[test]
fn a_slope_too_gentle_is_no_requirement() {
    let knee = Curve::from_knots([(10, 50.0), (60, 30.0)], 100, Provenance::Exact);
    let facts = with_head(&knee);
    let view = TenantView { facts: &facts, ..TenantView::default() };
    let blocks = |least_slope: f64| {
        let pairs = [("ahead", Value::Bool(true)), ("least_slope", Value::Float(least_slope))];
        let (quotas, needed) = ahead(&pairs, &[view], 100);
        assert_eq!(quotas, CacheDivision::PerTenant(vec![100]));
        (needed[0].blocks, needed[0].miss_ratio)
    };
    assert_eq!(blocks(0.0), (60, 0.3));
    assert_eq!(blocks(0.3), (60, 0.3), "100 blocks would save 0.4 at its slope");
    assert_eq!(blocks(0.5), (10, 0.5));
    assert_eq!(blocks(6.0), (1, 0.95), "the floor");
}

#[test]
fn without_curves_what_is_given_is_what_is_needed() {
    let view = TenantView { accesses: 10, hits: 4, ..TenantView::default() };
    let (_, needed) = ahead(&[], &[view, TenantView::default()], 9);
    let requirement = |blocks, miss_ratio| Requirement { blocks, miss_ratio };
    assert_eq!(needed, [requirement(5, 0.6), requirement(4, 0.0)]);
}

#[test]
fn a_part_of_an_equal_share_can_be_kept() {
    let (busy, idle) = (line(1_000, 80), line(0, 1));
    let curves = [[Some(&busy), Some(&idle)]];
    assert_eq!(divide(&[], &curves, 81), [[80, 1]]);
    // A quarter of 40.5 blocks.
    assert_eq!(divide(&[("floor_share", Value::Float(0.25))], &curves, 81), [[71, 10]]);
    let both = [("floor_share", Value::Float(0.25)), ("floor_blocks", Value::Int(20))];
    assert_eq!(divide(&both, &curves, 81), [[61, 20]], "the larger floor");
}

#[test]
fn a_division_can_wait_for_a_gain_and_move_in_parts() {
    let (steep, flat, twice) = (line(105, 100), line(100, 100), line(200, 100));
    let last = ("smoothing", Value::Float(0.0));
    let none = ("floor_blocks", Value::Int(0));
    let turns = [
        [Some(&steep), Some(&flat)],
        [Some(&flat), Some(&steep)],
        [Some(&flat), Some(&twice)],
        [Some(&flat), Some(&twice)],
    ];
    let free = divide(&[last.clone(), none.clone()], &turns, 100);
    assert_eq!(free, [[100, 0], [0, 100], [0, 100], [0, 100]]);
    let held = [last, none, ("min_gain", Value::Float(0.1)), ("max_moved", Value::Float(0.3))];
    // To give all to the second saves 5 of 105 misses at first, then 100 of 200; then 70 of 170.
    assert_eq!(divide(&held, &turns, 100), [[100, 0], [100, 0], [70, 30], [40, 60]]);
}
