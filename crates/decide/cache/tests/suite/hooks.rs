//! What the engine passes on to policies, asks of them and believes of what they say.
//!
//! For: `engine`, `request_cache`. Must never know: policies' code. The policy here keeps blocks
//! like LRU, does in the background what a test tells it, and notes what it is told.

use cachewright_cache::index::MIN_LOADED_IDS;
use cachewright_cache::{BlockAccess, Cache, Cached, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_policy::lru::Lru;
use cachewright_policy::{
    Access, BackgroundOp, Future, Policy, PolicyHooks, Region, RegionSizes, Registered,
    RequestInfo, ShadowSplit, Verdict,
};
use cachewright_snapshot::{Snapshot, SnapshotError, SnapshotReader, SnapshotWriter};
use cachewright_types::declare::NoSettings;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// What a policy was told.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Request(RequestInfo),
    Clock(u64),
    Divide(RegionSizes),
    Split(ShadowSplit),
    Models(Vec<String>),
    Touch(u32),
    NextVictim(u32),
}

/// LRU with regions and background operations if `HOOKS`, and with none otherwise.
#[derive(Debug)]
struct Scripted<const HOOKS: bool> {
    lru: Lru,
    ops: VecDeque<BackgroundOp>,
    calls: RefCell<Vec<Call>>,
    /// Ids that it was to make room for.
    reserved: usize,
    /// What the audit finds.
    fault: Cell<Option<&'static str>>,
    /// Blocks that it claims to hold beside those that it does.
    extra: Cell<u32>,
    /// A block that it denies to hold.
    denied: Cell<Option<BlockId>>,
}

impl<const HOOKS: bool> Scripted<HOOKS> {
    fn new(capacity: u32, ops: &[BackgroundOp]) -> Self {
        Scripted {
            lru: Lru::new(capacity, &NoSettings::default(), Seed(0)),
            ops: ops.iter().copied().collect(),
            calls: RefCell::default(),
            reserved: 0,
            fault: Cell::default(),
            extra: Cell::default(),
            denied: Cell::default(),
        }
    }

    fn note(&self, call: Call) {
        self.calls.borrow_mut().push(call);
    }

    /// The oldest block leaves.
    fn give_up_one(&mut self, evicted: &mut Vec<BlockId>) {
        let (before, capacity) = (self.lru.len(), self.lru.capacity());
        self.lru.resize(before - 1, evicted);
        self.lru.resize(capacity, evicted);
    }
}

impl<const HOOKS: bool> PolicyHooks for Scripted<HOOKS> {
    fn on_request(&mut self, request: &RequestInfo) {
        self.note(Call::Request(*request));
    }

    fn load_models(&mut self, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        self.note(Call::Models(models.iter().map(|(name, _)| name.clone()).collect()));
        if models.is_empty() { Err("found no model".to_owned()) } else { Ok(()) }
    }

    fn has_regions_or_background_ops() -> bool {
        HOOKS
    }

    fn clock(&mut self, now_ns: u64) {
        self.note(Call::Clock(now_ns));
    }

    fn divide_regions(&mut self, sizes: RegionSizes, evicted: &mut Vec<BlockId>) {
        self.note(Call::Divide(sizes));
        self.give_up_one(evicted);
    }

    fn split(&mut self, split: ShadowSplit, evicted: &mut Vec<BlockId>) {
        self.note(Call::Split(split));
        self.give_up_one(evicted);
    }

    /// Even ids lie in the tenant's own channels.
    fn region(&self, block: BlockId) -> Region {
        if block.0.is_multiple_of(2) { Region::Private } else { Region::Shared }
    }

    fn background_op(&mut self) -> Option<BackgroundOp> {
        let op = self.ops.pop_front()?;
        if let BackgroundOp::Demote(block) = op {
            assert!(self.lru.remove(block));
        }
        Some(op)
    }
}

impl<const HOOKS: bool> Snapshot for Scripted<HOOKS> {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        out.refuse("a policy of this test");
    }

    fn restore(&mut self, _: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        Err(SnapshotError::refused("a policy of this test"))
    }
}

impl<const HOOKS: bool> Policy for Scripted<HOOKS> {
    fn access(&mut self, access: Access) -> Verdict {
        self.lru.access(access)
    }

    fn contains(&self, block: BlockId) -> bool {
        self.denied.get() != Some(block) && self.lru.contains(block)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.lru.tracks(block)
    }

    fn len(&self) -> u32 {
        self.lru.len() + self.extra.get()
    }

    fn capacity(&self) -> u32 {
        self.lru.capacity()
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.lru.resize(capacity_blocks, evicted);
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.lru.remove(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        self.reserved = count;
        self.lru.reserve_ids(count);
    }

    fn touch(&self, block: BlockId) {
        self.note(Call::Touch(block.0));
    }

    fn leaves_after(&self, later: u32) -> Option<BlockId> {
        self.note(Call::NextVictim(later));
        self.lru.leaves_after(later)
    }

    fn audit(&self) -> Result<(), String> {
        self.fault.get().map_or(Ok(()), |fault| Err(fault.to_owned()))
    }
}

const TENANTS: [TenantId; 2] = [TenantId(0), TenantId(1)];

/// Two tenants of eight blocks each; the second's policy has the operations. Ids are reserved.
fn engine<const HOOKS: bool>(ops: &[BackgroundOp]) -> Engine<Scripted<HOOKS>> {
    let quotas = Quotas::PerTenant(vec![8, 8]);
    let mut engine = Engine::new(2, &quotas, WriteMode::WriteBack, |pool, capacity| {
        Scripted::new(capacity, if pool == 1 { ops } else { &[] })
    });
    (0..2).for_each(|pool| engine.reserve_ids(pool, 70));
    engine
}

fn access<const HOOKS: bool>(engine: &mut Engine<Scripted<HOOKS>>, block: u32, write: bool) {
    let (block, tenant) = (BlockId(block), TENANTS[1]);
    engine.access(BlockAccess { block, tenant, write, future: Future::None });
}

fn calls<const HOOKS: bool>(engine: &Engine<Scripted<HOOKS>>, pool: usize) -> Vec<Call> {
    engine.policy(pool).calls.take()
}

#[test]
fn what_concerns_a_policy_reaches_the_policy_of_that_pool_alone() {
    let mut engine = engine::<true>(&[]);
    access(&mut engine, 5, false);
    access(&mut engine, 6, true);
    access(&mut engine, 7, false);
    let request = RequestInfo { time_ns: 3, offset: 4096, length: 512, write: true };
    engine.on_request(TENANTS[1], &request);
    engine.clock(1, 77);
    engine.prefetch(TENANTS[1], BlockId(6));
    let sizes = RegionSizes { private_blocks: 6, shared_blocks: 2 };
    let split = ShadowSplit { share: 0.25, blocks: 3 };
    let mut left = Vec::new();
    engine.divide_regions(1, sizes, &mut |pool, block, dirty| left.push((pool, block.0, dirty)));
    engine.split(1, split, &mut |pool, block, dirty| left.push((pool, block.0, dirty)));
    assert_eq!(left, [(1, 5, false), (1, 6, true)], "the oldest left for each");
    let counts = engine.counts(TENANTS[1]);
    assert_eq!((counts.evictions, counts.writebacks, engine.dirty_blocks()), (2, 1, 0));
    assert_eq!(engine.load_models(1, &[("calm".to_owned(), Vec::new())]), Ok(()));
    assert_eq!(engine.load_models(1, &[]), Err("found no model".to_owned()));
    let expected = [
        Call::Request(request),
        Call::Clock(77),
        Call::Touch(6),
        Call::Divide(sizes),
        Call::Split(split),
        Call::Models(vec!["calm".to_owned()]),
        Call::Models(Vec::new()),
    ];
    assert_eq!((calls(&engine, 0), calls(&engine, 1)), (vec![], expected.to_vec()));
}

/// Blocks 0 and 2 are dirty. Two leave, two are cleaned, two exchange their regions.
fn four_blocks() -> ([BackgroundOp; 5], [(u32, bool); 4]) {
    let [a, b, c, d] = [0, 1, 2, 3].map(BlockId);
    let ops = [
        BackgroundOp::Demote(a),
        BackgroundOp::Demote(b),
        BackgroundOp::Clean(c),
        BackgroundOp::Clean(d),
        BackgroundOp::Swap(c, d),
    ];
    (ops, [(0, true), (1, false), (2, true), (3, false)])
}

#[test]
fn background_operations_are_counted_and_come_with_the_dirty_bit_there_was() {
    let (ops, blocks) = four_blocks();
    let mut engine = engine::<true>(&ops);
    blocks.iter().for_each(|(block, write)| access(&mut engine, *block, *write));
    let dirty = |engine: &Engine<Scripted<true>>| {
        [0, 1, 2, 3].map(|block| engine.is_dirty(TENANTS[1], BlockId(block)))
    };
    assert_eq!(dirty(&engine), [true, false, true, false]);
    assert!(!engine.is_dirty(TENANTS[0], BlockId(0)), "of the other pool");
    assert_eq!(engine.background_op(0), None);
    for (op, dirty) in ops.iter().zip([true, false, true, false, false]) {
        assert_eq!(engine.background_op(1), Some((*op, dirty)));
    }
    assert_eq!((engine.background_op(1), dirty(&engine)), (None, [false; 4]));
    let counts = engine.counts(TENANTS[1]);
    assert_eq!((counts.evictions, counts.writebacks), (2, 2));
    assert_eq!((engine.occupancy(TENANTS[1]), engine.dirty_in(1)), (2, 0));
    assert_eq!(engine.audit(), Ok(()));
}

#[test]
fn background_operations_become_moves_and_demoted_blocks_give_their_ids_back() {
    let (ops, blocks) = four_blocks();
    let mut cache = Cache::new(engine::<true>(&ops), 12);
    let mut plan = Plan::default();
    let (time, tenant, length) = (Nanos(0), TENANTS[1], Bytes(4096));
    let at = |op, number: u64| Request { time, offset: Bytes(number << 12), length, op, tenant };
    for (id, write) in blocks {
        cache.on(&at(if write { Op::Write } else { Op::Read }, 100 + u64::from(id)), &mut plan);
    }
    cache.background_ops_at(1, 99, &mut plan);
    let block = |id: u32| {
        let region = if id.is_multiple_of(2) { Region::Private } else { Region::Shared };
        Cached { pool: 1, id: BlockId(id), tenant, number: 100 + u64::from(id), region }
    };
    let swap = Move::Swap(Box::new([block(2), block(3)]));
    let [a, b, c] = [0, 1, 2].map(block);
    assert_eq!(plan.moves, [Move::WriteBack(a), Move::Drop(b), Move::Clean(c), swap]);
    assert_eq!(calls(cache.engine(), 1).last(), Some(&Call::Clock(99)));
    assert_eq!((cache.find(tenant, 100), cache.find(tenant, 103)), (None, Some(block(3))));
    cache.on(&at(Op::Read, 200), &mut plan);
    let Move::Fill(new) = plan.moves[1] else { panic!("{:?}", plan.moves) };
    assert_eq!((new.id.0, new.region, cache.ids()), (1, Region::Shared, 4), "a freed id");
    assert_eq!(cache.engine().policy(1).reserved, 4, "no memory for another one");
    assert_eq!(cache.audit(), Ok(()));
}

#[test]
fn a_cache_is_audited_with_its_engine_and_passes_models_on() {
    let mut cache = Cache::new(engine::<true>(&[]), 12);
    assert_eq!(cache.audit(), Ok(()));
    cache.engine().policy(1).fault.set(Some("a list is broken"));
    assert_eq!(cache.audit(), Err("pool 1: a list is broken".to_owned()));
    assert_eq!(cache.load_models(1, &[]), Err("found no model".to_owned()));
}

#[test]
fn a_policy_without_regions_and_operations_is_asked_for_none() {
    let mut cache = Cache::new(engine::<false>(&[BackgroundOp::Demote(BlockId(0))]), 12);
    let mut plan = Plan::default();
    let (time, tenant, length) = (Nanos(0), TENANTS[1], Bytes(4096));
    cache.on(&Request { time, offset: Bytes(0), length, op: Op::Read, tenant }, &mut plan);
    assert!(plan.moves.iter().all(|step| match step {
        Move::Fetch(block) | Move::Fill(block) | Move::Serve(block) => block.region == Region::Any,
        _ => false,
    }));
    calls(cache.engine(), 1);
    cache.background_ops_at(1, 99, &mut plan);
    assert_eq!((plan.moves.len(), cache.contains(tenant, 0)), (0, true));
    assert_eq!(calls(cache.engine(), 1), []);
}

/// Nine blocks, one of which is to come, and an id more for every fifteen.
#[test]
fn a_reserve_is_for_all_ids_that_the_pools_may_have() {
    let quotas = Quotas::PerTenant(vec![8, 44]);
    let engine = Engine::new(2, &quotas, WriteMode::WriteBack, |_, capacity| {
        Scripted::<false>::new(capacity, &[])
    });
    let mut cache = Cache::new(engine, 12);
    cache.reserve();
    assert_eq!([0, 1].map(|pool| cache.engine().policy(pool).reserved), [10, 49]);
}

/// The small pool fits in the processor's caches, so nothing is loaded ahead as a block leaves it.
/// In a large one the policy is asked for the four blocks that leave next.
#[test]
fn what_leaves_next_is_loaded_ahead_in_large_pools_only() {
    let blocks = MIN_LOADED_IDS as u64 - 1;
    let quotas = Quotas::PerTenant(vec![2, blocks as u32]);
    let engine = Engine::new(2, &quotas, WriteMode::WriteBack, |_, capacity| {
        Scripted::<false>::new(capacity, &[])
    });
    let mut cache = Cache::new(engine, 12);
    let mut plan = Plan::default();
    let mut read = |cache: &mut Cache<Scripted<false>>, tenant, number: u64, blocks: u64| {
        let (time, offset, length) = (Nanos(0), Bytes(number << 12), Bytes(blocks << 12));
        cache.on(&Request { time, offset, length, op: Op::Read, tenant }, &mut plan);
    };
    read(&mut cache, TENANTS[0], 0, 9);
    read(&mut cache, TENANTS[1], 0, blocks);
    let victims = |cache: &Cache<Scripted<false>>, pool| {
        let asked = |call: &Call| matches!(call, Call::NextVictim(_));
        calls(cache.engine(), pool).into_iter().filter(asked).collect::<Vec<_>>()
    };
    assert_eq!((victims(&cache, 0), victims(&cache, 1)), (vec![], vec![]));
    read(&mut cache, TENANTS[1], blocks, 1);
    assert_eq!(cache.ids(), 3 + MIN_LOADED_IDS);
    assert_eq!(victims(&cache, 1), [3, 2, 1, 0].map(Call::NextVictim));
}

/// Its state in its tenant's pool, if the block has an id.
#[test]
fn a_coming_request_loads_what_the_policy_knows_of_its_block() {
    let mut cache = Cache::new(engine::<false>(&[]), 12);
    let mut plan = Plan::default();
    let (time, length) = (Nanos(0), Bytes(4096));
    let read = |tenant, number: u64| Request {
        time,
        offset: Bytes(number << 12),
        length,
        op: Op::Read,
        tenant,
    };
    for number in [30, 31, 32] {
        cache.on(&read(TENANTS[1], number), &mut plan);
    }
    calls(cache.engine(), 1);
    cache.prefetch(&read(TENANTS[1], 32));
    assert_eq!(calls(cache.engine(), 1), [Call::Touch(2)], "the first of its chain");
    assert_eq!(calls(cache.engine(), 0), []);
}

#[test]
fn the_audit_finds_what_policies_and_counters_say_apart() {
    let mut engine = engine::<true>(&[]);
    access(&mut engine, 66, true);
    assert_eq!(engine.audit(), Ok(()));
    let policy = engine.policy(1);
    policy.fault.set(Some("a list is broken"));
    assert_eq!(engine.audit(), Err("pool 1: a list is broken".to_owned()));
    policy.fault.set(None);
    policy.extra.set(2);
    assert_eq!(engine.audit(), Err("3 blocks are resident, 1 are counted".to_owned()));
    policy.extra.set(0);
    policy.denied.set(Some(BlockId(66)));
    assert_eq!(engine.audit(), Err("pool 1: block 66 is dirty, not cached".to_owned()));
    policy.denied.set(None);
    assert_eq!(engine.lose(TENANTS[1], BlockId(66), LossReason::Trim), (true, true));
    assert_eq!(engine.audit(), Ok(()));
}
