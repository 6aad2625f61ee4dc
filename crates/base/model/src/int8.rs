//! The forward pass in 8-bit integers: the models of `float` with weights, inputs and hidden state
//! in int8, gates by tables and a cell state of 16 bits.
//!
//! Invariant: the same bits on every instruction set. Units: outputs are in Q12 (4096 is 1.0); the
//! arithmetic is defined in `simd::scalar`.

use crate::description::{Architecture, NetworkKind, Normalisation};
use crate::error::ModelError;
use crate::packed::{GROUP, GateScales, LANES, Lanes, PackedMatrix};
use crate::sequence::{self, State, StateLengths};
use crate::simd::scalar::{SCALE_BITS, rescale};
use crate::simd::{Isa, Kernels};
use crate::squash::Q12_BITS;
use crate::stored::StoredModel;

/// 1.0 of an output.
pub const OUTPUT_ONE: f32 = (1 << Q12_BITS) as f32;
/// What one unit of hidden state stands for.
pub const HIDDEN_SCALE: f32 = 1.0 / 127.0;
/// Fractional bits of an MLP layer's output before it is rounded to int8.
const DENSE_BITS: u32 = 8;

/// State of an [`Int8Model`]: one byte per unit, for LSTM two more per cell. A step writes hidden
/// state of -127 to 127 and cells of -32767 to 32767.
pub type Int8State = State<i8, i16>;

#[derive(Clone, Debug)]
enum Int8Layer {
    Recurrent(Recurrent),
    Dense(Dense),
}

/// A model that computes in int8. Shared freely between threads; what changes is in the caller's
/// state and [`Int8Scratch`].
#[derive(Clone, Debug)]
pub struct Int8Model {
    architecture: Architecture,
    lengths: StateLengths,
    mean: Vec<f32>,
    /// Per input: int8 units per unit of the feature.
    units_per_feature: Vec<f32>,
    layers: Vec<Int8Layer>,
    heads: Vec<Dense>,
    kernels: Kernels,
}

/// Room for intermediate results of one thread; made once, so that no step allocates.
#[derive(Clone, Debug)]
pub struct Int8Scratch {
    /// What the next layer sees.
    inputs: Vec<[i8; LANES]>,
    /// Hidden state of the layer at work, zero after its end.
    hidden: Vec<[i8; LANES]>,
    cell: Vec<[i16; LANES]>,
    from_input: Vec<Lanes>,
    from_hidden: Vec<Lanes>,
    outputs: Vec<i32>,
}

impl Int8Model {
    /// The model of stored int8 weights, on the fastest kernels of this processor. The test vector
    /// is not replayed.
    pub fn new(stored: &StoredModel) -> Result<Int8Model, ModelError> {
        stored.check()?;
        let Some(quantisation) = &stored.quantisation else {
            return Err(ModelError::Precision { found: "an f32", expected: "an int8 model" });
        };
        let architecture = stored.description.architecture.clone();
        let mut layers = Vec::new();
        for (layer, units) in architecture.hidden.iter().copied().enumerate() {
            layers.push(if architecture.kind.is_recurrent() {
                let bits = quantisation.cell_bits.get(layer).copied().unwrap_or(Q12_BITS);
                Int8Layer::Recurrent(recurrent(stored, layer, units, bits)?)
            } else {
                let scale = f64::from(quantisation.hidden_scales[layer]);
                let output = scale / f64::from(1 << DENSE_BITS);
                Int8Layer::Dense(dense(stored, &format!("hidden.{layer}"), output)?)
            });
        }
        let mut heads = Vec::new();
        for head in &architecture.heads {
            heads.push(dense(stored, &head.name, 1.0 / f64::from(OUTPUT_ONE))?);
        }
        let Normalisation { mean, deviation } = stored.description.normalisation.clone();
        let scales = deviation.iter().zip(&quantisation.input_scales);
        let units_per_feature =
            scales.map(|(deviation, scale)| 1.0 / (deviation * scale)).collect();
        let (lengths, kernels) = (StateLengths::new(&architecture), Kernels::best());
        Ok(Int8Model { architecture, lengths, mean, units_per_feature, layers, heads, kernels })
    }

    /// Reads a model file and replays its test vector, which must be reproduced exactly.
    pub fn load(bytes: &[u8]) -> Result<Int8Model, ModelError> {
        let stored = StoredModel::from_bytes(bytes)?;
        let model = Int8Model::new(&stored)?;
        let outputs = model.replay(&stored.test_vector.inputs)?;
        let same = |found: f32, expected: f32| found.to_bits() == expected.to_bits();
        stored.test_vector.check_outputs(&outputs, same)?;
        Ok(model)
    }

    /// The same model on another instruction set's kernels.
    pub fn with_isa(mut self, isa: Isa) -> Result<Int8Model, ModelError> {
        self.kernels = Kernels::new(isa)?;
        Ok(self)
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.kernels.isa()
    }

    /// The shape.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The state before the first step.
    pub fn zero_state(&self) -> Int8State {
        State::zero(&self.architecture)
    }

    /// Room for one thread.
    pub fn scratch(&self) -> Int8Scratch {
        let architecture = &self.architecture;
        let hidden = architecture.hidden.iter().copied().max().unwrap_or(0);
        let units = hidden.div_ceil(LANES);
        let widest = architecture.heads.iter().map(|head| head.outputs).max().unwrap_or(0);
        let blocks = (architecture.kind.gates().max(1) * units).max(widest.div_ceil(LANES));
        let vectors = architecture.inputs.div_ceil(LANES).max(units);
        Int8Scratch {
            inputs: vec![[0; LANES]; vectors],
            hidden: vec![[0; LANES]; vectors],
            cell: vec![[0; LANES]; units],
            from_input: vec![Lanes::default(); blocks],
            from_hidden: vec![Lanes::default(); blocks],
            outputs: vec![0; architecture.outputs()],
        }
    }

    /// Turns features (before normalisation) into int8 inputs: rounded half to even, clamped to
    /// +-127; what is not a number becomes 0.
    #[inline]
    pub fn quantise_inputs(&self, features: &[f32], inputs: &mut [i8]) {
        self.kernels.to_int8(features, &self.mean, &self.units_per_feature, inputs);
    }

    /// One step from features, as [`crate::FloatModel::step`]; outputs are in Q12.
    #[inline]
    pub fn step<'s>(
        &self,
        scratch: &'s mut Int8Scratch,
        hidden: &mut [i8],
        cell: &mut [i16],
        features: &[f32],
    ) -> Result<&'s [i32], ModelError> {
        self.lengths.check(hidden.len(), cell.len(), features.len())?;
        self.quantise_inputs(features, scratch.inputs.as_flattened_mut());
        self.layers_and_heads(scratch, hidden, cell);
        Ok(&scratch.outputs)
    }

    /// One step from inputs that are int8 already, see [`Int8Model::quantise_inputs`].
    #[inline]
    pub fn step_quantised<'s>(
        &self,
        scratch: &'s mut Int8Scratch,
        hidden: &mut [i8],
        cell: &mut [i16],
        inputs: &[i8],
    ) -> Result<&'s [i32], ModelError> {
        self.lengths.check(hidden.len(), cell.len(), inputs.len())?;
        scratch.inputs.as_flattened_mut()[..inputs.len()].copy_from_slice(inputs);
        self.layers_and_heads(scratch, hidden, cell);
        Ok(&scratch.outputs)
    }

    /// From `scratch.inputs` to `scratch.outputs`; lengths were checked. What lies after the inputs
    /// of a matrix meets weights of zero.
    fn layers_and_heads(
        &self,
        scratch: &mut Int8Scratch,
        mut hidden: &mut [i8],
        mut cell: &mut [i16],
    ) {
        for (layer, units) in self.layers.iter().zip(&self.architecture.hidden) {
            match layer {
                Int8Layer::Recurrent(layer) => {
                    let (own, later) = hidden.split_at_mut(*units);
                    let (own_cell, later_cells) = cell.split_at_mut((*units).min(cell.len()));
                    self.recurrent(layer, scratch, own, own_cell);
                    (hidden, cell) = (later, later_cells);
                }
                Int8Layer::Dense(layer) => self.dense(layer, scratch),
            }
        }
        let mut outputs = scratch.outputs.as_mut_slice();
        for head in &self.heads {
            let (own, later) = outputs.split_at_mut(head.biases.len());
            let sums = &mut scratch.from_input[..head.matrix.blocks()];
            self.kernels.multiply(&head.matrix, groups(&scratch.inputs), sums);
            let sums = sums.iter().flat_map(|lanes| lanes.0);
            for ((output, sum), (multiplier, bias)) in
                own.iter_mut().zip(sums).zip(head.multipliers.iter().zip(&head.biases))
            {
                *output = rescale(sum, *multiplier).wrapping_add(*bias);
            }
            outputs = later;
        }
    }

    /// One recurrent layer; its new hidden state becomes `scratch.inputs`.
    fn recurrent(
        &self,
        layer: &Recurrent,
        scratch: &mut Int8Scratch,
        own: &mut [i8],
        own_cell: &mut [i16],
    ) {
        let blocks = layer.input.blocks();
        let units = own.len().div_ceil(LANES);
        let hidden = &mut scratch.hidden[..units];
        put(own, hidden);
        let (from_input, from_hidden) =
            (&mut scratch.from_input[..blocks], &mut scratch.from_hidden[..blocks]);
        self.kernels.multiply(&layer.input, groups(&scratch.inputs), from_input);
        self.kernels.multiply(&layer.hidden, groups(hidden), from_hidden);
        let sums = [from_input, from_hidden];
        if self.architecture.kind == NetworkKind::Lstm {
            let cell = &mut scratch.cell[..units];
            put(own_cell, cell);
            self.kernels.lstm(&layer.scales, sums, cell, hidden);
            take(cell, own_cell);
        } else {
            self.kernels.gru(&layer.scales, sums, hidden);
        }
        take(hidden, own);
        std::mem::swap(&mut scratch.inputs, &mut scratch.hidden);
    }

    /// One layer of an MLP; its output becomes `scratch.inputs`.
    fn dense(&self, layer: &Dense, scratch: &mut Int8Scratch) {
        let sums = &mut scratch.from_input[..layer.matrix.blocks()];
        self.kernels.multiply(&layer.matrix, groups(&scratch.inputs), sums);
        let inputs = scratch.inputs.as_flattened_mut();
        let sums = sums.iter().flat_map(|lanes| lanes.0);
        let scales = layer.multipliers.iter().zip(&layer.biases);
        for ((input, sum), (multiplier, bias)) in inputs.iter_mut().zip(sums).zip(scales) {
            let fine = rescale(sum, *multiplier).wrapping_add(*bias);
            let half = 1 << (DENSE_BITS - 1);
            *input = (fine.wrapping_add(half) >> DENSE_BITS).clamp(0, 127) as i8;
        }
    }

    /// A whole sequence from `state`, which moves on: features of all steps one after another in,
    /// outputs (Q12) of all steps one after another out.
    pub fn run(&self, state: &mut Int8State, features: &[f32]) -> Result<Vec<i32>, ModelError> {
        let mut scratch = self.scratch();
        sequence::run(&self.architecture, state, features, |hidden, cell, features, outputs| {
            outputs.extend_from_slice(self.step(&mut scratch, hidden, cell, features)?);
            Ok(())
        })
    }

    /// The outputs, as real numbers, of each step of a sequence from a zero state.
    pub(crate) fn replay(&self, inputs: &[Vec<f32>]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut scratch = self.scratch();
        sequence::replay(self.zero_state(), inputs, |hidden, cell, features| {
            let outputs = self.step(&mut scratch, hidden, cell, features)?;
            Ok(outputs.iter().map(|output| *output as f32 / OUTPUT_ONE).collect())
        })
    }
}

/// Vectors as groups of columns.
#[inline(always)]
fn groups(vectors: &[[i8; LANES]]) -> &[[i8; GROUP]] {
    vectors.as_flattened().as_chunks().0
}

/// Copies numbers into whole vectors, zero after the end.
#[inline(always)]
fn put<T: Copy + Default>(numbers: &[T], vectors: &mut [[T; LANES]]) {
    let (whole, rest) = numbers.as_chunks::<LANES>();
    for (vector, numbers) in vectors.iter_mut().zip(whole) {
        *vector = *numbers;
    }
    if let Some(last) = vectors.get_mut(whole.len()) {
        *last = std::array::from_fn(|lane| rest.get(lane).copied().unwrap_or_default());
    }
}

/// Copies numbers out of whole vectors.
#[inline(always)]
fn take<T: Copy>(vectors: &[[T; LANES]], numbers: &mut [T]) {
    let (whole, rest) = numbers.as_chunks_mut::<LANES>();
    let (of_whole, last) = vectors.split_at(whole.len().min(vectors.len()));
    for (numbers, vector) in whole.iter_mut().zip(of_whole) {
        *numbers = *vector;
    }
    for (number, lane) in rest.iter_mut().zip(last.as_flattened()) {
        *number = *lane;
    }
}

/// Largest bias, in either direction.
const MAX_BIAS: f64 = 16384.0;

/// A layer that is recurrent.
#[derive(Clone, Debug)]
struct Recurrent {
    input: PackedMatrix,
    hidden: PackedMatrix,
    scales: GateScales,
}

/// A dense layer: `rescale(sum) + bias` in its output's unit.
#[derive(Clone, Debug)]
struct Dense {
    matrix: PackedMatrix,
    multipliers: Vec<i32>,
    biases: Vec<i32>,
}

/// `scale / unit` as a multiplier of [`SCALE_BITS`] fractional bits.
fn multiplier(name: &str, scale: f32, unit: f64) -> Result<i32, ModelError> {
    let exact = (f64::from(scale) / unit * f64::from(1 << SCALE_BITS)).round();
    if exact <= f64::from(i32::MAX) {
        return Ok(exact as i32);
    }
    let what = format!("tensor `{name}`");
    Err(ModelError::Number {
        what,
        found: scale,
        expected: "a scale whose multiplier fits 32 bits",
    })
}

/// `bias / unit`, rounded.
fn fixed_bias(name: &str, bias: f64, unit: f64) -> Result<i32, ModelError> {
    let fixed = (bias / unit).round();
    if bias.abs() <= MAX_BIAS && fixed.abs() <= f64::from(1 << 30) {
        return Ok(fixed as i32);
    }
    let (what, found) = (format!("tensor `{name}`"), bias as f32);
    Err(ModelError::Number { what, found, expected: "a bias from -16384 to 16384" })
}

/// The dense layer stored as `name`, whose outputs are in `unit`.
fn dense(stored: &StoredModel, name: &str, unit: f64) -> Result<Dense, ModelError> {
    let (weight, scale, bias) =
        (format!("{name}.weight"), format!("{name}.weight.scale"), format!("{name}.bias"));
    let (weights, biases) = (stored.i8s(&weight)?, stored.f32s(&bias)?);
    let rows = biases.len();
    let scales = stored.f32s(&scale)?.iter();
    Ok(Dense {
        matrix: PackedMatrix::new(weights, weights.len() / rows, rows.div_ceil(LANES), |row| row),
        multipliers: scales.map(|s| multiplier(&scale, *s, unit)).collect::<Result<_, _>>()?,
        biases: biases
            .iter()
            .map(|b| fixed_bias(&bias, f64::from(*b), unit))
            .collect::<Result<_, _>>()?,
    })
}

/// The recurrent layer number `layer`.
fn recurrent(
    stored: &StoredModel,
    layer: usize,
    units: usize,
    cell_bits: u32,
) -> Result<Recurrent, ModelError> {
    let architecture = &stored.description.architecture;
    let (gates, unit) = (architecture.kind.gates(), 1.0 / f64::from(OUTPUT_ONE));
    let unit_blocks = units.div_ceil(LANES);
    let blocks = gates * unit_blocks;
    // Each gate begins a new block, so that a vector never spans two.
    let place = |row: usize| row / units * unit_blocks * LANES + row % units;
    let lanes = |count: usize| vec![Lanes::default(); count];
    let put = |lanes: &mut [Lanes], row: usize, number: i32| {
        lanes[row / LANES].0[row % LANES] = number;
    };
    let mut matrices = Vec::new();
    for side in ["ih", "hh"] {
        let name = format!("weight_{side}_l{layer}");
        let (weights, scale) = (stored.i8s(&name)?, format!("{name}.scale"));
        let mut multipliers = lanes(blocks);
        for (row, number) in stored.f32s(&scale)?.iter().enumerate() {
            put(&mut multipliers, place(row), multiplier(&scale, *number, unit)?);
        }
        let columns = weights.len() / (gates * units);
        matrices.push((PackedMatrix::new(weights, columns, blocks, place), multipliers));
    }
    let mut scales = GateScales { bias: lanes(blocks), cell_bits, ..GateScales::default() };
    let apart = architecture.kind == NetworkKind::Gru;
    scales.hidden_bias = lanes(if apart { unit_blocks } else { 0 });
    let name = format!("bias_ih_l{layer}");
    let of_hidden = stored.f32s(&format!("bias_hh_l{layer}"))?;
    for (row, (a, b)) in stored.f32s(&name)?.iter().zip(of_hidden).enumerate() {
        let (a, b) = (f64::from(*a), f64::from(*b));
        if apart && row >= 2 * units {
            put(&mut scales.bias, place(row), fixed_bias(&name, a, unit)?);
            put(&mut scales.hidden_bias, row - 2 * units, fixed_bias(&name, b, unit)?);
        } else {
            put(&mut scales.bias, place(row), fixed_bias(&name, a + b, unit)?);
        }
    }
    let mut sides = matrices.into_iter();
    let (Some((input, from_input)), Some((hidden, from_hidden))) = (sides.next(), sides.next())
    else {
        return Err(ModelError::size("matrices of a recurrent layer", 0, 2));
    };
    (scales.input, scales.hidden) = (from_input, from_hidden);
    Ok(Recurrent { input, hidden, scales })
}
