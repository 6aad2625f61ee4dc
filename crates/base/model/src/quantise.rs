//! From an f32 model to an int8 model: scales from the weights and from inputs like those to come.
//!
//! Method: symmetric, by the largest magnitude: weights per row, inputs per feature, ReLU outputs
//! per layer. The hidden state is fixed at 1/127. The arithmetic is that of Jacob et al. (CVPR'18)
//! without zero points, which numbers centred on 0 do not need.

use std::collections::BTreeMap;

use crate::description::{Architecture, NetworkKind, Quantisation};
use crate::error::ModelError;
use crate::float::{FloatModel, LayerWatch};
use crate::int8::{HIDDEN_SCALE, Int8Model};
use crate::sequence::{State, whole_steps};
use crate::stored::StoredModel;
use crate::stored::{Numbers, Tensor};

/// Steps of calibration that the int8 model's test vector replays.
const TEST_STEPS: usize = 16;
/// Largest int8 number.
const LARGEST: f32 = 127.0;
/// Scale of something that was always 0.
const UNUSED_SCALE: f32 = 1.0 / LARGEST;
/// Least ratio of an MLP layer's output scale to its rows' scales; multipliers fit 32 bits above 8.
const MIN_UNITS_PER_SCALE: f32 = 16.0;
/// How much wider than seen a cell may become.
const MARGIN: f32 = 2.0;

/// The int8 model of `stored`. `calibration` holds sequences of features before normalisation, all
/// steps of one after another; each begins with a zero state. They should be like those to come:
/// what lies outside their range saturates.
///
/// Errors: no calibration, a sequence of broken steps, a model that is int8 already, weights above
/// the fixed-point format (about 126).
pub fn quantise(stored: &StoredModel, calibration: &[&[f32]]) -> Result<StoredModel, ModelError> {
    let model = FloatModel::new(stored)?;
    let ranges = Ranges::measure(&model, calibration)?;
    let mut quantisation = ranges.quantisation(model.architecture().kind);
    raise_hidden_scales(stored, &mut quantisation)?;
    let mut tensors = BTreeMap::new();
    for (name, tensor) in &stored.tensors {
        let (&[rows, _], Numbers::F32(weights)) = (tensor.shape.as_slice(), &tensor.numbers) else {
            tensors.insert(name.clone(), tensor.clone());
            continue;
        };
        let column_scales = column_scales(model.architecture(), &quantisation, name);
        let (scales, weights) = quantise_rows(weights, &column_scales);
        let (shape, numbers) = (tensor.shape.clone(), Numbers::I8(weights));
        tensors.insert(name.clone(), Tensor { shape, numbers });
        let scales = Tensor { shape: vec![rows], numbers: Numbers::F32(scales) };
        tensors.insert(format!("{name}.scale"), scales);
    }
    let mut int8 = StoredModel {
        description: stored.description.clone(),
        quantisation: Some(quantisation),
        tensors,
        test_vector: stored.test_vector.clone(),
    };
    let inputs = model.architecture().inputs;
    let steps = calibration.iter().flat_map(|sequence| sequence.chunks_exact(inputs));
    int8.test_vector.inputs = steps.take(TEST_STEPS).map(<[f32]>::to_vec).collect();
    int8.test_vector.outputs =
        vec![vec![0.0; model.architecture().outputs()]; int8.test_vector.inputs.len()];
    int8.test_vector.outputs = Int8Model::new(&int8)?.replay(&int8.test_vector.inputs)?;
    Ok(int8)
}

/// Largest magnitudes seen.
struct Ranges {
    inputs: Vec<f32>,
    layers: Vec<f32>,
}

impl Ranges {
    fn measure(model: &FloatModel, calibration: &[&[f32]]) -> Result<Ranges, ModelError> {
        let architecture = model.architecture();
        let mut ranges = Ranges {
            inputs: vec![0.0; architecture.inputs],
            layers: vec![0.0; architecture.hidden.len()],
        };
        let mut steps = 0;
        let mut scratch = model.scratch();
        for sequence in calibration {
            steps += whole_steps(architecture, sequence.len())?;
            let State { mut hidden, mut cell } = model.zero_state();
            for features in sequence.chunks_exact(architecture.inputs) {
                model.watched_step(&mut scratch, &mut hidden, &mut cell, features, &mut ranges)?;
            }
        }
        if steps == 0 {
            return Err(ModelError::size("steps of calibration", 0, "at least 1"));
        }
        Ok(ranges)
    }

    fn quantisation(&self, kind: NetworkKind) -> Quantisation {
        let scale = |range: &f32| {
            let scale = range / LARGEST;
            if scale.is_normal() { scale } else { UNUSED_SCALE }
        };
        let (mut hidden_scales, mut cell_bits) = (Vec::new(), Vec::new());
        match kind {
            NetworkKind::Lstm => {
                cell_bits = self.layers.iter().map(|range| bits_for(*range)).collect()
            }
            NetworkKind::Mlp => hidden_scales = self.layers.iter().map(scale).collect(),
            NetworkKind::Gru | NetworkKind::Logistic | NetworkKind::Forest(_) => {}
        }
        Quantisation {
            input_scales: self.inputs.iter().map(scale).collect(),
            hidden_scales,
            cell_bits,
        }
    }
}

impl LayerWatch for Ranges {
    fn inputs(&mut self, inputs: &[f32]) {
        for (range, input) in self.inputs.iter_mut().zip(inputs) {
            *range = range.max(input.abs());
        }
    }

    fn layer(&mut self, layer: usize, numbers: &[f32]) {
        let range = &mut self.layers[layer];
        *range = numbers.iter().fold(*range, |range, number| range.max(number.abs()));
    }
}

/// Fractional bits of a 16-bit cell that leave twice the range seen: 12 (to 8) down to 8 (to 128).
fn bits_for(range: f32) -> u32 {
    let fits = |bits: &u32| MARGIN * range < (32768 >> bits) as f32;
    (8..=12).rev().find(fits).unwrap_or(8)
}

/// What one int8 unit of each column's input stands for.
fn column_scales(architecture: &Architecture, quantisation: &Quantisation, name: &str) -> Vec<f32> {
    let layers = architecture.hidden.len();
    let from_inputs = match architecture.kind {
        NetworkKind::Gru | NetworkKind::Lstm => name == "weight_ih_l0",
        NetworkKind::Mlp => name == "hidden.0.weight",
        NetworkKind::Logistic | NetworkKind::Forest(_) => true,
    };
    if from_inputs {
        return quantisation.input_scales.clone();
    }
    if architecture.kind == NetworkKind::Mlp {
        // Layer l sees what layer l - 1 gives, a head what the last gives.
        let layer = name.strip_prefix("hidden.").and_then(|rest| rest.split('.').next());
        let layer = layer.and_then(|layer| layer.parse::<usize>().ok());
        let before = layer.unwrap_or(layers).clamp(1, layers) - 1;
        return vec![quantisation.hidden_scales[before]; architecture.hidden[before]];
    }
    let columns = architecture.tensors().into_iter().find(|(known, _)| known == name);
    vec![HIDDEN_SCALE; columns.map_or(0, |(_, shape)| shape[1])]
}

/// Makes the outputs of an MLP's layer coarse enough for the fixed-point format. A layer needs this
/// if its outputs stayed far below the contribution of a single weight, as a layer that was never
/// active.
fn raise_hidden_scales(
    stored: &StoredModel,
    quantisation: &mut Quantisation,
) -> Result<(), ModelError> {
    for layer in 0..quantisation.hidden_scales.len() {
        let name = format!("hidden.{layer}.weight");
        let columns = column_scales(&stored.description.architecture, quantisation, &name);
        let (scales, _) = quantise_rows(stored.f32s(&name)?, &columns);
        let min_scale = scales.into_iter().fold(0.0, f32::max) * MIN_UNITS_PER_SCALE;
        quantisation.hidden_scales[layer] = quantisation.hidden_scales[layer].max(min_scale);
    }
    Ok(())
}

/// Per row a scale and the int8 weights: weight times its column's scale is the row's scale times
/// the int8 weight.
fn quantise_rows(weights: &[f32], column_scales: &[f32]) -> (Vec<f32>, Vec<i8>) {
    let mut scales = Vec::new();
    let mut quantised = Vec::with_capacity(weights.len());
    for row in weights.chunks_exact(column_scales.len().max(1)) {
        let folded = || row.iter().zip(column_scales).map(|(weight, scale)| weight * scale);
        let scale = folded().fold(0.0_f32, |max, weight| max.max(weight.abs())) / LARGEST;
        let scale = if scale.is_normal() { scale } else { 0.0 };
        let unit = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let round = |weight: f32| (weight * unit).round_ties_even().clamp(-LARGEST, LARGEST) as i8;
        quantised.extend(folded().map(round));
        scales.push(scale);
    }
    (scales, quantised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_get_the_finest_bits_that_leave_twice_the_range() {
        assert_eq!([0.5, 3.9, 4.0, 15.0, 63.0, 1e9].map(bits_for), [12, 12, 11, 10, 8, 8]);
    }

    #[test]
    fn rows_fold_the_columns_scale() {
        let (scales, weights) = quantise_rows(&[1.0, -0.5, 0.0, 0.0], &[0.1, 0.4]);
        assert_eq!(weights, [64, -127, 0, 0]);
        assert!((scales[0] - 0.2 / 127.0).abs() < 1e-9);
        assert_eq!(scales[1], 0.0);
    }
}
