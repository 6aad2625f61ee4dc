//! Models of any kind and precision: whichever a file holds, and those that are put together from
//! weights or trees.

use crate::description::{Architecture, Description, NetworkKind, TestVector};
use crate::error::ModelError;
use crate::float::FloatModel;
use crate::forest::{Forest, ForestModel};
use crate::int8::{Int8Model, OUTPUT_ONE};
use crate::sequence::{State, whole_steps};
use crate::stored::{Numbers, StoredModel, Tensor};
use std::collections::BTreeMap;

/// A model that computes as it is stored: a sequence of features goes in, the outputs after its
/// last step come out. Shared freely between threads.
#[derive(Clone, Debug)]
pub enum Model {
    /// Layers in f32.
    Float(FloatModel),
    /// Layers in int8.
    Int8(Int8Model),
    /// Trees.
    Forest(ForestModel),
}

impl Model {
    /// The model of what is stored. The test vector is not replayed.
    pub fn new(stored: &StoredModel) -> Result<Model, ModelError> {
        Ok(match stored.description.architecture.kind {
            NetworkKind::Forest(_) => Model::Forest(ForestModel::new(stored)?),
            _ if stored.is_int8() => Model::Int8(Int8Model::new(stored)?),
            _ => Model::Float(FloatModel::new(stored)?),
        })
    }

    /// Reads a model file and replays its test vector.
    pub fn load(bytes: &[u8]) -> Result<Model, ModelError> {
        let stored = StoredModel::from_bytes(bytes)?;
        Ok(match stored.description.architecture.kind {
            NetworkKind::Forest(_) => Model::Forest(ForestModel::load(bytes)?),
            _ if stored.is_int8() => Model::Int8(Int8Model::load(bytes)?),
            _ => Model::Float(FloatModel::load(bytes)?),
        })
    }

    /// The shape.
    pub fn architecture(&self) -> &Architecture {
        match self {
            Model::Float(model) => model.architecture(),
            Model::Int8(model) => model.architecture(),
            Model::Forest(model) => model.architecture(),
        }
    }

    /// The outputs of all heads after the last step of a sequence that starts from a zero state.
    /// `features` holds at least one step, before normalisation, step after step. A model without
    /// state sees the last step alone.
    ///
    /// Errors: no step, or a broken one.
    pub fn last(&self, features: &[f32]) -> Result<Vec<f32>, ModelError> {
        let architecture = self.architecture();
        let (steps, inputs) = (whole_steps(architecture, features.len())?, architecture.inputs);
        if steps == 0 {
            return Err(ModelError::size("steps of a sequence", 0, "at least 1"));
        }
        let begin = if architecture.kind.is_recurrent() { 0 } else { (steps - 1) * inputs };
        let sequence = features[begin..].chunks_exact(inputs);
        Ok(match self {
            Model::Float(model) => {
                let (State { mut hidden, mut cell }, mut scratch) =
                    (model.zero_state(), model.scratch());
                let mut outputs = Vec::new();
                for features in sequence {
                    outputs = model.step(&mut scratch, &mut hidden, &mut cell, features)?.to_vec();
                }
                outputs
            }
            Model::Int8(model) => {
                let (State { mut hidden, mut cell }, mut scratch) =
                    (model.zero_state(), model.scratch());
                let mut outputs = Vec::new();
                for features in sequence {
                    let found = model.step(&mut scratch, &mut hidden, &mut cell, features)?;
                    outputs.clear();
                    outputs.extend(found.iter().map(|output| *output as f32 / OUTPUT_ONE));
                }
                outputs
            }
            Model::Forest(model) => {
                model.predict(&mut model.scratch(), &features[begin..])?.to_vec()
            }
        })
    }
}

impl StoredModel {
    /// An f32 model of these weights, whose test vector is computed from `test_inputs` (features of
    /// one sequence, before normalisation, step after step).
    pub fn float(
        description: Description,
        weights: BTreeMap<String, Vec<f32>>,
        test_inputs: Vec<Vec<f32>>,
    ) -> Result<StoredModel, ModelError> {
        let shapes: BTreeMap<String, Vec<usize>> =
            description.architecture.tensors().into_iter().collect();
        let tensors = weights
            .into_iter()
            .map(|(name, numbers)| {
                let shape = shapes.get(&name).cloned().unwrap_or_default();
                (name, Tensor { shape, numbers: Numbers::F32(numbers) })
            })
            .collect();
        let outputs = vec![vec![0.0; description.architecture.outputs()]; test_inputs.len()];
        let test_vector = TestVector { inputs: test_inputs, outputs };
        let mut stored = StoredModel { description, quantisation: None, tensors, test_vector };
        stored.check()?;
        let model = FloatModel::new(&stored)?;
        stored.test_vector.outputs = model.replay(&stored.test_vector.inputs)?;
        Ok(stored)
    }

    /// A model of trees, whose test vector is computed from `test_inputs` (features before
    /// normalisation). The kind of `description` is [`Forest::kind`].
    pub fn forest(
        description: Description,
        forest: &Forest,
        test_inputs: Vec<Vec<f32>>,
    ) -> Result<StoredModel, ModelError> {
        let tensors = forest.tensors(&description.architecture)?;
        let outputs = vec![vec![0.0; description.architecture.outputs()]; test_inputs.len()];
        let test_vector = TestVector { inputs: test_inputs, outputs };
        let mut stored = StoredModel { description, quantisation: None, tensors, test_vector };
        let model = ForestModel::new(&stored)?;
        stored.test_vector.outputs = model.replay(&stored.test_vector.inputs)?;
        Ok(stored)
    }
}
