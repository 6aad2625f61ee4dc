//! The model that is in use, and what trains it.
//!
//! For: steps of the model, and models that come back from the trainer. Must never know: windows,
//! how a model is trained.

use super::classifier::GruClassifier;
use super::dataset::Dataset;
use super::features::{Encoding, Features};
use super::pages::{LifetimeClass, STATE_BYTES};
use super::settings::ShiroSettings;
use super::train_error::TrainError;
use super::trainer::Trainer;
use crate::separation::learning::Statistics;
use cachewright_model::StoredModel;

/// Steps of a dataset that calibrate the int8 model.
const CALIBRATION_STEPS: usize = 2000;

/// The model in use, if there is one.
pub struct LifetimeModel {
    encoding: Encoding,
    trainer: Option<Box<dyn Trainer>>,
    deployed: Option<GruClassifier>,
    /// Each write is judged alone: states are not kept.
    alone: bool,
    /// Writes wait for their prediction.
    synchronous: bool,
    /// Whether the last write took a step of the model.
    stepped: bool,
    /// The window and the reason of the trainer's last failure.
    error: Option<(u64, TrainError)>,
    /// What was predicted and trained; windows and metadata are counted elsewhere.
    statistics: Statistics,
}

impl LifetimeModel {
    /// No model yet.
    pub fn new(settings: &ShiroSettings, trainer: Option<Box<dyn Trainer>>) -> LifetimeModel {
        LifetimeModel {
            encoding: if settings.log_inputs { Encoding::Log } else { Encoding::Hex },
            trainer,
            deployed: None,
            alone: settings.series_steps == 1,
            synchronous: settings.synchronous,
            stepped: false,
            error: None,
            statistics: Statistics::default(),
        }
    }

    /// How its inputs are written.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Takes another trainer, or none: the model in use then stays.
    pub fn set_trainer(&mut self, trainer: Option<Box<dyn Trainer>>) {
        self.trainer = trainer;
    }

    /// Whether models are trained.
    pub fn is_trained(&self) -> bool {
        self.trainer.is_some()
    }

    /// See [`Shiro::install`](super::Shiro::install).
    pub fn install(&mut self, stored: &StoredModel, calibration: &[f32]) -> Result<(), TrainError> {
        self.deployed = Some(GruClassifier::new(stored, self.encoding, calibration)?);
        self.statistics.trainings += 1;
        Ok(())
    }

    /// One step of the model, if there is one: the page's state moves on, the class comes out.
    #[inline]
    pub fn predict<'a>(
        &mut self,
        state: impl FnOnce() -> Option<&'a mut [i8; STATE_BYTES]>,
        features: &Features,
    ) -> LifetimeClass {
        let Some(classifier) = &mut self.deployed else { return LifetimeClass::Unseen };
        let Some(state) = state() else { return LifetimeClass::Unseen };
        if self.alone {
            *state = [0; STATE_BYTES];
        }
        self.statistics.predictions += 1;
        self.statistics.waited_predictions += u64::from(self.synchronous);
        self.stepped = true;
        classifier.classify(state, features)
    }

    /// Whether the last write took a step, once: then whether it waits for it.
    #[inline]
    pub fn take_step(&mut self) -> Option<bool> {
        std::mem::take(&mut self.stepped).then_some(self.synchronous)
    }

    /// Hands a window's dataset out and puts the model that comes back to use.
    pub fn train(&mut self, mut dataset: Dataset, number: u64) {
        let Some(mut trainer) = self.trainer.take() else { return };
        dataset.first = self.deployed.is_none();
        if let Err(error) = self.learn(trainer.as_mut(), &dataset) {
            self.statistics.failures += 1;
            self.error = Some((number, error));
        }
        self.trainer = Some(trainer);
    }

    fn learn(&mut self, trainer: &mut dyn Trainer, dataset: &Dataset) -> Result<(), TrainError> {
        if dataset.labelled() == 0 {
            return Ok(());
        }
        let model = trainer.train(dataset)?;
        let steps = dataset.labels.len().min(CALIBRATION_STEPS);
        let calibration = dataset.rows.get(..steps * self.encoding.inputs());
        self.install(&model, calibration.unwrap_or_default())
    }

    /// The window and the reason of the trainer's last failure.
    pub fn error(&self) -> Option<&(u64, TrainError)> {
        self.error.as_ref()
    }

    /// What was predicted and trained so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }
}
