//! How long a division of `icache-x` takes: 8 tenants, curves of 1,000 knots.
//!
//! For: `cargo run --release -p cachewright-partition --example icache_x_speed [tenants] [knots]`.
//! Unit: microseconds per division, the least of nine rounds of 20 intervals whose curves differ.

use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_partition::{CacheDivision, TenantView, boxed};
use cachewright_signal::{Price, Prices, TenantSignals};
use cachewright_types::{Seed, Value};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// Blocks of 4 KiB in 256 MiB.
const TOTAL_BLOCKS: u32 = 1 << 16;
const INTERVALS: u32 = 20;
const ROUNDS: u32 = 9;

/// Misses that fall as a hyperbola, half of them at a size that differs by tenant and interval.
fn curve(tenant: u32, interval: u32, knots: u32, accesses: u64) -> Curve {
    let half = f64::from(1000 * (tenant + 1) + 300 * (interval % 7));
    let knots = (1..=knots).map(|index| {
        let size = index * (TOTAL_BLOCKS / knots).max(1) + index % 3;
        (size, accesses as f64 * half / (half + f64::from(size)))
    });
    Curve::from_knots(knots, accesses, Provenance::Exact)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let tenants: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(8);
    let knots: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(1000);
    let intervals: Vec<Vec<Curves>> = (0..INTERVALS)
        .map(|interval| {
            let curves_of = |tenant| Curves {
                all: curve(tenant, interval, knots, 20_000),
                reads: curve(tenant, interval, knots, 12_000),
                writes: curve(tenant, interval + 3, knots, 8_000),
            };
            (0..tenants).map(curves_of).collect()
        })
        .collect();
    let price = |count: u64, mean_ns: u64| {
        let behind_ns = count * (mean_ns - 20_000);
        Price { count, sum_ns: count * mean_ns, behind_ns }
    };
    let prices = Prices {
        read_hits: price(8_000, 20_000),
        read_misses: price(4_000, 120_000),
        write_hits: price(7_000, 20_000),
        write_misses: price(1_000, 800_000),
        ..Prices::default()
    };
    for worst_first in [false, true] {
        let pairs = [("worst_first".to_owned(), Value::Bool(worst_first))];
        let mut fastest_us = f64::INFINITY;
        for _ in 0..ROUNDS {
            let mut scheme = boxed("icache-x", &pairs, tenants as usize, Seed(1))?;
            let mut quotas = vec![TOTAL_BLOCKS / tenants; tenants as usize];
            let start = Instant::now();
            for curves in &intervals {
                let view = |(curves, quota): (_, &u32)| TenantView {
                    accesses: 20_000,
                    quota_blocks: *quota,
                    signals: TenantSignals {
                        curves: Some(curves),
                        prices: Some(&prices),
                        ..TenantSignals::default()
                    },
                    ..TenantView::default()
                };
                let views: Vec<TenantView> = curves.iter().zip(&quotas).map(view).collect();
                if let CacheDivision::PerTenant(next) =
                    black_box(scheme.divide(&views, TOTAL_BLOCKS))
                {
                    quotas = next;
                }
            }
            fastest_us = fastest_us.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(INTERVALS));
        }
        println!("worst_first = {worst_first}: {fastest_us:.0} us per division");
    }
    Ok(())
}
