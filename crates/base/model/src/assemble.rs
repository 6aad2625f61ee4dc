//! Stored models from weights or trees, with the outputs that they give.
//!
//! For: trainers and tests. Must never know: files, how weights were found.

use std::collections::BTreeMap;

use crate::description::{Description, TestVector};
use crate::error::ModelError;
use crate::float::FloatModel;
use crate::forest::ForestModel;
use crate::stored::StoredModel;
use crate::tensor::{Numbers, Tensor};
use crate::trees::Forest;

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
