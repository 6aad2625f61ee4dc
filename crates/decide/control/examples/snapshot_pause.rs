//! How long it takes to copy what decides into memory: what a live server would pause for a state
//! (`serve.record_state`), if a second cache beside it were not copied instead.
//!
//! ```sh
//! cargo run --release -p cachewright-control --example snapshot_pause -- [BLOCKS] [ROUNDS]
//! ```
//!
//! A cache of BLOCKS (1,000,000) of one tenant is filled with reads of a skewed volume twice as
//! large, each tenth a write, under each of some policies, with and without a division by curves.
//! Printed are the bytes of a snapshot per block, and of ROUNDS (9) of them the minimum and the
//! median time per million blocks.

use cachewright_cache::{Cache, Engine, Plan, WriteMode};
use cachewright_control::{CachePolicy, Control, Division, RequestDecider, SignalNeeds};
use cachewright_partition::{CurveKind, Need, TenantConstants};
use cachewright_policy::Policy;
use cachewright_snapshot::saved;
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use std::error::Error;
use std::time::Instant;

const POLICIES: [&str; 7] = ["lru", "arc", "s3-fifo", "lirs", "w-tinylfu", "rc-x", "duel-x"];
const BLOCK: u64 = 4096;

fn decider(
    policy: &str,
    blocks: u32,
    divided: bool,
) -> Result<RequestDecider<Box<dyn Policy>>, Box<dyn Error>> {
    let make = cachewright_policy::registry::maker(policy, &[])?;
    let quotas = cachewright_cache::Quotas::PerTenant(vec![blocks]);
    let engine =
        Engine::new(1, &quotas, WriteMode::WriteBack, |_, capacity| make(capacity, Seed(1)));
    let mut cache = Cache::new(engine, BLOCK.trailing_zeros());
    cache.reserve();
    let partitioner = cachewright_partition::boxed("hull", &[], 1, Seed(1))?;
    let of_cache = CachePolicy { name: policy, pairs: &[], capacity_blocks: blocks, seed: Seed(1) };
    let curves =
        cachewright_control::interval_curves(&[Need::Curve], CurveKind::default(), of_cache, 1)?;
    let mut control = Control::new(partitioner, vec![TenantConstants::default()], blocks);
    control.first();
    let needs = SignalNeeds { curves, ..SignalNeeds::default() };
    let division = divided.then(|| Division::new(control, needs, 0, BLOCK.trailing_zeros()));
    Ok(RequestDecider::new(cache, division, None))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let blocks: u32 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse())?;
    println!("policy       division  bytes/block  min ms  median ms (per million blocks)");
    for policy in POLICIES {
        for divided in [false, true] {
            let mut decider = decider(policy, blocks, divided)?;
            let (mut rng, mut plan) = (Seed(7).rng(), Plan::default());
            for time in 0..4 * u64::from(blocks) {
                let u = rng.unit();
                let number = (u * u * 2.0 * f64::from(blocks)) as u64;
                let op = if rng.below(10) == 0 { Op::Write } else { Op::Read };
                let (offset, length) = (Bytes(number * BLOCK), Bytes(BLOCK));
                let tenant = TenantId(0);
                let request = Request { time: Nanos(time + 1), offset, length, op, tenant };
                decider.request(&request, &mut plan);
            }
            let held = f64::from(decider.cache.engine().policy(0).len());
            let (mut times, mut bytes) = (Vec::new(), 0);
            for _ in 0..rounds.max(1) {
                let begin = Instant::now();
                bytes = std::hint::black_box(saved(&decider)?).len();
                times.push(begin.elapsed().as_secs_f64() * 1e3 * 1e6 / held);
            }
            times.sort_by(f64::total_cmp);
            println!(
                "{policy:<12} {:<9} {:>11.1} {:>7.2} {:>10.2}",
                if divided { "hull" } else { "none" },
                bytes as f64 / held,
                times[0],
                times[times.len() / 2],
            );
        }
    }
    Ok(())
}
