//! Training at window borders: the call-back, and a trainer without Python.
//!
//! For: [`Trainer`], which turns one window's dataset into a model, and [`NativeTrainer`], Adam
//! over the gradients of `backprop`. Must never know: the FTL, files, threads (a trainer outside
//! this crate may use them). Source: Shiro, section III-B: cross entropy, Adam; to convergence on
//! the first window, one epoch on each later one. Deterministic by its seed.

use super::backprop::{CLASSES, Layout, Tape, UNITS};
use super::dataset::{Dataset, Label};
use super::train_error::TrainError;
use cachewright_infer::{Architecture, Description, Head, Kind, StoredModel};
use cachewright_types::Seed;

/// Labelled steps between two updates.
const BATCH_STEPS: u64 = 128;
/// Most epochs on the first window.
const MOST_EPOCHS: u32 = 20;
/// Epochs without a better held-out loss that end the first window's training.
const PATIENCE: u32 = 3;
/// Longest gradient.
const CLIP: f32 = 1.0;
/// Adam (Kingma and Ba, ICLR'15), its own defaults.
const RATE: f32 = 1e-3;
const FIRST_MOMENT: f32 = 0.9;
const SECOND_MOMENT: f32 = 0.999;
const EPSILON: f32 = 1e-8;
/// Steps that a model's test vector replays.
const TEST_STEPS: usize = 16;

/// The note of a model file that holds the lifetime up to which a page is short.
pub const THRESHOLD_NOTE: &str = "threshold";

/// Called once per window, with what it teaches.
pub trait Trainer: Send {
    /// The model to use from now on, f32 or int8. A trainer keeps what it needs from call to call.
    /// Errors: none usable; the old model stays in use.
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError>;
}

/// The trainer in Rust: f32, one thread.
#[derive(Clone, Debug)]
pub struct NativeTrainer {
    seed: Seed,
    learner: Option<Descent>,
}

impl NativeTrainer {
    /// A trainer that has seen nothing.
    pub fn new(seed: Seed) -> NativeTrainer {
        NativeTrainer { seed, learner: None }
    }
}

impl Trainer for NativeTrainer {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        if dataset.labelled() == 0 {
            return Err(TrainError::Nothing { window: dataset.window });
        }
        let layout = Layout::new(dataset.encoding.inputs());
        let known = self.learner.take().filter(|learner| learner.layout == layout);
        let mut learner =
            known.unwrap_or_else(|| Descent::new(layout, layout.draw(self.seed.derive("weights"))));
        let seed = self.seed.derive(&format!("window {}", dataset.window));
        let series = dataset.series();
        if dataset.first {
            learner.converge(&series, seed);
        } else {
            learner.epoch(&series, seed);
        }
        let stored = stored(&learner, dataset);
        self.learner = Some(learner);
        stored
    }
}

type LabelledSeries<'a> = (&'a [f32], &'a [Label]);

/// Parameters with Adam's memory.
#[derive(Clone, Debug)]
struct Descent {
    layout: Layout,
    parameters: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    gradient: Vec<f32>,
    /// Powers of the moments' factors after the updates so far.
    decay: (f32, f32),
    tape: Tape,
}

impl Descent {
    fn new(layout: Layout, parameters: Vec<f32>) -> Descent {
        let zeros = vec![0.0; layout.len()];
        Descent {
            layout,
            parameters,
            first: zeros.clone(),
            second: zeros.clone(),
            gradient: zeros,
            decay: (1.0, 1.0),
            tape: Tape::new(layout),
        }
    }

    /// Epochs until the loss on a held-out tenth has not fallen for three; the best stays. Where
    /// nothing that is held out has a label, all series judge.
    fn converge(&mut self, series: &[LabelledSeries<'_>], seed: Seed) {
        let part = |held_out: bool| {
            let own = series.iter().enumerate().filter(|(i, _)| (i % 10 == 9) == held_out);
            own.map(|(_, series)| *series).collect::<Vec<LabelledSeries<'_>>>()
        };
        let (train, held_out) = (part(false), part(true));
        let labelled =
            |(_, labels): &LabelledSeries<'_>| labels.iter().any(|l| l.class().is_some());
        let judges = if held_out.iter().any(labelled) { &held_out } else { series };
        let mut best = (f64::INFINITY, self.parameters.clone());
        let mut worse = 0;
        for epoch in 0..MOST_EPOCHS {
            self.epoch(&train, seed.derive(&format!("epoch {epoch}")));
            let loss = self.loss(judges);
            if loss < best.0 {
                best = (loss, self.parameters.clone());
                worse = 0;
            } else {
                worse += 1;
            }
            if worse == PATIENCE {
                break;
            }
        }
        self.parameters = best.1;
    }

    /// The mean cross entropy of series, in nats per labelled step.
    fn loss(&mut self, series: &[LabelledSeries<'_>]) -> f64 {
        let (mut loss, mut labelled) = (0.0, 0);
        for (rows, labels) in series {
            let outcome = self.tape.forward(&self.parameters, rows, labels);
            loss += outcome.loss;
            labelled += outcome.labelled;
        }
        loss / labelled.max(1) as f64
    }

    /// One pass over the series in an order drawn from `seed`.
    fn epoch(&mut self, series: &[LabelledSeries<'_>], seed: Seed) {
        let mut rng = seed.rng();
        let mut order: Vec<usize> = (0..series.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut labelled = 0;
        self.gradient.fill(0.0);
        for index in order {
            let (rows, labels) = series[index];
            let outcome = self.tape.forward(&self.parameters, rows, labels);
            if outcome.labelled > 0 {
                self.tape.backward(&self.parameters, rows, labels, &mut self.gradient);
                labelled += outcome.labelled;
            }
            if labelled >= BATCH_STEPS {
                self.update(labelled);
                labelled = 0;
            }
        }
        if labelled > 0 {
            self.update(labelled);
        }
    }

    /// One update by the mean gradient of so many labelled steps.
    fn update(&mut self, labelled: u64) {
        let mean = 1.0 / labelled as f32;
        let length = mean * self.gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
        let factor = mean * if length > CLIP { CLIP / length } else { 1.0 };
        self.decay = (self.decay.0 * FIRST_MOMENT, self.decay.1 * SECOND_MOMENT);
        let (first_part, second_part) = (1.0 - self.decay.0, 1.0 - self.decay.1);
        let moments = self.first.iter_mut().zip(&mut self.second);
        let all = self.parameters.iter_mut().zip(&mut self.gradient).zip(moments);
        for ((parameter, gradient), (first, second)) in all {
            let g = *gradient * factor;
            *gradient = 0.0;
            *first = FIRST_MOMENT * *first + (1.0 - FIRST_MOMENT) * g;
            *second = SECOND_MOMENT * *second + (1.0 - SECOND_MOMENT) * g * g;
            *parameter -= RATE * (*first / first_part) / ((*second / second_part).sqrt() + EPSILON);
        }
    }
}

/// The learner's model in its stored form.
fn stored(learner: &Descent, dataset: &Dataset) -> Result<StoredModel, TrainError> {
    let inputs = dataset.encoding.inputs();
    let heads = vec![Head { name: "fc".to_owned(), outputs: CLASSES }];
    let architecture = Architecture { kind: Kind::Gru, inputs, hidden: vec![UNITS], heads };
    let mut description = Description::plain(architecture);
    description.features = dataset.encoding.names();
    let notes =
        [(THRESHOLD_NOTE, dataset.threshold.to_string()), ("window", dataset.window.to_string())];
    description.notes = notes.map(|(name, text)| (name.to_owned(), text)).into();
    let test = dataset.rows.chunks_exact(inputs).take(TEST_STEPS).map(<[f32]>::to_vec).collect();
    let tensors = learner.layout.tensors(&learner.parameters);
    Ok(StoredModel::float(description, tensors, test)?)
}

#[cfg(test)]
mod tests {
    use super::super::dataset::evaluate;
    use super::super::features::{Encoding, Features};
    use super::*;
    use cachewright_infer::quantise;

    /// LabelledSeries whose class is whether the lifetime of the step before was low.
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
                    (0, _) => Label::Context,
                    (_, true) => Label::Short,
                    (_, false) => Label::Long,
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

    #[test]
    fn the_same_seed_gives_the_same_model() {
        let train = |seed| NativeTrainer::new(Seed(seed)).train(&dataset(0)).unwrap();
        assert_eq!(train(1).to_bytes(), train(1).to_bytes());
        assert_ne!(train(1).tensors, train(2).tensors);
    }

    /// Nine series, of which none is held out: training goes on for as long as it helps.
    #[test]
    fn few_series_are_trained_to_convergence_as_well() {
        let all = dataset(0);
        let series = &all.series()[..9];
        let layout = Layout::new(all.encoding.inputs());
        let fresh = || Descent::new(layout, layout.draw(Seed(1)));
        let (mut once, mut converged) = (fresh(), fresh());
        once.epoch(series, Seed(2));
        converged.converge(series, Seed(2));
        let (loss, after_one) = (converged.loss(series), once.loss(series));
        assert!(loss < 0.99 * after_one, "{loss} after convergence, {after_one} after one epoch");
    }

    #[test]
    fn nothing_to_learn_is_said() {
        let mut empty = dataset(0);
        empty.labels.fill(Label::Context);
        let error = NativeTrainer::new(Seed(1)).train(&empty).unwrap_err();
        assert_eq!(error.to_string(), "window 0: found no labelled step, expected at least 1");
    }
}
