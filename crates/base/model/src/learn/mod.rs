//! Training of small networks and of boosted trees: gradients, the optimiser, early stopping.
//!
//! For: GRU classifiers over short series, logistic regressions and gradient-boosted regression
//! trees, trained in single precision on one thread. Must never know: FTLs, caches, traces, files;
//! what a class or an input means. Networks that are trained here compute in `cachewright_model`,
//! by the tensors of [`GruNetwork::tensors`].
//!
//! Invariant: the order of all additions and multiplications is fixed and every draw comes from a
//! seed. The same series and the same seed give the same weights, bit for bit.
//!
//! ```
//! use cachewright_model::learn::{GruNetwork, GruTraining, LabelledSeries, TrainingSettings};
//! use cachewright_types::Seed;
//!
//! // The class of a step is its input.
//! let (rows, classes) = ([0.0, 1.0, 1.0, 0.0], [Some(0), Some(1), Some(1), Some(0)]);
//! let series = [LabelledSeries { rows: &rows, classes: &classes }];
//! let network = GruNetwork::<8, 2>::draw(1, Seed(1));
//! let mut training = GruTraining::new(network, TrainingSettings::default());
//! let before = training.loss(&series);
//! training.converge(&series, Seed(2));
//! assert!(training.loss(&series) < before);
//! ```

mod adam;
mod boosting;
mod early_stopping;
mod gru;
mod logistic;
mod loss;
mod tape;
mod training;
mod vectors;

pub use adam::{Adam, AdamSettings, clip_factor};
pub use boosting::{BoostedTrees, BoostingSettings};
pub use early_stopping::EarlyStopping;
pub use gru::GruNetwork;
pub use logistic::{DescentSettings, LogisticRegression};
pub use tape::{GruTape, LabelledSeries, SeriesLoss};
pub use training::{GruTraining, TrainingSettings};
