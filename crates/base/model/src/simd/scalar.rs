//! The definition of the int8 arithmetic, one lane at a time: what every other kernel must equal,
//! bit for bit.
//!
//! Units: sums are exact integers; pre-activations are Q12 (4096 is 1.0), gates Q15 (32767 is 1.0).
//! The hidden state has 127 for 1.0; the cell state has `cell_bits` fractional bits. Every shift to
//! the right is arithmetic and rounds half up (half of the divisor is added first). Sums and
//! products wrap; only a state that no step has made comes near that.

use crate::packed::{GROUP, GateScales, LANES, Lanes, PANEL, PackedMatrix};
use crate::squash::{SIGMOID, TANH};

/// Fractional bits of a multiplier in [`GateScales`].
pub const SCALE_BITS: u32 = 26;
/// What 1.0 in Q15 is for one unit of int8: 127 * 258 = 32766.
pub const Q15_PER_UNIT: i32 = 258;
/// Widest pre-activation of the hidden state in GRU's third gate: 16 in Q12, and its product with a
/// gate fits 32 bits.
pub const HIDDEN_LIMIT: i32 = 65535;

/// `sums = matrix * x`.
pub fn multiply(matrix: &PackedMatrix, x: &[[i8; 4]], sums: &mut [Lanes]) {
    for ((lines, offsets), sums) in matrix.panels().zip(sums.chunks_mut(PANEL)) {
        sums.fill(Lanes::default());
        for (lines, x) in lines.chunks_exact(offsets.len()).zip(x) {
            for (line, sums) in lines.iter().zip(sums.iter_mut()) {
                let (rows, _) = line.0.as_chunks::<GROUP>();
                for (row, sum) in rows.iter().zip(&mut sums.0) {
                    for (weight, x) in row.iter().zip(x) {
                        *sum += i32::from(*weight) * i32::from(*x);
                    }
                }
            }
        }
    }
}

/// `(sum * multiplier) / 2^26`, rounded half up.
#[inline(always)]
pub fn rescale(sum: i32, multiplier: i32) -> i32 {
    let product = i64::from(sum) * i64::from(multiplier);
    ((product + (1 << (SCALE_BITS - 1))) >> SCALE_BITS) as i32
}

/// Both matrices' part of a pre-activation, rounded once, in Q12.
#[inline(always)]
fn rescale_both(sums: [i32; 2], multipliers: [i32; 2]) -> i32 {
    let product = i64::from(sums[0]) * i64::from(multipliers[0])
        + i64::from(sums[1]) * i64::from(multipliers[1]);
    ((product + (1 << (SCALE_BITS - 1))) >> SCALE_BITS) as i32
}

/// `x / 2^bits`, rounded half up.
#[inline(always)]
fn shift(x: i32, bits: u32) -> i32 {
    x.wrapping_add(1 << (bits - 1)) >> bits
}

/// From Q15 to int8.
#[inline(always)]
fn to_int8(q15: i32) -> i8 {
    shift(q15.wrapping_mul(127), 15).clamp(-127, 127) as i8
}

/// Gate `index` (a block of the sums) at `lane`, before its non-linearity.
#[inline(always)]
fn gate(scales: &GateScales, sums: &[&mut [Lanes]; 2], index: usize, lane: usize) -> i32 {
    let multipliers = [scales.input[index].0[lane], scales.hidden[index].0[lane]];
    rescale_both([sums[0][index].0[lane], sums[1][index].0[lane]], multipliers)
        .wrapping_add(scales.bias[index].0[lane])
}

/// One GRU layer after its products.
///
/// r = sigmoid, z = sigmoid, n = tanh(a + r g), h' = n + z (h - n). The input gives a, the hidden
/// state gives g; both are clamped to +-[`HIDDEN_LIMIT`].
pub fn gru(scales: &GateScales, sums: [&mut [Lanes]; 2], hidden: &mut [[i8; LANES]]) {
    let units = hidden.len();
    for (unit, hidden) in hidden.iter_mut().enumerate() {
        for (lane, hidden) in hidden.iter_mut().enumerate() {
            let r = SIGMOID.interpolate(gate(scales, &sums, unit, lane));
            let z = SIGMOID.interpolate(gate(scales, &sums, units + unit, lane));
            let third = 2 * units + unit;
            let a = rescale(sums[0][third].0[lane], scales.input[third].0[lane])
                .wrapping_add(scales.bias[third].0[lane]);
            let g = rescale(sums[1][third].0[lane], scales.hidden[third].0[lane])
                .wrapping_add(scales.hidden_bias[unit].0[lane])
                .clamp(-HIDDEN_LIMIT, HIDDEN_LIMIT);
            let n = TANH.interpolate(a.wrapping_add(shift(r * g, 15)));
            let difference = i32::from(*hidden) * Q15_PER_UNIT - n;
            *hidden = to_int8(n + shift(z.wrapping_mul(difference), 15));
        }
    }
}

/// One LSTM layer after its products.
///
/// c' = f c + i g, clamped to 16 bits without -32768; h' = o tanh(c').
pub fn lstm(
    scales: &GateScales,
    sums: [&mut [Lanes]; 2],
    cell: &mut [[i16; LANES]],
    hidden: &mut [[i8; LANES]],
) {
    let units = hidden.len();
    let bits = scales.cell_bits;
    for (unit, (cell, hidden)) in cell.iter_mut().zip(hidden).enumerate() {
        for (lane, (cell, hidden)) in cell.iter_mut().zip(hidden).enumerate() {
            let i = SIGMOID.interpolate(gate(scales, &sums, unit, lane));
            let f = SIGMOID.interpolate(gate(scales, &sums, units + unit, lane));
            let g = TANH.interpolate(gate(scales, &sums, 2 * units + unit, lane));
            let o = SIGMOID.interpolate(gate(scales, &sums, 3 * units + unit, lane));
            let kept = f * i32::from(*cell);
            let next = shift(kept + shift(i * g, 15 - bits), 15).clamp(-32767, 32767);
            *cell = next as i16;
            *hidden = to_int8(shift(o * TANH.interpolate(next << (12 - bits)), 15));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int8_survives_the_way_through_q15() {
        for unit in -127..=127_i8 {
            assert_eq!(to_int8(i32::from(unit) * Q15_PER_UNIT), unit);
        }
        assert_eq!((to_int8(32767), to_int8(-32767)), (127, -127));
    }

    #[test]
    fn rescaling_rounds_half_up() {
        assert_eq!(rescale(3, 1 << 25), 2, "1.5");
        assert_eq!(rescale(-3, 1 << 25), -1, "-1.5");
        assert_eq!(rescale(1 << 20, 1 << 26), 1 << 20);
    }
}
