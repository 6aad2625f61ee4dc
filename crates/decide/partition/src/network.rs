//! A trained model, in the precision of its model file.
//!
//! For: partitioners that evaluate a model. Must never know: the meaning of inputs and outputs. One
//! variant per number format; forests have no state. Outputs are real numbers, as the model's heads
//! give them.

use cachewright_model::{
    Architecture, Description, FloatModel, FloatScratch, FloatState, ForestModel, ForestScratch,
    Int8Model, Int8Scratch, Int8State, Model, OUTPUT_ONE, StoredModel,
};
use cachewright_snapshot::Snapshot;

/// The arithmetic of a model, with its state and scratch memory.
#[derive(Clone, Debug, Snapshot)]
enum NumberFormat {
    Float {
        #[snapshot(settings)]
        model: FloatModel,
        #[snapshot(settings)]
        scratch: FloatScratch,
        state: FloatState,
    },
    Int8 {
        #[snapshot(settings)]
        model: Int8Model,
        #[snapshot(settings)]
        scratch: Int8Scratch,
        state: Int8State,
    },
    Forest {
        #[snapshot(settings)]
        model: ForestModel,
        #[snapshot(settings)]
        scratch: ForestScratch,
    },
}

/// A model and its state from step to step.
#[derive(Clone, Debug, Snapshot)]
pub struct TrainedNetwork {
    #[snapshot(settings)]
    description: Description,
    arithmetic: NumberFormat,
}

impl TrainedNetwork {
    /// Reads a model file and replays its test vector. Errors: what is wrong with the file.
    pub fn load(bytes: &[u8]) -> Result<TrainedNetwork, String> {
        let wrong = |error: cachewright_model::ModelError| error.to_string();
        let stored = StoredModel::from_bytes(bytes).map_err(wrong)?;
        let arithmetic = match Model::load(bytes).map_err(wrong)? {
            Model::Float(model) => {
                NumberFormat::Float { scratch: model.scratch(), state: model.zero_state(), model }
            }
            Model::Int8(model) => {
                NumberFormat::Int8 { scratch: model.scratch(), state: model.zero_state(), model }
            }
            Model::Forest(model) => NumberFormat::Forest { scratch: model.scratch(), model },
        };
        Ok(TrainedNetwork { description: stored.description, arithmetic })
    }

    /// The shape of the model.
    pub fn architecture(&self) -> &Architecture {
        &self.description.architecture
    }

    /// Checks the names of the inputs. Errors: the number or the names found and expected.
    pub fn expect_features(&self, expected: &[String]) -> Result<(), String> {
        let actual = &self.description.features;
        if actual.len() != expected.len() {
            return Err(format!("found {} inputs, expected {}", actual.len(), expected.len()));
        }
        match actual.iter().zip(expected).position(|(actual, expected)| actual != expected) {
            Some(index) => Err(format!(
                "input {index}: found feature `{}`, expected `{}`",
                actual[index], expected[index]
            )),
            None => Ok(()),
        }
    }

    /// Checks the number of outputs. Errors: found and expected.
    pub fn expect_outputs(&self, expected: usize, meaning: &str) -> Result<(), String> {
        match self.architecture().outputs() {
            actual if actual == expected => Ok(()),
            actual => Err(format!("found {actual} outputs, expected {expected} ({meaning})")),
        }
    }

    /// Checks that a note of the trainer equals the setting of that name. Errors: found and
    /// expected.
    pub fn expect_note(&self, key: &str, expected: u32) -> Result<(), String> {
        match self.description.notes.get(key) {
            Some(actual) if actual.trim().parse() == Ok(expected) => Ok(()),
            Some(actual) => Err(format!(
                "note `{key}`: found `{actual}`, expected {expected} as in the settings"
            )),
            None => Err(format!("found no note `{key}`, expected one of {expected}")),
        }
    }

    /// A note of the trainer that is a whole number. Errors: no note, or another text.
    pub fn whole_note(&self, key: &str) -> Result<u32, String> {
        let expected = "expected a whole number";
        match self.description.notes.get(key) {
            Some(actual) => actual
                .trim()
                .parse()
                .map_err(|_| format!("note `{key}`: found `{actual}`, {expected}")),
            None => Err(format!("found no note `{key}`, {expected}")),
        }
    }

    /// Resets the state.
    pub fn reset(&mut self) {
        match &mut self.arithmetic {
            NumberFormat::Float { model, state, .. } => *state = model.zero_state(),
            NumberFormat::Int8 { model, state, .. } => *state = model.zero_state(),
            NumberFormat::Forest { .. } => {}
        }
    }

    /// One step: outputs of all heads; nothing if the number of `features` is not that of the
    /// inputs.
    pub fn step(&mut self, features: &[f32]) -> Option<Vec<f64>> {
        match &mut self.arithmetic {
            NumberFormat::Float { model, scratch, state } => model
                .step(scratch, &mut state.hidden, &mut state.cell, features)
                .ok()
                .map(|outputs| outputs.iter().copied().map(f64::from).collect()),
            NumberFormat::Int8 { model, scratch, state } => model
                .step(scratch, &mut state.hidden, &mut state.cell, features)
                .ok()
                .map(|q12| q12.iter().map(|&x| f64::from(x) / f64::from(OUTPUT_ONE)).collect()),
            NumberFormat::Forest { model, scratch } => model
                .predict(scratch, features)
                .ok()
                .map(|outputs| outputs.iter().copied().map(f64::from).collect()),
        }
    }
}
