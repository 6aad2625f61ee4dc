//! Training of a GRU classifier: epochs of Adam over labelled series.
//!
//! For: one epoch, epochs until the held-out loss stops falling, the loss of series. Must never
//! know: what the classes mean, when to train. Units: losses in nats per labelled step. The order
//! of the series in an epoch comes from a seed.

use crate::learn::adam::{Adam, AdamSettings, clip_factor};
use crate::learn::early_stopping::EarlyStopping;
use crate::learn::gru::GruNetwork;
use crate::learn::tape::{GruTape, LabelledSeries};
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
