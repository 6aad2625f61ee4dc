//! A model over windows of requests, and the majority of the last ten windows.
//!
//! For: every characterizer of the registry. Source: RC-RNN sections 4.2 (a decision over 1,000
//! requests) and 5.2.1 (windows of 100). Units: requests.
//!
//! A recurrent model reads the rows of a window from a zero state. Other models read the mean row,
//! which is a histogram for features that are 0 or 1. The softmax of the outputs gives
//! probabilities. The answer is the kind of most windows; among equals, the kind with the higher
//! mean probability. That mean is the confidence. The notes of a model file hold `characterizer`,
//! `kinds` (names separated by commas) and `window` (requests).

use crate::characterize::{Characterizer, KindEstimate, RequestFeatures, is_access};
use cachewright_model::{Description, Model, StoredModel, argmax, softmax};
use cachewright_snapshot::Snapshot;
use cachewright_types::Request;
use std::collections::VecDeque;

/// Requests of a window, unless the model has another number.
pub const WINDOW_REQUESTS: usize = 100;
/// Windows that vote on the kind.
pub const VOTING_WINDOWS: usize = 10;
/// The longest window of a model.
const MAX_REQUESTS: usize = 10_000;

/// A model and the number of requests that it reads.
struct WindowModel {
    model: Model,
    window: usize,
    kinds: Vec<String>,
}

/// Classifies the last windows.
#[derive(Snapshot)]
pub struct Windowed {
    #[snapshot(settings)]
    name: &'static str,
    features: Box<dyn RequestFeatures>,
    #[snapshot(settings)]
    model: Option<WindowModel>,
    /// Rows of the last windows, one after another.
    rows: VecDeque<f32>,
    row: Vec<f32>,
}

impl Windowed {
    /// The characterizer called `name`, without a model.
    pub fn new(name: &'static str, features: Box<dyn RequestFeatures>) -> Windowed {
        Windowed { name, features, model: None, rows: VecDeque::new(), row: Vec::new() }
    }

    fn needed_values(&self) -> usize {
        let window = self.model.as_ref().map_or(WINDOW_REQUESTS, |model| model.window);
        window * VOTING_WINDOWS * self.features.names().len()
    }
}

impl Characterizer for Windowed {
    fn observe(&mut self, request: &Request) {
        if !is_access(request) {
            return;
        }
        self.row.clear();
        self.features.row(request, &mut self.row);
        self.rows.extend(&self.row);
        let surplus = self.rows.len().saturating_sub(self.needed_values());
        self.rows.drain(..surplus);
    }

    fn learn(&mut self, model: &[u8]) -> Result<(), String> {
        self.model = Some(load_model(self.name, self.features.names(), model)?);
        self.rows.clear();
        Ok(())
    }

    fn kinds(&self) -> &[String] {
        self.model.as_ref().map_or(&[], |model| &model.kinds)
    }

    fn classify(&mut self) -> Option<KindEstimate> {
        let needed_values = self.needed_values();
        let model = self.model.as_ref()?;
        if self.rows.len() < needed_values {
            return None;
        }
        let width = self.features.names().len();
        let rows = self.rows.make_contiguous();
        let windows = rows.chunks_exact(model.window * width);
        let probabilities: Option<Vec<Vec<f32>>> =
            windows.map(|window| probabilities(&model.model, window, width)).collect();
        majority(&probabilities?)
    }
}

/// Reads a model file and checks that it was trained for this characterizer.
fn load_model(name: &str, features: &[&str], bytes: &[u8]) -> Result<WindowModel, String> {
    let wrong = |error: cachewright_model::ModelError| error.to_string();
    let Description { features: actual, notes, architecture, .. } =
        StoredModel::from_bytes(bytes).map_err(wrong)?.description;
    let note = |key: &str| {
        notes.get(key).ok_or_else(|| format!("found no note `{key}`, expected one of `{name}`"))
    };
    let trained_for = note("characterizer")?;
    if trained_for != name {
        return Err(format!(
            "found a model of characterizer `{trained_for}`, expected one of `{name}`"
        ));
    }
    if actual != features {
        let (actual, expected) = (actual.join(", "), features.join(", "));
        return Err(format!("found features {actual}, expected {expected}"));
    }
    let text = note("window")?;
    let window = text.parse().ok().filter(|window| (1..=MAX_REQUESTS).contains(window));
    let window = window.ok_or_else(|| {
        format!("note `window`: found `{text}`, expected 1 to {MAX_REQUESTS} requests")
    })?;
    let kinds: Vec<String> = note("kinds")?.split(',').map(|kind| kind.trim().to_owned()).collect();
    if kinds.len() != architecture.outputs() || kinds.iter().any(String::is_empty) {
        let (actual, expected) = (kinds.join(", "), architecture.outputs());
        return Err(format!("note `kinds`: found {actual}, expected {expected} names"));
    }
    Ok(WindowModel { model: Model::load(bytes).map_err(wrong)?, window, kinds })
}

/// A probability per kind for one window.
fn probabilities(model: &Model, window: &[f32], width: usize) -> Option<Vec<f32>> {
    let mut outputs = if model.architecture().kind.is_recurrent() {
        model.last(window).ok()?
    } else {
        model.last(&mean(window, width)).ok()?
    };
    softmax(&mut outputs);
    Some(outputs)
}

/// The mean row.
pub fn mean(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0_f64; width];
    for row in rows.chunks_exact(width.max(1)) {
        for (sum, feature) in sums.iter_mut().zip(row) {
            *sum += f64::from(*feature);
        }
    }
    let count = (rows.len() / width.max(1)).max(1) as f64;
    sums.into_iter().map(|sum| (sum / count) as f32).collect()
}

/// The kind with most votes of windows.
fn majority(windows: &[Vec<f32>]) -> Option<KindEstimate> {
    let kinds = windows.first()?.len();
    let (mut votes, mut scores) = (vec![0_u32; kinds], vec![0.0_f64; kinds]);
    for window in windows {
        votes[argmax(window)] += 1;
        for (score, probability) in scores.iter_mut().zip(window) {
            *score += f64::from(*probability) / windows.len() as f64;
        }
    }
    let better = |a: usize, b: usize| (votes[b], scores[b]) > (votes[a], scores[a]);
    let kind = (1..kinds).fold(0, |best, next| if better(best, next) { next } else { best });
    Some(KindEstimate { kind, confidence: scores[kind], scores })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_windows_decide_and_means_where_they_do_not() {
        let sure = vec![0.9, 0.1];
        let unsure = vec![0.45, 0.55];
        let actual = majority(&[sure.clone(), unsure.clone(), unsure.clone()]).unwrap();
        assert_eq!(actual.kind, 1, "two of three");
        assert!((actual.confidence - 0.4).abs() < 1e-6);
        assert!((actual.scores[0] - 0.6).abs() < 1e-6);
        assert_eq!(majority(&[sure, unsure]).unwrap().kind, 0, "one each, the first was surer");
        assert_eq!(majority(&[]), None);
    }

    #[test]
    fn the_mean_of_flags_is_a_histogram() {
        assert_eq!(mean(&[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0], 2), [0.75, 0.25]);
    }
}
