//! A decider's cache, counters and quotas are those of its parts; divisions are carried out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_cache::{Cache, Engine, Move, Plan, Quotas, Shrink, WriteMode};
use cachewright_control::{CacheDecider, Control, Decider, Signals, divide, standings};
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_partition::{
    CacheDivision, Models, Partitioner, Requirement, TenantConstants, TenantView, registry,
};
use cachewright_policy::lru::Lru;
use cachewright_policy::oc_smq::{OcSmq, OcSmqSettings};
use cachewright_policy::{FutureSlice, Registered};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};

const BLOCK: u64 = 4096;

fn request(op: Op, tenant: u16, block: u64, blocks: u64) -> Request {
    let (time, tenant) = (Nanos(0), TenantId(tenant));
    Request { time, offset: Bytes(block * BLOCK), length: Bytes(blocks * BLOCK), op, tenant }
}

fn lru(quotas: &Quotas) -> Engine<Lru> {
    let make = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(0));
    Engine::new(2, quotas, WriteMode::WriteBack, make)
}

/// Divides as it is told, in turn; the last division stays.
struct Script(Vec<CacheDivision>);

cachewright_snapshot::refused!(Script: "a partitioner of this test");

impl Partitioner for Script {
    fn divide(&mut self, _: &[TenantView], _: u32) -> CacheDivision {
        if self.0.len() > 1 { self.0.remove(0) } else { self.0[0].clone() }
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        1
    }

    fn learn(&mut self, models: &Models) -> Result<(), String> {
        if models.joint.is_some() { Err("no such model".to_owned()) } else { Ok(()) }
    }
}

fn control(divisions: Vec<CacheDivision>) -> Control {
    Control::new(Box::new(Script(divisions)), vec![TenantConstants::default(); 2], 10)
}

fn per_tenant(each: [u32; 2]) -> CacheDivision {
    CacheDivision::PerTenant(each.to_vec())
}

#[test]
fn a_decider_counts_what_its_cache_holds() {
    let quotas = Quotas::PerTenant(vec![6, 4]);
    let mut decider = CacheDecider::new(Cache::new(lru(&quotas), 12), 2, None);
    let mut plan = Plan::default();
    decider.on_request(&request(Op::Write, 0, 10, 2), FutureSlice::None, &mut plan);
    assert_eq!(plan.moves.len(), 2);
    decider.on_request(&request(Op::Read, 0, 10, 1), FutureSlice::None, &mut plan);
    decider.on_request(&request(Op::Read, 1, 10, 1), FutureSlice::None, &mut plan);
    assert_eq!((decider.tenants(), decider.quotas()), (2, vec![6, 4]));
    assert_eq!((decider.held_blocks(), decider.dirty_blocks()), (3, 2));
    let hits = |decider: &CacheDecider<Lru>| [0, 1].map(|tenant| decider.hits(TenantId(tenant)));
    assert_eq!(hits(&decider), [1, 0]);
    let counts = decider.counts();
    assert_eq!([counts[0].reads, counts[0].writes, counts[1].reads], [1, 2, 1]);
    assert_eq!(decider.audit(), Ok(()));

    assert!(decider.clean(TenantId(0), 11), "it was dirty");
    assert!(!decider.clean(TenantId(0), 11) && !decider.clean(TenantId(1), 10));
    assert_eq!(decider.dirty_blocks(), 1);

    assert!(decider.bring_in(TenantId(1), 77, &mut plan));
    assert!(decider.engine().occupancy(TenantId(1)) == 2);
    assert!(!decider.bring_in(TenantId(1), 77, &mut plan), "it is there");

    decider.recount(TenantId(0), 1, true);
    assert_eq!(hits(&decider), [0, 0], "the hit counts as a miss");
    assert!(decider.control().is_none() && decider.control_mut().is_none());
    assert!(decider.tenancy().is_none());
}

#[test]
fn an_interval_ends_with_the_blocks_that_lose_their_place() {
    let quotas = Quotas::PerTenant(vec![6, 4]);
    let script = control(vec![per_tenant([2, 8])]);
    let mut decider = CacheDecider::new(Cache::new(lru(&quotas), 12), 2, Some(script));
    let mut plan = Plan::default();
    decider.on_request(&request(Op::Write, 0, 0, 5), FutureSlice::None, &mut plan);
    decider.end_interval(&Signals::default(), &mut plan);
    let gone: Vec<u64> = plan.moves.iter().map(written_back).collect();
    assert_eq!((gone, decider.quotas()), (vec![0, 1, 2], vec![2, 8]));
    assert_eq!(decider.control().unwrap().total_blocks(), 10);
    assert!(decider.control_mut().is_some());

    // Without a control loop quotas stay, and the plan is emptied nevertheless.
    let mut still = CacheDecider::new(Cache::new(lru(&quotas), 12), 2, None);
    still.on_request(&request(Op::Read, 0, 0, 5), FutureSlice::None, &mut plan);
    still.end_interval(&Signals::default(), &mut plan);
    assert_eq!((plan.moves.len(), still.quotas()), (0, vec![6, 4]));
    still.on_request(&request(Op::Read, 0, 0, 5), FutureSlice::None, &mut plan);
    still.redivide(0, &mut plan);
    assert_eq!(plan.moves.len(), 0, "nothing follows tenants here");
}

fn written_back(step: &Move) -> u64 {
    match step {
        Move::WriteBack(cached) => cached.number,
        other => unreachable!("only dirty blocks leave, not {other:?}"),
    }
}

#[test]
fn background_operations_are_those_of_the_tenants_pool() {
    // Half of the cache is kept free by demotion of blocks at low levels.
    let settings = OcSmqSettings { tick: 8, free: 0.5, ..OcSmqSettings::default() };
    let quotas = Quotas::PerTenant(vec![4, 4]);
    let make = |_, capacity| OcSmq::new(capacity, &settings, Seed(0));
    let engine = Engine::new(2, &quotas, WriteMode::WriteBack, make);
    let mut decider = CacheDecider::new(Cache::new(engine, 12), 2, None);
    let mut plan = Plan::default();
    let mut operations = [0, 0];
    for round in 0..400_u64 {
        decider.on_request(&request(Op::Read, 1, round % 4, 1), FutureSlice::None, &mut plan);
        for tenant in [0, 1] {
            plan.moves.clear();
            decider.background_ops(TenantId(tenant), round, &mut plan);
            operations[usize::from(tenant)] += plan.moves.len();
        }
    }
    assert!(operations[0] == 0 && operations[1] > 0, "{operations:?}");
}

#[test]
fn an_engine_follows_its_control_loop() {
    let quotas = Quotas::PerTenant(vec![6, 4]);
    let mut engine = lru(&quotas);
    let now = standings(&engine, 2);
    assert_eq!(now.iter().map(|one| one.quota_blocks).collect::<Vec<_>>(), [6, 4]);
    let mut control = control(vec![per_tenant([6, 4]), per_tenant([1, 9])]);
    control.first();
    divide(&mut control, &mut engine, &Signals::default(), &mut |_, _, _| {});
    assert_eq!([0, 1].map(|tenant| engine.quota(TenantId(tenant))), [1, 9]);
}

/// Hits and misses were those of 6 and 4 blocks until the second tenant needs room.
#[test]
fn a_partitioner_is_told_the_sizes_that_tenants_have_had() {
    let mut cache = Cache::new(lru(&Quotas::PerTenant(vec![6, 4])).shrinking(Shrink::AsNeeded), 12);
    let mut plan = Plan::default();
    for tenant in [0, 1] {
        cache.on(&request(Op::Read, tenant, 0, 6), &mut plan);
    }
    let mut control = control(vec![per_tenant([6, 4]), per_tenant([1, 9])]);
    control.first();
    cache.control(&mut plan, |engine, left| {
        divide(&mut control, engine, &Signals::default(), left);
    });
    let told = |cache: &Cache<Lru>| {
        standings(cache.engine(), 2).iter().map(|one| one.quota_blocks).collect::<Vec<_>>()
    };
    assert_eq!([0, 1].map(|tenant| cache.engine().quota(TenantId(tenant))), [1, 9]);
    assert_eq!(told(&cache), [6, 4]);
    cache.on(&request(Op::Read, 1, 9, 1), &mut plan);
    assert_eq!(told(&cache), [5, 5]);
}

#[test]
fn bounds_hold_for_tenants_and_for_pools() {
    let mut control = control(vec![per_tenant([6, 4])]);
    let pools = || Quotas::Pools { of: vec![0, 0], blocks: vec![10] };
    assert_eq!(control.within(pools()), pools(), "without bounds");
    control.bound(vec![3, 5]);
    assert_eq!(control.within(Quotas::PerTenant(vec![6, 4])), Quotas::PerTenant(vec![3, 5]));
    // Each tenant of a pool may fill it: the smaller bound counts.
    let bounded = Quotas::Pools { of: vec![0, 0], blocks: vec![3] };
    assert_eq!(control.within(pools()), bounded);
    let apart = Quotas::Pools { of: vec![1, 0], blocks: vec![4, 6] };
    let expected = Quotas::Pools { of: vec![1, 0], blocks: vec![5, 3] };
    assert_eq!(control.within(apart), expected, "pool 1 is the first tenant's");
    assert_eq!(control.within(Quotas::Shared(10)), Quotas::Shared(10));
    let other = control.rebound(vec![9, 2], Quotas::PerTenant(vec![6, 4]));
    assert_eq!(other, Quotas::PerTenant(vec![8, 2]));
    assert_eq!(control.next(&[Default::default(); 2], &Signals::default()), Some(other));
}

#[test]
fn a_control_loop_says_what_the_last_division_was() {
    let mut script = control(vec![per_tenant([7, 3])]);
    assert_eq!((script.tenants(), script.total_blocks()), (2, 10));
    assert!(script.required().is_empty() && script.churn().is_none());
    assert_eq!(script.first(), Quotas::PerTenant(vec![7, 3]));
    let whole = |blocks| Requirement { blocks, miss_ratio: script.required()[0].miss_ratio };
    assert_eq!(script.required(), [whole(7), whole(3)]);
    assert!(script.splits().is_empty() && script.victim_selector().is_none());
    assert!(script.churn().is_some_and(|churn| churn.turns == [0, 0]));
    assert_eq!(script.load_models(&Models::default()), Ok(()));
    let joint = Models { joint: Some(Vec::new()), ..Models::default() };
    assert_eq!(script.load_models(&joint), Err("no such model".to_owned()));

    let mut split = control(vec![per_tenant([7, 3])]).with_shadows();
    split.first();
    assert!(split.splits().is_empty(), "nothing is known of the tenants");
    // A plateau from 2 blocks to 12: a quota between them is split.
    let all = Curve::from_knots([(2, 60.0), (11, 60.0), (12, 0.0)], 100, Provenance::Exact);
    let none = || Curve::from_knots([], 0, Provenance::Exact);
    let curves = Curves { all, reads: none(), writes: none() };
    let signals = Signals { curves: vec![curves.clone(), curves], ..Signals::default() };
    split.next(&[Default::default(); 2], &signals);
    let [large, small] = split.splits() else { unreachable!("a split for each tenant") };
    assert!(large.blocks == 1 && small.blocks == 2, "half of 2, nine tenths of 2");
    assert!(large.share < small.share);

    let mut elastic = control(vec![CacheDivision::Elastic]);
    assert_eq!(elastic.first(), Quotas::PerTenant(vec![0, 0]));
    assert_eq!(elastic.redivide(&[Default::default(); 2]), None);
    let justitia = registry::boxed("justitia", &[], 2, Seed(0)).unwrap();
    let constants = vec![TenantConstants::default(); 2];
    assert!(Control::new(justitia, constants, 10).victim_selector().is_some());
}
