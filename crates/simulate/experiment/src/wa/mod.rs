//! Write amplification of separations on a trace.
//!
//! The drive is scaled to the pages that the trace ever writes, or to those live at once, unless a
//! capacity is given; the result says which. Units: pages; F are pages programmed to flash, U pages
//! written by the host; `write_amplification` is F/U, `extra_writes` (F-U)/U, the measure of Shiro.

mod drive;
mod script;
mod training;

use crate::case::Case;
use crate::folder::{AMPLIFICATION, AnswerStore, DocumentPlace};
use crate::json::{document, text as text_of};
use crate::progress::{OnProgress, Progress, with_threads};
use crate::spec::flash::{
    self, PAGE, PAGES_LIMIT, advice, block_pages, check_over_provisioning, check_page,
    check_schemes,
};
use crate::spec::{FlashSpec, Scheme};
use crate::workload::in_parallel;
use crate::{ExperimentError, Spec};
use cachewright_ftl::{FtlError, Geometry, Need, Space, reclaim, separation};
use cachewright_memory::HELD_BYTES;
use cachewright_result::devices::DriveWork;
use cachewright_result::document::Written;
use cachewright_result::wa::{AmplificationAnswer, AmplificationCase};
use cachewright_stack::FlashTable;
use cachewright_system::RecordError;
use cachewright_types::declare::{Declared, Percent};
use cachewright_types::{Bytes, Size, Value as Setting, declare, parse_size};
use drive::{DriveJob, DriveStop, DriveTask};
pub use drive::{DriveUnderCache, UnderCache, log};
use script::{Script, Stretch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use training::TrainingChoice;
pub use training::{ClassifierOptions, TrainOptions, Trained, TrainerFactory, stored, train};

/// Drive writes below which a drive has hardly reached its steady state.
const FEW_DRIVE_WRITES: f64 = 10.0;
/// Drive writes of a loop when none are asked for.
const LOOPED_DRIVE_WRITES: f64 = 10.0;
/// Points of the series, about.
const POINTS: f64 = 200.0;

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
    let place = DocumentPlace { folder: options.out.as_deref(), file: AMPLIFICATION };
    place.claim(&spec, options.force)?;
    with_threads(options.threads, || {
        let page_bytes = plan.flash.page.0;
        let script = script::read(&spec, &drive.load, page_bytes, progress)?;
        let live_pages = script::peak(&script, drive.r#loop);
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
            script::recycled(script, live_pages, limit_pages).map_err(RecordError::from)?
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
        place.write(&result)?;
        // Beside the document: what is written does not depend on what was kept.
        result.reused = options.out.is_some().then_some(reused);
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
        let lifetimes = script::lifetimes(script, looped, HELD_BYTES);
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
            separation: label(&job.separation),
            reclaim: label(&job.reclaim),
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
    let (separation, reclaim) = (label(&job.separation), label(&job.reclaim));
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

declare! {
    /// Options of `wa`: the drive, how much is written to it, and where models come from.
    pub struct DriveOptions {
        /// separations by name or inline table (`none,2r,sepbit`; see `list separations`), or all
        separations: Vec<String> = vec!["all".to_owned()], "schemes";
        /// ways to pick a victim (see `list reclaims`), or all
        reclaims: Vec<String> = vec![FlashTable::default().reclaim.name], "schemes";
        /// over-provisioning (`7%,28%`); by default that of the stack's `[flash]`, or 7%
        op: Vec<Percent> = Vec::new(), "share";
        /// size of a superblock, the unit of erasing; by default the stack's or 1MiB
        superblock: Option<Bytes> = None, "bytes";
        /// size of a flash page, a power of two; by default the stack's or 4KiB
        page: Option<Bytes> = None, "bytes", 512 ..= 1_048_576;
        /// logical size of the drive (`1GiB`, `150%wss`); `auto` is what is ever written, `live`
        /// the most that is live at once: pages recycle after trims
        capacity: String = "auto".to_owned(), "size";
        /// superblocks kept free for writes of the host; by default the stack's or 4
        reserve: Option<u32> = None, "superblocks", 2 ..= 1_048_576;
        /// stop after this many drive writes
        drive_writes: Option<f64> = None, "drive writes", 0.000001 ..= 1000000.0;
        /// repeat the trace until then (10 drive writes by default)
        r#loop: bool = false, "";
        /// a trace replayed first and not counted; TENANT=PATH for a stack of several tenants
        load: Vec<String> = Vec::new(), "files";
        /// a trained model file, used without further training (see `train`)
        model: Option<String> = None, "file";
    }
}

/// What to measure.
#[derive(Clone, Debug, Default)]
pub struct WaOptions {
    /// The drive.
    pub drive: DriveOptions,
    /// Another trainer than the one in Rust for separations that learn.
    pub trainer: Option<TrainerFactory>,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
    /// The result folder; nothing is written without one.
    pub out: Option<PathBuf>,
    /// Replace the result of another stack in that folder.
    pub force: bool,
}

/// How large the drive is.
#[derive(Clone, Copy, Debug)]
enum PlannedCapacity {
    /// As large as what is ever written.
    Written,
    /// As large as what is live at once.
    Live,
    /// As asked.
    Of(Size),
}

/// Checked options.
#[derive(Clone, Debug)]
pub struct DrivePlan {
    /// The drive, but for its schemes and its over-provisioning.
    pub flash: FlashSpec,
    /// What was left out and why.
    pub warnings: Vec<String>,
    /// Where models come from.
    pub training: TrainingChoice,
    /// Logical size of the drive as it was asked for.
    pub capacity_text: String,
    ops: Vec<f64>,
    separations: Vec<Scheme>,
    reclaims: Vec<Scheme>,
    capacity: PlannedCapacity,
}

impl DrivePlan {
    /// Checks names, settings and sizes; what is left out is that of the stack's drive, or the
    /// default.
    pub fn new(options: &WaOptions, spec: &Spec) -> Result<DrivePlan, String> {
        let drive = &options.drive;
        let own = spec.flash.as_deref().cloned().unwrap_or_default();
        let page = drive.page.or(own.page).unwrap_or(PAGE);
        check_page("page", page)?;
        let superblock = drive.superblock.unwrap_or(own.superblock);
        block_pages("superblock", superblock, page)?;
        let capacity = match drive.capacity.as_str() {
            "auto" => PlannedCapacity::Written,
            "live" => PlannedCapacity::Live,
            text => PlannedCapacity::Of(parse_size(text).map_err(|error| {
                format!("`capacity`: {error}; `auto` and `live` follow the trace")
            })?),
        };
        let ops = if drive.op.is_empty() {
            vec![own.over_provisioning.0]
        } else {
            let each = drive.op.iter().map(|op| check_over_provisioning("op", *op));
            each.collect::<Result<_, _>>()?
        };
        let reserve = drive.reserve.unwrap_or(own.reserve);
        let mut plan = DrivePlan {
            flash: FlashSpec::of_pages(FlashTable { superblock, reserve, ..own }, page),
            warnings: Vec::new(),
            training: TrainingChoice::new(drive.model.as_deref(), options.trainer.as_ref())?,
            capacity_text: drive.capacity.clone(),
            ops,
            separations: Vec::new(),
            reclaims: Vec::new(),
            capacity,
        };
        plan.schemes(drive)?;
        Ok(plan)
    }

    fn schemes(&mut self, options: &DriveOptions) -> Result<(), String> {
        for text in &options.separations {
            if text != "all" {
                self.separations.push(crate::spec::scheme_of_option("separation", text)?);
                continue;
            }
            for entry in separation::entries() {
                if entry.needs.contains(&Need::Model) {
                    let name = entry.name;
                    self.warnings.push(format!("`{name}` is left out: it needs a model"));
                } else {
                    self.separations.push(bare(entry.name));
                }
            }
        }
        for text in &options.reclaims {
            if text == "all" {
                self.reclaims.extend(reclaim::entries().iter().map(|entry| bare(entry.name)));
            } else {
                self.reclaims.push(crate::spec::scheme_of_option("reclaim", text)?);
            }
        }
        let lists = [("separations", &self.separations), ("reclaims", &self.reclaims)];
        for (key, empty) in lists.map(|(key, list)| (key, list.is_empty())) {
            if empty {
                return Err(format!("`{key}`: found nothing, expected at least one"));
            }
        }
        // Names and settings are refused here, before a trace is read.
        check_schemes(&self.separations, &self.reclaims)?;
        self.training.check(&self.separations)
    }

    /// Whether the drive is as large as what is written, or live.
    pub fn scaled(&self) -> bool {
        !matches!(self.capacity, PlannedCapacity::Of(Size::Bytes(_) | Size::Blocks(_)))
    }

    /// Whether trimmed pages give their numbers to others.
    pub fn recycles(&self) -> bool {
        matches!(self.capacity, PlannedCapacity::Live)
    }

    /// Logical pages of the drive for so many distinct written pages, of which so many are live at
    /// once.
    pub fn logical_pages(&self, working_pages: u32, live_pages: u32) -> Result<u32, String> {
        let pages = match self.capacity {
            PlannedCapacity::Written => u64::from(working_pages),
            PlannedCapacity::Live => u64::from(live_pages),
            PlannedCapacity::Of(Size::Bytes(bytes)) => bytes.0 / self.flash.page.0,
            PlannedCapacity::Of(Size::Blocks(blocks)) => blocks,
            PlannedCapacity::Of(Size::WorkingSetPercent(percent)) => {
                (f64::from(working_pages) * percent / 100.0).round() as u64
            }
        };
        let min = if self.recycles() { live_pages } else { working_pages };
        if (u64::from(min)..=PAGES_LIMIT).contains(&pages) {
            return Ok(pages as u32);
        }
        Err(format!(
            "`capacity`: found {pages} pages, expected {working_pages} (what the trace writes) to \
             {PAGES_LIMIT}, or `live` for the {live_pages} that are live at once"
        ))
    }

    /// Every combination as a case of the stack with that drive: over-provisioning, then
    /// separation, then reclaim. Errors: a drive of too few superblocks.
    pub fn cases(&self, spec: &Spec, logical_pages: u32) -> Result<Vec<Case>, String> {
        let mut cases = Vec::new();
        for op in &self.ops {
            let (block_pages, reserve) = (self.flash.block_pages(), self.flash.reserve);
            let geometry =
                Geometry::with_over_provisioning(logical_pages, block_pages, *op, reserve);
            self.check(&geometry)?;
            for separation in &self.separations {
                for reclaim in &self.reclaims {
                    let table = FlashTable {
                        separation: separation.clone(),
                        reclaim: reclaim.clone(),
                        over_provisioning: Percent(*op),
                        ..(*self.flash).clone()
                    };
                    let flash = Some(FlashSpec::of_pages(table, self.flash.page));
                    let case = Case::single(Spec { flash, ..spec.clone() });
                    cases.push(Case { index: cases.len(), ..case });
                }
            }
        }
        Ok(cases)
    }

    /// Refuses a drive that is all reserve; finer limits are those of the translation layer.
    fn check(&self, geometry: &Geometry) -> Result<(), String> {
        let Space::Fixed { blocks, reserve_blocks, .. } = geometry.space else { return Ok(()) };
        if blocks > reserve_blocks {
            return Ok(());
        }
        let superblock = self.flash.superblock;
        Err(format!(
            "`superblock`: found {superblock}, of which a drive of {} pages has {blocks}, expected \
             more than the {reserve_blocks} kept free: a smaller `superblock`, more `op`, or a \
             larger `capacity`",
            geometry.logical_pages
        ))
    }
}

fn bare(name: &str) -> Scheme {
    Scheme { name: name.to_owned(), pairs: Vec::new() }
}

/// A scheme in a few words: its name, then the settings given.
pub fn label(named: &Scheme) -> String {
    let pairs: Vec<String> = named
        .pairs
        .iter()
        .map(|(key, value)| match value {
            Setting::Float(number) => format!("{key}={number}"),
            other => format!("{key}={}", other.shown()),
        })
        .collect();
    if pairs.is_empty() {
        named.name.clone()
    } else {
        format!("{}({})", named.name, pairs.join(", "))
    }
}
