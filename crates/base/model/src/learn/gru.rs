//! A GRU layer with a dense layer on top, as numbers that an optimiser may move.
//!
//! For: the parameters of a classifier, how they are drawn, and their names in a model file. Must
//! never know: gradients. Equations are PyTorch's `nn.GRU` (reset gate after the product).

use crate::{Architecture, Head, NetworkKind};
use cachewright_types::Seed;
use std::collections::BTreeMap;
use std::ops::Range;

/// Reset, update, new.
pub const GATES: usize = 3;

/// A classifier of so many units and classes.
#[derive(Clone, Debug, PartialEq)]
pub struct GruNetwork<const UNITS: usize, const CLASSES: usize> {
    inputs: usize,
    parameters: Vec<f32>,
}

/// Where each part lies among the parameters. The matrices of the GRU are stored by columns, so
/// that a forward step adds whole columns. The matrix of the dense layer is stored by rows.
pub struct GruParts<T> {
    /// Input matrix.
    pub input: T,
    /// Hidden matrix.
    pub hidden: T,
    /// Bias on the side of the input.
    pub input_bias: T,
    /// Bias on the side of the state.
    pub hidden_bias: T,
    /// Matrix of the dense layer.
    pub head: T,
    /// Bias of the dense layer.
    pub head_bias: T,
}

impl<const UNITS: usize, const CLASSES: usize> GruNetwork<UNITS, CLASSES> {
    /// Numbers of the three gates of all units.
    const GATE_NUMBERS: usize = GATES * UNITS;

    /// A network of random parameters, drawn as PyTorch does: uniform within 1/sqrt(units).
    pub fn draw(inputs: usize, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let bound = 1.0 / (UNITS as f64).sqrt();
        let count = Self::ranges(inputs).head_bias.end;
        let parameters =
            (0..count).map(|_| ((2.0 * rng.unit() - 1.0) * bound) as f32).collect::<Vec<f32>>();
        GruNetwork { inputs, parameters }
    }

    /// Inputs of a step.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// All parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// All parameters, to move them.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// The shape as model files describe it; the dense layer is called `fc`.
    pub fn architecture(&self) -> Architecture {
        let heads = vec![Head { name: "fc".to_owned(), outputs: CLASSES }];
        Architecture { kind: NetworkKind::Gru, inputs: self.inputs, hidden: vec![UNITS], heads }
    }

    /// The parameters by PyTorch's names, matrices by rows.
    pub fn tensors(&self) -> BTreeMap<String, Vec<f32>> {
        let parts = self.parts();
        let by_rows = |columns: &[f32]| {
            let row = |row: usize| columns.iter().skip(row).step_by(Self::GATE_NUMBERS).copied();
            (0..Self::GATE_NUMBERS).flat_map(row).collect::<Vec<f32>>()
        };
        [
            ("weight_ih_l0", by_rows(parts.input)),
            ("weight_hh_l0", by_rows(parts.hidden)),
            ("bias_ih_l0", parts.input_bias.to_vec()),
            ("bias_hh_l0", parts.hidden_bias.to_vec()),
            ("fc.weight", parts.head.to_vec()),
            ("fc.bias", parts.head_bias.to_vec()),
        ]
        .map(|(name, numbers)| (name.to_owned(), numbers))
        .into()
    }

    /// The parts of the parameters.
    pub(crate) fn parts(&self) -> GruParts<&[f32]> {
        let ranges = Self::ranges(self.inputs);
        GruParts {
            input: &self.parameters[ranges.input],
            hidden: &self.parameters[ranges.hidden],
            input_bias: &self.parameters[ranges.input_bias],
            hidden_bias: &self.parameters[ranges.hidden_bias],
            head: &self.parameters[ranges.head],
            head_bias: &self.parameters[ranges.head_bias],
        }
    }

    /// Where the parts of a network with so many inputs lie.
    pub(crate) fn ranges(inputs: usize) -> GruParts<Range<usize>> {
        let gates = Self::GATE_NUMBERS;
        let mut start = 0;
        let mut next = |size: usize| {
            start += size;
            start - size..start
        };
        GruParts {
            input: next(inputs * gates),
            hidden: next(UNITS * gates),
            input_bias: next(gates),
            hidden_bias: next(gates),
            head: next(CLASSES * UNITS),
            head_bias: next(CLASSES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_and_tensors_have_rows() {
        let mut network = GruNetwork::<2, 3>::draw(1, Seed(1));
        assert_eq!(network.parameters().len(), 6 + 12 + 6 + 6 + 6 + 3);
        for (index, parameter) in network.parameters_mut().iter_mut().enumerate() {
            *parameter = index as f32;
        }
        let tensors = network.tensors();
        assert_eq!(tensors["weight_ih_l0"], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        // Two columns of six numbers each, from 6 and from 12.
        assert_eq!(tensors["weight_hh_l0"][..4], [6.0, 12.0, 7.0, 13.0]);
        assert_eq!(tensors["fc.bias"], [36.0, 37.0, 38.0]);
    }
}
