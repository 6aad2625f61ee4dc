//! Training of small networks and of boosted trees, in single precision on one thread: GRU
//! classifiers over short series, logistic regressions, gradient-boosted regression trees.
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

mod boosting;
mod gru;
mod logistic;
mod training;

pub use boosting::{BoostedTrees, BoostingSettings};
pub use gru::{GruNetwork, GruTape, LabelledSeries, SeriesLoss};
pub use logistic::{DescentSettings, LogisticRegression};
pub use training::{Adam, AdamSettings, EarlyStopping, GruTraining, TrainingSettings, clip_factor};
