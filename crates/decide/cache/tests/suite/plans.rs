//! Hand-worked plans: which moves each write mode makes, in which order.

use cachewright_cache::{Cache, Cached, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_policy::Region;
use cachewright_policy::Registered;
use cachewright_policy::lru::Lru;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};

const TENANT: TenantId = TenantId(0);

fn cache(mode: WriteMode, blocks: u32) -> Cache<Lru> {
    let make = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(0));
    Cache::new(Engine::new(1, &Quotas::Shared(blocks), mode, make), 12)
}

fn moves(cache: &mut Cache<Lru>, op: Op, offset: u64, length: u64) -> Vec<Move> {
    let mut plan = Plan::default();
    let request = Request {
        time: Nanos(0),
        offset: Bytes(offset),
        length: Bytes(length),
        op,
        tenant: TENANT,
    };
    cache.on(&request, &mut plan);
    assert_eq!(cache.engine().audit(), Ok(()), "after every request");
    plan.moves
}

fn block(id: u32, number: u64) -> Cached {
    Cached { pool: 0, id: BlockId(id), tenant: TENANT, number, region: Region::Any }
}

fn discard(id: u32, number: u64, dirty: bool) -> Move {
    Move::Discard { cached: block(id, number), dirty }
}

#[test]
fn a_read_is_fetched_once_and_then_served() {
    let mut cache = cache(WriteMode::WriteBack, 2);
    let b = block(0, 5);
    assert_eq!(
        moves(&mut cache, Op::Read, 5 * 4096 + 512, 512),
        [Move::Fetch(b), Move::Fill(b), Move::Serve(b)]
    );
    assert_eq!(moves(&mut cache, Op::Read, 5 * 4096, 4096), [Move::Serve(b)]);
}

#[test]
fn a_dirty_block_is_written_back_before_its_place_is_taken() {
    let mut cache = cache(WriteMode::WriteBack, 1);
    assert_eq!(moves(&mut cache, Op::Write, 0, 4096), [Move::Serve(block(0, 0))]);
    let b = block(1, 9);
    assert_eq!(
        moves(&mut cache, Op::Read, 9 * 4096, 4096),
        [Move::WriteBack(block(0, 0)), Move::Fetch(b), Move::Fill(b), Move::Serve(b)]
    );
    assert_eq!(cache.engine().counts(TENANT).writebacks, 1);
}

#[test]
fn a_partial_write_miss_fetches_the_rest_of_its_block() {
    let mut cache = cache(WriteMode::WriteBack, 4);
    let (a, b) = (block(0, 0), block(1, 1));
    assert_eq!(
        moves(&mut cache, Op::Write, 2048, 6144),
        [Move::Fetch(a), Move::Fill(a), Move::Serve(a), Move::Serve(b)]
    );
    let (c, d) = (block(2, 2), block(3, 3));
    assert_eq!(
        moves(&mut cache, Op::Write, 2 * 4096, 4096 + 512),
        [Move::Serve(c), Move::Fetch(d), Move::Fill(d), Move::Serve(d)]
    );
}

#[test]
fn write_through_writes_both_and_is_never_dirty() {
    let mut cache = cache(WriteMode::WriteThrough, 4);
    let b = block(0, 0);
    assert_eq!(moves(&mut cache, Op::Write, 0, 4096), [Move::Serve(b), Move::WriteThrough(b)]);
    assert_eq!(cache.engine().dirty_blocks(), 0);
}

#[test]
fn write_around_updates_only_what_is_cached() {
    let mut cache = cache(WriteMode::WriteAround, 4);
    let bypass = Move::Bypass { tenant: TENANT, number: 0 };
    assert_eq!(moves(&mut cache, Op::Write, 0, 4096), [bypass]);
    moves(&mut cache, Op::Read, 0, 4096);
    let b = block(0, 0);
    assert_eq!(moves(&mut cache, Op::Write, 0, 4096), [Move::Serve(b), Move::WriteThrough(b)]);
}

#[test]
fn read_only_drops_what_is_written() {
    let mut cache = cache(WriteMode::ReadOnly, 4);
    moves(&mut cache, Op::Read, 0, 4096);
    let bypass = Move::Bypass { tenant: TENANT, number: 0 };
    assert_eq!(moves(&mut cache, Op::Write, 0, 4096), [discard(0, 0, false), bypass]);
    assert_eq!(cache.engine().occupancy(TENANT), 0);
}

#[test]
fn a_trim_drops_whole_blocks_even_dirty_ones_however_wide_it_is() {
    let mut cache = cache(WriteMode::WriteBack, 4);
    moves(&mut cache, Op::Write, 0, 3 * 4096);
    assert_eq!(
        moves(&mut cache, Op::Trim, 100, 2 * 4096),
        [discard(1, 1, true), Move::Trim],
        "the first and last block are only partly trimmed"
    );
    assert_eq!(
        moves(&mut cache, Op::Trim, 0, 1 << 40),
        [discard(0, 0, true), discard(2, 2, true), Move::Trim]
    );
    assert_eq!(cache.engine().dirty_blocks(), 0);
}

#[test]
fn a_shrinking_quota_writes_dirty_blocks_back() {
    let make = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(0));
    let quotas = Quotas::PerTenant(vec![2, 2]);
    let mut cache = Cache::new(Engine::new(2, &quotas, WriteMode::WriteBack, make), 12);
    moves(&mut cache, Op::Write, 0, 4096);
    moves(&mut cache, Op::Read, 4096, 4096);
    let mut plan = Plan::default();
    assert!(cache.set_quotas(&Quotas::PerTenant(vec![0, 4]), &mut plan));
    assert_eq!(plan.moves, [Move::WriteBack(block(0, 0)), Move::Drop(block(1, 1))]);
    assert!(!cache.set_quotas(&Quotas::Shared(4), &mut plan), "the kind of pool is fixed");
    assert_eq!(cache.engine().audit(), Ok(()));
}

#[test]
fn read_ahead_counts_no_access_and_leaves_cached_blocks_alone() {
    let mut cache = cache(WriteMode::WriteBack, 2);
    moves(&mut cache, Op::Read, 0, 4096);
    moves(&mut cache, Op::Write, 4096, 4096);
    let mut plan = Plan::default();
    assert!(!cache.bring_in(TENANT, 0, &mut plan), "cached, and not used by that");
    assert!(cache.bring_in(TENANT, 2, &mut plan));
    let c = block(2, 2);
    assert_eq!(plan.moves, [Move::Drop(block(0, 0)), Move::Fetch(c), Move::Fill(c)]);
    let counts = cache.engine().counts(TENANT);
    assert_eq!((counts.accesses(), counts.admissions(), counts.evictions), (2, 2, 1));
    assert_eq!(moves(&mut cache, Op::Read, 8192, 4096), [Move::Serve(c)]);
}

#[test]
fn a_cleaned_block_stays_and_is_dropped_without_another_write_back() {
    let mut cache = cache(WriteMode::WriteBack, 1);
    moves(&mut cache, Op::Write, 0, 4096);
    assert!(cache.clean(TENANT, 0));
    assert!(!cache.clean(TENANT, 0) && !cache.clean(TENANT, 7));
    let b = block(1, 9);
    assert_eq!(
        moves(&mut cache, Op::Read, 9 * 4096, 4096),
        [Move::Drop(block(0, 0)), Move::Fetch(b), Move::Fill(b), Move::Serve(b)]
    );
    assert_eq!(cache.engine().counts(TENANT).writebacks, 1);
}

#[test]
fn a_move_is_a_block_and_a_word() {
    let bytes = (std::mem::size_of::<Move>(), std::mem::size_of::<Cached>());
    assert_eq!(bytes, (32, 24), "a read miss of 32 MiB in 4 KiB blocks is 24,576 moves");
}
