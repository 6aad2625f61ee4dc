//! Running a stack file, and every combination of what is varied.
//!
//! For: deciding which cases share a recording and which share its signals, and putting the answers
//! in order. Must never know: how results are drawn. Cases already answered in the result directory
//! are not run again; each answer is written as soon as its case is done.

mod answers;

use crate::case::{Case, expand_with};
use crate::folder::{RESULT, check_owner};
use crate::foreign::ForeignPolicies;
use crate::history::fingerprint as fingerprint_of_histories;
use crate::json::{document, text as text_of};
use crate::lanes::{LanePlan, measured};
use crate::models::{Library, fingerprint as fingerprint_of_models};
use crate::profiles::Profiles;
use crate::progress::{OnProgress, Progress, Sum, check_threads};
use crate::record::{Kept, RecordedTenants, column, record};
use crate::recorded;
use crate::result;
use crate::spec::{replayed, replayed_or_served, resolved};
use crate::store::AnswerStore;
use crate::throughput::constant_throughput;
use crate::timed::{Timed, add_responses, shares_places, timing, workload};
use crate::wa::DriveUnderCache;
use crate::{ExperimentError, Spec};
use answers::{CaseResult, RunAnswers};
use cachewright_curve::{CurveSet, Method};
use cachewright_policy::{FutureSlice, Need as PolicyNeed};
use cachewright_result::case::Case as CaseAnswer;
use cachewright_system::event_loop::ConstantRun;
use cachewright_system::machines::Requests;
use cachewright_system::replay::ReplayInputs;
use cachewright_system::{
    CurveLane, Cuts, FutureKind, Lane, LaneResult, RecordError, Recording, Whose,
};
use cachewright_trace::{MergedRequests, formats};
use rayon::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that the caches of cases replayed at the same time may take together.
const CACHES_BYTES: u64 = 1 << 30;
/// Bytes a cache takes per distinct block of the workload, at most (LIRS takes the most).
const LANE_BYTES_PER_BLOCK: u64 = 24;
/// Bytes a drive takes per logical page, at most (Shiro takes the most).
const DRIVE_BYTES_PER_PAGE: u64 = 128;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Keys and the values each takes; all combinations are run.
    pub vary: Vec<(String, Vec<String>)>,
    /// Keys set over the stack file before anything is varied.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
    /// The result directory; nothing is written without one.
    pub out: Option<PathBuf>,
    /// Run every case anew even if the directory has its answer.
    pub fresh: bool,
    /// The policies of code outside that stacks may name.
    pub foreign: ForeignPolicies,
}

/// The resolved settings of a stack file. Errors: anything wrong with it; what a run refuses before
/// it reads requests: files that do not exist, a trace whose first request cannot be read, models,
/// a cache without a block. A stack that is only served needs no traces.
pub fn check(
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
) -> Result<Value, ExperimentError> {
    let spec = replayed_or_served(&crate::spec::read(text, origin, overrides)?)?;
    check_files(&spec)?;
    let is_served = spec.serve.as_ref().is_some_and(|serve| !serve.devices.is_empty());
    match spec.check_traces() {
        Ok(()) => {
            MergedRequests::open_on(
                spec.replay.clock(),
                spec.tenants.iter().map(|tenant| tenant.input(&tenant.path)).collect(),
            )?;
            let mut library = Library::default();
            let mut case = Case::single(spec);
            case.models = library.models(&case.spec, &case.needs)?;
            // Code outside only its caller can find.
            if !case.needs.policy_needs(PolicyNeed::Code) {
                case.caching = library.caching(&case.spec, &case.needs)?;
            }
            case.divisions = recorded::divisions(&case.spec)?.map(Arc::new);
            case.check(1)?;
            resolved(&case.spec)
        }
        Err(_) if is_served => resolved(&spec),
        Err(message) => Err(ExperimentError::spec(origin, message)),
    }
}

/// Errors: a trace or a history of a tenant does not exist.
fn check_files(spec: &Spec) -> Result<(), ExperimentError> {
    for tenant in &spec.tenants {
        let traces = match tenant.trace.is_empty() {
            true => Vec::new(),
            false => formats::files_of(&tenant.path, &tenant.open)?,
        };
        let traces = traces.iter().map(|path| (path, "a trace"));
        let history = tenant.history.as_ref().map(|path| (path, "its history"));
        let missing = traces.chain(history).find(|(path, _)| !path.is_file());
        if let Some((path, expected)) = missing {
            let (name, path) = (&tenant.name, path.display());
            let message = format!("tenant `{name}`: found no file `{path}`, expected {expected}");
            return Err(ExperimentError::spec(&spec.origin, message));
        }
    }
    Ok(())
}

/// Runs every combination; returns what `result.json` holds.
pub fn run(
    text: &str,
    origin: &Path,
    options: &RunOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    check_threads(options.threads)?;
    let file = crate::spec::read(text, origin, &options.set)?;
    let spec = replayed(&file)?;
    check_files(&spec)?;
    if let Some(out) = options.out.as_deref().filter(|_| !options.fresh) {
        check_owner(out, RESULT, &spec, "--fresh")?;
    }
    let foreign = &options.foreign;
    let cases = expand_with(&file, &options.vary, foreign, progress)?;
    for case in &cases {
        resolved(&case.spec)?;
        case.check(cases.len())?;
    }
    let sound = |news: Progress| foreign.is_sound() && progress(news);
    let mut run = Run {
        progress: &sound,
        foreign,
        store: AnswerStore::open(options.out.as_deref(), options.fresh)?,
        answers: RunAnswers::new(cases.len()),
    };
    let called = cases.iter().any(Case::has_code);
    let done = foreign.with_threads(options.threads, called, || run.all(&cases));
    match (foreign.checked(done), &options.out) {
        (Err(error), Some(out)) if error.is_cancelled() => Err(ExperimentError::Stopped {
            kept: run.store.kept(),
            cases: cases.len(),
            out: out.clone(),
        }),
        (Err(error), _) => Err(error),
        (Ok(()), _) => document(&run.answers.finish(&run.store, &spec, options)?),
    }
}

/// What a case found beside its cache's counters.
#[derive(Default)]
struct Extra<'a> {
    /// The times of a closed loop without devices.
    constant: Option<&'a ConstantRun>,
    /// The drive under the cache.
    drive: Option<DriveUnderCache>,
    /// The times on devices.
    timed: Option<&'a Timed>,
}

/// The state of a run.
struct Run<'a> {
    progress: OnProgress<'a>,
    foreign: &'a ForeignPolicies,
    store: AnswerStore,
    answers: RunAnswers,
}

impl Run<'_> {
    /// Runs all cases, together those that share a recording.
    fn all(&mut self, cases: &[Case]) -> Result<(), ExperimentError> {
        let mut left: Vec<&Case> = cases.iter().collect();
        while let Some(first) = left.first().copied() {
            let (group, rest) = left.into_iter().partition(|case| first.shares_recording(case));
            self.group(group)?;
            left = rest;
        }
        Ok(())
    }

    /// Runs the cases that share a recording.
    fn group(&mut self, group: Vec<&Case>) -> Result<(), ExperimentError> {
        let Some(first) = group.first().copied() else { return Ok(()) };
        let kept = group.iter().map(|case| case.kept()).fold(Kept::default(), Kept::and);
        let mut recorded = record(&first.spec, kept, self.progress)?;
        let mut lru = Vec::new();
        if !self.answers.has_head() {
            lru = if first.spec.replay.curves { lru_lanes(&first.spec) } else { Vec::new() };
            self.answers.set_head(&recorded, first, &[]);
        }
        let (mut open, mut closed, mut timed) = (Vec::new(), Vec::new(), Vec::new());
        let tenants = text_of(&recorded.tenants)?;
        let fingerprint = if self.store.keeps() { recorded.recording.fingerprint() } else { 0 };
        for case in group {
            case.check_interval(&recorded.recording)?;
            case.check_warmup(&recorded.recording)?;
            case.check_trims(&recorded)?;
            case.check_recorded_pauses(&recorded.recording)?;
            let resolved = text_of(&resolved(&case.spec)?)?;
            let models = fingerprint_of_models(&case.models, &case.caching);
            let read = models ^ recorded::fingerprint(case.divisions.as_deref());
            let read = read ^ fingerprint_of_histories(&case.histories);
            let key = AnswerStore::key(&resolved, &tenants, fingerprint ^ read);
            let kept: Option<(CaseAnswer, _)> =
                if case.is_kept() { self.store.load(&key)? } else { None };
            if let Some((answer, rows)) = kept {
                self.answers.reuse(case, answer, rows);
            } else if case.spec.stack.is_some() {
                timed.push((case, key));
            } else if case.spec.replay.closed() {
                closed.push((case, key));
            } else {
                open.push((case, key));
            }
        }
        let profiles = Profiles::default();
        self.closed(&closed, &recorded.recording, &profiles)?;
        while !open.is_empty() || !lru.is_empty() {
            let pass = next_pass(&mut open);
            self.pass(&pass, std::mem::take(&mut lru), &recorded, &profiles, first)?;
        }
        let requests = recorded.take_requests();
        self.timed(timed, &recorded, requests)
    }

    /// Runs the cases on devices, together those whose requests lie at the same places.
    fn timed(
        &mut self,
        mut left: Vec<(&Case, String)>,
        recorded: &RecordedTenants,
        mut requests: Requests,
    ) -> Result<(), ExperimentError> {
        let recording = &recorded.recording;
        while let Some((first, _)) = left.first() {
            let first = *first;
            let (group, rest): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(case, _)| shares_places(first, case));
            // Placing changes them, so that all groups but the last place a copy.
            let copy = if rest.is_empty() { Requests::default() } else { requests.clone() };
            let own = std::mem::replace(&mut requests, copy);
            let workload = workload(first, recorded, own, self.progress)?;
            let cases: Vec<&Case> = group.iter().map(|(case, _)| *case).collect();
            let answers = workload.replay(&cases, |index, found| {
                let (case, key) = &group[index];
                let extra = Extra { timed: Some(&found), ..Extra::default() };
                let rows = found.times.cache.rows.clone();
                Ok((self.answer(case, key, recording, &found.times.cache, extra)?, rows))
            })?;
            for ((case, _), (answer, rows)) in group.iter().zip(answers) {
                self.answers.take(case, answer, rows);
            }
            left = rest;
        }
        Ok(())
    }

    /// Bytes that the drive under a case's cache takes, about.
    fn drive_bytes(&self, case: &Case, recording: &Recording) -> u64 {
        let Some(flash) = &case.spec.flash else { return 0 };
        let blocks = case.capacity_blocks(recording.distinct).unwrap_or(0);
        u64::from(blocks) * (case.spec.cache.block.0 / flash.page.0) * DRIVE_BYTES_PER_PAGE
    }

    /// Cases of `pass` that are replayed at the same time, within the bound on memory.
    fn at_once(&self, pass: &[(&Case, String)], recording: &Recording) -> usize {
        let cache_bytes = u64::from(recording.distinct).max(1) * LANE_BYTES_PER_BLOCK;
        let drive_bytes = pass.iter().map(|(case, _)| self.drive_bytes(case, recording)).max();
        let within = (CACHES_BYTES / (cache_bytes + drive_bytes.unwrap_or(0))).max(1) as usize;
        // With fewer threads than that, one case per thread stays within the bound by itself.
        if rayon::current_num_threads() <= within { pass.len().max(1) } else { within }
    }

    /// Replays the whole recording through each case of `pass`, and through each lane of `lru`
    /// beside them. Cases have in common what they know of the future and of intervals.
    fn pass(
        &mut self,
        pass: &[(&Case, String)],
        lru: Vec<Box<dyn Lane>>,
        recorded: &RecordedTenants,
        profiles: &Profiles,
        first: &Case,
    ) -> Result<(), ExperimentError> {
        let recording = &recorded.recording;
        let (curves_wanted, lanes) = (!lru.is_empty(), lru.len() + pass.len());
        let mut foresight = FutureKind::Nothing;
        let mut largest_blocks = 0;
        for (case, _) in pass {
            largest_blocks = case.capacity_blocks(recording.distinct)?.max(largest_blocks);
            foresight = foresight.max(case.needs.future);
        }
        let timed = pass.first().map_or(first, |(case, _)| case);
        let replay_spec = &timed.spec.replay;
        let interval_ns = timed.interval_ns(recording.span_ns());
        let cuts = Cuts::new(recording, interval_ns, replay_spec.windows);
        let cuts = timed.with_warmup(cuts, recording);
        let futures = column(first, foresight, recording, &[])?;
        let cases: Vec<&Case> = pass.iter().map(|(case, _)| *case).collect();
        let signals = measured(recording, &cuts, &cases, largest_blocks);
        let shared =
            ReplayInputs { recording, futures: FutureSlice::None, cuts: &cuts, signals: &signals };
        let sum = Sum::new("replaying", recording.len() as u64 * lanes as u64, self.progress);
        let curve = |mut lane: Box<dyn Lane>| shared.replay_one(lane.as_mut(), sum.part());
        let replay_case = |(case, key): &(&Case, String)| {
            let plan = LanePlan::new(case, recording, profiles)?;
            let (drive, watcher) =
                DriveUnderCache::new(&case.spec, plan.capacity_blocks, case.index)?;
            let future = case.needs.future != FutureKind::Nothing;
            let futures = if future { futures.as_slice() } else { FutureSlice::None };
            let shared = ReplayInputs { futures, ..shared };
            let result = shared.replay_one(plan.lane(watcher)?.as_mut(), sum.part())?;
            let extra = Extra { drive, ..Extra::default() };
            Ok((self.answer(case, key, recording, &result, extra)?, result.rows))
        };
        let answers = || {
            let chunks = pass.chunks(self.at_once(pass, recording));
            chunks.flat_map(|cases| cases.par_iter().map(replay_case).collect::<Vec<_>>()).collect()
        };
        let (curves, answers): (Vec<_>, Vec<CaseResult>) =
            rayon::join(|| lru.into_par_iter().map(curve).collect(), answers);
        let curves = curves.into_iter().collect::<Result<Vec<LaneResult>, RecordError>>()?;
        if curves_wanted {
            self.answers.set_head(recorded, first, &curves);
        }
        self.answers.take_all(pass, answers)
    }

    /// Runs closed-loop cases without devices, in parallel; each is kept when it is done.
    fn closed(
        &mut self,
        cases: &[(&Case, String)],
        recording: &Recording,
        profiles: &Profiles,
    ) -> Result<(), ExperimentError> {
        if cases.is_empty() {
            return Ok(());
        }
        let total = (recording.times_ns().len() * cases.len()) as u64;
        let sum = Sum::new("replaying (closed loop)", total, self.progress);
        let replay_case = |(case, key): &(&Case, String)| {
            let plan = LanePlan::new(case, recording, profiles)?;
            let (drive, watcher) =
                DriveUnderCache::new(&case.spec, plan.capacity_blocks, case.index)?;
            let found = plan.run_closed(watcher, &mut sum.part())?;
            let extra = Extra { constant: Some(&found), drive, ..Extra::default() };
            let answer = self.answer(case, key, recording, &found.cache, extra)?;
            Ok((answer, found.cache.rows))
        };
        let answers = cases.par_iter().map(replay_case).collect();
        self.answers.take_all(cases, answers)
    }

    /// What a case found, which is written down at once.
    fn answer(
        &self,
        case: &Case,
        key: &str,
        recording: &Recording,
        lane: &LaneResult,
        extra: Extra<'_>,
    ) -> Result<CaseAnswer, ExperimentError> {
        self.foreign.checked(Ok(()))?;
        let capacity_blocks = case.capacity_blocks(recording.distinct)?;
        let goals = case.goals()?;
        let answers = extra.constant.map(|found| found.answers.as_slice());
        let mut answer = result::answer(case, capacity_blocks, lane, answers, &goals);
        answer.throughput = extra.constant.and_then(|found| constant_throughput(case, found));
        if let Some(drive) = extra.drive {
            answer.flash = Some(drive.report()?);
        }
        if let Some(found) = extra.timed {
            let timing = timing(case, found, capacity_blocks);
            add_responses(case, &mut answer, &timing);
            answer.timing = Some(timing);
        }
        if case.is_kept() {
            self.store.save(key, &answer, &lane.rows)?;
        }
        Ok(answer)
    }
}

/// Takes the next cases that have in common what is measured in intervals and known of the future.
fn next_pass<'c>(open: &mut Vec<(&'c Case, String)>) -> Vec<(&'c Case, String)> {
    let Some((first, _)) = open.first() else { return Vec::new() };
    let first = *first;
    let (pass, rest) =
        std::mem::take(open).into_iter().partition(|(case, _)| first.shares_pass(case));
    *open = rest;
    pass
}

/// Exact LRU curves: one lane for all tenants together and one for each.
fn lru_lanes(spec: &Spec) -> Vec<Box<dyn Lane>> {
    let tenants = (0..spec.tenants.len()).map(|tenant| Whose::Tenant(tenant as u16));
    std::iter::once(Whose::All)
        .chain(tenants)
        .map(|whose| {
            let set = CurveSet::new(1, &Method::Exact, spec.seed);
            Box::new(CurveLane::new(set, whose, false)) as Box<dyn Lane>
        })
        .collect()
}
