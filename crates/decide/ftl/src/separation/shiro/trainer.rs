//! Training at window borders: the call-back, and a trainer without Python.
//!
//! For: [`Trainer`], which turns one window's dataset into a model, and [`NativeTrainer`], which
//! trains by `cachewright_learn`. Must never know: the FTL, files, threads (a trainer outside this
//! crate may use them), how gradients are computed. Source: Shiro, section III-B: cross entropy,
//! Adam; to convergence on the first window, one epoch on each later one.

use super::dataset::Dataset;
use super::train_error::TrainError;
use cachewright_model::learn::{GruNetwork, GruTraining, LabelledSeries, TrainingSettings};
use cachewright_model::{Description, StoredModel};
use cachewright_types::Seed;

/// Units of the hidden state (Shiro, section III-B).
const UNITS: usize = 32;
/// Classes: long, short.
const CLASSES: usize = 2;
/// Steps that a model's test vector replays.
const TEST_STEPS: usize = 16;

/// The note of a model file that holds the lifetime up to which a page is short.
pub const THRESHOLD_NOTE: &str = "threshold";

/// Called once per window, with its dataset.
pub trait Trainer: Send {
    /// The model to use from now on, f32 or int8. A trainer keeps what it needs from call to call.
    /// Errors: none usable; the old model stays in use.
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError>;
}

/// The trainer in Rust: f32, one thread, deterministic by its seed.
#[derive(Clone, Debug)]
pub struct NativeTrainer {
    seed: Seed,
    training: Option<GruTraining<UNITS, CLASSES>>,
}

impl NativeTrainer {
    /// A trainer before its first window.
    pub fn new(seed: Seed) -> NativeTrainer {
        NativeTrainer { seed, training: None }
    }
}

impl Trainer for NativeTrainer {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        if dataset.labelled() == 0 {
            return Err(TrainError::Nothing { window: dataset.window });
        }
        let inputs = dataset.encoding.inputs();
        let earlier = self.training.take().filter(|known| known.network().inputs() == inputs);
        let mut training = earlier.unwrap_or_else(|| {
            let network = GruNetwork::draw(inputs, self.seed.derive("weights"));
            GruTraining::new(network, TrainingSettings::default())
        });
        let seed = self.seed.derive(&format!("window {}", dataset.window));
        let classes = dataset.classes();
        let series = dataset.ranges().map_while(|(rows, steps)| {
            let (rows, classes) = (dataset.rows.get(rows)?, classes.get(steps)?);
            Some(LabelledSeries { rows, classes })
        });
        let series: Vec<LabelledSeries<'_>> = series.collect();
        if dataset.first {
            training.converge(&series, seed);
        } else {
            training.epoch(&series, seed);
        }
        let stored = stored(training.network(), dataset);
        self.training = Some(training);
        stored
    }
}

/// The network in its stored form.
fn stored(
    network: &GruNetwork<UNITS, CLASSES>,
    dataset: &Dataset,
) -> Result<StoredModel, TrainError> {
    let mut description = Description::plain(network.architecture());
    description.features = dataset.encoding.names();
    let notes =
        [(THRESHOLD_NOTE, dataset.threshold.to_string()), ("window", dataset.window.to_string())];
    description.notes = notes.map(|(name, text)| (name.to_owned(), text)).into();
    let rows = dataset.rows.chunks_exact(network.inputs());
    let test = rows.take(TEST_STEPS).map(<[f32]>::to_vec).collect();
    Ok(StoredModel::float(description, network.tensors(), test)?)
}

#[cfg(test)]
mod tests {
    use super::super::dataset::{LifetimeLabel, evaluate};
    use super::super::features::{Encoding, Features};
    use super::*;
    use cachewright_model::{Numbers, quantise};
    use cachewright_types::seed::mix;

    /// Series whose class is whether the lifetime of the step before was low.
    fn dataset(window: u64) -> Dataset {
        let mut rng = Seed(window).rng();
        let encoding = Encoding::Hex;
        let (mut rows, mut labels, lengths) = (Vec::new(), Vec::new(), vec![6; 600]);
        for _ in 0..600 {
            let mut before = false;
            for step in 0..6 {
                let low = rng.below(2) == 0;
                let previous_lifetime = if low { rng.below(200) } else { 4096 + rng.below(9000) };
                let previous_lifetime = previous_lifetime as u32;
                let features = Features { previous_lifetime, ..Features::default() };
                encoding.append(&features, &mut rows);
                labels.push(match (step, before) {
                    (0, _) => LifetimeLabel::Context,
                    (_, true) => LifetimeLabel::Short,
                    (_, false) => LifetimeLabel::Long,
                });
                before = low;
            }
        }
        Dataset { window, first: window == 0, threshold: 300, encoding, lengths, rows, labels }
    }

    #[test]
    fn it_learns_what_needs_a_memory_and_int8_loses_less_than_a_hundredth() {
        let mut trainer = NativeTrainer::new(Seed(11));
        let mut model = trainer.train(&dataset(0)).unwrap();
        for window in 1..12 {
            model = trainer.train(&dataset(window)).unwrap();
        }
        let later = dataset(99);
        let float = evaluate(&model, &later).unwrap().accuracy();
        let int8 = quantise(&model, &[&dataset(11).rows]).unwrap();
        let quantised = evaluate(&int8, &later).unwrap().accuracy();
        assert!(float > 0.97, "f32 accuracy {float}");
        assert!(quantised > float - 0.01, "int8 accuracy {quantised}, f32 {float}");
    }

    /// Weights after training to convergence and after one more epoch, as hashes of their bits.
    #[test]
    fn the_weights_of_two_windows_are_pinned_to_the_bit() {
        let mut trainer = NativeTrainer::new(Seed(11));
        let hashes = [0, 1].map(|window| {
            let model = trainer.train(&dataset(window)).unwrap();
            let weights = model.tensors.values().map(|tensor| match &tensor.numbers {
                Numbers::F32(numbers) => numbers.as_slice(),
                other => panic!("found {other:?}, expected f32"),
            });
            weights.flatten().fold(0, |hash, weight| mix(hash ^ u64::from(weight.to_bits())))
        });
        assert_eq!(hashes, [17_607_854_940_691_467_180, 8_321_410_706_005_721_594]);
    }

    #[test]
    fn the_same_seed_gives_the_same_model() {
        let train = |seed| NativeTrainer::new(Seed(seed)).train(&dataset(0)).unwrap();
        assert_eq!(train(1).to_bytes(), train(1).to_bytes());
        assert_ne!(train(1).tensors, train(2).tensors);
    }

    #[test]
    fn nothing_to_learn_is_said() {
        let mut empty = dataset(0);
        empty.labels.fill(LifetimeLabel::Context);
        let error = NativeTrainer::new(Seed(1)).train(&empty).unwrap_err();
        assert_eq!(error.to_string(), "window 0: found no labelled step, expected at least 1");
    }
}
