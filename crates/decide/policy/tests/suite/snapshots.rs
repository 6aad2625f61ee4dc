//! A policy that continues from a snapshot decides as the one that it was taken of.
//!
//! Nothing here names a policy but the one that needs a model: a new entry is tested the day it is
//! registered.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::common;
use cachewright_model::NetworkKind;
use cachewright_policy::characterize;
use cachewright_policy::foreign::{Foreign, ForeignSettings};
use cachewright_policy::rc_rnn::features::FeatureSet;
use cachewright_policy::rc_rnn::labels::HEADS;
use cachewright_policy::registry::{boxed, keys};
use cachewright_policy::{
    Access, Need, Policy, RegionSizes, Registered, RequestInfo, ShadowSplit, Verdict, entries,
    entry,
};
use cachewright_snapshot::{SnapshotError, restore, saved};
use cachewright_testkit::models::{random_lstm, small_random_model};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Rng, Seed, TenantId, Value};
use proptest::prelude::*;

/// Blocks of the random traces.
const DISTINCT: u64 = 64;

/// A policy as a run makes it, with models where it needs some.
fn made(name: &str, pairs: &[(String, Value)], capacity: u32, seed: u64) -> Box<dyn Policy> {
    let mut policy = boxed(name, pairs, capacity, Seed(seed)).unwrap();
    if entry(name).unwrap().needs.contains(&Need::Model) {
        let model = |seed| {
            let mut rng = Seed(seed).rng();
            let features = FeatureSet::Paper.features();
            random_lstm(features, &HEADS, &[6, 6], &mut rng).unwrap().to_bytes().unwrap()
        };
        let models = [("mail".to_owned(), model(1)), ("web".to_owned(), model(2))];
        policy.load_models(&models).unwrap();
    }
    policy
}

/// What happens at one moment; the same to both policies.
fn step(policy: &mut dyn Policy, name: &str, at: u64, rng: &mut Rng) -> (Vec<BlockId>, String) {
    let mut left = Vec::new();
    let block = BlockId((rng.unit().powi(2) * DISTINCT as f64) as u32);
    let said = match rng.below(60) {
        0 => {
            policy.resize(rng.below(24) as u32, &mut left);
            String::new()
        }
        1 => {
            let private_blocks = policy.capacity() * rng.below(9) as u32 / 8;
            let shared_blocks = policy.capacity() - private_blocks;
            policy.divide_regions(RegionSizes { private_blocks, shared_blocks }, &mut left);
            String::new()
        }
        2 => {
            let split = ShadowSplit { share: rng.unit(), blocks: policy.capacity() / 2 };
            policy.split(split, &mut left);
            String::new()
        }
        3 => {
            policy.set_workload(if rng.below(2) == 0 { "mail" } else { "web" });
            String::new()
        }
        4..7 => format!("{}", policy.remove(block)),
        _ => {
            let write = rng.below(3) == 0;
            policy.on_request(&RequestInfo {
                time_ns: at * 1_000_003,
                offset: u64::from(block.0) << 12,
                length: 4096,
                write,
            });
            let future = common::future(name, at as u32 + rng.below(50) as u32);
            let verdict = policy.access(Access { block, write, future });
            policy.clock(at * 1_000_003);
            format!("{verdict:?}")
        }
    };
    let mut ops = Vec::new();
    while let Some(op) = policy.background_op() {
        ops.push(op);
    }
    (left, format!("{said} {ops:?}"))
}

/// Runs a policy to a moment, restores its snapshot into a fresh one and runs both on.
fn check(name: &str, pairs: &[(String, Value)], capacity: u32, seed: u64, steps: (u64, u64)) {
    let mut rng = Seed(seed).rng();
    let mut policy = made(name, pairs, capacity, seed);
    policy.reserve_ids(DISTINCT as usize);
    for at in 0..steps.0 {
        step(policy.as_mut(), name, at, &mut rng);
    }
    let bytes = saved(policy.as_ref()).unwrap();
    // Of another capacity: that is a part of the state.
    let mut other = made(name, pairs, 7, seed);
    restore(other.as_mut(), &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(other.audit(), Ok(()), "{name}");
    assert_eq!(saved(other.as_ref()).unwrap(), bytes, "{name}: saved again");
    let mut same = rng.clone();
    for at in steps.0..steps.0 + steps.1 {
        let expected = step(policy.as_mut(), name, at, &mut rng);
        let found = step(other.as_mut(), name, at, &mut same);
        assert_eq!(found, expected, "{name} {pairs:?}, {at} of {steps:?}");
    }
    assert_eq!(saved(other.as_ref()), saved(policy.as_ref()), "{name}: saved in the end");
    let held = |policy: &dyn Policy| {
        (0..DISTINCT as u32).map(BlockId).map(|id| policy.contains(id)).collect()
    };
    let (found, expected): (Vec<bool>, Vec<bool>) = (held(other.as_ref()), held(policy.as_ref()));
    assert_eq!(found, expected, "{name}");
}

/// Settings under which a policy learns and evens out within some hundred accesses.
fn lively(name: &str) -> Vec<(String, Value)> {
    let short = [("tick", 3), ("batch", 64), ("observe", 4), ("interval", 50), ("period", 50)];
    let known = keys(name).unwrap();
    let known = |key: &str, value: f64| {
        let spec = known.iter().find(|spec| spec.name == key)?;
        spec.range.filter(|(low, high)| (*low..=*high).contains(&value))
    };
    let has = |(key, value): &(&str, i64)| known(key, *value as f64).is_some();
    let kept = short.into_iter().filter(has);
    kept.map(|(key, value)| (key.to_owned(), Value::Int(value))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn what_continues_decides_alike(
        capacity in prop_oneof![0_u32..4, 4_u32..32],
        seed: u64,
        before in 0_u64..1500,
    ) {
        for entry in entries() {
            check(entry.name, &[], capacity, seed, (before, 400));
            check(entry.name, &lively(entry.name), capacity, seed, (before, 400));
        }
    }

    #[test]
    fn characterizers_go_on_with_their_windows(seed: u64, before in 0_u64..1500) {
        for entry in characterize::entries() {
            let names = characterize::features(entry.name, &[]).unwrap().names();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let notes =
                [("characterizer", entry.name), ("kinds", "small, large"), ("window", "50")];
            let kind = NetworkKind::Mlp;
            let model = small_random_model(kind, &names, 2, &notes, 3).to_bytes().unwrap();
            let make = || {
                let mut made = characterize::boxed(entry.name, &[]).unwrap();
                made.learn(&model).unwrap();
                made
            };
            let mut first = make();
            let mut rng = Seed(seed).rng();
            let mut request = |at| Request {
                time: Nanos(at),
                offset: Bytes(rng.below(1 << 24)),
                length: Bytes(512 << rng.below(6)),
                op: if rng.below(2) == 0 { Op::Read } else { Op::Write },
                tenant: TenantId(0),
            };
            for at in 0..before {
                first.observe(&request(at));
            }
            let mut second = make();
            restore(second.as_mut(), &saved(first.as_ref()).unwrap()).unwrap();
            for at in before..before + 200 {
                let next = request(at);
                first.observe(&next);
                second.observe(&next);
                prop_assert_eq!(first.classify(), second.classify());
            }
            prop_assert_eq!(saved(first.as_ref()), saved(second.as_ref()));
        }
    }

    #[test]
    fn damaged_snapshots_are_refused_or_read(
        seed: u64, at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
    ) {
        for entry in entries() {
            let mut policy = made(entry.name, &[], 9, seed);
            policy.reserve_ids(DISTINCT as usize);
            let mut rng = Seed(seed).rng();
            for moment in 0..200 {
                step(policy.as_mut(), entry.name, moment, &mut rng);
            }
            let mut bytes = saved(policy.as_ref()).unwrap();
            let mut other = made(entry.name, &[], 9, seed);
            prop_assert!(restore(other.as_mut(), &bytes[..cut.index(bytes.len())]).is_err());
            let at = at.index(bytes.len());
            bytes[at] ^= 0x55;
            let _ = restore(made(entry.name, &[], 9, seed).as_mut(), &bytes);
        }
    }
}

#[test]
fn a_snapshot_of_another_policy_is_refused_or_found_by_its_audit() {
    let mut lru = made("lru", &[], 8, 1);
    lru.reserve_ids(16);
    assert_eq!(lru.access(Access::read(BlockId(3))), Verdict::Admit { evicted: None });
    let bytes = saved(lru.as_ref()).unwrap();
    assert!(restore(made("arc", &[], 8, 1).as_mut(), &bytes).is_err());
}

#[test]
fn code_outside_cannot_be_saved() {
    let foreign = Foreign::new(4, &ForeignSettings::default(), Seed(1));
    let error = SnapshotError::refused("a policy of code outside");
    assert_eq!(saved(&foreign), Err(error));
}
