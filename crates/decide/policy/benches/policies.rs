//! How many accesses per second each policy decides.
//!
//! For: `cargo bench -p cachewright-policy [-- POLICY...]`, the table of `benches/policies.md`;
//! under `cargo test` the same code runs with a hundredth of the accesses. Must never know: traces,
//! engines. Two streams, with caches of a tenth of the blocks of the first: Zipf(1.0), and one of
//! which four of five accesses miss. A quarter of the accesses fill the cache and are
//! not timed. `lru` runs just before each policy, so that the ratio of the two holds on a busy
//! machine. Policies that look at requests are told of one per access, a third of them writes.
//! Reading, interning and the pre-pass for the policies that need the future are not in the time.
//! `ACCESSES`, `CAPACITY` and `ROUNDS` in the environment change the size. Units: millions of
//! accesses per second of the thread's processor time, median of the rounds.

use cachewright_policy::rc_rnn::features::FeatureSet;
use cachewright_policy::rc_rnn::labels::HEADS;
use cachewright_policy::replay::{AHEAD, count_hits};
use cachewright_policy::{
    Access, Entry, FutureColumn, FutureSlice, NEVER, Need, Policy, PolicyVisitor, Registered,
    RequestInfo, Verdict, entries, visit,
};
use cachewright_testkit::models::{RC_RNN_LAYERS, in_bytes, random_lstm};
use cachewright_types::{BlockId, Seed};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::time::Duration;

/// Policies that take tens of microseconds per decision, and accesses per block of the cache before
/// they are timed: `lrb` must have a model. They are timed in one round, over one access per block.
const SLOW: &[(&str, usize)] = &[("lrb", 8), ("rc-rnn", 2)];
/// Nanoseconds between two requests.
const PAUSE_NS: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|argument| argument == "--bench");
    let names: Vec<&String> = arguments.iter().filter(|name| !name.starts_with("--")).collect();
    let scale = if full { 1 } else { 100 };
    let count = number("ACCESSES").unwrap_or(4_000_000 / scale);
    let capacity = number("CAPACITY").unwrap_or(100_000 / scale).max(1);
    let rounds = number("ROUNDS").unwrap_or(if full { 5 } else { 1 });
    let streams = [Stream::zipf(capacity * 10, count), Stream::misses(capacity, count)];
    let features = FeatureSet::Reuse.features();
    let model = random_lstm(features, &HEADS, RC_RNN_LAYERS, &mut Seed(3).rng())?;
    let model = in_bytes(&model)?.to_bytes()?;
    let wanted = |entry: &&Entry| names.is_empty() || names.iter().any(|name| *name == entry.name);
    let entries: Vec<_> = entries().into_iter().filter(wanted).collect();
    let mut runs = vec![[const { Vec::new() }; 2]; entries.len()];
    for round in 0..rounds {
        for (entry, runs) in entries.iter().zip(&mut runs) {
            if round > 0 && slow(entry.name).is_some() {
                continue;
            }
            for (stream, runs) in streams.iter().zip(runs) {
                let timed = |name: &str| {
                    let slow = slow(name);
                    visit(name, &[], Run { stream, capacity: capacity as u32, slow, model: &model })
                };
                let lru = timed("lru")??.0;
                let (rate, misses) = timed(entry.name)??;
                runs.push([rate, rate / lru, misses]);
            }
        }
    }
    println!("{count} accesses, caches of {capacity} blocks, median of {rounds} rounds");
    println!("| policy | Zipf, M/s | of lru | miss ratio | misses, M/s | of lru | miss ratio |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (entry, runs) in entries.iter().zip(&runs) {
        let cells = runs.iter().map(|runs| {
            let [rate, ratio, misses] = [0, 1, 2].map(|column| median(runs, column));
            format!("{} | {:.1} % | {misses:.4}", digits(rate), ratio * 100.0)
        });
        println!("| {} | {} |", entry.name, cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}

/// Accesses per block before a slow policy is timed.
fn slow(name: &str) -> Option<usize> {
    SLOW.iter().find(|(slow, _)| *slow == name).map(|(_, accesses)| *accesses)
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The median of one column; 0 of nothing.
fn median(runs: &[[f64; 3]], column: usize) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(|run| run[column]).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// A rate with three digits, or with three behind the point below 1.
fn digits(rate: f64) -> String {
    let places = if rate < 1.0 { 3 } else { usize::from(rate < 100.0) + usize::from(rate < 10.0) };
    format!("{rate:.places$}")
}

struct Run<'a> {
    stream: &'a Stream,
    capacity: u32,
    /// Accesses per block before it is timed, if it is slow.
    slow: Option<usize>,
    /// The file of a model, for policies that ask one.
    model: &'a [u8],
}

impl PolicyVisitor for Run<'_> {
    /// Millions of accesses per second, and the miss ratio of those timed.
    type Output = Result<(f64, f64), String>;

    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output {
        let needs = P::ENTRY.needs;
        let blocks = &self.stream.blocks;
        let (warm, timed) = (blocks.len() / 4, blocks.len() * 3 / 4);
        let capacity = self.capacity as usize;
        let (warm, timed) = match self.slow {
            Some(before) => (warm.min(before * capacity), timed.min(capacity)),
            None => (warm, timed),
        };
        let mut policy = P::new(self.capacity, &settings, Seed(1));
        policy.reserve_ids(self.stream.distinct);
        if needs.contains(&Need::Model) {
            policy.load_models(&[("any".to_owned(), self.model.to_vec())])?;
        }
        let futures = if needs.contains(&Need::Future) {
            self.stream.next_uses.as_slice()
        } else if needs.contains(&Need::Benefit) {
            self.stream.benefits.as_slice()
        } else {
            FutureSlice::None
        };
        let mut hits = |range: std::ops::Range<usize>| {
            if needs.contains(&Need::Requests) {
                count_request_hits(&mut policy, &blocks[range.clone()], range.start)
            } else {
                count_hits(&mut policy, &blocks[range.clone()], futures.range(range))
            }
        };
        hits(0..warm);
        let start = cpu_time();
        let hits = hits(warm..warm + timed);
        let seconds = cpu_time().saturating_sub(start).as_secs_f64();
        Ok((timed as f64 / 1e6 / seconds, 1.0 - hits as f64 / timed as f64))
    }
}

/// As [`count_hits`], with each access told as a request for a block that lies by its number;
/// `first` is the position of the first.
fn count_request_hits<P: Policy>(policy: &mut P, blocks: &[BlockId], first: usize) -> u64 {
    let mut hits = 0;
    for (index, &block) in blocks.iter().enumerate() {
        if let Some(&later) = blocks.get(index + AHEAD) {
            policy.touch(later);
        }
        let position = (first + index) as u64;
        let (offset, write) = (u64::from(block.0) << 12, position.is_multiple_of(3));
        let time_ns = position * PAUSE_NS;
        policy.on_request(&RequestInfo { time_ns, offset, length: 1 << 12, write });
        let verdict = policy.access(Access { write, ..Access::read(block) });
        hits += u64::from(verdict == Verdict::Hit);
        while P::has_regions_or_background_ops() && policy.background_op().is_some() {}
    }
    hits
}

/// Time this thread has had a processor.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// A stream of accesses and what is known of each one's future.
pub struct Stream {
    /// The blocks accessed, numbered by first appearance.
    pub blocks: Vec<BlockId>,
    /// How many different blocks there are.
    pub distinct: usize,
    /// Position of the next access to the same block.
    pub next_uses: FutureColumn,
    /// One over the distance to that access; 0 without one.
    pub benefits: FutureColumn,
}

impl Stream {
    /// Ranks drawn with probability proportional to 1/rank.
    pub fn zipf(distinct: usize, count: usize) -> Stream {
        let mut sum = 0.0;
        let cumulative: Vec<f64> = (1..=distinct)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        let mut rng = Seed(42).derive("zipf").rng();
        Stream::numbered(distinct, count, || {
            let target = rng.unit() * sum;
            cumulative.partition_point(|below| *below <= target)
        })
    }

    /// Half of the accesses go to 1.5 times `capacity` blocks, half to 20 times as many: with a
    /// cache of that capacity four of five miss.
    pub fn misses(capacity: usize, count: usize) -> Stream {
        let mut rng = Seed(42).derive("misses").rng();
        let (few, many) = ((capacity * 3 / 2) as u64, (capacity * 20) as u64);
        Stream::numbered(capacity * 20, count, || {
            let span = if rng.below(2) == 0 { few } else { many };
            rng.below(span) as usize
        })
    }

    fn numbered(names: usize, count: usize, mut draw: impl FnMut() -> usize) -> Stream {
        let mut ids: Vec<Option<BlockId>> = vec![None; names];
        let mut distinct = 0;
        let mut id_of = |name: usize| {
            *ids[name.min(names - 1)].get_or_insert_with(|| {
                distinct += 1;
                BlockId(distinct - 1)
            })
        };
        let blocks: Vec<BlockId> = (0..count).map(|_| id_of(draw())).collect();
        let distinct = distinct as usize;
        let next_uses = next_uses(&blocks, distinct);
        let benefit = |(position, next): (usize, &u32)| match *next {
            NEVER => 0.0,
            next => 1.0 / (next as usize - position) as f32,
        };
        let benefits = next_uses.iter().enumerate().map(benefit).collect();
        Stream {
            blocks,
            distinct,
            next_uses: FutureColumn::NextUse(next_uses),
            benefits: FutureColumn::Benefit(benefits),
        }
    }
}

fn next_uses(blocks: &[BlockId], distinct: usize) -> Vec<u32> {
    let mut seen = vec![NEVER; distinct];
    let mut next = vec![0; blocks.len()];
    for (position, block) in blocks.iter().enumerate().rev() {
        next[position] = std::mem::replace(&mut seen[block.index()], position as u32);
    }
    next
}
