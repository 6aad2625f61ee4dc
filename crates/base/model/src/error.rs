//! What can be wrong with a model, its file or a call. The caller that opened the file names its
//! path.

use cachewright_types::visible;
use thiserror::Error;

/// What is wrong with a model or with a call to it.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ModelError {
    /// The bytes are no safetensors file.
    #[error("found bytes that are no safetensors file ({}), expected a model file", visible(.0))]
    Container(String),
    /// The metadata key is missing.
    #[error("found no metadata key `{key}`, expected it to hold the model's description")]
    NoDescription {
        /// The key.
        key: &'static str,
    },
    /// The file's content is not what was written.
    #[error(
        "found a damaged model file (checksum {found:08x}), expected one with checksum \
         {expected:08x}"
    )]
    Checksum {
        /// Of what was read.
        found: u32,
        /// In the file.
        expected: u32,
    },
    /// The description is not JSON of the expected fields.
    #[error("metadata `cachewright`: {}", visible(.0))]
    Description(String),
    /// The description is of another version.
    #[error("metadata `cachewright`: found version {found}, expected {expected}")]
    Version {
        /// In the file.
        found: u32,
        /// What this program reads.
        expected: u32,
    },
    /// No such architecture.
    #[error(
        "metadata `cachewright`: found architecture kind `{}`, expected one of gru, lstm, \
         mlp, logistic, forest{}", visible(.found), did_you_mean(.near)
    )]
    UnknownArchitecture {
        /// In the file.
        found: String,
        /// The nearest kind.
        near: Option<String>,
    },
    /// A size that is zero, too large or does not fit another.
    #[error("{}: found {found}, expected {expected}", visible(.what))]
    Size {
        /// The part of the description, or of the call.
        what: String,
        /// The size found.
        found: usize,
        /// The sizes that are right.
        expected: String,
    },
    /// A number that is not finite or has the wrong sign.
    #[error("{}: found {found}, expected {expected}", visible(.what))]
    Number {
        /// The part of the model.
        what: String,
        /// The number found.
        found: f32,
        /// The numbers that are right.
        expected: &'static str,
    },
    /// A tensor that the architecture needs is not in the file.
    #[error("found no tensor `{}`, expected it with shape {shape:?}", visible(.name))]
    MissingTensor {
        /// Its name.
        name: String,
        /// The shape the architecture gives it.
        shape: Vec<usize>,
    },
    /// A tensor that the architecture does not have.
    #[error(
        "found a tensor `{}` that the architecture does not have{}",
        visible(.name), did_you_mean(.near)
    )]
    UnknownTensor {
        /// Its name.
        name: String,
        /// The nearest name the architecture has.
        near: Option<String>,
    },
    /// A tensor of another shape.
    #[error("tensor `{}`: found shape {found:?}, expected {expected:?}", visible(.name))]
    Shape {
        /// Its name.
        name: String,
        /// In the file.
        found: Vec<usize>,
        /// What the architecture gives it.
        expected: Vec<usize>,
    },
    /// A tensor of another number type.
    #[error("tensor `{}`: found numbers of type {found}, expected {expected}", visible(.name))]
    Type {
        /// Its name.
        name: String,
        /// In the file.
        found: String,
        /// What this kind of model has.
        expected: &'static str,
    },
    /// A tree that is none.
    #[error("tree {tree}: {problem}")]
    Tree {
        /// Its number, from 0.
        tree: usize,
        /// What was found and expected.
        problem: String,
    },
    /// The model is not of the precision or kind asked for.
    #[error("found {found} model, expected {expected}")]
    Precision {
        /// In the file.
        found: &'static str,
        /// What was asked for.
        expected: &'static str,
    },
    /// The forward pass does not give the file's own outputs.
    #[error(
        "test vector, step {step}, output {output}: found {found} by computing, expected {expected}"
    )]
    NotReproduced {
        /// Step of the sequence, from 0.
        step: usize,
        /// Output among all heads, from 0.
        output: usize,
        /// What the forward pass gave.
        found: f32,
        /// What the file says.
        expected: f32,
    },
    /// An instruction set this processor does not have.
    #[error("found no {0} on this processor, expected one of those that `Isa::available` lists")]
    NoSuchIsa(&'static str),
}

impl ModelError {
    /// The error of a size that is not what it should be.
    pub(crate) fn size(what: impl Into<String>, found: usize, expected: impl ToString) -> Self {
        ModelError::Size { what: what.into(), found, expected: expected.to_string() }
    }
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref().map(|name| format!(" (nearest: `{}`)", visible(name))).unwrap_or_default()
}
