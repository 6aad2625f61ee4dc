//! Trainers and models that come to Shiro from outside.
//!
//! For: taking a trainer, a finished model or a threshold, and the reason why none came. Must never
//! know: files. Units: lifetimes in host page writes.

use super::Shiro;
use super::learner::Learner;
use super::train_error::TrainError;
use super::trainer::{THRESHOLD_NOTE, Trainer};
use cachewright_model::StoredModel;

impl<const VARIANT: u8> Learner for Shiro<VARIANT> {
    fn set_trainer(&mut self, trainer: Box<dyn Trainer>) {
        Shiro::set_trainer(self, Some(trainer));
    }

    fn give(&mut self, model: &StoredModel) -> Result<(), TrainError> {
        let description = &model.description;
        let names = self.model.encoding().names();
        let mut features = description.features.iter().zip(&names).enumerate();
        let other = features.find(|(_, (found, expected))| found != expected);
        // Another number of features is refused with the rest of the shape.
        if let Some((index, (found, expected))) = other
            && description.features.len() == names.len()
        {
            let found = format!("`{found}` as input {index}");
            return Err(TrainError::Shape { found, expected: format!("`{expected}`") });
        }
        let threshold = match description.notes.get(THRESHOLD_NOTE) {
            None => None,
            Some(text) => Some(text.parse::<u32>().map_err(|_| TrainError::Shape {
                found: format!("`{text}` as the note `{THRESHOLD_NOTE}`"),
                expected: "a number of page writes".to_owned(),
            })?),
        };
        let mut calibration = model.test_vector.inputs.concat();
        calibration.extend(vec![0.0; description.architecture.inputs]);
        self.install(model, &calibration)?;
        if let Some(threshold) = threshold {
            self.windows.fix_threshold(threshold);
        }
        Shiro::set_trainer(self, None);
        Ok(())
    }

    fn last_failure(&self) -> Option<String> {
        self.model.error().map(|(window, error)| format!("window {window}: {error}"))
    }

    fn threshold(&self) -> Option<u32> {
        Shiro::threshold(self)
    }

    fn fix_threshold(&mut self, threshold: u32) {
        self.windows.fix_threshold(threshold);
    }

    fn window_pages(&self) -> u32 {
        self.windows.window_pages()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Encoding, NativeTrainer, PAPER, Separation, ShiroSettings};
    use super::*;
    use crate::separation::Registered;
    use crate::separation::fixtures::{geometry, write};
    use cachewright_types::Seed;
    use cachewright_types::declare::Declared;

    fn shiro(log_inputs: bool) -> Shiro<PAPER> {
        let defaults = ShiroSettings::from_pairs(&[]).unwrap();
        let settings = ShiroSettings { log_inputs, window_share: 0.1, ..defaults };
        Registered::new(&geometry(), &settings, Seed(1))
    }

    /// The model after some windows of writes: half of the pages often, the others seldom.
    fn trained() -> StoredModel {
        struct Keeps(NativeTrainer, std::sync::Arc<std::sync::Mutex<Option<StoredModel>>>);
        impl Trainer for Keeps {
            fn train(&mut self, data: &super::super::Dataset) -> Result<StoredModel, TrainError> {
                let model = self.0.train(data)?;
                *self.1.lock().unwrap() = Some(model.clone());
                Ok(model)
            }
        }
        let kept = std::sync::Arc::default();
        let mut shiro = shiro(false);
        let trainer = Keeps(NativeTrainer::new(Seed(2)), std::sync::Arc::clone(&kept));
        Learner::set_trainer(&mut shiro, Box::new(trainer));
        for clock in 1..500_u64 {
            let page = if clock % 2 == 0 { clock % 8 } else { 8 + clock % 40 };
            shiro.place_user(&write(page as u32, clock));
        }
        assert!(shiro.statistics().trainings > 0);
        let model = kept.lock().unwrap().take();
        model.unwrap()
    }

    #[test]
    fn a_given_model_is_used_and_never_trained_and_its_threshold_stays() {
        let mut model = trained();
        model.description.notes.insert(THRESHOLD_NOTE.to_owned(), "17".to_owned());
        for stored in [&model, &cachewright_model::quantise(&model, &[&[1.0; 24]]).unwrap()] {
            let mut shiro = shiro(false);
            Learner::give(&mut shiro, stored).unwrap();
            for clock in 1..2000_u64 {
                shiro.place_user(&write((clock % 40) as u32, clock));
            }
            let done = shiro.statistics();
            assert!(done.windows > 15 && done.predictions > 1900, "{done:?}");
            assert_eq!((done.trainings, done.failures), (1, 0));
            assert_eq!(Learner::threshold(&shiro), Some(17));
        }
    }

    #[test]
    fn models_of_other_inputs_are_refused_with_both_named() {
        let model = trained();
        let error = shiro(true).give(&model).unwrap_err().to_string();
        let expected = "model: found 24 inputs, 32 + 0 bytes of state and 2 outputs, expected 6";
        assert!(error.starts_with(expected), "{error}");
        let mut other = model.clone();
        other.description.features.swap(0, 1);
        let error = shiro(false).give(&other).unwrap_err().to_string();
        let expected = "found `previous_lifetime.1` as input 0, expected `previous_lifetime.0`";
        assert_eq!(error, format!("model: {expected}"));
        let mut other = model.clone();
        other.description.notes.insert(THRESHOLD_NOTE.to_owned(), "many".to_owned());
        let error = shiro(false).give(&other).unwrap_err().to_string();
        let expected = "found `many` as the note `threshold`, expected a number of page writes";
        assert_eq!(error, format!("model: {expected}"));
        assert_eq!(Encoding::Hex.names().len(), model.description.features.len());
    }
}
