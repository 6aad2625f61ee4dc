//! How long a division takes: every partitioner, 8 tenants, curves of 1,000 knots.
//!
//! For: `cargo run --release -p cachewright-partition --example division_speed [tenants] [knots]
//! [partitioner ...]`, a table of `benches/policies.md`. Must never know: how a partitioner
//! divides. Every signal is made up, and differs by tenant and interval; models have random weights
//! and the published shapes. Measuring the signals is not in the time. `icache-x` stands with
//! `worst_first` as well. Unit: microseconds of the thread's processor time per
//! division, mean of 20 intervals, each with the least of nine rounds.

use cachewright_curve::signal::{
    BINS, FEATURES, Price, Prices, ResponseClasses, StepCounts, TenantSignals,
};
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_model::{
    Architecture, Description, Head, ModelError, NetworkKind, StoredModel, quantise,
};
use cachewright_partition::{
    CacheDivision, Models, Need, TenantConstants, TenantGoal, TenantView, boxed, entries,
};
use cachewright_types::{Rng, Seed, Value};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::hint::black_box;

/// Blocks of 4 KiB in 256 MiB.
const TOTAL_BLOCKS: u32 = 1 << 16;
const INTERVALS: u32 = 20;
const ROUNDS: u32 = 9;
/// Steps of an interval, as `icache` has them by default.
const STEPS: u32 = 180;
/// Granules of the cache, as `opt` has them by default.
const GRANULES: u32 = 10;

/// What a tenant shows in one interval.
struct Shown {
    curves: Curves,
    steps: Vec<StepCounts>,
    reuse: [u32; BINS],
    prices: Prices,
    future_ns: Vec<f64>,
}

/// Misses that fall as a hyperbola, half of them at a size that differs by tenant and interval.
fn curve(tenant: u32, interval: u32, knots: u32, accesses: u64) -> Curve {
    let half = f64::from(1000 * (tenant + 1) + 300 * (interval % 7));
    let knots = (1..=knots).map(|index| {
        let size = index * (TOTAL_BLOCKS / knots).max(1) + index % 3;
        (size, accesses as f64 * half / (half + f64::from(size)))
    });
    Curve::from_knots(knots, accesses, Provenance::Exact)
}

/// Prices of memory, a flash drive and a disk.
fn prices() -> Prices {
    let mut responses = ResponseClasses::default();
    let mut price = |count: u64, mean_ns: u64| {
        (0..count).for_each(|_| responses.add(mean_ns));
        Price { count, sum_ns: count * mean_ns, behind_ns: count * (mean_ns - 20_000) }
    };
    let (read_hits, read_misses) = (price(8_000, 20_000), price(4_000, 120_000));
    let (write_hits, write_misses) = (price(7_000, 20_000), price(1_000, 800_000));
    Prices { read_hits, read_misses, write_hits, write_misses, responses }
}

fn shown(tenant: u32, interval: u32, knots: u32) -> Shown {
    let step = |step: u32| {
        let requests = 50 + (step * 7 + tenant * 13 + interval) % 100;
        let (writes, unique) = (requests / 3, requests / 2);
        StepCounts { requests, writes, bytes: u64::from(requests) << 13, unique }
    };
    let response_ns = |granules: u32| 8e5 / f64::from(1 + granules + tenant);
    Shown {
        curves: Curves {
            all: curve(tenant, interval, knots, 20_000),
            reads: curve(tenant, interval, knots, 12_000),
            writes: curve(tenant, interval + 3, knots, 8_000),
        },
        steps: (0..STEPS).map(step).collect(),
        reuse: std::array::from_fn(|bin| 100 * (bin as u32 + tenant) + interval),
        prices: prices(),
        future_ns: (0..=GRANULES).map(response_ns).collect(),
    }
}

/// A model of random weights whose one head has so many outputs.
fn random_model(
    kind: NetworkKind,
    features: Vec<String>,
    hidden: &[usize],
    outputs: usize,
    rng: &mut Rng,
) -> Result<StoredModel, ModelError> {
    let heads = vec![Head { name: "points".to_owned(), outputs }];
    let architecture =
        Architecture { kind, inputs: features.len(), hidden: hidden.to_vec(), heads };
    let mut numbers = |shape: &[usize]| -> Vec<f32> {
        let count: usize = shape.iter().product();
        let bound = 2.0 / (count as f64).sqrt();
        (0..count).map(|_| ((rng.unit() - 0.5) * bound) as f32).collect()
    };
    let tensors = architecture.tensors();
    let weights = tensors.into_iter().map(|(name, shape)| (name, numbers(&shape))).collect();
    let inputs = vec![vec![0.5; features.len()]; 3];
    let mut description = Description::plain(architecture);
    description.features = features;
    let notes = [("granules", GRANULES), ("window_steps", STEPS)];
    description.notes = notes.map(|(key, value)| (key.to_owned(), value.to_string())).into();
    StoredModel::float(description, weights, inputs)
}

/// Models of the published shapes: an LSTM of 128 units in int8 for each tenant (iCache, table
/// III); two layers of 256 for all together (MLCache).
fn models(needs: &[Need], tenants: u32) -> Result<Models, ModelError> {
    let mut rng = Seed(1).rng();
    let mut given = Models::default();
    if needs.contains(&Need::Model) {
        let features = FEATURES.map(str::to_owned).to_vec();
        let stored = random_model(NetworkKind::Lstm, features, &[128], 2, &mut rng)?;
        let stored = quantise(&stored, &[&stored.test_vector.inputs.concat()])?;
        given.each = vec![stored.to_bytes()?; tenants as usize];
    }
    if needs.contains(&Need::JointModel) {
        let bins = |tenant| (0..BINS).map(move |bin| format!("reuse.{tenant}.{bin}"));
        let features = (0..tenants).flat_map(bins).collect();
        let stored =
            random_model(NetworkKind::Mlp, features, &[256, 256], tenants as usize, &mut rng)?;
        given.joint = Some(stored.to_bytes()?);
    }
    Ok(given)
}

/// Nanoseconds of processor time that this thread has used.
fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Microseconds per division, the first of all left out.
fn measured(
    name: &str,
    pairs: &[(String, Value)],
    models: &Models,
    intervals: &[Vec<Shown>],
) -> Result<f64, Box<dyn Error>> {
    let tenants = intervals.first().map_or(0, Vec::len);
    let constants: Vec<TenantConstants> = (0..tenants).map(tenant_constants).collect();
    let start_quotas = vec![TOTAL_BLOCKS / tenants.max(1) as u32; tenants];
    let mut fastest_ns = vec![i64::MAX; intervals.len()];
    for _ in 0..ROUNDS {
        let mut scheme = boxed(name, pairs, tenants, Seed(1))?;
        scheme.learn(models)?;
        let first = |facts| TenantView { facts, ..TenantView::default() };
        scheme.divide(&constants.iter().map(first).collect::<Vec<_>>(), TOTAL_BLOCKS);
        let mut quotas = start_quotas.clone();
        for ((interval, shown), fastest) in (1..).zip(intervals).zip(&mut fastest_ns) {
            let view =
                |((shown, facts), quota): ((_, _), &u32)| view(shown, facts, interval, *quota);
            let views: Vec<TenantView> =
                shown.iter().zip(&constants).zip(&quotas).map(view).collect();
            let start = cpu_ns();
            let division = black_box(scheme.divide(&views, TOTAL_BLOCKS));
            *fastest = (*fastest).min(cpu_ns() - start);
            if let CacheDivision::PerTenant(next) = division {
                quotas = next;
            }
        }
    }
    Ok(fastest_ns.iter().sum::<i64>() as f64 / 1e3 / intervals.len() as f64)
}

fn tenant_constants(tenant: usize) -> TenantConstants {
    let hit_ratio = Some(0.3 + 0.05 * (tenant % 8) as f64);
    let profile = vec![(1, 0.01), (TOTAL_BLOCKS / 2, 0.6), (TOTAL_BLOCKS, 0.8)];
    let goal = Some(TenantGoal { hit_ratio, profile, ..TenantGoal::default() });
    let weight = 1.0 + tenant as f64;
    let (sensitive, schedule) = (tenant.is_multiple_of(2), vec![1.0, weight]);
    TenantConstants { weight, goal, sensitive, schedule, ..TenantConstants::default() }
}

fn view<'a>(
    shown: &'a Shown,
    facts: &'a TenantConstants,
    interval: u64,
    quota_blocks: u32,
) -> TenantView<'a> {
    let misses = shown.curves.all.misses(quota_blocks) as u64;
    TenantView {
        facts,
        interval,
        accesses: 20_000,
        hits: 20_000_u64.saturating_sub(misses),
        quota_blocks,
        occupancy_blocks: quota_blocks,
        signals: TenantSignals {
            curves: Some(&shown.curves),
            steps: Some(&shown.steps),
            reuse: Some(&shown.reuse),
            prices: Some(&shown.prices),
        },
        future_ns: Some(&shown.future_ns),
        ..TenantView::default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let tenants: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(8);
    let knots: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(1000);
    let names: Vec<String> = arguments.collect();
    let all = |interval| (0..tenants).map(|tenant| shown(tenant, interval, knots)).collect();
    let intervals: Vec<Vec<Shown>> = (0..INTERVALS).map(all).collect();
    println!("| partitioner | us per division, {tenants} tenants |\n|---|---:|");
    for entry in entries() {
        if !names.is_empty() && !names.iter().any(|name| name == entry.name) {
            continue;
        }
        let models = models(entry.needs, tenants)?;
        let us = measured(entry.name, &[], &models, &intervals)?;
        println!("| {} | {us:.1} |", entry.name);
        if entry.name == "icache-x" {
            let pairs = [("worst_first".to_owned(), Value::Bool(true))];
            let us = measured(entry.name, &pairs, &models, &intervals)?;
            println!("| {}, worst first | {us:.1} |", entry.name);
        }
    }
    Ok(())
}
