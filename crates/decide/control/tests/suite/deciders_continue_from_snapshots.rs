//! A decider that was restored from a snapshot decides as the one that it was taken of: counts,
//! quotas and what leaves, request by request, and its next snapshot is the same.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::{
    Cache, Engine, Plan, Quotas, SequentialCutoff, SequentialStreams, Shrink, WriteMode,
};
use cachewright_control::{
    AnswerTimes, CachePolicy, Control, Division, QuotaChange, RequestDecider, SignalNeeds,
    TenantUsage, standings,
};
use cachewright_partition::{Need as PartitionNeed, TenantConstants, TenantGoal};
use cachewright_policy::{Need, Policy};
use cachewright_snapshot::{restore, saved};
use cachewright_types::{Bytes, Nanos, Op, Request, Rng, Seed, TenantId, Value};
use proptest::prelude::*;

const SHIFT: u32 = 12;
const TENANTS: usize = 3;
const CAPACITY: u32 = 72;
const INTERVAL_NS: u64 = 60;

type Boxed = RequestDecider<Box<dyn Policy>>;

/// A decider as a server of a stack makes it.
fn made(
    policy: &str,
    partition: (&str, &[(String, Value)]),
    mode: WriteMode,
    shrink: Shrink,
) -> Boxed {
    let (name, pairs) = partition;
    let partitioner = cachewright_partition::boxed(name, pairs, TENANTS, Seed(1)).unwrap();
    let needs = cachewright_partition::entry(name).unwrap().needs;
    let of_cache =
        CachePolicy { name: policy, pairs: &[], capacity_blocks: CAPACITY, seed: Seed(2) };
    let signals = SignalNeeds::of(&*partitioner, needs, of_cache, TENANTS).unwrap();
    let goal = Some(TenantGoal { hit_ratio: Some(0.4), ..TenantGoal::default() });
    let constants = TenantConstants { goal, ..TenantConstants::default() };
    let mut control = Control::new(partitioner, vec![constants; TENANTS], CAPACITY);
    let quotas: Quotas = control.first();
    let make = |pool: usize, capacity| {
        cachewright_policy::registry::boxed(policy, &[], capacity, Seed(pool as u64)).unwrap()
    };
    let engine = Engine::new(TENANTS, &quotas, mode, make).shrinking(shrink);
    let cutoff = SequentialCutoff { bytes: 20 << 10, streams: 4 };
    let division = Division::new(control, signals, INTERVAL_NS, SHIFT);
    let streams = SequentialStreams::new(cutoff);
    RequestDecider::new(Cache::new(engine, SHIFT), Some(division), Some(streams))
}

fn any_request(time: u64, rng: &mut Rng) -> Request {
    let u = rng.unit();
    let offset = ((u * u * 90.0) as u64) << SHIFT | (512 * rng.below(8));
    let (op, length) = match rng.below(20) {
        0..10 => (Op::Read, 512 * (1 + rng.below(24))),
        10..18 => (Op::Write, 512 * (1 + rng.below(24))),
        18 => (Op::Trim, 4096 * (1 + rng.below(4))),
        _ => (Op::Flush, 0),
    };
    let tenant = TenantId(((time / 80 + rng.below(2)) % TENANTS as u64) as u16);
    Request { time: Nanos(time), offset: Bytes(offset), length: Bytes(length), op, tenant }
}

/// What a request brought about: divisions, moves, and where each tenant stands then.
type Decided = (Vec<Option<QuotaChange>>, Vec<Plan>, Vec<TenantUsage>);

fn decide(decider: &mut Boxed, request: &Request) -> Decided {
    let (mut changes, mut plans) = (Vec::new(), Vec::new());
    while decider.division_is_due(request.time) {
        let mut plan = Plan::default();
        changes.push(decider.divide(None, &mut plan));
        plans.push(plan);
    }
    let mut plan = Plan::default();
    decider.request(request, &mut plan);
    plans.push(plan);
    if matches!(request.op, Op::Read | Op::Write) {
        let mut plan = Plan::default();
        decider.background_ops(request.tenant, &mut plan);
        plans.push(plan);
        let finish_ns = request.time.0 + 3;
        let times = AnswerTimes { finish_ns, response_ns: 3, behind_ns: request.length.0 % 3 };
        let division = decider.division.as_mut();
        division.into_iter().for_each(|one| one.answered(request.tenant, request.op, times));
    }
    (changes, plans, standings(decider.cache.engine(), TENANTS))
}

fn check(
    policy: &str,
    partition: (&str, &[(String, Value)]),
    mode: WriteMode,
    shrink: Shrink,
    seed: u64,
    moment: u64,
) {
    let words = format!("{policy}, {partition:?}, {mode:?}, {shrink:?}");
    let mut rng = Seed(seed).rng();
    let mut decider = made(policy, partition, mode, shrink);
    for time in 1..=moment {
        decide(&mut decider, &any_request(time, &mut rng));
    }
    let bytes = saved(&decider).unwrap();
    let mut other = made(policy, partition, mode, shrink);
    assert_eq!(restore(&mut other, &bytes), Ok(()), "{words}");
    assert_eq!(other.cache.audit(), Ok(()), "{words}");
    assert_eq!(saved(&other).unwrap(), bytes, "{words}");
    for time in moment + 1..moment + 250 {
        let request = any_request(time, &mut rng);
        let expected = decide(&mut decider, &request);
        assert_eq!(decide(&mut other, &request), expected, "{words} at {time}");
    }
    assert_eq!(saved(&other), saved(&decider), "{words}: saved in the end");
}

/// Partitioners that need no models, no future and no drive.
fn partitions() -> Vec<&'static str> {
    let missing = [
        PartitionNeed::Model,
        PartitionNeed::JointModel,
        PartitionNeed::Future,
        PartitionNeed::Channels,
    ];
    let entries = cachewright_partition::entries().into_iter();
    let simple = entries.filter(|entry| !entry.needs.iter().any(|need| missing.contains(need)));
    simple.map(|entry| entry.name).collect()
}

/// Policies that need nothing ahead.
fn policies() -> Vec<&'static str> {
    let blind = |need: &Need| *need == Need::Requests;
    let entries = cachewright_policy::entries().into_iter();
    let entries = entries.filter(|entry| entry.needs.iter().all(blind));
    entries.map(|entry| entry.name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_partitioner_goes_on(seed: u64, moment in 0_u64..700) {
        for partition in partitions() {
            for policy in ["lru", "arc"] {
                for shrink in Shrink::ALL.iter().copied() {
                    let mode = WriteMode::WriteBack;
                    check(policy, (partition, &[]), mode, shrink, seed, moment);
                }
            }
        }
    }

    #[test]
    fn every_policy_goes_on_by_its_own_curves(seed: u64, moment in 0_u64..700) {
        let own = [("own_policy".to_owned(), Value::Bool(true))];
        for policy in policies() {
            // A policy that sees requests has no curves of its own.
            let needs = cachewright_policy::entry(policy).unwrap().needs;
            let pairs = if needs.is_empty() { &own[..] } else { &[] };
            let (mode, shrink) = (WriteMode::WriteThrough, Shrink::AtOnce);
            check(policy, ("hull", pairs), mode, shrink, seed, moment);
            check(policy, ("shared", &[]), WriteMode::WriteBack, shrink, seed, moment);
        }
    }
}

#[test]
fn another_stack_is_refused_or_found_by_an_audit() {
    let of = |partition| made("lru", (partition, &[]), WriteMode::WriteBack, Shrink::AtOnce);
    let bytes = saved(&of("hull")).unwrap();
    let mut shared = of("shared");
    let error = restore(&mut shared, &bytes).unwrap_err().to_string();
    assert_eq!(error, "found 3 pools of Pools in a snapshot, expected 1");
    let mut without = of("hull");
    without.streams = None;
    let error = restore(&mut without, &bytes).unwrap_err().to_string();
    assert_eq!(error, "found 1 streams of RequestDecider in a snapshot, expected 0");
}
