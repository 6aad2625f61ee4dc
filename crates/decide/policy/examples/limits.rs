//! How near the replay of policies is to what memory can deliver.
//!
//! For: `cargo run --release -p cachewright-policy --example limits`, the table of
//! `benches/limits.md`. Must never know: engines, traces. A replay of Zipf(1.0) over ten times the
//! cache is timed per policy; then as many random lines of as much memory as its state has are
//! loaded, with the look-ahead of the replay, and a line per access of the replayed blocks
//! themselves, which the skew keeps near. Lines per access are counted by hand from the
//! structures: see `lines`. Time is processor time of the thread, the best of three runs. Units:
//! lines of 64 bytes, millions per second.

use cachewright_policy::replay::{AHEAD, count_hits};
use cachewright_policy::{FutureSlice, PolicyVisitor, Registered, visit};
use cachewright_types::{BlockId, Rng, Seed};
use std::time::Duration;

const ACCESSES: usize = 8_000_000;
/// Bytes of a line.
const LINE: usize = 64;

/// The policies, and the bytes of state per id and per resident block.
const POLICIES: [(&str, usize, usize); 5] =
    [("lru", 8, 0), ("clock", 1, 4), ("sieve", 1, 8), ("s3-fifo", 1, 12), ("arc", 12, 0)];

/// Lines that an access touches besides those of the block before it: hits and misses, by the miss
/// ratio. A block's own state is a line. In lists a block that moves has two neighbours, and a tail
/// that leaves one. In queues a hit writes the block's byte; a miss pushes and pops next to the
/// last push and pop, and reads a byte of each block that it pops: about `pops` blocks.
fn lines(policy: &str, misses: f64) -> f64 {
    let (hit, miss) = match policy {
        "lru" => (3.0, 2.0),
        "arc" => (3.0, 3.0),
        _ => {
            // Blocks spared per block that leaves: clock and sieve spare what was hit.
            let pops = if policy == "s3-fifo" { 3.0 } else { 2.0 };
            (1.0, 1.0 + pops + (1.0 + pops) * 4.0 / LINE as f64)
        }
    };
    hit * (1.0 - misses) + miss * misses
}

/// Time this thread has had a processor.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Millions per second of `count` things, the best of three runs.
fn rate(count: usize, mut run: impl FnMut()) -> f64 {
    let times = [(); 3].map(|()| {
        let start = cpu_time();
        run();
        cpu_time().saturating_sub(start)
    });
    let best = times.into_iter().min().unwrap_or_default();
    count as f64 / 1e6 / best.as_secs_f64()
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
        let rate = rate(self.blocks.len(), || {
            let mut policy = P::new(self.capacity, &settings, Seed(1));
            policy.reserve_ids(self.ids);
            hits = count_hits(&mut policy, self.blocks, FutureSlice::None);
        });
        (rate, 1.0 - hits as f64 / self.blocks.len() as f64)
    }
}

/// Loads and changes lines of memory in an order, each as many loads ahead as a replay touches its
/// blocks; millions per second.
fn probe(lines: usize, order: &[u32]) -> f64 {
    let mut memory = vec![[0_u64; LINE / 8]; lines];
    memory.iter_mut().enumerate().for_each(|(index, line)| line[0] = index as u64);
    rate(order.len(), || {
        let (mut ahead, mut sum) = (0, 0);
        for (place, line) in order.iter().enumerate() {
            if let Some(later) = order.get(place + AHEAD) {
                ahead ^= memory[*later as usize][0];
            }
            let line = &mut memory[*line as usize];
            sum += line[0];
            line[1] = sum;
        }
        std::hint::black_box((ahead, sum));
    })
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
    println!("policy, blocks: miss ratio, M accesses/s, lines per access;");
    println!("M lines/s at random, share; M lines/s of the same blocks, share");
    for capacity in [100_000_u32, 1_000_000] {
        let mut rng = Seed(42).derive("limits").rng();
        let (blocks, ids) = zipf(capacity as usize * 10, &mut rng);
        for (name, per_id, per_block) in POLICIES {
            let run = Replay { blocks: &blocks, ids, capacity };
            let Ok((rate, misses)) = visit(name, &[], run) else { continue };
            let memory = (ids * per_id + capacity as usize * per_block) / LINE + 1;
            let random: Vec<u32> = (0..ACCESSES).map(|_| rng.below(memory as u64) as u32).collect();
            let same: Vec<u32> = blocks.iter().map(|id| id.0 * per_id as u32 / 64).collect();
            let lines = lines(name, misses);
            let [random, same] = [random, same].map(|order| probe(memory, &order));
            let [share, of_same] = [random, same].map(|loads| 100.0 * rate * lines / loads);
            println!(
                "{name:8} {capacity:8}: {misses:.3} {rate:7.1} {lines:5.2}; \
                 {random:7.1} {share:5.0} %; {same:7.1} {of_same:5.0} %"
            );
        }
    }
}
