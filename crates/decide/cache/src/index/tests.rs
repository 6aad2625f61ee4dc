//! The index against a map, and its bound on ids under patterns of forgetting.

use super::*;
use cachewright_types::Seed;
use std::collections::{BTreeMap, HashSet, VecDeque};

fn address(tenant: u16, number: u64) -> BlockAddress {
    BlockAddress { tenant: TenantId(tenant), number }
}

#[test]
fn chains_and_free_ids_by_hand() {
    let mut index = SparseIndex::default();
    let ids: Vec<u32> = (0..3).map(|number| index.intern(address(4, number), |_| true).0).collect();
    assert_eq!((ids, index.ids()), (vec![0, 1, 2], 3));
    assert_eq!(index.intern(address(4, 1), |_| true), BlockId(1), "it has an id");
    index.release(BlockId(1));
    assert_eq!((index.get(address(4, 1)), index.address_of(BlockId(1))), (None, None));
    index.release(BlockId(1));
    assert_eq!(index.audit(), Ok(()), "a free id is released once");
    assert_eq!(index.intern(address(4, 70), |_| true), BlockId(1), "the free id comes first");
    // The policy remembers only id 2: ids 0 and 1 are taken from their addresses.
    assert_eq!(index.intern(address(4, 71), |id| id == BlockId(2)), BlockId(0));
    assert_eq!(index.get(address(4, 70)), None);
    assert_eq!(index.ids(), 3);
}

#[test]
fn a_number_has_56_bits_and_a_second_tenant_has_its_own() {
    let mut index = SparseIndex::default();
    let large = MAX_NUMBER - 1;
    let first = index.intern(address(0, large), |_| true);
    assert_eq!(index.bytes(), 11 + 5 * MIN_BUCKETS, "one tenant costs nothing");
    let second = index.intern(address(9, large), |_| true);
    assert_ne!(first, second);
    assert_eq!(index.address(first), address(0, large));
    assert_eq!(index.address(second), address(9, large));
    assert_eq!(index.get(address(3, large)), None);
    assert_eq!(index.audit(), Ok(()));
}

/// Against a map of what is tracked: random blocks come, are forgotten, are released or not.
#[test]
fn it_is_a_map() {
    let mut rng = Seed(11).derive("sparse index").rng();
    for tenants in [1, 3] {
        let mut index = SparseIndex::default();
        let mut known: BTreeMap<(u16, u64), u32> = BTreeMap::new();
        let mut tracked: HashSet<u32> = HashSet::new();
        for step in 0..60_000_u64 {
            // Phases with many blocks and with few: the table grows and shrinks.
            let (span, keep) = if step / 10_000 % 2 == 0 { (4_000, 4) } else { (60, 1) };
            let block = (rng.below(tenants) as u16, rng.below(span) * 977);
            let known_id = known.get(&block).copied();
            if rng.below(5) < keep {
                let id = index.intern(address(block.0, block.1), |id| tracked.contains(&id.0)).0;
                match known_id {
                    Some(known) => assert_eq!(id, known, "step {step}"),
                    None => assert!(!tracked.contains(&id), "step {step}: {id} is in use"),
                }
                known.insert(block, id);
                tracked.insert(id);
                assert_eq!(index.address(BlockId(id)), address(block.0, block.1));
            } else if let Some((block, id)) = known.iter().next().map(|(block, id)| (*block, *id)) {
                known.remove(&block);
                tracked.remove(&id);
                if rng.below(2) == 0 {
                    index.release(BlockId(id));
                    assert_eq!(index.get(address(block.0, block.1)), None);
                }
            }
            if step % 500 == 0 {
                assert_eq!(index.audit(), Ok(()), "step {step}");
            }
        }
        for (block, id) in &known {
            assert_eq!(index.get(address(block.0, block.1)), Some(BlockId(*id)));
        }
    }
}

/// No pattern of forgetting makes more ids than the bound: blocks that leave in the order in which
/// they came, in the reverse order, at random and in runs.
#[test]
fn ids_stay_below_sixteen_fifteenths_of_what_is_tracked() {
    const LIVE: usize = 3_000;
    for pattern in 0..5 {
        let mut rng = Seed(pattern).derive("forgetting").rng();
        let mut index = SparseIndex::default();
        let mut live: VecDeque<BlockId> = VecDeque::new();
        let mut tracked = vec![false; 4 * LIVE];
        for number in 0..60_000_u64 {
            let id = index.intern(address(1, number * 977), |id| tracked[id.index()]);
            tracked[id.index()] = true;
            live.push_back(id);
            let over = match pattern {
                3 | 4 if number % 700 != 0 => 0,
                3 | 4 => live.len().saturating_sub(LIVE - 700),
                _ => live.len().saturating_sub(LIVE),
            };
            for _ in 0..over {
                let gone = match pattern {
                    0 | 3 => live.pop_front(),
                    1 => live.remove(live.len().saturating_sub(2)),
                    _ => live.swap_remove_back(rng.below(live.len() as u64) as usize),
                };
                gone.into_iter().for_each(|id| tracked[id.index()] = false);
            }
        }
        let bound = SparseIndex::max_ids(LIVE as u64);
        assert!(index.ids() <= bound, "pattern {pattern}: {} ids, bound {bound}", index.ids());
        assert_eq!(index.audit(), Ok(()));
    }
}

#[test]
fn reserved_buckets_are_made_at_once_and_stay() {
    let mut index = SparseIndex::default();
    for number in 0..100 {
        index.intern(address(0, number), |_| true);
    }
    index.reserve(1_000);
    let before = index.buckets.len();
    assert_eq!((before, index.audit()), (buckets(1_000), Ok(())));
    let ids: Vec<BlockId> =
        (100..1_000).map(|number| index.add(address(0, number), |_| true)).collect();
    assert_eq!(index.buckets.len(), before);
    ids.into_iter().for_each(|id| index.release(id));
    assert_eq!((index.buckets.len(), index.audit()), (before, Ok(())));
    index.reserve(200);
    assert!(index.buckets.len() == buckets(200) && index.buckets.memory().2 < before);
    assert_eq!(index.audit(), Ok(()));
}

#[test]
fn reserved_memory_is_enough() {
    let mut index = SparseIndex::default();
    index.reserve(1_000);
    let before = (index.nodes.as_ptr(), index.buckets.memory());
    for number in 0..1_000 {
        index.intern(address(0, number), |_| true);
    }
    assert_eq!((index.nodes.as_ptr(), index.buckets.memory()), before, "nothing moved");
    assert_eq!(index.bytes(), 1_000 * 11 + index.buckets.len() * 5);
    assert!(index.bytes() <= 14_750 + 5 * MIN_BUCKETS);
}

/// A number may have bits where the tenant's are.
#[test]
fn tenants_have_hashes_of_their_own_for_the_same_number() {
    for number in [5, 1 << 48 | 5] {
        let hashes: HashSet<u64> = (0..999).map(|tenant| address(tenant, number).hash()).collect();
        assert_eq!(hashes.len(), 999, "block {number}");
    }
}

/// Four ids in three buckets of eight marks: 1 - exp(-4 / 3 / 8) of the look-ups, 15 %, find a mark
/// that is not theirs.
#[test]
fn five_of_six_addresses_without_an_id_have_no_mark() {
    let mut index = SparseIndex::default();
    for number in 0..3_000 {
        index.intern(address(0, number), |_| true);
    }
    let absent = (3_000..13_000).filter(|number| index.likely_id(address(0, *number)).is_some());
    let share = absent.count() as f64 / 10_000.0;
    assert!((0.10..0.20).contains(&share), "{share}");
}

/// Three buckets for four ids as ids come. As they go, a bucket is merged at each release from the
/// one on that leaves half as many ids again as buckets.
#[test]
fn buckets_follow_the_ids_one_at_a_time() {
    let mut index = SparseIndex::default();
    let mut ids = Vec::new();
    for number in 1..=200_usize {
        ids.push(index.add(address(0, number as u64), |_| true));
        assert_eq!(index.buckets.len(), MIN_BUCKETS.max((3 * number).div_ceil(4)), "{number} ids");
    }
    for named in (0..200).rev() {
        index.release(ids[named]);
        let expected = if named > 100 { 150 } else { 49 + named };
        assert_eq!(index.buckets.len(), expected, "{named} ids");
    }
    assert_eq!(index.audit(), Ok(()));
    for number in 0..49 {
        let id = index.add(address(0, number), |_| true);
        index.release(id);
    }
    assert_eq!((index.buckets.len(), index.audit()), (MIN_BUCKETS, Ok(())), "never fewer");
}

/// The first of all tenants costs nothing; once all its blocks have gone, neither does another.
#[test]
fn tenants_stand_by_id_from_the_second_one_on() {
    let mut index = SparseIndex::default();
    let first = index.add(address(3, 1), |_| true);
    index.release(first);
    let second = index.add(address(5, 1), |_| true);
    assert_eq!((index.address(second), index.tenants.len()), (address(5, 1), 0));
    let third = index.add(address(3, 1), |_| true);
    assert_eq!((index.address(second), index.address(third)), (address(5, 1), address(3, 1)));
    assert_eq!(index.tenants, [5, 3]);
    let fourth = index.add(address(5, 2), |_| true);
    assert_eq!((index.address(fourth), index.audit()), (address(5, 2), Ok(())));
}

#[test]
fn an_audit_names_the_rule_that_is_broken() {
    let mut index = SparseIndex::default();
    let ids: Vec<BlockId> = (0..4).map(|number| index.add(address(0, number), |_| true)).collect();
    index.release(ids[1]);
    assert_eq!(index.audit(), Ok(()));
    let broken = |change: fn(&mut SparseIndex)| {
        let mut index = index.clone();
        change(&mut index);
        index.audit().unwrap_err()
    };
    let renamed = broken(|index| index.nodes[2] = IdNode::new(77, index.nodes[2].next()));
    assert_eq!(renamed, "id 2 is not found under its address");
    let counted = broken(|index| index.named += 1);
    assert_eq!(counted, "3 ids are named of 4 counted, 1 are free of 4");
    let lost = broken(|index| index.first_free = END);
    assert_eq!(lost, "3 ids are named of 3 counted, 0 are free of 4");
}
