//! Kernels for 64-bit Arm, four 32-bit lanes at a time.
//!
//! Only instructions that every 64-bit Arm processor has; tables are read lane by lane, as NEON has
//! no gather.

use std::arch::aarch64::*;

use super::scalar::{HIDDEN_LIMIT, Q15_PER_UNIT, SCALE_BITS};
use crate::packed::{CacheLine, GateScales, LANES, Lanes, PANEL, PackedMatrix};
use crate::squash::{SIGMOID, SquashTable, TANH};

/// Sixteen lanes as four registers.
type Quad = [int32x4_t; 4];

/// `sums = matrix * x`.
#[target_feature(enable = "neon")]
pub fn multiply(matrix: &PackedMatrix, x: &[[i8; 4]], sums: &mut [Lanes]) {
    for ((lines, offsets), sums) in matrix.panels().zip(sums.chunks_mut(PANEL)) {
        for (block, sum) in sums.iter_mut().enumerate() {
            let lines = lines.iter().skip(block).step_by(offsets.len());
            store(block_sums(lines, x), sum);
        }
    }
}

/// The sums of one block of sixteen rows. A register of 16 bytes holds four rows of four columns.
/// Products of two rows are added pairwise to four half sums, and these pairwise at the end.
#[inline]
#[target_feature(enable = "neon")]
fn block_sums<'a>(lines: impl Iterator<Item = &'a CacheLine>, x: &[[i8; 4]]) -> Quad {
    let mut halves = [[vdupq_n_s32(0); 2]; 4];
    for (line, x) in lines.zip(x) {
        let x = i32::from_le_bytes(x.map(i8::cast_unsigned));
        let x = vreinterpret_s8_s32(vdup_n_s32(x));
        for (rows, halves) in line.0.as_chunks::<16>().0.iter().zip(&mut halves) {
            // SAFETY: sixteen bytes are read from a borrowed array of sixteen.
            let weights = unsafe { vld1q_s8(rows.as_ptr()) };
            halves[0] = vpadalq_s16(halves[0], vmull_s8(vget_low_s8(weights), x));
            halves[1] = vpadalq_s16(halves[1], vmull_s8(vget_high_s8(weights), x));
        }
    }
    halves.map(|[low, high]| vpaddq_s32(low, high))
}

#[inline]
#[target_feature(enable = "neon")]
fn load(lanes: &Lanes, quarter: usize) -> int32x4_t {
    let numbers = &lanes.0[4 * quarter..4 * quarter + 4];
    // SAFETY: four numbers are read from a borrowed slice of four.
    unsafe { vld1q_s32(numbers.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(values: Quad, lanes: &mut Lanes) {
    for (value, numbers) in values.into_iter().zip(lanes.0.as_chunks_mut::<4>().0) {
        // SAFETY: four numbers are written to an exclusively borrowed array of four.
        unsafe { vst1q_s32(numbers.as_mut_ptr(), value) };
    }
}

/// Products of the two lower and the two upper lanes, 64 bits each.
#[inline]
#[target_feature(enable = "neon")]
fn products(a: int32x4_t, b: int32x4_t) -> [int64x2_t; 2] {
    [vmull_s32(vget_low_s32(a), vget_low_s32(b)), vmull_high_s32(a, b)]
}

/// 64-bit products divided by 2^26, rounded half up, in 32 bits.
#[inline]
#[target_feature(enable = "neon")]
fn rescaled([low, high]: [int64x2_t; 2]) -> int32x4_t {
    const SHIFT: i32 = SCALE_BITS as i32;
    vcombine_s32(vrshrn_n_s64::<SHIFT>(low), vrshrn_n_s64::<SHIFT>(high))
}

/// Quarter `quarter` of block `index` of the gates before its non-linearity.
#[inline]
#[target_feature(enable = "neon")]
fn gate(scales: &GateScales, sums: &[&mut [Lanes]; 2], index: usize, quarter: usize) -> int32x4_t {
    let input = products(load(&sums[0][index], quarter), load(&scales.input[index], quarter));
    let hidden = products(load(&sums[1][index], quarter), load(&scales.hidden[index], quarter));
    let both = [vaddq_s64(input[0], hidden[0]), vaddq_s64(input[1], hidden[1])];
    vaddq_s32(rescaled(both), load(&scales.bias[index], quarter))
}

/// The table's function of four Q12 numbers, in Q15.
#[inline]
#[target_feature(enable = "neon")]
fn squash(table: &SquashTable, x: int32x4_t) -> int32x4_t {
    let mut lanes = [0; 4];
    // SAFETY: four numbers are written to an exclusively borrowed array of four.
    unsafe { vst1q_s32(lanes.as_mut_ptr(), x) };
    let lanes = lanes.map(|x| table.interpolate(x));
    // SAFETY: four numbers are read from a borrowed array of four.
    unsafe { vld1q_s32(lanes.as_ptr()) }
}

/// The product of two Q15 numbers, in Q15, rounded half up. The sum wraps before the shift, as
/// everywhere; a rounding shift would keep a carry more.
#[inline]
#[target_feature(enable = "neon")]
fn times(a: int32x4_t, b: int32x4_t) -> int32x4_t {
    vshrq_n_s32::<15>(vaddq_s32(vmulq_s32(a, b), vdupq_n_s32(1 << 14)))
}

/// From Q15 to int8, still in 32-bit lanes.
#[inline]
#[target_feature(enable = "neon")]
fn to_int8(q15: int32x4_t) -> int32x4_t {
    let unit = vminq_s32(times(q15, vdupq_n_s32(127)), vdupq_n_s32(127));
    vmaxq_s32(unit, vdupq_n_s32(-127))
}

/// One GRU layer after its products.
#[target_feature(enable = "neon")]
pub fn gru(scales: &GateScales, sums: [&mut [Lanes]; 2], hidden: &mut [[i8; LANES]]) {
    let units = hidden.len();
    for (unit, hidden) in hidden.iter_mut().enumerate() {
        let mut state = Lanes(hidden.map(i32::from));
        let mut next = [vdupq_n_s32(0); 4];
        for (quarter, next) in next.iter_mut().enumerate() {
            let r = squash(&SIGMOID, gate(scales, &sums, unit, quarter));
            let z = squash(&SIGMOID, gate(scales, &sums, units + unit, quarter));
            let third = 2 * units + unit;
            let part = |lanes: &[Lanes]| load(&lanes[third], quarter);
            let a = rescaled(products(part(sums[0]), part(&scales.input)));
            let a = vaddq_s32(a, part(&scales.bias));
            let g = rescaled(products(part(sums[1]), part(&scales.hidden)));
            let g = vaddq_s32(g, load(&scales.hidden_bias[unit], quarter));
            let g = vminq_s32(g, vdupq_n_s32(HIDDEN_LIMIT));
            let g = vmaxq_s32(g, vdupq_n_s32(-HIDDEN_LIMIT));
            let n = squash(&TANH, vaddq_s32(a, times(r, g)));
            let old = vmulq_n_s32(load(&state, quarter), Q15_PER_UNIT);
            *next = to_int8(vaddq_s32(n, times(z, vsubq_s32(old, n))));
        }
        store(next, &mut state);
        *hidden = state.0.map(|unit| unit as i8);
    }
}

/// One LSTM layer after its products.
#[target_feature(enable = "neon")]
pub fn lstm(
    scales: &GateScales,
    sums: [&mut [Lanes]; 2],
    cell: &mut [[i16; LANES]],
    hidden: &mut [[i8; LANES]],
) {
    let units = hidden.len();
    let fraction = 15 - scales.cell_bits as i32;
    let half_fraction = vdupq_n_s32(1 << (fraction - 1));
    // A shift to the left by a negative number is one to the right.
    let (fraction, to_q12) = (vdupq_n_s32(-fraction), vdupq_n_s32(12 - scales.cell_bits as i32));
    for (unit, (cell, hidden)) in cell.iter_mut().zip(hidden).enumerate() {
        let mut memory = Lanes(cell.map(i32::from));
        let mut next_memory = [vdupq_n_s32(0); 4];
        let mut state = [vdupq_n_s32(0); 4];
        for quarter in 0..4 {
            let i = squash(&SIGMOID, gate(scales, &sums, unit, quarter));
            let f = squash(&SIGMOID, gate(scales, &sums, units + unit, quarter));
            let g = squash(&TANH, gate(scales, &sums, 2 * units + unit, quarter));
            let o = squash(&SIGMOID, gate(scales, &sums, 3 * units + unit, quarter));
            let new = vshlq_s32(vaddq_s32(vmulq_s32(i, g), half_fraction), fraction);
            let sum = vaddq_s32(vmulq_s32(f, load(&memory, quarter)), new);
            let next = vshrq_n_s32::<15>(vaddq_s32(sum, vdupq_n_s32(1 << 14)));
            let next = vminq_s32(next, vdupq_n_s32(32767));
            let next = vmaxq_s32(next, vdupq_n_s32(-32767));
            next_memory[quarter] = next;
            state[quarter] = to_int8(times(o, squash(&TANH, vshlq_s32(next, to_q12))));
        }
        store(next_memory, &mut memory);
        *cell = memory.0.map(|word| word as i16);
        store(state, &mut memory);
        *hidden = memory.0.map(|unit| unit as i8);
    }
}
