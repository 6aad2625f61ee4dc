//! Gradients of a GRU classifier by back-propagation through time.
//!
//! For: the forward pass over one short series, cross entropy at each labelled step, and the
//! gradient. Must never know: optimisers, what a class means. Additions and multiplications stand
//! in one fixed order, so that the bits are the same on every machine.

use crate::learn::gru::{GATES, GruNetwork};
use crate::learn::loss::{cross_entropy, gradient_by_logit, softmax};
use crate::learn::vectors::{add, add_columns, add_outer, dot};
use crate::squash::{sigmoid, tanh};

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
