//! The answer of `train` for separations (in pages), and the description of a model file.

use crate::document::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a model was trained on and how well it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Which trainer made the model: `native` or its name.
    pub trainer: String,
    /// Distinct pages that the trace writes.
    pub logical_pages: u32,
    /// Pages that the trace writes.
    pub trace_pages: u64,
    /// Pages written in the part that trains.
    pub trained_pages: u64,
    /// Windows of training in that part.
    pub windows: u64,
    /// Pages written in a window.
    pub window_pages: u32,
    /// Series trained on.
    pub series: usize,
    /// Steps with a label.
    pub labelled_steps: usize,
    /// Lifetimes up to this count as short, in pages.
    pub threshold: u32,
    /// Predictions on the part that does not train; null without predictions.
    pub held_out: Option<Prediction>,
    /// Name of the stack.
    pub name: String,
    /// The separation with its settings.
    pub separation: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Predictions on other traces.
    pub judged: Vec<JudgedTrace>,
}

/// Predictions on another trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedTrace {
    /// Name of the stack.
    pub name: String,
    /// Pages that the trace writes.
    pub trace_pages: u64,
    /// The predictions; null without predictions.
    pub measures: Option<Prediction>,
}

/// How well short lifetimes were predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Predictions that can be judged.
    pub predictions: u64,
    /// Share of right predictions, 0 to 1.
    pub accuracy: f64,
    /// Share of those predicted short that were short, 0 to 1.
    pub precision: f64,
    /// Share of the short that were predicted short, 0 to 1.
    pub recall: f64,
    /// Harmonic mean of precision and recall, 0 to 1.
    pub f1: f64,
    /// Share of the more frequent true class, 0 to 1.
    pub majority: f64,
}

/// What a model file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelDescription {
    /// Kind of the model.
    pub kind: String,
    /// Numbers per step that go in.
    pub inputs: usize,
    /// Units of each layer, first layer first; empty for logistic regression and forests.
    pub hidden: Vec<usize>,
    /// Heads: name, number of outputs.
    pub heads: Vec<(String, usize)>,
    /// Shape of a forest; null for other kinds.
    pub forest: Option<ForestShape>,
    /// A name per input.
    pub features: Vec<String>,
    /// How a feature becomes an input.
    pub normalisation: InputScale,
    /// Notes of the training, by name.
    pub notes: BTreeMap<String, String>,
    /// Whether the weights are 8-bit integers.
    pub int8: bool,
    /// Bytes of the weights.
    pub weight_bytes: usize,
}

/// Shape of a forest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForestShape {
    /// Trees.
    pub trees: usize,
    /// Nodes of all trees.
    pub nodes: usize,
}

/// How a feature becomes an input: feature minus mean, over deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputScale {
    /// Mean of each feature, in its unit.
    pub mean: Vec<f64>,
    /// Deviation of each feature, in its unit.
    pub deviation: Vec<f64>,
}
