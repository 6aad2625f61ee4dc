//! Tenants arrive and leave for an hour of simulated time on channels given on demand, in either
//! loop, and no write is lost. The model beside knows nothing of caches: it hears of every write
//! as it is decided, of every write to a backing device as it is planned and as it is sent, and
//! asks of each block of a tenant that leaves whether its last version was on its way by then, and
//! arrived.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use cachewright_cache::{Cache, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_curve::{Curve, Provenance};
use cachewright_device::{AnyDevice, Command, Completion, Device, model};
use cachewright_partition::TenantConstants;
use cachewright_partition::layout::{ChannelSizes, LayoutTenant};
use cachewright_policy::{FutureSlice, PolicyVisitor, Registered, visit};
use cachewright_system::event_loop::{Loop, Replay, Times};
use cachewright_system::machines::tenancy::Change;
use cachewright_system::machines::{
    CacheDecider, ChannelTenancy, Decider, Layout, Machine, MachineParts, MachineSettings,
    ReplayCache, ReplayDecider, Slots, blocks_of, run_machine,
};
use cachewright_system::{Control, LaneResult, SignalNeeds, Signals};
use cachewright_testkit::machines::{SHIFT, Stack, load_from};
use cachewright_types::measure::Counts;
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Blocks that each tenant makes use of; a channel holds 768.
const NEEDS: [u32; 8] = [1500, 900, 2400, 2000, 700, 250, 2600, 500];
/// Blocks that are divided: as many as any tenant could need.
const TOTAL: u32 = 6000;
const SECOND: u64 = 1_000_000_000;
const SPARE: u32 = 16;
/// How long each tenant stays.
const STAY_NS: u64 = 900 * SECOND;
/// Of each tenant.
const REQUESTS: u64 = 4000;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// When it was written last, in decisions.
    written: u64,
    /// When a write of it to its device was planned last, and how many were.
    planned: (u64, u64),
    /// Writes of it sent to its device.
    sent: u64,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    blocks: HashMap<(usize, u64), Known>,
    gone: Vec<bool>,
}

impl Model {
    fn plan(&mut self, plan: &Plan, write: Option<TenantId>) {
        for step in &plan.moves {
            self.now += 1;
            let now = self.now;
            let mut to_device = |tenant: TenantId, number: u64| {
                let known = self.blocks.entry((tenant.index(), number)).or_default();
                known.planned = (now, known.planned.1 + 1);
            };
            match step {
                Move::WriteBack(cached) | Move::Clean(cached) => {
                    to_device(cached.tenant, cached.number);
                }
                Move::Bypass { tenant, number } if write.is_some() => {
                    to_device(*tenant, *number);
                    self.written(*tenant, *number);
                }
                Move::Serve(cached) if write.is_some() => {
                    self.written(cached.tenant, cached.number);
                }
                _ => {}
            }
        }
    }

    fn written(&mut self, tenant: TenantId, number: u64) {
        assert!(!self.gone[tenant.index()], "{tenant:?} has left");
        self.blocks.entry((tenant.index(), number)).or_default().written = self.now;
    }

    /// Everything that a tenant has written is on its way to its device.
    fn leaves(&mut self, tenant: usize) {
        self.gone[tenant] = true;
        for ((_, number), known) in self.blocks.iter().filter(|(key, _)| key.0 == tenant) {
            assert!(known.planned.0 >= known.written, "block {number} of {tenant}: {known:?}");
        }
    }
}

/// A backing device that tells what is written to it.
struct Spy {
    inner: AnyDevice,
    tenant: usize,
    model: Arc<Mutex<Model>>,
}

impl Device for Spy {
    fn capacity(&self) -> Bytes {
        self.inner.capacity()
    }
    fn submit(&mut self, now: Nanos, command: Command) {
        if command.op == Op::Write {
            let first = command.offset.0 >> SHIFT;
            let mut model = self.model.lock().unwrap();
            for number in first..(command.offset.0 + command.length.0).div_ceil(1 << SHIFT) {
                model.blocks.entry((self.tenant, number)).or_default().sent += 1;
            }
        }
        self.inner.submit(now, command);
    }
    fn next_due(&self) -> Option<Nanos> {
        self.inner.next_due()
    }
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.inner.advance(now, done);
    }
    fn outstanding(&self) -> usize {
        self.inner.outstanding()
    }
    fn audit(&self) -> Result<(), String> {
        self.inner.audit()
    }
}

/// A decider that tells what it decides.
struct Told {
    inner: Box<dyn ReplayDecider>,
    model: Arc<Mutex<Model>>,
}

impl Told {
    fn tell(&self, plan: &Plan) {
        self.model.lock().unwrap().plan(plan, None);
    }

    fn tell_of(&self, request: &Request, plan: &Plan) {
        let write = (request.op == Op::Write).then_some(request.tenant);
        self.model.lock().unwrap().plan(plan, write);
    }
}

impl Decider for Told {
    fn on_request(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.inner.on_request(request, futures, plan);
        self.tell_of(request, plan);
    }

    fn on_cut_off(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.inner.on_cut_off(request, futures, plan);
        self.tell_of(request, plan);
    }
    fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool {
        self.inner.bring_in(tenant, number, plan)
    }
    fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        self.inner.clean(tenant, number)
    }
    fn is_dirty(&self, tenant: TenantId, number: u64) -> bool {
        self.inner.is_dirty(tenant, number)
    }
    fn background_ops(&mut self, tenant: TenantId, now_ns: u64, plan: &mut Plan) {
        self.inner.background_ops(tenant, now_ns, plan);
        self.tell(plan);
    }
    fn end_interval(&mut self, signals: &Signals, plan: &mut Plan) {
        self.inner.end_interval(signals, plan);
        self.tell(plan);
    }
    fn tenancy(&mut self) -> Option<&mut ChannelTenancy> {
        self.inner.tenancy()
    }
    fn redivide(&mut self, now_ns: u64, plan: &mut Plan) {
        self.inner.redivide(now_ns, plan);
        self.tell(plan);
        assert_eq!(self.inner.audit(), Ok(()));
        let (quotas, absent) = (self.inner.quotas(), self.inner.tenancy().unwrap().absent());
        let mut model = self.model.lock().unwrap();
        for tenant in (0..absent.len()).filter(|tenant| absent[*tenant]) {
            assert_eq!(quotas[tenant], 0, "who is not there has no cache");
            let been = model.blocks.keys().any(|key| key.0 == tenant);
            if been && !model.gone[tenant] {
                model.leaves(tenant);
            }
        }
    }
    fn quotas(&self) -> Vec<u32> {
        self.inner.quotas()
    }
    fn counts(&self) -> Vec<Counts> {
        self.inner.counts()
    }
    fn hits(&self, tenant: TenantId) -> u64 {
        self.inner.hits(tenant)
    }
    fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        self.inner.recount(tenant, blocks, all_hit);
    }
    fn dirty_blocks(&self) -> u64 {
        self.inner.dirty_blocks()
    }
    fn held_blocks(&self) -> u64 {
        self.inner.held_blocks()
    }
    fn audit(&self) -> Result<(), String> {
        self.inner.audit()
    }
}

impl ReplayDecider for Told {
    fn end_window(&mut self, window: u32, time_ns: u64) {
        self.inner.end_window(window, time_ns);
    }
    fn finish(&mut self) -> LaneResult {
        self.inner.finish()
    }
}

struct Make {
    quotas: Quotas,
    control: Control,
    tenancy: ChannelTenancy,
}

impl PolicyVisitor for Make {
    type Output = Box<dyn ReplayDecider>;
    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output {
        let make = |pool: usize, capacity| P::new(capacity, &settings, Seed(pool as u64));
        let engine = Engine::new(NEEDS.len(), &self.quotas, WriteMode::WriteBack, make);
        let decider = CacheDecider::new(Cache::new(engine, SHIFT), NEEDS.len(), Some(self.control));
        Box::new(ReplayCache::new(decider.with_tenancy(Some(self.tenancy))))
    }
}

/// Stays that begin 380 s after each other.
fn stay(tenant: usize) -> (u64, u64) {
    let start = tenant as u64 * 380 * SECOND;
    (start, start + STAY_NS)
}

/// Six channels of 3 MiB.
fn cache_device() -> AnyDevice {
    let text = |key: &str, value: &str| (key.to_owned(), Value::Text(value.to_owned()));
    let int = |key: &str, value: i64| (key.to_owned(), Value::Int(value));
    let pairs = vec![
        int("channels", 6),
        int("chips", 1),
        int("planes", 1),
        int("blocks", 64),
        text("block", "64KiB"),
        text("page", "4KiB"),
        ("over_provisioning".to_owned(), Value::Float(0.25)),
    ];
    model("open-channel-16").unwrap().build(&pairs).unwrap()
}

/// A control loop that divides by straight lines which end at [`NEEDS`].
fn control() -> Control {
    let curve = |need: &u32| Arc::new(Curve::from_knots([(*need, 100.0)], 1000, Provenance::Exact));
    let tenant =
        |need| TenantConstants { head_curve: Some(curve(need)), ..TenantConstants::default() };
    let pairs = ["ahead", "by_ratio"].map(|key| (key.to_owned(), Value::Bool(true)));
    let partitioner = cachewright_partition::boxed("hull", &pairs, NEEDS.len(), Seed(1)).unwrap();
    Control::new(partitioner, NEEDS.iter().map(tenant).collect(), TOTAL)
}

/// Requests of each tenant over its stay, half of them writes, skewed.
fn texts() -> Vec<String> {
    let mut rng = Seed(5).rng();
    let mut text = |_| {
        let mut line = |at: u64| {
            let u = rng.unit();
            let block = (u * u * 2500.0) as u64;
            let op = if rng.below(2) == 0 { 'W' } else { 'R' };
            let time_us = at * STAY_NS / REQUESTS / 1000;
            format!("1,{op},{},{},{time_us}\n", block * 4096, 4096 * (1 + rng.below(2)))
        };
        (0..REQUESTS).map(&mut line).collect::<String>()
    };
    (0..NEEDS.len()).map(&mut text).collect()
}

/// Two requests at a time, again and again until a tenant stops.
fn closed() -> Loop {
    Loop::Closed {
        queue_depth: vec![2; NEEDS.len()],
        think_ns: vec![150_000_000; NEEDS.len()],
        recorded: vec![false; NEEDS.len()],
        start_ns: (0..NEEDS.len()).map(|at| stay(at).0).collect(),
        stop_ns: (0..NEEDS.len()).map(|at| stay(at).1).collect(),
        noise: vec![None; NEEDS.len()],
        repeat: vec![true; NEEDS.len()],
    }
}

fn hour(policy: &str, lend: bool, pace: Loop) -> (Times, Model) {
    let starts: Vec<u64> = (0..NEEDS.len()).map(|at| stay(at).0).collect();
    let loaded = load_from(&texts(), &starts, &Stack::plain(1), Layout::AsIs);

    let mut control = control();
    let stays: Vec<(u64, bool)> = (0..NEEDS.len()).map(|at| (stay(at).0, true)).collect();
    control.set_absent(stays.iter().map(|one| one.0 > 0).collect());
    let quotas = control.first();
    let cache = cache_device();
    let exposed = cache.exposed();
    let blocks = exposed.iter().map(|range| blocks_of(range, SHIFT).len() as u32).collect();
    let channels = ChannelSizes { blocks, total_blocks: TOTAL };
    let lend = [("lend".to_owned(), Value::Bool(lend))];
    let mut layout = cachewright_partition::layout::boxed("on-demand", &lend).unwrap();
    let view = |(one, stay): (&cachewright_partition::Requirement, &(u64, bool))| LayoutTenant {
        need_blocks: one.blocks + SPARE,
        miss_ratio: one.miss_ratio,
        absent: stay.0 > 0,
        ..LayoutTenant::default()
    };
    let views: Vec<LayoutTenant> = control.required().iter().zip(&stays).map(view).collect();
    let map = layout.lay_out(&views, &channels).unwrap();
    let limits = (0..NEEDS.len()).map(|at| map.limit_blocks(at).saturating_sub(SPARE)).collect();
    let quotas = control.rebound(limits, quotas);
    let slots = Slots::laid_out(&map, &exposed, SHIFT, SPARE);
    let required = control.required().to_vec();
    let tenancy = ChannelTenancy::new(layout, map, channels, SPARE, &stays, &required);

    let gone = vec![false; NEEDS.len()];
    let model = Arc::new(Mutex::new(Model { gone, ..Model::default() }));
    let inner = visit(policy, &[], Make { quotas, control, tenancy }).unwrap();
    let decider = Box::new(Told { inner, model: Arc::clone(&model) });
    let disk = |tenant: usize| -> AnyDevice {
        let text = |key: &str| (key.to_owned(), Value::Text("3ms".to_owned()));
        let pairs = [text("read"), text("write")];
        let inner = cachewright_device::model("fixed-latency").unwrap().build(&pairs).unwrap();
        Box::new(Spy { inner, tenant, model: Arc::clone(&model) })
    };
    let devices = std::iter::once(cache).chain((0..NEEDS.len()).map(disk)).collect();
    let settings = MachineSettings { spare_blocks: SPARE, ..MachineSettings::default() };
    let backing_of = (1..=NEEDS.len()).collect();
    let machine = MachineParts { settings, block_shift: SHIFT, slots, devices, backing_of };
    let replay = Replay {
        recording: &loaded.recording,
        requests: &loaded.requests,
        extents: &loaded.placed.tenants,
        futures: FutureSlice::None,
        pace,
        only: None,
        interval_ns: 30 * SECOND,
        windows: 0,
        warmup_ns: 0,
        throughput_ns: 0,
        clock: None,
        capacity_blocks: TOTAL,
    };
    let machine = Machine::new(machine).unwrap();
    let times =
        run_machine(&replay, machine, decider, SignalNeeds::default(), &mut |_| true).unwrap();
    let model = std::mem::take(&mut *model.lock().unwrap());
    (times, model)
}

#[test]
fn an_hour_of_tenants_that_come_and_go_loses_no_write() {
    for (policy, lend) in [("lru", false), ("oc-smq", false), ("s3-fifo", true), ("oc-smq", true)] {
        for pace in [closed(), Loop::Open] {
            let word = if pace == Loop::Open { "open" } else { "closed" };
            let (times, model) = hour(policy, lend, pace);
            check(&format!("{policy}, lend {lend}, {word}"), &times, &model);
        }
    }
}

/// In an open loop everything is sent and answered, of those too who go without a cache, and a
/// tenant leaves with its last answer: when, and what it was given, is the same every time.
#[test]
fn an_open_loop_answers_all_that_was_sent() {
    let (times, model) = hour("oc-smq", false, Loop::Open);
    let sent: Vec<u64> = times.cache.counts.iter().map(|counts| counts.requests).collect();
    assert_eq!(sent, [REQUESTS; NEEDS.len()]);
    let answered = times.tenants.iter().map(|one| one.reads.count() + one.writes.count());
    assert_eq!(answered.collect::<Vec<u64>>(), sent);
    for event in times.channels.tenancy.iter().filter(|event| event.change == Change::Left) {
        let last_ns = times.tenants[event.tenant].last_ns;
        assert_eq!(event.time_ns, last_ns, "tenant {}", event.tenant);
        assert!(last_ns + SECOND > stay(event.tenant).1, "tenant {}", event.tenant);
    }
    let (again, other) = hour("oc-smq", false, Loop::Open);
    assert_eq!(times.channels.tenancy, again.channels.tenancy);
    assert_eq!((times.end_ns, &times.cache.counts), (again.end_ns, &again.cache.counts));
    assert_eq!(model.now, other.now);
}

fn check(case: &str, times: &Times, model: &Model) {
    assert!(times.end_ns > 3_500 * SECOND, "{case}: {} ns", times.end_ns);
    assert_eq!(model.gone, [true; NEEDS.len()], "{case}: all have left");
    assert!(model.blocks.values().map(|known| known.sent).sum::<u64>() > 10_000, "{case}");
    for (block, known) in &model.blocks {
        assert_eq!(known.sent, known.planned.1, "{case}: {block:?} {known:?}");
        assert!(known.planned.0 >= known.written, "{case}: {block:?} {known:?}");
    }
    assert_eq!(times.cache.dirty_blocks, 0, "{case}");
    let of = |wanted: fn(&Change) -> bool| {
        times.channels.tenancy.iter().filter(|event| wanted(&event.change)).count()
    };
    assert_eq!(of(|change| *change == Change::Left), NEEDS.len(), "{case}");
    let refused = of(|change| matches!(change, Change::Refused(_)));
    let granted = of(|change| matches!(change, Change::Granted { .. }));
    let pooled =
        of(|change| matches!(change, Change::Granted { shared_blocks, .. } if *shared_blocks > 0));
    let counts = (refused, granted, pooled);
    assert!(refused > 0 && granted >= 6 && pooled > 0, "{case}: {counts:?}");
    for event in &times.channels.tenancy {
        assert!(event.requested_blocks <= event.allocated_blocks, "{case}: {event:?}");
    }
    let used: Vec<u32> = times
        .channels
        .tenancy
        .iter()
        .filter_map(|event| match &event.change {
            Change::Granted { channels, .. } => Some(channels.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(used.len() > 6, "{case}: channels are given out again: {used:?}");
}
