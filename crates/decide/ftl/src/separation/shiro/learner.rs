//! What may be asked of a separation that learns, whatever its scheme.
//!
//! For: giving it a trainer or a finished model, and reading why none came. Must never know: files,
//! how a trainer works. Units: lifetimes in host page writes.

use super::train_error::TrainError;
use super::trainer::Trainer;
use cachewright_model::StoredModel;

/// A separation that learns.
pub trait Learner {
    /// Takes another trainer for the windows to come.
    fn set_trainer(&mut self, trainer: Box<dyn Trainer>);

    /// Takes a finished model, f32 or int8: nothing is trained any more, and if the model's notes
    /// name a threshold, that stays too. An f32 model is quantised by its test vector. Errors: a
    /// model of another shape or of other features, in which case nothing changes.
    fn give(&mut self, model: &StoredModel) -> Result<(), TrainError>;

    /// When and why the trainer last gave no model.
    fn last_failure(&self) -> Option<String>;

    /// Lifetimes up to this are short, once that is known.
    fn threshold(&self) -> Option<u32>;

    /// Takes a threshold for good.
    fn fix_threshold(&mut self, threshold: u32);

    /// Page writes of the host per window: the time that counters of recent requests span.
    fn window_pages(&self) -> u32;
}
