//! Layers of int8 weights, read from a stored model.
//!
//! For: [`crate::int8`]. Must never know: steps, states. Scales become multipliers of
//! [`SCALE_BITS`] fractional bits, biases whole numbers in the unit of the sums they join.

use crate::description::NetworkKind;
use crate::error::ModelError;
use crate::int8::OUTPUT_ONE;
use crate::packed::{GateScales, LANES, Lanes, PackedMatrix};
use crate::simd::scalar::SCALE_BITS;
use crate::stored::StoredModel;

/// Largest bias, in either direction.
const MAX_BIAS: f64 = 16384.0;

/// A layer that is recurrent.
#[derive(Clone, Debug)]
pub struct Recurrent {
    pub input: PackedMatrix,
    pub hidden: PackedMatrix,
    pub scales: GateScales,
}

/// A dense layer: `rescale(sum) + bias` in its output's unit.
#[derive(Clone, Debug)]
pub struct Dense {
    pub matrix: PackedMatrix,
    pub multipliers: Vec<i32>,
    pub biases: Vec<i32>,
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
pub fn dense(stored: &StoredModel, name: &str, unit: f64) -> Result<Dense, ModelError> {
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
pub fn recurrent(
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
