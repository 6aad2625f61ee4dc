//! Models computed by JAX and PyTorch give the same numbers here, and stay right in int8.
//!
//! The files are written by scripts/make_infer_vectors.py; their test vectors hold JAX's outputs,
//! checked against PyTorch's own modules.

use cachewright_model::{FloatModel, Int8Model, State, StoredModel, argmax, quantise};
use cachewright_testkit::models::{random_int8, random_model, sequence, shape, signed};
use cachewright_types::{Rng, Seed};

const FILES: [(&str, &[u8]); 8] = [
    ("gru", include_bytes!("../data/gru.safetensors")),
    ("gru-2-layers", include_bytes!("../data/gru-2-layers.safetensors")),
    ("lstm", include_bytes!("../data/lstm.safetensors")),
    ("lstm-3-layers", include_bytes!("../data/lstm-3-layers.safetensors")),
    ("mlp", include_bytes!("../data/mlp.safetensors")),
    ("logistic", include_bytes!("../data/logistic.safetensors")),
    ("toy-gru", include_bytes!("../data/toy-gru.safetensors")),
    ("toy-lstm", include_bytes!("../data/toy-lstm.safetensors")),
];

#[test]
fn f32_reproduces_jax_and_pytorch_within_1e_5() {
    for (name, bytes) in FILES {
        let stored = StoredModel::from_bytes(bytes).unwrap();
        assert!(stored.description.notes["computed_by"].contains("torch"), "{name}");
        let model = FloatModel::load(bytes).unwrap();
        let features: Vec<f32> = stored.test_vector.inputs.concat();
        let found = model.run(&mut model.zero_state(), &features).unwrap();
        let expected = stored.test_vector.outputs.concat();
        assert_eq!(found.len(), expected.len());
        let apart = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-5, "{name}: {apart}");
        assert!(expected.iter().any(|output| output.abs() > 0.05), "{name}: outputs say little");
    }
}

#[test]
fn int8_models_reload_and_stay_near() {
    for (name, bytes) in FILES {
        let stored = StoredModel::from_bytes(bytes).unwrap();
        let features: Vec<f32> = stored.test_vector.inputs.concat();
        let file = quantise(&stored, &[&features]).unwrap().to_bytes().unwrap();
        let model = Int8Model::load(&file).unwrap();
        let found = model.run(&mut model.zero_state(), &features).unwrap();
        let expected = stored.test_vector.outputs.concat();
        let apart = |(a, b): (&i32, &f32)| (*a as f32 / cachewright_model::OUTPUT_ONE - b).abs();
        let apart = found.iter().zip(&expected).map(apart).fold(0.0, f32::max);
        let most = expected.iter().map(|output| output.abs()).fold(0.0, f32::max);
        assert!(apart < 0.02 * most.max(1.0), "{name}: {apart} of {most}");
    }
}

/// The toy task of the script: features of one sequence, and per step whether the sum of
/// (u - 7.5) (v >= 8 ? 1 : -1), shrunk to 0.8 before each step, is above 0.
fn toy(rng: &mut Rng, steps: usize) -> (Vec<f32>, Vec<usize>) {
    let (mut features, mut labels, mut sum) = (Vec::new(), Vec::new(), 0.0_f64);
    for _ in 0..steps {
        let (u, v) = (rng.below(16), rng.below(16));
        sum = 0.8 * sum + (u as f64 - 7.5) * if v >= 8 { 1.0 } else { -1.0 };
        features.extend([u as f32, v as f32]);
        labels.push(usize::from(sum > 0.0));
    }
    (features, labels)
}

#[test]
fn trained_models_lose_less_than_one_percent_of_accuracy_in_int8() {
    for (name, bytes) in &FILES[6..] {
        let stored = StoredModel::from_bytes(bytes).unwrap();
        let mut rng = Seed(1).derive("calibration").rng();
        let calibration: Vec<Vec<f32>> = (0..50).map(|_| toy(&mut rng, 20).0).collect();
        let calibration: Vec<&[f32]> = calibration.iter().map(Vec::as_slice).collect();
        let float = FloatModel::new(&stored).unwrap();
        let int8 = Int8Model::new(&quantise(&stored, &calibration).unwrap()).unwrap();
        let mut rng = Seed(1).derive("test").rng();
        let (mut right, mut same, mut all) = ([0; 2], 0, 0);
        for _ in 0..500 {
            let (features, labels) = toy(&mut rng, 20);
            let a = float.run(&mut float.zero_state(), &features).unwrap();
            let b = int8.run(&mut int8.zero_state(), &features).unwrap();
            for ((a, b), label) in a.chunks(2).zip(b.chunks(2)).zip(labels) {
                let (a, b) = (argmax(a), argmax(b));
                right[0] += usize::from(a == label);
                right[1] += usize::from(b == label);
                same += usize::from(a == b);
                all += 1;
            }
        }
        let share = |count| f64::from(count as u32) / f64::from(all);
        println!(
            "{name}: f32 {:.4}, int8 {:.4}, same class {:.4}",
            share(right[0]),
            share(right[1]),
            share(same)
        );
        assert!(share(right[0]) > 0.94, "{name}: {}", share(right[0]));
        assert!(share(right[1]) > share(right[0]) - 0.01, "{name}: {}", share(right[1]));
        assert!(share(same) > 0.98, "{name}: {}", share(same));
    }
}

#[test]
fn random_models_stay_near_in_int8_over_long_sequences() {
    use cachewright_model::NetworkKind;
    let shapes = [
        (NetworkKind::Gru, 22, vec![32], 0.02),
        (NetworkKind::Lstm, 4, vec![128], 0.02),
        (NetworkKind::Lstm, 5, vec![64; 3], 0.02),
        (NetworkKind::Mlp, 16, vec![64, 32], 0.02),
        (NetworkKind::Logistic, 6, vec![], 0.02),
    ];
    for (seed, (kind, inputs, hidden, allowed)) in (0..).zip(shapes) {
        let stored = random_model(shape(kind, inputs, &hidden, &[2]), 1.0, seed);
        let (float, int8) =
            (FloatModel::new(&stored).unwrap(), Int8Model::new(&random_int8(&stored, seed)));
        let int8 = int8.unwrap();
        let features = sequence(&mut Seed(seed).derive("test").rng(), inputs, 500);
        let a = float.run(&mut float.zero_state(), &features).unwrap();
        let b = int8.run(&mut int8.zero_state(), &features).unwrap();
        let b = b.iter().map(|output| *output as f32 / cachewright_model::OUTPUT_ONE);
        let squares: f32 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
        let error = (squares / a.len() as f32).sqrt();
        println!("{kind:?} {hidden:?}: root mean square error {error:.5}");
        assert!(error < allowed, "{kind:?} {hidden:?}: {error}");
    }
}

#[test]
fn a_gru_cell_worked_by_hand() {
    use cachewright_model::{Description, NetworkKind};
    // One unit: r = s(1 x), z = s(0), n = tanh(0.5 x + r (2 h + 0.25)); biases of r and z are 0.
    let architecture = shape(NetworkKind::Gru, 1, &[1], &[1]);
    let weights = [
        ("weight_ih_l0", vec![1.0, 0.0, 0.5]),
        ("weight_hh_l0", vec![0.0, 0.0, 2.0]),
        ("bias_ih_l0", vec![0.0; 3]),
        ("bias_hh_l0", vec![0.0, 0.0, 0.25]),
        ("fc.weight", vec![1.0]),
        ("fc.bias", vec![0.0]),
    ];
    let weights = weights.into_iter().map(|(name, numbers)| (name.to_owned(), numbers)).collect();
    let stored = StoredModel::float(Description::plain(architecture), weights, vec![vec![1.0]]);
    let model = FloatModel::new(&stored.unwrap()).unwrap();
    let State { mut hidden, mut cell } = model.zero_state();
    let mut scratch = model.scratch();
    let mut exact = 0.0_f64;
    let mut rng = Seed(5).rng();
    for _ in 0..20 {
        let x = signed(&mut rng);
        let output = model.step(&mut scratch, &mut hidden, &mut cell, &[x]).unwrap()[0];
        let x = f64::from(x);
        let r = 1.0 / (1.0 + (-x).exp());
        let n = (0.5 * x + r * (2.0 * exact + 0.25)).tanh();
        exact = 0.5 * n + 0.5 * exact;
        assert!((f64::from(output) - exact).abs() < 1e-6);
    }
}
