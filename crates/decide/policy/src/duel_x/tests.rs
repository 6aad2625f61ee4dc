//! What the cache holds beside the policies that it follows, each run alone.
#![allow(clippy::unwrap_used)] // a failed test may panic

use super::*;
use crate::registry::boxed;
use cachewright_types::{Rng, Value};
use std::collections::BTreeSet;

const IDS: u32 = 200;

fn duel(capacity: u32, margin: f64) -> DuelX {
    let settings = DuelXSettings { margin, ..DuelXSettings::default() };
    let mut cache = DuelX::new(capacity, &settings, Seed(1));
    cache.reserve_ids(IDS as usize);
    cache
}

/// The candidates in their order, each alone.
fn alone(capacity: u32) -> Vec<Box<dyn Policy>> {
    let waits = [("by_request", Value::Bool(false)), ("write_price", Value::Float(0.0))];
    let waits = waits.map(|(name, value)| (name.to_owned(), value));
    let named = [("cacheus", &[][..]), ("access-frequency", &[]), ("rc-x", &waits)];
    let made = named.map(|(name, pairs)| {
        let mut policy = boxed(name, pairs, capacity, Seed(1)).unwrap();
        policy.reserve_ids(IDS as usize);
        policy
    });
    made.into()
}

/// A block of a loop, of a few blocks used often, or of any, in turns of 400 accesses.
fn next(rng: &mut Rng, index: u32) -> Access {
    let any = rng.below(u64::from(IDS)) as u32;
    let id = match index / 400 % 3 {
        0 => index % 60,
        1 => any * any / IDS / 3,
        _ => any,
    };
    Access { write: rng.below(3) == 0, ..Access::read(BlockId(id)) }
}

#[test]
fn as_long_as_nothing_else_leads_it_decides_as_the_first_candidate() {
    let (mut cache, mut first) = (duel(24, 10.0), alone(24).swap_remove(0));
    let mut rng = Seed(5).rng();
    for index in 0..1_000 {
        let access = next(&mut rng, index);
        assert_eq!(cache.access(access), first.access(access), "access {index}");
        assert_eq!((cache.audit(), cache.lead.leader()), (Ok(()), 0));
    }
}

/// The slow model: the candidates alone, their sums, and the set of what is held.
#[test]
fn it_holds_what_the_leader_holds_and_evicts_what_the_leader_does_not() {
    let (capacity, price) = (24, 20);
    let (mut cache, mut policies) = (duel(capacity, 0.0), alone(capacity));
    let mut sums = [0_i64; CANDIDATES];
    let (mut leader, mut leaders) = (0, BTreeSet::new());
    let mut held = BTreeSet::new();
    let mut rng = Seed(6).rng();
    for index in 0..6_000 {
        let access = next(&mut rng, index);
        if (index + 1) % (100 * capacity) == 0 {
            sums.iter_mut().for_each(|sum| *sum /= 2);
        }
        for (policy, sum) in policies.iter_mut().zip(&mut sums) {
            *sum += match policy.access(access) {
                Verdict::Hit => 1_000 - i64::from(access.write) * price,
                Verdict::Admit { .. } => -price,
                Verdict::Bypass => 0,
            };
            while policy.background_op().is_some() {}
        }
        let best = (0..CANDIDATES)
            .max_by_key(|candidate| (sums[*candidate], CANDIDATES - candidate))
            .unwrap();
        if sums[best] > sums[leader] + 16_000 {
            leader = best;
        }
        leaders.insert(leader);
        match cache.access(access) {
            Verdict::Hit => assert!(held.contains(&access.block), "access {index}"),
            Verdict::Admit { evicted } => {
                assert!(policies[leader].contains(access.block), "access {index}");
                assert_eq!(evicted.is_some(), held.len() == capacity as usize);
                if let Some(evicted) = evicted {
                    assert!(held.remove(&evicted) && !policies[leader].contains(evicted));
                }
                assert!(held.insert(access.block));
            }
            Verdict::Bypass => {
                let known = held.contains(&access.block);
                assert!(!known && !policies[leader].contains(access.block), "access {index}");
            }
        }
        assert_eq!((cache.audit(), cache.lead.leader()), (Ok(()), leader), "access {index}");
    }
    assert!(leaders.len() > 1, "the leader changes: {leaders:?}");
}

/// A loop of 60 blocks in a cache of 24: what keeps the last 24 hits nothing.
#[test]
fn a_loop_larger_than_the_cache_is_kept_in_part() {
    let mut cache = duel(24, 0.05);
    let mut hits = 0;
    for index in 0..12_000 {
        let access = Access::read(BlockId(index % 60));
        hits += u32::from(cache.access(access) == Verdict::Hit && index >= 6_000);
    }
    assert!(hits > 2_000, "{hits} of 6,000; 2,300 are possible");
}

#[test]
fn blocks_that_are_adopted_are_held_and_a_smaller_cache_evicts_its_strays() {
    let mut cache = duel(8, 0.05);
    for id in 0..12 {
        let verdict = cache.adopt(BlockId(id), id % 2 == 0);
        assert_eq!(matches!(verdict, Verdict::Admit { evicted: Some(_) }), id >= 8);
        assert!(cache.contains(BlockId(id)) && cache.audit() == Ok(()));
    }
    let mut evicted = Vec::new();
    cache.resize(3, &mut evicted);
    assert_eq!((cache.len(), evicted.len(), cache.audit()), (3, 5, Ok(())));
    assert!(evicted.iter().all(|block| !cache.leader().contains(*block)));
}
