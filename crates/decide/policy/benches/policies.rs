//! How many accesses per CPU-second each policy decides.
//!
//! For: finding the slow ones. `cargo bench -p cachewright-policy [-- POLICY...]` is the canonical
//! run; under `cargo test` the same code runs with a hundredth of the accesses. Accesses follow
//! Zipf(1.0), interned in order of first appearance; with `STREAM=uniform` in the environment all
//! blocks are drawn alike. Policies that look at requests are told of one per access. Time is the
//! thread's CPU time where the system tells it, else wall time; reading and interning are not in
//! it, nor is the pre-pass for the policies that need the future. `ACCESSES`, `BLOCKS` and
//! `CAPACITIES` change the size. `lrb`, which predicts by trees, is given the first fiftieth of the
//! accesses. The last table stands in `policies.md`.

use cachewright_policy::replay::count_hits;
use cachewright_policy::{
    Access, Entry, FutureSlice, Need, Policy, PolicyVisitor, Registered, RequestInfo, Verdict,
    entries, visit,
};
use cachewright_types::{BlockId, Seed};
use std::time::{Duration, Instant};

/// Runs are repeated until they have taken this long, because CPU time has coarse ticks.
const MIN_WALL: Duration = Duration::from_millis(100);

/// The policies that take tens of microseconds per eviction, and their part of the accesses.
const SLOW: &[&str] = &["lrb"];
const SLOW_PART: usize = 50;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|argument| argument == "--bench");
    let names: Vec<&String> = arguments.iter().filter(|name| !name.starts_with("--")).collect();
    let scale = if full { 1 } else { 100 };
    let count = number("ACCESSES").unwrap_or(20_000_000 / scale);
    let population = number("BLOCKS").unwrap_or(1_000_000 / scale);
    let capacities: Vec<usize> = match std::env::var("CAPACITIES") {
        Ok(list) => list.split(',').filter_map(|text| text.parse().ok()).collect(),
        Err(_) => vec![10_000 / scale, 100_000 / scale],
    };
    let exponent = if std::env::var("STREAM").is_ok_and(|name| name == "uniform") { 0 } else { 1 };
    let blocks = zipf(exponent, population.max(1), count);
    let distinct = blocks.iter().max().map_or(0, |last| last.index() + 1);
    let next_use = next_uses(&blocks, distinct);
    println!("{count} accesses, {distinct} distinct blocks, caches of {capacities:?}");
    println!("millions per CPU-second (miss ratio)");
    // What an access is worth is not known here, and no model is there.
    let known = |need: &Need| matches!(need, Need::Future | Need::Requests);
    let told = |entry: &&Entry| entry.needs.iter().all(known);
    let wanted = |entry: &&Entry| names.is_empty() || names.iter().any(|name| *name == entry.name);
    for entry in entries().into_iter().filter(told).filter(wanted) {
        print!("{:18}", entry.name);
        for &capacity in &capacities {
            let needs_future = entry.needs.contains(&Need::Future);
            let future =
                if needs_future { FutureSlice::NextUse(&next_use) } else { FutureSlice::None };
            let capacity = capacity as u32;
            let is_slow = SLOW.contains(&entry.name);
            let count = if is_slow { count / SLOW_PART } else { count };
            let run = Run { blocks: &blocks[..count], future, distinct, capacity };
            let Ok((hits, spent)) = visit(entry.name, &[], run) else { continue };
            let rate = count as f64 / 1e6 / spent.as_secs_f64();
            print!("{rate:10.1} ({:.4})", 1.0 - hits as f64 / count as f64);
        }
        println!();
    }
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

struct Run<'a> {
    blocks: &'a [BlockId],
    future: FutureSlice<'a>,
    distinct: usize,
    capacity: u32,
}

impl PolicyVisitor for Run<'_> {
    type Output = (u64, Duration);

    fn visit<P: Registered>(self, settings: P::Settings) -> (u64, Duration) {
        let (wall, cpu) = (Instant::now(), cpu_time());
        let mut runs = 0;
        let mut hits = 0;
        while runs == 0 || wall.elapsed() < MIN_WALL {
            let mut policy = P::new(self.capacity, &settings, Seed(1));
            policy.reserve_ids(self.distinct);
            hits = if P::ENTRY.needs.contains(&Need::Requests) {
                count_told_hits(&mut policy, self.blocks)
            } else {
                count_hits(&mut policy, self.blocks, self.future)
            };
            runs += 1;
        }
        let spent = match (cpu, cpu_time()) {
            (Some(start), Some(end)) => end.saturating_sub(start),
            _ => wall.elapsed(),
        };
        (hits, spent / runs)
    }
}

/// As [`count_hits`], with each access told as a read of a block that lies by its number.
fn count_told_hits<P: Policy>(policy: &mut P, blocks: &[BlockId]) -> u64 {
    let hit = |block: &BlockId| {
        let offset = u64::from(block.0) << 12;
        policy.on_request(&RequestInfo { time_ns: 0, offset, length: 1 << 12, write: false });
        u64::from(policy.access(Access::read(*block)) == Verdict::Hit)
    };
    blocks.iter().map(hit).sum()
}

/// Time this thread has had a processor, where the system tells it.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// `count` ranks drawn with probability proportional to 1/rank^`exponent`, numbered by first
/// appearance.
fn zipf(exponent: i32, distinct: usize, count: usize) -> Vec<BlockId> {
    let mut sum = 0.0;
    let cumulative: Vec<f64> = (1..=distinct)
        .map(|rank| {
            sum += (rank as f64).powi(-exponent);
            sum
        })
        .collect();
    let mut rng = Seed(42).derive("zipf").rng();
    let mut names: Vec<Option<BlockId>> = vec![None; distinct];
    let mut known = 0;
    (0..count)
        .map(|_| {
            let target = rng.unit() * sum;
            let rank = cumulative.partition_point(|below| *below <= target).min(distinct - 1);
            *names[rank].get_or_insert_with(|| {
                known += 1;
                BlockId(known - 1)
            })
        })
        .collect()
}

/// Position of the next access to the same block.
fn next_uses(blocks: &[BlockId], distinct: usize) -> Vec<u32> {
    let mut seen = vec![cachewright_policy::NEVER; distinct];
    let mut next = vec![0; blocks.len()];
    for (position, block) in blocks.iter().enumerate().rev() {
        next[position] = std::mem::replace(&mut seen[block.index()], position as u32);
    }
    next
}
