//! Gradient-boosted regression trees for squared errors.
//!
//! For: predictions from rows of mixed numbers, trained anew every few thousand rows. Must never
//! know: what an input means, what is predicted. Source: Friedman, "Greedy function approximation",
//! Annals of Statistics 29(5), 2001; histograms of inputs and growth of the best leaf first as in
//! Ke et al., "LightGBM", NIPS'17. Inputs may be infinite, not NaN.
//!
//! Invariant: one thread, and every draw from a seed: the same rows give the same trees.

mod bins;
mod grow;

use bins::BinnedRows;
use cachewright_types::{Rng, Seed};
use grow::Grower;

/// The numbers of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoostingSettings {
    /// Trees, one after the other.
    pub trees: usize,
    /// Leaves of a tree, at most.
    pub leaves: usize,
    /// Splits on the longest path of a tree, at most.
    pub depth: usize,
    /// Rows of a leaf, at least.
    pub leaf_rows: u32,
    /// What of a leaf's mean error its prediction corrects.
    pub rate: f64,
    /// Share of the rows that grow a tree, drawn anew every `redraw` trees.
    pub row_share: f64,
    /// See `row_share`.
    pub redraw: usize,
    /// Share of the inputs that a tree may split, drawn per tree.
    pub input_share: f64,
}

/// LightGBM's defaults but for the number of trees and the limit of depth; shares as LRB has them.
impl Default for BoostingSettings {
    fn default() -> Self {
        BoostingSettings {
            trees: 32,
            leaves: 32,
            depth: 12,
            leaf_rows: 20,
            rate: 0.1,
            row_share: 0.8,
            redraw: 5,
            input_share: 0.8,
        }
    }
}

/// A node: a row goes to `child`, or to the node after it where the input is above the threshold. A
/// leaf is its own child, and nothing is above its threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BoostedNode {
    threshold: f32,
    input: u16,
    child: u16,
}

/// One tree.
#[derive(Clone, Debug, PartialEq)]
struct BoostedTree {
    nodes: Vec<BoostedNode>,
    /// By node: what a leaf adds.
    values: Vec<f32>,
    depth: usize,
}

/// Trees that predict a number together.
#[derive(Clone, Debug, PartialEq)]
pub struct BoostedTrees {
    inputs: usize,
    base: f32,
    trees: Vec<BoostedTree>,
}

impl BoostedTrees {
    /// Trees for rows of `inputs` numbers each, one after the other, and a target per row.
    pub fn fit(
        inputs: usize,
        rows: &[f32],
        targets: &[f32],
        settings: &BoostingSettings,
        seed: Seed,
    ) -> BoostedTrees {
        debug_assert_eq!(rows.len(), inputs * targets.len(), "a target per row");
        if targets.is_empty() {
            return BoostedTrees { inputs, base: 0.0, trees: Vec::new() };
        }
        let sum: f64 = targets.iter().map(|target| f64::from(*target)).sum();
        let base = (sum / targets.len() as f64) as f32;
        let mut rng = seed.derive("boosting").rng();
        let binned = BinnedRows::new(inputs, rows);
        let mut errors: Vec<f32> = targets.iter().map(|target| target - base).collect();
        let mut grower = Grower::new(&binned, settings);
        let mut drawn = Vec::new();
        let mut trees = Vec::new();
        for number in 0..settings.trees {
            if number % settings.redraw.max(1) == 0 {
                drawn = draw(&mut rng, targets.len(), settings.row_share);
            }
            let splittable = draw(&mut rng, inputs, settings.input_share);
            let Some(tree) = grower.grow(&drawn, &splittable, &errors) else { continue };
            for (row, error) in rows.chunks_exact(inputs.max(1)).zip(&mut errors) {
                *error -= tree.predict(row);
            }
            trees.push(tree);
        }
        BoostedTrees { inputs, base, trees }
    }

    /// The prediction for a row.
    pub fn predict(&self, row: &[f32]) -> f32 {
        self.trees.iter().fold(self.base, |sum, tree| sum + tree.predict(row))
    }

    /// The predictions for rows one after the other, into `predictions`: as [`predict`] gives them,
    /// but all rows go down a tree together. `places` is room to work in.
    ///
    /// [`predict`]: BoostedTrees::predict
    pub fn predict_all(&self, rows: &[f32], places: &mut Vec<u16>, predictions: &mut Vec<f32>) {
        let count = rows.len() / self.inputs.max(1);
        predictions.clear();
        predictions.resize(count, self.base);
        for tree in &self.trees {
            places.clear();
            places.resize(count, 0);
            for _ in 0..tree.depth {
                for (row, place) in rows.chunks_exact(self.inputs).zip(places.iter_mut()) {
                    *place = tree.step(*place, row);
                }
            }
            for (prediction, place) in predictions.iter_mut().zip(places.iter()) {
                *prediction += tree.values[usize::from(*place)];
            }
        }
    }

    /// Bytes of the trees.
    pub fn bytes(&self) -> usize {
        let node = size_of::<BoostedNode>() + size_of::<f32>();
        self.trees.iter().map(|tree| tree.nodes.len() * node).sum()
    }
}

impl BoostedTree {
    #[inline(always)]
    fn step(&self, place: u16, row: &[f32]) -> u16 {
        let node = self.nodes[usize::from(place)];
        node.child + u16::from(row[usize::from(node.input)] > node.threshold)
    }

    fn predict(&self, row: &[f32]) -> f32 {
        let place = (0..self.depth).fold(0, |place, _| self.step(place, row));
        self.values[usize::from(place)]
    }
}

/// Each of `0..count` with the probability `share`, in order.
fn draw(rng: &mut Rng, count: usize, share: f64) -> Vec<u32> {
    (0..count as u32).filter(|_| share >= 1.0 || rng.unit() < share).collect()
}
