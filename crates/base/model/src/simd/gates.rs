//! Blocks of gates (of sixteen lanes each), and which of them take which non-linearity.

use crate::packed::{GateScales, Lanes};
use crate::squash::{SIGMOID, SquashTable, TANH};
use std::ops::Range;

/// A block of gates before its non-linearity: the sums of both products and their scales.
pub struct GateBlock<'a> {
    /// Of the input; the gate after its non-linearity takes its place.
    pub input: &'a mut Lanes,
    /// Multipliers of the input's sums.
    pub input_scale: &'a Lanes,
    /// Of the hidden state.
    pub hidden: &'a Lanes,
    /// Multipliers of the hidden state's sums.
    pub hidden_scale: &'a Lanes,
    /// The bias.
    pub bias: &'a Lanes,
}

/// The blocks of a range, whose sums are of the input and of the hidden state.
#[inline(always)]
pub fn blocks<'a>(
    scales: &'a GateScales,
    sums: &'a mut [&mut [Lanes]; 2],
    range: Range<usize>,
) -> impl Iterator<Item = GateBlock<'a>> {
    let [from_input, from_hidden] = sums;
    let inputs = from_input[range.clone()].iter_mut().zip(&scales.input[range.clone()]);
    let hidden = from_hidden[range.clone()].iter().zip(&scales.hidden[range.clone()]);
    let all = inputs.zip(hidden).zip(&scales.bias[range]);
    all.map(|(((input, input_scale), (hidden, hidden_scale)), bias)| GateBlock {
        input,
        input_scale,
        hidden,
        hidden_scale,
        bias,
    })
}

/// The gates of an LSTM layer of so many blocks of units: input, forget, cell, output.
#[inline(always)]
pub fn of_lstm(units: usize) -> [(&'static SquashTable, Range<usize>); 3] {
    [(&SIGMOID, 0..2 * units), (&TANH, 2 * units..3 * units), (&SIGMOID, 3 * units..4 * units)]
}
