//! What models of a tenant's demand learn from: features by step, and responses by cache size.
//!
//! Every tenant is replayed alone on the stack's machine, open loop, with the cache switched off
//! and with each number of granules of it, each time the whole trace, so that an interval begins
//! with what the intervals before have left. Requests count where they arrive; `replay.warmup`
//! changes nothing. The last interval may be cut short by the end of the traces. Source: Li, Sun,
//! Qin, iCache (TCAD 2025), sections IV-B and IV-C. Units: nanoseconds, blocks, granules.

use crate::case::Case;
use crate::models::Library;
use crate::progress::{OnProgress, with_threads};
use crate::record::{Kept, record};
use crate::workload::Workload;
use crate::{ExperimentError, Spec};
use cachewright_curve::signal::{BINS, SignalSet, StepCounts};
use cachewright_system::event_loop::{StepClock, StepSums};
use cachewright_system::{Cut, Cuts, Recording, SignalNeeds, interval_signals};
use cachewright_types::declare;
use cachewright_types::declare::Declared;
use std::path::Path;

/// Most steps of all intervals together, times sizes: each has sums of its own.
const MAX_SUMS: u64 = 1 << 28;

declare! {
    /// Options of `segments`: at which sizes and times tenants are measured.
    pub struct StepOptions {
        /// parts into which the cache is divided for the labels
        granules: u32 = 10, "granules", 1 ..= 1000;
        /// steps per interval for which features are computed
        steps: u32 = 180, "steps", 1 ..= 4_294_967_295;
    }
}

/// What to replay.
#[derive(Clone, Debug, Default)]
pub struct SegmentOptions {
    /// Sizes and times.
    pub step: StepOptions,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
}

/// Every tenant of a stack, interval by interval.
#[derive(Clone, Debug, PartialEq)]
pub struct StackSegments {
    /// Length of an interval.
    pub interval_ns: u64,
    /// Length of a step, rounded down.
    pub step_ns: u64,
    /// The whole cache.
    pub capacity_blocks: u32,
    /// In order of the stack file.
    pub tenants: Vec<TenantSegments>,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantSegments {
    /// The name in the stack file.
    pub name: String,
    /// What it asked for in each step of every interval.
    pub steps: Vec<StepCounts>,
    /// What it found alone with 0, 1, ... granules, by the same steps.
    pub alone: Vec<StepSums>,
    /// How many of its writes came back at which distance, in each interval.
    pub reuse: Vec<[u32; BINS]>,
}

/// Replays every tenant of a stack alone with each number of granules. Errors: a stack without
/// devices, in a closed loop or without an interval, options out of range, what replays refuse.
pub fn segments(
    text: &str,
    origin: &Path,
    options: &SegmentOptions,
    progress: OnProgress<'_>,
) -> Result<StackSegments, ExperimentError> {
    let step = &options.step;
    let spec = crate::spec::parse(text, origin, &options.set)?;
    let refuse = |message| ExperimentError::spec(origin, message);
    let interval_ns = spec.replay.interval.0;
    step.check_ranges()?;
    check(&spec, step).map_err(refuse)?;
    with_threads(options.threads, || {
        let mut case = Case::single(spec);
        case.caching = Library::default().caching(&case.spec, &case.needs)?;
        case.check_policy()?;
        let requests = case.needs.inputs().requests;
        let (times, keys, bytes, devices) = (true, true, true, true);
        let kept = Kept { times, keys, bytes, requests, devices, ..Kept::default() };
        let mut recorded = record(&case.spec, kept, progress)?;
        let requests = recorded.take_requests();
        let recording = &recorded.recording;
        let case = case.resolve(recording)?;
        case.check_intervals()?;
        let clock = StepClock { interval_ns, steps: step.steps };
        let intervals = clock.intervals(recording.span_ns());
        let sums = intervals as u64 * u64::from(step.steps) * u64::from(step.granules + 1);
        if sums > MAX_SUMS {
            return Err(refuse(format!(
                "`steps`: found {} in each of {intervals} intervals at {} sizes, expected at most \
                 {MAX_SUMS} in all",
                step.steps,
                step.granules + 1
            )));
        }
        let signals = signals(recording, clock);
        let workload = Workload::on_devices(&case, &recorded, requests, progress)?;
        let ladder = workload.ladder(&case, step.granules, clock)?;
        let named = case.spec.tenants.iter().zip(signals).zip(ladder);
        let tenants = named.map(|((tenant, (steps, reuse)), alone)| {
            let name = tenant.name.clone();
            TenantSegments { name, steps, alone, reuse }
        });
        let (step_ns, tenants) = (interval_ns / u64::from(step.steps), tenants.collect());
        let capacity_blocks = case.capacity_blocks;
        Ok(StackSegments { interval_ns, step_ns, capacity_blocks, tenants })
    })
}

fn check(spec: &Spec, options: &StepOptions) -> Result<(), String> {
    if spec.stack.is_none() {
        let expected = "expected some: only they give every request a time";
        return Err(format!("found no `[device]` tables, {expected}"));
    }
    if spec.replay.closed() {
        let expected = "expected `open`: a closed loop has other requests at every size";
        return Err(format!("`replay.loop`: found `closed`, {expected}"));
    }
    if spec.replay.interval.0 == 0 {
        let found = spec.replay.interval;
        return Err(format!("`replay.interval`: found {found}, expected a time above 0"));
    }
    if u64::from(options.steps) > spec.replay.interval.0 {
        let (found, interval) = (options.steps, spec.replay.interval);
        return Err(format!(
            "`steps`: found {found} for an interval of {interval}, expected at most one per \
             nanosecond"
        ));
    }
    Ok(())
}

/// Each tenant's steps and distances of writes, in all intervals.
fn signals(recording: &Recording, clock: StepClock) -> Vec<(Vec<StepCounts>, Vec<[u32; BINS]>)> {
    let tenants = recording.totals.len();
    let intervals = clock.intervals(recording.span_ns());
    let end = |number: usize| {
        let time_ns = clock.interval_ns.saturating_mul(number as u64 + 1);
        let position = recording.position_at(time_ns);
        let interval = Some(number as u32);
        Cut { position, time_ns, interval, window: None, warmup: false }
    };
    let cuts = Cuts { cuts: (0..intervals).map(end).collect() };
    let signals = SignalSet { reuse: true, ..SignalSet::NONE };
    let wanted = SignalNeeds { steps: clock.steps, signals, ..SignalNeeds::default() };
    let meter = wanted.meter(tenants, clock.interval_ns);
    let found = meter.map(|meter| interval_signals(recording, &cuts, meter)).unwrap_or_default();
    let mut each = vec![(Vec::new(), Vec::new()); tenants];
    for interval in found {
        let signals = interval.steps.into_iter().zip(interval.reuse);
        for ((steps, reuse), (more, bins)) in each.iter_mut().zip(signals) {
            steps.extend(more);
            reuse.push(bins);
        }
    }
    each
}
