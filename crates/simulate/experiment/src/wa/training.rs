//! Where the models of separations that learn come from.
//!
//! For: the trainer in Rust, one that the caller brings, or a model file that is not trained any
//! more; each is refused before a trace is read if it does not fit. Must never know: how a trainer
//! works, traces. Units: none.

use crate::spec::Scheme;
use cachewright_ftl::Geometry;
use cachewright_ftl::separation::shiro::{Learner, TrainError, Trainer};
use cachewright_ftl::separation::{self, Registered, Separation, SeparationVisitor};
use cachewright_model::{FloatModel, Int8Model, ModelError, StoredModel};
use cachewright_result::drive::Training;
use cachewright_result::wa::{AmplificationCase, GivenModel};
use cachewright_types::Seed;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
