//! One combination of settings, and all combinations of what is varied.
//!
//! For: expanding `--vary` into cases in a fixed order, and telling which cases can share a
//! recording. Must never know: how a case is run.

use crate::ExperimentError;
use crate::foreign::ForeignPolicies;
use crate::history::{HistoryReader, TenantHistories};
use crate::models::{Caching, Library};
use crate::progress::{OnProgress, Progress};
use crate::recorded;
use crate::spec::{Front, Scheme, Spec, Stop, TenantSpec, full_key};
use cachewright_curve::signal::SignalSet;
use cachewright_partition::{Models, Need, Partitioner, Provision};
use cachewright_stack::{Shared, Warmup};
use cachewright_system::profile::PolicyInputs;
use cachewright_system::{Cuts, FutureKind, Recording};
use cachewright_trace::Divisions;
use cachewright_types::registry::check_needs;
use cachewright_types::{Nanos, Size, TenantId};
use std::path::Path;
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

/// All combinations, the last key varying fastest. Errors: too many, a stack file that is wrong
/// with one of them, a model that cannot be read.
pub fn expand(
    text: &str,
    origin: &Path,
    set: &[(String, String)],
    vary: &[(String, Vec<String>)],
) -> Result<Vec<Case>, ExperimentError> {
    expand_with(text, origin, set, vary, &ForeignPolicies::default(), &|_| true)
}

/// The same with policies of code outside, and with progress. Errors: as [`expand`]; code that is
/// not found; cancelled.
pub fn expand_with(
    text: &str,
    origin: &Path,
    set: &[(String, String)],
    vary: &[(String, Vec<String>)],
    foreign: &ForeignPolicies,
    progress: OnProgress<'_>,
) -> Result<Vec<Case>, ExperimentError> {
    let count = count(vary)?;
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
        let overrides: Vec<_> = set.iter().chain(&varied).cloned().collect();
        let spec = crate::spec::parse(text, origin, &overrides)?;
        let (models, caching) = (library.models(&spec)?, library.caching(&spec)?);
        let divisions = recorded::divisions(&spec)?.map(Arc::new);
        let histories = histories.histories(&spec, progress)?;
        cases.push(Case { index, spec, varied, models, caching, histories, divisions });
    }
    Ok(cases)
}

impl Case {
    /// The only case of a stack, whose partitioner needs no models.
    pub fn single(spec: Spec) -> Case {
        let (varied, models, caching, histories, divisions) = Default::default();
        Case { index: 0, spec, varied, models, caching, histories, divisions }
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
        self.wants()?;
        self.goals()?;
        if self.divisions.is_none() {
            self.partitioner()?;
        }
        self.check_rows(cases)?;
        self.check_code()
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
        let worth = |case: &Case| {
            FutureKind::of_policy(&case.spec.cache.policy.name) == FutureKind::Benefit
        };
        !self.spec.replay.closed()
            && self.spec.can_share(&other.spec, Shared::Pass)
            && self.steps() == other.steps()
            && self.own_curves() == other.own_curves()
            && worth(self) == worth(other)
    }

    /// Whose curves are measured in intervals, where they are not LRU's.
    fn own_curves(&self) -> Option<(&Scheme, Size)> {
        let kind = self.curve_kind().filter(|kind| kind.own_policy && !kind.ahead);
        kind.map(|_| (&self.spec.cache.policy, self.spec.cache.capacity))
    }

    /// The capacity in blocks, given the working set in blocks.
    pub fn capacity_blocks(&self, working_set: u32) -> Result<u32, ExperimentError> {
        self.spec.capacity_blocks(Some(working_set)).map_err(|error| self.refuse(error))
    }

    /// What the policy is told of the future. Errors: something, and the replay has none.
    pub fn foresight(&self) -> Result<FutureKind, ExperimentError> {
        let name = &self.spec.cache.policy.name;
        let foresight = FutureKind::of_policy(name);
        let needs = foresight != FutureKind::Nothing;
        if needs && self.spec.replay.closed() {
            return Err(self.refuse(format!(
                "`cache.policy`: `{name}` needs the future, which a closed loop does not \
                     have; expected `replay.loop = \"open\"` or another policy"
            )));
        }
        if needs && self.caches_in_drive() {
            return Err(self.refuse(format!(
                "`cache.policy`: `{name}` needs the future, which the data cache of a drive \
                     does not have; expected another policy with `machine.system = \"ssd\"`"
            )));
        }
        Ok(foresight)
    }

    /// Whether the policy reads whole requests.
    pub fn reads_requests(&self) -> bool {
        reads_requests(&self.spec.cache.policy.name)
    }

    /// What the policy must know ahead of a replay. Errors: the replay does not have it.
    pub fn wants(&self) -> Result<PolicyInputs, ExperimentError> {
        let (future, requests) = (self.foresight()?, self.reads_requests());
        if requests && self.caches_in_drive() {
            return Err(self.refuse(format!(
                "`cache.policy`: `{}` needs whole requests, of which the data cache of a \
                     drive sees pages; expected another policy with `machine.system = \"ssd\"`",
                self.spec.cache.policy.name
            )));
        }
        Ok(PolicyInputs { future, requests })
    }

    /// Whether anything ends at a time: a window, an interval, or the trace's own order per tenant.
    pub fn needs_times(&self) -> bool {
        let replay = &self.spec.replay;
        self.spec.stack.is_some()
            || replay.closed()
            || replay.windows > 0
            || !replay.warmup.is_none()
            || self.needs(Need::Interval)
    }

    /// Steps per interval that the partitioner is told of; 0 if it reads none.
    pub fn steps(&self) -> u32 {
        if !self.needs(Need::Features) {
            return 0;
        }
        self.spec.partitioner().map_or(0, |partitioner| partitioner.steps())
    }

    /// Whether a recording must keep the keys of blocks: something may sample them, or know them
    /// from one interval to the next.
    pub fn needs_keys(&self) -> bool {
        [Need::Curve, Need::Features, Need::Reuse].into_iter().any(|need| self.needs(need))
    }

    /// Whether a recording must keep the bytes of each access; on devices the requests have them.
    pub fn needs_bytes(&self) -> bool {
        let windows = self.spec.replay.throughput_window.0 > 0;
        self.spec.stack.is_none() && (windows || self.steps() > 0)
    }

    /// Whether a recording must keep the processes of requests; on devices the requests have them.
    pub fn needs_calls(&self) -> bool {
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

    /// The same of a recording, for cases without devices. Errors: one has none.
    pub fn check_recorded_pauses(&self, recording: &Recording) -> Result<(), ExperimentError> {
        let named = |tenant| recording.is_empty() || recording.names_processes(tenant);
        if self.needs_calls() { self.check_pauses(named) } else { Ok(()) }
    }

    /// Whether the partitioner needs this.
    pub fn needs(&self, need: Need) -> bool {
        self.partition_needs().contains(&need)
    }

    /// What the partitioner needs; recorded divisions need intervals only.
    fn partition_needs(&self) -> &'static [Need] {
        if self.divisions.is_some() {
            return &[Need::Interval];
        }
        let name = &self.spec.cache.partition.name;
        cachewright_partition::entry(name).map_or(&[], |entry| entry.needs)
    }

    /// The interval of a replay over `span_ns`, in nanoseconds. 0, no intervals, where they would
    /// be too many and nothing divides the cache when one ends.
    pub fn interval_ns(&self, span_ns: u64) -> u64 {
        let interval = self.spec.replay.interval.0;
        let too_many = span_ns.checked_div(interval).is_some_and(|count| count > MAX_INTERVALS);
        if too_many && !self.needs(Need::Interval) { 0 } else { interval }
    }

    /// Checks that a replay has a sane number of intervals if something divides the cache when one
    /// ends. Errors: ten millions and more.
    pub fn check_interval(&self, recording: &Recording) -> Result<(), ExperimentError> {
        match self.needs(Need::Interval) {
            true => self.check_intervals(recording),
            false => Ok(()),
        }
    }

    /// The same where intervals are asked for, whatever divides the cache.
    pub fn check_intervals(&self, recording: &Recording) -> Result<(), ExperimentError> {
        let (interval, span_ns) = (self.spec.replay.interval, recording.span_ns());
        match span_ns.checked_div(interval.0) {
            Some(count) if count > MAX_INTERVALS => {
                let fits = |length: &&u64| span_ns / **length <= MAX_INTERVALS;
                let longer = LONGER_INTERVALS_NS.iter().find(fits).copied().unwrap_or(span_ns);
                Err(self.refuse(format!(
                    "`replay.interval`: found {interval}, which ends {count} times in traces that \
                     span {}{}; expected at most {MAX_INTERVALS} intervals, as with \
                     `--set replay.interval={}`",
                    Nanos(span_ns),
                    longest_pause(recording.times_ns()),
                    Nanos(longer).exact()
                )))
            }
            _ => Ok(()),
        }
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

    /// Checks that something arrives after the warm-up of an open loop. Errors: nothing does.
    pub fn check_warmup(&self, recording: &Recording) -> Result<(), ExperimentError> {
        let (warmup, span_ns) = (self.spec.replay.warmup, recording.span_ns());
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

    /// When the warm-up ends: with one by requests, at the arrival of the first that is counted.
    pub fn warmup_ns(&self, recording: &Recording) -> u64 {
        if self.spec.replay.warmup == Warmup::History {
            return recording.begin_ns;
        }
        match self.warm_requests(recording) {
            Some(request) => recording.times_ns().get(request).copied().unwrap_or_default(),
            None => self.spec.replay.warmup.time().unwrap_or_default().0,
        }
    }

    /// `cuts` with the end of the warm-up.
    pub fn with_warmup(&self, cuts: Cuts, recording: &Recording) -> Cuts {
        match self.warm_requests(recording) {
            Some(request) => cuts.with_warmup_before(recording, request),
            None => cuts.with_warmup(recording, self.warmup_ns(recording)),
        }
    }

    /// The first request that is counted, where the warm-up is one by requests.
    fn warm_requests(&self, recording: &Recording) -> Option<usize> {
        let requests = self.spec.replay.warmup.requests(recording.data_requests())?;
        Some(if requests == 0 { 0 } else { recording.data_request(requests) })
    }

    /// Every tenant's goal as a hit ratio. Errors: a latency out of reach; no goal at all for a
    /// partitioner that needs one (with some, those without are content with one block).
    pub fn goals(&self) -> Result<Vec<Option<f64>>, ExperimentError> {
        let refuse = |message| self.refuse(message);
        let goals = self.spec.goals().map_err(refuse)?;
        let given = self.spec.tenants.iter().any(|tenant| tenant.goal.is_some());
        self.check_needs(given).map_err(|error| refuse(format!("`cache.partition`: {error}")))?;
        self.spec.check_response_goals(self.partition_needs()).map_err(refuse)?;
        Ok(goals)
    }

    /// Checks that the run has what the partitioner needs; `goal` says whether a tenant has a goal.
    /// Errors: the first need that is not met, and the key that would meet it.
    fn check_needs(&self, goal: bool) -> Result<(), String> {
        if self.divisions.is_some() {
            return Ok(());
        }
        let entry = cachewright_partition::entry(&self.spec.cache.partition.name);
        let entry = entry.map_err(|error| error.to_string())?;
        check_needs("partitioner", entry, |need| self.missing(need.provision(), goal))
            .map_err(|error| error.to_string())
    }

    /// The keys of a stack file that would provide this; nothing if the run provides it.
    fn missing(&self, provision: Provision, goal: bool) -> Option<String> {
        let spec = &self.spec;
        let (provided, remedy) = match provision {
            Provision::Any => return None,
            Provision::Goal => {
                (goal, "`goal_hit_ratio` or `goal_latency` in at least one `[[tenant]]`")
            }
            Provision::TenantModels => {
                let without = spec.tenants.iter().position(|tenant| tenant.model.is_none());
                let complete = self.models.each.len() == spec.tenants.len();
                let key = format!("a file in `tenant[{}].model`", without.unwrap_or(0) + 1);
                return (!complete).then_some(key);
            }
            Provision::JointModel => (self.models.joint.is_some(), "a file in `cache.model`"),
            Provision::Devices => {
                (spec.stack.is_some(), "`[device]` tables, which give every request a time")
            }
            Provision::OpenLoopDevices => (
                spec.stack.is_some() && !spec.replay.closed(),
                "`[device]` tables and `replay.loop = \"open\"`: a closed loop has another future \
                 at every size",
            ),
            Provision::DriveCache => (self.caches_in_drive(), "`machine.system = \"ssd\"`"),
        };
        (!provided).then(|| remedy.to_owned())
    }

    /// The signals that the partitioner reads.
    pub fn signals(&self) -> SignalSet {
        Need::signals(self.partition_needs())
    }

    /// The partitioner with its models. Errors: a setting or a model that it refuses.
    pub fn partitioner(&self) -> Result<Box<dyn Partitioner>, ExperimentError> {
        let refuse = |message| self.refuse(message);
        let named = &self.spec.cache.partition;
        let mut partitioner = self.spec.partitioner().map_err(refuse)?;
        let key = if self.needs(Need::JointModel) { "cache.model" } else { "tenant.model" };
        partitioner.learn(&self.models).map_err(|error| {
            refuse(format!("`{key}`: found a file that `{}` cannot use: {error}", named.name))
        })?;
        Ok(partitioner)
    }
}

/// Whether a policy reads whole requests, by its name.
pub fn reads_requests(policy: impl AsRef<str>) -> bool {
    let entry = cachewright_policy::entry(policy.as_ref());
    entry.is_ok_and(|entry| entry.needs.contains(&cachewright_policy::Need::Requests))
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
