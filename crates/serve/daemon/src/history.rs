//! What a server takes from recorded traces of its tenants before it decides, and the curves of its
//! status.
//!
//! Profiles and curves are those that a simulation of the same stack takes from the same files. A
//! trace is read once, and once more to count its blocks where its curve is that of the cache's own
//! policy. A reload reads on a thread, while the server serves.

use crate::error::LiveError;
use crate::plan::{LivePlan, LiveStack};
use cachewright_cache::{Cache, Engine, Plan, Quotas, SequentialStreams};
use cachewright_control::{
    CachePolicy, KeptCurve, KeptPoint, RequestMeter, SignalNeeds, head_curves,
};
use cachewright_curve::Curve;
use cachewright_live::blocks::BlockServer;
use cachewright_partition::{Partitioner, TenantGoal};
use cachewright_policy::{FutureSlice, Policy};
use cachewright_result::status::{CurvePoint, SampledCurve};
use cachewright_stack::TenantSpec;
use cachewright_trace::{MergedRequests, WorkloadBatch};
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId, block_numbers};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::Builder;

/// Requests read at a time.
const BATCH: usize = 8192;
/// A cache for one tenant alone, and its blocks.
type AloneCache = (u32, Cache<Box<dyn Policy>>);
/// The only tenant of a history.
const ONLY: TenantId = TenantId(0);

/// What is known of a tenant ahead.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    /// Hit ratio by quota; empty without a profile.
    pub profile: Vec<(u32, f64)>,
    /// Misses by cache size.
    pub curve: Option<Arc<Curve>>,
}

/// What a partitioner wants ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    profile: bool,
    curve: bool,
    own_policy: bool,
}

impl Wanted {
    /// What a partitioner of a stack wants; nothing if that is nothing.
    pub fn by(partitioner: &dyn Partitioner) -> Option<Wanted> {
        let (profile, kind) = (partitioner.reads_profiles(), partitioner.curves());
        let (curve, own_policy) = (kind.ahead, kind.own_policy);
        (profile || curve).then_some(Wanted { profile, curve, own_policy })
    }

    /// Whether a tenant cannot do without a history.
    pub fn needs_history(self) -> bool {
        self.curve
    }
}

/// What is known of each tenant ahead in a cache of so many blocks. Errors: a file that cannot be
/// read, or says nothing; `given_up` was set meanwhile.
pub fn ahead(
    stack: &LiveStack,
    capacity_blocks: u32,
    wanted: Wanted,
    given_up: &AtomicBool,
) -> Result<Vec<Ahead>, LiveError> {
    let tenant = |(index, tenant): (usize, &TenantSpec)| {
        let Some(path) = &tenant.history else { return Ok(Ahead::default()) };
        let history = TenantHistory { stack, tenant, path, index, capacity_blocks, given_up };
        history.measured(wanted).map_err(|error| history.refuse(&error))
    };
    stack.tenants.iter().enumerate().map(tenant).collect()
}

/// A tenant's history.
struct TenantHistory<'a> {
    stack: &'a LiveStack,
    tenant: &'a TenantSpec,
    path: &'a Path,
    index: usize,
    capacity_blocks: u32,
    given_up: &'a AtomicBool,
}

impl TenantHistory<'_> {
    fn refuse(&self, error: &str) -> LiveError {
        let key = format!("tenant[{}].history", self.index + 1);
        LiveError::stack(&self.stack.origin, format!("`{key}`: {error}"))
    }

    fn shift(&self) -> u32 {
        self.stack.cache.block.0.trailing_zeros()
    }

    fn measured(&self, wanted: Wanted) -> Result<Ahead, String> {
        if !self.path.is_file() {
            return Err(format!("found no file `{}`, expected a trace", self.path.display()));
        }
        let mut caches = if wanted.profile { self.caches()? } else { Vec::new() };
        let mut meter = if wanted.curve { Some(self.meter(wanted.own_policy)?) } else { None };
        let (mut accesses, mut plan) = (0_u64, Plan::default());
        let mut streams = self.stack.cache.cutoff().map(SequentialStreams::new);
        self.each(&mut |request| {
            accesses += u64::from(matches!(request.op, Op::Read | Op::Write));
            let goes_past = streams.as_mut().is_some_and(|streams| streams.cuts_off_next(request));
            caches.iter_mut().for_each(|(_, cache)| match goes_past {
                true => cache.on_cut_off(request, FutureSlice::None, &mut plan),
                false => cache.on(request, &mut plan),
            });
            meter.iter_mut().for_each(|meter| meter.request(request, request.time.0));
        })?;
        if accesses == 0 {
            return Err("found no reads and writes, expected some".to_owned());
        }
        let ratio = |(size, cache): &AloneCache| (*size, cache.engine().counts(ONLY).hit_ratio());
        let curve = meter.and_then(|mut meter| meter.end_interval().curves.pop());
        let curve = curve.map(|curves| Arc::new(curves.all));
        Ok(Ahead { profile: caches.iter().map(ratio).collect(), curve })
    }

    /// An empty cache for the tenant alone of each size of a profile.
    fn caches(&self) -> Result<Vec<AloneCache>, String> {
        let maker = self.stack.policy_maker()?;
        let cache = |size: u32| {
            let make = |_: usize, capacity| maker(capacity, self.stack.profile_seed());
            let engine = Engine::new(1, &Quotas::Shared(size), self.stack.cache.write, make);
            (size, Cache::new(engine, self.shift()))
        };
        Ok(TenantGoal::profile_sizes(self.capacity_blocks).into_iter().map(cache).collect())
    }

    /// A meter of the tenant's curve.
    fn meter(&self, own_policy: bool) -> Result<RequestMeter, String> {
        let policy = &self.stack.cache.policy;
        let policy = CachePolicy {
            name: &policy.name,
            pairs: &policy.pairs,
            capacity_blocks: self.capacity_blocks,
            seed: self.stack.head_curve_seed(self.index),
        };
        let used = if own_policy { self.used_blocks()? } else { 0 };
        let curves = head_curves(policy, own_policy, used).map_err(|error| error.to_string())?;
        let needs = SignalNeeds { curves: Some(curves), ..SignalNeeds::default() };
        let meter = needs.meter(1, 0).ok_or("found nothing to measure, expected a curve")?;
        Ok(RequestMeter::new(meter, self.shift()))
    }

    /// Distinct blocks that are read or written.
    fn used_blocks(&self) -> Result<u32, String> {
        let mut used = HashSet::new();
        self.each(&mut |request| {
            if matches!(request.op, Op::Read | Op::Write) {
                used.extend(block_numbers(request.offset.0, request.length.0, self.shift()));
            }
        })?;
        Ok(u32::try_from(used.len()).unwrap_or(u32::MAX))
    }

    /// Hands out every request of the trace, up to where the tenant stops in it.
    fn each(&self, take: &mut dyn FnMut(&Request)) -> Result<(), String> {
        let words = |error: cachewright_trace::TraceError| error.to_string();
        let mut workload =
            MergedRequests::open(vec![self.tenant.input(self.path)]).map_err(words)?;
        let mut batch = WorkloadBatch::default();
        while !self.given_up.load(Ordering::Relaxed) {
            batch.clear();
            if workload.read(&mut batch, BATCH).map_err(words)? == 0 {
                return Ok(());
            }
            if workload.spaces().len() > 1 {
                let expected = "expected the one of this tenant in `volume`";
                return Err(format!("found a trace of several volumes, {expected}"));
            }
            for index in 0..batch.len() {
                take(&Request {
                    time: Nanos(batch.time_ns[index]),
                    offset: Bytes(batch.offset_bytes[index]),
                    length: Bytes(batch.length_bytes[index]),
                    op: batch.op[index],
                    tenant: ONLY,
                });
            }
        }
        Err("found no need to read on".to_owned())
    }
}

/// What is known ahead of each tenant, or why that is not known.
type ReadingOutcome = Result<Vec<Ahead>, LiveError>;

/// Histories that are read.
pub struct HistoryLoad {
    outcome: Receiver<ReadingOutcome>,
    given_up: Arc<AtomicBool>,
}

impl HistoryLoad {
    /// Begins to read the histories of a plan; nothing if its partitioner wants none. Errors: the
    /// operating system's.
    pub fn begin(plan: &LivePlan) -> Result<Option<HistoryLoad>, LiveError> {
        let Some(wanted) = plan.wanted else { return Ok(None) };
        let (stack, capacity_blocks) = (plan.stack.clone(), plan.capacity_blocks);
        let (sender, outcome) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&given_up);
        let work = move || {
            // What is not wanted any more is dropped.
            let _ = sender.send(ahead(&stack, capacity_blocks, wanted, &flag));
        };
        Builder::new()
            .name("histories".to_owned())
            .spawn(work)
            .map_err(|error| LiveError::Failed(format!("histories: {error}")))?;
        Ok(Some(HistoryLoad { outcome, given_up }))
    }

    /// What was found, when all is read.
    pub fn outcome(&self) -> Option<ReadingOutcome> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(LiveError::Failed("histories: reading them has failed".to_owned())))
            }
        }
    }
}

impl Drop for HistoryLoad {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

const NS_PER_S: f64 = 1e9;

/// The curves of all tenants by number; none where none are sampled.
#[derive(Clone, Debug, Default)]
pub struct TenantCurves {
    tenants: Vec<Option<SampledCurve>>,
}

impl TenantCurves {
    /// The curves of the last hour.
    pub fn last_hour(blocks: &mut BlockServer, now_ns: u64) -> TenantCurves {
        let block_bytes = blocks.block_bytes();
        let Some((policy, curves)) = blocks.curves(now_ns) else { return TenantCurves::default() };
        let curve = |curve: KeptCurve| Some(sampled(curve, &policy, block_bytes));
        TenantCurves { tenants: curves.into_iter().map(curve).collect() }
    }

    /// The curve of a tenant.
    pub fn take(&mut self, tenant: usize) -> Option<SampledCurve> {
        self.tenants.get_mut(tenant).and_then(Option::take)
    }
}

fn sampled(curve: KeptCurve, policy: &str, block_bytes: u64) -> SampledCurve {
    let KeptCurve { accesses, span_ns, trusted_from_blocks, points } = curve;
    let ratio = |misses: f64| misses / accesses.max(1) as f64;
    let bytes = |blocks: u32| u64::from(blocks) * block_bytes;
    let point = |point: KeptPoint| CurvePoint {
        bytes: bytes(point.size_blocks),
        miss_ratio: ratio(point.misses),
        low: ratio(point.low),
        high: ratio(point.high),
    };
    SampledCurve {
        policy: policy.to_owned(),
        seconds: span_ns as f64 / NS_PER_S,
        accesses,
        trusted_bytes: bytes(trusted_from_blocks),
        points: points.into_iter().map(point).collect(),
    }
}
