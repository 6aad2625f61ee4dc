//! How near the replay of policies is to what memory can deliver.
//!
//! For: `cargo run --release -p cachewright-policy --example limits [rounds]`, the table of
//! `benches/limits.md`; and `limits count POLICY BLOCKS ACCESSES TIMES`, which only replays uniform
//! draws so often, for a simulation of the processor's caches. Must never know: engines, traces.
//! Replays of Zipf(1.0) over ten times the cache are timed in turns with probes: random lines of as
//! much memory as the policy's state has, in small and in huge pages, and a line per access of the
//! replayed blocks themselves, which the skew keeps near. Replays and probes load equally far
//! ahead. Lines and bytes per access are counted by hand from the structures: see `touched`. Time
//! is processor time of the thread, the best of all turns. Units: lines of 64 bytes, millions per
//! second.

use cachewright_memory::{advise, prefetch};
use cachewright_policy::replay::{AHEAD, count_hits};
use cachewright_policy::{FutureSlice, PolicyVisitor, Registered, visit};
use cachewright_types::{BlockId, Rng, Seed};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const ACCESSES: usize = 8_000_000;
/// Bytes of a line.
const LINE: usize = 64;
/// Turns of replay and probes.
const ROUNDS: usize = 5;

/// The policies, and the bytes of state per id and per resident block.
const POLICIES: [(&str, usize, usize); 5] =
    [("lru", 8, 0), ("clock", 1, 4), ("sieve", 1, 8), ("s3-fifo", 1, 12), ("arc", 12, 0)];

/// What an access touches of the state of blocks.
#[derive(Clone, Copy)]
struct Touched {
    /// Lines besides those of the access before it.
    lines: f64,
    /// Bytes, each counted once, whether read or written.
    bytes: f64,
}

/// What hits and misses touch, by the miss ratio. In lists a block's own node is a line; one that
/// moves has two neighbours, and the old head a link that changes; a tail that leaves has been
/// written before, as a neighbour, and has a new neighbour itself. ARC moves a tail to the ghosts
/// and forgets the oldest ghost. In queues a hit writes the block's byte; a miss reads a byte of
/// each block that it pops, about `pops` of them, and pops and pushes 4 bytes next to the last.
fn touched(policy: &str, misses: f64) -> Touched {
    let (hit, miss) = match policy {
        "lru" => ([3.0, 20.0], [2.0, 24.0]),
        "arc" => ([3.0, 24.0], [3.0, 52.0]),
        _ => {
            // Blocks that are spared or go on to another queue, and the one that leaves.
            let pops = if policy == "s3-fifo" { 3.0 } else { 2.0 };
            let entries = 4.0 * 2.0 * pops;
            ([1.0, 1.0], [1.0 + pops + entries / LINE as f64, 1.0 + pops + entries])
        }
    };
    let [lines, bytes] = [0, 1].map(|column| hit[column] * (1.0 - misses) + miss[column] * misses);
    Touched { lines, bytes }
}

/// Time this thread has had a processor.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Millions per second of `count` things.
fn rate(count: usize, run: impl FnOnce()) -> f64 {
    let start = cpu_time();
    run();
    count as f64 / 1e6 / cpu_time().saturating_sub(start).as_secs_f64()
}

struct Replay<'a> {
    blocks: &'a [BlockId],
    ids: usize,
    capacity: u32,
}

impl PolicyVisitor for Replay<'_> {
    /// Millions of accesses per second, and the miss ratio.
    type Output = (f64, f64);
    fn visit<P: Registered>(self, settings: P::Settings) -> (f64, f64) {
        let mut hits = 0;
        let mut policy = P::new(self.capacity, &settings, Seed(1));
        policy.reserve_ids(self.ids);
        let rate = rate(self.blocks.len(), || {
            hits = count_hits(&mut policy, self.blocks, FutureSlice::None);
        });
        (rate, 1.0 - hits as f64 / self.blocks.len() as f64)
    }
}

/// A replay without a clock, which simulators of processors do not know.
struct Untimed<'a>(Replay<'a>);

impl PolicyVisitor for Untimed<'_> {
    /// Hits.
    type Output = u64;
    fn visit<P: Registered>(self, settings: P::Settings) -> u64 {
        let mut policy = P::new(self.0.capacity, &settings, Seed(1));
        policy.reserve_ids(self.0.ids);
        count_hits(&mut policy, self.0.blocks, FutureSlice::None)
    }
}

/// Loads and changes lines of memory in an order, each as many loads ahead as a replay touches its
/// blocks; millions per second.
fn probe(lines: usize, huge: bool, order: &[u32]) -> f64 {
    let mut memory = vec![[0_u64; LINE / 8]; lines];
    if huge {
        advise(&mut memory);
    }
    memory.iter_mut().enumerate().for_each(|(index, line)| line[0] = index as u64);
    rate(order.len(), || {
        let mut sum = 0;
        for (place, line) in order.iter().enumerate() {
            if let Some(later) = order.get(place + AHEAD) {
                prefetch(&memory, *later as usize);
            }
            let line = &mut memory[*line as usize];
            sum += line[0];
            line[1] = sum;
        }
        std::hint::black_box(sum);
    })
}

/// One policy at one size: the best of some turns of replay and probes.
fn measure(rounds: usize, name: &str, state: (usize, usize), replay: &Replay<'_>, rng: &mut Rng) {
    let Replay { blocks, ids, capacity } = *replay;
    let memory = (ids * state.0 + capacity as usize * state.1) / LINE + 1;
    let random: Vec<u32> = (0..blocks.len()).map(|_| rng.below(memory as u64) as u32).collect();
    let same: Vec<u32> = blocks.iter().map(|id| id.0 * state.0 as u32 / LINE as u32).collect();
    let (mut best, mut misses) = ([0.0_f64; 4], 0.0);
    for _ in 0..rounds {
        let Ok((rate, ratio)) = visit(name, &[], Replay { blocks, ids, capacity }) else { return };
        misses = ratio;
        let orders = [(false, &random), (true, &random), (true, &same)];
        let [small, huge, near] = orders.map(|(huge, order)| probe(memory, huge, order));
        for (best, rate) in best.iter_mut().zip([rate, small, huge, near]) {
            *best = best.max(rate);
        }
    }
    let (Touched { lines, bytes }, [rate, small, huge, near]) = (touched(name, misses), best);
    let share = |loads: f64| 100.0 * rate * lines / loads;
    println!(
        "| {name} | {capacity} | {misses:.3} | {rate:.1} | {lines:.2} | {bytes:.1} | {small:.1} | \
         {huge:.1} | {:.0} % | {near:.1} | {:.0} % |",
        share(huge),
        share(near)
    );
}

/// Replays uniform draws over ten times the cache; prints hits.
fn count(name: &str, capacity: u32, accesses: usize, times: usize) {
    let ids = capacity as usize * 10;
    let mut rng = Seed(43).derive("count").rng();
    let blocks: Vec<BlockId> =
        (0..accesses).map(|_| BlockId(rng.below(ids as u64) as u32)).collect();
    for _ in 0..times {
        let replay = Replay { blocks: &blocks, ids, capacity };
        if let Ok(hits) = visit(name, &[], Untimed(replay)) {
            println!("{name} {capacity}: {hits}");
        }
    }
}

/// Ranks drawn with probability proportional to 1/rank, numbered by first appearance.
fn zipf(population: usize, rng: &mut Rng) -> (Vec<BlockId>, usize) {
    let mut sum = 0.0;
    let cumulative: Vec<f64> = (1..=population)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut names: Vec<Option<BlockId>> = vec![None; population];
    let mut known = 0;
    let draw = |_| {
        let target = rng.unit() * sum;
        let rank = cumulative.partition_point(|below| *below <= target).min(population - 1);
        *names[rank].get_or_insert_with(|| {
            known += 1;
            BlockId(known - 1)
        })
    };
    let blocks = (0..ACCESSES).map(draw).collect();
    (blocks, known as usize)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<usize>().ok());
    if let (Some("count"), Some(name)) = (words.first().map(String::as_str), words.get(1)) {
        let [blocks, accesses, times] = [2, 3, 4].map(|index| number(index).unwrap_or(1));
        return count(name, blocks as u32, accesses, times);
    }
    println!(
        "| policy | blocks | miss ratio | M accesses/s | lines per access | bytes per access | \
              M lines/s, small pages | M lines/s, huge pages | share | M lines/s, same blocks | \
              share |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for capacity in [100_000_u32, 1_000_000] {
        let mut rng = Seed(42).derive("limits").rng();
        let (blocks, ids) = zipf(capacity as usize * 10, &mut rng);
        for (name, per_id, per_block) in POLICIES {
            let replay = Replay { blocks: &blocks, ids, capacity };
            measure(number(0).unwrap_or(ROUNDS), name, (per_id, per_block), &replay, &mut rng);
        }
    }
}
