//! Boosted trees that are trained again whenever enough rows have come.
//!
//! For: policies that learn while they run. Rows wait for the next training, which replaces the
//! trees and takes all rows; the trees predict rows of candidates meanwhile. Memory: 4 bytes per
//! number of the rows that wait, which the caller bounds, and of the most candidates so far.

use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_snapshot::Snapshot;
use cachewright_types::Seed;

/// The trees; see the top of the file.
#[derive(Clone, Debug, Snapshot)]
pub struct OnlineTrees {
    /// Numbers of a row.
    inputs: usize,
    #[snapshot(settings)]
    settings: BoostingSettings,
    trees: Option<BoostedTrees>,
    /// Rows of the next training, and what they should have predicted.
    rows: Vec<f32>,
    targets: Vec<f32>,
    /// Rows of the candidates, and room for their predictions.
    candidates: Vec<f32>,
    places: Vec<u16>,
    predictions: Vec<f32>,
}

impl OnlineTrees {
    /// No trees yet, for rows of so many numbers.
    pub fn new(inputs: usize, settings: BoostingSettings) -> OnlineTrees {
        OnlineTrees {
            inputs,
            settings,
            trees: None,
            rows: Vec::new(),
            targets: Vec::new(),
            candidates: Vec::new(),
            places: Vec::new(),
            predictions: Vec::new(),
        }
    }

    /// Whether there are trees.
    #[inline(always)]
    pub fn is_trained(&self) -> bool {
        self.trees.is_some()
    }

    /// Rows of the next training.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.targets.len()
    }

    /// One more row, which `inputs` appends, and its target.
    #[inline(always)]
    pub fn learn(&mut self, target: f32, inputs: impl FnOnce(&mut Vec<f32>)) {
        inputs(&mut self.rows);
        self.targets.push(target);
    }

    /// Trains new trees on the rows, which are gone then.
    #[cold]
    pub fn train(&mut self, seed: Seed) {
        let (rows, targets) = (&self.rows, &self.targets);
        self.trees = Some(BoostedTrees::fit(self.inputs, rows, targets, &self.settings, seed));
        self.rows.clear();
        self.targets.clear();
    }

    /// The prediction for one row; none without trees.
    #[inline(always)]
    pub fn predict(&self, row: &[f32]) -> Option<f32> {
        self.trees.as_ref().map(|trees| trees.predict(row))
    }

    /// There are no candidates.
    pub fn clear_candidates(&mut self) {
        self.candidates.clear();
    }

    /// One more candidate, whose row `inputs` appends.
    pub fn add_candidate(&mut self, inputs: impl FnOnce(&mut Vec<f32>)) {
        inputs(&mut self.candidates);
    }

    /// A prediction per candidate; none without trees.
    pub fn predictions(&mut self) -> &[f32] {
        self.predictions.clear();
        if let Some(trees) = &self.trees {
            trees.predict_all(&self.candidates, &mut self.places, &mut self.predictions);
        }
        &self.predictions
    }

    /// The candidate with the highest prediction, the first of equals; none without trees.
    pub fn highest(&mut self) -> Option<usize> {
        let predictions = self.predictions();
        let mut highest = 0;
        for (candidate, prediction) in predictions.iter().enumerate() {
            if *prediction > predictions[highest] {
                highest = candidate;
            }
        }
        (highest < predictions.len()).then_some(highest)
    }

    /// Checks that each row has a target.
    pub fn audit(&self) -> Result<(), String> {
        if self.rows.len() != self.inputs * self.targets.len() {
            return Err(format!("{} inputs of {} rows", self.rows.len(), self.targets.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that were used 10 accesses before come back after 5, others after 900.
    #[test]
    fn the_candidate_with_the_highest_prediction_is_found() {
        let settings = BoostingSettings { trees: 8, ..Default::default() };
        let mut trees = OnlineTrees::new(1, settings);
        for round in 0..200 {
            let (age, later) = if round % 2 == 0 { (10.0, 5.0) } else { (500.0, 900.0) };
            trees.learn(f32::ln_1p(later), |row| row.push(age));
            assert_eq!(trees.waiting(), round + 1);
        }
        assert!(!trees.is_trained() && trees.highest().is_none());
        trees.train(Seed(1));
        assert_eq!((trees.is_trained(), trees.waiting(), trees.audit()), (true, 0, Ok(())));
        assert_eq!(trees.highest(), None);
        for ages in [[10.0, 500.0, 10.0], [500.0, 10.0, 500.0]] {
            trees.clear_candidates();
            for age in ages {
                trees.add_candidate(|row| row.push(age));
            }
            assert_eq!(trees.highest(), ages.iter().position(|age| *age == 500.0));
        }
        trees.learn(5.0, |row| row.push(10.0));
        assert_eq!(trees.waiting(), 1);
    }
}
