//! A trained model out of a model file, in whatever precision it was stored.
//!
//! For: partitioners that ask a model. Must never know: what inputs and outputs mean. One variant
//! per kind of arithmetic; trees have no state to carry. Outputs are real numbers, as the model's
//! heads give them.

use cachewright_infer::{
    Architecture, Description, FloatModel, FloatScratch, FloatState, ForestModel, ForestScratch,
    Int8Model, Int8Scratch, Int8State, Model, OUTPUT_ONE, StoredModel,
};

/// What computes, with its state and room to work.
#[derive(Clone, Debug)]
enum Arithmetic {
    Float { model: FloatModel, scratch: FloatScratch, state: FloatState },
    Int8 { model: Int8Model, scratch: Int8Scratch, state: Int8State },
    Forest { model: ForestModel, scratch: ForestScratch },
}

/// A network and what it carries from step to step.
#[derive(Clone, Debug)]
pub struct Network {
    description: Description,
    arithmetic: Arithmetic,
}

impl Network {
    /// Reads a model file; its test vector is replayed. Errors: what is wrong with the file.
    pub fn load(bytes: &[u8]) -> Result<Network, String> {
        let wrong = |error: cachewright_infer::ModelError| error.to_string();
        let stored = StoredModel::from_bytes(bytes).map_err(wrong)?;
        let arithmetic = match Model::load(bytes).map_err(wrong)? {
            Model::Float(model) => {
                Arithmetic::Float { scratch: model.scratch(), state: model.zero_state(), model }
            }
            Model::Int8(model) => {
                Arithmetic::Int8 { scratch: model.scratch(), state: model.zero_state(), model }
            }
            Model::Forest(model) => Arithmetic::Forest { scratch: model.scratch(), model },
        };
        Ok(Network { description: stored.description, arithmetic })
    }

    /// Shape.
    pub fn architecture(&self) -> &Architecture {
        &self.description.architecture
    }

    /// Checks the inputs by name. Errors: how many or which were found and expected.
    pub fn expect_features(&self, expected: &[String]) -> Result<(), String> {
        let found = &self.description.features;
        if found.len() != expected.len() {
            return Err(format!("found {} inputs, expected {}", found.len(), expected.len()));
        }
        match found.iter().zip(expected).position(|(found, expected)| found != expected) {
            Some(at) => Err(format!(
                "input {at}: found feature `{}`, expected `{}`",
                found[at], expected[at]
            )),
            None => Ok(()),
        }
    }

    /// Checks the number of outputs. Errors: found and expected.
    pub fn expect_outputs(&self, expected: usize, meaning: &str) -> Result<(), String> {
        match self.architecture().outputs() {
            found if found == expected => Ok(()),
            found => Err(format!("found {found} outputs, expected {expected} ({meaning})")),
        }
    }

    /// Checks that a note of the trainer has the value of the setting of that name. Errors: found
    /// and expected.
    pub fn expect_note(&self, key: &str, expected: u32) -> Result<(), String> {
        match self.description.notes.get(key) {
            Some(found) if found.trim().parse() == Ok(expected) => Ok(()),
            Some(found) => Err(format!(
                "note `{key}`: found `{found}`, expected {expected} as in the settings"
            )),
            None => Err(format!("found no note `{key}`, expected one of {expected}")),
        }
    }

    /// A note of the trainer that is a whole number. Errors: none, or another text.
    pub fn whole_note(&self, key: &str) -> Result<u32, String> {
        let expected = "expected a whole number";
        match self.description.notes.get(key) {
            Some(found) => found
                .trim()
                .parse()
                .map_err(|_| format!("note `{key}`: found `{found}`, {expected}")),
            None => Err(format!("found no note `{key}`, {expected}")),
        }
    }

    /// Forgets all steps.
    pub fn reset(&mut self) {
        match &mut self.arithmetic {
            Arithmetic::Float { model, state, .. } => *state = model.zero_state(),
            Arithmetic::Int8 { model, state, .. } => *state = model.zero_state(),
            Arithmetic::Forest { .. } => {}
        }
    }

    /// One step: outputs of all heads; nothing when `features` are not as many as the inputs.
    pub fn step(&mut self, features: &[f32]) -> Option<Vec<f64>> {
        match &mut self.arithmetic {
            Arithmetic::Float { model, scratch, state } => model
                .step(scratch, &mut state.hidden, &mut state.cell, features)
                .ok()
                .map(|outputs| outputs.iter().copied().map(f64::from).collect()),
            Arithmetic::Int8 { model, scratch, state } => model
                .step(scratch, &mut state.hidden, &mut state.cell, features)
                .ok()
                .map(|q12| q12.iter().map(|&x| f64::from(x) / f64::from(OUTPUT_ONE)).collect()),
            Arithmetic::Forest { model, scratch } => model
                .predict(scratch, features)
                .ok()
                .map(|outputs| outputs.iter().copied().map(f64::from).collect()),
        }
    }
}
