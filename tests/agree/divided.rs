//! Dense replay, live index and machine decide alike where quotas wander, tenants come and go,
//! blocks are trimmed, fetches and write-backs fail.
//!
//! The machine carries out the plans of a live cache as steps, some of which fail, and tells the
//! cache what that means. The other two are told the same. All three are divided by a control loop
//! of their own; the dense one is fed by names of recordings, the others by requests.

use cachewright_cache::{AccessOutcome, BlockAccess, Cache, Engine, Move, Plan, WriteMode};
use cachewright_control::{
    BlockUse, Control, RequestMeter, SignalMeter, SignalNeeds, TenantUsage, divide, standings,
};
use cachewright_curve::signal::SignalSet;
use cachewright_curve::{BlockName, CurveSet, Method, ShardsSizeSettings};
use cachewright_partition::{Need as PartitionNeed, TenantConstants, TenantGoal};
use cachewright_policy::{
    BackgroundOp, Future, FutureSlice, Need, Policy, PolicyVisitor, Registered, RequestInfo,
    Verdict, entries, visit,
};
use cachewright_steps::{Action, Damage, DeviceId, Fill, Outcome, Rules, Steps};
use cachewright_testkit::slots::SlotList;
use cachewright_types::measure::{Counts, LossReason};
use cachewright_types::{
    BlockId, BlockKey, Bytes, Nanos, Op, Request, Rng, Seed, TenantId, VolumeKeys, block_bytes,
    block_numbers,
};
use std::collections::HashMap;

const SHIFT: u32 = 12;
const TENANTS: usize = 3;
const CAPACITY: u32 = 72;
const REQUESTS: u64 = 400;
const INTERVAL: u64 = 50;

/// What happens, in order.
#[derive(Clone, Debug)]
enum Event {
    Request(Request),
    Interval,
    /// These tenants are absent from now on.
    Absent(Vec<bool>),
}

/// What a failed step means for a block of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Forget(TenantId, u64),
    TakeBack(TenantId, u64),
}

/// Requests whose weight moves from tenant to tenant, and tenants that come and go.
fn story(seed: u64) -> Vec<Event> {
    let (mut rng, mut events) = (Seed(seed).rng(), Vec::new());
    for time in 0..REQUESTS {
        if time % INTERVAL == 0 && time > 0 {
            events.push(Event::Interval);
        }
        if time % 90 == 60 {
            let absent = (0..TENANTS as u64).map(|tenant| tenant == time / 90 % 4).collect();
            events.push(Event::Absent(absent));
        }
        let favourite = time / 80 % TENANTS as u64;
        let tenant = if rng.below(3) > 0 { favourite } else { rng.below(TENANTS as u64) };
        let u = rng.unit();
        let offset = ((u * u * 90.0) as u64) << SHIFT | (512 * rng.below(8));
        let (op, length) = match rng.below(20) {
            0..10 => (Op::Read, 512 * (1 + rng.below(24))),
            10..18 => (Op::Write, 512 * (1 + rng.below(24))),
            18 => (Op::Trim, 4096 * (1 + rng.below(4))),
            _ => (Op::Flush, 0),
        };
        let (offset, length) = (Bytes(offset), Bytes(length));
        let tenant = TenantId(tenant as u16);
        events.push(Event::Request(Request { time: Nanos(time), offset, length, op, tenant }));
    }
    events
}

/// A control loop with the first quotas, and what the partitioner needs measured.
fn control(partitioner: &str) -> (Control, Option<SignalMeter>) {
    let made = cachewright_partition::boxed(partitioner, &[], TENANTS, Seed(1)).unwrap();
    let goal = Some(TenantGoal { hit_ratio: Some(0.4), ..TenantGoal::default() });
    let constants = TenantConstants { weight: 1.0, goal, ..TenantConstants::default() };
    let method = Method::ShardsSize(ShardsSizeSettings { max_blocks: 64, salts: 2 });
    let curves = Some(CurveSet::new(TENANTS, &method, Seed(2)));
    let signals = SignalSet { reuse: true, ..SignalSet::NONE };
    let needs = SignalNeeds { curves, steps: made.steps().max(1), signals };
    let meter = needs.meter(TENANTS, INTERVAL);
    (Control::new(made, vec![constants; TENANTS], CAPACITY), meter)
}

/// Makes a world's engine follow other tenants being there.
fn redivide<P: Policy>(
    control: &mut Control,
    engine: &mut Engine<P>,
    absent: &[bool],
    left: &mut dyn FnMut(usize, BlockId, bool),
) {
    control.set_absent(absent.to_vec());
    let now: Vec<TenantUsage> = standings(engine, TENANTS);
    if let Some(quotas) = control.redivide(&now) {
        assert!(engine.set_quotas(&quotas, left), "a partitioner keeps to one kind of quotas");
    }
}

/// What a world decided about one event: verdicts by block, and counters afterwards.
type Decided = (Vec<(u64, u8)>, Vec<Counts>, Vec<u32>, u64);

fn word(outcome: AccessOutcome) -> u8 {
    match outcome.verdict {
        Verdict::Hit => 0,
        Verdict::Admit { .. } => 1,
        Verdict::Bypass => 2,
    }
}

fn decided<P: Policy>(verdicts: Vec<(u64, u8)>, engine: &Engine<P>) -> Decided {
    let now = standings(engine, TENANTS);
    let counts = now.iter().map(|standing| standing.counts).collect();
    let quotas = now.iter().flat_map(|standing| [standing.quota_blocks, standing.held_blocks]);
    (verdicts, counts, quotas.collect(), engine.dirty_blocks())
}

/// The replay: an engine over ids that are dense and never given back.
struct Dense<P> {
    engine: Engine<P>,
    control: Control,
    meter: SignalMeter,
    ids: HashMap<(TenantId, u64), u32>,
    keys: Vec<BlockKey>,
}

impl<P: Policy> Dense<P> {
    fn id_of(&mut self, tenant: TenantId, number: u64) -> BlockId {
        let next = self.keys.len() as u32;
        let id = *self.ids.entry((tenant, number)).or_insert(next);
        if id == next {
            self.keys.push(VolumeKeys::new(tenant, 0).key(number));
            let count = self.keys.len();
            (0..self.engine.pools()).for_each(|pool| self.engine.reserve_ids(pool, count));
        }
        BlockId(id)
    }

    fn request(&mut self, request: &Request) -> Vec<(u64, u8)> {
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let (offset, length) = (request.offset.0, request.length.0);
        self.meter.reach(request.time.0);
        let mut verdicts = Vec::new();
        match request.op {
            Op::Flush => {}
            Op::Trim => {
                for number in offset.div_ceil(1 << SHIFT)..(offset + length) >> SHIFT {
                    let Some(id) = self.ids.get(&(tenant, number)).copied() else { continue };
                    let (keys, block) = (&self.keys, BlockId(id));
                    self.meter.trim(tenant, BlockName::Recorded { id: block, keys, index: id });
                    self.engine.discard(tenant, block);
                }
            }
            Op::Read | Op::Write => {
                self.engine.on_request(tenant, &RequestInfo::from(request));
                let mut all_hit = true;
                let covered = block_bytes(offset, length, SHIFT);
                for (number, bytes) in block_numbers(offset, length, SHIFT).zip(covered) {
                    let id = self.id_of(tenant, number);
                    let block = BlockName::Recorded { id, keys: &self.keys, index: id.0 };
                    self.meter.access(BlockUse { tenant, block, write, bytes });
                    let access = BlockAccess { block: id, tenant, write, future: Future::None };
                    let outcome = self.engine.access(access);
                    let hit = outcome.verdict == Verdict::Hit;
                    let bytes = u64::from(bytes);
                    self.engine.count_bytes(tenant, write, bytes, if hit { bytes } else { 0 });
                    all_hit &= hit;
                    verdicts.push((number, word(outcome)));
                }
                self.engine.count_request(tenant, all_hit);
                let pool = self.engine.pool_of(tenant);
                while let Some((op, _)) = self.engine.background_op(pool) {
                    assert!(!matches!(op, BackgroundOp::Swap(a, b) if a == b));
                }
            }
        }
        verdicts
    }

    fn repair(&mut self, repair: Repair) {
        match repair {
            Repair::Forget(tenant, number) => {
                let id = self.id_of(tenant, number);
                self.engine.lose(tenant, id, LossReason::Fetch);
            }
            Repair::TakeBack(tenant, number) => {
                let id = self.id_of(tenant, number);
                self.engine.adopt(tenant, id, true);
            }
        }
    }

    fn on(&mut self, event: &Event) -> Decided {
        let verdicts = match event {
            Event::Request(request) => self.request(request),
            Event::Interval => {
                let signals = self.meter.end_interval();
                divide(&mut self.control, &mut self.engine, &signals, &mut |_, _, _| {});
                Vec::new()
            }
            Event::Absent(absent) => {
                redivide(&mut self.control, &mut self.engine, absent, &mut |_, _, _| {});
                Vec::new()
            }
        };
        decided(verdicts, &self.engine)
    }
}

/// A live cache with its control loop.
struct Live<P> {
    cache: Cache<P>,
    control: Control,
    meter: RequestMeter,
    /// The plans of the last event.
    plans: Vec<Plan>,
}

impl<P: Policy> Live<P> {
    fn on(&mut self, event: &Event) -> Decided {
        let (mut verdicts, mut plan) = (Vec::new(), Plan::default());
        self.plans.clear();
        match event {
            Event::Request(request) => {
                self.meter.request(request, request.time.0);
                self.cache.on_each(
                    request,
                    FutureSlice::None,
                    &mut plan,
                    &mut |number, outcome| {
                        verdicts.push((number, word(outcome)));
                    },
                );
                self.plans.push(plan.clone());
                if matches!(request.op, Op::Read | Op::Write) {
                    let pool = self.cache.engine().pool_of(request.tenant);
                    self.cache.background_ops(pool, &mut plan);
                    self.plans.push(plan);
                }
            }
            Event::Interval => {
                let (signals, control) = (self.meter.end_interval(), &mut self.control);
                self.cache.control(&mut plan, |engine, left| {
                    divide(control, engine, &signals, left);
                });
                self.plans.push(plan);
            }
            Event::Absent(absent) => {
                let control = &mut self.control;
                self.cache.control(&mut plan, |engine, left| {
                    redivide(control, engine, absent, left);
                });
                self.plans.push(plan);
            }
        }
        decided(verdicts, self.cache.engine())
    }

    fn repair(&mut self, repair: Repair, plan: &mut Plan) -> Option<cachewright_cache::Cached> {
        plan.moves.clear();
        match repair {
            Repair::Forget(tenant, number) => {
                let lost = self.cache.forget(tenant, number, LossReason::Fetch);
                plan.moves.extend(lost.map(|(cached, dirty)| Move::Discard { cached, dirty }));
                None
            }
            Repair::TakeBack(tenant, number) => self.cache.adopt(tenant, number, true, plan),
        }
    }
}

/// A live cache whose plans are carried out, where some steps fail.
struct FailingMachine<P> {
    live: Live<P>,
    steps: Steps<SlotList, ()>,
    rng: Rng,
    tag: u64,
    failed: u64,
}

impl<P: Policy> FailingMachine<P> {
    fn on(&mut self, event: &Event) -> (Decided, Vec<Repair>) {
        let decided = self.live.on(event);
        let mut plans = std::mem::take(&mut self.live.plans).into_iter();
        if let Event::Request(request) = event {
            self.tag += 1;
            self.steps.request(self.tag, request, &plans.next().unwrap(), ());
        }
        let tenant = if let Event::Request(request) = event { request.tenant } else { TenantId(0) };
        plans.for_each(|plan| self.steps.background(tenant, &plan));
        let mut repairs = Vec::new();
        self.run(&mut repairs);
        (decided, repairs)
    }

    /// Carries out all steps, and repairs what fails, until nothing is under way.
    fn run(&mut self, repairs: &mut Vec<Repair>) {
        let mut plan = Plan::default();
        loop {
            while let Some(ready) = self.steps.next_step() {
                let fails = match ready.action {
                    Action::Device { device, op: Op::Read | Op::Write, .. } => {
                        device != DeviceId::CACHE && self.rng.below(12) == 0
                    }
                    Action::Placement(never) => match never {},
                    _ => false,
                };
                self.failed += u64::from(fails);
                let outcome = if fails { Outcome::Failed } else { Outcome::Done };
                self.steps.finish(ready.id, outcome);
            }
            let failures = self.steps.take_failures();
            if failures.is_empty() {
                break;
            }
            for failure in failures {
                let tenant = failure.tenant;
                match failure.damage {
                    Damage::None => {}
                    Damage::Lost => {
                        for number in failure.blocks.iter().map(|block| block.number.unwrap()) {
                            let repair = Repair::Forget(tenant, number);
                            if self.live.cache.contains(tenant, number) {
                                self.live.repair(repair, &mut plan);
                                self.steps.background(tenant, &plan);
                                repairs.push(repair);
                            }
                        }
                    }
                    Damage::StillDirty => {
                        for number in failure.blocks.iter().map(|block| block.number.unwrap()) {
                            let repair = Repair::TakeBack(tenant, number);
                            if self.live.cache.contains(tenant, number) {
                                self.live.repair(repair, &mut plan);
                                repairs.push(repair);
                            }
                        }
                    }
                    Damage::Held => self.steps.release(failure),
                }
            }
        }
        self.steps.drain_answers().for_each(drop);
    }
}

struct Agree<'a>(&'a str, WriteMode, &'a [Event]);

impl PolicyVisitor for Agree<'_> {
    type Output = u64;

    fn visit<P: Registered>(self, settings: P::Settings) -> u64 {
        let Agree(partitioner, mode, events) = self;
        let make = |_, capacity| P::new(capacity, &settings, Seed(9));
        let world = || {
            let (mut control, meter) = control(partitioner);
            let engine = Engine::new(TENANTS, &control.first(), mode, make);
            (control, engine, meter.unwrap())
        };
        let live = || {
            let (control, engine, meter) = world();
            let meter = RequestMeter::new(meter, SHIFT);
            Live { cache: Cache::new(engine, SHIFT), control, meter, plans: Vec::new() }
        };
        let rules = Rules { fill: Fill::AfterAnswer, decision: None, block_shift: SHIFT };
        let (control, engine, meter) = world();
        let mut dense = Dense { engine, control, meter, ids: HashMap::new(), keys: Vec::new() };
        let steps = Steps::new(SlotList::new(2 * CAPACITY), &[1, 2, 3], rules);
        let (mut lived, rng) = (live(), Seed(4).rng());
        let mut machine = FailingMachine { live: live(), steps, rng, tag: 0, failed: 0 };
        let (name, mut plan) = (P::ENTRY.name, Plan::default());
        for (number, event) in events.iter().enumerate() {
            let (machined, repairs) = machine.on(event);
            let (lived_now, dense_now) = (lived.on(event), dense.on(event));
            assert_eq!(machined, lived_now, "{name}, {partitioner}, {mode:?}, {number}");
            assert_eq!(dense_now, lived_now, "{name}, {partitioner}, {mode:?}, {number}");
            for repair in repairs {
                lived.repair(repair, &mut plan);
                dense.repair(repair);
            }
        }
        for engine in [&dense.engine, lived.cache.engine(), machine.live.cache.engine()] {
            engine.audit().unwrap();
        }
        for tenant in (0..TENANTS as u16).map(TenantId) {
            assert_eq!(dense.engine.losses(tenant), lived.cache.engine().losses(tenant), "{name}");
        }
        let engine = machine.live.cache.engine();
        let held: u64 = (0..engine.pools()).map(|pool| u64::from(engine.policy(pool).len())).sum();
        machine.steps.audit(held, true).unwrap();
        machine.failed
    }
}

/// Partitioners that any run can feed, without response times, models or a drive.
fn partitioners() -> Vec<&'static str> {
    let needs = [
        PartitionNeed::Model,
        PartitionNeed::JointModel,
        PartitionNeed::Future,
        PartitionNeed::Channels,
        PartitionNeed::Prices,
    ];
    let entries = cachewright_partition::registry::entries().into_iter();
    let simple = entries.filter(|entry| !needs.iter().any(|need| entry.needs.contains(need)));
    simple.map(|entry| entry.name).collect()
}

#[test]
fn replay_live_cache_and_failing_machine_decide_alike_however_they_are_divided() {
    let events = story(5);
    let foresees = [Need::Future, Need::Benefit, Need::Model, Need::Code];
    let blind = entries()
        .into_iter()
        .filter(|entry| !entry.needs.iter().any(|need| foresees.contains(need)));
    let policies: Vec<&str> = blind.map(|entry| entry.name).collect();
    let partitioners = partitioners();
    assert!(policies.len() > 10 && partitioners.len() > 4, "{policies:?}, {partitioners:?}");
    let mut failed = 0;
    for policy in policies {
        for partitioner in &partitioners {
            for mode in WriteMode::ALL.iter().copied() {
                failed += visit(policy, &[], Agree(partitioner, mode, &events)).unwrap();
            }
        }
    }
    assert!(failed > 10_000, "{failed} steps failed");
}
