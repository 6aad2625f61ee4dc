//! Gradients of a GRU classifier, in single precision.
//!
//! For: the forward pass over one short series, cross entropy at each labelled step, and the
//! gradient by back-propagation through time. Must never know: optimisers, pages. Equations are
//! PyTorch's `nn.GRU` (reset gate after the product) with a dense layer on top, as
//! `cachewright_infer::FloatModel` computes them; that crate leaves training out by its contract,
//! so it stands here, beside its one user. Invariant: gradients are additions and multiplications
//! in one fixed order, the same bits on every machine; only the reported loss takes a logarithm.

use super::dataset::Label;
use cachewright_infer::squash::{exp, sigmoid, tanh};
use cachewright_types::Seed;
use std::collections::BTreeMap;
use std::ops::Range;

/// Units of the hidden state (Shiro, section III-B).
pub const UNITS: usize = 32;
/// Classes: long, short.
pub const CLASSES: usize = 2;
/// Gates of all units, in the order reset, update, new.
const GATES: usize = 3 * UNITS;

/// Where each part lies among the parameters. Matrices are stored column after column, so that a
/// forward step adds whole columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    inputs: usize,
}

impl Layout {
    /// The layout of a model with so many inputs.
    pub fn new(inputs: usize) -> Layout {
        Layout { inputs }
    }

    /// Numbers of all parts.
    pub fn len(self) -> usize {
        self.parts()[5].end
    }

    /// Input matrix, hidden matrix, input bias, hidden bias, head's matrix (by rows), head's bias.
    fn parts(self) -> [Range<usize>; 6] {
        let sizes = [self.inputs * GATES, UNITS * GATES, GATES, GATES, CLASSES * UNITS, CLASSES];
        let mut start = 0;
        sizes.map(|size| {
            start += size;
            start - size..start
        })
    }

    /// Parameters drawn as PyTorch does: uniform within 1/sqrt(units).
    pub fn draw(self, seed: Seed) -> Vec<f32> {
        let mut rng = seed.rng();
        let bound = 1.0 / (UNITS as f64).sqrt();
        (0..self.len()).map(|_| ((2.0 * rng.unit() - 1.0) * bound) as f32).collect()
    }

    /// The parameters by PyTorch's names, matrices row after row.
    pub fn tensors(self, parameters: &[f32]) -> BTreeMap<String, Vec<f32>> {
        let parts = self.parts().map(|part| parameters[part].to_vec());
        let [input, hidden, input_bias, hidden_bias, head, head_bias] = parts;
        let rows = |columns: Vec<f32>| {
            let row = |row: usize| columns.iter().skip(row).step_by(GATES).copied();
            (0..GATES).flat_map(row).collect::<Vec<f32>>()
        };
        [
            ("weight_ih_l0", rows(input)),
            ("weight_hh_l0", rows(hidden)),
            ("bias_ih_l0", input_bias),
            ("bias_hh_l0", hidden_bias),
            ("fc.weight", head),
            ("fc.bias", head_bias),
        ]
        .map(|(name, numbers)| (name.to_owned(), numbers))
        .into()
    }
}

/// What one forward step leaves for the way back.
#[derive(Clone, Debug)]
struct Step {
    reset: [f32; UNITS],
    update: [f32; UNITS],
    new: [f32; UNITS],
    /// The hidden side of the new gate, before the reset gate.
    memory: [f32; UNITS],
    before: [f32; UNITS],
    after: [f32; UNITS],
    probabilities: [f32; CLASSES],
}

/// What a series gave: sums over its labelled steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Cross entropy, in nats.
    pub loss: f64,
    /// Labelled steps.
    pub labelled: u64,
}

/// Room for one series.
#[derive(Clone, Debug)]
pub struct Tape {
    layout: Layout,
    steps: Vec<Step>,
}

impl Tape {
    /// Room for series of a model with so many inputs.
    pub fn new(layout: Layout) -> Tape {
        Tape { layout, steps: Vec::new() }
    }

    /// Runs a series from a zero state. `rows` holds the inputs step after step.
    pub fn forward(&mut self, parameters: &[f32], rows: &[f32], labels: &[Label]) -> Outcome {
        let [input, hidden, input_bias, hidden_bias, head, head_bias] =
            self.layout.parts().map(|part| &parameters[part]);
        self.steps.clear();
        let mut state = [0.0; UNITS];
        let mut outcome = Outcome::default();
        for (row, label) in rows.chunks_exact(self.layout.inputs).zip(labels) {
            let mut from_input = [0.0; GATES];
            let mut from_hidden = [0.0; GATES];
            from_input.copy_from_slice(input_bias);
            from_hidden.copy_from_slice(hidden_bias);
            add_columns(&mut from_input, input, row);
            add_columns(&mut from_hidden, hidden, &state);
            let mut step = gates(&from_input, &from_hidden, state);
            state = step.after;
            let mut logits = [0.0; CLASSES];
            for ((logit, weights), bias) in
                logits.iter_mut().zip(head.chunks_exact(UNITS)).zip(head_bias)
            {
                *logit = dot(weights, &state) + bias;
            }
            step.probabilities = softmax(logits);
            if let Some(class) = label.class() {
                outcome.loss -= f64::from(step.probabilities[class].max(1e-30)).ln();
                outcome.labelled += 1;
            }
            self.steps.push(step);
        }
        outcome
    }

    /// Adds the gradient of the summed cross entropy of the series run last.
    pub fn backward(
        &self,
        parameters: &[f32],
        rows: &[f32],
        labels: &[Label],
        gradient: &mut [f32],
    ) {
        let [_, hidden, _, _, head, _] = self.layout.parts().map(|part| &parameters[part]);
        let mut to_state = [0.0; UNITS];
        let inputs = self.layout.inputs;
        for (index, (step, label)) in self.steps.iter().zip(labels).enumerate().rev() {
            self.head_backward(step, *label, head, gradient, &mut to_state);
            let (to_input, to_hidden) = gates_backward(step, &mut to_state);
            let [of_input, of_hidden, of_input_bias, of_hidden_bias, _, _] = self.layout.parts();
            let row = &rows[index * inputs..(index + 1) * inputs];
            add_outer(&mut gradient[of_input], row, &to_input);
            add_outer(&mut gradient[of_hidden], &step.before, &to_hidden);
            add(&mut gradient[of_input_bias], 1.0, &to_input);
            add(&mut gradient[of_hidden_bias], 1.0, &to_hidden);
            for (to, column) in to_state.iter_mut().zip(hidden.chunks_exact(GATES)) {
                *to += dot(column, &to_hidden);
            }
        }
    }

    fn head_backward(
        &self,
        step: &Step,
        label: Label,
        head: &[f32],
        gradient: &mut [f32],
        to_state: &mut [f32; UNITS],
    ) {
        let Some(class) = label.class() else { return };
        let [_, _, _, _, of_head, of_bias] = self.layout.parts();
        for (output, probability) in step.probabilities.iter().enumerate() {
            let to_logit = probability - f32::from(u8::from(output == class));
            let weights = output * UNITS..(output + 1) * UNITS;
            add(&mut gradient[of_head.clone()][weights.clone()], to_logit, &step.after);
            gradient[of_bias.start + output] += to_logit;
            add(to_state, to_logit, &head[weights]);
        }
    }
}

fn gates(from_input: &[f32; GATES], from_hidden: &[f32; GATES], before: [f32; UNITS]) -> Step {
    let zero = [0.0; UNITS];
    let mut step = Step {
        reset: zero,
        update: zero,
        new: zero,
        memory: zero,
        before,
        after: zero,
        probabilities: [0.0; CLASSES],
    };
    for unit in 0..UNITS {
        let side =
            |gate: usize| (from_input[gate * UNITS + unit], from_hidden[gate * UNITS + unit]);
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

/// From the gradient of a step's state to those of its pre-activations on either side; `to_state`
/// becomes the direct part of the gradient of the state before.
fn gates_backward(step: &Step, to_state: &mut [f32; UNITS]) -> ([f32; GATES], [f32; GATES]) {
    let (mut to_input, mut to_hidden) = ([0.0; GATES], [0.0; GATES]);
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
            to_input[gate * UNITS + unit] = input;
            to_hidden[gate * UNITS + unit] = hidden;
        }
    }
    (to_input, to_hidden)
}

/// Adds each column times its input; inputs of 0, most digits, cost nothing.
#[inline]
fn add_columns(sums: &mut [f32; GATES], columns: &[f32], inputs: &[f32]) {
    for (column, input) in columns.chunks_exact(GATES).zip(inputs) {
        if *input != 0.0 {
            add(sums, *input, column);
        }
    }
}

#[inline]
fn add_outer(matrix: &mut [f32], inputs: &[f32], to: &[f32; GATES]) {
    for (column, input) in matrix.chunks_exact_mut(GATES).zip(inputs) {
        if *input != 0.0 {
            add(column, *input, to);
        }
    }
}

#[inline]
fn add(sums: &mut [f32], factor: f32, numbers: &[f32]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += factor * number;
    }
}

/// The inner product, in eight lanes that are added at the end; lengths are multiples of eight.
#[inline]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

fn softmax([a, b]: [f32; CLASSES]) -> [f32; CLASSES] {
    let most = a.max(b);
    let (a, b) = (exp(a - most), exp(b - most));
    [a / (a + b), b / (a + b)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_infer::{Architecture, Description, FloatModel, Head, Kind, StoredModel};

    const INPUTS: usize = 5;

    fn series() -> (Vec<f32>, Vec<Label>) {
        let mut rng = Seed(9).rng();
        let rows = (0..4 * INPUTS).map(|i| if i % 3 == 0 { 0.0 } else { rng.unit() as f32 });
        (rows.collect(), vec![Label::Context, Label::Short, Label::Long, Label::Short])
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let layout = Layout::new(INPUTS);
        let mut parameters = layout.draw(Seed(2));
        let (rows, labels) = series();
        let mut tape = Tape::new(layout);
        let outcome = tape.forward(&parameters, &rows, &labels);
        assert_eq!(outcome.labelled, 3);
        let mut gradient = vec![0.0; layout.len()];
        tape.backward(&parameters, &rows, &labels, &mut gradient);
        let mut rng = Seed(8).rng();
        let ends = layout.parts().map(|part| part.end - 1);
        for index in ends.into_iter().chain((0..60).map(|_| rng.below(4000) as usize)) {
            let (index, kept) = (index % layout.len(), parameters[index % layout.len()]);
            let mut loss = |shift: f32| {
                parameters[index] = kept + shift;
                tape.forward(&parameters, &rows, &labels).loss
            };
            let slope = (loss(0.01) - loss(-0.01)) / 0.02;
            parameters[index] = kept;
            let found = f64::from(gradient[index]);
            assert!((slope - found).abs() < 2e-4 + 0.01 * slope.abs(), "{index}: {found} {slope}");
        }
    }

    #[test]
    fn the_forward_pass_is_that_of_the_deployed_model() {
        let layout = Layout::new(INPUTS);
        let parameters = layout.draw(Seed(6));
        let heads = vec![Head { name: "fc".to_owned(), outputs: CLASSES }];
        let architecture =
            Architecture { kind: Kind::Gru, inputs: INPUTS, hidden: vec![UNITS], heads };
        let (rows, labels) = series();
        let test = rows.chunks(INPUTS).map(<[f32]>::to_vec).collect();
        let tensors = layout.tensors(&parameters);
        let stored = StoredModel::float(Description::plain(architecture), tensors, test).unwrap();
        let model = FloatModel::new(&stored).unwrap();
        let outputs = model.run(&mut model.zero_state(), &rows).unwrap();
        let mut tape = Tape::new(layout);
        tape.forward(&parameters, &rows, &labels);
        for (step, logits) in tape.steps.iter().zip(outputs.chunks(2)) {
            let expected = softmax([logits[0], logits[1]]);
            assert!((step.probabilities[0] - expected[0]).abs() < 1e-5);
        }
    }
}
