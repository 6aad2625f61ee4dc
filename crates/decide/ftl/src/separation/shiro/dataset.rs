//! What one window teaches: series of inputs with labels, and how well a model does on them.
//!
//! For: the hand-out to a trainer and the measures of a classifier. Must never know: pages, how a
//! model is trained. Units: steps; shares in `[0, 1]`. Source: Shiro, section III-B and table V.

use super::features::Encoding;
use crate::separation::learning::Confusion;
use cachewright_model::{FloatModel, Int8Model, ModelError, StoredModel, argmax};
use std::ops::Range;

/// What is known of a page write once its window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeLabel {
    /// Not written again within the threshold, as far as the window shows.
    Long,
    /// Written again within the threshold.
    Short,
    /// A first write, never predicted, or one whose lifetime is not known: a step of a series only.
    Context,
}

impl LifetimeLabel {
    /// The output of the model that stands for it.
    pub fn class(self) -> Option<u8> {
        match self {
            LifetimeLabel::Long => Some(0),
            LifetimeLabel::Short => Some(1),
            LifetimeLabel::Context => None,
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
    pub labels: Vec<LifetimeLabel>,
}

impl Dataset {
    /// Where the numbers and the steps of each series lie.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let inputs = self.encoding.inputs();
        let mut end = 0;
        self.lengths.iter().map(move |length| {
            let start = end;
            end += *length as usize;
            (start * inputs..end * inputs, start..end)
        })
    }

    /// The series, each as its rows and its labels.
    pub fn series(&self) -> Vec<(&[f32], &[LifetimeLabel])> {
        let parts = |(rows, steps): (Range<usize>, Range<usize>)| {
            Some((self.rows.get(rows)?, self.labels.get(steps)?))
        };
        self.ranges().map_while(parts).collect()
    }

    /// The output of the model that stands for each step's label.
    pub fn classes(&self) -> Vec<Option<u8>> {
        self.labels.iter().map(|label| label.class()).collect()
    }

    /// Steps with a class.
    pub fn labelled(&self) -> usize {
        self.labels.iter().filter(|label| label.class().is_some()).count()
    }
}

/// A model, f32 or int8, on the labelled steps of a dataset; each series begins with a zero state.
/// Errors: a model that computes on other inputs.
pub fn evaluate(stored: &StoredModel, dataset: &Dataset) -> Result<Confusion, ModelError> {
    let inputs = dataset.encoding.inputs();
    let mut confusion = Confusion::default();
    let mut count = |class: usize, label: &LifetimeLabel| {
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
    fn series_follow_one_another() {
        let dataset = Dataset {
            window: 0,
            first: true,
            threshold: 3,
            encoding: Encoding::Log,
            lengths: vec![1, 2],
            rows: (0..18).map(|x| x as f32).collect(),
            labels: vec![LifetimeLabel::Context, LifetimeLabel::Short, LifetimeLabel::Long],
        };
        let series = dataset.series();
        assert_eq!(series[0], (&dataset.rows[..6], &[LifetimeLabel::Context][..]));
        assert_eq!(series[1].0[0], 6.0);
        assert_eq!((series[1].1.len(), dataset.labelled()), (2, 2));
    }
}
