//! Kernels for x86-64 with AVX-512 (F, BW) and VNNI, sixteen 32-bit lanes at a time.
//!
//! The instruction `vpdpbusd` multiplies unsigned by signed bytes. The input is therefore raised by
//! 128, and each row begins at -128 times the sum of its weights.

use std::arch::x86_64::*;
use std::ops::Range;

use super::gates;
use super::scalar::{HIDDEN_LIMIT, Q15_PER_UNIT, SCALE_BITS};
use crate::packed::{CacheLine, GateScales, LANES, Lanes, PANEL, PackedMatrix};
use crate::squash::{SIGMOID, SquashTable, TANH};

/// `sums = matrix * x`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub fn multiply(matrix: &PackedMatrix, x: &[[i8; 4]], sums: &mut [Lanes]) {
    const { assert!(PANEL == 8) };
    for ((lines, offsets), sums) in matrix.panels().zip(sums.chunks_mut(PANEL)) {
        match offsets.len() {
            1 => panel::<1>(lines, x, offsets, sums),
            2 => panel::<2>(lines, x, offsets, sums),
            3 => panel::<3>(lines, x, offsets, sums),
            4 => panel::<4>(lines, x, offsets, sums),
            5 => panel::<5>(lines, x, offsets, sums),
            6 => panel::<6>(lines, x, offsets, sums),
            7 => panel::<7>(lines, x, offsets, sums),
            _ => panel::<8>(lines, x, offsets, sums),
        }
    }
}

/// One panel of `W` blocks. Even and odd groups of columns add up apart, so that twice as many
/// independent chains hide the instruction's latency.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn panel<const W: usize>(
    lines: &[CacheLine],
    x: &[[i8; 4]],
    offsets: &[Lanes],
    sums: &mut [Lanes],
) {
    let (Some(offsets), Some(sums)) = (offsets.first_chunk::<W>(), sums.first_chunk_mut::<W>())
    else {
        return;
    };
    let mut even = [_mm512_setzero_si512(); W];
    let mut odd = [_mm512_setzero_si512(); W];
    for block in 0..W {
        even[block] = load(&offsets[block]);
    }
    let (groups, _) = lines.as_chunks::<W>();
    let (pairs, last) = groups.as_chunks::<2>();
    let (x_pairs, x_last) = x.as_chunks::<2>();
    for ([first, second], [x_first, x_second]) in pairs.iter().zip(x_pairs) {
        let (x_first, x_second) = (moved_up(*x_first), moved_up(*x_second));
        for block in 0..W {
            even[block] = _mm512_dpbusd_epi32(even[block], x_first, weights(&first[block]));
        }
        for block in 0..W {
            odd[block] = _mm512_dpbusd_epi32(odd[block], x_second, weights(&second[block]));
        }
    }
    let x_last = x_pairs.get(pairs.len()).map(|pair| &pair[0]).or(x_last.first());
    for (group, x) in last.iter().zip(x_last) {
        let x = moved_up(*x);
        for block in 0..W {
            odd[block] = _mm512_dpbusd_epi32(odd[block], x, weights(&group[block]));
        }
    }
    for block in 0..W {
        store(_mm512_add_epi32(even[block], odd[block]), &mut sums[block]);
    }
}

/// Four inputs plus 128, in every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn moved_up(x: [i8; 4]) -> __m512i {
    let x = i32::from_le_bytes(x.map(i8::cast_unsigned)) ^ i32::from_le_bytes([0x80; 4]);
    _mm512_set1_epi32(x)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn weights(line: &CacheLine) -> __m512i {
    // SAFETY: `CacheLine` is 64 bytes, aligned to 64, and borrowed.
    unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn load(lanes: &Lanes) -> __m512i {
    // SAFETY: `Lanes` is 64 bytes, aligned to 64, and borrowed.
    unsafe { _mm512_load_si512(lanes.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn store(value: __m512i, lanes: &mut Lanes) {
    // SAFETY: `Lanes` is 64 bytes, aligned to 64, and exclusively borrowed.
    unsafe { _mm512_store_si512(lanes.0.as_mut_ptr().cast(), value) };
}

/// Products of the even and of the odd lanes, 64 bits each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn products(a: &Lanes, b: &Lanes) -> [__m512i; 2] {
    let (a, b) = (load(a), load(b));
    let odd = _mm512_mul_epi32(_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
    [_mm512_mul_epi32(a, b), odd]
}

/// Even and odd 64-bit products, divided by 2^26 and rounded half up. The 32 bits kept are the same
/// whether the shift is logical or arithmetic.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn rescaled([even, odd]: [__m512i; 2]) -> __m512i {
    let half = _mm512_set1_epi64(1 << (SCALE_BITS - 1));
    let even = _mm512_srli_epi64::<SCALE_BITS>(_mm512_add_epi64(even, half));
    let odd = _mm512_slli_epi64::<{ 32 - SCALE_BITS }>(_mm512_add_epi64(odd, half));
    _mm512_mask_blend_epi32(0b1010_1010_1010_1010, even, odd)
}

/// These blocks of gates after their non-linearity, in place of the input's sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn squash_gates(
    table: &SquashTable,
    scales: &GateScales,
    sums: &mut [&mut [Lanes]; 2],
    range: Range<usize>,
) {
    for block in gates::blocks(scales, sums, range) {
        let [even, odd] = products(block.input, block.input_scale);
        let [hidden_even, hidden_odd] = products(block.hidden, block.hidden_scale);
        let both = [_mm512_add_epi64(even, hidden_even), _mm512_add_epi64(odd, hidden_odd)];
        store(squash(table, _mm512_add_epi32(rescaled(both), load(block.bias))), block.input);
    }
}

/// The table's function of sixteen Q12 numbers, in Q15.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn squash(table: &SquashTable, x: __m512i) -> __m512i {
    let x = _mm512_min_epi32(x, _mm512_set1_epi32(32767));
    let x = _mm512_max_epi32(x, _mm512_set1_epi32(-32768));
    let x = _mm512_add_epi32(x, _mm512_set1_epi32(32768));
    let segment = _mm512_srli_epi32::<8>(x);
    // SAFETY: x is 0 to 65535, so a segment is 0 to 255 and inside the table of 256 entries.
    let entry = unsafe { _mm512_i32gather_epi32::<4>(segment, table.0.as_ptr().cast()) };
    let within = _mm512_and_si512(x, _mm512_set1_epi32(255));
    let weights = _mm512_or_si512(within, _mm512_set1_epi32(256 << 16));
    let value = _mm512_madd_epi16(entry, weights);
    _mm512_srai_epi32::<8>(_mm512_add_epi32(value, _mm512_set1_epi32(128)))
}

/// The product of two Q15 numbers, in Q15, rounded half up.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn times(a: __m512i, b: __m512i) -> __m512i {
    let product = _mm512_add_epi32(_mm512_mullo_epi32(a, b), _mm512_set1_epi32(1 << 14));
    _mm512_srai_epi32::<15>(product)
}

/// Writes sixteen lanes of Q15 as int8.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn store_hidden(q15: __m512i, hidden: &mut [i8; LANES]) {
    let limit = _mm512_set1_epi32(127);
    let unit = _mm512_min_epi32(times(q15, limit), limit);
    let unit = _mm512_max_epi32(unit, _mm512_set1_epi32(-127));
    // SAFETY: sixteen bytes are written to an exclusively borrowed array of sixteen.
    unsafe { _mm_storeu_si128(hidden.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(unit)) };
}

/// One GRU layer after its products.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub fn gru(scales: &GateScales, mut sums: [&mut [Lanes]; 2], hidden: &mut [[i8; LANES]]) {
    let units = hidden.len();
    squash_gates(&SIGMOID, scales, &mut sums, 0..2 * units);
    for (unit, hidden) in hidden.iter_mut().enumerate() {
        // SAFETY: sixteen bytes are read from a borrowed array of sixteen.
        let state = unsafe { _mm_loadu_si128(hidden.as_ptr().cast()) };
        let (r, z) = (load(&sums[0][unit]), load(&sums[0][units + unit]));
        let third = 2 * units + unit;
        let a = rescaled(products(&sums[0][third], &scales.input[third]));
        let a = _mm512_add_epi32(a, load(&scales.bias[third]));
        let g = rescaled(products(&sums[1][third], &scales.hidden[third]));
        let g = _mm512_add_epi32(g, load(&scales.hidden_bias[unit]));
        let g = _mm512_min_epi32(g, _mm512_set1_epi32(HIDDEN_LIMIT));
        let g = _mm512_max_epi32(g, _mm512_set1_epi32(-HIDDEN_LIMIT));
        let n = squash(&TANH, _mm512_add_epi32(a, times(r, g)));
        let unit_q15 = _mm512_set1_epi32(Q15_PER_UNIT);
        let old = _mm512_mullo_epi32(_mm512_cvtepi8_epi32(state), unit_q15);
        let step = times(z, _mm512_sub_epi32(old, n));
        store_hidden(_mm512_add_epi32(n, step), hidden);
    }
}

/// One LSTM layer after its products.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
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
    let half_fraction = _mm512_set1_epi32(1 << (fraction - 1));
    let (fraction, to_q12) =
        (_mm_cvtsi32_si128(fraction), _mm_cvtsi32_si128(12 - scales.cell_bits as i32));
    for (unit, (cell, hidden)) in cell.iter_mut().zip(hidden).enumerate() {
        // SAFETY: 32 bytes are read from a borrowed array of sixteen 16-bit numbers.
        let words = unsafe { _mm256_loadu_si256(cell.as_ptr().cast()) };
        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| load(&sums[0][gate * units + unit]));
        let new = _mm512_add_epi32(_mm512_mullo_epi32(i, g), half_fraction);
        let new = _mm512_sra_epi32(new, fraction);
        let kept = _mm512_mullo_epi32(f, _mm512_cvtepi16_epi32(words));
        let sum = _mm512_add_epi32(_mm512_add_epi32(kept, new), _mm512_set1_epi32(1 << 14));
        let next = _mm512_min_epi32(_mm512_srai_epi32::<15>(sum), _mm512_set1_epi32(32767));
        let next = _mm512_max_epi32(next, _mm512_set1_epi32(-32767));
        // SAFETY: 32 bytes are written to an exclusively borrowed array of sixteen 16-bit numbers.
        unsafe { _mm256_storeu_si256(cell.as_mut_ptr().cast(), _mm512_cvtepi32_epi16(next)) };
        let level = squash(&TANH, _mm512_sll_epi32(next, to_q12));
        store_hidden(times(o, level), hidden);
    }
}
