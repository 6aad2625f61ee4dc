//! What is read before a replay: the tenants' traces as a recording, their histories, and divisions
//! that a live server has recorded.

use crate::ExperimentError;
use crate::case::{Case, recorded_end};
use crate::needs::Needs;
use crate::progress::{OnProgress, Progress};
use crate::spec::{Front, Spec, TenantSpec, block_kind};
use cachewright_partition::fixed::Recorded;
use cachewright_policy::FutureColumn;
use cachewright_result::trace::TenantFacts;
use cachewright_stack::Warmup;
use cachewright_stack::cache::STRIPED;
use cachewright_system::machines::Requests;
use cachewright_system::{FutureKind, Recorder, Recording};
use cachewright_trace::merge::{MergedRequests, TenantInput, WorkloadBatch};
use cachewright_trace::{Divisions, divisions_path, formats, merge, state_path};
use cachewright_types::seed::mix;
use cachewright_types::{Bytes, Nanos};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    if index == 0 && spec.tenants[0].moment.is_some() {
        notes.push(match state_path(&spec.tenants[0].path).is_file() {
            true => "the replay continues from the state beside the recording".to_owned(),
            false => "no state stands beside the recording: the replay begins with an empty cache"
                .to_owned(),
        });
    }
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

/// The history of each tenant that has one; nothing where none is wanted.
pub type TenantHistories = Arc<Vec<Option<Recording>>>;

/// The histories of some cases.
/// A history is read where a case's partitioner wants something ahead, once for all cases that name
/// the same.
#[derive(Default)]
pub struct HistoryReader {
    read: Vec<(String, TenantHistories)>,
}

impl HistoryReader {
    /// The histories that the partitioner of a stack takes something from. Errors: a file that
    /// cannot be read or says nothing, by its key; cancelled.
    pub fn histories(
        &mut self,
        spec: &Spec,
        needs: &Needs,
        progress: OnProgress<'_>,
    ) -> Result<TenantHistories, ExperimentError> {
        let named = spec.tenants.iter().any(|tenant| tenant.history.is_some());
        if !named || !needs.reads_ahead {
            return Ok(Arc::default());
        }
        let requests = needs.inputs().requests;
        let inputs: Vec<_> = spec.tenants.iter().map(reading).collect();
        let (kind, trims) = (block_kind(spec), spec.cache.drops_trimmed());
        let cutoff = spec.cache.cutoff();
        let words = format!("{inputs:?} {kind:?} {trims} {requests} {cutoff:?}");
        if let Some((_, known)) = self.read.iter().find(|(other, _)| *other == words) {
            return Ok(Arc::clone(known));
        }
        let history = |(index, tenant): (usize, &TenantSpec)| {
            let Some(path) = &tenant.history else { return Ok(None) };
            let recorder = Recorder::new(1, kind, trims, spec.replay.max_accesses);
            let recorder = recorder.cutting_off(cutoff);
            let recorder = if requests { recorder.with_requests() } else { recorder };
            recorded(tenant, path, recorder, progress).map(Some).map_err(|error| {
                let key = format!("tenant[{}].history", index + 1);
                match error.is_cancelled() {
                    true => error,
                    false => ExperimentError::spec(&spec.origin, format!("`{key}`: {error}")),
                }
            })
        };
        let read: Result<_, _> = spec.tenants.iter().enumerate().map(history).collect();
        let read = Arc::new(read?);
        self.read.push((words, Arc::clone(&read)));
        Ok(read)
    }
}

/// All that decides what is read of a tenant's history.
fn reading(tenant: &TenantSpec) -> impl std::fmt::Debug + use<> {
    let (options, volume) = (tenant.open.clone(), tenant.volume.clone());
    let (times, operation) = ((tenant.time_scale, tenant.start, tenant.sort), tenant.becomes());
    (tenant.history.clone(), options, volume, times, operation, tenant.sample, tenant.request)
}

fn recorded(
    tenant: &TenantSpec,
    path: &Path,
    recorder: Recorder,
    progress: OnProgress<'_>,
) -> Result<Recording, ExperimentError> {
    let refuse = |found: &str, expected: &str| {
        Err(ExperimentError::Option(format!("found {found}, expected {expected}")))
    };
    if !path.is_file() {
        return refuse(&format!("no file `{}`", path.display()), "a trace");
    }
    let mut workload = MergedRequests::open(vec![tenant.input(path)])?;
    let total = workload.requests_hint();
    let tell = |done| progress(Progress { stage: "reading histories", done, total });
    let recording = recorder.record(&mut workload, tell)?;
    match recording.totals.first() {
        Some(totals) if totals.block_accesses > 0 => Ok(recording),
        _ => refuse("no reads and writes", "some"),
    }
}

/// A number that differs for different histories, but for accidents; 0 without any.
pub fn histories_fingerprint(histories: &TenantHistories) -> u64 {
    let print = |history: &Option<Recording>| history.as_ref().map_or(1, Recording::fingerprint);
    histories.iter().fold(0, |hash, history| mix(hash ^ print(history)))
}

/// The path of a stack's recorded divisions, if it names a file.
fn path_of(spec: &Spec) -> Option<PathBuf> {
    let text = spec.replay.divisions.as_ref()?;
    Some(spec.origin.parent().unwrap_or(Path::new("")).join(text))
}

/// A refusal of the key.
fn refuse(spec: &Spec, found: &str, expected: &str) -> ExperimentError {
    let message = format!("`replay.divisions`: found {found}, expected {expected}");
    ExperimentError::spec(&spec.origin, message)
}

/// The recorded divisions that a stack names; whether its trace is the one beside them is not
/// known. Errors: a file that cannot be read, or is of another stack; a replay that cannot make
/// them again.
pub fn divisions(spec: &Spec) -> Result<Option<Divisions>, ExperimentError> {
    let Some(path) = path_of(spec) else { return Ok(None) };
    check_replay(spec)?;
    if !path.is_file() {
        let (found, beside) = (path.display(), divisions_path(Path::new("TRACE")));
        let expected = format!("the file `{}` that a live server recorded", beside.display());
        return Err(refuse(spec, &format!("no file `{found}`"), &expected));
    }
    let divisions = Divisions::read(&path)?;
    let (head, cache) = (&divisions.head, &spec.cache);
    if head.origin_ns > 0 {
        let found = format!(
            "divisions of a recording that began {} after its server",
            Nanos(head.origin_ns).exact()
        );
        let expected = "one that began with its server: the intervals of a replay begin with it";
        return Err(refuse(spec, &found, expected));
    }
    let (partition, interval) = (&cache.partition.name, spec.replay.interval);
    if head.partition != *partition {
        let found = format!("divisions by `{}`", head.partition);
        return Err(refuse(spec, &found, &format!("those of `cache.partition`, `{partition}`")));
    }
    if head.interval_ns != interval.0 {
        let found = format!("an interval of {}", Nanos(head.interval_ns).exact());
        let expected = format!("that of `replay.interval`, {}", interval.exact());
        return Err(refuse(spec, &found, &expected));
    }
    if head.block_bytes != cache.block.0 {
        let found = format!("blocks of {}", Bytes(head.block_bytes));
        return Err(refuse(spec, &found, &format!("those of `cache.block`, {}", cache.block)));
    }
    let names: Vec<&str> = spec.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    if head.tenants != names {
        let found = format!("the tenants {}", head.tenants.join(", "));
        return Err(refuse(spec, &found, &format!("those of the stack: {}", names.join(", "))));
    }
    Ok(Some(divisions))
}

/// Errors: requests arrive at other times than recorded, or something else divides, too.
fn check_replay(spec: &Spec) -> Result<(), ExperimentError> {
    if spec.replay.closed() {
        return Err(refuse(spec, "`replay.loop = \"closed\"`", "`open` with recorded divisions"));
    }
    if spec.cache.layout.name != STRIPED {
        let found = format!("the layout `{}`", spec.cache.layout.name);
        return Err(refuse(spec, &found, "`striped` with recorded divisions"));
    }
    let front = spec.stack.as_ref().map(|stack| &stack.front);
    if matches!(front, Some(Front::DataCache(_))) {
        return Err(refuse(spec, "`machine.system = \"ssd\"`", "another with recorded divisions"));
    }
    Ok(())
}

/// A number that differs for different divisions, but for accidents; 0 without any.
pub fn divisions_fingerprint(divisions: Option<&Divisions>) -> u64 {
    let Some(divisions) = divisions else { return 0 };
    let row = |hash: u64, row: &cachewright_trace::DivisionRow| {
        row.quotas.iter().fold(mix(hash ^ row.time_ns), |hash, quota| mix(hash ^ u64::from(*quota)))
    };
    divisions.rows.iter().fold(mix(u64::from(divisions.head.capacity_blocks)), row)
}

impl Case {
    /// What makes the recorded divisions again in a cache of so many blocks, if there are some.
    /// Errors: they are of another capacity.
    pub fn recorded(&self, capacity_blocks: u32) -> Result<Option<Recorded>, ExperimentError> {
        let Some(divisions) = self.divisions.as_deref() else { return Ok(None) };
        let head = &divisions.head;
        if head.capacity_blocks != capacity_blocks {
            let found = format!("divisions of {} blocks", head.capacity_blocks);
            let expected = format!("those of `cache.capacity`, {capacity_blocks} blocks");
            return Err(refuse(&self.spec, &found, &expected));
        }
        let row = |row: &cachewright_trace::DivisionRow| {
            (row.time_ns / head.interval_ns, row.quotas.clone())
        };
        Ok(Some(Recorded::new(divisions.rows.iter().map(row).collect())))
    }
}
