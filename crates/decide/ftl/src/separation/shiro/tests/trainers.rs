//! Tests of trainers from outside, and of models that are given.

use super::*;
use std::sync::{Arc, Mutex};

/// Counts its calls, remembers first windows and fails from the third call on.
struct Watching {
    inner: NativeTrainer,
    calls: Arc<Mutex<Vec<bool>>>,
}

impl Trainer for Watching {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        let mut calls = self.calls.lock().unwrap();
        calls.push(dataset.first);
        if calls.len() > 2 {
            return Err(TrainError::Outside("out of reach".to_owned()));
        }
        self.inner.train(dataset)
    }
}

#[test]
fn a_trainer_from_outside_is_called_at_window_borders_and_may_fail() {
    let mut ftl = drive::<PAPER>(&settings(), 1);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let inner = NativeTrainer::new(Seed(1));
    let watching = Watching { inner, calls: Arc::clone(&calls) };
    ftl.separation_mut().set_trainer(Some(Box::new(watching)));
    run(&mut ftl, 2 * PAGES, |write| page_of(write, 1));
    let calls = calls.lock().unwrap();
    assert_eq!(calls[..], [true, false, false, false]);
    let statistics = ftl.separation().statistics();
    assert_eq!(statistics.trainings, 2);
    assert_eq!(statistics.failures, 2);
    assert_eq!(statistics.windows, 8);
    let error = ftl.separation().last_error().unwrap().to_string();
    assert_eq!(error, "trainer: out of reach");
    assert_ne!(ftl.separation().last_class(), LifetimeClass::Unseen, "the old model stays");
}

#[test]
fn a_given_model_works_without_a_trainer_and_a_wrong_one_is_refused() {
    let mut taught = drive::<PAPER>(&settings(), 1);
    let models = Arc::new(Mutex::new(None));
    struct Keeping(NativeTrainer, Arc<Mutex<Option<StoredModel>>>);
    impl Trainer for Keeping {
        fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
            let model = self.0.train(dataset)?;
            *self.1.lock().unwrap() = Some(model.clone());
            Ok(model)
        }
    }
    let keeping = Keeping(NativeTrainer::new(Seed(1)), Arc::clone(&models));
    taught.separation_mut().set_trainer(Some(Box::new(keeping)));
    run(&mut taught, 2 * PAGES, |write| page_of(write, 1));
    let model = models.lock().unwrap().take().unwrap();

    let mut given = drive::<PAPER>(&settings(), 1);
    given.separation_mut().set_trainer(None);
    given.separation_mut().install(&model, &[]).unwrap();
    let decisions = run(&mut given, 3 * PAGES, |write| page_of(write, 1));
    assert!(decisions.iter().any(|(class, _)| *class == LifetimeClass::Short));
    assert_eq!(given.separation().statistics().trainings, 1);

    let logs = ShiroSettings { log_inputs: true, ..settings() };
    let error = drive::<PAPER>(&logs, 1).separation_mut().install(&model, &[]).unwrap_err();
    let words = "model: found 24 inputs, 32 + 0 bytes of state and 2 outputs, expected 6 inputs";
    assert!(error.to_string().starts_with(words), "{error}");
}
