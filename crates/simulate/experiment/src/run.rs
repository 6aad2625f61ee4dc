//! Running a stack file, and every combination of what is varied.
//!
//! Cases that replay the same block accesses share a recording, and of these some a pass over it.
//! Cases already answered in the result folder are not run again; each answer is written as soon as
//! its case is done.

use crate::answers;
use crate::answers::constant_throughput;
use crate::answers::{CaseResult, RunAnswers};
use crate::case::{Case, ResolvedCase, expand_with};
use crate::folder::{AnswerStore, RESULT, check_owner, remove_others};
use crate::foreign::ForeignPolicies;
use crate::json::{document, text as text_of};
use crate::models::{Library, fingerprint as fingerprint_of_models};
use crate::progress::{OnProgress, Progress, check_threads};
use crate::record;
use crate::record::histories_fingerprint;
use crate::record::{Kept, RecordedTenants, record};
use crate::spec::{replayed, replayed_or_served, resolved};
use crate::timed::{add_costs, add_responses, shares_places, timing};
use crate::workload::{Found, Replayed, Workload};
use crate::{ExperimentError, Spec};
use cachewright_curve::{CurveSet, Method};
use cachewright_policy::Need as PolicyNeed;
use cachewright_result::run::Case as CaseAnswer;
use cachewright_system::machines::Requests;
use cachewright_system::{CurveLane, Lane, LaneResult, Whose};
use cachewright_trace::{MergedRequests, formats};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
            case.divisions = record::divisions(&case.spec)?.map(Arc::new);
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
    match options.out.as_deref() {
        Some(out) if options.fresh => remove_others(out, &spec)?,
        Some(out) => check_owner(out, RESULT, &spec, "--fresh")?,
        None => {}
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
        let requests = recorded.take_requests();
        let recorded = &recorded;
        let recording = &recorded.recording;
        let first = first.resolve(recording)?;
        let mut lru = Vec::new();
        if !self.answers.has_head() {
            lru = if first.spec.replay.curves { lru_lanes(&first.spec) } else { Vec::new() };
            self.answers.set_head(recorded, &first, &[]);
        }
        let (mut without, mut on_devices) = (Vec::new(), Vec::new());
        let tenants = text_of(&recorded.tenants)?;
        let fingerprint = if self.store.keeps() { recording.fingerprint() } else { 0 };
        for case in group {
            let case = case.resolve(recording)?;
            case.check_replay()?;
            case.check_trims(recorded)?;
            let resolved = text_of(&resolved(&case.spec)?)?;
            let models = fingerprint_of_models(&case.models, &case.caching);
            let read = models ^ record::divisions_fingerprint(case.divisions.as_deref());
            let read = read ^ histories_fingerprint(&case.histories) ^ case.state_fingerprint();
            let key = AnswerStore::key(&resolved, &tenants, fingerprint ^ read);
            let kept: Option<(CaseAnswer, _)> =
                if case.is_kept() { self.store.load(&key)? } else { None };
            if let Some((answer, rows)) = kept {
                self.answers.reuse(&case, answer, rows);
            } else if case.spec.stack.is_some() {
                on_devices.push((case, key));
            } else {
                without.push((case, key));
            }
        }
        let workload = Workload::new(recording, self.progress);
        let (closed, mut open): (Vec<_>, Vec<_>) =
            without.into_iter().partition(|(case, _)| case.spec.replay.closed());
        self.batch(&workload, &first, &closed, Vec::new())?;
        while !open.is_empty() || !lru.is_empty() {
            let pass = next_batch(&mut open, Case::shares_pass);
            let curves = std::mem::take(&mut lru);
            if let Some(curves) = self.batch(&workload, &first, &pass, curves)? {
                self.answers.set_head(recorded, &first, &curves);
            }
        }
        self.on_devices(on_devices, recorded, requests)
    }

    /// Runs the cases on devices, together those whose requests lie at the same places.
    fn on_devices(
        &mut self,
        mut left: Vec<KeyedCase<'_>>,
        recorded: &RecordedTenants,
        mut requests: Requests,
    ) -> Result<(), ExperimentError> {
        loop {
            let batch = next_batch(&mut left, shares_places);
            let Some((first, _)) = batch.first() else { return Ok(()) };
            // Placing changes them, so that all batches but the last place a copy.
            let copy = if left.is_empty() { Requests::default() } else { requests.clone() };
            let own = std::mem::replace(&mut requests, copy);
            let workload = Workload::on_devices(first, recorded, own, self.progress)?;
            self.batch(&workload, first, &batch, Vec::new())?;
        }
    }

    /// Runs cases that have their workload in common, beside lanes of curves; returns what these
    /// found, where there are some. Each case is kept when it is done.
    fn batch(
        &mut self,
        workload: &Workload<'_>,
        first: &ResolvedCase<'_>,
        batch: &[KeyedCase<'_>],
        curves: Vec<Box<dyn Lane>>,
    ) -> Result<Option<Vec<LaneResult>>, ExperimentError> {
        if batch.is_empty() && curves.is_empty() {
            return Ok(None);
        }
        let wanted = !curves.is_empty();
        let cases: Vec<&ResolvedCase<'_>> = batch.iter().map(|(case, _)| case).collect();
        let first = cases.first().copied().unwrap_or(first);
        let answered = |index: usize, found| {
            let (case, key): &KeyedCase<'_> = &batch[index];
            self.answer(case, key, found)
        };
        let (curves, answers) = workload.replay_beside(first, &cases, curves, answered)?;
        for ((case, _), (answer, rows)) in batch.iter().zip(answers) {
            self.answers.take(case, answer, rows);
        }
        Ok(wanted.then_some(curves))
    }

    /// What a case found, which is written down at once.
    fn answer(&self, case: &ResolvedCase<'_>, key: &str, found: Found) -> CaseResult {
        self.foreign.checked(Ok(()))?;
        let Found { replayed, drive } = found;
        let mut answer = answers::answer(case, replayed.cache(), replayed.constant_answers());
        if let Some(drive) = drive {
            answer.flash = Some(drive.report()?);
        }
        match &replayed {
            Replayed::Open(_) => {}
            Replayed::Constant(found) => answer.throughput = constant_throughput(case, found),
            Replayed::Timed(found) => {
                let timing = timing(case, found);
                add_responses(case, &mut answer, &timing);
                add_costs(&mut answer, &found.times);
                answer.timing = Some(timing);
            }
        }
        let rows = replayed.into_cache().rows;
        if case.is_kept() {
            self.store.save(key, &answer, &rows)?;
        }
        Ok((answer, rows))
    }
}

/// A case, and what its answer is kept under.
type KeyedCase<'a> = (ResolvedCase<'a>, String);

/// Takes the first case and those that share a batch with it.
fn next_batch<'a>(
    left: &mut Vec<KeyedCase<'a>>,
    shares: fn(&Case, &Case) -> bool,
) -> Vec<KeyedCase<'a>> {
    let Some((first, _)) = left.first() else { return Vec::new() };
    let first = first.case;
    let (batch, rest) = std::mem::take(left).into_iter().partition(|(case, _)| shares(first, case));
    *left = rest;
    batch
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
