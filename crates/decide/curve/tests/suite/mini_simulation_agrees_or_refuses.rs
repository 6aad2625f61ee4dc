//! Miniature simulation: near the full simulation of every registered policy, exact at rate 1,
//! and raised or refused where the small cache would say nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::keyed;
use cachewright_curve::mini::rate_for;
use cachewright_curve::{CurveError, Curves, MiniSettings, MiniSim};
use cachewright_policy::{Access, Future, NEVER, Need, Verdict, registry};
use cachewright_testkit::streams::{ZipfBlocks, dense, golden_ids};
use cachewright_types::{BlockId, Seed};
use std::collections::HashSet;

const BLOCKS: u32 = 30_000;
/// Policies that draw by a seed, which is another one in each simulation.
const DRAWING: [&str; 7] = ["cacheus", "duel-x", "gl-cache", "guarded", "lhd", "lrb", "w-tinylfu"];
const SIZES: [u32; 4] = [1_500, 4_000, 10_000, 20_000];
/// Accesses in which all caches but the largest fill and evict.
const SHORT: usize = 100_000;

fn stream() -> Vec<BlockId> {
    let mut zipf = ZipfBlocks::new(BLOCKS, Seed(21));
    (0..300_000).map(|_| zipf.draw()).collect()
}

fn next_uses(stream: &[BlockId]) -> Vec<u32> {
    let mut next = vec![NEVER; BLOCKS as usize];
    let mut uses = vec![NEVER; stream.len()];
    for (position, block) in stream.iter().enumerate().rev() {
        uses[position] = std::mem::replace(&mut next[block.index()], position as u32);
    }
    uses
}

fn simulated(policy: &str, size: u32, stream: &[BlockId], uses: &[u32]) -> u64 {
    let mut cache = registry::boxed(policy, &[], size, Seed(1)).unwrap();
    cache.reserve_ids(BLOCKS as usize + 5_000);
    let accesses = stream.iter().zip(uses);
    let accesses = accesses.map(|(&block, &next_use)| Access {
        future: Future::NextUse(next_use),
        ..Access::read(block)
    });
    let missed = |access| {
        let verdict = cache.access(access);
        while cache.background_op().is_some() {}
        u64::from(verdict != Verdict::Hit)
    };
    accesses.map(missed).sum()
}

fn mini(policy: &str, settings: &MiniSettings, stream: &[BlockId]) -> Curves {
    let distinct = u64::from(BLOCKS);
    let mut mini = MiniSim::new(policy, &[], &SIZES, distinct, settings, Seed(4)).unwrap();
    for &block in stream {
        mini.access(keyed(block), false);
    }
    mini.take_curves()
}

/// Policies that ask for no more than accesses and their future.
fn of_accesses() -> Vec<&'static cachewright_policy::Entry> {
    let simple =
        |entry: &&cachewright_policy::Entry| entry.needs.iter().all(|need| *need == Need::Future);
    registry::entries().into_iter().filter(simple).collect()
}

#[test]
fn every_policy_is_near_its_full_simulation() {
    let stream = stream();
    let settings =
        MiniSettings { rate: 0.1, min_sampled_blocks: 0, salts: 8, ..Default::default() };
    let uses = next_uses(&stream);
    for entry in of_accesses() {
        let curve = mini(entry.name, &settings, &stream).all;
        for size in SIZES {
            let truth = simulated(entry.name, size, &stream, &uses) as f64 / stream.len() as f64;
            let error = (curve.miss_ratio(size) - truth).abs();
            // They learn from fewer accesses in a small cache.
            let learns = ["lrb", "3l-cache"].contains(&entry.name);
            let bound = if learns { 0.06 } else { 0.025 };
            assert!(error < bound, "{} at {size}: {} for {truth}", entry.name, error);
        }
    }
}

#[test]
fn at_rate_one_it_is_the_simulation() {
    let settings = MiniSettings { rate: 1.0, ..MiniSettings::default() };
    let mut stream = stream();
    stream.truncate(SHORT);
    let distinct = stream.iter().collect::<HashSet<_>>().len();
    assert!(distinct > SIZES[2] as usize, "{distinct} blocks");
    let uses = next_uses(&stream);
    for entry in of_accesses() {
        let curves = mini(entry.name, &settings, &stream);
        assert!(curves.all.band().is_none(), "nothing was sampled");
        for size in SIZES {
            let truth = simulated(entry.name, size, &stream, &uses);
            let found = curves.all.misses(size);
            match DRAWING.contains(&entry.name) {
                true => assert!((found / truth as f64 - 1.0).abs() < 0.1, "{}", entry.name),
                false => assert_eq!(found, truth as f64, "{} at {size}", entry.name),
            }
            assert_eq!(curves.writes.misses(size), 0.0);
        }
    }
}

#[test]
fn the_interval_covers_the_full_simulation_most_of_the_time() {
    let stream = stream();
    let uses = next_uses(&stream);
    let settings =
        MiniSettings { rate: 0.1, min_sampled_blocks: 0, salts: 8, ..Default::default() };
    let truth: Vec<f64> =
        SIZES.iter().map(|&size| simulated("lru", size, &stream, &uses) as f64).collect();
    let mut covered = 0;
    for seed in 0..10 {
        let mut mini =
            MiniSim::new("lru", &[], &SIZES, u64::from(BLOCKS), &settings, Seed(seed)).unwrap();
        for &block in &stream {
            mini.access(keyed(block), false);
        }
        let curve = mini.take_curves().all;
        for (&size, truth) in SIZES.iter().zip(&truth) {
            let (low, high) = curve.interval(size);
            covered += i32::from((low..=high).contains(truth));
        }
    }
    assert!(covered >= 34, "{covered} of 40");
}

#[test]
fn small_caches_raise_the_rate_each_for_itself() {
    let settings = MiniSettings { min_sampled_blocks: 0, ..MiniSettings::default() };
    assert_eq!(rate_for(100_000, 1 << 40, &settings), Ok(0.01));
    assert_eq!(rate_for(12_800, 1 << 40, &settings), Ok(0.01));
    assert_eq!(rate_for(12_799, 1 << 40, &settings), Ok(0.02));
    assert_eq!(rate_for(200, 1 << 40, &settings), Ok(1.0));
    assert_eq!(rate_for(1, 1 << 40, &settings), Ok(1.0));
    let mini = MiniSim::new("lru", &[], &[200, 6_400, 50_000], 1 << 40, &settings, Seed(1));
    assert_eq!(mini.map(|mini| mini.rates()).ok(), Some(vec![1.0, 0.02, 0.01]));
}

#[test]
fn a_small_working_set_raises_the_rate() {
    let settings = MiniSettings::default();
    assert_eq!(rate_for(1_000_000, 10_000_000, &settings), Ok(0.01));
    assert_eq!(rate_for(1_000_000, 500_000, &settings), Ok(0.02));
    assert_eq!(rate_for(1_000_000, 8_000, &settings), Ok(1.0));
}

#[test]
fn without_escalation_it_refuses_by_name_and_number() {
    let settings = MiniSettings { escalate: false, ..MiniSettings::default() };
    let error = rate_for(1_000, 1 << 40, &settings).unwrap_err();
    assert!(matches!(error, CurveError::TooSmall { size_blocks: 1_000, .. }));
    let words = error.to_string();
    assert!(words.contains("1000 blocks") && words.contains("10.0 blocks"), "{words}");
    assert!(words.contains("at least 128") && words.contains("0.128"), "{words}");
    let error = rate_for(100_000, 50_000, &settings).unwrap_err();
    assert!(error.to_string().contains("50000 distinct blocks"), "{error}");
    let error = MiniSim::new("lruu", &[], &[9], 9, &MiniSettings::default(), Seed(1)).err();
    assert!(error.is_some_and(|e| e.to_string().contains("nearest is `lru`")));
    for entry in registry::entries().iter().filter(|entry| entry.needs.contains(&Need::Requests)) {
        let error = MiniSim::new(entry.name, &[], &[9], 9, &MiniSettings::default(), Seed(1)).err();
        let words = error.unwrap().to_string();
        assert!(words.contains(entry.name) && words.contains("whole requests"), "{words}");
    }
    let error = MiniSim::new("lru", &[], &[9, 9], 9, &MiniSettings::default(), Seed(1)).err();
    assert!(error.is_some_and(|e| e.to_string().contains("9 after 9")));
    let error = MiniSim::new("benefit-oracle", &[], &[9], 9, &MiniSettings::default(), Seed(1));
    let words = error.err().unwrap().to_string();
    assert!(words.contains("`benefit-oracle` needs the benefit of each access"), "{words}");
}

#[test]
fn golden_misses_come_out_at_every_size_in_one_pass() {
    let stream = dense(golden_ids());
    let settings = MiniSettings { rate: 1.0, ..MiniSettings::default() };
    let sizes = [100, 500, 1_000, 2_000, 5_000, 10_000, 20_000];
    let golden = [190_485.0, 179_283.0, 170_869.0, 159_145.0, 136_955.0, 114_288.0, 89_995.0];
    let mut mini = MiniSim::new("lru", &[], &sizes, 34_430, &settings, Seed(1)).unwrap();
    for &block in &stream {
        mini.access(keyed(block), false);
    }
    let curve = mini.take_curves().all;
    for (size, misses) in sizes.into_iter().zip(golden) {
        assert_eq!(curve.misses(size), misses, "at {size}");
    }
}
