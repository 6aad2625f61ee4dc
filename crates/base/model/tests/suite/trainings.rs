//! Trainings learn what needs a memory, stop early, and depend on nothing but series and seed.

use cachewright_model::learn::{GruNetwork, GruTraining, LabelledSeries, TrainingSettings};
use cachewright_types::Seed;
use cachewright_types::seed::mix;

const STEPS: usize = 6;

/// Series of random bits whose class at a step is the bit of the step before.
struct Bits {
    rows: Vec<f32>,
    classes: Vec<Option<u8>>,
}

impl Bits {
    fn new(series: usize, seed: Seed) -> Bits {
        let (mut rng, mut rows, mut classes) = (seed.rng(), Vec::new(), Vec::new());
        for _ in 0..series {
            let mut before = None;
            for _ in 0..STEPS {
                let bit = rng.below(2) as u8;
                rows.extend([f32::from(bit), 1.0 - f32::from(bit)]);
                classes.push(before);
                before = Some(bit);
            }
        }
        Bits { rows, classes }
    }

    fn series(&self) -> Vec<LabelledSeries<'_>> {
        let pairs = self.rows.chunks(2 * STEPS).zip(self.classes.chunks(STEPS));
        pairs.map(|(rows, classes)| LabelledSeries { rows, classes }).collect()
    }
}

fn fresh() -> GruTraining<32, 2> {
    GruTraining::new(GruNetwork::draw(2, Seed(1)), TrainingSettings::default())
}

fn hash(training: &GruTraining<32, 2>) -> u64 {
    let bits = training.network().parameters().iter().map(|weight| u64::from(weight.to_bits()));
    bits.fold(0, |hash, bits| mix(hash ^ bits))
}

#[test]
fn a_memory_of_one_step_is_learned() {
    let bits = Bits::new(600, Seed(5));
    let mut training = fresh();
    training.converge(&bits.series(), Seed(2));
    let other = Bits::new(100, Seed(6));
    let loss = training.loss(&other.series());
    assert!(loss < 0.1, "{loss} nats per step");
}

#[test]
fn the_same_series_and_seed_give_the_same_weights() {
    let bits = Bits::new(60, Seed(5));
    let trained = |seed| {
        let mut training = fresh();
        training.epoch(&bits.series(), seed);
        hash(&training)
    };
    assert_eq!(trained(Seed(2)), trained(Seed(2)));
    assert_ne!(trained(Seed(2)), trained(Seed(3)));
    assert_eq!(trained(Seed(2)), 2_330_712_163_696_651_816, "pinned to the bit");
}

/// Nine series, of which none is held out: training goes on for as long as it helps.
#[test]
fn few_series_are_trained_to_convergence_as_well() {
    let bits = Bits::new(9, Seed(5));
    let (mut once, mut converged) = (fresh(), fresh());
    once.epoch(&bits.series(), Seed(2));
    converged.converge(&bits.series(), Seed(2));
    let (loss, after_one) = (converged.loss(&bits.series()), once.loss(&bits.series()));
    assert!(loss < 0.99 * after_one, "{loss} after convergence, {after_one} after one epoch");
}

/// Classes without any relation to the inputs: the best epoch stays, not the last.
#[test]
fn the_network_of_the_best_epoch_stays() {
    let mut noise = Bits::new(40, Seed(5));
    let mut rng = Seed(7).rng();
    noise.classes.fill_with(|| Some(rng.below(2) as u8));
    let series = noise.series();
    let held_out: Vec<_> = series.iter().skip(9).step_by(10).copied().collect();
    let settings = TrainingSettings { patience: 2, max_epochs: 60, ..TrainingSettings::default() };
    let settings = TrainingSettings {
        adam: cachewright_model::learn::AdamSettings { rate: 0.03, ..settings.adam },
        ..settings
    };
    let mut training = GruTraining::<32, 2>::new(GruNetwork::draw(2, Seed(1)), settings);
    let mut longer = training.clone();
    training.converge(&series, Seed(2));
    let train: Vec<_> =
        series.iter().enumerate().filter(|(i, _)| i % 10 != 9).map(|(_, one)| *one).collect();
    for epoch in 0..60 {
        longer.epoch(&train, Seed(2).derive(&format!("epoch {epoch}")));
    }
    assert!(training.loss(&held_out) < longer.loss(&held_out));
}

#[test]
fn series_without_labels_change_nothing() {
    let mut bits = Bits::new(20, Seed(5));
    bits.classes.fill(None);
    let mut training = fresh();
    training.epoch(&bits.series(), Seed(2));
    assert_eq!(hash(&training), hash(&fresh()));
    assert_eq!(training.loss(&bits.series()), 0.0);
}
