//! Blocks that are cleaned, taken out, lost and given new ids beside requests, worked by hand.
//!
//! For: `request_cache`, `memory`, `trim`. Must never know: policies' code.

use cachewright_cache::index::SparseIndex;
use cachewright_cache::{Cache, Cached, Engine, Move, Plan, Quotas, Shrink, WriteMode};
use cachewright_policy::lru::Lru;
use cachewright_policy::{Policy, Region, Registered};
use cachewright_types::declare::NoSettings;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};

const TENANTS: [TenantId; 2] = [TenantId(0), TenantId(1)];

fn lru(quotas: &Quotas) -> Cache<Lru> {
    lru_shrinking(2, quotas, Shrink::AtOnce)
}

fn lru_shrinking(tenants: usize, quotas: &Quotas, shrink: Shrink) -> Cache<Lru> {
    let make = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(0));
    Cache::new(Engine::new(tenants, quotas, WriteMode::WriteBack, make).shrinking(shrink), 12)
}

/// Accesses one block after the other.
fn each(cache: &mut Cache<Lru>, op: Op, tenant: TenantId, numbers: &[u64]) {
    let (time, length) = (Nanos(0), Bytes(4096));
    for number in numbers {
        let offset = Bytes(number << 12);
        cache.on(&Request { time, offset, length, op, tenant }, &mut Plan::default());
    }
}

fn cached(pool: u16, id: u32, tenant: TenantId, number: u64) -> Cached {
    Cached { pool, id: BlockId(id), tenant, number, region: Region::Any }
}

/// Two tenants in one pool. Ids 0, 2 and 4 are the first one's, 0 and 4 of them dirty.
#[test]
fn a_tenant_that_is_removed_leaves_in_pieces_and_dirty_blocks_are_written_back() {
    let mut cache = lru(&Quotas::Shared(8));
    let [gone, stays] = TENANTS;
    for (op, tenant, number) in [
        (Op::Write, gone, 10),
        (Op::Write, stays, 10),
        (Op::Read, gone, 11),
        (Op::Read, stays, 11),
        (Op::Write, gone, 12),
    ] {
        each(&mut cache, op, tenant, &[number]);
    }
    let mut plan = Plan::default();
    let [a, b, c] = [(0, 10), (2, 11), (4, 12)].map(|(id, number)| cached(0, id, gone, number));
    assert_eq!(cache.remove_some(gone, BlockId(0), 2, &mut plan), Some(BlockId(2)));
    assert_eq!(plan.moves, [Move::WriteBack(a)]);
    assert_eq!(cache.remove_some(gone, BlockId(2), 3, &mut plan), None, "that was the last id");
    assert_eq!(plan.moves, [Move::Drop(b), Move::WriteBack(c)]);
    assert_eq!(cache.remove_some(gone, BlockId(0), u32::MAX, &mut plan), None);
    assert_eq!(plan.moves, []);
    let engine = cache.engine();
    assert_eq!(TENANTS.map(|tenant| engine.occupancy(tenant)), [0, 2]);
    assert_eq!((engine.counts(gone).writebacks, engine.dirty_blocks()), (2, 1));
    let losses = engine.losses(gone);
    assert_eq!((losses.blocks(LossReason::Removal), losses.dirty(LossReason::Removal)), (3, 0));
    assert_eq!((cache.ids(), cache.audit()), (5, Ok(())));
    each(&mut cache, Op::Read, stays, &[50, 51, 52]);
    assert_eq!(cache.ids(), 5, "the ids are free again");
}

#[test]
fn cleaning_goes_on_behind_the_last_block_that_was_cleaned() {
    let mut cache = lru(&Quotas::PerTenant(vec![8, 8]));
    each(&mut cache, Op::Read, TENANTS[1], &[20]);
    each(&mut cache, Op::Write, TENANTS[1], &[21, 22, 23]);
    let mut plan = Plan::default();
    let [a, b, c] = [1, 2, 3].map(|id| cached(1, id, TENANTS[1], 20 + u64::from(id)));
    assert_eq!(cache.clean_some(1, BlockId(0), 2, &mut plan), Some(BlockId(3)));
    assert_eq!(plan.moves, [Move::Clean(a), Move::Clean(b)]);
    assert_eq!(cache.clean_some(1, BlockId(3), 1, &mut plan), Some(BlockId(4)));
    assert_eq!(plan.moves, [Move::Clean(c)]);
    assert_eq!(cache.clean_some(1, BlockId(4), 1, &mut plan), None);
    assert_eq!((plan.moves.len(), cache.engine().counts(TENANTS[1]).writebacks), (0, 3));
    each(&mut cache, Op::Write, TENANTS[1], &[22]);
    assert!(!cache.clean(TENANTS[0], 22) && cache.clean(TENANTS[1], 22));
    assert_eq!(cache.engine().next_dirty(1, BlockId(0)), None);
}

/// The first pool shrinks from 40 blocks to 2: blocks 38 and 39 stay, under ids 0 and 1.
#[test]
fn a_pool_that_has_shrunk_gives_its_ids_back() {
    let mut cache = lru(&Quotas::PerTenant(vec![40, 40]));
    let numbers: Vec<u64> = (0..40).collect();
    each(&mut cache, Op::Write, TENANTS[0], &numbers);
    each(&mut cache, Op::Read, TENANTS[1], &numbers[..3]);
    assert_eq!(cache.compact(&mut |_, _, _| panic!("no pool has too many ids")), 0);
    assert!(cache.set_quotas(&Quotas::PerTenant(vec![2, 78]), &mut Plan::default()));
    let mut renamed = Vec::new();
    let gone = cache.compact(&mut |pool, old, new| renamed.push((pool, old.0, new.0)));
    assert_eq!((gone, cache.ids()), (38, 2 + 3));
    assert_eq!(renamed, [(0, 38, 0), (0, 39, 1)]);
    let found = [37, 38, 39].map(|number| cache.find(TENANTS[0], number));
    let [b, c] = [38, 39].map(|number| cached(0, number as u32 - 38, TENANTS[0], number));
    assert_eq!(found, [None, Some(b), Some(c)]);
    assert_eq!((cache.engine().dirty_in(0), cache.audit()), (2, Ok(())));
    assert_eq!(cache.compact(&mut |_, _, _| panic!("once is enough")), 0);
}

/// Three blocks are remembered at most: at 16 of 15 ids, and one to come, that is five.
#[test]
fn a_pool_may_have_sixteen_ids_for_fifteen_blocks_and_the_one_that_comes() {
    assert_eq!([0, 3, 14, 29].map(SparseIndex::max_ids), [2, 5, 17, 33]);
    let mut cache = lru(&Quotas::PerTenant(vec![3, 40]));
    each(&mut cache, Op::Read, TENANTS[0], &(0..90).collect::<Vec<u64>>());
    assert_eq!(cache.engine().policy(0).max_tracked(), 3);
    assert!(cache.ids() <= 5, "{} ids", cache.ids());
    assert_eq!(cache.compact(&mut |_, _, _| panic!("few enough")), 0);
}

#[test]
fn a_trim_of_fewer_blocks_than_ids_looks_at_numbers_and_a_wide_one_at_ids() {
    let mut cache = lru(&Quotas::Shared(8));
    each(&mut cache, Op::Write, TENANTS[1], &[9, 3, 6]);
    each(&mut cache, Op::Read, TENANTS[0], &[6]);
    let trim = |blocks: std::ops::Range<u64>| Request {
        time: Nanos(0),
        offset: Bytes(blocks.start << 12),
        length: Bytes((blocks.end - blocks.start) << 12),
        op: Op::Trim,
        tenant: TENANTS[1],
    };
    let mut pieces = |blocks| {
        let mut rest = cache.begin_trim(&trim(blocks));
        let mut ended = false;
        let piece = || {
            let mut plan = Plan::default();
            let goes_on = !ended;
            ended |= goes_on && cache.trim_some(&mut rest, 1, &mut plan);
            goes_on.then_some(plan.moves)
        };
        std::iter::from_fn(piece).take(9).collect::<Vec<_>>()
    };
    let discard =
        |id, number| vec![Move::Discard { cached: cached(0, id, TENANTS[1], number), dirty: true }];
    let end = vec![Move::Trim];
    // Four blocks and four ids: block by block.
    assert_eq!(pieces(2..6), [vec![], discard(1, 3), vec![], vec![], end.clone()]);
    // Five blocks: the four ids first, then the one that is found.
    assert_eq!(pieces(6..11)[4..], [discard(2, 6), discard(0, 9), end]);
    assert!(cache.contains(TENANTS[0], 6), "of another tenant");
}

/// What the engine has counted, a caller that knows better takes back; the same by address.
#[test]
fn hits_are_recounted_and_lost_blocks_forgotten() {
    let mut cache = lru(&Quotas::PerTenant(vec![4, 4]));
    each(&mut cache, Op::Write, TENANTS[1], &[5]);
    each(&mut cache, Op::Read, TENANTS[1], &[5]);
    cache.recount(TENANTS[1], 1, true);
    let counts = cache.engine().counts(TENANTS[1]);
    assert_eq!((counts.reads, counts.read_hits, counts.request_hits), (1, 0, 0));
    let lost = cache.forget(TENANTS[1], 5, LossReason::Checksum);
    assert_eq!(lost, Some((cached(1, 0, TENANTS[1], 5), true)));
    assert_eq!(cache.forget(TENANTS[1], 5, LossReason::Checksum), None);
    assert_eq!(cache.find(TENANTS[1], 5), None);
}

#[test]
fn an_adopted_block_is_as_dirty_as_its_finder_says_and_a_pool_of_no_blocks_refuses_it() {
    let mut cache = lru(&Quotas::PerTenant(vec![2, 0]));
    let mut plan = Plan::default();
    let clean = cached(0, 0, TENANTS[0], 5);
    assert_eq!(cache.adopt_new(TENANTS[0], 5, false, &mut plan), Some(clean));
    assert_eq!((plan.moves.len(), cache.engine().dirty_blocks()), (0, 0));
    let mut adopt = |tenant: usize, number, dirty| {
        let found = cache.adopt(TENANTS[tenant], number, dirty, &mut plan);
        let id = found.map(|cached| cached.id.0);
        (id, plan.moves.clone(), cache.engine().dirty_blocks(), cache.ids())
    };
    assert_eq!(adopt(0, 5, false), (Some(0), vec![], 0, 1));
    assert_eq!(adopt(0, 6, true), (Some(1), vec![], 1, 2));
    assert_eq!(adopt(0, 7, true), (Some(2), vec![Move::Drop(clean)], 2, 3));
    assert_eq!(adopt(0, 6, false), (Some(1), vec![], 2, 3), "still dirty");
    let written = cached(0, 1, TENANTS[0], 6);
    assert_eq!(adopt(0, 5, false), (Some(0), vec![Move::WriteBack(written)], 1, 3));
    assert_eq!(adopt(1, 9, true), (None, vec![], 1, 4));
    assert_eq!(adopt(1, 8, true), (None, vec![], 1, 4), "under the same id");
    assert_eq!(cache.audit(), Ok(()));
}

#[test]
fn a_request_hits_if_all_of_its_blocks_do() {
    let mut cache = lru(&Quotas::Shared(4));
    let mut plan = Plan::default();
    let mut hits = |op, blocks: std::ops::Range<u64>| {
        let (offset, length) =
            (Bytes(blocks.start << 12), Bytes((blocks.end - blocks.start) << 12));
        cache.on(&Request { time: Nanos(0), offset, length, op, tenant: TENANTS[0] }, &mut plan);
        let counts = cache.engine().counts(TENANTS[0]);
        (plan.all_hit, counts.requests, counts.request_hits)
    };
    assert_eq!(hits(Op::Read, 0..2), (false, 1, 0));
    assert_eq!(hits(Op::Write, 0..2), (true, 2, 1));
    assert_eq!(hits(Op::Read, 1..3), (false, 3, 1), "the second block is missing");
    assert_eq!(hits(Op::Read, 0..3), (true, 4, 2));
    assert_eq!(hits(Op::Trim, 0..9), (true, 4, 2), "counted are reads and writes");
}

/// The first tenant has 6 blocks and may hold 2 from now on, the second 4 in place of none. Nothing
/// leaves until the second misses; then each block that comes takes the place of one of the first.
#[test]
fn blocks_beyond_a_quota_leave_as_another_tenant_needs_the_room() {
    let mut cache = lru_shrinking(2, &Quotas::PerTenant(vec![6, 0]), Shrink::AsNeeded);
    each(&mut cache, Op::Write, TENANTS[0], &[1, 2, 3, 4, 5, 6]);
    let mut plan = Plan::default();
    assert!(cache.set_quotas(&Quotas::PerTenant(vec![2, 4]), &mut plan));
    assert_eq!(plan.moves, []);
    assert_eq!(TENANTS.map(|tenant| cache.engine().quota(tenant)), [2, 4]);
    // Its own misses take no room: they evict its own blocks, here the first one.
    each(&mut cache, Op::Read, TENANTS[0], &[7]);
    assert_eq!(TENANTS.map(|tenant| cache.engine().occupancy(tenant)), [6, 0]);
    let mut left_for = |number: u64| {
        let (offset, length) = (Bytes(number << 12), Bytes(4096));
        let (time, tenant, op) = (Nanos(0), TENANTS[1], Op::Read);
        cache.on(&Request { time, offset, length, op, tenant }, &mut plan);
        let left = |step: &Move| match step {
            Move::WriteBack(cached) | Move::Drop(cached) => Some((cached.tenant.0, cached.number)),
            _ => None,
        };
        let left: Vec<(u16, u64)> = plan.moves.iter().filter_map(left).collect();
        assert_eq!(cache.audit(), Ok(()));
        (left, TENANTS.map(|tenant| cache.engine().occupancy(tenant)))
    };
    assert_eq!(left_for(8), (vec![(0, 2)], [5, 1]), "the oldest of the first");
    assert_eq!(left_for(8), (vec![], [5, 1]), "a hit needs no room");
    assert_eq!(left_for(9), (vec![(0, 3)], [4, 2]));
    assert_eq!(left_for(10), (vec![(0, 4)], [3, 3]));
    assert_eq!(left_for(11), (vec![(0, 5)], [2, 4]));
    assert_eq!(left_for(12), (vec![(1, 8)], [2, 4]), "its own, at its quota");
}

/// Three tenants, of which the third needs room. The second has two blocks that it does not use,
/// which go first; then the first is further above its quota.
#[test]
fn room_comes_from_what_is_not_used_and_then_from_the_tenant_that_is_furthest_above_its_quota() {
    let mut cache = lru_shrinking(3, &Quotas::PerTenant(vec![6, 6, 0]), Shrink::AsNeeded);
    let tenants = [0, 1, 2].map(TenantId);
    each(&mut cache, Op::Read, tenants[0], &[1, 2, 3, 4, 5, 6]);
    each(&mut cache, Op::Read, tenants[1], &[1, 2, 3, 4]);
    assert!(cache.set_quotas(&Quotas::PerTenant(vec![2, 3, 7]), &mut Plan::default()));
    let mut held = Vec::new();
    for number in 1..9 {
        each(&mut cache, Op::Read, tenants[2], &[number]);
        held.push(tenants.map(|tenant| cache.engine().occupancy(tenant)));
    }
    let unused = [[6, 4, 1], [6, 4, 2]];
    let furthest = [[5, 4, 3], [4, 4, 4], [3, 4, 5], [2, 4, 6], [2, 3, 7], [2, 3, 7]];
    assert_eq!(held, [&unused[..], &furthest].concat());
}

/// All quotas together fall: where the cache has become smaller, what all hold beyond that leaves.
#[test]
fn a_smaller_cache_takes_effect_at_once() {
    let mut cache = lru_shrinking(2, &Quotas::PerTenant(vec![6, 6]), Shrink::AsNeeded);
    each(&mut cache, Op::Write, TENANTS[0], &[1, 2, 3, 4, 5, 6]);
    each(&mut cache, Op::Write, TENANTS[1], &[1, 2, 3, 4, 5, 6]);
    let mut plan = Plan::default();
    let quotas = Quotas::PerTenant(vec![1, 7]);
    assert!(cache.set_quotas(&quotas, &mut plan) && plan.moves.is_empty(), "blocks may be spare");
    assert!(cache.divide_otherwise(&quotas, Shrink::AsNeeded, &mut plan));
    assert_eq!(plan.moves.len(), 4, "{:?}", plan.moves);
    assert_eq!(TENANTS.map(|tenant| cache.engine().occupancy(tenant)), [2, 6]);
    assert_eq!(TENANTS.map(|tenant| cache.engine().quota(tenant)), [1, 7]);
    assert!(cache.divide_otherwise(&quotas, Shrink::AtOnce, &mut plan));
    assert_eq!(plan.moves.len(), 1);
    assert_eq!(cache.audit(), Ok(()));
}
