//! Blocks that are cleaned, taken out, lost and given new ids beside requests, worked by hand.
//!
//! For: `request_cache`, `memory`, `trim`. Must never know: policies' code.

use cachewright_cache::index::SparseIndex;
use cachewright_cache::{Cache, Cached, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_policy::lru::Lru;
use cachewright_policy::{Policy, Region, Registered};
use cachewright_types::declare::NoSettings;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};

const TENANTS: [TenantId; 2] = [TenantId(0), TenantId(1)];

fn lru(quotas: &Quotas) -> Cache<Lru> {
    let make = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(0));
    Cache::new(Engine::new(2, quotas, WriteMode::WriteBack, make), 12)
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

/// From six blocks to two, of which one leaves with space that is not used.
#[test]
fn a_division_in_pieces_says_whether_it_is_done() {
    let mut cache = lru(&Quotas::PerTenant(vec![6, 0]));
    each(&mut cache, Op::Write, TENANTS[0], &[1, 2, 3, 4, 5]);
    let (target, mut plan) = (Quotas::PerTenant(vec![2, 4]), Plan::default());
    let mut piece = |cache: &mut Cache<Lru>, max_blocks| {
        let reached = cache.resize_towards(&target, max_blocks, &mut plan);
        let quotas = TENANTS.map(|tenant| cache.engine().quota(tenant));
        (reached, plan.moves.len(), quotas)
    };
    assert_eq!(piece(&mut cache, 0), (false, 0, [5, 0]));
    assert_eq!(piece(&mut cache, 2), (false, 2, [3, 0]));
    assert_eq!(piece(&mut cache, 2), (true, 1, [2, 4]));
    assert_eq!(piece(&mut cache, 2), (true, 0, [2, 4]));
    assert!(!cache.resize_towards(&Quotas::Shared(6), 2, &mut plan), "other pools");
}
