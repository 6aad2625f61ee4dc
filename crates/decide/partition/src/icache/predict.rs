//! A tenant's demand in the next interval, predicted by its model.
//!
//! For: feeding the steps of intervals to a model as in its training: a window of the latest steps
//! from a zero state, or step by step with a state that is kept. A model without a state reads the
//! pooled window. Must never know: the cache, other tenants. Source: Li, Sun, Qin, iCache (TCAD
//! 2025), section IV-E. Units: shares of the cache, as the model gives them.

use crate::network::TrainedNetwork;
use cachewright_curve::signal::{FEATURES, StepCounts};
use cachewright_model::fingerprint;
use std::collections::VecDeque;

/// Parts into which a window is pooled for models without a state.
pub const PARTS: usize = 12;

/// The input of a model, as in its training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelInput {
    /// Latest steps that it reads.
    pub window_steps: u32,
    /// Granules of its labels.
    pub granules: u32,
    /// Whether a recurrent state is kept from interval to interval.
    pub carried: bool,
}

/// A prediction for the next interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DemandPrediction {
    /// Maximum benefit point.
    pub mbp_share: f64,
    /// Optimal allocation point.
    pub oap_share: f64,
}

/// A model and the latest steps of its tenant.
#[derive(Clone, Debug)]
pub struct Predictor {
    network: TrainedNetwork,
    /// Of the files of the first model and of those that replace it.
    fingerprints: Vec<u64>,
    looks: ModelInput,
    /// Models that replace the first, each with its first interval, in order.
    later: VecDeque<(u32, TrainedNetwork)>,
    /// Intervals begun.
    begun: u32,
    /// Steps seen.
    seen: u64,
    /// Features of the latest steps.
    window: VecDeque<[f32; FEATURES.len()]>,
    /// The last prediction.
    prediction: Option<DemandPrediction>,
}

impl Predictor {
    /// Reads a model file and checks its input. Errors: what was found and what was expected.
    pub fn load(bytes: &[u8], looks: ModelInput) -> Result<Predictor, String> {
        let (network, later) = (network(bytes, looks)?, VecDeque::new());
        Ok(Predictor {
            network,
            fingerprints: vec![fingerprint(bytes)],
            looks,
            later,
            begun: 0,
            seen: 0,
            window: VecDeque::new(),
            prediction: None,
        })
    }

    /// Reads a model that replaces the first from the interval in its note `from_interval`. Errors:
    /// as for the first model; an interval that is not after the previous one.
    pub fn load_later(&mut self, bytes: &[u8]) -> Result<(), String> {
        let network = network(bytes, self.looks)?;
        let from = network.whole_note("from_interval")?;
        let last = self.later.back().map_or(0, |(last, _)| *last);
        if from <= last {
            return Err(format!(
                "note `from_interval`: found {from}, expected more than {last}, where the model \
                 before takes over"
            ));
        }
        self.later.push_back((from, network));
        self.fingerprints.push(fingerprint(bytes));
        Ok(())
    }

    /// Goes on where the predictor before is: with its steps and its prediction, which is of the
    /// model before until steps of another interval are read. With the same files it is that one,
    /// the state of its model included.
    pub fn succeed(&mut self, before: Predictor) {
        if self.fingerprints == before.fingerprints {
            *self = before;
            return;
        }
        let Predictor { begun, seen, window, prediction, .. } = before;
        (self.begun, self.seen, self.window) = (begun, seen, window);
        self.prediction = prediction;
    }

    /// Begins an interval and switches to a model that starts there. The window stays; a kept state
    /// starts from zero.
    pub fn begin_interval(&mut self) {
        while self.later.front().is_some_and(|(from, _)| *from <= self.begun) {
            if let Some((_, network)) = self.later.pop_front() {
                self.network = network;
            }
        }
        self.begun += 1;
    }

    /// Reads the steps of the interval that ended.
    pub fn learn(&mut self, steps: &[StepCounts]) {
        let carried = self.looks.carried && self.network.architecture().kind.is_recurrent();
        for step in steps.iter().map(StepCounts::features) {
            if carried {
                self.prediction = self.network.step(&step).and_then(|outputs| points(&outputs));
            }
            self.window.push_back(step);
            if self.window.len() > self.looks.window_steps as usize {
                self.window.pop_front();
            }
        }
        self.seen += steps.len() as u64;
        if !carried && !steps.is_empty() {
            self.prediction = self.predict_window();
        }
    }

    /// The prediction for the next interval; nothing before a full window of steps.
    pub fn prediction(&self) -> Option<DemandPrediction> {
        self.prediction.filter(|_| self.seen >= u64::from(self.looks.window_steps))
    }

    /// The prediction of a full window.
    fn predict_window(&mut self) -> Option<DemandPrediction> {
        if self.window.len() < self.looks.window_steps as usize {
            return None;
        }
        self.network.reset();
        if !self.network.architecture().kind.is_recurrent() {
            let outputs = self.network.step(&pooled(self.window.make_contiguous()))?;
            return points(&outputs);
        }
        let mut outputs = None;
        for features in &self.window {
            outputs = self.network.step(features);
        }
        points(&outputs?)
    }
}

/// Reads a model file and checks its input.
fn network(bytes: &[u8], looks: ModelInput) -> Result<TrainedNetwork, String> {
    let network = TrainedNetwork::load(bytes)?;
    if network.architecture().kind.is_recurrent() {
        network.expect_features(&FEATURES.map(str::to_owned))?;
    } else {
        network.expect_features(&pooled_names())?;
        if (looks.window_steps as usize) < PARTS {
            let (kind, actual) = (network.architecture().kind.name(), looks.window_steps);
            return Err(format!(
                "`window_steps`: found {actual}, expected at least {PARTS} for a model of kind \
                 {kind}"
            ));
        }
    }
    network.expect_outputs(2, "MBP and OAP")?;
    network.expect_note("granules", looks.granules)?;
    network.expect_note("window_steps", looks.window_steps)?;
    Ok(network)
}

fn points(outputs: &[f64]) -> Option<DemandPrediction> {
    let [mbp_share, oap_share] = *outputs else { return None };
    Some(DemandPrediction { mbp_share, oap_share })
}

/// Names of the inputs of a model without a state: the features of the earliest part first.
pub fn pooled_names() -> Vec<String> {
    let part = |part: usize| FEATURES.iter().map(move |feature| format!("{feature}.{part}"));
    (0..PARTS).flat_map(part).collect()
}

/// The means of the features in each of [`PARTS`] parts of a window, the earliest first. Of `n`
/// steps, part `p` has those from `p n / PARTS` up to `(p + 1) n / PARTS`, both rounded down.
pub fn pooled(window: &[[f32; FEATURES.len()]]) -> Vec<f32> {
    let mut inputs = Vec::with_capacity(PARTS * FEATURES.len());
    for part in 0..PARTS {
        let steps = &window[part * window.len() / PARTS..(part + 1) * window.len() / PARTS];
        for feature in 0..FEATURES.len() {
            let sum: f64 = steps.iter().map(|step| f64::from(step[feature])).sum();
            inputs.push((sum / steps.len().max(1) as f64) as f32);
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_takes_means_of_twelve_parts() {
        let window: Vec<[f32; 4]> = (0..24).map(|step| [step as f32, 1.0, 0.0, 0.5]).collect();
        let inputs = pooled(&window);
        assert_eq!(inputs.len(), 48);
        assert_eq!(inputs[..8], [0.5, 1.0, 0.0, 0.5, 2.5, 1.0, 0.0, 0.5]);
        assert_eq!(inputs[44], 22.5);
        let names = pooled_names();
        assert_eq!((names[0].as_str(), names[4].as_str()), ("intensity.0", "intensity.1"));
        assert_eq!(names[47], "unique_ratio.11");
    }

    #[test]
    fn parts_of_an_uneven_window_differ_by_a_step() {
        let window: Vec<[f32; 4]> = (0..13).map(|step| [step as f32; 4]).collect();
        let means: Vec<f32> = pooled(&window).chunks(4).map(|part| part[0]).collect();
        // The last part holds steps 11 and 12.
        assert_eq!(means, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.5]);
    }
}
