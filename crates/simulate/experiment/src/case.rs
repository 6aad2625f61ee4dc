//! One combination of settings, all combinations of what is varied, and a case on what it replays.
//!
//! Cases are expanded in a fixed order, the last key varying fastest.

use crate::ExperimentError;
use crate::continued;
use crate::foreign::ForeignPolicies;
use crate::models::{Caching, Library};
use crate::needs::Needs;
use crate::progress::{OnProgress, Progress};
use crate::record;
use crate::record::Kept;
use crate::record::{HistoryReader, TenantHistories};
use crate::spec::{Front, Scheme, Spec, Stop, TenantSpec, full_key, replayed};
use cachewright_partition::{Models, Need, Partitioner};
use cachewright_stack::{Shared, StackFile, Warmup};
use cachewright_system::{Cuts, FutureKind, Recording};
use cachewright_trace::{Divisions, RecordedState};
use cachewright_types::{Nanos, Size, TenantId};
use std::ops::Deref;
use std::sync::Arc;

/// Intervals of one replay at most: each keeps a place in the trace, and curves where one reads
/// them.
const MAX_INTERVALS: u64 = 10_000_000;
/// Intervals proposed for longer spans: a second, a minute, an hour, a day, a month.
const LONGER_INTERVALS_NS: [u64; 5] =
    [1_000_000_000, 60_000_000_000, 3_600_000_000_000, 86_400_000_000_000, 2_592_000_000_000_000];

/// Rows of all time series of a sweep at most.
const MAX_ROWS: u64 = 20_000_000;

/// One combination.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number, in order of expansion.
    pub index: usize,
    /// The full spec of this combination.
    pub spec: Spec,
    /// The keys varied, in full, and this case's values, as written.
    pub varied: Vec<(String, String)>,
    /// The models that its partitioner needs.
    pub models: Arc<Models>,
    /// The models that its policy needs.
    pub caching: Arc<Caching>,
    /// What its partitioner takes something of ahead.
    pub histories: TenantHistories,
    /// Recorded divisions, which are made instead of its partitioner's.
    pub divisions: Option<Arc<Divisions>>,
    /// What decided in a live server when the recording began, which the replay continues from.
    pub state: Option<Arc<RecordedState>>,
    /// What its policy and its partitioner need of a run.
    pub needs: Needs,
}

/// Cases of one sweep at most: each is read and checked before the first is run.
pub const MAX_CASES: usize = 100_000;

/// How many combinations there are. Errors: too many.
pub fn count(vary: &[(String, Vec<String>)]) -> Result<usize, ExperimentError> {
    let counts = vary.iter().map(|(_, values)| values.len());
    let count = counts.clone().try_fold(1, usize::checked_mul);
    count.filter(|count| *count <= MAX_CASES).ok_or_else(|| {
        let found = counts.map(|count| count.to_string()).collect::<Vec<_>>().join(" x ");
        ExperimentError::Option(format!(
            "`vary`: found {found} combinations, expected at most {MAX_CASES}"
        ))
    })
}

/// All combinations of what is varied over a stack file, the last key varying fastest. Errors: too
/// many, a stack that is wrong with one of them, a model that cannot be read.
pub fn expand(
    file: &StackFile,
    vary: &[(String, Vec<String>)],
) -> Result<Vec<Case>, ExperimentError> {
    expand_with(file, vary, &ForeignPolicies::default(), &|_| true)
}

/// The only case of a stack file. Errors: as [`expand`].
pub fn single(file: &StackFile) -> Result<Case, ExperimentError> {
    Ok(expand(file, &[])?.swap_remove(0))
}

/// The same with policies of code outside, and with progress. Errors: as [`expand`]; code that is
/// not found; cancelled.
pub fn expand_with(
    file: &StackFile,
    vary: &[(String, Vec<String>)],
    foreign: &ForeignPolicies,
    progress: OnProgress<'_>,
) -> Result<Vec<Case>, ExperimentError> {
    let (count, origin) = (count(vary)?, file.origin());
    let mut cases = Vec::with_capacity(count);
    let (mut library, mut histories) = (Library::with(foreign), HistoryReader::default());
    for index in 0..count {
        let total = Some(count as u64);
        if !progress(Progress { stage: "reading cases", done: index as u64, total }) {
            return Err(ExperimentError::Cancelled);
        }
        let mut remainder = index;
        let mut varied = Vec::with_capacity(vary.len());
        for (key, values) in vary.iter().rev() {
            varied.push((full_key(key), values[remainder % values.len()].clone()));
            remainder /= values.len();
        }
        varied.reverse();
        let file = file.with(&varied);
        let file = file.map_err(|message| ExperimentError::spec(origin, message))?;
        let spec = replayed(&file)?;
        let needs = Needs::of(&spec);
        let models = library.models(&spec, &needs)?;
        let caching = library.caching(&spec, &needs)?;
        let divisions = record::divisions(&spec)?.map(Arc::new);
        let state = continued::state(&spec)?.map(Arc::new);
        let histories = histories.histories(&spec, &needs, progress)?;
        cases.push(Case {
            index,
            spec,
            varied,
            models,
            caching,
            histories,
            divisions,
            state,
            needs,
        });
    }
    Ok(cases)
}

impl Case {
    /// The only case of a stack, whose partitioner needs no models.
    pub fn single(spec: Spec) -> Case {
        let needs = Needs::of(&spec);
        let (varied, models, caching, histories, divisions) = Default::default();
        let state = None;
        Case { index: 0, spec, varied, models, caching, histories, divisions, state, needs }
    }

    /// The refusal of the case, by key and value.
    pub fn refuse(&self, message: impl Into<String>) -> ExperimentError {
        ExperimentError::spec(&self.spec.origin, message)
    }

    /// What is known to be wrong before requests are read; `cases` are run together. Errors: the
    /// first of it.
    pub fn check(&self, cases: usize) -> Result<(), ExperimentError> {
        if !matches!(self.spec.cache.capacity, Size::WorkingSetPercent(_)) {
            self.spec.capacity_blocks(None).map_err(|error| self.refuse(error))?;
        }
        self.check_schemes()?;
        self.check_rows(cases)?;
        self.check_code()
    }

    /// Checks the settings of the policy and the partitioner, and that the run has what both need.
    /// Errors: the first that is wrong.
    pub fn check_schemes(&self) -> Result<(), ExperimentError> {
        self.check_policy()?;
        self.goals()?;
        self.check_partitioner()?;
        if self.divisions.is_none() {
            self.partitioner()?;
        }
        Ok(())
    }

    /// Whether the cache is the data cache of a drive.
    pub fn caches_in_drive(&self) -> bool {
        let front = self.spec.stack.as_ref().map(|stack| &stack.front);
        matches!(front, Some(Front::DataCache(_)))
    }

    /// Whether two cases replay the same block accesses.
    pub fn shares_recording(&self, other: &Case) -> bool {
        let ends = |case: &Case| -> Vec<_> {
            let closed = case.spec.replay.closed();
            case.spec.tenants.iter().map(|tenant| recorded_end(tenant, closed)).collect()
        };
        self.spec.can_share(&other.spec, Shared::Recording) && ends(self) == ends(other)
    }

    /// Whether two cases of one recording can be fed by one pass.
    pub fn shares_pass(&self, other: &Case) -> bool {
        // One column of the future goes with a pass, and a benefit is no next use.
        let worth = |case: &Case| case.needs.future == FutureKind::Benefit;
        !self.spec.replay.closed()
            && self.spec.can_share(&other.spec, Shared::Pass)
            && self.needs.steps == other.needs.steps
            && self.own_curves() == other.own_curves()
            && worth(self) == worth(other)
    }

    /// Whose curves are measured in intervals, where they are not LRU's.
    fn own_curves(&self) -> Option<(&Scheme, Size)> {
        let kind = self.needs.curves.filter(|kind| kind.own_policy && !kind.ahead);
        kind.map(|_| (&self.spec.cache.policy, self.spec.cache.capacity))
    }

    /// The case on what it replays. Errors: a capacity that cannot be, a latency out of reach.
    pub fn resolve<'a>(
        &'a self,
        recording: &'a Recording,
    ) -> Result<ResolvedCase<'a>, ExperimentError> {
        let capacity_blocks = self.spec.capacity_blocks(Some(recording.distinct));
        let capacity_blocks = capacity_blocks.map_err(|error| self.refuse(error))?;
        let goals = self.goals()?;
        let warm_request = self.warm_request(recording);
        Ok(ResolvedCase {
            case: self,
            recording,
            capacity_blocks,
            goals,
            interval_ns: self.interval_ns(recording.span_ns()),
            warmup_ns: self.warmup_ns(recording, warm_request),
            warm_request,
        })
    }

    /// The interval of a replay over `span_ns`, in nanoseconds. 0, no intervals, where they would
    /// be too many and nothing divides the cache when one ends.
    fn interval_ns(&self, span_ns: u64) -> u64 {
        let interval = self.spec.replay.interval.0;
        let too_many = span_ns.checked_div(interval).is_some_and(|count| count > MAX_INTERVALS);
        if too_many && !self.needs.partitioner_needs(Need::Interval) { 0 } else { interval }
    }

    /// The first request that is counted, where the warm-up is one by requests.
    fn warm_request(&self, recording: &Recording) -> Option<usize> {
        let requests = self.spec.replay.warmup.requests(recording.data_requests())?;
        Some(if requests == 0 { 0 } else { recording.data_request(requests) })
    }

    /// When the warm-up ends: with one by requests, at the arrival of the first that is counted.
    fn warmup_ns(&self, recording: &Recording, warm_request: Option<usize>) -> u64 {
        if self.spec.replay.warmup == Warmup::History {
            return recording.begin_ns;
        }
        match warm_request {
            Some(request) => recording.times_ns().get(request).copied().unwrap_or_default(),
            None => self.spec.replay.warmup.time().unwrap_or_default().0,
        }
    }

    /// What its recording must keep beside blocks.
    pub fn kept(&self) -> Kept {
        Kept {
            times: self.needs_times(),
            keys: self.needs.keys(),
            bytes: self.needs_bytes(),
            uneven_bytes: self.spec.stack.is_none(),
            requests: self.needs.inputs().requests,
            calls: self.needs_calls(),
            devices: self.spec.stack.is_some(),
        }
    }

    /// Whether anything ends at a time: a window, an interval, or the trace's own order per tenant.
    fn needs_times(&self) -> bool {
        let replay = &self.spec.replay;
        self.spec.stack.is_some()
            || replay.closed()
            || replay.windows > 0
            || !replay.warmup.is_none()
            || self.needs.partitioner_needs(Need::Interval)
    }

    /// Whether a recording must keep the bytes of each access; on devices the requests have them.
    fn needs_bytes(&self) -> bool {
        let windows = self.spec.replay.throughput_window.0 > 0;
        self.spec.stack.is_none() && (windows || self.needs.steps > 0)
    }

    /// Whether a recording must keep the processes of requests; on devices the requests have them.
    fn needs_calls(&self) -> bool {
        let mut tenants = self.spec.tenants.iter();
        self.spec.stack.is_none() && tenants.any(|tenant| tenant.recorded_pauses())
    }

    /// Checks that the trace of every tenant that pauses as recorded has processes; `named` says
    /// whether that of a tenant does. Errors: one has none.
    pub fn check_pauses(&self, named: impl Fn(TenantId) -> bool) -> Result<(), ExperimentError> {
        let lacks = |index: &usize| {
            self.spec.tenants[*index].recorded_pauses() && !named(TenantId(*index as u16))
        };
        let Some(tenant) = (0..self.spec.tenants.len()).find(lacks) else { return Ok(()) };
        let expected = "expected a trace of calls by process (`syscall`), or `think-time`";
        let message = format!("`tenant[{}].pauses`: found `recorded`, {expected}", tenant + 1);
        Err(self.refuse(message))
    }

    /// Checks that the time series of so many cases fit in memory. Errors: they do not.
    pub fn check_rows(&self, cases: usize) -> Result<(), ExperimentError> {
        let (windows, tenants) = (u64::from(self.spec.replay.windows), self.spec.tenants.len());
        let lines = cases as u64 * (tenants as u64 + 1);
        if windows * lines <= MAX_ROWS {
            return Ok(());
        }
        Err(self.refuse(format!(
            "`replay.windows`: found {windows} with {cases} cases and {tenants} tenants, \
                 expected at most {}: {MAX_ROWS} rows of time series in all",
            MAX_ROWS / lines
        )))
    }

    /// Every tenant's goal as a hit ratio; with some, tenants without are content with one block.
    /// Errors: a latency out of reach.
    pub fn goals(&self) -> Result<Vec<Option<f64>>, ExperimentError> {
        self.spec.goals().map_err(|error| self.refuse(error))
    }

    /// The partitioner with its models. Errors: a setting or a model that it refuses.
    pub fn partitioner(&self) -> Result<Box<dyn Partitioner>, ExperimentError> {
        self.partitioner_without(&[], &self.models)
    }

    /// The same of a server that has removed the tenants that are `absent`; `models` are of those
    /// that it serves, by their numbers. Errors: as of [`Case::partitioner`].
    pub fn partitioner_without(
        &self,
        absent: &[bool],
        models: &Models,
    ) -> Result<Box<dyn Partitioner>, ExperimentError> {
        let refuse = |message| self.refuse(message);
        let named = &self.spec.cache.partition;
        let mut partitioner = self.spec.partitioner_without(absent).map_err(refuse)?;
        let joint = self.needs.partitioner_needs(Need::JointModel);
        let key = if joint { "cache.model" } else { "tenant.model" };
        partitioner.learn(models).map_err(|error| {
            refuse(format!("`{key}`: found a file that `{}` cannot use: {error}", named.name))
        })?;
        Ok(partitioner)
    }
}

/// A case on the recording that it replays: what follows from both, found once.
#[derive(Clone, Debug)]
pub struct ResolvedCase<'a> {
    /// The case.
    pub case: &'a Case,
    /// What it replays.
    pub recording: &'a Recording,
    /// Its cache.
    pub capacity_blocks: u32,
    /// Every tenant's goal as a hit ratio.
    pub goals: Vec<Option<f64>>,
    /// How often the cache is divided again; 0 for never.
    pub interval_ns: u64,
    /// When the warm-up ends.
    pub warmup_ns: u64,
    warm_request: Option<usize>,
}

impl Deref for ResolvedCase<'_> {
    type Target = Case;

    fn deref(&self) -> &Case {
        self.case
    }
}

impl ResolvedCase<'_> {
    /// `cuts` with the end of the warm-up.
    pub fn with_warmup(&self, cuts: Cuts) -> Cuts {
        match self.warm_request {
            Some(request) => cuts.with_warmup_before(self.recording, request),
            None => cuts.with_warmup(self.recording, self.warmup_ns),
        }
    }

    /// Checks what only the traces show. Errors: too many intervals, nothing behind the warm-up,
    /// pauses that were not recorded.
    pub fn check_replay(&self) -> Result<(), ExperimentError> {
        self.check_interval()?;
        self.check_warmup()?;
        self.check_recorded_pauses()
    }

    /// Checks that a replay has a sane number of intervals if something divides the cache when one
    /// ends. Errors: ten millions and more.
    fn check_interval(&self) -> Result<(), ExperimentError> {
        match self.needs.partitioner_needs(Need::Interval) {
            true => self.check_intervals(),
            false => Ok(()),
        }
    }

    /// The same where intervals are asked for, whatever divides the cache.
    pub fn check_intervals(&self) -> Result<(), ExperimentError> {
        let (interval, span_ns) = (self.spec.replay.interval, self.recording.span_ns());
        match span_ns.checked_div(interval.0) {
            Some(count) if count > MAX_INTERVALS => {
                let fits = |length: &&u64| span_ns / **length <= MAX_INTERVALS;
                let longer = LONGER_INTERVALS_NS.iter().find(fits).copied().unwrap_or(span_ns);
                Err(self.refuse(format!(
                    "`replay.interval`: found {interval}, which ends {count} times in traces that \
                     span {}{}; expected at most {MAX_INTERVALS} intervals, as with \
                     `--set replay.interval={}`",
                    Nanos(span_ns),
                    longest_pause(self.recording.times_ns()),
                    Nanos(longer).exact()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Checks that something arrives after the warm-up of an open loop. Errors: nothing does.
    pub fn check_warmup(&self) -> Result<(), ExperimentError> {
        let (warmup, recording) = (self.spec.replay.warmup, self.recording);
        let span_ns = recording.span_ns();
        let (all, text) = (recording.data_requests(), warmup.text());
        if warmup == Warmup::History && recording.begin_ns == 0 {
            let expected = "a tenant with a `history`";
            return Err(self.refuse(format!("`replay.warmup`: found {text}, expected {expected}")));
        }
        if warmup.requests(all).is_some_and(|requests| requests > 0 && requests >= all) {
            return Err(self.refuse(format!(
                "`replay.warmup`: found {text} for traces of {all} reads and writes, expected fewer"
            )));
        }
        match warmup.time() {
            Some(time) if !self.spec.replay.closed() && time.0 > span_ns => {
                Err(self.refuse(format!(
                    "`replay.warmup`: found {time} for traces that span {}, expected less",
                    Nanos(span_ns)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Checks the same of the recording, for cases without devices. Errors: one has none.
    fn check_recorded_pauses(&self) -> Result<(), ExperimentError> {
        let named = |tenant| self.recording.is_empty() || self.recording.names_processes(tenant);
        if self.needs_calls() { self.check_pauses(named) } else { Ok(()) }
    }
}

/// Where the recording of a tenant ends: the share of its requests, and a time of an open loop.
pub(crate) fn recorded_end(tenant: &TenantSpec, closed: bool) -> (Option<f64>, Option<Nanos>) {
    let share = match tenant.stop {
        Some(Stop::Share(share)) => Some(share),
        _ => None,
    };
    (share, tenant.until.filter(|_| !closed))
}

/// The longest time between two requests and the later one, in words; it tells a jump of a clock.
fn longest_pause(times_ns: &[u64]) -> String {
    let pauses = times_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).enumerate();
    match pauses.max_by_key(|(_, pause)| *pause) {
        Some((before, pause)) if pause > 0 => {
            format!(" (the longest pause, {}, is before request {})", Nanos(pause), before + 2)
        }
        _ => String::new(),
    }
}
