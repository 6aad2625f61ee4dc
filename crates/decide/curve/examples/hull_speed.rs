//! How long a division over convex minorants takes: 1,000 tenants, 1,000,000 blocks.
//!
//! For: `cargo run --release -p cachewright-curve --example hull_speed [tenants] [blocks] [knots]`.
//! Unit: milliseconds for all minorants and the division, the least of nine rounds.

use cachewright_curve::hull::{Hull, divide};
use cachewright_curve::{Curve, Provenance};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 9;
/// Accesses of each tenant.
const ACCESSES: u64 = 1_000_000;

/// Misses that fall as a hyperbola, half of them at a size that differs by tenant.
fn curve(tenant: u32, knots: u32, largest: u32) -> Curve {
    let half = f64::from(largest) * f64::from(1 + tenant % 97) / 200.0;
    let knots = (1..=knots).map(|index| {
        let size = (u64::from(largest) * u64::from(index) / u64::from(knots)) as u32;
        (size, ACCESSES as f64 * half / (half + f64::from(size)))
    });
    Curve::from_knots(knots, ACCESSES, Provenance::Exact)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().and_then(|a| a.parse().ok()).unwrap_or(default);
    let (tenants, blocks, knots): (u32, u32, u32) =
        (number(1_000), number(1_000_000), number(1_000));
    let largest = (blocks / tenants.max(1)).saturating_mul(4).max(1);
    let curves: Vec<Curve> = (0..tenants).map(|tenant| curve(tenant, knots, largest)).collect();
    let weights = vec![1.0; curves.len()];
    let mut fastest_ms = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let hulls: Vec<Hull> = curves.iter().map(Hull::minorant).collect();
        black_box(divide(&hulls, &weights, blocks, &[]));
        fastest_ms = fastest_ms.min(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("{tenants} tenants, {blocks} blocks, {knots} knots: {fastest_ms:.1} ms");
}
