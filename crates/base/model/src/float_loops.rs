//! The loops of the f32 forward passes, written so that compilers turn them into vectors; `simd`
//! compiles them again for wider registers.
//!
//! Invariant: every sum adds up in the order of the columns and no product is fused into it, so all
//! machines give the same bits.

use crate::squash::{sigmoid, tanh};

/// A matrix with a bias, column after column.
#[derive(Clone, Debug)]
pub struct FloatMatrix {
    columns: Vec<f32>,
    bias: Vec<f32>,
}

impl FloatMatrix {
    /// From rows, as PyTorch stores them: `weights[row * inputs + input]`.
    pub fn new(weights: &[f32], bias: &[f32]) -> FloatMatrix {
        let rows = bias.len().max(1);
        let inputs = weights.len() / rows;
        let column = |input: usize| (0..rows).map(move |row| weights[row * inputs + input]);
        FloatMatrix { columns: (0..inputs).flat_map(column).collect(), bias: bias.to_vec() }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.bias.len()
    }
}

/// `sums = bias + matrix * x`; four columns per pass over the sums.
#[inline(always)]
pub fn multiply(matrix: &FloatMatrix, x: &[f32], sums: &mut [f32]) {
    let rows = matrix.rows();
    let sums = &mut sums[..rows];
    sums.copy_from_slice(&matrix.bias);
    let mut quads = matrix.columns.chunks_exact(4 * rows.max(1));
    let (x_quads, x_rest) = x.as_chunks::<4>();
    for (columns, x) in quads.by_ref().zip(x_quads) {
        let (a, rest) = columns.split_at(rows);
        let (b, rest) = rest.split_at(rows);
        let (c, d) = rest.split_at(rows);
        for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *sum = *sum + a * x[0] + b * x[1] + c * x[2] + d * x[3];
        }
    }
    for (column, x) in quads.remainder().chunks_exact(rows.max(1)).zip(x_rest) {
        for (sum, weight) in sums.iter_mut().zip(column) {
            *sum += weight * x;
        }
    }
}

/// `(feature - mean) * units` as int8: rounded half to even, clamped to +-127; what is not a number
/// becomes 0.
#[inline(always)]
pub fn to_int8(features: &[f32], mean: &[f32], units: &[f32], inputs: &mut [i8]) {
    // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let scales = mean.iter().zip(units);
    for ((input, feature), (mean, units)) in inputs.iter_mut().zip(features).zip(scales) {
        let exact = (feature - mean) * units;
        let exact = if exact.is_nan() { 0.0 } else { exact.clamp(-127.0, 127.0) };
        *input = (exact + ROUND).to_bits() as i8;
    }
}

/// One GRU layer after its products (biases included): gates r, z, n.
#[inline(always)]
pub fn gru(from_input: &[f32], from_hidden: &[f32], hidden: &mut [f32]) {
    let units = hidden.len();
    let gates = |sums| -> [&[f32]; 3] {
        let (r, rest) = <[f32]>::split_at(sums, units);
        let (z, n) = rest.split_at(units);
        [r, z, &n[..units]]
    };
    let ([ri, zi, ni], [rh, zh, nh]) = (gates(from_input), gates(from_hidden));
    for unit in 0..units {
        let r = sigmoid(ri[unit] + rh[unit]);
        let z = sigmoid(zi[unit] + zh[unit]);
        let n = tanh(ni[unit] + r * nh[unit]);
        hidden[unit] = (1.0 - z) * n + z * hidden[unit];
    }
}

/// One LSTM layer after its products (biases included): gates i, f, g, o.
#[inline(always)]
pub fn lstm(from_input: &[f32], from_hidden: &[f32], cell: &mut [f32], hidden: &mut [f32]) {
    let units = hidden.len();
    let cell = &mut cell[..units];
    let gates = |sums| -> [&[f32]; 4] {
        let (i, rest) = <[f32]>::split_at(sums, units);
        let (f, rest) = rest.split_at(units);
        let (g, o) = rest.split_at(units);
        [i, f, g, &o[..units]]
    };
    let ([ii, fi, gi, oi], [ih, fh, gh, oh]) = (gates(from_input), gates(from_hidden));
    for unit in 0..units {
        let i = sigmoid(ii[unit] + ih[unit]);
        let f = sigmoid(fi[unit] + fh[unit]);
        let g = tanh(gi[unit] + gh[unit]);
        let o = sigmoid(oi[unit] + oh[unit]);
        cell[unit] = f * cell[unit] + i * g;
        hidden[unit] = o * tanh(cell[unit]);
    }
}
