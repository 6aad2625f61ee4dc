//! The models of separations that learn: the trainer in Rust, one that the caller brings, or a
//! model file that is not trained any more; and `train`, which makes such files away from the
//! drive.

use super::drive;
use super::script::{self, Script, ScriptStep};
use crate::json::document;
use crate::progress::{OnProgress, Progress};
use crate::spec::Scheme;
use crate::spec::flash::check_page;
use crate::{ExperimentError, Spec, wa};
use cachewright_ftl::separation::shiro::{
    Dataset, Learner, NativeTrainer, THRESHOLD_NOTE, TrainError, Trainer,
};
use cachewright_ftl::separation::{Registered, Separation, SeparationVisitor};
use cachewright_ftl::{Block, Geometry, HostRequest, Invalidated, NEVER, Write, separation};
use cachewright_model::{FloatModel, Int8Model, ModelError, StoredModel};
use cachewright_result::devices::Training;
use cachewright_result::document::Written;
use cachewright_result::training::{JudgedTrace, Prediction, TrainAnswer};
use cachewright_result::wa::{AmplificationCase, GivenModel};
use cachewright_types::declare::{Declared, Percent};
use cachewright_types::{Bytes, Op, Seed, declare};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Logical pages of the drive on which a model is tried before the run.
const TRIAL_PAGES: u32 = 64;
/// Words that the trainer in Rust, and any scheme without another, goes by.
const NATIVE: &str = "native";
/// Notes of a model file: bytes of a page and page writes of a window in training.
pub const PAGE_NOTE: &str = "page_bytes";
/// See [`PAGE_NOTE`].
pub const WINDOW_NOTE: &str = "window_pages";
/// Windows that differ by a higher factor are warned of.
const WINDOW_RATIO: f64 = 2.0;

type Make = dyn Fn(usize, Seed) -> Box<dyn Trainer> + Send + Sync;

/// Makes a trainer for each case; trainers of different cases are called from different threads.
#[derive(Clone)]
pub struct TrainerFactory {
    name: String,
    make: Arc<Make>,
}

impl TrainerFactory {
    /// `make` gets the number of the case, from 0, and the root of the trainer's randomness.
    pub fn new(
        name: &str,
        make: impl Fn(usize, Seed) -> Box<dyn Trainer> + Send + Sync + 'static,
    ) -> TrainerFactory {
        TrainerFactory { name: name.to_owned(), make: Arc::new(make) }
    }

    /// The name it goes by in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A trainer for one case.
    pub fn make(&self, case: usize, seed: Seed) -> Box<dyn Trainer> {
        (self.make)(case, seed)
    }
}

impl fmt::Debug for TrainerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrainerFactory").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Who teaches the schemes of a run.
#[derive(Clone, Debug, Default)]
pub enum TrainingChoice {
    /// Each scheme's own trainer.
    #[default]
    Native,
    /// One that the caller brings.
    Outside(TrainerFactory),
    /// No trainer: a model file.
    Given(Arc<Given>),
}

/// A model file.
#[derive(Debug)]
pub struct Given {
    file: PathBuf,
    model: StoredModel,
}

impl TrainingChoice {
    /// What the options ask for. Errors: a file that is no model, both a model and a trainer.
    pub fn new(
        model: Option<&str>,
        trainer: Option<&TrainerFactory>,
    ) -> Result<TrainingChoice, String> {
        match (model, trainer) {
            (None, None) => Ok(TrainingChoice::Native),
            (None, Some(factory)) => Ok(TrainingChoice::Outside(factory.clone())),
            (Some(file), None) => Ok(TrainingChoice::Given(Arc::new(Given::read(file.as_ref())?))),
            (Some(_), Some(factory)) => Err(format!(
                "`trainer`: found `{}` beside a given model, expected one of the two",
                factory.name
            )),
        }
    }

    /// Whether it suits the schemes. Errors: a model that does not fit one that learns; a model or
    /// trainer where none learns.
    pub fn check(&self, separations: &[Scheme]) -> Result<(), String> {
        if matches!(self, TrainingChoice::Native) {
            return Ok(());
        }
        let mut learns = false;
        for Scheme { name, pairs } in separations {
            let tried = separation::visit(name, pairs, Trial(self));
            learns |= tried.map_err(|error| error.to_string())?.map_err(|error| {
                let file = self.file().map(|file| format!(" {}", file.display()));
                format!("`model`:{} for `{name}`: {}", file.unwrap_or_default(), words(&error))
            })?;
        }
        if learns {
            return Ok(());
        }
        let key = if self.file().is_some() { "model" } else { "trainer" };
        let names: Vec<&str> = separations.iter().map(|named| named.name.as_str()).collect();
        let all = separation::entries().into_iter().map(|entry| entry.name);
        let learning: Vec<&str> = all.filter(|name| learns_at_all(name)).collect();
        let (found, expected) = (names.join(", "), learning.join(", "));
        Err(format!("`{key}`: found no separation that learns in {found}, expected {expected}"))
    }

    /// Gives a scheme its trainer or model.
    pub fn teach(
        &self,
        learner: &mut dyn Learner,
        case: usize,
        seed: Seed,
    ) -> Result<(), TrainError> {
        match self {
            TrainingChoice::Native => {}
            TrainingChoice::Outside(factory) => learner.set_trainer(factory.make(case, seed)),
            TrainingChoice::Given(given) => learner.give(&given.model)?,
        }
        Ok(())
    }

    fn file(&self) -> Option<&Path> {
        match self {
            TrainingChoice::Given(given) => Some(&given.file),
            TrainingChoice::Native | TrainingChoice::Outside(_) => None,
        }
    }

    /// `native`, the trainer's name, or `none`.
    pub fn name(&self) -> &str {
        match self {
            TrainingChoice::Native => NATIVE,
            TrainingChoice::Outside(factory) => &factory.name,
            TrainingChoice::Given(_) => "none",
        }
    }

    /// What is to be said of cases: trainers that failed, a model that was made for inputs of
    /// another scale.
    pub fn warnings(&self, cases: &[AmplificationCase], page_bytes: u64) -> Vec<String> {
        let mut warnings: Vec<String> = cases.iter().filter_map(failed).collect();
        let TrainingChoice::Given(given) = self else { return warnings };
        let note = |name: &str| given.model.description.notes.get(name)?.parse::<f64>().ok();
        let file = given.file.display();
        if let Some(found) = note(PAGE_NOTE).filter(|bytes| *bytes != page_bytes as f64) {
            let used = "lifetimes and requests mean something else to it";
            warnings.push(format!(
                "{file}: trained with pages of {found} bytes, used with {page_bytes}: {used}"
            ));
        }
        for case in cases {
            let used = case.work.training.as_ref().map(|training| f64::from(training.window_pages));
            let (Some(trained), Some(used)) = (note(WINDOW_NOTE), used) else { continue };
            if (trained / used).max(used / trained) > WINDOW_RATIO {
                warnings.push(format!(
                    "{file}: trained with windows of {trained} page writes, used by {} with \
                     {used}: counts of recent requests mean something else to it",
                    scheme(case)
                ));
            }
        }
        warnings
    }

    /// The given model's file and notes, if there is one.
    pub fn given(&self) -> Option<GivenModel> {
        let TrainingChoice::Given(given) = self else { return None };
        Some(GivenModel {
            file: given.file.display().to_string(),
            int8: given.model.is_int8(),
            notes: given.model.description.notes.clone(),
        })
    }
}

impl Given {
    /// Reads a model file and replays its test vector.
    fn read(file: &Path) -> Result<Given, String> {
        let refuse = |error: String| format!("`model`: {}: {error}", file.display());
        let bytes =
            std::fs::read(file).map_err(|error| refuse(error.to_string().to_lowercase()))?;
        let model = stored(&bytes).map_err(|error| refuse(error.to_string()))?;
        Ok(Given { file: file.to_owned(), model })
    }
}

/// A model file's content, its test vector replayed.
pub fn stored(bytes: &[u8]) -> Result<StoredModel, ModelError> {
    let model = StoredModel::from_bytes(bytes)?;
    if model.is_int8() {
        Int8Model::load(bytes)?;
    } else {
        FloatModel::load(bytes)?;
    }
    Ok(model)
}

/// Windows, models and failures of a separation that learns; nothing of others.
pub fn outcome<S: Separation>(separation: &mut S) -> Option<Training> {
    let done = separation.learning()?;
    let learner = separation.learner()?;
    Some(Training {
        windows: done.windows,
        window_pages: learner.window_pages(),
        models: done.trainings,
        failures: done.failures,
        last: learner.last_failure(),
    })
}

/// What is to be said of a case whose trainer failed.
fn failed(case: &AmplificationCase) -> Option<String> {
    let training = case.work.training.as_ref()?;
    let last = training.last.as_ref()?;
    let (failures, windows) = (training.failures, training.windows);
    let stayed = "the model before stayed in use";
    let scheme = scheme(case);
    Some(format!("{scheme}: training failed in {failures} of {windows} windows, {stayed}; {last}"))
}

fn scheme(case: &AmplificationCase) -> String {
    format!("{}, {}", case.separation, case.reclaim)
}

/// An error without the word `model` before it.
fn words(error: &TrainError) -> String {
    let text = error.to_string();
    text.strip_prefix("model: ").unwrap_or(&text).to_owned()
}

/// Builds a scheme on a small drive and teaches it: whether it learns, and whether that fits.
struct Trial<'a>(&'a TrainingChoice);

impl SeparationVisitor for Trial<'_> {
    type Output = Result<bool, TrainError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let geometry = Geometry::with_over_provisioning(TRIAL_PAGES, 2, 1.0, 2);
        let mut separation = S::new(&geometry, &settings, Seed(0));
        let Some(learner) = separation.learner() else { return Ok(false) };
        if matches!(self.0, TrainingChoice::Given(_)) {
            self.0.teach(learner, 0, Seed(0))?;
        }
        Ok(true)
    }
}

fn learns_at_all(name: &str) -> bool {
    matches!(separation::visit(name, &[], Trial(&TrainingChoice::Native)), Ok(Ok(true)))
}

/// Pages of a superblock where one must be named; nothing here depends on it.
const BLOCK_PAGES: u32 = 256;
/// Steps to train on, about: as many windows, evenly spread, as hold them.
const MAX_STEPS: u64 = 200_000;
/// Steps after which their memory is given back.
const PASSED_STEPS: usize = 1 << 16;
/// Host pages between two reports of progress.
const TELL_EVERY: u64 = 1 << 16;

declare! {
    /// Options of `train`: which classifier learns from how much of a trace.
    pub struct ClassifierOptions {
        /// the scheme, with settings as an inline table (`{name = "shiro", window_share = 0.1}`)
        separation: String = "shiro".to_owned(), "scheme";
        /// the part of the page writes used for training
        share: Percent = Percent(0.7), "share", 0.000001 ..= 0.999999;
        /// size of a flash page, a power of two
        page: Bytes = Bytes(4096), "bytes", 512 ..= 1_048_576;
    }
}

/// What to train.
#[derive(Clone, Debug, Default)]
pub struct TrainOptions {
    /// Which classifier, and on what.
    pub classifier: ClassifierOptions,
    /// Another trainer than the one in Rust.
    pub trainer: Option<TrainerFactory>,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Other stacks to judge on: their text and where it stands.
    pub judge: Vec<(String, PathBuf)>,
}

/// A model and how well it did.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model file.
    pub model: Vec<u8>,
    /// What was trained and judged.
    pub document: Value,
}

/// Trains on the earlier part of a stack's writes, judges on the later part and on other stacks.
/// The classifier alone is fed, so that no cleaning is done. The earlier part is fed twice, window
/// by window as on a drive that has as many pages as the trace writes: once for the threshold, once
/// for series labelled by it. One model is trained on these to convergence (a drive, which has one
/// epoch per window, keeps what its last windows taught), and then judges the later part and other
/// traces, in int8 as the drive computes it.
pub fn train(
    text: &str,
    origin: &Path,
    options: &TrainOptions,
    progress: OnProgress<'_>,
) -> Result<Trained, ExperimentError> {
    let refuse = |message| ExperimentError::spec(origin, message);
    let spec = crate::spec::parse(text, origin, &options.set)?;
    let ClassifierOptions { separation, share, page } = &options.classifier;
    options.classifier.check_ranges()?;
    check_page("page", *page).map_err(refuse)?;
    let page_bytes = page.0;
    let scheme = crate::spec::scheme_of_option("separation", separation).map_err(refuse)?;
    let sized = drive::with_page_bytes(&scheme, page_bytes);
    let factory = options.trainer.clone().unwrap_or_else(native);
    TrainingChoice::Outside(factory.clone())
        .check(std::slice::from_ref(&scheme))
        .map_err(refuse)?;
    let read = |spec: &Spec| script::read(spec, &[], page_bytes, progress);
    let script = read(&spec)?;
    let cut = (script.run_pages as f64 * share.0) as u64;
    let first = TrainingCourse { script: &script, cut, seed: spec.seed, progress };
    let fit = Fit { factory: &factory, course: &first };
    let (mut model, mut answer) = visit(&sized, fit, refuse)?;
    let notes = &mut model.description.notes;
    notes.insert(PAGE_NOTE.to_owned(), page_bytes.to_string());
    for (text, origin) in &options.judge {
        let refuse = |message| ExperimentError::spec(origin, message);
        let spec = crate::spec::parse(text, origin, &options.set)?;
        let script = read(&spec)?;
        let other = TrainingCourse { script: &script, cut: 0, seed: spec.seed, progress };
        let measures = visit(&sized, Exam { model: &model, course: &other }, refuse)?;
        let (name, trace_pages) = (spec.name, script.run_pages);
        answer.judged.push(JudgedTrace { name, trace_pages, measures });
    }
    answer.name = spec.name;
    answer.separation = wa::label(&scheme);
    answer.page_bytes = page_bytes;
    let model = model.to_bytes().map_err(|error| refuse(error.to_string()))?;
    Ok(Trained { model, document: document(&answer)? })
}

fn native() -> TrainerFactory {
    TrainerFactory::new("native", |_, seed| Box::new(NativeTrainer::new(seed)))
}

/// Runs a visitor with the scheme; what stops it becomes an error by `refuse`.
fn visit<T, V: SeparationVisitor<Output = Result<T, StudyStop>>>(
    scheme: &Scheme,
    visitor: V,
    refuse: impl Fn(String) -> ExperimentError,
) -> Result<T, ExperimentError> {
    let found = separation::visit(&scheme.name, &scheme.pairs, visitor);
    found.map_err(|error| refuse(error.to_string()))?.map_err(|stop| match stop {
        StudyStop::Cancelled => ExperimentError::Cancelled,
        StudyStop::Untrained(why) => refuse(why),
    })
}

/// Why there is no answer.
enum StudyStop {
    Cancelled,
    Untrained(String),
}

/// One trace, and after how many page writes it is cut.
struct TrainingCourse<'a> {
    script: &'a Script,
    cut: u64,
    seed: Seed,
    progress: OnProgress<'a>,
}

/// A scheme fed with a trace, without a drive under it.
struct Pupil<'a, S> {
    scheme: S,
    course: &'a TrainingCourse<'a>,
    mapped: Vec<bool>,
    clock: u64,
    /// The next step.
    next: usize,
}

impl<'a, S: Registered> Pupil<'a, S> {
    fn new(course: &'a TrainingCourse<'a>, settings: &S::Settings) -> Pupil<'a, S> {
        let pages = course.script.working_pages;
        let geometry = Geometry::with_over_provisioning(pages, BLOCK_PAGES, 1.0, 2);
        let scheme = S::new(&geometry, settings, course.seed.derive("separation"));
        Pupil { scheme, course, mapped: vec![false; pages as usize], clock: 0, next: 0 }
    }

    /// Feeds whole requests until `end` pages have been written or the trace ends.
    fn feed(&mut self, end: u64) -> Result<(), StudyStop> {
        let steps = &self.course.script.steps;
        let mut reported = self.clock;
        while let Some(step) = steps.get(self.next).filter(|_| self.clock < end) {
            self.next += 1;
            self.step(&step);
            if self.next.is_multiple_of(PASSED_STEPS) {
                steps.release(self.next - PASSED_STEPS..self.next);
            }
            if self.clock - reported >= TELL_EVERY {
                reported = self.clock;
                let total = Some(self.course.script.run_pages);
                let news = Progress { stage: "training and judging", done: reported, total };
                if !(self.course.progress)(news) {
                    return Err(StudyStop::Cancelled);
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &ScriptStep) {
        let write = step.op == Op::Write;
        if step.op != Op::Trim {
            let request = HostRequest { first_page: step.first, pages: step.pages, write };
            self.scheme.on_request(&request, self.clock);
        }
        if step.op == Op::Read {
            return;
        }
        for page in step.first..step.first + step.pages {
            self.clock += u64::from(write);
            let clock = self.clock;
            let rewrite = std::mem::replace(&mut self.mapped[page as usize], write);
            if rewrite {
                let (offset, block, trimmed) = (0, &Block::default(), !write);
                let gone = Invalidated { page, offset, block, clock, trimmed };
                self.scheme.on_invalidate(&gone);
            }
            if write {
                let (live_pages, lifetime) = (0, NEVER);
                self.scheme.place_user(&Write { page, clock, rewrite, live_pages, lifetime });
            }
        }
    }

    /// Freezes a model and lets it judge what is left of the trace.
    fn judge(&mut self, model: &StoredModel) -> Result<Option<Prediction>, StudyStop> {
        let from = self.clock + 1;
        if let Some(learner) = self.scheme.learner() {
            let given = learner.give(model);
            given.map_err(|error| StudyStop::Untrained(error.to_string()))?;
        }
        self.feed(u64::MAX)?;
        let found = self.scheme.classification().map(|all| all.since(from));
        Ok(found.filter(|found| found.total() > 0).map(|found| Prediction {
            predictions: found.total(),
            accuracy: found.accuracy(),
            precision: found.precision(),
            recall: found.recall(),
            f1: found.f1(),
            majority: found.majority(),
        }))
    }
}

/// Collects what windows teach instead of learning from it.
#[derive(Debug, Default)]
struct Collected {
    windows: u64,
    steps: u64,
    /// Of so many windows one is kept.
    stride: u64,
    dataset: Option<Dataset>,
}

impl Collected {
    fn add(&mut self, window: &Dataset) {
        self.windows += 1;
        self.steps += window.labels.len() as u64;
        if !self.windows.is_multiple_of(self.stride) {
            return;
        }
        let Some(dataset) = &mut self.dataset else {
            self.dataset = Some(Dataset { first: true, ..window.clone() });
            return;
        };
        dataset.window = window.window;
        dataset.lengths.extend(&window.lengths);
        dataset.rows.extend(&window.rows);
        dataset.labels.extend(&window.labels);
    }
}

struct Collector(Arc<Mutex<Collected>>);

impl Trainer for Collector {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        if let Ok(mut collected) = self.0.lock() {
            collected.add(dataset);
        }
        Err(TrainError::Outside("collects only".to_owned()))
    }
}

/// Trains on the part before the cut and judges the rest.
struct Fit<'a> {
    factory: &'a TrainerFactory,
    course: &'a TrainingCourse<'a>,
}

impl<'a> Fit<'a> {
    /// Feeds the part before the cut; returns the scheme after it and what its windows taught. A
    /// threshold, if given, holds for all of them.
    fn collect<S: Registered>(
        &self,
        settings: &S::Settings,
        threshold: Option<u32>,
        stride: u64,
    ) -> Result<(Pupil<'a, S>, Collected), StudyStop> {
        let mut pupil = Pupil::<S>::new(self.course, settings);
        let collected = Arc::new(Mutex::new(Collected { stride, ..Collected::default() }));
        if let Some(learner) = pupil.scheme.learner() {
            learner.set_trainer(Box::new(Collector(Arc::clone(&collected))));
            threshold.into_iter().for_each(|threshold| learner.fix_threshold(threshold));
        }
        pupil.feed(self.course.cut)?;
        let collected = collected.lock().map(|mut kept| std::mem::take(&mut *kept));
        Ok((pupil, collected.unwrap_or_default()))
    }
}

impl SeparationVisitor for Fit<'_> {
    type Output = Result<(StoredModel, TrainAnswer), StudyStop>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let Fit { factory, course } = self;
        let (mut pupil, first) = self.collect::<S>(&settings, None, u64::MAX)?;
        let threshold = pupil.scheme.learner().and_then(|learner| learner.threshold());
        let stride = first.steps.div_ceil(MAX_STEPS).max(1);
        let (mut pupil, collected) = self.collect::<S>(&settings, threshold, stride)?;
        let Some(dataset) = collected.dataset else {
            let (found, windows) = (course.cut, collected.windows);
            let expected = "expected at least one that teaches";
            let found = format!("found {windows} windows in {found} page writes, {expected}");
            return Err(StudyStop::Untrained(found));
        };
        let trained_pages = pupil.clock;
        let mut trainer = factory.make(0, course.seed.derive("separation").derive("trainer"));
        let trained = trainer.train(&dataset);
        let mut model = trained.map_err(|error| StudyStop::Untrained(error.to_string()))?;
        let notes = &mut model.description.notes;
        notes.insert(THRESHOLD_NOTE.to_owned(), dataset.threshold.to_string());
        notes.insert("trainer".to_owned(), factory.name().to_owned());
        let window_pages = pupil.scheme.learner().map_or(0, |learner| learner.window_pages());
        notes.insert(WINDOW_NOTE.to_owned(), window_pages.to_string());
        let held_out = pupil.judge(&model)?;
        let answer = TrainAnswer {
            written: Written::here(),
            trainer: factory.name().to_owned(),
            logical_pages: course.script.working_pages,
            trace_pages: course.script.run_pages,
            trained_pages,
            windows: collected.windows,
            window_pages,
            series: dataset.lengths.len(),
            labelled_steps: dataset.labelled(),
            threshold: dataset.threshold,
            held_out,
            // What the caller knows.
            name: String::new(),
            separation: String::new(),
            page_bytes: 0,
            judged: Vec::new(),
        };
        Ok((model, answer))
    }
}

/// Judges a model by a whole trace.
struct Exam<'a> {
    model: &'a StoredModel,
    course: &'a TrainingCourse<'a>,
}

impl SeparationVisitor for Exam<'_> {
    type Output = Result<Option<Prediction>, StudyStop>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        Pupil::<S>::new(self.course, &settings).judge(self.model)
    }
}
