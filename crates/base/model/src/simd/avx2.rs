//! Kernels for x86-64 with AVX2, eight 32-bit lanes at a time.
//!
//! Products of bytes use `maddubs` on |x| and w with the sign of x. Both are at most 128 * 127, so
//! that the sum of two never saturates 16 bits.

use std::arch::x86_64::*;
use std::ops::Range;

use super::gates;
use super::scalar::{HIDDEN_LIMIT, Q15_PER_UNIT, SCALE_BITS};
use crate::float_loops::{self, FloatMatrix};
use crate::packed::{CacheLine, GateScales, LANES, Lanes, PANEL, PackedMatrix};
use crate::squash::{SIGMOID, SquashTable, TANH};

/// Blocks at a time: their sums fill half of the sixteen registers.
const PART: usize = 4;

/// Sixteen lanes as two registers.
type Pair = [__m256i; 2];

/// `sums = matrix * x`.
#[target_feature(enable = "avx2")]
pub fn multiply(matrix: &PackedMatrix, x: &[[i8; 4]], sums: &mut [Lanes]) {
    for ((lines, offsets), sums) in matrix.panels().zip(sums.chunks_mut(PANEL)) {
        let width = offsets.len();
        for (part, sums) in sums.chunks_mut(PART).enumerate() {
            let lines = &lines[(part * PART).min(lines.len())..];
            match sums.len() {
                1 => blocks::<1>(lines, width, x, sums),
                2 => blocks::<2>(lines, width, x, sums),
                3 => blocks::<3>(lines, width, x, sums),
                _ => blocks::<4>(lines, width, x, sums),
            }
        }
    }
}

/// `W` blocks of a panel of `width`; `lines` begin with the first of these blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn blocks<const W: usize>(lines: &[CacheLine], width: usize, x: &[[i8; 4]], sums: &mut [Lanes]) {
    let ones = _mm256_set1_epi16(1);
    let mut totals = [[_mm256_setzero_si256(); 2]; W];
    for (lines, x) in lines.chunks(width).zip(x) {
        let Some(lines) = lines.first_chunk::<W>() else { break };
        let x = _mm256_set1_epi32(i32::from_le_bytes(x.map(i8::cast_unsigned)));
        let magnitude = _mm256_abs_epi8(x);
        for block in 0..W {
            let weights = bytes(&lines[block]);
            for half in 0..2 {
                let pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(weights[half], x));
                let quads = _mm256_madd_epi16(pairs, ones);
                totals[block][half] = _mm256_add_epi32(totals[block][half], quads);
            }
        }
    }
    for (total, sum) in totals.into_iter().zip(sums) {
        store(total, sum);
    }
}

/// Writes sixteen lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn store(pair: Pair, lanes: &mut Lanes) {
    let to = lanes.0.as_mut_ptr().cast::<__m256i>();
    // SAFETY: `Lanes` is 64 bytes, aligned to 64, and exclusively borrowed.
    unsafe {
        _mm256_store_si256(to, pair[0]);
        _mm256_store_si256(to.add(1), pair[1]);
    }
}

/// The two halves of a line.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(line: &CacheLine) -> Pair {
    let from = line.0.as_ptr().cast::<__m256i>();
    // SAFETY: `CacheLine` is 64 bytes, aligned to 64, and borrowed.
    unsafe { [_mm256_load_si256(from), _mm256_load_si256(from.add(1))] }
}

/// The two halves of sixteen lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn load(lanes: &Lanes) -> Pair {
    let from = lanes.0.as_ptr().cast::<__m256i>();
    // SAFETY: `Lanes` is 64 bytes, aligned to 64, and borrowed.
    unsafe { [_mm256_load_si256(from), _mm256_load_si256(from.add(1))] }
}

/// Products of the even and of the odd lanes, 64 bits each.
#[inline]
#[target_feature(enable = "avx2")]
fn products(a: __m256i, b: __m256i) -> Pair {
    let odd = _mm256_mul_epi32(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
    [_mm256_mul_epi32(a, b), odd]
}

/// Even and odd 64-bit products, divided by 2^26 and rounded half up. The 32 bits kept are the same
/// whether the shift is logical or arithmetic.
#[inline]
#[target_feature(enable = "avx2")]
fn rescaled([even, odd]: Pair) -> __m256i {
    const SHIFT: i32 = SCALE_BITS as i32;
    let half = _mm256_set1_epi64x(1 << (SHIFT - 1));
    let even = _mm256_srli_epi64::<SHIFT>(_mm256_add_epi64(even, half));
    let odd = _mm256_slli_epi64::<{ 32 - SHIFT }>(_mm256_add_epi64(odd, half));
    _mm256_blend_epi32::<0b1010_1010>(even, odd)
}

/// These blocks of gates after their non-linearity, in place of the input's sums.
#[inline]
#[target_feature(enable = "avx2")]
fn squash_gates(
    table: &SquashTable,
    scales: &GateScales,
    sums: &mut [&mut [Lanes]; 2],
    range: Range<usize>,
) {
    for block in gates::blocks(scales, sums, range) {
        let [input_scale, hidden, hidden_scale, bias] =
            [block.input_scale, block.hidden, block.hidden_scale, block.bias].map(|b| load(b));
        let mut gate = load(block.input);
        for (half, gate) in gate.iter_mut().enumerate() {
            let [even, odd] = products(*gate, input_scale[half]);
            let [hidden_even, hidden_odd] = products(hidden[half], hidden_scale[half]);
            let both = [_mm256_add_epi64(even, hidden_even), _mm256_add_epi64(odd, hidden_odd)];
            *gate = squash(table, _mm256_add_epi32(rescaled(both), bias[half]));
        }
        store(gate, block.input);
    }
}

/// The table's function of eight Q12 numbers, in Q15.
#[inline]
#[target_feature(enable = "avx2")]
fn squash(table: &SquashTable, x: __m256i) -> __m256i {
    let x = _mm256_min_epi32(x, _mm256_set1_epi32(32767));
    let x = _mm256_max_epi32(x, _mm256_set1_epi32(-32768));
    let x = _mm256_add_epi32(x, _mm256_set1_epi32(32768));
    let segment = _mm256_srli_epi32::<8>(x);
    // SAFETY: x is 0 to 65535, so a segment is 0 to 255 and inside the table of 256 entries.
    let entry = unsafe { _mm256_i32gather_epi32::<4>(table.0.as_ptr(), segment) };
    let within = _mm256_and_si256(x, _mm256_set1_epi32(255));
    let weights = _mm256_or_si256(within, _mm256_set1_epi32(256 << 16));
    let value = _mm256_madd_epi16(entry, weights);
    _mm256_srai_epi32::<8>(_mm256_add_epi32(value, _mm256_set1_epi32(128)))
}

/// The product of two Q15 numbers, in Q15, rounded half up.
#[inline]
#[target_feature(enable = "avx2")]
fn times(a: __m256i, b: __m256i) -> __m256i {
    let product = _mm256_add_epi32(_mm256_mullo_epi32(a, b), _mm256_set1_epi32(1 << 14));
    _mm256_srai_epi32::<15>(product)
}

/// From Q15 to int8, still in 32-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn from_q15(q15: __m256i) -> __m256i {
    let limit = _mm256_set1_epi32(127);
    let unit = times(q15, limit);
    _mm256_max_epi32(_mm256_min_epi32(unit, limit), _mm256_set1_epi32(-127))
}

/// Sixteen lanes that fit 16 bits, in 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow(wide: Pair) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(wide[0], wide[1]))
}

/// Reads sixteen bytes of hidden state.
#[inline]
#[target_feature(enable = "avx2")]
fn load_hidden(hidden: &[i8; LANES]) -> Pair {
    // SAFETY: sixteen bytes are read from a borrowed array of sixteen; no alignment is needed.
    let bytes = unsafe { _mm_loadu_si128(hidden.as_ptr().cast()) };
    [_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128::<8>(bytes))]
}

/// Writes sixteen lanes of hidden state.
#[inline]
#[target_feature(enable = "avx2")]
fn store_hidden(wide: Pair, hidden: &mut [i8; LANES]) {
    let words = narrow(wide);
    let low = _mm256_castsi256_si128(words);
    let bytes = _mm_packs_epi16(low, _mm256_extracti128_si256::<1>(words));
    // SAFETY: sixteen bytes are written to an exclusively borrowed array of sixteen.
    unsafe { _mm_storeu_si128(hidden.as_mut_ptr().cast(), bytes) };
}

/// One GRU layer after its products.
#[target_feature(enable = "avx2")]
pub fn gru(scales: &GateScales, mut sums: [&mut [Lanes]; 2], hidden: &mut [[i8; LANES]]) {
    let units = hidden.len();
    squash_gates(&SIGMOID, scales, &mut sums, 0..2 * units);
    for (unit, hidden) in hidden.iter_mut().enumerate() {
        let mut state = load_hidden(hidden);
        for (half, state) in state.iter_mut().enumerate() {
            let (r, z) = (load(&sums[0][unit])[half], load(&sums[0][units + unit])[half]);
            let third = 2 * units + unit;
            let input = [&sums[0][third], &scales.input[third]].map(|lanes| load(lanes)[half]);
            let memory = [&sums[1][third], &scales.hidden[third]].map(|lanes| load(lanes)[half]);
            let a = rescaled(products(input[0], input[1]));
            let a = _mm256_add_epi32(a, load(&scales.bias[third])[half]);
            let g = rescaled(products(memory[0], memory[1]));
            let g = _mm256_add_epi32(g, load(&scales.hidden_bias[unit])[half]);
            let g = _mm256_min_epi32(g, _mm256_set1_epi32(HIDDEN_LIMIT));
            let g = _mm256_max_epi32(g, _mm256_set1_epi32(-HIDDEN_LIMIT));
            let n = squash(&TANH, _mm256_add_epi32(a, times(r, g)));
            let old = _mm256_mullo_epi32(*state, _mm256_set1_epi32(Q15_PER_UNIT));
            let step = times(z, _mm256_sub_epi32(old, n));
            *state = from_q15(_mm256_add_epi32(n, step));
        }
        store_hidden(state, hidden);
    }
}

/// One LSTM layer after its products.
#[target_feature(enable = "avx2")]
pub fn lstm(
    scales: &GateScales,
    mut sums: [&mut [Lanes]; 2],
    cell: &mut [[i16; LANES]],
    hidden: &mut [[i8; LANES]],
) {
    let units = hidden.len();
    for (table, range) in gates::of_lstm(units) {
        squash_gates(table, scales, &mut sums, range);
    }
    let fraction = 15 - scales.cell_bits as i32;
    let half_fraction = _mm256_set1_epi32(1 << (fraction - 1));
    let (fraction, to_q12) =
        (_mm_cvtsi32_si128(fraction), _mm_cvtsi32_si128(12 - scales.cell_bits as i32));
    for (unit, (cell, hidden)) in cell.iter_mut().zip(hidden).enumerate() {
        // SAFETY: 32 bytes are read from a borrowed array of sixteen 16-bit numbers.
        let words = unsafe { _mm256_loadu_si256(cell.as_ptr().cast()) };
        let high = _mm256_extracti128_si256::<1>(words);
        let low = _mm256_castsi256_si128(words);
        let mut memory = [_mm256_cvtepi16_epi32(low), _mm256_cvtepi16_epi32(high)];
        let mut state = [_mm256_setzero_si256(); 2];
        for (half, (memory, state)) in memory.iter_mut().zip(&mut state).enumerate() {
            let gate = |gate: usize| load(&sums[0][gate * units + unit])[half];
            let (i, f, g, o) = (gate(0), gate(1), gate(2), gate(3));
            let new = _mm256_add_epi32(_mm256_mullo_epi32(i, g), half_fraction);
            let new = _mm256_sra_epi32(new, fraction);
            let sum = _mm256_add_epi32(_mm256_mullo_epi32(f, *memory), new);
            let next = _mm256_srai_epi32::<15>(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 14)));
            let next = _mm256_min_epi32(next, _mm256_set1_epi32(32767));
            *memory = _mm256_max_epi32(next, _mm256_set1_epi32(-32767));
            let level = squash(&TANH, _mm256_sll_epi32(*memory, to_q12));
            *state = from_q15(times(o, level));
        }
        // SAFETY: 32 bytes are written to an exclusively borrowed array of sixteen 16-bit numbers.
        unsafe { _mm256_storeu_si256(cell.as_mut_ptr().cast(), narrow(memory)) };
        store_hidden(state, hidden);
    }
}

/// [`float_loops::multiply`] compiled for AVX2.
#[target_feature(enable = "avx2")]
pub fn float_multiply(matrix: &FloatMatrix, x: &[f32], sums: &mut [f32]) {
    float_loops::multiply(matrix, x, sums);
}

/// [`float_loops::gru`] compiled for AVX2.
#[target_feature(enable = "avx2")]
pub fn float_gru(from_input: &[f32], from_hidden: &[f32], hidden: &mut [f32]) {
    float_loops::gru(from_input, from_hidden, hidden);
}

/// [`float_loops::lstm`] compiled for AVX2.
#[target_feature(enable = "avx2")]
pub fn float_lstm(from_input: &[f32], from_hidden: &[f32], cell: &mut [f32], hidden: &mut [f32]) {
    float_loops::lstm(from_input, from_hidden, cell, hidden);
}

/// [`float_loops::to_int8`] compiled for AVX2.
#[target_feature(enable = "avx2")]
pub fn to_int8(features: &[f32], mean: &[f32], units: &[f32], inputs: &mut [i8]) {
    float_loops::to_int8(features, mean, units, inputs);
}
