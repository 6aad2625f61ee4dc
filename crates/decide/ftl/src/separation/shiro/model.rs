//! The model that is in use, and what trains it.
//!
//! The model in use, one step per page write. Hex digits have sixteen values each, so that their
//! int8 inputs are looked up. The model's own quantisation made that table. The step is the same,
//! bit for bit, as one from single-precision inputs. Memory: 384 bytes of tables beside the model.
//!
//! The light model that judges a candidate threshold. Units are accuracy in `[0, 1]`. Source:
//! Shiro, section III-B, Algorithm 1. Cost: 4 M multiplications.
//!
//! Training at window borders: the call-back, and a trainer without Python. Source: Shiro, section
//! III-B: cross entropy, Adam; to convergence on the first window, one epoch on each later one.
//!
//! Trainers and models that come to Shiro from outside. Units are lifetimes in host page writes.

use super::pages::{Encoding, Features, HEX_INPUTS, LifetimeClass, STATE_BYTES};
use super::windows::Dataset;
use super::{Shiro, ShiroSettings};
use crate::separation::learning::{Learner, Statistics};
use cachewright_model::learn::{
    DescentSettings, GruNetwork, GruTraining, LabelledSeries, LogisticRegression, TrainingSettings,
};
use cachewright_model::{
    Description, Int8Model, Int8Scratch, ModelError, StoredModel, argmax, quantise,
};
use cachewright_types::Seed;
use cachewright_types::seed::Rng;
use thiserror::Error;

/// Steps of a dataset that calibrate the int8 model.
const CALIBRATION_STEPS: usize = 2000;

/// The model in use, if there is one.
pub struct LifetimeModel {
    encoding: Encoding,
    trainer: Option<Box<dyn Trainer>>,
    deployed: Option<GruClassifier>,
    /// Each write is judged alone: states are not kept.
    alone: bool,
    /// Writes wait for their prediction.
    synchronous: bool,
    /// Whether the last write took a step of the model.
    stepped: bool,
    /// The window and the reason of the trainer's last failure.
    error: Option<(u64, TrainError)>,
    /// What was predicted and trained; windows and metadata are counted elsewhere.
    statistics: Statistics,
}

impl LifetimeModel {
    /// No model yet.
    pub fn new(settings: &ShiroSettings, trainer: Option<Box<dyn Trainer>>) -> LifetimeModel {
        LifetimeModel {
            encoding: if settings.log_inputs { Encoding::Log } else { Encoding::Hex },
            trainer,
            deployed: None,
            alone: settings.series_steps == 1,
            synchronous: settings.synchronous,
            stepped: false,
            error: None,
            statistics: Statistics::default(),
        }
    }

    /// How its inputs are written.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Takes another trainer, or none: the model in use then stays.
    pub fn set_trainer(&mut self, trainer: Option<Box<dyn Trainer>>) {
        self.trainer = trainer;
    }

    /// Whether models are trained.
    pub fn is_trained(&self) -> bool {
        self.trainer.is_some()
    }

    /// See [`Shiro::install`](super::Shiro::install).
    pub fn install(&mut self, stored: &StoredModel, calibration: &[f32]) -> Result<(), TrainError> {
        self.deployed = Some(GruClassifier::new(stored, self.encoding, calibration)?);
        self.statistics.trainings += 1;
        Ok(())
    }

    /// One step of the model, if there is one: the page's state moves on, the class comes out.
    #[inline]
    pub fn predict<'a>(
        &mut self,
        state: impl FnOnce() -> Option<&'a mut [i8; STATE_BYTES]>,
        features: &Features,
    ) -> LifetimeClass {
        let Some(classifier) = &mut self.deployed else { return LifetimeClass::Unseen };
        let Some(state) = state() else { return LifetimeClass::Unseen };
        if self.alone {
            *state = [0; STATE_BYTES];
        }
        self.statistics.predictions += 1;
        self.statistics.waited_predictions += u64::from(self.synchronous);
        self.stepped = true;
        classifier.classify(state, features)
    }

    /// Whether the last write took a step, once: then whether it waits for it.
    #[inline]
    pub fn take_step(&mut self) -> Option<bool> {
        std::mem::take(&mut self.stepped).then_some(self.synchronous)
    }

    /// Hands a window's dataset out and puts the model that comes back to use.
    pub fn train(&mut self, mut dataset: Dataset, number: u64) {
        let Some(mut trainer) = self.trainer.take() else { return };
        dataset.first = self.deployed.is_none();
        if let Err(error) = self.learn(trainer.as_mut(), &dataset) {
            self.statistics.failures += 1;
            self.error = Some((number, error));
        }
        self.trainer = Some(trainer);
    }

    fn learn(&mut self, trainer: &mut dyn Trainer, dataset: &Dataset) -> Result<(), TrainError> {
        if dataset.labelled() == 0 {
            return Ok(());
        }
        let model = trainer.train(dataset)?;
        let steps = dataset.labels.len().min(CALIBRATION_STEPS);
        let calibration = dataset.rows.get(..steps * self.encoding.inputs());
        self.install(&model, calibration.unwrap_or_default())
    }

    /// The window and the reason of the trainer's last failure.
    pub fn error(&self) -> Option<&(u64, TrainError)> {
        self.error.as_ref()
    }

    /// What was predicted and trained so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }
}

/// Inputs of models made when the share of writes had two digits.
const OLD_INPUTS: usize = 22;
/// Values of a hex digit.
const DIGIT_VALUES: usize = 16;

/// A model that fits Shiro's pages.
struct GruClassifier {
    encoding: Encoding,
    model: Int8Model,
    scratch: Int8Scratch,
    /// The int8 input of each digit, for each value it can have.
    digits: [[i8; DIGIT_VALUES]; HEX_INPUTS],
    inputs: Vec<f32>,
}

impl GruClassifier {
    /// The classifier of a stored model. An f32 model is quantised by `calibration`, rows of inputs
    /// one after another. All inputs at 1 are added, so that no digit saturates. Errors: a model of
    /// another shape than these inputs, 32 bytes of state, 2 outputs (long, short).
    pub fn new(
        stored: &StoredModel,
        encoding: Encoding,
        calibration: &[f32],
    ) -> Result<GruClassifier, TrainError> {
        let inputs = encoding.inputs();
        let shape = &stored.description.architecture;
        let found = (shape.inputs, shape.state_len(), shape.cell_len(), shape.outputs());
        if found != (inputs, STATE_BYTES, 0, 2) {
            let words = |(inputs, state, cell, outputs)| {
                format!("{inputs} inputs, {state} + {cell} bytes of state and {outputs} outputs")
            };
            let mut expected = words((inputs, STATE_BYTES, 0, 2));
            if encoding == Encoding::Hex && found.0 == OLD_INPUTS {
                expected += " (a model of 22 inputs is of an older form: train it again)";
            }
            let found = words(found);
            return Err(TrainError::Shape { found, expected });
        }
        let quantised;
        let int8 = if stored.is_int8() {
            stored
        } else {
            quantised = quantise(stored, &[&vec![1.0; inputs], calibration])?;
            &quantised
        };
        let model = Int8Model::new(int8)?;
        let mut digits = [[0; DIGIT_VALUES]; HEX_INPUTS];
        if encoding == Encoding::Hex {
            for value in 0..DIGIT_VALUES {
                let mut row = [0; HEX_INPUTS];
                model.quantise_inputs(&[value as f32 / 15.0; HEX_INPUTS], &mut row);
                digits.iter_mut().zip(row).for_each(|(digit, input)| digit[value] = input);
            }
        }
        Ok(GruClassifier { encoding, scratch: model.scratch(), model, digits, inputs: Vec::new() })
    }

    /// One step: the page's state moves on, the class comes out.
    #[inline]
    pub fn classify(
        &mut self,
        state: &mut [i8; STATE_BYTES],
        features: &Features,
    ) -> LifetimeClass {
        let GruClassifier { model, scratch, .. } = self;
        let outputs = if self.encoding == Encoding::Hex {
            let digits = features.hex_digits();
            let mut inputs = [0; HEX_INPUTS];
            for ((input, digit), values) in inputs.iter_mut().zip(digits).zip(&self.digits) {
                *input = values[usize::from(digit) % DIGIT_VALUES];
            }
            model.step_quantised(scratch, state, &mut [], &inputs)
        } else {
            self.inputs.clear();
            self.encoding.append(features, &mut self.inputs);
            model.step(scratch, state, &mut [], &self.inputs)
        };
        // The shape was checked when the model came, so that a step cannot fail.
        match outputs {
            Ok(outputs) if argmax(outputs) == 1 => LifetimeClass::Short,
            Ok(_) => LifetimeClass::Long,
            Err(_) => LifetimeClass::Unseen,
        }
    }
}

/// Rows of each class in the sample that is learned.
const TRAIN_PER_CLASS: usize = 800;
/// Rows of each class in the sample that is judged.
const TEST_PER_CLASS: usize = 200;
/// The descent over the whole sample.
const DESCENT: DescentSettings = DescentSettings { steps: 60, rate: 1.0 };

/// Lifetimes of one window, and for some of them the inputs of the writes that began them.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// All lifetimes.
    pub all: &'a [u32],
    /// Those of the rows.
    pub lifetimes: &'a [u32],
    /// Numbers per row.
    pub inputs: usize,
    /// One row per entry of `lifetimes`, one after another.
    pub rows: &'a [f32],
}

/// How well a logistic regression separates lifetimes up to `threshold` from the others. The
/// accuracy is 0 if one side has no lifetime to train on or to test with. 0 if one side has no
/// lifetime to train on or to test with.
pub fn accuracy(observed: &Observed<'_>, threshold: u32, seed: Seed) -> f64 {
    let mut rng = seed.rng();
    let Some((train, test)) = samples(observed, threshold, &mut rng) else { return 0.0 };
    let model = LogisticRegression::fit(observed.inputs, &train, DESCENT);
    let right = test.iter().filter(|(row, short)| (model.logit(row) > 0.0) == *short);
    right.count() as f64 / test.len() as f64
}

type Sample<'a> = Vec<(&'a [f32], bool)>;

/// Balanced samples, drawn with replacement, for training and for testing. A fifth of the rows is
/// held out before anything is drawn, so that none is in both.
fn samples<'a>(
    observed: &Observed<'a>,
    threshold: u32,
    rng: &mut Rng,
) -> Option<(Sample<'a>, Sample<'a>)> {
    let mut groups = [const { Vec::new() }; 4];
    for (row, lifetime) in observed.lifetimes.iter().enumerate() {
        let held_out = row % 5 == 4;
        let short = *lifetime <= threshold;
        groups[2 * usize::from(held_out) + usize::from(short)].push(row);
    }
    if groups.iter().any(Vec::is_empty) {
        return None;
    }
    let mut draw = |groups: &[Vec<usize>], count: usize| {
        let mut sample = Vec::with_capacity(2 * count);
        for _ in 0..count {
            for (group, short) in groups.iter().zip([false, true]) {
                let row = group[rng.below(group.len() as u64) as usize];
                sample.push((row_of(observed, row), short));
            }
        }
        sample
    };
    let train = draw(&groups[..2], TRAIN_PER_CLASS);
    Some((train, draw(&groups[2..], TEST_PER_CLASS)))
}

fn row_of<'a>(observed: &Observed<'a>, row: usize) -> &'a [f32] {
    observed.rows.get(row * observed.inputs..(row + 1) * observed.inputs).unwrap_or_default()
}

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

impl<const VARIANT: u8> Learner for Shiro<VARIANT> {
    fn set_trainer(&mut self, trainer: Box<dyn Trainer>) {
        Shiro::set_trainer(self, Some(trainer));
    }

    fn give(&mut self, model: &StoredModel) -> Result<(), TrainError> {
        let description = &model.description;
        let names = self.model.encoding().names();
        let mut features = description.features.iter().zip(&names).enumerate();
        let other = features.find(|(_, (found, expected))| found != expected);
        // Another number of features is refused with the rest of the shape.
        if let Some((index, (found, expected))) = other
            && description.features.len() == names.len()
        {
            let found = format!("`{found}` as input {index}");
            return Err(TrainError::Shape { found, expected: format!("`{expected}`") });
        }
        let threshold = match description.notes.get(THRESHOLD_NOTE) {
            None => None,
            Some(text) => Some(text.parse::<u32>().map_err(|_| TrainError::Shape {
                found: format!("`{text}` as the note `{THRESHOLD_NOTE}`"),
                expected: "a number of page writes".to_owned(),
            })?),
        };
        let mut calibration = model.test_vector.inputs.concat();
        calibration.extend(vec![0.0; description.architecture.inputs]);
        self.install(model, &calibration)?;
        if let Some(threshold) = threshold {
            self.windows.fix_threshold(threshold);
        }
        Shiro::set_trainer(self, None);
        Ok(())
    }

    fn last_failure(&self) -> Option<String> {
        self.model.error().map(|(window, error)| format!("window {window}: {error}"))
    }

    fn threshold(&self) -> Option<u32> {
        Shiro::threshold(self)
    }

    fn fix_threshold(&mut self, threshold: u32) {
        self.windows.fix_threshold(threshold);
    }

    fn window_pages(&self) -> u32 {
        self.windows.window_pages()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::separation::Registered;
    use crate::separation::fixtures::{geometry, write};
    use crate::separation::shiro::pages::{Encoding, Features};
    use crate::separation::shiro::windows::{Dataset, LifetimeLabel, evaluate};
    use crate::separation::shiro::{PAPER, Separation, ShiroSettings};
    use cachewright_model::{Isa, Numbers, State};
    use cachewright_types::declare::Declared;
    use cachewright_types::seed::mix;

    fn features(rng: &mut cachewright_types::Rng) -> Features {
        Features {
            previous_lifetime: rng.next_u64() as u32 >> rng.below(32),
            request_pages: rng.below(6000) as u32,
            sequential: rng.below(2) == 1,
            chunk_writes: rng.next_u64() as u16 >> rng.below(16),
            chunk_reads: rng.next_u64() as u16 >> rng.below(16),
            write_share: rng.next_u64() as u16,
        }
    }

    /// A model of random series, quantised.
    fn model() -> StoredModel {
        let mut rng = Seed(4).rng();
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let features = features(&mut rng);
            Encoding::Hex.append(&features, &mut rows);
            let short = features.previous_lifetime < 5000;
            labels.push(if short { LifetimeLabel::Short } else { LifetimeLabel::Long });
        }
        let (lengths, encoding) = (vec![4; 50], Encoding::Hex);
        let (window, first, threshold) = (0, true, 5000);
        let set = Dataset { window, first, threshold, encoding, lengths, rows, labels };
        let float = NativeTrainer::new(Seed(1)).train(&set).unwrap();
        quantise(&float, &[&[1.0; HEX_INPUTS], &set.rows]).unwrap()
    }

    /// States and classes by table equal those of single-precision inputs on every instruction set.
    #[test]
    fn looked_up_digits_change_no_bit() {
        let stored = model();
        let mut classifier = GruClassifier::new(&stored, Encoding::Hex, &[]).unwrap();
        for isa in Isa::available() {
            let plain = Int8Model::new(&stored).unwrap().with_isa(isa).unwrap();
            let State { mut hidden, mut cell } = plain.zero_state();
            let (mut scratch, mut state) = (plain.scratch(), [0; STATE_BYTES]);
            let mut rng = Seed(8).rng();
            let mut classes = [0; 2];
            for _ in 0..3000 {
                let (features, mut inputs) = (features(&mut rng), Vec::new());
                Encoding::Hex.append(&features, &mut inputs);
                let outputs = plain.step(&mut scratch, &mut hidden, &mut cell, &inputs).unwrap();
                let short = argmax(outputs) == 1;
                let expected = if short { LifetimeClass::Short } else { LifetimeClass::Long };
                assert_eq!(classifier.classify(&mut state, &features), expected, "{}", isa.name());
                assert_eq!(state[..], hidden[..], "{}", isa.name());
                classes[usize::from(short)] += 1;
            }
            assert!(classes.iter().all(|count| *count > 100), "{classes:?}");
        }
    }

    #[test]
    fn a_row_that_tells_is_learned_and_noise_is_not() {
        let mut rng = Seed(5).rng();
        let lifetimes: Vec<u32> = (0..1000).map(|_| rng.below(1000) as u32).collect();
        let telling: Vec<f32> = lifetimes.iter().map(|l| *l as f32 / 1000.0).collect();
        let noise: Vec<f32> = lifetimes.iter().map(|_| rng.unit() as f32).collect();
        let judge = |rows: &[f32]| {
            let (all, lifetimes) = (&lifetimes, &lifetimes);
            accuracy(&Observed { all, lifetimes, inputs: 1, rows }, 300, Seed(1))
        };
        assert!(judge(&telling) > 0.85, "{}", judge(&telling));
        assert!((0.4..0.6).contains(&judge(&noise)), "{}", judge(&noise));
        assert_eq!([judge(&telling), judge(&noise)], [0.975, 0.51], "pinned to the digit");
    }

    #[test]
    fn one_class_alone_cannot_be_judged() {
        let observed = Observed { all: &[], lifetimes: &[5; 100], inputs: 1, rows: &[1.0; 100] };
        assert_eq!(accuracy(&observed, 5, Seed(1)), 0.0);
        assert_eq!(accuracy(&observed, 4, Seed(1)), 0.0);
    }

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

    fn shiro(log_inputs: bool) -> Shiro<PAPER> {
        let defaults = ShiroSettings::from_pairs(&[]).unwrap();
        let settings = ShiroSettings { log_inputs, window_share: 0.1, ..defaults };
        Registered::new(&geometry(), &settings, Seed(1))
    }

    /// The model after some windows of writes: half of the pages often, the others seldom.
    fn trained() -> StoredModel {
        struct Keeps(NativeTrainer, std::sync::Arc<std::sync::Mutex<Option<StoredModel>>>);
        impl Trainer for Keeps {
            fn train(&mut self, data: &super::super::Dataset) -> Result<StoredModel, TrainError> {
                let model = self.0.train(data)?;
                *self.1.lock().unwrap() = Some(model.clone());
                Ok(model)
            }
        }
        let kept = std::sync::Arc::default();
        let mut shiro = shiro(false);
        let trainer = Keeps(NativeTrainer::new(Seed(2)), std::sync::Arc::clone(&kept));
        Learner::set_trainer(&mut shiro, Box::new(trainer));
        for clock in 1..500_u64 {
            let page = if clock % 2 == 0 { clock % 8 } else { 8 + clock % 40 };
            shiro.place_user(&write(page as u32, clock));
        }
        assert!(shiro.statistics().trainings > 0);
        let model = kept.lock().unwrap().take();
        model.unwrap()
    }

    #[test]
    fn a_given_model_is_used_and_never_trained_and_its_threshold_stays() {
        let mut model = trained();
        model.description.notes.insert(THRESHOLD_NOTE.to_owned(), "17".to_owned());
        for stored in [&model, &cachewright_model::quantise(&model, &[&[1.0; 24]]).unwrap()] {
            let mut shiro = shiro(false);
            Learner::give(&mut shiro, stored).unwrap();
            for clock in 1..2000_u64 {
                shiro.place_user(&write((clock % 40) as u32, clock));
            }
            let done = shiro.statistics();
            assert!(done.windows > 15 && done.predictions > 1900, "{done:?}");
            assert_eq!((done.trainings, done.failures), (1, 0));
            assert_eq!(Learner::threshold(&shiro), Some(17));
        }
    }

    #[test]
    fn models_of_other_inputs_are_refused_with_both_named() {
        let model = trained();
        let error = shiro(true).give(&model).unwrap_err().to_string();
        let expected = "model: found 24 inputs, 32 + 0 bytes of state and 2 outputs, expected 6";
        assert!(error.starts_with(expected), "{error}");
        let mut other = model.clone();
        other.description.features.swap(0, 1);
        let error = shiro(false).give(&other).unwrap_err().to_string();
        let expected = "found `previous_lifetime.1` as input 0, expected `previous_lifetime.0`";
        assert_eq!(error, format!("model: {expected}"));
        let mut other = model.clone();
        other.description.notes.insert(THRESHOLD_NOTE.to_owned(), "many".to_owned());
        let error = shiro(false).give(&other).unwrap_err().to_string();
        let expected = "found `many` as the note `threshold`, expected a number of page writes";
        assert_eq!(error, format!("model: {expected}"));
        assert_eq!(Encoding::Hex.names().len(), model.description.features.len());
    }
}
