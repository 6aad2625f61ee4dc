//! Why a training gave no model.
//!
//! For: one error type. Must never know: how a trainer works.

use cachewright_model::ModelError;
use thiserror::Error;

/// Why there is no new model; the one in use stays.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TrainError {
    /// The dataset has no labelled step.
    #[error("window {window}: found no labelled step, expected at least 1")]
    Nothing {
        /// The window.
        window: u64,
    },
    /// The model is of another shape.
    #[error("model: found {found}, expected {expected}")]
    Shape {
        /// The shape found.
        found: String,
        /// The shape needed.
        expected: String,
    },
    /// The model cannot be computed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A trainer outside this crate failed.
    #[error("trainer: {0}")]
    Outside(String),
}
