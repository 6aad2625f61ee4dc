//! Gradients are those of finite differences and of a step by hand, and the forward pass is that of
//! the deployed model.

use cachewright_model::learn::{GruNetwork, GruTape, LabelledSeries};
use cachewright_model::{Description, FloatModel, StoredModel, softmax};
use cachewright_types::Seed;

const INPUTS: usize = 5;
const CLASSES: [Option<u8>; 4] = [None, Some(1), Some(0), Some(1)];

fn rows() -> Vec<f32> {
    let mut rng = Seed(9).rng();
    (0..4 * INPUTS).map(|i| if i % 3 == 0 { 0.0 } else { rng.unit() as f32 }).collect()
}

/// The gradient of parameters of every part, of a network of so many units and classes.
fn gradient_is_that_of_finite_differences<const UNITS: usize, const OUTPUTS: usize>() {
    let mut network = GruNetwork::<UNITS, OUTPUTS>::draw(INPUTS, Seed(2));
    let rows = rows();
    let series = LabelledSeries { rows: &rows, classes: &CLASSES };
    let mut tape = GruTape::new();
    assert_eq!(tape.forward(&network, series).labelled, 3);
    let count = network.parameters().len();
    let mut gradient = vec![0.0; count];
    tape.backward(&network, series, &mut gradient);
    let mut rng = Seed(8).rng();
    let last = (1..40.min(count)).map(|from_end| count - from_end);
    for index in last.chain((0..60).map(|_| rng.below(count as u64) as usize)) {
        let parameter = network.parameters()[index];
        let mut loss = |shift: f32| {
            network.parameters_mut()[index] = parameter + shift;
            tape.forward(&network, series).loss
        };
        let slope = (loss(0.01) - loss(-0.01)) / 0.02;
        network.parameters_mut()[index] = parameter;
        let found = f64::from(gradient[index]);
        assert!((slope - found).abs() < 2e-4 + 0.01 * slope.abs(), "{index}: {found} {slope}");
    }
}

#[test]
fn the_gradient_is_that_of_finite_differences() {
    gradient_is_that_of_finite_differences::<32, 2>();
    gradient_is_that_of_finite_differences::<3, 4>();
    gradient_is_that_of_finite_differences::<1, 2>();
}

/// One unit, one input. Only the new gate's input weight and the dense layer are not zero: reset
/// and update are 1/2, and the state is half of tanh(weight * input).
#[test]
fn one_step_by_hand() {
    let mut network = GruNetwork::<1, 2>::draw(1, Seed(1));
    let (weight, input) = (0.5_f32, 2.0_f32);
    let head = [1.0_f32, -3.0];
    // Input column (reset, update, new), hidden column, both biases, dense layer, its bias.
    let mut parameters = [0.0; 16];
    parameters[2] = weight;
    parameters[12..14].copy_from_slice(&head);
    network.parameters_mut().copy_from_slice(&parameters);
    let series = LabelledSeries { rows: &[input], classes: &[Some(0)] };
    let mut tape = GruTape::new();
    let loss = tape.forward(&network, series).loss;

    let new = (weight * input).tanh();
    let state = new / 2.0;
    let class = 1.0 / (1.0 + ((head[1] - head[0]) * state).exp());
    assert!((loss + f64::from(class.ln())).abs() < 1e-6, "{loss}");
    let to_logits = [class - 1.0, 1.0 - class];
    let to_state = to_logits[0] * head[0] + to_logits[1] * head[1];
    let to_update = to_state * -new / 4.0;
    let to_new = to_state / 2.0 * (1.0 - new * new);
    let mut expected = [0.0; 16];
    expected[1..3].copy_from_slice(&[to_update * input, to_new * input]);
    // The state before is zero, so that no weight of the hidden matrix has a gradient.
    expected[7..9].copy_from_slice(&[to_update, to_new]);
    expected[10..12].copy_from_slice(&[to_update, to_new / 2.0]);
    expected[12..14].copy_from_slice(&to_logits.map(|to| to * state));
    expected[14..].copy_from_slice(&to_logits);
    let mut gradient = [0.0; 16];
    tape.backward(&network, series, &mut gradient);
    for (index, (found, expected)) in gradient.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-6, "{index}: {found} {expected}");
    }
}

#[test]
fn the_forward_pass_is_that_of_the_deployed_model() {
    let network = GruNetwork::<32, 2>::draw(INPUTS, Seed(6));
    let rows = rows();
    let test = rows.chunks(INPUTS).map(<[f32]>::to_vec).collect();
    let description = Description::plain(network.architecture());
    let stored = StoredModel::float(description, network.tensors(), test).unwrap();
    let model = FloatModel::new(&stored).unwrap();
    let mut outputs = model.run(&mut model.zero_state(), &rows).unwrap();
    let mut tape = GruTape::new();
    tape.forward(&network, LabelledSeries { rows: &rows, classes: &CLASSES });
    let mut steps = 0;
    for (probabilities, logits) in tape.probabilities().zip(outputs.chunks_mut(2)) {
        softmax(logits);
        assert!((probabilities[0] - logits[0]).abs() < 1e-5);
        steps += 1;
    }
    assert_eq!(steps, 4);
}

#[test]
fn a_class_that_the_network_lacks_counts_as_none() {
    let network = GruNetwork::<4, 2>::draw(INPUTS, Seed(3));
    let (rows, mut tape) = (rows(), GruTape::new());
    let mut gradients = [[Some(2), Some(1)], [None, Some(1)]].map(|classes| {
        let series = LabelledSeries { rows: &rows[..2 * INPUTS], classes: &classes };
        assert_eq!(tape.forward(&network, series).labelled, 1);
        let mut gradient = vec![0.0; network.parameters().len()];
        tape.backward(&network, series, &mut gradient);
        gradient
    });
    let [strange, none] = &mut gradients;
    assert_eq!(strange, none);
}
