//! What must hold for every entry of the registry, whatever is done to it.
//!
//! Nothing here names a policy but the bound `belady-bypass`: a new entry is tested the day it is
//! registered.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::common;

use cachewright_policy::registry::{boxed, keys};
use cachewright_policy::renumber::Renumbering;
use cachewright_policy::{
    Access, BackgroundOp, NEVER, Need, Policy, PolicyVisitor, Region, RegionSizes, Registered,
    Verdict, entries, entry, visit,
};
use cachewright_types::{BlockId, Rng, Seed, Value};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of the random traces.
const DISTINCT: u64 = 48;

/// One step of a test.
#[derive(Clone, Copy, Debug)]
enum Step {
    Access(u32, bool),
    /// Puts a block in that is not there.
    Adopt(u32, bool),
    Remove(u32),
    Resize(u32),
    /// Divides the capacity: so many eighths for the private region.
    Divide(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ids = 0..DISTINCT as u32;
    let step = prop_oneof![
        20 => (ids.clone(), any::<bool>())
            .prop_map(|(id, write)| Step::Access(id * id / 64, write)),
        20 => (ids.clone(), any::<bool>()).prop_map(|(id, write)| Step::Access(id, write)),
        2 => (ids.clone(), any::<bool>()).prop_map(|(id, dirty)| Step::Adopt(id, dirty)),
        3 => ids.prop_map(Step::Remove),
        1 => (0_u32..24).prop_map(Step::Resize),
        1 => (0_u32..9).prop_map(Step::Divide),
    ];
    proptest::collection::vec(step, 1..400)
}

/// The position of each access's next one among `steps`, removals and resizes not counted.
fn next_uses(steps: &[Step]) -> Vec<u32> {
    let blocks: Vec<BlockId> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Access(id, _) => Some(BlockId(*id)),
            _ => None,
        })
        .collect();
    common::next_use(&blocks, DISTINCT as usize)
}

/// Whether a policy says that it has regions or background operations.
struct HasBackground;

impl PolicyVisitor for HasBackground {
    type Output = bool;
    fn visit<P: Registered>(self, _: P::Settings) -> bool {
        P::has_regions_or_background_ops()
    }
}

/// The region of each block in the cache.
fn regions(policy: &dyn Policy) -> BTreeMap<u32, Region> {
    resident(policy).into_iter().map(|id| (id, policy.region(BlockId(id)))).collect()
}

fn in_region(regions: &BTreeMap<u32, Region>, region: Region) -> u32 {
    regions.values().filter(|held| **held == region).count() as u32
}

/// Takes all background operations, and checks each against the blocks in the cache and their
/// regions.
fn take_background_ops(name: &str, policy: &mut dyn Policy) -> usize {
    let mut held = regions(policy);
    let mut count = 0;
    while let Some(op) = policy.background_op() {
        count += 1;
        assert!(count < 1_000, "{name}: no end of operations");
        match op {
            BackgroundOp::Demote(BlockId(id)) => {
                assert!(held.remove(&id).is_some(), "{name}: {id} left")
            }
            BackgroundOp::Clean(BlockId(id)) => {
                assert!(held.contains_key(&id), "{name}: {id} cleaned")
            }
            BackgroundOp::Swap(BlockId(one), BlockId(other)) => {
                let (first, second) = (held[&one], held[&other]);
                assert_ne!(first, second, "{name}: swapped within a region");
                held.extend([(one, second), (other, first)]);
            }
        }
        assert_eq!(regions(policy), held, "{name} after {op:?}");
        assert_eq!(policy.len() as usize, held.len(), "{name} after {op:?}");
        assert_eq!(policy.audit(), Ok(()), "{name} after {op:?}");
    }
    count
}

/// Divides the capacity and checks that no more leaves than must; returns what is left.
fn divide(name: &str, policy: &mut dyn Policy, eighths: u32) -> BTreeSet<u32> {
    let capacity = policy.capacity();
    let private_blocks = capacity * eighths / 8;
    let sizes = RegionSizes { private_blocks, shared_blocks: capacity - private_blocks };
    let mut held = regions(policy);
    let over = in_region(&held, Region::Private).saturating_sub(sizes.private_blocks)
        + in_region(&held, Region::Shared).saturating_sub(sizes.shared_blocks);
    let mut evicted = Vec::new();
    policy.divide_regions(sizes, &mut evicted);
    assert_eq!(evicted.len() as u32, over, "{name}: as many leave as do not fit");
    assert!(evicted.iter().all(|block| held.remove(&block.0).is_some()), "{name}: held");
    assert_eq!(regions(policy), held, "{name}: the others stay where they are");
    assert_eq!(policy.capacity(), capacity, "{name}");
    assert!(
        in_region(&held, Region::Private) <= sizes.private_blocks,
        "{name}: beyond its private region"
    );
    assert!(
        in_region(&held, Region::Shared) <= sizes.shared_blocks,
        "{name}: beyond the shared region"
    );
    held.into_keys().collect()
}

fn resident(policy: &dyn Policy) -> BTreeSet<u32> {
    (0..DISTINCT as u32).filter(|id| policy.contains(BlockId(*id))).collect()
}

/// Takes in a block that is not among those `held`, which follow.
fn adopt(name: &str, policy: &mut dyn Policy, id: u32, dirty: bool, held: &mut BTreeSet<u32>) {
    let full = held.len() as u32 == policy.capacity();
    match policy.adopt(BlockId(id), dirty) {
        Verdict::Admit { evicted: None } => assert!(!full, "{name}: adopted {id}"),
        Verdict::Admit { evicted: Some(BlockId(victim)) } => {
            assert!(held.remove(&victim), "{name}: {victim} was not held");
        }
        _ => assert_eq!(policy.capacity(), 0, "{name}: {id} is not adopted"),
    }
    held.extend((policy.capacity() > 0).then_some(id));
}

/// Replays `steps`, checking each verdict against what was in the cache before and is after.
fn check(
    name: &str,
    pairs: &[(String, Value)],
    capacity: u32,
    steps: &[Step],
    seed: u64,
) -> Vec<Verdict> {
    let mut policy = boxed(name, pairs, capacity, Seed(seed)).unwrap();
    policy.reserve_ids(DISTINCT as usize);
    let next_use = next_uses(steps);
    let mut verdicts = Vec::new();
    let mut largest = capacity;
    let knows = |need: &Need| matches!(need, Need::Future | Need::Benefit);
    let blind = !entry(name).unwrap().needs.iter().any(knows);
    let has_background = visit(name, pairs, HasBackground).unwrap();
    for step in steps {
        let before = resident(policy.as_ref());
        let mut expected = before.clone();
        match *step {
            Step::Access(id, write) => {
                let future = common::future(name, next_use[verdicts.len()]);
                let access = Access { block: BlockId(id), write, future };
                let verdict = policy.access(access);
                assert_eq!(verdict == Verdict::Hit, before.contains(&id), "{name}: hit iff held");
                if let Verdict::Admit { evicted } = verdict {
                    if let Some(BlockId(victim)) = evicted {
                        assert!(expected.remove(&victim), "{name}: {victim} was not held");
                        assert_ne!(victim, id, "{name}: the new block left");
                    }
                    expected.insert(id);
                }
                verdicts.push(verdict);
            }
            Step::Adopt(id, _) if before.contains(&id) || !blind => {}
            Step::Adopt(id, dirty) => {
                adopt(name, policy.as_mut(), id, dirty, &mut expected);
            }
            Step::Remove(id) => {
                let was = policy.remove(BlockId(id));
                assert_eq!(was, expected.remove(&id), "{name}: removed iff held");
                assert!(!policy.tracks(BlockId(id)), "{name}: a removed block is remembered");
            }
            Step::Resize(to) => {
                let mut evicted = Vec::new();
                policy.resize(to, &mut evicted);
                for BlockId(victim) in evicted {
                    assert!(expected.remove(&victim), "{name}: {victim} was not held");
                }
                assert_eq!(policy.capacity(), to, "{name}");
                assert!(before.len() > to as usize || expected == before, "{name}: needless loss");
                largest = largest.max(to);
            }
            Step::Divide(eighths) => expected = divide(name, policy.as_mut(), eighths),
        }
        assert_eq!(resident(policy.as_ref()), expected, "{name} after {step:?}");
        assert_eq!(policy.len() as usize, expected.len(), "{name} after {step:?}");
        assert_eq!(policy.is_empty(), expected.is_empty());
        assert!(policy.len() <= policy.capacity(), "{name}: beyond its capacity");
        assert_eq!(policy.audit(), Ok(()), "{name} after {step:?}");
        assert!(expected.iter().all(|id| policy.tracks(BlockId(*id))), "{name}: held, not tracked");
        let tracked = (0..DISTINCT as u32).filter(|id| policy.tracks(BlockId(*id))).count() as u64;
        let max = policy.max_tracked();
        assert!(tracked <= max, "{name} after {step:?}: {tracked} tracked, at most {max}");
        let ops = take_background_ops(name, policy.as_mut());
        let placed = regions(policy.as_ref()).into_values().any(|region| region != Region::Any);
        assert!(has_background || (ops == 0 && !placed), "{name} does what it says it never does");
    }
    verdicts
}

/// Each setting alone at its lowest and at its highest value.
fn extremes(name: &str) -> Vec<Vec<(String, Value)>> {
    let mut all = Vec::new();
    for key in keys(name).unwrap() {
        all.extend(key.extremes().into_iter().map(|value| vec![(key.name.to_owned(), value)]));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn verdicts_agree_with_the_contents(
        steps in steps(),
        capacity in prop_oneof![0_u32..4, 4_u32..32],
        seed in any::<u64>(),
    ) {
        for entry in entries() {
            let verdicts = check(entry.name, &[], capacity, &steps, seed);
            let again = check(entry.name, &[], capacity, &steps, seed);
            prop_assert_eq!(verdicts, again, "{}: same seed, another result", entry.name);
        }
    }

    #[test]
    fn every_setting_holds_at_both_ends(steps in steps(), capacity in 1_u32..24, seed: u64) {
        for entry in entries() {
            for pairs in extremes(entry.name) {
                check(entry.name, &pairs, capacity, &steps, seed);
            }
        }
    }

    /// Settings under which much happens within a few hundred accesses, where a policy has them.
    #[test]
    fn short_periods_and_busy_backgrounds_hold(steps in steps(), capacity in 4_u32..24, seed: u64) {
        let lively = [
            ("tick", Value::Int(3)),
            ("free", Value::Float(0.3)),
            ("clean", Value::Float(0.5)),
            ("hot_share", Value::Float(0.1)),
        ];
        for entry in entries() {
            let known = keys(entry.name).unwrap();
            let has = |name: &str| known.iter().any(|spec| spec.name == name);
            let pairs: Vec<(String, Value)> = lively
                .iter()
                .filter(|(name, _)| has(name))
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect();
            if !pairs.is_empty() {
                check(entry.name, &pairs, capacity, &steps, seed);
            }
        }
    }

    #[test]
    fn nothing_beats_belady_with_bypass(seed in any::<u64>(), capacity in 1_u32..40) {
        let mut rng = Seed(seed).rng();
        let blocks = common::random_blocks(&mut rng, 1500, DISTINCT);
        let trace = common::Trace::from_raw(blocks.iter().map(|block| u64::from(block.0)));
        let misses = |name| {
            let mut policy = boxed(name, &[], capacity, Seed(seed)).unwrap();
            trace.misses_knowing(policy.as_mut(), |next_use| common::future(name, next_use))
        };
        let best = misses("belady-bypass");
        for entry in entries() {
            let here = misses(entry.name);
            prop_assert!(here >= best, "{}: {here} misses, best {best}", entry.name);
        }
    }
}

/// Every eighth access goes to one of few blocks, the others never come back.
fn mostly_new(rng: &mut Rng, count: u32) -> Vec<BlockId> {
    (0..count).map(|i| BlockId(if i % 8 == 0 { rng.below(200) as u32 } else { 200 + i })).collect()
}

/// The blocks that a policy tracks at most, as multiples of its capacity, where its source
/// remembers more than three caches.
const TRACKED: [(&str, u32); 2] = [("mq", 5), ("s4-fifo", 7)];

#[test]
fn memory_of_past_blocks_is_bounded() {
    const COUNT: u32 = 20_000;
    for entry in entries() {
        for capacity in [0, 1, 2, 3, 10, 100] {
            let mut policy = boxed(entry.name, &[], capacity, Seed(3)).unwrap();
            policy.reserve_ids(COUNT as usize + 200);
            let blocks = mostly_new(&mut Seed(9).rng(), COUNT);
            for (position, block) in blocks.iter().enumerate() {
                let next_use = if block.0 < 200 { position as u32 + 8 } else { NEVER };
                let future = common::future(entry.name, next_use);
                policy.access(Access { future, ..Access::read(*block) });
            }
            let tracked = (0..COUNT + 200).filter(|id| policy.tracks(BlockId(*id))).count() as u32;
            let more = TRACKED.iter().find(|(name, _)| *name == entry.name);
            let limit = more.map_or(4, |(_, times)| *times) * capacity + 64;
            assert!(tracked <= limit, "{} of {capacity} tracks {tracked}", entry.name);
        }
    }
}

/// Two caches see the same accesses, but one gives every block that is no longer tracked a new id.
#[test]
fn an_untracked_id_is_as_good_as_new() {
    const TRACE: usize = 4_000;
    for entry in entries() {
        for capacity in [1, 2, 3, 12, 30] {
            let mut fixed = boxed(entry.name, &[], capacity, Seed(5)).unwrap();
            let mut moving = boxed(entry.name, &[], capacity, Seed(5)).unwrap();
            fixed.reserve_ids(DISTINCT as usize);
            moving.reserve_ids(DISTINCT as usize + TRACE);
            let mut alias: Vec<u32> = (0..DISTINCT as u32).collect();
            let mut fresh = DISTINCT as u32;
            let blocks = common::random_blocks(&mut Seed(11).rng(), TRACE, DISTINCT);
            let future = common::next_use(&blocks, DISTINCT as usize);
            for (&block, &next_use) in blocks.iter().zip(&future) {
                if !moving.tracks(BlockId(alias[block.index()])) {
                    alias[block.index()] = fresh;
                    fresh += 1;
                }
                let future = common::future(entry.name, next_use);
                let ours = fixed.access(Access { future, ..Access::read(block) });
                let block = BlockId(alias[block.index()]);
                let theirs = moving.access(Access { future, ..Access::read(block) });
                assert_eq!(theirs, renamed(ours, &alias), "{} of {capacity}", entry.name);
            }
        }
    }
}

/// Two caches see the same accesses, but one gives its blocks new ids now and then. Policies that
/// learn from batches of rows do so all the time.
#[test]
fn new_numbers_change_no_decision() {
    const TRACE: u32 = 3_000;
    for entry in entries() {
        let blind = entry.needs.iter().all(|need| *need == Need::Requests);
        let learns = keys(entry.name).unwrap().iter().any(|spec| spec.name == "batch");
        let pairs: Vec<(String, Value)> =
            learns.then(|| ("batch".to_owned(), Value::Int(64))).into_iter().collect();
        for capacity in [0, 1, 3, 12, 30] {
            let mut fixed = boxed(entry.name, &pairs, capacity, Seed(5)).unwrap();
            let mut moving = boxed(entry.name, &pairs, capacity, Seed(5)).unwrap();
            fixed.reserve_ids(DISTINCT as usize);
            moving.reserve_ids(DISTINCT as usize + 200);
            let mut alias: Vec<u32> = (0..DISTINCT as u32).collect();
            let blocks = common::random_blocks(&mut Seed(12).rng(), TRACE as usize, DISTINCT);
            let next_use = common::next_use(&blocks, DISTINCT as usize);
            for (position, (&block, &next_use)) in blocks.iter().zip(&next_use).enumerate() {
                if position % 97 == 96 {
                    renumber(entry.name, moving.as_mut(), &mut alias, blind);
                }
                if position % 211 == 210 {
                    fixed.remove(block);
                    moving.remove(BlockId(alias[block.index()]));
                }
                let future = common::future(entry.name, next_use);
                let ours = fixed.access(Access { future, ..Access::read(block) });
                let block = BlockId(alias[block.index()]);
                let theirs = moving.access(Access { future, ..Access::read(block) });
                assert_eq!(theirs, renamed(ours, &alias), "{} of {capacity}", entry.name);
            }
        }
    }
}

/// A verdict with the other ids of its blocks.
fn renamed(verdict: Verdict, alias: &[u32]) -> Verdict {
    match verdict {
        Verdict::Admit { evicted } => {
            Verdict::Admit { evicted: evicted.map(|victim| BlockId(alias[victim.index()])) }
        }
        other => other,
    }
}

/// Renumbers what a policy tracks; other blocks get the ids above.
fn renumber(name: &str, policy: &mut dyn Policy, alias: &mut [u32], blind: bool) {
    let ids = Renumbering::keeping(DISTINCT as usize + 200, |id| {
        id.index() < DISTINCT as usize && policy.tracks(id)
    });
    let tracked = ids.kept() as u32;
    let done = policy.renumber(&ids);
    assert!(done || !blind, "{name} can be renumbered");
    if done {
        let mut fresh = tracked;
        for id in alias.iter_mut() {
            *id = ids.get(BlockId(*id)).map_or_else(
                || {
                    fresh += 1;
                    fresh - 1
                },
                |new| new.0,
            );
        }
        policy.reserve_ids(DISTINCT as usize + 200);
    }
    assert_eq!(policy.audit(), Ok(()), "{name}");
}
