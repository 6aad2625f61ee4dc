//! What `hull` does with curves: worked cases of its settings.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_curve::{Curve, Provenance};
use cachewright_partition::{Quotas, TenantView, boxed};
use cachewright_types::{Seed, Value};

/// Misses fall in a straight line to 0 at `blocks`.
fn line(accesses: u64, blocks: u32) -> Curve {
    Curve::from_knots([(blocks, 0.0)], accesses, Provenance::Exact)
}

fn tenant(curve: Option<&Curve>) -> TenantView<'_> {
    TenantView {
        name: "tenant",
        weight: 1.0,
        accesses: 100,
        hits: 50,
        write_share: 0.0,
        quota_blocks: 0,
        occupancy_blocks: 0,
        curve,
        goal_hit_ratio: None,
        profile: &[],
        ..TenantView::default()
    }
}

fn divide(pairs: &[(&str, Value)], intervals: &[[Option<&Curve>; 2]], total: u32) -> Vec<Vec<u32>> {
    let pairs: Vec<(String, Value)> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let mut hull = boxed("hull", &pairs, 2, Seed(1)).unwrap();
    let quotas = intervals.iter().map(|curves| {
        let views = curves.map(tenant);
        match hull.divide(&views, total) {
            Quotas::PerTenant(quotas) => quotas,
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
