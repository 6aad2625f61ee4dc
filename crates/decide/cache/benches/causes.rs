//! What finding the cause of each miss costs.
//!
//! For: `cargo bench -p cachewright-cache [-- POLICY...]`, the table of `benches/causes.md`; under
//! `cargo test` the same code runs with a hundredth of the accesses. Three tenants share a cache of
//! a tenth of their blocks. `engine` is an engine with dense ids, as in a replay; `cache` finds
//! blocks by address, as a machine does. Each is run without causes, with those of a sample and
//! with all, one right after the other, so that their ratios hold on a busy machine. `ROUNDS` in
//! the environment is how often. Units: millions of accesses per second of the thread's processor
//! time without causes, and the ratio to that with them; median of the rounds.

use cachewright_cache::{BlockAccess, Cache, Engine, Plan, Quotas, WriteMode};
use cachewright_policy::{Future, PolicyVisitor, Registered, visit};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Rng, Seed, TenantId};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;

const TENANTS: u16 = 3;
const POLICIES: [&str; 4] = ["lru", "arc", "s3-fifo", "rc-x"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|argument| argument == "--bench");
    let scale = if full { 1 } else { 100 };
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(if full { 5 } else { 1 });
    let named: Vec<&str> =
        arguments.iter().filter(|name| !name.starts_with("--")).map(String::as_str).collect();
    let policies = if named.is_empty() { POLICIES.to_vec() } else { named };
    let stream = Stream::new(4_000_000 / scale, 1_000_000 / scale as u32);
    println!("| policy | engine, M/s | sampled | all | cache, M/s | sampled | all |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for policy in policies {
        let mut cells = String::new();
        for addressed in [false, true] {
            let mut runs: [Vec<f64>; 3] = Default::default();
            for _ in 0..rounds {
                let rate =
                    |explains| visit(policy, &[], Timed { stream: &stream, explains, addressed });
                let without = rate(Explains::Nothing)?;
                let ratio = |explains| Ok::<f64, Box<dyn Error>>(rate(explains)? / without);
                let values = [without, ratio(Explains::Sample)?, ratio(Explains::All)?];
                runs.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
            }
            let [without, sample, all] = runs.map(median);
            cells += &format!(" {without:.1} | {sample:.3} | {all:.2} |");
        }
        println!("| {policy} |{cells}");
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Accesses of all tenants: tenant and block.
struct Stream {
    accesses: Vec<(u16, u32)>,
    blocks: u32,
}

impl Stream {
    /// Skewed accesses to so many blocks: half of them to a sixteenth.
    fn new(accesses: usize, blocks: u32) -> Stream {
        let mut rng: Rng = Seed(1).rng();
        let access = |_| {
            let skewed = rng.unit().powi(4);
            // Hot blocks lie anywhere.
            let block = (skewed * f64::from(blocks)) as u64 * 2_654_435_761 % u64::from(blocks);
            ((block % u64::from(TENANTS)) as u16, block as u32)
        };
        Stream { accesses: (0..accesses).map(access).collect(), blocks }
    }
}

/// Which misses are explained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Explains {
    Nothing,
    Sample,
    All,
}

/// Runs the stream through a cache, and returns its rate.
struct Timed<'a> {
    stream: &'a Stream,
    explains: Explains,
    addressed: bool,
}

impl PolicyVisitor for Timed<'_> {
    type Output = f64;

    fn visit<P: Registered>(self, settings: P::Settings) -> f64 {
        let Stream { accesses, blocks } = self.stream;
        let whole_blocks = blocks / 10;
        let make = |_, capacity| P::new(capacity, &settings, Seed(1));
        let quotas = Quotas::Shared(whole_blocks);
        let mut engine = Engine::new(usize::from(TENANTS), &quotas, WriteMode::WriteBack, make);
        if self.explains != Explains::Nothing {
            engine.explain_misses(whole_blocks, self.explains == Explains::Sample, false);
        }
        if self.addressed {
            let mut cache = Cache::new(engine, 12);
            let mut plan = Plan::default();
            return rate(accesses, |tenant, block| {
                let request = Request {
                    time: Nanos(0),
                    offset: Bytes(u64::from(block) << 12),
                    length: Bytes(4096),
                    op: Op::Read,
                    tenant,
                };
                cache.on(&request, &mut plan);
            });
        }
        engine.reserve_ids(0, *blocks as usize);
        let ahead = accesses.iter().skip(32).map(|(_, block)| BlockId(*block));
        let mut ahead = ahead.chain(std::iter::repeat(BlockId(0)));
        rate(accesses, |tenant, block| {
            if let Some(block) = ahead.next() {
                engine.prefetch(tenant, block);
            }
            let block = BlockId(block);
            engine.access(BlockAccess { block, tenant, write: false, future: Future::None });
        })
    }
}

/// Millions of accesses per second, after a quarter of them.
fn rate(accesses: &[(u16, u32)], mut access: impl FnMut(TenantId, u32)) -> f64 {
    let (warmup, timed) = accesses.split_at(accesses.len() / 4);
    warmup.iter().for_each(|(tenant, block)| access(TenantId(*tenant), *block));
    let begin = clock_gettime(ClockId::ThreadCPUTime);
    timed.iter().for_each(|(tenant, block)| access(TenantId(*tenant), *block));
    let end = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = (end.tv_sec - begin.tv_sec) as f64 + (end.tv_nsec - begin.tv_nsec) as f64 / 1e9;
    timed.len() as f64 / 1e6 / seconds
}
