//! The forward pass in single precision: GRU, LSTM, MLP and logistic models, one step at a time
//! with the state held by the caller, or whole sequences.
//!
//! Equations are PyTorch's (`nn.GRU`, `nn.LSTM`, `nn.Linear`); in GRU the reset gate multiplies the
//! product with its bias. Invariant: the same bits on every machine.

use crate::description::{Architecture, NetworkKind, Normalisation};
use crate::error::ModelError;
use crate::float_loops::FloatMatrix;
use crate::sequence::{self, State, StateLengths};
use crate::simd::{Isa, Kernels};
use crate::stored::StoredModel;

/// Largest difference from a stored output, per unit of max(1, |output|), that still counts as
/// reproduced: what orders of summation may differ by.
pub const TOLERANCE: f32 = 1e-5;

/// State of a [`FloatModel`].
pub type FloatState = State<f32, f32>;

#[derive(Clone, Debug)]
enum FloatLayer {
    Recurrent { input: FloatMatrix, hidden: FloatMatrix },
    Dense(FloatMatrix),
}

/// A model that computes in f32. Shared freely between threads; what changes is in the caller's
/// state and [`FloatScratch`].
#[derive(Clone, Debug)]
pub struct FloatModel {
    architecture: Architecture,
    mean: Vec<f32>,
    inverse_deviation: Vec<f32>,
    layers: Vec<FloatLayer>,
    heads: Vec<FloatMatrix>,
    kernels: Kernels,
}

/// Room for intermediate results of one thread; made once, so that no step allocates.
#[derive(Clone, Debug)]
pub struct FloatScratch {
    inputs: Vec<f32>,
    from_input: Vec<f32>,
    from_hidden: Vec<f32>,
    outputs: Vec<f32>,
}

/// What each layer gave, for the quantiser's calibration.
pub(crate) trait LayerWatch {
    /// The inputs after normalisation.
    fn inputs(&mut self, inputs: &[f32]);
    /// Cell state of an LSTM layer, output of an MLP layer.
    fn layer(&mut self, layer: usize, numbers: &[f32]);
}

/// Watches nothing.
struct Unwatched;

impl LayerWatch for Unwatched {
    fn inputs(&mut self, _: &[f32]) {}
    fn layer(&mut self, _: usize, _: &[f32]) {}
}

impl FloatModel {
    /// The model of stored f32 weights, on the fastest kernels of this processor. The test vector
    /// is not replayed.
    pub fn new(stored: &StoredModel) -> Result<FloatModel, ModelError> {
        stored.check()?;
        if stored.is_int8() {
            return Err(ModelError::Precision { found: "an int8", expected: "an f32 model" });
        }
        if let NetworkKind::Forest(_) = stored.description.architecture.kind {
            let expected = "one of layers";
            return Err(ModelError::Precision { found: "a forest", expected });
        }
        let architecture = stored.description.architecture.clone();
        let matrix = |weight: String, bias: String| {
            Ok::<_, ModelError>(FloatMatrix::new(stored.f32s(&weight)?, stored.f32s(&bias)?))
        };
        let mut layers = Vec::new();
        for layer in 0..architecture.hidden.len() {
            layers.push(if architecture.kind.is_recurrent() {
                FloatLayer::Recurrent {
                    input: matrix(format!("weight_ih_l{layer}"), format!("bias_ih_l{layer}"))?,
                    hidden: matrix(format!("weight_hh_l{layer}"), format!("bias_hh_l{layer}"))?,
                }
            } else {
                let name = format!("hidden.{layer}");
                FloatLayer::Dense(matrix(format!("{name}.weight"), format!("{name}.bias"))?)
            });
        }
        let mut heads = Vec::new();
        for head in &architecture.heads {
            heads.push(matrix(format!("{}.weight", head.name), format!("{}.bias", head.name))?);
        }
        let Normalisation { mean, deviation } = stored.description.normalisation.clone();
        let inverse_deviation = deviation.iter().map(|deviation| 1.0 / deviation).collect();
        let kernels = Kernels::best();
        Ok(FloatModel { architecture, mean, inverse_deviation, layers, heads, kernels })
    }

    /// Reads a model file and replays its test vector.
    pub fn load(bytes: &[u8]) -> Result<FloatModel, ModelError> {
        let stored = StoredModel::from_bytes(bytes)?;
        let model = FloatModel::new(&stored)?;
        let outputs = model.replay(&stored.test_vector.inputs)?;
        stored.test_vector.check_outputs(&outputs, |found, expected| {
            (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0)
        })?;
        Ok(model)
    }

    /// The same model on another instruction set's kernels.
    pub fn with_isa(mut self, isa: Isa) -> Result<FloatModel, ModelError> {
        self.kernels = Kernels::new(isa)?;
        Ok(self)
    }

    /// The shape.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The state before the first step.
    pub fn zero_state(&self) -> FloatState {
        State::zero(&self.architecture)
    }

    /// Room for one thread.
    pub fn scratch(&self) -> FloatScratch {
        let architecture = &self.architecture;
        let width = architecture.hidden.iter().copied().chain([architecture.inputs]).max();
        let rows = architecture.kind.gates().max(1) * width.unwrap_or(0);
        FloatScratch {
            inputs: vec![0.0; width.unwrap_or(0)],
            from_input: vec![0.0; rows],
            from_hidden: vec![0.0; rows],
            outputs: vec![0.0; architecture.outputs()],
        }
    }

    /// One step: moves the state on and returns the outputs of all heads. `hidden` and `cell` have
    /// the lengths of [`Architecture::state_len`] and [`Architecture::cell_len`]; `features` are
    /// taken before normalisation.
    pub fn step<'s>(
        &self,
        scratch: &'s mut FloatScratch,
        hidden: &mut [f32],
        cell: &mut [f32],
        features: &[f32],
    ) -> Result<&'s [f32], ModelError> {
        self.watched_step(scratch, hidden, cell, features, &mut Unwatched)
    }

    pub(crate) fn watched_step<'s>(
        &self,
        scratch: &'s mut FloatScratch,
        mut hidden: &mut [f32],
        mut cell: &mut [f32],
        features: &[f32],
        watch: &mut impl LayerWatch,
    ) -> Result<&'s [f32], ModelError> {
        let architecture = &self.architecture;
        StateLengths::new(architecture).check(hidden.len(), cell.len(), features.len())?;
        let normal = features.iter().zip(&self.mean).zip(&self.inverse_deviation);
        for (input, ((feature, mean), inverse)) in scratch.inputs.iter_mut().zip(normal) {
            *input = (feature - mean) * inverse;
        }
        watch.inputs(&scratch.inputs[..architecture.inputs]);
        for (index, (layer, units)) in self.layers.iter().zip(&architecture.hidden).enumerate() {
            let inputs = &scratch.inputs[..architecture.layer_inputs(index)];
            match layer {
                FloatLayer::Recurrent { input, hidden: memory } => {
                    let (own, later) = hidden.split_at_mut(*units);
                    self.kernels.float_multiply(input, inputs, &mut scratch.from_input);
                    self.kernels.float_multiply(memory, own, &mut scratch.from_hidden);
                    let (from_input, from_hidden) = (&scratch.from_input, &scratch.from_hidden);
                    if architecture.kind == NetworkKind::Lstm {
                        let (own_cell, later_cells) = cell.split_at_mut(*units);
                        self.kernels.float_lstm(from_input, from_hidden, own_cell, own);
                        watch.layer(index, own_cell);
                        cell = later_cells;
                    } else {
                        self.kernels.float_gru(from_input, from_hidden, own);
                    }
                    scratch.inputs[..*units].copy_from_slice(own);
                    hidden = later;
                }
                FloatLayer::Dense(matrix) => {
                    self.kernels.float_multiply(matrix, inputs, &mut scratch.from_input);
                    for (next, sum) in scratch.inputs.iter_mut().zip(&scratch.from_input[..*units])
                    {
                        *next = sum.max(0.0);
                    }
                    watch.layer(index, &scratch.inputs[..*units]);
                }
            }
        }
        let mut outputs = scratch.outputs.as_mut_slice();
        for head in &self.heads {
            let (own, later) = outputs.split_at_mut(head.rows());
            let inputs = &scratch.inputs[..architecture.head_inputs()];
            self.kernels.float_multiply(head, inputs, own);
            outputs = later;
        }
        Ok(&scratch.outputs)
    }

    /// A whole sequence from `state`, which moves on: features of all steps one after another in,
    /// outputs of all steps one after another out.
    pub fn run(&self, state: &mut FloatState, features: &[f32]) -> Result<Vec<f32>, ModelError> {
        let mut scratch = self.scratch();
        sequence::run(&self.architecture, state, features, |hidden, cell, features, outputs| {
            outputs.extend_from_slice(self.step(&mut scratch, hidden, cell, features)?);
            Ok(())
        })
    }

    /// The outputs of each step of a sequence from a zero state.
    pub(crate) fn replay(&self, inputs: &[Vec<f32>]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut scratch = self.scratch();
        sequence::replay(self.zero_state(), inputs, |hidden, cell, features| {
            Ok(self.step(&mut scratch, hidden, cell, features)?.to_vec())
        })
    }
}
