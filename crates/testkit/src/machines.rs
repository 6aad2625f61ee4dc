//! Replays of workloads that stand in a test: by engines alone, and by machines of named devices.
//!
//! A workload is one text per tenant, Alibaba-style or of system calls, in blocks of 4 KiB.

use cachewright_cache::{Cache, Engine, Quotas, WriteMode};
use cachewright_curve::{CurveSet, Method};
use cachewright_device::model;
use cachewright_partition::{Partitioner, TenantConstants, TenantGoal};
use cachewright_policy::lru::Lru;
use cachewright_policy::{FutureSlice, PolicyVisitor, Registered, visit};
use cachewright_system::event_loop::{
    ConstantRun, Durations, Loop, Replay, StepClock, Times, run_constant,
};
use cachewright_system::machines::{
    CacheDecider, Layout, Machine, MachineParts, MachineSettings, PlacedVolumes, ReplayCache,
    ReplayDecider, Requests, Slots, run_machine,
};
use cachewright_system::{BlockKind, Control, EngineLane, Lane, Recorder, Recording, SignalNeeds};
use cachewright_trace::merge::{MergedRequests, TenantInput};
use cachewright_trace::{OpenOptions, formats};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Nanos, Rng, Seed, Value};

/// log2 of the block size.
pub const SHIFT: u32 = 12;

/// Tenants `t0`, `t1` and so on, each beginning at its start; at 0 where none is given.
pub fn workload<T: AsRef<str>>(texts: &[T], starts_ns: &[u64]) -> MergedRequests {
    let tenants = texts.iter().enumerate().map(|(index, text)| {
        // The second column of a system call is its process, that of a block request its kind.
        let second = text.as_ref().split(',').nth(1);
        let calls = second.is_some_and(|word| word.parse::<u64>().is_ok());
        let format = if calls { "syscall" } else { "alibaba" };
        let options = OpenOptions { format: Some(format.into()), ..OpenOptions::default() };
        let reader = formats::open_bytes("inline", text.as_ref().as_bytes(), &options).unwrap();
        let start = Nanos(starts_ns.get(index).copied().unwrap_or(0));
        TenantInput { start, ..TenantInput::reader(&format!("t{index}"), reader) }
    });
    MergedRequests::open(tenants.collect()).unwrap()
}

/// Takes down what so many tenants ask for.
pub fn recorder(tenants: usize) -> Recorder {
    Recorder::new(tenants, BlockKind::Split { shift: SHIFT }, true, 1 << 20)
}

/// All that the tenants ask for.
pub fn recorded<T: AsRef<str>>(texts: &[T]) -> Recording {
    recorder(texts.len()).record(&mut workload(texts, &[]), |_| true).unwrap()
}

/// Random requests over `blocks` blocks in two volumes, skewed, about one per `gap_us`.
pub fn random(rng: &mut Rng, requests: u64, blocks: u64, gap_us: u64) -> String {
    let (mut text, mut time) = (String::new(), 0);
    for _ in 0..requests {
        time += rng.below(2 * gap_us + 1);
        let u = rng.unit();
        let block = (u * u * blocks as f64) as u64;
        let (op, sector, length) = match rng.below(24) {
            0..10 => ('R', 0, 4096 * (1 + rng.below(3))),
            10..12 => ('R', 512 * rng.below(8), 512),
            12..19 => ('W', 0, 4096 * (1 + rng.below(3))),
            19..22 => ('W', 512 * rng.below(8), 4096),
            22 => ('T', 512 * rng.below(2), 8192),
            _ => ('F', 0, 0),
        };
        let offset = block * 4096 + sector;
        text += &format!("{},{op},{offset},{length},{time}\n", 1 + rng.below(2));
    }
    text
}

/// A cache and its machine.
#[derive(Clone, Debug)]
pub struct Stack {
    pub policy: &'static str,
    pub partition: &'static str,
    pub write: WriteMode,
    pub capacity: u32,
    pub cache: (&'static str, Vec<(&'static str, &'static str)>),
    pub backing: (&'static str, Vec<(&'static str, &'static str)>),
    pub settings: MachineSettings,
    pub interval_ns: u64,
    pub warmup_ns: u64,
    pub clock: Option<StepClock>,
}

impl Stack {
    /// An LRU of `capacity` blocks on fixed latencies of 100 us over 5 ms.
    pub fn plain(capacity: u32) -> Stack {
        let settings = MachineSettings { spare_blocks: 4, ..MachineSettings::default() };
        Stack {
            policy: "lru",
            partition: "shared",
            write: WriteMode::WriteBack,
            capacity,
            cache: ("fixed-latency", vec![("read", "100us"), ("write", "100us")]),
            backing: ("fixed-latency", vec![("read", "5ms"), ("write", "5ms")]),
            settings,
            interval_ns: 0,
            warmup_ns: 0,
            clock: None,
        }
    }
}

/// A workload in both forms.
pub struct Loaded {
    pub recording: Recording,
    pub requests: Requests,
    pub placed: PlacedVolumes,
}

/// Records a workload and places it on one backing device of that name.
pub fn load(texts: &[String], stack: &Stack, layout: Layout) -> Loaded {
    load_from(texts, &[], stack, layout)
}

/// As [`load`], each tenant's first request at its start.
pub fn load_from(texts: &[String], starts_ns: &[u64], stack: &Stack, layout: Layout) -> Loaded {
    let recorder = recorder(texts.len()).with_bytes().with_calls();
    let mut workload = workload(texts, starts_ns);
    let (recording, mut requests) = recorder.record_requests(&mut workload, |_| true).unwrap();
    let capacity = device(&stack.backing).capacity();
    let device_of = vec![0; texts.len()];
    let placed = requests
        .place(&recording, SHIFT, layout, std::slice::from_ref(&(0..capacity.0)), &device_of)
        .unwrap();
    Loaded { recording, requests, placed }
}

fn device(named: &(&str, Vec<(&str, &str)>)) -> cachewright_device::AnyDevice {
    let value = |text: &str| match text.parse::<i64>() {
        Ok(number) => Value::Int(number),
        Err(_) => Value::Text(text.to_owned()),
    };
    let pairs: Vec<_> = named.1.iter().map(|(k, t)| ((*k).to_owned(), value(t))).collect();
    model(named.0).unwrap().build(&pairs).unwrap()
}

fn control(stack: &Stack, tenants: usize) -> Control {
    let partitioner = cachewright_partition::boxed(stack.partition, &[], tenants, Seed(1)).unwrap();
    control_by(stack, tenants, partitioner, None)
}

/// A control loop by a partitioner, over tenants that were promised this hit ratio.
pub fn control_by(
    stack: &Stack,
    tenants: usize,
    partitioner: Box<dyn Partitioner>,
    goal_hit_ratio: Option<f64>,
) -> Control {
    let tenant = |index| TenantConstants {
        weight: 1.0 + index as f64,
        schedule: vec![2.0, 1.0 + index as f64, 0.5],
        sensitive: index > 0,
        goal: Some(TenantGoal { hit_ratio: goal_hit_ratio, ..TenantGoal::default() }),
        head_curve: None,
    };
    Control::new(partitioner, (0..tenants).map(tenant).collect(), stack.capacity)
}

struct Make<'a>(&'a Stack, usize, Quotas);

impl Make<'_> {
    fn engine<P: Registered>(&self, settings: &P::Settings) -> Engine<P> {
        let make = |pool: usize, capacity| P::new(capacity, settings, Seed(pool as u64));
        Engine::new(self.1, &self.2, self.0.write, make)
    }
}

struct Timed<'a>(Make<'a>, Control);

impl PolicyVisitor for Timed<'_> {
    type Output = Box<dyn ReplayDecider>;
    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output {
        let cache = Cache::new(self.0.engine::<P>(&settings), SHIFT);
        Box::new(ReplayCache::new(CacheDecider::new(cache, self.0.1, Some(self.1))))
    }
}

struct Untimed<'a>(Make<'a>, Control, &'a Recording);

impl PolicyVisitor for Untimed<'_> {
    type Output = Box<dyn Lane>;
    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output {
        let engine = self.0.engine::<P>(&settings);
        Box::new(EngineLane::new(engine, self.2).with_control(self.1))
    }
}

/// The signals that a partitioner needs.
pub fn signal_needs(stack: &Stack, tenants: usize) -> SignalNeeds {
    let curves = || CurveSet::new(tenants, &Method::Exact, Seed(3));
    SignalNeeds { curves: (stack.partition == "hull").then(curves), ..SignalNeeds::default() }
}

/// The lane of a replay without devices.
pub fn lane(stack: &Stack, recording: &Recording) -> Box<dyn Lane> {
    lane_by(stack, recording, control(stack, recording.totals.len()))
}

/// As [`lane`], under a control loop.
pub fn lane_by(stack: &Stack, recording: &Recording, mut control: Control) -> Box<dyn Lane> {
    let tenants = recording.totals.len();
    let make = Make(stack, tenants, control.first());
    visit(stack.policy, &[], Untimed(make, control, recording)).unwrap()
}

/// An LRU lane of a replay without devices, by its type.
pub fn engine_lane(stack: &Stack, recording: &Recording) -> EngineLane<Lru> {
    let tenants = recording.totals.len();
    let make = Make(stack, tenants, Quotas::Shared(stack.capacity));
    EngineLane::new(make.engine::<Lru>(&NoSettings::default()), recording)
}

/// An LRU lane under a control loop, by its type.
pub fn engine_lane_by(
    stack: &Stack,
    recording: &Recording,
    mut control: Control,
) -> EngineLane<Lru> {
    let make = Make(stack, recording.totals.len(), control.first());
    EngineLane::new(make.engine::<Lru>(&NoSettings::default()), recording).with_control(control)
}

/// Replays on the stack's devices; the audits of machine and times must pass.
pub fn replay(stack: &Stack, loaded: &Loaded, pace: Loop, windows: u32) -> Times {
    let tenants = loaded.recording.totals.len();
    replay_by(stack, loaded, pace, windows, control(stack, tenants), signal_needs(stack, tenants))
}

/// As [`replay`], under a control loop that needs signals.
pub fn replay_by(
    stack: &Stack,
    loaded: &Loaded,
    pace: Loop,
    windows: u32,
    mut control: Control,
    needs: SignalNeeds,
) -> Times {
    let tenants = loaded.recording.totals.len();
    let make = Make(stack, tenants, control.first());
    let decider = visit(stack.policy, &[], Timed(make, control)).unwrap();
    let machine = Machine::new(MachineParts {
        settings: stack.settings.clone(),
        block_shift: SHIFT,
        slots: Slots::plain(stack.capacity + stack.settings.spare_blocks),
        devices: vec![device(&stack.cache), device(&stack.backing)],
        backing_of: vec![1; tenants],
    });
    let next_use = loaded.recording.next_uses().unwrap();
    let replay = Replay {
        recording: &loaded.recording,
        requests: &loaded.requests,
        extents: &loaded.placed.tenants,
        futures: FutureSlice::NextUse(&next_use),
        pace,
        only: None,
        interval_ns: stack.interval_ns,
        windows,
        warmup_ns: stack.warmup_ns,
        throughput_ns: 0,
        clock: stack.clock,
        capacity_blocks: stack.capacity,
    };
    let times = run_machine(&replay, machine.unwrap(), decider, needs, &mut |_| true);
    let times = times.unwrap();
    assert_eq!(times.audit(), Ok(()));
    times
}

/// Replays through a lane whose hits take 100 us and whose misses 5 ms. Throughput is taken in
/// windows of `throughput_ns`, where that is not 0; a partitioner is told what `needs` say.
pub fn constant(
    stack: &Stack,
    recording: &Recording,
    lane: EngineLane<Lru>,
    pace: Loop,
    windows: u32,
    throughput_ns: u64,
    needs: SignalNeeds,
) -> ConstantRun {
    let replay = Replay {
        recording,
        requests: recording,
        extents: &[],
        futures: FutureSlice::None,
        pace,
        only: None,
        interval_ns: stack.interval_ns,
        windows,
        warmup_ns: stack.warmup_ns,
        throughput_ns,
        clock: None,
        capacity_blocks: stack.capacity,
    };
    let durations = Durations { hit_ns: 100_000, miss_ns: 5_000_000 };
    run_constant(&replay, durations, lane, needs, &mut |_| true).unwrap()
}
