//! From a spec's tenants to a recording and what is said of their traces.
//!
//! For: opening and decoding once what many cases replay. Must never know: caches.

use crate::ExperimentError;
use crate::case::{Case, recorded_end};
use crate::progress::{OnProgress, Progress};
use crate::spec::{Spec, TenantSpec, block_kind};
use cachewright_policy::FutureColumn;
use cachewright_result::facts::TenantFacts;
use cachewright_stack::Warmup;
use cachewright_system::machines::Requests;
use cachewright_system::{FutureKind, Recorder, Recording};
use cachewright_trace::formats;
use cachewright_trace::merge::{self, MergedRequests, TenantInput, WorkloadBatch};
use cachewright_types::Nanos;

/// A recording and the facts of its tenants.
pub struct RecordedTenants {
    /// The block accesses.
    pub recording: Recording,
    /// The requests themselves, to be placed on devices, where they were to be kept.
    pub requests: Option<Requests>,
    /// What was read of each tenant's trace.
    pub tenants: Vec<TenantFacts>,
}

impl RecordedTenants {
    /// Takes the requests; none where they were not kept.
    pub fn take_requests(&mut self) -> Requests {
        self.requests.take().unwrap_or_default()
    }
}

/// What a recording keeps beside blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// When requests arrive.
    pub times: bool,
    /// The keys of blocks, for measures that sample blocks.
    pub keys: bool,
    /// The bytes of each access.
    pub bytes: bool,
    /// The bytes of accesses where they differ, for hits by bytes.
    pub uneven_bytes: bool,
    /// Times and extents of requests.
    pub requests: bool,
    /// Processes of requests and their pauses.
    pub calls: bool,
    /// The requests themselves, for devices.
    pub devices: bool,
}

impl Kept {
    /// What both keep.
    pub fn and(self, other: Kept) -> Kept {
        Kept {
            times: self.times || other.times,
            keys: self.keys || other.keys,
            bytes: self.bytes || other.bytes,
            uneven_bytes: self.uneven_bytes || other.uneven_bytes,
            requests: self.requests || other.requests,
            calls: self.calls || other.calls,
            devices: self.devices || other.devices,
        }
    }

    /// Times, if they are wanted.
    pub fn times(wanted: bool) -> Kept {
        Kept { times: wanted, ..Kept::default() }
    }
}

/// Requests read at a time when they are only counted.
const BATCH: usize = 8192;

/// Opens the tenants' traces as one workload. In a closed loop a tenant that stops at a time is
/// stopped by the replay, which alone knows the time.
pub fn open(spec: &Spec) -> Result<MergedRequests, ExperimentError> {
    let input = |tenant: &TenantSpec| {
        let mut input = input(tenant, spec.replay.closed())?;
        if spec.replay.warmup == Warmup::History {
            let history = tenant.history.as_ref().map(|path| tenant.input(path));
            input.before =
                history.map(|history| Box::new(TenantInput { start: Nanos(0), ..history }));
        }
        Ok::<_, ExperimentError>(input)
    };
    let inputs: Result<Vec<_>, _> = spec.tenants.iter().map(input).collect();
    Ok(MergedRequests::open_on(spec.replay.clock(), inputs?)?)
}

/// A tenant's trace as an input of a workload, up to where it stops (but for a time in a closed
/// loop). Errors: its requests cannot be counted.
pub fn input(tenant: &TenantSpec, closed: bool) -> Result<TenantInput, ExperimentError> {
    let mut input = tenant.input(&tenant.path);
    let (share, until) = recorded_end(tenant, closed);
    input.stop = match share {
        Some(share) => {
            let requests = count(MergedRequests::open(vec![tenant.input(&tenant.path)])?)?;
            let requests = (requests as f64 * share).round().max(1.0) as u64;
            Some(until.map_or(merge::EarlyEnd::After(requests), |at| {
                merge::EarlyEnd::First(at, requests)
            }))
        }
        None => until.map(merge::EarlyEnd::At),
    };
    Ok(input)
}

/// How many requests a workload has.
fn count(mut workload: MergedRequests) -> Result<u64, ExperimentError> {
    let (mut batch, mut requests) = (WorkloadBatch::default(), 0);
    loop {
        batch.clear();
        match workload.read(&mut batch, BATCH)? {
            0 => return Ok(requests),
            count => requests += count as u64,
        }
    }
}

/// Reads every tenant's trace into memory as block accesses, in one pass with what `kept` says
/// beside them.
pub fn record(
    spec: &Spec,
    kept: Kept,
    progress: OnProgress<'_>,
) -> Result<RecordedTenants, ExperimentError> {
    let mut workload = open(spec)?;
    let total = workload.requests_hint();
    let recorder = Recorder::new(
        spec.tenants.len(),
        block_kind(spec),
        spec.cache.drops_trimmed(),
        spec.replay.max_accesses,
    );
    let recorder = recorder.cutting_off(spec.cache.cutoff());
    let recorder = if kept.times { recorder } else { recorder.without_times() };
    let recorder = if kept.keys { recorder } else { recorder.without_keys() };
    let recorder = if kept.bytes { recorder.with_bytes() } else { recorder };
    let recorder = if kept.uneven_bytes { recorder.with_uneven_bytes() } else { recorder };
    let recorder = if kept.requests { recorder.with_requests() } else { recorder };
    let recorder = if kept.calls { recorder.with_calls() } else { recorder };
    let tell = |done| progress(Progress { stage: "reading traces", done, total });
    let (recording, requests) = if kept.devices {
        let (recording, requests) = recorder.record_requests(&mut workload, tell)?;
        (recording, Some(requests))
    } else {
        (recorder.record(&mut workload, tell)?, None)
    };
    let tenants: Result<Vec<TenantFacts>, ExperimentError> =
        (0..spec.tenants.len()).map(|tenant| facts(spec, &workload, &recording, tenant)).collect();
    Ok(RecordedTenants { recording, requests, tenants: tenants? })
}

fn facts(
    spec: &Spec,
    workload: &MergedRequests,
    recording: &Recording,
    index: usize,
) -> Result<TenantFacts, ExperimentError> {
    let tenant = &spec.tenants[index];
    let totals = &recording.totals[index];
    let format = formats::format_of(&tenant.path, &tenant.open)?.name.to_owned();
    let skipped = workload.skipped(index as u16).cloned().unwrap_or_default();
    let [reads, writes, trims, flushes] = totals.requests;
    let [read_bytes, write_bytes, trim_bytes, _] = totals.bytes;
    Ok(TenantFacts {
        name: tenant.name.clone(),
        trace: tenant.trace.clone(),
        format,
        requests: totals.requests.iter().sum(),
        reads,
        writes,
        trims,
        flushes,
        read_bytes,
        write_bytes,
        trim_bytes,
        block_accesses: totals.block_accesses,
        distinct_blocks: totals.distinct_blocks,
        span_ns: totals.last_ns,
        skipped_bad: skipped.bad,
        skipped_irrelevant: skipped.irrelevant,
        skipped_examples: skipped.examples.iter().map(ToString::to_string).collect(),
        out_of_order: workload.out_of_order(index as u16).unwrap_or(0),
        has_times: workload.has_times(index as u16).unwrap_or(true),
        volumes: workload.volumes(index as u16),
        notes: notes(spec, workload, index as u16),
    })
}

/// What a tenant's trace shows, and what is made of objects in it.
fn notes(spec: &Spec, workload: &MergedRequests, index: u16) -> Vec<String> {
    let mut notes = workload.notes(index);
    let before = workload.requests_before(index);
    if before > 0 {
        notes.push(format!(
            "the first {before} requests are those of its history, which are not counted"
        ));
    }
    if let Some(skipped) = workload.skipped_before(index).filter(|skipped| skipped.bad > 0) {
        let first = skipped.examples.first().map(|record| format!(", the first in {record}"));
        let plural = if skipped.bad == 1 { "" } else { "s" };
        notes.push(format!(
            "of its history {} malformed record{plural} skipped{}",
            skipped.bad,
            first.unwrap_or_default()
        ));
    }
    let history = workload.notes_before(index);
    notes.extend(history.iter().map(|sentence| format!("its history: {sentence}")));
    if workload.counts_objects(index) {
        notes.push(match spec.replay.unit() {
            true => "an object is one block, whatever its size (`replay.blocks = unit`)".to_owned(),
            false => "objects are replayed as if their numbers were addresses, so that they share \
                      blocks; a capacity of `N blocks` or `P%wss` with `replay.blocks = unit` \
                      counts objects"
                .to_owned(),
        });
    }
    notes
}

/// What goes with each access of a recording; see [`FutureKind::column`]. Errors, of a case: too
/// many accesses.
pub(crate) fn column(
    case: &Case,
    foresight: FutureKind,
    recording: &Recording,
    ratios: &[f32],
) -> Result<FutureColumn, ExperimentError> {
    foresight.column(recording, ratios).ok_or_else(|| {
        case.refuse(
            "found more than 2^32 - 2 block accesses, expected fewer for a policy that needs the \
             future",
        )
    })
}
