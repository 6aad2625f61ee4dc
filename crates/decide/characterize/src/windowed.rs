//! A model over windows of requests, and the majority of the last ten.
//!
//! For: every characterizer of the registry. Must never know: which features it carries. Source:
//! RC-RNN sections 4.2 (1,000 requests are judged) and 5.2.1 (windows of 100). Units: requests.
//!
//! A recurrent model reads the rows of a window from a zero state; any other sees their mean, which
//! for features that are 0 or 1 is a histogram. The outputs' softmax are probabilities. The kind
//! that most windows name is the answer, of several the one with the higher mean probability; that
//! mean is the confidence. A model file's notes say what it is of: `characterizer`, `kinds` (names
//! with commas between) and `window` (requests).

use crate::{Characterizer, Features, Judgement, is_heard};
use cachewright_infer::{Description, Model, StoredModel, argmax, softmax};
use cachewright_types::Request;
use std::collections::VecDeque;

/// Requests of a window where no model says otherwise.
pub const WINDOW_REQUESTS: usize = 100;
/// Windows that are judged together.
pub const JUDGED_WINDOWS: usize = 10;
/// Longest window of a model.
const MOST_REQUESTS: usize = 10_000;

/// A model and how many requests it reads.
struct Taught {
    model: Model,
    window: usize,
    kinds: Vec<String>,
}

/// Judges the windows heard last.
pub struct Windowed {
    name: &'static str,
    features: Box<dyn Features>,
    taught: Option<Taught>,
    /// Rows of the last windows, one after another.
    rows: VecDeque<f32>,
    row: Vec<f32>,
}

impl Windowed {
    /// One without a model, of the characterizer called `name`.
    pub fn new(name: &'static str, features: Box<dyn Features>) -> Windowed {
        Windowed { name, features, taught: None, rows: VecDeque::new(), row: Vec::new() }
    }

    fn wanted(&self) -> usize {
        let window = self.taught.as_ref().map_or(WINDOW_REQUESTS, |taught| taught.window);
        window * JUDGED_WINDOWS * self.features.names().len()
    }
}

impl Characterizer for Windowed {
    fn asked(&mut self, request: &Request) {
        if !is_heard(request) {
            return;
        }
        self.row.clear();
        self.features.row(request, &mut self.row);
        self.rows.extend(&self.row);
        let surplus = self.rows.len().saturating_sub(self.wanted());
        self.rows.drain(..surplus);
    }

    fn learn(&mut self, model: &[u8]) -> Result<(), String> {
        self.taught = Some(taught(self.name, self.features.names(), model)?);
        self.rows.clear();
        Ok(())
    }

    fn kinds(&self) -> &[String] {
        self.taught.as_ref().map_or(&[], |taught| &taught.kinds)
    }

    fn judge(&mut self) -> Option<Judgement> {
        let wanted = self.wanted();
        let taught = self.taught.as_ref()?;
        if self.rows.len() < wanted {
            return None;
        }
        let width = self.features.names().len();
        let rows = self.rows.make_contiguous();
        let windows = rows.chunks_exact(taught.window * width);
        let judged: Option<Vec<Vec<f32>>> =
            windows.map(|window| probabilities(&taught.model, window, width)).collect();
        majority(&judged?)
    }
}

/// Reads a model file and checks that it is of this characterizer.
fn taught(name: &str, features: &[&str], bytes: &[u8]) -> Result<Taught, String> {
    let wrong = |error: cachewright_infer::ModelError| error.to_string();
    let Description { features: found, notes, architecture, .. } =
        StoredModel::from_bytes(bytes).map_err(wrong)?.description;
    let note = |key: &str| {
        notes.get(key).ok_or_else(|| format!("found no note `{key}`, expected one of `{name}`"))
    };
    let of = note("characterizer")?;
    if of != name {
        return Err(format!("found a model of characterizer `{of}`, expected one of `{name}`"));
    }
    if found != features {
        let (found, expected) = (found.join(", "), features.join(", "));
        return Err(format!("found features {found}, expected {expected}"));
    }
    let text = note("window")?;
    let window = text.parse().ok().filter(|window| (1..=MOST_REQUESTS).contains(window));
    let window = window.ok_or_else(|| {
        format!("note `window`: found `{text}`, expected 1 to {MOST_REQUESTS} requests")
    })?;
    let kinds: Vec<String> = note("kinds")?.split(',').map(|kind| kind.trim().to_owned()).collect();
    if kinds.len() != architecture.outputs() || kinds.iter().any(String::is_empty) {
        let (found, expected) = (kinds.join(", "), architecture.outputs());
        return Err(format!("note `kinds`: found {found}, expected {expected} names"));
    }
    Ok(Taught { model: Model::load(bytes).map_err(wrong)?, window, kinds })
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

/// The kind that most windows name.
fn majority(windows: &[Vec<f32>]) -> Option<Judgement> {
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
    Some(Judgement { kind, confidence: scores[kind], scores })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_windows_decide_and_means_where_they_do_not() {
        let sure = vec![0.9, 0.1];
        let unsure = vec![0.45, 0.55];
        let found = majority(&[sure.clone(), unsure.clone(), unsure.clone()]).unwrap();
        assert_eq!(found.kind, 1, "two of three");
        assert!((found.confidence - 0.4).abs() < 1e-6);
        assert!((found.scores[0] - 0.6).abs() < 1e-6);
        assert_eq!(majority(&[sure, unsure]).unwrap().kind, 0, "one each, the first was surer");
        assert_eq!(majority(&[]), None);
    }

    #[test]
    fn the_mean_of_flags_is_a_histogram() {
        assert_eq!(mean(&[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0], 2), [0.75, 0.25]);
    }
}
