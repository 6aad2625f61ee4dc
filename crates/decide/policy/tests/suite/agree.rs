//! Every policy answers each access of random traces as its naive model does.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::common;
use crate::models;

use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, Verdict};
use cachewright_types::{BlockId, Seed, Value};
use models::frequency::{Counts, best_hits};
use models::queues::{ClockFrames, OneQueue, S3, SieveList};
use models::{Model, ModelOutcome};

const CAPACITIES: [usize; 9] = [1, 2, 3, 5, 10, 11, 20, 37, 64];
const DISTINCT: u64 = 100;

/// Replays ten random traces per capacity through the policy and a fresh model.
fn agree<M: Model>(name: &str, settings: &[(&str, Value)], model: impl Fn(usize) -> M) {
    let pairs: Vec<(String, Value)> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    for capacity in CAPACITIES {
        for seed in 0..10 {
            let mut rng = Seed(seed).derive(name).rng();
            let mut policy = boxed(name, &pairs, capacity as u32, Seed(seed)).unwrap();
            policy.reserve_ids(DISTINCT as usize);
            let mut model = model(capacity);
            let trace = common::random_blocks(&mut rng, 2_000, DISTINCT);
            for (position, block) in trace.into_iter().enumerate() {
                let ours = match policy.access(Access::read(block)) {
                    Verdict::Hit => ModelOutcome::Hit,
                    Verdict::Admit { evicted } => {
                        ModelOutcome::Miss { evicted: evicted.map(|b| b.0) }
                    }
                    Verdict::Bypass => ModelOutcome::Miss { evicted: Some(block.0) },
                };
                let expected = model.access(block.0);
                assert_eq!(ours, expected, "{name} of {capacity}, seed {seed}, at {position}");
            }
        }
    }
}

#[test]
fn lru_is_a_queue_that_moves_on_hits() {
    agree("lru", &[], |capacity| OneQueue { capacity, moves: true, queue: Default::default() });
}

#[test]
fn fifo_is_a_queue_that_does_not() {
    agree("fifo", &[], |capacity| OneQueue { capacity, moves: false, queue: Default::default() });
}

#[test]
fn clock_is_a_circle_of_frames() {
    agree("clock", &[], |capacity| ClockFrames {
        frames: vec![None; capacity],
        hand: 0,
        bits: Default::default(),
    });
}

#[test]
fn sieve_is_a_list_with_a_hand() {
    agree("sieve", &[], |capacity| SieveList {
        capacity,
        list: Vec::new(),
        hand: None,
        visited: Default::default(),
    });
}

#[test]
fn s3_fifo_is_the_authors_code() {
    agree("s3-fifo", &[], |capacity| S3 { capacity, ..Default::default() });
}

#[test]
fn s3_fifo_of_the_paper_is_algorithm_1() {
    let paper = [("variant", Value::Text("paper".to_owned()))];
    agree("s3-fifo", &paper, |capacity| S3 { capacity, paper: true, ..Default::default() });
}

#[test]
fn lfu_evicts_the_lowest_count() {
    agree("lfu", &[], |capacity| Counts { capacity, ..Default::default() });
}

#[test]
fn aging_halves_counts_of_lfu() {
    let aging = [("aging", Value::Bool(true))];
    agree("lfu", &aging, |capacity| Counts { capacity, limit: Some(10), ..Default::default() });
}

#[test]
fn belady_is_the_best_by_exhaustive_look_ahead() {
    for capacity in [1, 2, 3, 10, 40] {
        let mut rng = Seed(capacity).derive("belady").rng();
        let blocks = common::random_blocks(&mut rng, 2_000, DISTINCT);
        let ids: Vec<u32> = blocks.iter().map(|block: &BlockId| block.0).collect();
        let trace = common::Trace::from_raw(ids.iter().map(|id| u64::from(*id)));
        for (name, bypass) in [("belady", false), ("belady-bypass", true)] {
            let mut policy = boxed(name, &[], capacity as u32, Seed(0)).unwrap();
            let hits = trace.blocks.len() as u64 - trace.misses(policy.as_mut());
            assert_eq!(hits, best_hits(&ids, capacity as usize, bypass), "{name} of {capacity}");
        }
    }
}
