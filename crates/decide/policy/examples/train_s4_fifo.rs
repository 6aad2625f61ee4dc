//! Trains the tree that chooses the settings of `s4-fifo`, and prints it.
//!
//! `cargo run --release -p cachewright-policy --example train_s4_fifo [WORKLOADS]`
//!
//! Each workload is drawn by a seed: skew, loops, scans, repeats soon after a block came in, drift,
//! mixed in parts, on a cache of 500 to 20,000 blocks. It runs as it would in use: with the default
//! settings until the choice is due, then with each of the 18 settings from the same state. A
//! setting costs its misses beside those of FIFO over the same requests, as in the source. The tree
//! is grown from the root; a node takes the setting that is cheapest for its workloads together and
//! is divided where that makes the sum smallest. Three of four workloads train. The tree, its cost,
//! and the cost of others on the fourth are printed.
//!
//! The tree in use is that of 1,600 workloads, of which 1,359 fill their cache and miss. On the 339
//! held out, misses beside FIFO, mean and worst: this tree 0.806 and 1.126; the best single setting
//! 0.831 and 1.280; the defaults, no choice 0.848 and 1.628; the best for each 0.793 and 1.006.

use cachewright_policy::fifo::Fifo;
use cachewright_policy::s4_fifo::features::FEATURES;
use cachewright_policy::s4_fifo::settings::{CHOICES, chosen};
use cachewright_policy::s4_fifo::{S4Fifo, S4FifoSettings};
use cachewright_policy::{Access, Policy, Registered, Verdict};
use cachewright_types::{BlockId, Rng, Seed};
use std::error::Error;

/// Requests before the choice, as `s4-fifo` has them, and after it.
const OBSERVED: u32 = 100_000;
const JUDGED: usize = 300_000;
/// The deepest leaf, and the fewest workloads of one.
const DEPTH: usize = 6;
const LEAST: usize = 20;
/// Values of a feature at which a node may be divided.
const CUTS: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    let workloads = std::env::args().nth(1).map_or(Ok(1_600), |count| count.parse::<u64>())?;
    let samples: Vec<Sample> = (0..workloads).filter_map(|seed| Sample::of(Seed(seed))).collect();
    let (held, train): (Vec<_>, Vec<_>) =
        samples.iter().enumerate().partition(|(number, _)| number % 4 == 3);
    let [held, train] = [held, train]
        .map(|part| -> Vec<&Sample> { part.into_iter().map(|(_, sample)| sample).collect() });
    let mut tree = Tree::default();
    tree.grow(&train, DEPTH);
    println!("/// From the root on.\npub const TREE: [TreeNode; {}] = [", tree.nodes.len());
    tree.nodes.iter().for_each(|node| println!("    {},", node.in_code()));
    println!("];");
    for (name, part) in [("trained on", &train), ("held out", &held)] {
        let mean =
            |cost: CostOf| part.iter().map(|sample| cost(sample)).sum::<f64>() / part.len() as f64;
        let worst = |cost: CostOf| part.iter().map(|sample| cost(sample)).fold(0.0, f64::max);
        let fixed = cheapest(&train).0;
        let rows: [(&str, CostOf); 5] = [
            ("this tree", &|sample| sample.costs[tree.choice(&sample.features)]),
            ("the tree in use", &|sample| sample.cost_of_chosen()),
            ("the best single setting", &|sample| sample.costs[fixed]),
            ("the defaults, no choice", &|sample| sample.default_cost),
            ("the best for each", &|sample| {
                sample.costs.iter().copied().fold(f64::INFINITY, f64::min)
            }),
        ];
        println!("{name}: {} workloads, misses beside FIFO, mean and worst", part.len());
        for (row, cost) in rows {
            println!("  {row:24} {:.4} {:.4}", mean(cost), worst(cost));
        }
    }
    Ok(())
}

/// What a way of choosing costs on a workload.
type CostOf<'a> = &'a dyn Fn(&Sample) -> f64;

/// A workload: its features, and what each setting costs.
struct Sample {
    features: [f32; FEATURES],
    costs: [f64; CHOICES.len()],
    default_cost: f64,
}

impl Sample {
    /// Nothing if the cache did not fill, or hardly anything was missed.
    fn of(seed: Seed) -> Option<Sample> {
        let mut rng = seed.derive("s4-fifo").rng();
        let capacity = (500.0 * 40.0_f64.powf(rng.unit())) as u32;
        let length = JUDGED + OBSERVED as usize + 4 * capacity as usize;
        let blocks = workload(&mut rng, capacity, length);
        let ids = blocks.iter().map(|block| block.index() + 1).max().unwrap_or(0);
        let mut cache = S4Fifo::new(capacity, &S4FifoSettings::default(), seed);
        let mut fifo = Fifo::new(capacity, &Default::default(), seed);
        cache.reserve_ids(ids);
        fifo.reserve_ids(ids);
        let mut blocks = blocks.into_iter();
        let mut observed = 0;
        while observed + 1 < OBSERVED {
            let block = blocks.next()?;
            observed += u32::from(cache.features().is_some());
            cache.access(Access::read(block));
            fifo.access(Access::read(block));
        }
        let features = cache.features()?;
        let judged: Vec<BlockId> = blocks.take(JUDGED).collect();
        if judged.len() < JUDGED {
            return None;
        }
        let by_fifo = misses(&mut fifo, &judged) as f64;
        if by_fifo < 100.0 {
            return None;
        }
        let costs = CHOICES.map(|settings| {
            let mut trial = cache.clone();
            trial.switch(settings);
            misses(&mut trial, &judged) as f64 / by_fifo
        });
        // A choice of the same settings as before is none.
        let mut unchanged = S4Fifo::clone(&cache);
        unchanged.switch(cache.settings());
        let default_cost = misses(&mut unchanged, &judged) as f64 / by_fifo;
        Some(Sample { features, costs, default_cost })
    }

    fn cost_of_chosen(&self) -> f64 {
        let settings = chosen(&self.features);
        let choice = CHOICES.iter().position(|choice| *choice == settings);
        choice.map_or(f64::NAN, |choice| self.costs[choice])
    }
}

fn misses<P: Policy>(cache: &mut P, blocks: &[BlockId]) -> usize {
    blocks.iter().filter(|block| cache.access(Access::read(**block)) != Verdict::Hit).count()
}

/// A part of a workload: draws of blocks of its own.
enum Part {
    /// By rank, with an exponent: cumulative weights.
    Skew { cumulative: Vec<f64>, drift: f64 },
    /// Round and round.
    Loop { blocks: u32 },
    /// Blocks that never come back, but for repeats soon after.
    Scan { repeats: u64, within: u64 },
}

impl Part {
    fn drawn(rng: &mut Rng, capacity: u32) -> Part {
        let blocks = |rng: &mut Rng, least: f64, most: f64| {
            (f64::from(capacity) * least * (most / least).powf(rng.unit())) as u32 + 2
        };
        match rng.below(8) {
            0..=3 => {
                let exponent = 0.4 + 0.9 * rng.unit();
                let mut sum = 0.0;
                let weight = |rank: u32| {
                    sum += f64::from(rank).powf(-exponent);
                    sum
                };
                let cumulative = (1..=blocks(rng, 1.5, 40.0)).map(weight).collect();
                let drift = if rng.below(3) == 0 { 0.002 + 0.05 * rng.unit() } else { 0.0 };
                Part::Skew { cumulative, drift }
            }
            4 | 5 => Part::Loop { blocks: blocks(rng, 0.2, 6.0) },
            _ => {
                let within = 1 + u64::from(blocks(rng, 0.002, 0.3));
                Part::Scan { repeats: rng.below(4), within }
            }
        }
    }

    /// The next block of a part, whose draws so far are `draws`.
    fn next(&self, rng: &mut Rng, draws: u64) -> u64 {
        match self {
            Part::Skew { cumulative, drift } => {
                let sum = cumulative.last().copied().unwrap_or(1.0);
                let rank = cumulative.partition_point(|upper| *upper < rng.unit() * sum) as u64;
                rank + (*drift * draws as f64) as u64
            }
            Part::Loop { blocks } => draws % u64::from(*blocks),
            // One draw in `repeats` + 1 is new, the others repeat one of the newest.
            Part::Scan { repeats, within } => {
                let newest = draws / (repeats + 1);
                if draws.is_multiple_of(repeats + 1) {
                    newest
                } else {
                    newest - rng.below(*within).min(newest)
                }
            }
        }
    }
}

/// One to three parts with weights; of some workloads the weights change on the way.
fn workload(rng: &mut Rng, capacity: u32, length: usize) -> Vec<BlockId> {
    let parts: Vec<Part> = (0..=rng.below(3)).map(|_| Part::drawn(rng, capacity)).collect();
    let weights = |rng: &mut Rng| -> Vec<f64> { parts.iter().map(|_| 0.05 + rng.unit()).collect() };
    let mut weighed = weights(rng);
    let changes = if rng.below(4) == 0 { length / (2 + rng.below(4) as usize) } else { length };
    let mut draws = vec![0_u64; parts.len()];
    let mut ids = std::collections::HashMap::new();
    let mut blocks = Vec::with_capacity(length);
    for position in 0..length {
        if position % changes == changes - 1 {
            weighed = weights(rng);
        }
        let mut at = rng.unit() * weighed.iter().sum::<f64>();
        let mut part = 0;
        while part + 1 < parts.len() && at >= weighed[part] {
            at -= weighed[part];
            part += 1;
        }
        let number = parts[part].next(rng, draws[part]);
        draws[part] += 1;
        let next = ids.len() as u32;
        blocks.push(BlockId(*ids.entry((part, number)).or_insert(next)));
    }
    blocks
}

/// A node of the tree that is grown; see `TreeNode`.
#[derive(Clone, Copy, Debug)]
enum Grown {
    Split { feature: usize, at_most: f32, below: usize, above: usize },
    Leaf(usize),
}

impl Grown {
    fn in_code(self) -> String {
        match self {
            Grown::Leaf(choice) => format!("Leaf({choice})"),
            Grown::Split { feature, at_most, below, above } => {
                format!("split({feature}, {at_most:?}, {below}, {above})")
            }
        }
    }
}

#[derive(Default)]
struct Tree {
    nodes: Vec<Grown>,
}

impl Tree {
    /// Adds a node for the samples, and what is below it.
    fn grow(&mut self, samples: &[&Sample], depth: usize) {
        let at = self.nodes.len();
        let (choice, cost) = cheapest(samples);
        self.nodes.push(Grown::Leaf(choice));
        if depth == 0 || samples.len() < 2 * LEAST {
            return;
        }
        let mut best: Option<(usize, f32, f64)> = None;
        for feature in 0..FEATURES {
            for at_most in cuts(samples, feature) {
                let (below, above) = divided(samples, feature, at_most);
                if below.len() < LEAST || above.len() < LEAST {
                    continue;
                }
                let sum = cheapest(&below).1 + cheapest(&above).1;
                if best.is_none_or(|(_, _, least)| sum < least) {
                    best = Some((feature, at_most, sum));
                }
            }
        }
        let Some((feature, at_most, sum)) = best else { return };
        // A gain of less than a thousandth is left.
        if sum > 0.999 * cost {
            return;
        }
        let (below, above) = divided(samples, feature, at_most);
        let first = self.nodes.len();
        self.grow(&below, depth - 1);
        let second = self.nodes.len();
        self.grow(&above, depth - 1);
        self.nodes[at] = Grown::Split { feature, at_most, below: first, above: second };
    }

    fn choice(&self, features: &[f32; FEATURES]) -> usize {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                Grown::Leaf(choice) => return choice,
                Grown::Split { feature, at_most, below, above } => {
                    at = if features[feature] <= at_most { below } else { above };
                }
            }
        }
    }
}

/// The setting that costs least for all samples together, and that sum.
fn cheapest(samples: &[&Sample]) -> (usize, f64) {
    let sum = |choice: usize| samples.iter().map(|sample| sample.costs[choice]).sum::<f64>();
    let sums = (0..CHOICES.len()).map(|choice| (choice, sum(choice)));
    sums.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
}

/// Values in the middle between neighbours, at most [`CUTS`] of them.
fn cuts(samples: &[&Sample], feature: usize) -> Vec<f32> {
    let mut values: Vec<f32> = samples.iter().map(|sample| sample.features[feature]).collect();
    values.sort_by(f32::total_cmp);
    values.dedup();
    let count = values.len().saturating_sub(1);
    let step = count.div_ceil(CUTS).max(1);
    (0..count).step_by(step).map(|at| (values[at] + values[at + 1]) / 2.0).collect()
}

fn divided<'a>(
    samples: &[&'a Sample],
    feature: usize,
    at_most: f32,
) -> (Vec<&'a Sample>, Vec<&'a Sample>) {
    samples.iter().partition(|sample| sample.features[feature] <= at_most)
}
