//! Small models: the file that they come in, forward passes in f32 and int8, training.
//!
//! GRU, LSTM, MLP and logistic models and forests of trees, most of them trained elsewhere, some by
//! [`learn`] while a cache or a drive runs. A step takes O(1) with the state kept by the caller;
//! whole sequences run as well. A model is stored as PyTorch names it ([`StoredModel`]) and
//! computes as [`FloatModel`] or [`Int8Model`]. [`quantise()`] makes the second from the first.
//! Trees compute as [`ForestModel`]. [`Model`] is whichever of them a file holds.
//!
//! ```
//! use cachewright_model::{Architecture, Description, Head, Int8Model, NetworkKind, StoredModel};
//! use cachewright_model::quantise;
//!
//! let heads = vec![Head { name: "fc".to_owned(), outputs: 2 }];
//! let architecture = Architecture { kind: NetworkKind::Gru, inputs: 1, hidden: vec![32], heads };
//! let weights = architecture
//!     .tensors()
//!     .into_iter()
//!     .map(|(name, shape)| (name, vec![0.1; shape.iter().product()]))
//!     .collect();
//! let sequence: Vec<f32> = (0..20).map(|step| step as f32 / 20.0).collect();
//! let test_inputs = sequence.iter().map(|feature| vec![*feature]).collect();
//! let stored = StoredModel::float(Description::plain(architecture), weights, test_inputs)?;
//! let file = quantise(&stored, &[&sequence])?.to_bytes()?;
//!
//! let model = Int8Model::load(&file)?;
//! let (mut scratch, mut page_state) = (model.scratch(), [0_i8; 32]);
//! let outputs = model.step(&mut scratch, &mut page_state, &mut [], &[0.5])?;
//! assert_eq!(outputs.len(), 2);
//! # Ok::<(), cachewright_model::ModelError>(())
//! ```

pub mod any;
pub mod description;
pub mod error;
pub mod file;
pub mod float;
mod float_loops;
pub mod forest;
pub mod int8;
pub mod learn;
mod packed;
pub mod quantise;
mod sequence;
#[allow(unsafe_code)]
mod simd;
pub mod squash;
pub mod stored;

pub use any::Model;
pub use description::{
    Architecture, Description, Head, NetworkKind, Normalisation, Quantisation, TestVector,
};

pub use description::{Combine, ForestForm};
pub use error::ModelError;
pub use file::fingerprint;
pub use float::{FloatModel, FloatScratch, FloatState};
pub use forest::{Forest, ForestModel, ForestScratch, Tree, TreeNode};
pub use int8::{Int8Model, Int8Scratch, Int8State, OUTPUT_ONE};
pub use quantise::quantise;
pub use sequence::State;
pub use simd::Isa;
pub use squash::{argmax, softmax};
pub use stored::{Numbers, StoredModel, Tensor};
