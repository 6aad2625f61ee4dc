use crate::description::Architecture;
use crate::error::ModelError;
use cachewright_snapshot::SnapshotValue;

/// State carried from step to step: hidden numbers of type `H`, and for LSTM cells of type `C`.
#[derive(Clone, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct State<H, C> {
    /// Hidden state of all layers, first layer first.
    pub hidden: Vec<H>,
    /// Cell state of all layers; empty but for LSTM.
    pub cell: Vec<C>,
}

impl<H: Clone + Default, C: Clone + Default> State<H, C> {
    /// The state before the first step.
    pub fn zero(architecture: &Architecture) -> State<H, C> {
        State {
            hidden: vec![H::default(); architecture.state_len()],
            cell: vec![C::default(); architecture.cell_len()],
        }
    }
}

/// What a caller of a step hands in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateLengths {
    hidden: usize,
    cell: usize,
    inputs: usize,
}

impl StateLengths {
    pub(crate) fn new(architecture: &Architecture) -> StateLengths {
        StateLengths {
            hidden: architecture.state_len(),
            cell: architecture.cell_len(),
            inputs: architecture.inputs,
        }
    }

    #[inline(always)]
    pub(crate) fn check(self, hidden: usize, cell: usize, inputs: usize) -> Result<(), ModelError> {
        if (hidden, cell, inputs) == (self.hidden, self.cell, self.inputs) {
            return Ok(());
        }
        Err(self.wrong(hidden, cell, inputs))
    }

    #[cold]
    fn wrong(self, hidden: usize, cell: usize, inputs: usize) -> ModelError {
        if hidden != self.hidden {
            return ModelError::size("numbers of hidden state", hidden, self.hidden);
        }
        if cell != self.cell {
            return ModelError::size("numbers of cell state", cell, self.cell);
        }
        ModelError::size("features of a step", inputs, self.inputs)
    }
}

/// How many whole steps a sequence of this length has.
pub(crate) fn whole_steps(architecture: &Architecture, length: usize) -> Result<usize, ModelError> {
    if length.is_multiple_of(architecture.inputs) {
        return Ok(length / architecture.inputs);
    }
    let expected = format!("a multiple of {}", architecture.inputs);
    Err(ModelError::size("features of a sequence", length, expected))
}

/// Runs a whole sequence from `state`, which moves on: features of all steps one after another in,
/// outputs of all steps one after another out. `step` appends its outputs.
pub(crate) fn run<H, C, O>(
    architecture: &Architecture,
    State { hidden, cell }: &mut State<H, C>,
    features: &[f32],
    mut step: impl FnMut(&mut [H], &mut [C], &[f32], &mut Vec<O>) -> Result<(), ModelError>,
) -> Result<Vec<O>, ModelError> {
    let steps = whole_steps(architecture, features.len())?;
    let mut outputs = Vec::with_capacity(steps * architecture.outputs());
    for features in features.chunks_exact(architecture.inputs) {
        step(hidden, cell, features, &mut outputs)?;
    }
    Ok(outputs)
}

/// The outputs of each step of a sequence from `state`.
pub(crate) fn replay<H, C>(
    State { mut hidden, mut cell }: State<H, C>,
    inputs: &[Vec<f32>],
    mut step: impl FnMut(&mut [H], &mut [C], &[f32]) -> Result<Vec<f32>, ModelError>,
) -> Result<Vec<Vec<f32>>, ModelError> {
    inputs.iter().map(|features| step(&mut hidden, &mut cell, features)).collect()
}
