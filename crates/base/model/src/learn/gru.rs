//! A GRU classifier: its parameters, the forward pass over one short series, cross entropy (in
//! nats) at each labelled step, and its gradient by back-propagation through time.
//!
//! Equations are PyTorch's `nn.GRU` (reset gate after the product). Additions and multiplications
//! stand in one fixed order, so that the bits are the same on every machine.

use crate::squash::{exp, sigmoid, tanh};
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

/// The pre-activations of one side of a step, or their gradients: a row per gate.
type GateRows<const UNITS: usize> = [[f32; UNITS]; GATES];

/// One series of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelledSeries<'a> {
    /// The inputs, step after step.
    pub rows: &'a [f32],
    /// The class of each step; none for a step that only moves the state. A class that the network
    /// does not have counts as none.
    pub classes: &'a [Option<u8>],
}

impl LabelledSeries<'_> {
    /// Whether any step has a class.
    pub fn is_labelled(&self) -> bool {
        self.classes.iter().any(Option::is_some)
    }
}

/// What a forward pass over a series gave: sums over its labelled steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeriesLoss {
    /// Cross entropy, in nats.
    pub loss: f64,
    /// Labelled steps.
    pub labelled: u64,
}

/// What one forward step leaves for the backward pass.
#[derive(Clone, Debug)]
struct GruStep<const UNITS: usize, const CLASSES: usize> {
    reset: [f32; UNITS],
    update: [f32; UNITS],
    new: [f32; UNITS],
    /// The hidden side of the new gate, before the reset gate.
    memory: [f32; UNITS],
    before: [f32; UNITS],
    after: [f32; UNITS],
    probabilities: [f32; CLASSES],
}

/// The steps of the series that was run last.
#[derive(Clone, Debug, Default)]
pub struct GruTape<const UNITS: usize, const CLASSES: usize> {
    steps: Vec<GruStep<UNITS, CLASSES>>,
}

impl<const UNITS: usize, const CLASSES: usize> GruTape<UNITS, CLASSES> {
    /// A tape without steps.
    pub fn new() -> Self {
        GruTape { steps: Vec::new() }
    }

    /// Runs a series from a zero state.
    pub fn forward(
        &mut self,
        network: &GruNetwork<UNITS, CLASSES>,
        series: LabelledSeries<'_>,
    ) -> SeriesLoss {
        let parts = network.parts();
        self.steps.clear();
        let mut state = [0.0; UNITS];
        let mut sum = SeriesLoss::default();
        for (row, class) in series.rows.chunks_exact(network.inputs()).zip(series.classes) {
            let mut from_input: GateRows<UNITS> = [[0.0; UNITS]; GATES];
            let mut from_hidden: GateRows<UNITS> = [[0.0; UNITS]; GATES];
            from_input.as_flattened_mut().copy_from_slice(parts.input_bias);
            from_hidden.as_flattened_mut().copy_from_slice(parts.hidden_bias);
            add_columns(from_input.as_flattened_mut(), parts.input, row);
            add_columns(from_hidden.as_flattened_mut(), parts.hidden, &state);
            let mut step = gates(&from_input, &from_hidden, state);
            state = step.after;
            let mut logits = [0.0; CLASSES];
            for ((logit, weights), bias) in
                logits.iter_mut().zip(parts.head.chunks_exact(UNITS)).zip(parts.head_bias)
            {
                *logit = dot(weights, &state) + bias;
            }
            step.probabilities = softmax(logits);
            let own = class.and_then(|class| step.probabilities.get(usize::from(class)));
            if let Some(probability) = own {
                sum.loss += cross_entropy(*probability);
                sum.labelled += 1;
            }
            self.steps.push(step);
        }
        sum
    }

    /// Probabilities of the classes at each step of the series that was run last.
    pub fn probabilities(&self) -> impl Iterator<Item = &[f32; CLASSES]> {
        self.steps.iter().map(|step| &step.probabilities)
    }

    /// Adds the gradient of the summed cross entropy of the series that was run last. `gradient`
    /// has a number per parameter.
    pub fn backward(
        &self,
        network: &GruNetwork<UNITS, CLASSES>,
        series: LabelledSeries<'_>,
        gradient: &mut [f32],
    ) {
        debug_assert_eq!(gradient.len(), network.parameters().len(), "a number per parameter");
        let parts = network.parts();
        let mut to_state = [0.0; UNITS];
        let rows = series.rows.chunks_exact(network.inputs());
        let ranges = GruNetwork::<UNITS, CLASSES>::ranges(network.inputs());
        for ((step, row), class) in self.steps.iter().zip(rows).zip(series.classes).rev() {
            if let Some(class) = class.map(usize::from).filter(|class| *class < CLASSES) {
                let weights = &mut gradient[ranges.head.start..ranges.head_bias.end];
                head_backward(step, class, parts.head, weights, &mut to_state);
            }
            let (to_input, to_hidden) = gates_backward(step, &mut to_state);
            let (to_input, to_hidden) = (to_input.as_flattened(), to_hidden.as_flattened());
            add_outer(&mut gradient[ranges.input.clone()], row, to_input);
            add_outer(&mut gradient[ranges.hidden.clone()], &step.before, to_hidden);
            add(&mut gradient[ranges.input_bias.clone()], 1.0, to_input);
            add(&mut gradient[ranges.hidden_bias.clone()], 1.0, to_hidden);
            for (to, column) in to_state.iter_mut().zip(parts.hidden.chunks_exact(GATES * UNITS)) {
                *to += dot(column, to_hidden);
            }
        }
    }
}

/// The backward pass of the dense layer; `gradient` is that of its matrix and of its bias.
fn head_backward<const UNITS: usize, const CLASSES: usize>(
    step: &GruStep<UNITS, CLASSES>,
    class: usize,
    head: &[f32],
    gradient: &mut [f32],
    to_state: &mut [f32; UNITS],
) {
    let (to_matrix, to_bias) = gradient.split_at_mut(CLASSES * UNITS);
    for (output, probability) in step.probabilities.iter().enumerate() {
        let to_logit = gradient_by_logit(*probability, output == class);
        let weights = output * UNITS..(output + 1) * UNITS;
        add(&mut to_matrix[weights.clone()], to_logit, &step.after);
        to_bias[output] += to_logit;
        add(to_state, to_logit, &head[weights]);
    }
}

fn gates<const UNITS: usize, const CLASSES: usize>(
    from_input: &GateRows<UNITS>,
    from_hidden: &GateRows<UNITS>,
    before: [f32; UNITS],
) -> GruStep<UNITS, CLASSES> {
    let zero = [0.0; UNITS];
    let mut step = GruStep {
        reset: zero,
        update: zero,
        new: zero,
        memory: zero,
        before,
        after: zero,
        probabilities: [0.0; CLASSES],
    };
    for unit in 0..UNITS {
        let side = |gate: usize| (from_input[gate][unit], from_hidden[gate][unit]);
        let ((a, b), (c, d), (e, memory)) = (side(0), side(1), side(2));
        let (reset, update) = (sigmoid(a + b), sigmoid(c + d));
        let new = tanh(e + reset * memory);
        step.reset[unit] = reset;
        step.update[unit] = update;
        step.new[unit] = new;
        step.memory[unit] = memory;
        step.after[unit] = (1.0 - update) * new + update * before[unit];
    }
    step
}

/// From the gradient of a step's state to those of its pre-activations on either side. `to_state`
/// becomes the direct part of the gradient of the state before.
fn gates_backward<const UNITS: usize, const CLASSES: usize>(
    step: &GruStep<UNITS, CLASSES>,
    to_state: &mut [f32; UNITS],
) -> (GateRows<UNITS>, GateRows<UNITS>) {
    let mut to_input: GateRows<UNITS> = [[0.0; UNITS]; GATES];
    let mut to_hidden: GateRows<UNITS> = [[0.0; UNITS]; GATES];
    for unit in 0..UNITS {
        let (reset, update, new) = (step.reset[unit], step.update[unit], step.new[unit]);
        let to = to_state[unit];
        let to_new = to * (1.0 - update) * (1.0 - new * new);
        let to_update = to * (step.before[unit] - new) * update * (1.0 - update);
        let to_reset = to_new * step.memory[unit] * reset * (1.0 - reset);
        to_state[unit] = to * update;
        for (gate, input, hidden) in
            [(0, to_reset, to_reset), (1, to_update, to_update), (2, to_new, to_new * reset)]
        {
            to_input[gate][unit] = input;
            to_hidden[gate][unit] = hidden;
        }
    }
    (to_input, to_hidden)
}

/// The least probability of which a logarithm is taken.
const MIN_PROBABILITY: f32 = 1e-30;

/// Probabilities of the classes from their logits.
fn softmax<const CLASSES: usize>(logits: [f32; CLASSES]) -> [f32; CLASSES] {
    let max = logits.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let powers = logits.map(|logit| exp(logit - max));
    let sum: f32 = powers.iter().sum();
    powers.map(|power| power / sum)
}

/// The cross entropy of one step whose class has this probability.
fn cross_entropy(probability: f32) -> f64 {
    -f64::from(probability.max(MIN_PROBABILITY)).ln()
}

/// The gradient of the cross entropy by the logit of a class.
fn gradient_by_logit(probability: f32, is_class: bool) -> f32 {
    probability - f32::from(u8::from(is_class))
}

/// Adds `factor` times `numbers` to `sums`.
#[inline]
fn add(sums: &mut [f32], factor: f32, numbers: &[f32]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += factor * number;
    }
}

/// Adds each column times its input. An input of 0 costs nothing: most digits are 0.
#[inline]
fn add_columns(sums: &mut [f32], columns: &[f32], inputs: &[f32]) {
    for (column, input) in columns.chunks_exact(sums.len()).zip(inputs) {
        if *input != 0.0 {
            add(sums, *input, column);
        }
    }
}

/// Adds the outer product of `inputs` and `column` to a matrix that is stored by columns.
#[inline]
fn add_outer(matrix: &mut [f32], inputs: &[f32], column: &[f32]) {
    for (sums, input) in matrix.chunks_exact_mut(column.len()).zip(inputs) {
        if *input != 0.0 {
            add(sums, *input, column);
        }
    }
}

/// The inner product. Eight lanes are added at the end, then what is beyond a multiple of eight.
#[inline]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0.0_f32; 8];
    for (a, b) in a.iter().zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    a_rest.iter().zip(b_rest).fold(lanes.iter().sum(), |sum, (a, b)| sum + a * b)
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

    #[test]
    fn probabilities_of_equal_and_of_extreme_logits() {
        assert_eq!(softmax([7.0; 4]), [0.25; 4]);
        let [small, large] = softmax([-1e30, 1e30]);
        assert!(small < 1e-30 && large == 1.0);
        assert!(cross_entropy(small).is_finite());
        assert_eq!(cross_entropy(1.0), 0.0);
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let loss = |shift: f32| cross_entropy(softmax([0.3 + shift, -0.2, 0.9])[0]);
        let slope = (loss(0.01) - loss(-0.01)) / 0.02;
        let found = f64::from(gradient_by_logit(softmax([0.3, -0.2, 0.9])[0], true));
        assert!((slope - found).abs() < 1e-4, "{found} {slope}");
    }

    #[test]
    fn an_inner_product_counts_every_number_once() {
        let ones = [1.0; 19];
        let numbers: Vec<f32> = (1..=19_u8).map(f32::from).collect();
        for count in 0..=19 {
            let expected: f32 = numbers[..count].iter().sum();
            assert_eq!(dot(&ones[..count], &numbers[..count]), expected, "{count}");
        }
    }

    #[test]
    fn columns_and_outer_products_by_hand() {
        let mut sums = [1.0, 2.0];
        add_columns(&mut sums, &[1.0, 0.0, 5.0, 5.0, 0.0, 1.0], &[3.0, 0.0, 4.0]);
        assert_eq!(sums, [4.0, 6.0]);
        let mut matrix = [0.5; 4];
        add_outer(&mut matrix, &[2.0, 0.0], &[1.0, 10.0]);
        assert_eq!(matrix, [2.5, 20.5, 0.5, 0.5]);
    }
}
