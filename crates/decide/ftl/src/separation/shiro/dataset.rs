//! What one window teaches: series of inputs with labels, and how well a model does on them.
//!
//! For: the hand-out to a trainer and the measures of a classifier. Must never know: pages, how a
//! model is trained. Units: steps; shares in `[0, 1]`. Source: Shiro, section III-B and table V.

use super::features::Encoding;
use cachewright_infer::{FloatModel, Int8Model, ModelError, StoredModel, argmax};

/// What is known of a page write once its window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Not written again within the threshold, as far as the window shows.
    Long,
    /// Written again within the threshold.
    Short,
    /// A first write: an earlier step of a series, never predicted.
    Context,
}

impl Label {
    /// The output of the model that stands for it.
    pub fn class(self) -> Option<usize> {
        match self {
            Label::Long => Some(0),
            Label::Short => Some(1),
            Label::Context => None,
        }
    }
}

/// One window's series.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The window, from 0.
    pub window: u64,
    /// Whether no model is in use yet: train to convergence, later one epoch per window.
    pub first: bool,
    /// Lifetimes up to this, in host page writes, are short.
    pub threshold: u32,
    /// What the inputs are.
    pub encoding: Encoding,
    /// Steps per series, each at least 1.
    pub lengths: Vec<u32>,
    /// Inputs, step after step, series after series.
    pub rows: Vec<f32>,
    /// A label per step.
    pub labels: Vec<Label>,
}

impl Dataset {
    /// The series, each as its rows and its labels.
    pub fn series(&self) -> Vec<(&[f32], &[Label])> {
        let inputs = self.encoding.inputs();
        let (mut rows, mut labels) = (self.rows.as_slice(), self.labels.as_slice());
        let mut series = Vec::with_capacity(self.lengths.len());
        for length in &self.lengths {
            let length = *length as usize;
            let (own_rows, own_labels) =
                (rows.split_at_checked(length * inputs), labels.split_at_checked(length));
            let (Some((a, later_rows)), Some((b, later_labels))) = (own_rows, own_labels) else {
                break;
            };
            series.push((a, b));
            (rows, labels) = (later_rows, later_labels);
        }
        series
    }

    /// Steps with a class.
    pub fn labelled(&self) -> usize {
        self.labels.iter().filter(|label| label.class().is_some()).count()
    }
}

/// Predictions against what came; short is the positive class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// Predicted short, was short.
    pub short_right: u64,
    /// Predicted short, was long.
    pub short_wrong: u64,
    /// Predicted long, was long.
    pub long_right: u64,
    /// Predicted long, was short.
    pub long_wrong: u64,
}

impl Confusion {
    /// Counts one prediction.
    pub fn add(&mut self, predicted_short: bool, was_short: bool) {
        let counter = match (predicted_short, was_short) {
            (true, true) => &mut self.short_right,
            (true, false) => &mut self.short_wrong,
            (false, false) => &mut self.long_right,
            (false, true) => &mut self.long_wrong,
        };
        *counter += 1;
    }

    /// Predictions.
    pub fn total(&self) -> u64 {
        self.short_right + self.short_wrong + self.long_right + self.long_wrong
    }

    /// Share of right predictions; 0 of none.
    pub fn accuracy(&self) -> f64 {
        ratio(self.short_right + self.long_right, self.total())
    }

    /// Share of those predicted short that were; 0 of none.
    pub fn precision(&self) -> f64 {
        ratio(self.short_right, self.short_right + self.short_wrong)
    }

    /// Share of the short that were predicted so; 0 of none.
    pub fn recall(&self) -> f64 {
        ratio(self.short_right, self.short_right + self.long_wrong)
    }

    /// Harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        let twice = 2 * self.short_right;
        ratio(twice, twice + self.short_wrong + self.long_wrong)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A model, f32 or int8, on the labelled steps of a dataset; each series begins with a zero state.
/// Errors: a model that computes on other inputs.
pub fn evaluate(stored: &StoredModel, dataset: &Dataset) -> Result<Confusion, ModelError> {
    let inputs = dataset.encoding.inputs();
    let mut confusion = Confusion::default();
    let mut count = |class: usize, label: &Label| {
        if let Some(truth) = label.class() {
            confusion.add(class == 1, truth == 1);
        }
    };
    if stored.is_int8() {
        let model = Int8Model::new(stored)?;
        let mut scratch = model.scratch();
        for (rows, labels) in dataset.series() {
            let mut state = model.zero_state();
            for (row, label) in rows.chunks_exact(inputs).zip(labels) {
                let (hidden, cell) = (&mut state.hidden, &mut state.cell);
                count(argmax(model.step(&mut scratch, hidden, cell, row)?), label);
            }
        }
    } else {
        let model = FloatModel::new(stored)?;
        let mut scratch = model.scratch();
        for (rows, labels) in dataset.series() {
            let mut state = model.zero_state();
            for (row, label) in rows.chunks_exact(inputs).zip(labels) {
                let (hidden, cell) = (&mut state.hidden, &mut state.cell);
                count(argmax(model.step(&mut scratch, hidden, cell, row)?), label);
            }
        }
    }
    Ok(confusion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_of_a_worked_table() {
        let counts = Confusion { short_right: 6, short_wrong: 2, long_right: 9, long_wrong: 3 };
        assert_eq!(counts.accuracy(), 0.75);
        assert_eq!(counts.precision(), 0.75);
        assert!((counts.recall() - 2.0 / 3.0).abs() < 1e-12);
        assert!((counts.f1() - 12.0 / 17.0).abs() < 1e-12);
        assert_eq!(Confusion::default().f1(), 0.0);
    }

    #[test]
    fn series_follow_one_another() {
        let dataset = Dataset {
            window: 0,
            first: true,
            threshold: 3,
            encoding: Encoding::Log,
            lengths: vec![1, 2],
            rows: (0..18).map(|x| x as f32).collect(),
            labels: vec![Label::Context, Label::Short, Label::Long],
        };
        let series = dataset.series();
        assert_eq!(series[0], (&dataset.rows[..6], &[Label::Context][..]));
        assert_eq!(series[1].0[0], 6.0);
        assert_eq!((series[1].1.len(), dataset.labelled()), (2, 2));
    }
}
