//! What a model is: architecture, features, scales and test vector, as the JSON in a model file
//! spells them, and the tensors that follow from them.
//!
//! Names and gate order follow PyTorch's `nn.GRU`, `nn.LSTM` and `nn.Linear`, so that a
//! `state_dict` drops in; trees are laid out as [`forest`](crate::forest) says.

use crate::error::ModelError;
use cachewright_types::nearest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the description this crate reads and writes.
pub const VERSION: u32 = 1;
/// Most inputs, units of a layer, or outputs of a head; the int8 arithmetic relies on it.
pub const MAX_WIDTH: usize = 1024;
/// Most recurrent layers.
pub const MAX_RECURRENT_LAYERS: usize = 3;
/// Most hidden layers of an MLP.
pub const MAX_DENSE_LAYERS: usize = 8;
/// Most heads.
pub const MAX_HEADS: usize = 8;
/// Most steps of a test vector.
pub const MAX_TEST_STEPS: usize = 4096;

/// What the layers before the heads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// Gated recurrent unit (Cho et al., EMNLP'14), with PyTorch's reset gate after the product.
    Gru,
    /// Long short-term memory (Hochreiter, Schmidhuber 1997; Gers et al. 2000), no peepholes.
    Lstm,
    /// Dense layers with ReLU.
    Mlp,
    /// No hidden layer: the heads see the inputs.
    Logistic,
    /// Regression trees whose leaves hold the outputs of all heads.
    Forest(ForestForm),
}

/// The name of [`NetworkKind::Forest`] in a model file.
const FOREST: &str = "forest";
/// The names of all kinds.
const KINDS: [&str; 5] = ["gru", "lstm", "mlp", "logistic", FOREST];

impl NetworkKind {
    /// The name in a model file.
    pub fn name(self) -> &'static str {
        match self {
            NetworkKind::Gru => "gru",
            NetworkKind::Lstm => "lstm",
            NetworkKind::Mlp => "mlp",
            NetworkKind::Logistic => "logistic",
            NetworkKind::Forest(_) => FOREST,
        }
    }

    /// The kind of this name; a forest has a shape and others have none.
    pub fn from_name(name: &str, forest: Option<ForestForm>) -> Result<NetworkKind, ModelError> {
        let layers = [NetworkKind::Gru, NetworkKind::Lstm, NetworkKind::Mlp, NetworkKind::Logistic];
        match (layers.into_iter().find(|kind| kind.name() == name), forest) {
            (Some(kind), None) => Ok(kind),
            (Some(_), Some(_)) => {
                let message = format!("found a key `forest` beside kind `{name}`, expected none");
                Err(ModelError::Description(message))
            }
            (None, Some(shape)) if name == FOREST => Ok(NetworkKind::Forest(shape)),
            (None, None) if name == FOREST => {
                let message = "found no key `forest` beside kind `forest`, expected trees, nodes \
                               and combine";
                Err(ModelError::Description(message.to_owned()))
            }
            _ => {
                let near = nearest(name, KINDS).map(str::to_owned);
                Err(ModelError::UnknownArchitecture { found: name.to_owned(), near })
            }
        }
    }

    /// Gates of one unit: 3 for GRU, 4 for LSTM, 0 for what carries no state.
    pub fn gates(self) -> usize {
        match self {
            NetworkKind::Gru => 3,
            NetworkKind::Lstm => 4,
            NetworkKind::Mlp | NetworkKind::Logistic | NetworkKind::Forest(_) => 0,
        }
    }

    /// Whether a state is carried from step to step.
    pub fn is_recurrent(self) -> bool {
        self.gates() > 0
    }
}

/// One dense layer on top: `outputs` numbers, without a non-linearity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// What its tensors' names begin with: `fc` for `fc.weight` and `fc.bias`.
    pub name: String,
    /// Numbers it gives.
    pub outputs: usize,
}

/// The shape of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// What the layers are.
    pub kind: NetworkKind,
    /// Numbers per step that go in.
    pub inputs: usize,
    /// Units of each layer, first layer first; empty for logistic and forest.
    pub hidden: Vec<usize>,
    /// The dense layers on top, in the order of the outputs.
    pub heads: Vec<Head>,
}

impl Architecture {
    /// Outputs of all heads together.
    pub fn outputs(&self) -> usize {
        self.heads.iter().map(|head| head.outputs).sum()
    }

    /// Numbers the heads see.
    pub fn head_inputs(&self) -> usize {
        self.hidden.last().copied().unwrap_or(self.inputs)
    }

    /// Numbers layer `layer` sees.
    pub fn layer_inputs(&self, layer: usize) -> usize {
        if layer == 0 { self.inputs } else { self.hidden[layer - 1] }
    }

    /// Numbers of hidden state carried from step to step: all layers, first layer first.
    pub fn state_len(&self) -> usize {
        if self.kind.is_recurrent() { self.hidden.iter().sum() } else { 0 }
    }

    /// Numbers of cell state carried: as many as hidden for LSTM, none for others.
    pub fn cell_len(&self) -> usize {
        if self.kind == NetworkKind::Lstm { self.state_len() } else { 0 }
    }

    /// Names and shapes of the tensors of an f32 model.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        if let NetworkKind::Forest(shape) = self.kind {
            return shape.tensors(self.outputs());
        }
        let mut tensors = Vec::new();
        for (layer, units) in self.hidden.iter().copied().enumerate() {
            let inputs = self.layer_inputs(layer);
            if self.kind.is_recurrent() {
                let rows = self.kind.gates() * units;
                tensors.push((format!("weight_ih_l{layer}"), vec![rows, inputs]));
                tensors.push((format!("weight_hh_l{layer}"), vec![rows, units]));
                tensors.push((format!("bias_ih_l{layer}"), vec![rows]));
                tensors.push((format!("bias_hh_l{layer}"), vec![rows]));
            } else {
                tensors.push((format!("hidden.{layer}.weight"), vec![units, inputs]));
                tensors.push((format!("hidden.{layer}.bias"), vec![units]));
            }
        }
        for Head { name, outputs } in &self.heads {
            tensors.push((format!("{name}.weight"), vec![*outputs, self.head_inputs()]));
            tensors.push((format!("{name}.bias"), vec![*outputs]));
        }
        tensors
    }

    /// The type of a tensor's numbers in an f32 model.
    pub(crate) fn type_of(&self, tensor: &str) -> &'static str {
        let whole = [TREE_NODES, NODE_FEATURE].contains(&tensor);
        if whole && matches!(self.kind, NetworkKind::Forest(_)) { "I32" } else { "F32" }
    }

    /// Checks every size against its limit.
    pub fn check(&self) -> Result<(), ModelError> {
        let width = |what: String, found: usize| {
            if (1..=MAX_WIDTH).contains(&found) {
                return Ok(());
            }
            Err(ModelError::size(what, found, format!("1 to {MAX_WIDTH}")))
        };
        width("inputs".to_owned(), self.inputs)?;
        for (layer, units) in self.hidden.iter().enumerate() {
            width(format!("units of layer {layer}"), *units)?;
        }
        let (min, max) = match self.kind {
            NetworkKind::Gru | NetworkKind::Lstm => (1, MAX_RECURRENT_LAYERS),
            NetworkKind::Mlp => (1, MAX_DENSE_LAYERS),
            NetworkKind::Logistic | NetworkKind::Forest(_) => (0, 0),
        };
        if !(min..=max).contains(&self.hidden.len()) {
            let what = format!("hidden layers of {}", self.kind.name());
            return Err(ModelError::size(what, self.hidden.len(), format!("{min} to {max}")));
        }
        if !(1..=MAX_HEADS).contains(&self.heads.len()) {
            return Err(ModelError::size("heads", self.heads.len(), format!("1 to {MAX_HEADS}")));
        }
        for head in &self.heads {
            width(format!("outputs of head `{}`", head.name), head.outputs)?;
        }
        if let NetworkKind::Forest(shape) = self.kind {
            shape.check(self.outputs())?;
        }
        let mut names: Vec<String> = self.tensors().into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("found two tensors called `{}`, expected one", pair[0]);
            return Err(ModelError::Description(message));
        }
        Ok(())
    }
}

/// How a feature becomes an input: `(feature - mean) / deviation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalisation {
    /// One per input, in the feature's unit.
    pub mean: Vec<f32>,
    /// One per input, in the feature's unit, above 0.
    pub deviation: Vec<f32>,
}

impl Normalisation {
    /// Inputs that are features as they are.
    pub fn none(inputs: usize) -> Normalisation {
        Normalisation { mean: vec![0.0; inputs], deviation: vec![1.0; inputs] }
    }

    /// Checks lengths and signs.
    pub fn check(&self, inputs: usize) -> Result<(), ModelError> {
        for (what, numbers) in [("mean", &self.mean), ("deviation", &self.deviation)] {
            if numbers.len() != inputs {
                return Err(ModelError::size(
                    format!("normalisation.{what}"),
                    numbers.len(),
                    inputs,
                ));
            }
            let wrong = |x: &&f32| !x.is_finite() || (what == "deviation" && **x <= 0.0);
            if let Some(found) = numbers.iter().find(wrong).copied() {
                let expected = "finite numbers, deviations above 0";
                let what = format!("normalisation.{what}");
                return Err(ModelError::Number { what, found, expected });
            }
        }
        Ok(())
    }
}

/// The scales of an int8 model that belong to activations; those of weights are tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantisation {
    /// Per input: what one unit of the int8 input stands for, after normalisation.
    pub input_scales: Vec<f32>,
    /// Per hidden layer of an MLP: what one unit of its int8 output stands for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden_scales: Vec<f32>,
    /// Per layer of an LSTM: fractional bits of the 16-bit cell state, 8 to 12.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cell_bits: Vec<u32>,
}

impl Quantisation {
    /// Checks lengths, signs and ranges.
    pub fn check(&self, architecture: &Architecture) -> Result<(), ModelError> {
        if let NetworkKind::Forest(_) = architecture.kind {
            let expected = "an f32 one: trees are not quantised";
            return Err(ModelError::Precision { found: "an int8 forest", expected });
        }
        let layers = architecture.hidden.len();
        let expected_len = |kind: NetworkKind| if architecture.kind == kind { layers } else { 0 };
        let lengths = [
            ("input_scales", self.input_scales.len(), architecture.inputs),
            ("hidden_scales", self.hidden_scales.len(), expected_len(NetworkKind::Mlp)),
            ("cell_bits", self.cell_bits.len(), expected_len(NetworkKind::Lstm)),
        ];
        for (what, found, expected) in lengths {
            if found != expected {
                return Err(ModelError::size(format!("quantisation.{what}"), found, expected));
            }
        }
        let scales = self.input_scales.iter().chain(&self.hidden_scales);
        if let Some(found) = scales.copied().find(|scale| !scale.is_normal() || *scale <= 0.0) {
            let what = "quantisation scale".to_owned();
            return Err(ModelError::Number { what, found, expected: "a normal number above 0" });
        }
        if let Some(bits) = self.cell_bits.iter().find(|bits| !(8..=12).contains(*bits)) {
            return Err(ModelError::size("quantisation.cell_bits", *bits as usize, "8 to 12"));
        }
        Ok(())
    }
}

/// A sequence from a zero state, and what the model gave for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestVector {
    /// Per step: the features before normalisation.
    pub inputs: Vec<Vec<f32>>,
    /// Per step: the outputs of all heads in their order.
    pub outputs: Vec<Vec<f32>>,
}

impl TestVector {
    /// Checks lengths.
    pub fn check(&self, architecture: &Architecture) -> Result<(), ModelError> {
        let steps = self.inputs.len();
        if !(1..=MAX_TEST_STEPS).contains(&steps) {
            let expected = format!("1 to {MAX_TEST_STEPS}");
            return Err(ModelError::size("steps of the test vector", steps, expected));
        }
        if self.outputs.len() != steps {
            return Err(ModelError::size("test_vector.outputs", self.outputs.len(), steps));
        }
        let wrong = |rows: &[Vec<f32>], width: usize| {
            rows.iter().map(Vec::len).find(|length| *length != width)
        };
        if let Some(found) = wrong(&self.inputs, architecture.inputs) {
            return Err(ModelError::size("a step of inputs", found, architecture.inputs));
        }
        if let Some(found) = wrong(&self.outputs, architecture.outputs()) {
            return Err(ModelError::size("a step of outputs", found, architecture.outputs()));
        }
        Ok(())
    }

    /// Compares what a forward pass gave with the stored outputs; `same` takes the number found and
    /// the one expected.
    pub(crate) fn check_outputs(
        &self,
        outputs: &[Vec<f32>],
        same: impl Fn(f32, f32) -> bool,
    ) -> Result<(), ModelError> {
        for (step, (found, expected)) in outputs.iter().zip(&self.outputs).enumerate() {
            for (output, (found, expected)) in found.iter().zip(expected).enumerate() {
                if !same(*found, *expected) {
                    let (found, expected) = (*found, *expected);
                    return Err(ModelError::NotReproduced { step, output, found, expected });
                }
            }
        }
        Ok(())
    }
}

/// What a model file says beside its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The shape.
    pub architecture: Architecture,
    /// A name per input, in order.
    pub features: Vec<String>,
    /// From features to inputs.
    pub normalisation: Normalisation,
    /// Facts about its training, such as a threshold; never read here.
    pub notes: BTreeMap<String, String>,
}

impl Description {
    /// A description with features called `x0`, `x1`, ... that are taken as they are.
    pub fn plain(architecture: Architecture) -> Description {
        Description {
            features: (0..architecture.inputs).map(|input| format!("x{input}")).collect(),
            normalisation: Normalisation::none(architecture.inputs),
            notes: BTreeMap::new(),
            architecture,
        }
    }

    /// Checks all but the weights.
    pub fn check(&self) -> Result<(), ModelError> {
        self.architecture.check()?;
        if self.features.len() != self.architecture.inputs {
            let inputs = self.architecture.inputs;
            return Err(ModelError::size("features", self.features.len(), inputs));
        }
        self.normalisation.check(self.architecture.inputs)
    }
}

/// Most trees.
pub const MAX_TREES: usize = 1 << 16;
/// Most nodes of all trees together.
pub const MAX_NODES: usize = 1 << 22;
/// Most splits on a path from root to leaf.
pub const MAX_DEPTH: usize = 64;
/// Most numbers in all leaves together.
pub const MAX_LEAF_NUMBERS: usize = 1 << 24;

/// Per tree its number of nodes.
pub const TREE_NODES: &str = "tree.nodes";
/// Per node the input its split looks at, [`LEAF`] for a leaf.
pub const NODE_FEATURE: &str = "node.feature";
/// Per node its split's threshold, 0 for a leaf.
pub const NODE_THRESHOLD: &str = "node.threshold";
/// Per leaf, in the order of the nodes, a number per output.
pub const LEAF_VALUES: &str = "leaf.values";
/// Per output the number that is added to what the trees give.
pub const BASE: &str = "base";
/// [`NODE_FEATURE`] of a leaf.
pub const LEAF: i32 = -1;

/// What is done with the leaves that the trees give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// Their mean: random forests.
    Mean,
    /// Their sum: boosted trees.
    Sum,
}

/// The sizes of a forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForestForm {
    /// Trees.
    pub trees: usize,
    /// Nodes of all trees together, leaves included.
    pub nodes: usize,
    /// What is done with their leaves.
    pub combine: Combine,
}

impl ForestForm {
    /// Leaves of all trees: each split has two children, so a tree has one leaf more than splits.
    pub fn leaves(self) -> usize {
        self.nodes.saturating_add(self.trees) / 2
    }

    /// Names and shapes of the tensors.
    pub(crate) fn tensors(self, outputs: usize) -> Vec<(String, Vec<usize>)> {
        [
            (TREE_NODES, vec![self.trees]),
            (NODE_FEATURE, vec![self.nodes]),
            (NODE_THRESHOLD, vec![self.nodes]),
            (LEAF_VALUES, vec![self.leaves(), outputs]),
            (BASE, vec![outputs]),
        ]
        .map(|(name, shape)| (name.to_owned(), shape))
        .to_vec()
    }

    /// Checks sizes against their limits.
    pub(crate) fn check(self, outputs: usize) -> Result<(), ModelError> {
        if !(1..=MAX_TREES).contains(&self.trees) {
            return Err(ModelError::size("trees", self.trees, format!("1 to {MAX_TREES}")));
        }
        if !(self.trees..=MAX_NODES).contains(&self.nodes) {
            let expected = format!("{} to {MAX_NODES}", self.trees);
            return Err(ModelError::size("nodes of all trees", self.nodes, expected));
        }
        if !(self.nodes + self.trees).is_multiple_of(2) {
            let expected = "an odd number per tree";
            return Err(ModelError::size("nodes of all trees", self.nodes, expected));
        }
        let numbers = self.leaves().saturating_mul(outputs);
        if numbers > MAX_LEAF_NUMBERS {
            let expected = format!("at most {MAX_LEAF_NUMBERS}");
            return Err(ModelError::size("numbers in all leaves", numbers, expected));
        }
        Ok(())
    }
}
