//! The policies with ghosts and levels answer each access as their naive models do.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::common;
use crate::ghost_models;

use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, Verdict};
use cachewright_types::{BlockId, Rng, Seed, Value};
use ghost_models::ghosts::{ArcLists, CountTable, LazyQueues, TwoQueues};
use ghost_models::lirs::LirsTables;
use ghost_models::smq::Multiqueue;
use ghost_models::{GhostModel, ModelVerdict};
use std::collections::BTreeSet;

const CAPACITIES: [usize; 9] = [1, 2, 3, 5, 10, 17, 37, 64, 130];

/// Blocks drawn by Zipf's law with exponent 1 over `distinct` blocks.
fn zipf_blocks(rng: &mut Rng, count: usize, distinct: usize) -> Vec<BlockId> {
    let mut sums = Vec::with_capacity(distinct);
    let mut sum = 0.0;
    for rank in 1..=distinct {
        sum += 1.0 / rank as f64;
        sums.push(sum);
    }
    let draw = |rng: &mut Rng| sums.partition_point(|upper| *upper < rng.unit() * sum);
    (0..count).map(|_| BlockId(draw(rng).min(distinct - 1) as u32)).collect()
}

/// Four traces: two skewed ones with a loop in them, two Zipf ones.
fn traces(name: &str) -> Vec<Vec<BlockId>> {
    let mut rng = Seed(7).derive(name).rng();
    [60, 300]
        .iter()
        .flat_map(|distinct| {
            let loops = common::random_blocks(&mut rng, 6_000, *distinct);
            [loops, zipf_blocks(&mut rng, 6_000, *distinct as usize)]
        })
        .collect()
}

/// Replays the traces through the policy and a fresh model; a third of the accesses write. Returns
/// how many blocks left, so that a test can see that something was tested.
pub fn agree<M: GhostModel>(
    name: &str,
    settings: &[(&str, Value)],
    model: impl Fn(usize) -> M,
) -> usize {
    let pairs: Vec<(String, Value)> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let mut evictions = 0;
    for (number, trace) in traces(name).into_iter().enumerate() {
        for capacity in CAPACITIES {
            let mut policy = boxed(name, &pairs, capacity as u32, Seed(1)).unwrap();
            policy.reserve_ids(300);
            let mut model = model(capacity);
            let mut rng = Seed(capacity as u64).rng();
            for (position, &block) in trace.iter().enumerate() {
                let write = rng.below(3) == 0;
                let ours = match policy.access(Access { write, ..Access::read(block) }) {
                    Verdict::Hit => ModelVerdict::Hit,
                    Verdict::Admit { evicted } => ModelVerdict::In(evicted.map(|block| block.0)),
                    Verdict::Bypass => ModelVerdict::Out,
                };
                let expected = model.access(block.0, write);
                assert_eq!(ours, expected, "{name} of {capacity}, trace {number}, at {position}");
                evictions += usize::from(matches!(ours, ModelVerdict::In(Some(_))));
            }
            assert_eq!(policy.audit(), Ok(()), "{name} of {capacity}");
        }
    }
    evictions
}

#[test]
fn arc_is_figure_4() {
    assert!(agree("arc", &[], |c| ArcLists { c, ..Default::default() }) > 10_000);
}

#[test]
fn two_q_is_the_full_version() {
    assert!(agree("2q", &[], |c| TwoQueues { c, ..Default::default() }) > 10_000);
}

#[test]
fn larc_is_algorithm_1() {
    assert!(agree("larc", &[], LazyQueues::new) > 1_000);
}

#[test]
fn lirs_is_the_papers_stack_and_queue() {
    assert!(agree("lirs", &[], |c| LirsTables::new(c, false, false)) > 10_000);
}

#[test]
fn lirs_libcachesim_demotes_at_hits_outside_the_stack() {
    let libcachesim = [("variant", Value::Text("libcachesim".to_owned()))];
    assert!(agree("lirs", &libcachesim, |c| LirsTables::new(c, true, false)) > 10_000);
}

#[test]
fn access_frequency_is_a_table_of_counts() {
    assert!(agree("access-frequency", &[], |c| CountTable::new(c, 3 * c, 16 * c)) > 1_000);
    let short = [("history", Value::Float(0.5)), ("halve_every", Value::Float(300.0))];
    assert!(agree("access-frequency", &short, |c| CountTable::new(c, c / 2, 300 * c)) > 100);
}

#[test]
fn smq_is_three_queues_of_levels() {
    let tick = [("tick", Value::Int(20))];
    assert!(agree("smq", &tick, |c| Multiqueue::new(c, 20, 1, false)) > 1_000);
    let regions = [("tick", Value::Int(35)), ("region_blocks", Value::Int(3))];
    assert!(agree("smq", &regions, |c| Multiqueue::new(c, 35, 3, false)) > 1_000);
    let idle = [("tick", Value::Int(50)), ("idle", Value::Bool(true))];
    assert!(agree("smq", &idle, |c| Multiqueue::new(c, 50, 1, true)) > 1_000);
}

/// The registry's property tests use default settings, under which `smq` hardly ticks and counts
/// are hardly halved within their few hundred steps; here both happen all the time.
#[test]
fn short_periods_survive_resizes_and_removals() {
    let smq = [("tick", Value::Int(16)), ("region_blocks", Value::Int(2))];
    let idle = [("tick", Value::Int(8)), ("idle", Value::Bool(true))];
    let counts = [("halve_every", Value::Float(1.5)), ("history", Value::Float(1.0))];
    let left: Vec<usize> = [("smq", &smq), ("smq", &idle), ("access-frequency", &counts)]
        .map(|(name, settings)| shaken(name, settings))
        .into();
    assert!(left.iter().all(|count| *count > 500), "{left:?} blocks left");
}

/// Accesses, resizes and removals at random, with every verdict checked against the contents;
/// returns how many blocks left.
fn shaken(name: &str, settings: &[(&str, Value); 2]) -> usize {
    let pairs = settings.clone().map(|(key, value)| (key.to_owned(), value));
    let mut rng = Seed(23).derive(name).rng();
    let mut policy = boxed(name, &pairs, 20, Seed(0)).unwrap();
    policy.reserve_ids(300);
    let mut held = BTreeSet::new();
    let mut left = 0;
    for block in zipf_blocks(&mut rng, 30_000, 300) {
        match rng.below(400) {
            0 => {
                let mut evicted = Vec::new();
                policy.resize(rng.below(60) as u32, &mut evicted);
                assert!(evicted.iter().all(|victim| held.remove(victim)), "{name}");
            }
            1..8 => {
                assert_eq!(policy.remove(block), held.remove(&block), "{name}");
                assert!(!policy.tracks(block), "{name}");
            }
            draw => match policy.access(Access { write: draw % 2 == 0, ..Access::read(block) }) {
                Verdict::Hit => assert!(held.contains(&block), "{name}"),
                Verdict::Bypass => assert!(!held.contains(&block), "{name}"),
                Verdict::Admit { evicted } => {
                    left += usize::from(evicted.is_some());
                    assert!(evicted.is_none_or(|victim| held.remove(&victim)), "{name}");
                    assert!(held.insert(block), "{name}");
                }
            },
        }
        assert_eq!(policy.len() as usize, held.len(), "{name}");
        assert!(held.iter().all(|block| policy.contains(*block)), "{name}");
        assert_eq!(policy.audit(), Ok(()), "{name}");
    }
    left
}

/// libCacheSim's count at the one size where its variant of `lirs` differs from it.
#[test]
fn evicting_at_a_hit_is_all_that_parts_us_from_libcachesim() {
    let Some(records) = common::cloudphysics() else { return };
    let trace = common::Trace::from_raw(common::split_4k(&records));
    let misses = |early| {
        let mut model = LirsTables::new(32_768, true, early);
        let miss = |block: &&BlockId| model.access(block.0, false) != ModelVerdict::Hit;
        trace.blocks.iter().filter(miss).count()
    };
    assert_eq!((misses(true), misses(false)), (896_229, 896_221));
}
