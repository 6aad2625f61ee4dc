//! Small models for tests of partitioners that ask one.
//!
//! For: model files whose outputs are known, or depend on every input. Must never know: what
//! partitioners do with them.

#![allow(dead_code, clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_model::{Architecture, Description, Head, NetworkKind, StoredModel};
use cachewright_types::Seed;

/// A model of `kind` whose weights are `weight` of the tensor's name and the place in it.
pub fn model(
    kind: NetworkKind,
    features: &[String],
    outputs: usize,
    notes: &[(&str, &str)],
    weight: &mut dyn FnMut(&str, usize) -> f32,
) -> StoredModel {
    let heads = vec![Head { name: "points".to_owned(), outputs }];
    let architecture = Architecture { kind, inputs: features.len(), hidden: vec![5], heads };
    let weights = architecture.tensors().into_iter().map(|(name, shape)| {
        let numbers = (0..shape.iter().product()).map(|index| weight(&name, index)).collect();
        (name, numbers)
    });
    let weights = weights.collect();
    let mut description = Description::plain(architecture);
    description.features = features.to_vec();
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    description.notes = notes.iter().map(owned).collect();
    let inputs = vec![vec![0.5; features.len()]; 3];
    StoredModel::float(description, weights, inputs).unwrap()
}

/// One that says the same whatever it sees.
pub fn constant(
    kind: NetworkKind,
    features: &[String],
    says: &[f32],
    notes: &[(&str, &str)],
) -> StoredModel {
    let mut weight =
        |name: &str, index: usize| if name == "points.bias" { says[index] } else { 0.0 };
    model(kind, features, says.len(), notes, &mut weight)
}

/// One of random weights.
pub fn random(
    kind: NetworkKind,
    features: &[String],
    outputs: usize,
    notes: &[(&str, &str)],
    seed: u64,
) -> StoredModel {
    let mut rng = Seed(seed).derive("weights").rng();
    let mut weight = |_: &str, _: usize| (rng.unit() - 0.5) as f32;
    model(kind, features, outputs, notes, &mut weight)
}
