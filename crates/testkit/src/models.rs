//! Models and forests by seed, and features for them.
//!
//! Random weights are uniform in +-1/sqrt(columns) times a gain, as PyTorch begins them (gain 1).

use cachewright_model::{
    Architecture, Combine, Description, Forest, Head, ModelError, NetworkKind, Normalisation,
    StoredModel, Tree, TreeNode, quantise,
};
use cachewright_types::{Rng, Seed};

/// A number uniform in [-1, 1).
pub fn signed(rng: &mut Rng) -> f32 {
    (2.0 * rng.unit() - 1.0) as f32
}

/// An architecture with heads of these outputs.
pub fn shape(
    kind: NetworkKind,
    inputs: usize,
    hidden: &[usize],
    outputs: &[usize],
) -> Architecture {
    let head = |(index, outputs): (usize, &usize)| Head {
        name: if index == 0 { "fc".to_owned() } else { format!("fc{index}") },
        outputs: *outputs,
    };
    let heads = outputs.iter().enumerate().map(head).collect();
    Architecture { kind, inputs, hidden: hidden.to_vec(), heads }
}

/// Features of `steps` steps, one after another; feature i is centred on i with deviation i + 1.
pub fn sequence(rng: &mut Rng, inputs: usize, steps: usize) -> Vec<f32> {
    let feature = |at: usize| {
        let input = (at % inputs) as f32;
        input + (input + 1.0) * 2.0 * signed(rng)
    };
    (0..inputs * steps).map(feature).collect()
}

/// An f32 model of random weights.
pub fn random_model(architecture: Architecture, gain: f32, seed: u64) -> StoredModel {
    let mut rng = Seed(seed).derive("weights").rng();
    let inputs = architecture.inputs;
    let mut description = Description::plain(architecture);
    description.normalisation = Normalisation {
        mean: (0..inputs).map(|input| input as f32).collect(),
        deviation: (0..inputs).map(|input| input as f32 + 1.0).collect(),
    };
    let weights = description
        .architecture
        .tensors()
        .into_iter()
        .map(|(name, shape)| {
            let bound = gain / (shape.last().copied().unwrap_or(1) as f32).sqrt();
            let count = shape.iter().product();
            (name, (0..count).map(|_| bound * signed(&mut rng)).collect())
        })
        .collect();
    let steps = sequence(&mut rng, inputs, 5);
    let steps = steps.chunks_exact(inputs).map(<[f32]>::to_vec).collect();
    StoredModel::float(description, weights, steps).unwrap()
}

/// The int8 model of `stored`, calibrated on eight random sequences of 32 steps.
pub fn random_int8(stored: &StoredModel, seed: u64) -> StoredModel {
    let mut rng = Seed(seed).derive("calibration").rng();
    let inputs = stored.description.architecture.inputs;
    let sequences: Vec<Vec<f32>> = (0..8).map(|_| sequence(&mut rng, inputs, 32)).collect();
    let sequences: Vec<&[f32]> = sequences.iter().map(Vec::as_slice).collect();
    quantise(stored, &sequences).unwrap()
}

/// Trees of `splits` splits each, grown at random leaves; thresholds are in -2 to 2.
pub fn random_forest(
    inputs: usize,
    outputs: usize,
    trees: usize,
    splits: usize,
    combine: Combine,
    seed: u64,
) -> Forest {
    let mut rng = Seed(seed).derive("trees").rng();
    let mut tree = || {
        let mut nodes = vec![TreeNode::Leaf(Vec::new())];
        let mut leaves = vec![0];
        for _ in 0..splits {
            let at: usize = leaves.swap_remove(rng.below(leaves.len() as u64) as usize);
            let (left, right) = (nodes.len(), nodes.len() + 1);
            let feature = rng.below(inputs as u64) as usize;
            nodes[at] = TreeNode::Split { feature, threshold: 2.0 * signed(&mut rng), left, right };
            nodes.extend([TreeNode::Leaf(Vec::new()), TreeNode::Leaf(Vec::new())]);
            leaves.extend([left, right]);
        }
        for at in leaves {
            nodes[at] = TreeNode::Leaf((0..outputs).map(|_| signed(&mut rng)).collect());
        }
        Tree { nodes }
    };
    let trees = (0..trees).map(|_| tree()).collect();
    Forest { trees, combine, base: (0..outputs).map(|_| signed(&mut rng)).collect() }
}

/// The description of such a forest: features i centred on i with deviation i + 1, one head.
pub fn forest_description(forest: &Forest, inputs: usize) -> Description {
    let kind = forest.kind();
    let mut description = Description::plain(shape(kind, inputs, &[], &[forest.base.len()]));
    description.normalisation = Normalisation {
        mean: (0..inputs).map(|input| input as f32).collect(),
        deviation: (0..inputs).map(|input| input as f32 + 1.0).collect(),
    };
    description
}

/// A stored model of such a forest.
pub fn stored_forest(forest: &Forest, inputs: usize, seed: u64) -> StoredModel {
    let rows = sequence(&mut Seed(seed).derive("test rows").rng(), inputs, 5);
    let rows = rows.chunks_exact(inputs).map(<[f32]>::to_vec).collect();
    StoredModel::forest(forest_description(forest, inputs), forest, rows).unwrap()
}

/// A model of five hidden units and one head, `points`; `weight` gives each weight from its
/// tensor's name and its place there.
pub fn small_model(
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

/// A small model that says the same whatever it sees.
pub fn constant_model(
    kind: NetworkKind,
    features: &[String],
    says: &[f32],
    notes: &[(&str, &str)],
) -> StoredModel {
    let mut weight =
        |name: &str, index: usize| if name == "points.bias" { says[index] } else { 0.0 };
    small_model(kind, features, says.len(), notes, &mut weight)
}

/// A small model of random weights.
pub fn small_random_model(
    kind: NetworkKind,
    features: &[String],
    outputs: usize,
    notes: &[(&str, &str)],
    seed: u64,
) -> StoredModel {
    let mut rng = Seed(seed).derive("weights").rng();
    let mut weight = |_: &str, _: usize| (rng.unit() - 0.5) as f32;
    small_model(kind, features, outputs, notes, &mut weight)
}

/// The layers of `rc-rnn`'s model as published.
pub const RC_RNN_LAYERS: &[usize] = &[256, 256, 256];

/// An LSTM of random weights over features from 0 to 8, with so many units in each layer.
pub fn random_lstm(
    features: &[&str],
    heads: &[(&str, usize)],
    hidden: &[usize],
    rng: &mut Rng,
) -> Result<StoredModel, ModelError> {
    let head = |&(name, outputs): &(&str, usize)| Head { name: name.to_owned(), outputs };
    let mut description = Description::plain(Architecture {
        kind: NetworkKind::Lstm,
        inputs: features.len(),
        hidden: hidden.to_vec(),
        heads: heads.iter().map(head).collect(),
    });
    description.features = features.iter().map(|name| (*name).to_owned()).collect();
    let draw = |(name, shape): (String, Vec<usize>), rng: &mut Rng| {
        let bound = 1.0 / (shape[shape.len() - 1] as f64).sqrt();
        let count = shape.iter().product();
        (name, (0..count).map(|_| ((2.0 * rng.unit() - 1.0) * bound) as f32).collect())
    };
    let shapes = description.architecture.tensors();
    let weights = shapes.into_iter().map(|tensor| draw(tensor, rng)).collect();
    let step = |rng: &mut Rng| features.iter().map(|_| (8.0 * rng.unit()) as f32).collect();
    let steps = (0..16).map(|_| step(rng)).collect();
    StoredModel::float(description, weights, steps)
}

/// The same model with weights of one byte.
pub fn in_bytes(stored: &StoredModel) -> Result<StoredModel, ModelError> {
    quantise(stored, &[&stored.test_vector.inputs.concat()])
}
