//! The model of LRB: when blocks are used next, learned from what came of earlier samples.
//!
//! For: `lrb`. Must never know: which blocks are cached, which one leaves, when it is trained. A
//! row holds the inputs of a block at one time; its target is the logarithm of the accesses that
//! passed until the block was used. Unit: accesses.

use super::history::{BlockHistory, INPUTS};
use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_types::Seed;

/// Rows, the model that was trained on earlier ones, and candidates; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct ReuseModel {
    trees: Option<BoostedTrees>,
    /// Rows of the next training, and the logarithms of what came.
    rows: Vec<f32>,
    targets: Vec<f32>,
    /// The candidates, and room for their predictions.
    inputs: Vec<f32>,
    places: Vec<u16>,
    predictions: Vec<f32>,
}

impl ReuseModel {
    /// Whether there is a model.
    #[inline(always)]
    pub fn is_trained(&self) -> bool {
        self.trees.is_some()
    }

    /// A block that was sampled at `time` was used so many accesses later; returns the rows of the
    /// next training.
    #[inline(always)]
    pub fn learn(&mut self, block: &BlockHistory, time: u32, window: u32, later: u32) -> usize {
        block.inputs(time, window, &mut self.rows);
        self.targets.push((later as f32).ln_1p());
        self.targets.len()
    }

    /// Trains a model of so many trees on the rows, which are gone then.
    #[cold]
    pub fn train(&mut self, trees: usize, seed: Seed) {
        let settings = BoostingSettings { trees, ..Default::default() };
        self.trees = Some(BoostedTrees::fit(INPUTS, &self.rows, &self.targets, &settings, seed));
        self.rows.clear();
        self.targets.clear();
    }

    /// There are no candidates.
    pub fn clear_candidates(&mut self) {
        self.inputs.clear();
    }

    /// One more candidate.
    pub fn add_candidate(&mut self, block: &BlockHistory, now: u32, window: u32) {
        block.inputs(now, window, &mut self.inputs);
    }

    /// The candidate that is predicted to be used last, the first of equals; nothing without a
    /// model.
    pub fn last_used(&mut self) -> Option<usize> {
        let trees = self.trees.as_ref()?;
        trees.predict_all(&self.inputs, &mut self.places, &mut self.predictions);
        let mut latest = 0;
        for (candidate, prediction) in self.predictions.iter().enumerate() {
            if *prediction > self.predictions[latest] {
                latest = candidate;
            }
        }
        Some(latest)
    }

    /// Checks that each row has a target.
    pub fn audit(&self) -> Result<(), String> {
        if self.rows.len() != INPUTS * self.targets.len() {
            return Err(format!("{} inputs of {} rows", self.rows.len(), self.targets.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that were used 10 accesses before come back at once, others late.
    #[test]
    fn the_candidate_that_comes_back_last_is_found() {
        let (window, mut model) = (1000, ReuseModel::default());
        let used_before = |age: u32| BlockHistory::first(5000 - age);
        for round in 0..200 {
            let (age, later) = if round % 2 == 0 { (10, 5) } else { (500, 900) };
            assert_eq!(model.learn(&used_before(age), 5000, window, later), round + 1);
        }
        assert!(!model.is_trained() && model.last_used().is_none());
        model.train(8, Seed(1));
        assert_eq!((model.is_trained(), model.audit()), (true, Ok(())));
        for ages in [[10, 500, 10], [500, 10, 500]] {
            model.clear_candidates();
            for age in ages {
                model.add_candidate(&used_before(age), 5000, window);
            }
            assert_eq!(model.last_used(), ages.iter().position(|age| *age == 500));
        }
        assert_eq!(model.learn(&used_before(10), 5000, window, 5), 1);
    }
}
