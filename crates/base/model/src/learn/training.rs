//! Training of a GRU classifier: epochs of Adam over labelled series, in an order that comes from a
//! seed. Losses are in nats per labelled step.

use super::gru::{GruNetwork, GruTape, LabelledSeries};
use cachewright_types::Seed;

/// The numbers of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingSettings {
    /// Labelled steps between two updates, at least.
    pub batch_steps: u64,
    /// The longest training to convergence.
    pub max_epochs: u32,
    /// Epochs without a better held-out loss that end a training to convergence.
    pub patience: u32,
    /// One series in so many is held out.
    pub held_out_stride: usize,
    /// Longer mean gradients are shortened to this.
    pub max_norm: f32,
    /// The optimiser's numbers.
    pub adam: AdamSettings,
}

impl Default for TrainingSettings {
    fn default() -> TrainingSettings {
        TrainingSettings {
            batch_steps: 128,
            max_epochs: 20,
            patience: 3,
            held_out_stride: 10,
            max_norm: 1.0,
            adam: AdamSettings::default(),
        }
    }
}

/// A network with the memory of its optimiser.
#[derive(Clone, Debug)]
pub struct GruTraining<const UNITS: usize, const CLASSES: usize> {
    settings: TrainingSettings,
    network: GruNetwork<UNITS, CLASSES>,
    adam: Adam,
    gradient: Vec<f32>,
    tape: GruTape<UNITS, CLASSES>,
}

impl<const UNITS: usize, const CLASSES: usize> GruTraining<UNITS, CLASSES> {
    /// The training of a network, before the first update.
    pub fn new(network: GruNetwork<UNITS, CLASSES>, settings: TrainingSettings) -> Self {
        let parameters = network.parameters().len();
        GruTraining {
            adam: Adam::new(settings.adam, parameters),
            gradient: vec![0.0; parameters],
            tape: GruTape::new(),
            settings,
            network,
        }
    }

    /// The network as trained so far.
    pub fn network(&self) -> &GruNetwork<UNITS, CLASSES> {
        &self.network
    }

    /// Epochs until the loss of the held-out series stops falling; the best network stays. If no
    /// held-out series has a label, the loss of all series decides.
    pub fn converge(&mut self, series: &[LabelledSeries<'_>], seed: Seed) {
        let stride = self.settings.held_out_stride.max(1);
        let part = |is_held_out: bool| {
            let own = series.iter().enumerate();
            let own = own.filter(|(index, _)| (index % stride == stride - 1) == is_held_out);
            own.map(|(_, series)| *series).collect::<Vec<LabelledSeries<'_>>>()
        };
        let (train, held_out) = (part(false), part(true));
        let has_labels = held_out.iter().any(LabelledSeries::is_labelled);
        let evaluation = if has_labels { &held_out } else { series };
        let mut stopping = EarlyStopping::new(self.settings.patience, self.network.clone());
        for epoch in 0..self.settings.max_epochs {
            self.epoch(&train, seed.derive(&format!("epoch {epoch}")));
            let loss = self.loss(evaluation);
            if !stopping.continues(loss, || self.network.clone()) {
                break;
            }
        }
        self.network = stopping.into_best();
    }

    /// The mean cross entropy of series.
    pub fn loss(&mut self, series: &[LabelledSeries<'_>]) -> f64 {
        let (mut loss, mut labelled) = (0.0, 0);
        for each in series {
            let sum = self.tape.forward(&self.network, *each);
            loss += sum.loss;
            labelled += sum.labelled;
        }
        loss / labelled.max(1) as f64
    }

    /// One pass over the series in an order drawn from `seed`.
    pub fn epoch(&mut self, series: &[LabelledSeries<'_>], seed: Seed) {
        let mut rng = seed.rng();
        let mut order: Vec<usize> = (0..series.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut labelled = 0;
        self.gradient.fill(0.0);
        for index in order {
            let sum = self.tape.forward(&self.network, series[index]);
            if sum.labelled > 0 {
                self.tape.backward(&self.network, series[index], &mut self.gradient);
                labelled += sum.labelled;
            }
            if labelled >= self.settings.batch_steps {
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
        let factor = clip_factor(&self.gradient, labelled, self.settings.max_norm);
        self.adam.update(self.network.parameters_mut(), &mut self.gradient, factor);
    }
}

/// The numbers of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamSettings {
    /// Length of a step.
    pub rate: f32,
    /// Factor by which the mean of gradients decays with each update.
    pub first_decay: f32,
    /// Factor by which the mean of squared gradients decays with each update.
    pub second_decay: f32,
    /// Keeps the divisor above zero.
    pub epsilon: f32,
}

impl Default for AdamSettings {
    /// The defaults of the paper.
    fn default() -> AdamSettings {
        AdamSettings { rate: 1e-3, first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8 }
    }
}

/// The moments of the gradients so far.
#[derive(Clone, Debug)]
pub struct Adam {
    settings: AdamSettings,
    first: Vec<f32>,
    second: Vec<f32>,
    /// Powers of both decay factors after the updates so far.
    powers: (f32, f32),
}

impl Adam {
    /// The optimiser of so many parameters, before the first update.
    pub fn new(settings: AdamSettings, parameters: usize) -> Adam {
        let zeros = vec![0.0; parameters];
        Adam { settings, first: zeros.clone(), second: zeros, powers: (1.0, 1.0) }
    }

    /// One update by `factor` times the gradient, which is zero afterwards. Both slices have a
    /// number per parameter.
    pub fn update(&mut self, parameters: &mut [f32], gradient: &mut [f32], factor: f32) {
        debug_assert_eq!(parameters.len(), self.first.len(), "a moment per parameter");
        let AdamSettings { rate, first_decay, second_decay, epsilon } = self.settings;
        self.powers = (self.powers.0 * first_decay, self.powers.1 * second_decay);
        let (first_part, second_part) = (1.0 - self.powers.0, 1.0 - self.powers.1);
        let moments = self.first.iter_mut().zip(&mut self.second);
        let all = parameters.iter_mut().zip(gradient).zip(moments);
        for ((parameter, gradient), (first, second)) in all {
            let g = *gradient * factor;
            *gradient = 0.0;
            *first = first_decay * *first + (1.0 - first_decay) * g;
            *second = second_decay * *second + (1.0 - second_decay) * g * g;
            *parameter -= rate * (*first / first_part) / ((*second / second_part).sqrt() + epsilon);
        }
    }
}

/// The factor that turns a sum of gradients over `count` steps into their mean, shortened to
/// `max_norm` if the mean is longer.
pub fn clip_factor(gradient: &[f32], count: u64, max_norm: f32) -> f32 {
    let mean = 1.0 / count as f32;
    let norm = mean * gradient.iter().map(|g| g * g).sum::<f32>().sqrt();
    mean * if norm > max_norm { max_norm / norm } else { 1.0 }
}

/// The best so far and the epochs since.
#[derive(Clone, Debug)]
pub struct EarlyStopping<T> {
    patience: u32,
    worse: u32,
    best_loss: f64,
    best: T,
}

impl<T> EarlyStopping<T> {
    /// Stops after `patience` epochs without a better loss. `start` is the best until then.
    pub fn new(patience: u32, start: T) -> EarlyStopping<T> {
        EarlyStopping { patience, worse: 0, best_loss: f64::INFINITY, best: start }
    }

    /// An epoch ended with this loss; `current` is called if that is the best. Returns whether
    /// training goes on.
    pub fn continues(&mut self, loss: f64, current: impl FnOnce() -> T) -> bool {
        if loss < self.best_loss {
            (self.best_loss, self.best) = (loss, current());
            self.worse = 0;
        } else {
            self.worse += 1;
        }
        self.worse != self.patience
    }

    /// The best.
    pub fn into_best(self) -> T {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first update moves each parameter by the rate, whatever the gradient's length. The
    /// second has a gradient of 0 and moves it by 0.09 / 0.19 over sqrt(0.000999 / 0.001999) of the
    /// rate.
    #[test]
    fn two_updates_by_hand() {
        let settings = AdamSettings { rate: 0.5, ..AdamSettings::default() };
        let mut adam = Adam::new(settings, 3);
        let (mut parameters, mut gradient) = ([1.0, 1.0, 1.0], [4.0, -0.25, 0.0]);
        adam.update(&mut parameters, &mut gradient, 0.5);
        assert_eq!(gradient, [0.0; 3]);
        let expected = [0.5, 1.5, 1.0];
        assert!(parameters.iter().zip(expected).all(|(p, e)| (p - e).abs() < 1e-4));
        adam.update(&mut parameters, &mut gradient, 1.0);
        let step = 0.5 * (0.09 / 0.19) / (0.000_999_f32 / 0.001_999).sqrt();
        let expected = [0.5 - step, 1.5 + step, 1.0];
        assert!(parameters.iter().zip(expected).all(|(p, e)| (p - e).abs() < 1e-3));
    }

    #[test]
    fn a_long_gradient_is_shortened_and_a_short_one_is_not() {
        assert_eq!(clip_factor(&[3.0, 4.0], 2, 10.0), 0.5);
        assert_eq!(clip_factor(&[3.0, 4.0], 2, 1.0), 0.5 * (1.0 / 2.5));
        assert_eq!(clip_factor(&[0.0; 2], 4, 1.0), 0.25);
    }

    #[test]
    fn it_stops_after_as_many_epochs_without_a_better_loss_and_keeps_the_best() {
        let mut stopping = EarlyStopping::new(2, "start");
        let losses = [(3.0, "a"), (3.0, "b"), (2.0, "c"), (f64::NAN, "d"), (2.5, "e")];
        let goes_on = losses.map(|(loss, name)| stopping.continues(loss, || name));
        assert_eq!(goes_on, [true, true, true, true, false]);
        assert_eq!(stopping.into_best(), "c");
        let mut stopping = EarlyStopping::new(1, "start");
        assert!(!stopping.continues(f64::NAN, || "nan"));
        assert_eq!(stopping.into_best(), "start");
    }
}
