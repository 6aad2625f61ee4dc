//! Write amplification of separations on a trace.
//!
//! For: `wa`: sizing a drive, replaying one trace on it under every scheme asked for, in parallel;
//! and the drive under a cache (`cached`). Must never know: how results are drawn. The drive is
//! scaled to the pages that the trace ever writes, or to those live at once, unless a capacity is
//! given; the result says which. Units: pages; F are pages programmed to flash, U pages written by
//! the host; `write_amplification` is F/U, `extra_writes` (F-U)/U, the measure of Shiro.

mod cached;
mod drive;
mod extents;
mod lifetimes;
mod live;
mod log;
mod measures;
mod options;
mod plan;
mod script;
mod steps;
mod study;
mod tally;
mod training;

use crate::case::Case;
use crate::folder::write_document;
use crate::json::{document, text as text_of};
use crate::progress::{OnProgress, Progress, with_threads};
use crate::spec::flash::{self, advice};
use crate::store::AnswerStore;
use crate::workload::in_parallel;
use crate::{ExperimentError, Spec};
pub use study::{ClassifierOptions, TrainOptions, Trained, train};
pub use training::{TrainerFactory, stored};

pub use cached::{DriveUnderCache, UnderCache};
use cachewright_ftl::FtlError;
use cachewright_memory::HELD_BYTES;
use cachewright_result::drive::DriveWork;
use cachewright_result::wa::{AmplificationAnswer, AmplificationCase};
use cachewright_result::written::Written;
use cachewright_system::RecordError;
use cachewright_types::declare::Declared;
use drive::{DriveJob, DriveStop, DriveTask};
pub use log::log;
pub use options::{DriveOptions, WaOptions};
use plan::DrivePlan;
pub use plan::label;
use script::Script;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use steps::Stretch;
use training::TrainingChoice;

/// Drive writes below which a drive has hardly reached its steady state.
const FEW_DRIVE_WRITES: f64 = 10.0;
/// Drive writes of a loop when none are asked for.
const LOOPED_DRIVE_WRITES: f64 = 10.0;
/// Points of the series, about.
const POINTS: f64 = 200.0;
/// The file in the result folder.
const RESULT: &str = "wa.json";

/// Measures write amplification; the JSON is described in the package's documentation.
pub fn wa(
    text: &str,
    origin: &Path,
    options: &WaOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    let drive = &options.drive;
    drive.check_ranges()?;
    let spec = crate::spec::parse(text, origin, &options.set)?;
    let refuse = |message| ExperimentError::spec(origin, message);
    let plan = DrivePlan::new(options, &spec).map_err(refuse)?;
    with_threads(options.threads, || {
        let page_bytes = plan.flash.page.0;
        let script = script::read(&spec, &drive.load, page_bytes, progress)?;
        let live_pages = live::peak(&script, drive.r#loop);
        let (working_pages, trace_pages) = (script.working_pages, script.run_pages);
        let logical_pages = plan.logical_pages(working_pages, live_pages).map_err(refuse)?;
        let cases = plan.cases(&spec, logical_pages).map_err(refuse)?;
        let job = |case: &Case| {
            let flash = case.spec.flash.as_ref()?;
            Some(DriveJob::new(case, flash, logical_pages, plan.training.clone()))
        };
        let jobs: Vec<DriveJob> = cases.iter().filter_map(job).collect();
        let limit_pages = limit_pages(drive, logical_pages, trace_pages);
        let script = if plan.recycles() {
            check_length(limit_pages, spec.replay.max_accesses).map_err(refuse)?;
            live::recycled(script, live_pages, limit_pages).map_err(RecordError::from)?
        } else {
            script
        };
        let run = DriveRun {
            plan: &plan,
            script: &script,
            logical_pages,
            working_pages,
            live_pages,
            trace_pages,
            limit_pages,
            progress,
        };
        let store = AnswerStore::open(options.out.as_deref(), false)?;
        let found = run.replay(&jobs, &store, origin)?;
        let reused = found.iter().filter(|(_, kept)| *kept).count();
        let cases = found.into_iter().map(|(answer, _)| answer).collect();
        let mut result = run.answer(&spec, cases);
        if let Some(out) = &options.out {
            write_document(&out.join(RESULT), &result)?;
            // Beside the document: what is written does not depend on what was kept.
            result.reused = Some(reused);
        }
        document(&result)
    })
}

/// Page writes to measure, of a trace of `trace_pages`.
fn limit_pages(options: &DriveOptions, logical_pages: u32, trace_pages: u64) -> u64 {
    let drive = f64::from(logical_pages);
    let pages = |writes: f64| ((writes * drive).ceil() as u64).max(1);
    match (options.r#loop, options.drive_writes) {
        (true, writes) => pages(writes.unwrap_or(LOOPED_DRIVE_WRITES)),
        (false, Some(writes)) => pages(writes).min(trace_pages),
        (false, None) => trace_pages,
    }
}

/// Refuses a loop whose repetitions, numbered anew each, would not fit into memory.
fn check_length(pages: u64, max: u64) -> Result<(), String> {
    if pages <= max {
        return Ok(());
    }
    let expected = "expected at most `replay.max_accesses`";
    Err(format!("`drive_writes`: found {pages} page writes, {expected} ({max}) under `live`"))
}

/// One call's inputs.
struct DriveRun<'a> {
    plan: &'a DrivePlan,
    script: &'a Script,
    logical_pages: u32,
    /// Distinct pages that the trace writes.
    working_pages: u32,
    /// The most pages live at once.
    live_pages: u32,
    /// Pages that the trace writes, replayed once.
    trace_pages: u64,
    /// Page writes to measure.
    limit_pages: u64,
    progress: OnProgress<'a>,
}

impl DriveRun<'_> {
    fn drive_writes(&self) -> f64 {
        self.limit_pages as f64 / f64::from(self.logical_pages)
    }

    /// Replays every job, each on one thread; says of each whether its answer was kept.
    fn replay(
        &self,
        jobs: &[DriveJob],
        store: &AnswerStore,
        origin: &Path,
    ) -> Result<Vec<(AmplificationCase, bool)>, ExperimentError> {
        let script = self.script;
        // Numbers that recycle come with all repetitions written out.
        let looped = self.rounds() > 1.0 && !self.plan.recycles();
        let lifetimes = lifetimes::lifetimes(script, looped, HELD_BYTES);
        let lifetimes = lifetimes.map_err(RecordError::from)?;
        let (steps, load_steps) = (&script.steps, script.load_steps);
        let stretch = |range, written: u64| {
            let written = written as usize;
            Stretch { steps, range, lifetimes: &lifetimes, written }
        };
        let limit_pages = self.limit_pages;
        let parts = (POINTS / self.drive_writes()).round().clamp(1.0, 20.0);
        let every_pages = ((f64::from(self.logical_pages) / parts) as u64).max(1);
        let total = Some((script.load_pages + limit_pages) * jobs.len() as u64);
        let done = AtomicU64::new(0);
        let tell = |news| {
            let done = done.fetch_add(news, Ordering::Relaxed) + news;
            (self.progress)(Progress { stage: "writing", done, total })
        };
        let work = DriveTask {
            load: stretch(0..load_steps, 0),
            run: stretch(load_steps..steps.len(), script.load_pages),
            limit_pages,
            every_pages,
            tell: &tell,
        };
        let keys = self.keys(jobs, every_pages)?;
        in_parallel(jobs, |index, job| {
            let key = keys.get(index);
            let kept = key.and_then(|key| store.load::<DriveWork>(key).transpose()).transpose()?;
            if let Some((work, _)) = kept {
                return Ok((self.case_answer(job, work), true));
            }
            let work = job.run(&work).map_err(|stop| failure(origin, job, stop, ""))?;
            if let Some(key) = key {
                store.save(key, &work, &[])?;
            }
            Ok((self.case_answer(job, work), false))
        })
    }

    /// What each case's answer is kept under; nothing when a trainer from outside has a say.
    fn keys(&self, jobs: &[DriveJob], every_pages: u64) -> Result<Vec<String>, ExperimentError> {
        if !matches!(self.plan.training, TrainingChoice::Native) {
            return Ok(Vec::new());
        }
        let (fingerprint, tenants) = (self.script.fingerprint(), text_of(&self.script.tenants)?);
        let key = |job: &DriveJob| {
            let settings =
                text_of(&(job.identity(), self.limit_pages, every_pages, self.rounds() > 1.0))?;
            Ok(AnswerStore::key(&settings, &tenants, fingerprint))
        };
        jobs.iter().map(key).collect()
    }

    fn case_answer(&self, job: &DriveJob, work: DriveWork) -> AmplificationCase {
        let bound = flash::is_bound(&job.separation);
        AmplificationCase {
            case: job.index,
            separation: plan::label(&job.separation),
            reclaim: plan::label(&job.reclaim),
            op: job.over_provisioning,
            bound,
            block_pages: job.geometry.block_pages,
            flattered: self.rounds() > 1.0 && (bound || work.learning.is_some()),
            work,
        }
    }

    /// How often the trace is replayed.
    fn rounds(&self) -> f64 {
        self.limit_pages as f64 / self.trace_pages as f64
    }

    fn warnings(&self, answers: &[AmplificationCase]) -> Vec<String> {
        let mut warnings = self.script.warnings.clone();
        warnings.extend(self.plan.warnings.iter().cloned());
        let writes = self.drive_writes();
        if writes < FEW_DRIVE_WRITES {
            let expected = "expected at least 10 for a steady state";
            warnings.push(format!("found {writes:.1} drive writes, {expected}"));
        }
        let rounds = self.rounds();
        if rounds > 1.0 {
            let word = "a repeated trace flatters schemes that learn or know the future (†)";
            warnings.push(format!("the trace was replayed {rounds:.1} times as asked; {word}"));
        }
        warnings.extend(self.plan.training.warnings(answers, self.plan.flash.page.0));
        warnings
    }

    fn answer(&self, spec: &Spec, cases: Vec<AmplificationCase>) -> AmplificationAnswer {
        let (plan, script) = (self.plan, self.script);
        AmplificationAnswer {
            written: Written::here(),
            name: spec.name.clone(),
            page_bytes: plan.flash.page.0,
            superblock_bytes: plan.flash.superblock.0,
            reserve_superblocks: plan.flash.reserve,
            logical_pages: self.logical_pages,
            working_pages: self.working_pages,
            live_pages: self.live_pages,
            capacity: plan.capacity_text.clone(),
            scaled: plan.scaled(),
            load_pages: script.load_pages,
            trace_pages: self.trace_pages,
            user_pages: self.limit_pages,
            drive_writes: self.drive_writes(),
            looped: self.rounds() > 1.0,
            rounds: self.rounds(),
            tenants: script.tenants.clone(),
            trainer: plan.training.name().to_owned(),
            model: plan.training.given(),
            warnings: self.warnings(&cases),
            cases,
            reused: None,
        }
    }
}

/// A job's failure: wrong settings are the caller's, a drive that cannot go on is the run's. The
/// keys of the drive stand in `table` of a stack file, or are options where that is empty.
fn failure(origin: &Path, job: &DriveJob, stop: DriveStop, table: &str) -> ExperimentError {
    let (separation, reclaim) = (plan::label(&job.separation), plan::label(&job.reclaim));
    let op = flash::percent_text(job.over_provisioning);
    let scheme = format!("{separation}, {reclaim}, {op} over-provisioning");
    let spec = |message| ExperimentError::spec(origin, message);
    match stop {
        DriveStop::Cancelled => ExperimentError::Cancelled,
        DriveStop::Flash(error) => {
            let message = format!("{scheme}: {error}{}", advice(&error, table));
            match *error {
                FtlError::Full { .. } => ExperimentError::Flash(message),
                _ => spec(message),
            }
        }
        DriveStop::Untaught(error) => spec(format!("{scheme}: {error}")),
    }
}
