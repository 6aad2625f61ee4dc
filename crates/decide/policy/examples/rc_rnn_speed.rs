//! How long `rc-rnn` takes per request: features, a step of the model, queues.
//!
//! `cargo run --release -p cachewright-policy --example rc_rnn_speed [requests]`: models of random
//! weights, as published (3 layers of 256 units) and small (1 of 64), in int8 and f32. Requests
//! read or write 4 blocks at skewed places.

use cachewright_policy::rc_rnn::RcRnn;
use cachewright_policy::rc_rnn::features::FeatureSet;
use cachewright_policy::rc_rnn::labels::HEADS;
use cachewright_policy::{Access, Policy, PolicyHooks, Registered, RequestInfo};
use cachewright_testkit::models::{RC_RNN_LAYERS, in_bytes, random_lstm};
use cachewright_types::{BlockId, Seed};
use std::time::Instant;

const BLOCKS: u32 = 100_000;
const PER_REQUEST: u32 = 4;

/// Microseconds per request.
fn measured(file: Vec<u8>, requests: u32) -> Result<f64, String> {
    let mut policy = RcRnn::new(BLOCKS / 5, &Default::default(), Seed(1));
    policy.reserve_ids(BLOCKS as usize);
    policy.load_models(&[("any".to_owned(), file)])?;
    let mut rng = Seed(2).rng();
    let mut hits = 0_u64;
    let start = Instant::now();
    for _ in 0..requests {
        let first = (rng.unit().powi(3) * f64::from(BLOCKS - PER_REQUEST)) as u32;
        let write = rng.below(2) == 0;
        let (offset, length) = (u64::from(first) << 12, u64::from(PER_REQUEST) << 12);
        policy.on_request(&RequestInfo { time_ns: 0, offset, length, write });
        for block in (first..first + PER_REQUEST).map(BlockId) {
            let verdict = policy.access(Access { write, ..Access::read(block) });
            hits += u64::from(verdict == cachewright_policy::Verdict::Hit);
        }
    }
    std::hint::black_box(hits);
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(requests))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50_000);
    println!("model            file bytes  us per request  requests per second");
    for hidden in [RC_RNN_LAYERS, &[64]] {
        let features = FeatureSet::Reuse.features();
        let stored = random_lstm(features, &HEADS, hidden, &mut Seed(3).rng())?;
        let int8 = in_bytes(&stored)?;
        for (name, stored) in [("int8", &int8), ("f32", &stored)] {
            let file = stored.to_bytes()?;
            let bytes = file.len();
            let mut took = f64::INFINITY;
            for _ in 0..3 {
                took = took.min(measured(file.clone(), requests)?);
            }
            let shape = format!("{} x {} {name}", hidden.len(), hidden[0]);
            println!("{shape:<16} {bytes:>10}  {took:>14.2}  {:>19.0}", 1e6 / took);
        }
    }
    Ok(())
}
