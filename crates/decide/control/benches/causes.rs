//! What finding the cause of each miss costs.
//!
//! For: `cargo bench -p cachewright-control [-- POLICY...]`, the table of `benches/causes.md`;
//! under `cargo test` the same code runs with a hundredth of the accesses. Three tenants share
//! a cache of a tenth of their blocks. `engine` is an engine with dense ids, as in a replay;
//! `cache` finds blocks by address, as a machine does. Each is run without causes, with those
//! of a sample and with all, and the cache with those of a sample of addresses as in a server
//! (`served`), one right after the other, so that their ratios hold on a busy machine. `ROUNDS`
//! in the environment is how often. Units: millions of accesses per second of the thread's
//! processor time without causes, and the ratio to that with them; median of the rounds. Behind
//! them the longest access of a served cache without causes and with them, in microseconds of
//! real time: the least of the rounds. `trial` is the rate of a cache with a trial of `s3-fifo`
//! over that without, `divided` the same with a trial of `hull` which divides 100 times, and
//! `replaced` the time in which a million cached blocks go over to `s3-fifo`, in milliseconds.

use cachewright_cache::{BlockAccess, Cache, Engine, Plan, Quotas, WriteMode};
use cachewright_control::{
    CachePolicy, Control, Division, MakePolicy, SchemeTrial, SignalNeeds, TrialDivision,
};
use cachewright_partition::TenantConstants;
use cachewright_policy::s3_fifo::S3Fifo;
use cachewright_policy::{Future, Policy, PolicyVisitor, Registered, visit};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Rng, Seed, TenantId};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::time::Instant;

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
    println!(
        "| policy | engine, M/s | sampled | all | cache, M/s | sampled | all | served \
         | longest, us | served | trial | divided | replaced, ms |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for policy in policies {
        let mut cells = String::new();
        let mut tried: [Vec<f64>; 2] = Default::default();
        for addressed in [false, true] {
            let mut runs: [Vec<f64>; 4] = Default::default();
            for _ in 0..rounds {
                let rate = |explains| -> Result<f64, Box<dyn Error>> {
                    Ok(visit(policy, &[], Timed { stream: &stream, explains, addressed })??)
                };
                let without = rate(Explains::Nothing)?;
                let ratio =
                    |explains| -> Result<f64, Box<dyn Error>> { Ok(rate(explains)? / without) };
                let served = if addressed { ratio(Explains::Served)? } else { 1.0 };
                if addressed {
                    let ratios = [ratio(Explains::Trial)?, ratio(Explains::TrialDivision)?];
                    tried.iter_mut().zip(ratios).for_each(|(tried, ratio)| tried.push(ratio));
                }
                let values = [without, ratio(Explains::Sample)?, ratio(Explains::All)?, served];
                runs.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
            }
            let [without, sample, all, served] = runs.map(median);
            cells += &format!(" {without:.1} | {sample:.3} | {all:.2} |");
            if addressed {
                cells += &format!(" {served:.3} |");
            }
        }
        for explains in [Explains::Nothing, Explains::Served] {
            let longest = |_| visit(policy, &[], Longest { stream: &stream, explains });
            let found: Result<Vec<f64>, _> = (0..rounds).map(longest).collect();
            let least = found?.into_iter().reduce(f64::min).unwrap_or_default();
            cells += &format!(" {least:.0} |");
        }
        let replaced = (0..rounds).map(|_| visit(policy, &[], Replaced(1_000_000 / scale as u32)));
        let replaced: Result<Vec<f64>, _> = replaced.collect();
        let [trial, divided] = tried.map(median);
        cells += &format!(" {trial:.3} | {divided:.3} | {:.0} |", median(replaced?));
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
    /// Those of a sample of addresses.
    Served,
    /// None, and another policy is tried on a sample.
    Trial,
    /// None, and a partitioner is tried.
    TrialDivision,
}

impl Explains {
    /// An engine for all tenants that explains so.
    fn engine<P: Registered>(self, whole_blocks: u32, settings: &P::Settings) -> Engine<P> {
        let make = |_, capacity| P::new(capacity, settings, Seed(1));
        let quotas = Quotas::Shared(whole_blocks);
        let mut engine = Engine::new(usize::from(TENANTS), &quotas, WriteMode::WriteBack, make);
        match self {
            Explains::Nothing | Explains::Trial | Explains::TrialDivision => {}
            Explains::Served => engine.explain_misses_by_address(whole_blocks),
            _ => engine.explain_misses(whole_blocks, self == Explains::Sample, false),
        }
        engine
    }
}

/// Runs the stream through a cache that finds blocks by address, and returns its longest access.
struct Longest<'a> {
    stream: &'a Stream,
    explains: Explains,
}

impl PolicyVisitor for Longest<'_> {
    type Output = f64;

    fn visit<P: Registered>(self, settings: P::Settings) -> f64 {
        let Stream { accesses, blocks } = self.stream;
        let mut cache = Cache::new(self.explains.engine::<P>(blocks / 10, &settings), 12);
        cache.reserve();
        let mut plan = Plan::default();
        let took = |(tenant, block): &(u16, u32)| {
            let request = read(TenantId(*tenant), *block);
            let begin = Instant::now();
            cache.on(&request, &mut plan);
            begin.elapsed().as_secs_f64() * 1e6
        };
        accesses.iter().map(took).fold(0.0, f64::max)
    }
}

/// How long so many cached blocks take to go over to another policy, in milliseconds.
struct Replaced(u32);

impl PolicyVisitor for Replaced {
    type Output = f64;

    fn visit<P: Registered>(self, settings: P::Settings) -> f64 {
        let make =
            |_, capacity| -> Box<dyn Policy> { Box::new(P::new(capacity, &settings, Seed(1))) };
        let quotas = Quotas::Shared(self.0);
        let engine = Engine::new(1, &quotas, WriteMode::WriteBack, make);
        let mut cache = Cache::new(engine, 12);
        cache.reserve();
        let mut plan = Plan::default();
        // Twice, for policies that keep a block at its second use.
        for block in (0..self.0).chain(0..self.0) {
            cache.on(&read(TenantId(0), block), &mut plan);
        }
        let begin = Instant::now();
        cache.replace_policies(&mut plan, |_, capacity| {
            Box::new(S3Fifo::new(capacity, &Default::default(), Seed(1)))
        });
        begin.elapsed().as_secs_f64() * 1e3
    }
}

fn read(tenant: TenantId, block: u32) -> Request {
    let (offset, length) = (Bytes(u64::from(block) << 12), Bytes(4096));
    Request { time: Nanos(0), offset, length, op: Op::Read, tenant }
}

/// Runs the stream through a cache, and returns its rate.
struct Timed<'a> {
    stream: &'a Stream,
    explains: Explains,
    addressed: bool,
}

impl PolicyVisitor for Timed<'_> {
    type Output = Result<f64, String>;

    fn visit<P: Registered>(self, settings: P::Settings) -> Result<f64, String> {
        let Stream { accesses, blocks } = self.stream;
        let whole_blocks = blocks / 10;
        let mut engine = self.explains.engine::<P>(whole_blocks, &settings);
        if self.addressed {
            let mut cache = Cache::new(engine, 12);
            let mut plan = Plan::default();
            let divides = self.explains == Explains::TrialDivision;
            let tries = divides || self.explains == Explains::Trial;
            let mut trial = if !tries {
                None
            } else {
                let boxed = |_: usize, capacity| -> Box<dyn Policy> {
                    Box::new(P::new(capacity, &settings, Seed(1)))
                };
                let other = |_: usize, capacity| -> Box<dyn Policy> {
                    Box::new(S3Fifo::new(capacity, &Default::default(), Seed(1)))
                };
                let tenants = usize::from(TENANTS);
                let beside = Engine::new(
                    tenants,
                    &Quotas::Shared(whole_blocks),
                    cache.engine().mode(),
                    boxed,
                );
                let blocks = SchemeTrial::blocks(&beside);
                let divided = if divides { Some(by_curves(blocks)?) } else { None };
                let (present, mut boxed) = (&mut { boxed }, boxed);
                let other: MakePolicy<'_> = if divides { &mut boxed } else { &mut { other } };
                Some(SchemeTrial::new(&beside, tenants, 12, present, other, divided))
            };
            let mut time = 0;
            return Ok(rate(accesses, |tenant, block| {
                time += 1;
                let request = Request { time: Nanos(time), ..read(tenant, block) };
                trial.iter_mut().for_each(|trial| trial.request(&request));
                cache.on(&request, &mut plan);
            }));
        }
        engine.reserve_ids(0, *blocks as usize);
        let ahead = accesses.iter().skip(32).map(|(_, block)| BlockId(*block));
        let mut ahead = ahead.chain(std::iter::repeat(BlockId(0)));
        Ok(rate(accesses, |tenant, block| {
            if let Some(block) = ahead.next() {
                engine.prefetch(tenant, block);
            }
            let block = BlockId(block);
            engine.access(BlockAccess { block, tenant, write: false, future: Future::None });
        }))
    }
}

/// `hull`, every 40,000 accesses.
fn by_curves(blocks: u32) -> Result<TrialDivision, String> {
    let tenants = usize::from(TENANTS);
    let made = cachewright_partition::boxed("hull", &[], tenants, Seed(1));
    let partitioner = made.map_err(|error| error.to_string())?;
    let needs = cachewright_partition::entry("hull").map_or(&[][..], |entry| entry.needs);
    let of_cache = CachePolicy { name: "lru", pairs: &[], capacity_blocks: blocks, seed: Seed(2) };
    let signals = SignalNeeds::of(&*partitioner, needs, of_cache, tenants);
    let signals = signals.map_err(|error| error.to_string())?;
    let constants = vec![TenantConstants::default(); tenants];
    let mut control = Control::new(partitioner, constants, blocks);
    let quotas = control.first();
    let division = Some(Division::new(control, signals, 40_000, 12));
    Ok(TrialDivision { quotas, division })
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
