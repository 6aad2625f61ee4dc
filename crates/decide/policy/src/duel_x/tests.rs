use super::*;
use crate::miss_budget::tests::Turns;
use crate::registry::boxed;
use cachewright_types::{Rng, Value};
use std::collections::BTreeSet;

const IDS: u32 = 200;

fn duel(capacity: u32, margin: f64) -> DuelX {
    // Nothing is asked of it beside `lru`, whose misses are far fewer than an allowance of all.
    let settings = DuelXSettings { margin, allowance: 1.0, ..DuelXSettings::default() };
    let mut cache = DuelX::new(capacity, &settings, Seed(1));
    cache.reserve_ids(IDS as usize);
    cache
}

/// The candidates in their order, each alone.
fn alone(capacity: u32) -> Vec<Box<dyn Policy>> {
    let waits = [("by_request", Value::Bool(false)), ("write_price", Value::Float(0.0))];
    let waits = waits.map(|(name, value)| (name.to_owned(), value));
    let named = [("cacheus", &[][..]), ("access-frequency", &[]), ("rc-x", &waits), ("lru", &[])];
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

/// The bound at the top of the file, whatever leads.
#[test]
fn misses_beside_lru_are_bounded_at_any_time() {
    let capacity = 200;
    let hasty =
        DuelXSettings { margin: 0.0, halve_every: 2.0, allowance: 0.0, ..Default::default() };
    for (seed, settings) in
        (0..12).flat_map(|seed| [DuelXSettings::default(), hasty.clone()].map(|each| (seed, each)))
    {
        let mut cache = DuelX::new(capacity, &settings, Seed(seed));
        let mut lru: Lru = made(capacity, Seed(seed));
        cache.reserve_ids(60 * capacity as usize);
        lru.reserve_ids(60 * capacity as usize);
        let mut turns = Turns::new(seed, capacity);
        let mut misses = [0.0; 2];
        for index in 0..60_000 {
            let access = turns.next();
            misses[0] += f64::from(cache.access(access) != Verdict::Hit);
            misses[1] += f64::from(lru.access(access) != Verdict::Hit);
            let price = f64::from(capacity) * (1.5 + 1.0 / 64.0) + 1.0;
            let bound = misses[1] * (1.0 + settings.allowance) + price;
            assert!(misses[0] <= bound, "seed {seed}, access {index}: {misses:?}");
        }
        assert_eq!(cache.audit(), Ok(()));
    }
}

/// Sets of half a cache become hot one after another, where what counts misses several times as
/// often as `lru`. `access-frequency` leads throughout: it has been good for long enough.
#[test]
fn a_leader_that_misses_more_often_than_lru_is_followed_no_longer() {
    let settings = DuelXSettings { halve_every: 1e9, ..DuelXSettings::default() };
    let mut cache = DuelX::new(200, &settings, Seed(1));
    cache.lead.sums[1] = i64::MAX / 2;
    let (mut lru, mut counts): (Lru, AccessFrequency) = (made(200, Seed(1)), made(200, Seed(1)));
    cache.reserve_ids(800);
    lru.reserve_ids(800);
    counts.reserve_ids(800);
    let mut rng = Seed(3).rng();
    let mut misses = [0; 3];
    let mut changes = 0;
    for index in 0..80_000 {
        let id = index / 400 % 8 * 100 + rng.below(100) as u32;
        let access = Access::read(BlockId(id));
        let guarded_before = cache.guarded;
        misses[0] += u32::from(cache.access(access) != Verdict::Hit);
        misses[1] += u32::from(lru.access(access) != Verdict::Hit);
        misses[2] += u32::from(counts.access(access) != Verdict::Hit);
        changes += u32::from(cache.guarded != guarded_before);
    }
    let [cache, lru, counts] = misses.map(f64::from);
    assert!(counts > 1.2 * lru && cache <= 1.02 * lru + 304.0, "{misses:?}");
    assert!(changes > 1, "the guard begins and ends: {changes}");
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
    assert!(evicted.iter().all(|block| !cache.directories[0].contains(*block)));
}

const ADMIT: Verdict = Verdict::Admit { evicted: None };

#[test]
fn another_leads_when_it_is_ahead_by_more_than_the_margin() {
    let mut lead: Lead<2> = Lead::new(0.5);
    lead.set_margin(20.0);
    for _ in 0..20 {
        lead.add(0, Verdict::Bypass, false);
        lead.add(1, Verdict::Hit, false);
        lead.follow();
        assert_eq!(lead.leader(), 0);
    }
    lead.add(1, ADMIT, false);
    lead.add(1, Verdict::Hit, true);
    lead.follow();
    assert_eq!(lead.leader(), 0, "a block admitted and a write hit are two writes: 20 hits in all");
    lead.add(1, Verdict::Hit, false);
    lead.follow();
    assert_eq!((lead.leader(), lead.sums), (1, [0, 21_000]));
}

#[test]
fn the_margin_has_a_least_and_old_hits_count_less() {
    let mut lead: Lead<3> = Lead::new(0.0);
    lead.set_margin(0.01);
    (0..16).for_each(|_| lead.add(2, Verdict::Hit, false));
    lead.follow();
    assert_eq!(lead.leader(), 0);
    lead.halve();
    (0..8).for_each(|_| lead.add(2, Verdict::Hit, false));
    lead.follow();
    assert_eq!(lead.leader(), 0);
    lead.add(2, Verdict::Hit, false);
    lead.follow();
    assert_eq!(lead.leader(), 2);
    // The leader keeps its place while others are level.
    (0..33).for_each(|_| lead.add(1, Verdict::Hit, false));
    lead.follow();
    assert_eq!(lead.leader(), 2);
    lead.add(1, Verdict::Hit, false);
    lead.follow();
    assert_eq!(lead.leader(), 1);
}

fn holding(ids: &[u32]) -> Contents {
    let mut contents = Contents::default();
    contents.reserve_ids(200, 100);
    ids.iter().for_each(|id| contents.insert(BlockId(*id)));
    contents
}

#[test]
fn strays_leave_in_the_order_in_which_they_left_the_directory() {
    let mut contents = holding(&[1, 2, 3, 4]);
    [3, 9, 1, 2].iter().for_each(|id| contents.has_left(BlockId(*id)));
    // 9 was never held, and 1 has come back to the directory.
    let directed = |block: BlockId| block.0 == 1 || block.0 == 4;
    assert_eq!(contents.audit(4, directed), Ok(()));
    assert_eq!(contents.evict(directed), Some(BlockId(3)));
    assert_eq!(contents.evict(directed), Some(BlockId(2)));
    assert_eq!((contents.resident(), contents.contains(BlockId(3))), (2, false));
}

#[test]
fn an_id_that_becomes_another_blocks_has_no_place_in_the_queue() {
    let mut contents = holding(&[1, 2]);
    contents.has_left(BlockId(1));
    contents.has_left(BlockId(2));
    assert!(contents.remove(BlockId(1)));
    contents.insert(BlockId(1));
    assert_eq!(contents.evict(|block| block.0 == 1), Some(BlockId(2)));
    contents.has_left(BlockId(1));
    assert_eq!(
        (contents.audit(2, |_| false), contents.evict(|_| false)),
        (Ok(()), Some(BlockId(1)))
    );
}

#[test]
fn after_a_change_of_leader_strays_are_found_by_checks() {
    let ids: Vec<u32> = (0..100).collect();
    let mut contents = holding(&ids);
    contents.has_left(BlockId(7));
    contents.check_anew();
    let directed = |block: BlockId| block.0 != 7 && block.0 != 70;
    assert_eq!(contents.audit(100, directed), Ok(()));
    assert_eq!(contents.evict(directed), Some(BlockId(70)), "checked from the end");
    // 7 is beyond the blocks that one eviction checks: another one leaves in its place.
    contents.insert(BlockId(100));
    contents.check_anew();
    let other = contents.evict(directed);
    assert_eq!(other, Some(BlockId(36)));
    (0..9).for_each(|_| contents.check_some(directed));
    assert_eq!(contents.evict(directed), Some(BlockId(7)));
    assert_eq!(contents.audit(100, directed), Ok(()));
}

#[test]
fn a_queue_of_blocks_that_came_back_is_made_anew() {
    let mut contents = holding(&[1, 2]);
    for _ in 0..1_000 {
        contents.has_left(BlockId(1));
    }
    assert!(contents.strays.len() <= 2 * 2 + MAX_CHECKED as usize);
    assert_eq!(contents.evict(|block| block.0 != 1), Some(BlockId(1)));
    assert_eq!(contents.evict(|_| true), Some(BlockId(2)), "whatever is there, if it must");
    assert_eq!(contents.evict(|_| true), None);
}
