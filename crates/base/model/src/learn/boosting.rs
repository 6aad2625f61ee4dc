//! Gradient-boosted regression trees for squared errors, from rows of mixed numbers; inputs may be
//! infinite, not NaN.
//!
//! Source: Friedman, "Greedy function approximation", Annals of Statistics 29(5), 2001; histograms
//! of inputs and growth of the best leaf first as in Ke et al., "LightGBM", NIPS'17. Invariant: one
//! thread, and every draw from a seed: the same rows give the same trees.

use cachewright_snapshot::SnapshotValue;
use cachewright_types::{Rng, Seed};

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
#[derive(Clone, Copy, Debug, PartialEq, SnapshotValue)]
struct BoostedNode {
    threshold: f32,
    input: u16,
    child: u16,
}

/// One tree.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
struct BoostedTree {
    nodes: Vec<BoostedNode>,
    /// By node: what a leaf adds.
    values: Vec<f32>,
    depth: usize,
}

/// Trees that predict a number together.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
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

/// Bins of an input, at most.
const BINS: usize = 64;
/// Rows by which thresholds are chosen, at most.
const SAMPLED: usize = 4096;

/// The inputs of all rows, by the number of their bin, so that a split is sought among a few
/// thresholds. A bin holds the values above the threshold before it, up to its own; thresholds are
/// values of a sample of the rows, as far as possible such that bins hold equally many. A column
/// per input, a byte per row.
struct BinnedRows {
    rows: usize,
    columns: Vec<u8>,
    /// Per input the highest value of each bin but the last.
    thresholds: Vec<Vec<f32>>,
}

impl BinnedRows {
    /// Rows of `inputs` numbers each, one after the other.
    fn new(inputs: usize, rows: &[f32]) -> BinnedRows {
        let count = rows.len() / inputs.max(1);
        let mut columns = vec![0; rows.len()];
        let mut thresholds = Vec::with_capacity(inputs);
        for (input, column) in columns.chunks_exact_mut(count.max(1)).enumerate() {
            let values = || rows.iter().skip(input).step_by(inputs).copied();
            let chosen = choose(values().step_by(count.div_ceil(SAMPLED).max(1)).collect());
            for (bin, value) in column.iter_mut().zip(values()) {
                *bin = chosen.partition_point(|threshold| *threshold < value) as u8;
            }
            thresholds.push(chosen);
        }
        BinnedRows { rows: count, columns, thresholds }
    }

    /// The bins of an input, by row.
    fn column(&self, input: usize) -> &[u8] {
        &self.columns[input * self.rows..(input + 1) * self.rows]
    }

    /// The thresholds of an input: that of a bin is its highest value.
    fn thresholds(&self, input: usize) -> &[f32] {
        &self.thresholds[input]
    }
}

/// Thresholds that part the values as evenly as they can; the highest value is none.
fn choose(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_unstable_by(f32::total_cmp);
    let mut chosen: Vec<f32> = Vec::with_capacity(BINS - 1);
    let distinct = {
        let mut distinct = values.clone();
        distinct.dedup();
        distinct
    };
    if distinct.len() <= BINS {
        chosen.extend(distinct.iter().take(distinct.len().saturating_sub(1)));
        return chosen;
    }
    for bin in 1..BINS {
        let threshold = values[bin * values.len() / BINS];
        let is_new = chosen.last().is_none_or(|last| *last < threshold);
        if is_new && distinct.last().is_some_and(|last| threshold < *last) {
            chosen.push(threshold);
        }
    }
    chosen
}

/// The errors in one bin.
#[derive(Clone, Copy, Debug, Default)]
struct BinSum {
    error: f64,
    rows: u32,
}

/// The best split of a leaf.
#[derive(Clone, Copy, Debug)]
struct LeafSplit {
    gain: f64,
    input: usize,
    bin: usize,
}

/// A leaf that may still be split.
struct Leaf {
    node: usize,
    depth: usize,
    /// Its rows in the grower's list.
    first: usize,
    rows: usize,
    /// By input that may be split, then bin.
    sums: Vec<BinSum>,
    split: Option<LeafSplit>,
}

/// Grows trees over the same rows: the leaf whose split lowers the squared error most is split
/// next. Of two children the one with fewer rows is counted, the other is the rest.
struct Grower<'a> {
    binned: &'a BinnedRows,
    settings: &'a BoostingSettings,
    rows: Vec<u32>,
    /// Room for one side of a split.
    beyond: Vec<u32>,
}

impl<'a> Grower<'a> {
    /// For these rows.
    fn new(binned: &'a BinnedRows, settings: &'a BoostingSettings) -> Grower<'a> {
        Grower { binned, settings, rows: Vec::new(), beyond: Vec::new() }
    }

    /// A tree of the rows and inputs drawn, for the errors by row; nothing without a split.
    fn grow(&mut self, drawn: &[u32], inputs: &[u32], errors: &[f32]) -> Option<BoostedTree> {
        self.rows.clear();
        self.rows.extend_from_slice(drawn);
        let sums = self.count(0, drawn.len(), inputs, errors);
        let mut root = Leaf { node: 0, depth: 0, first: 0, rows: drawn.len(), sums, split: None };
        root.split = self.best_split(&root, inputs);
        root.split?;
        let leaf = BoostedNode { threshold: f32::INFINITY, input: 0, child: 0 };
        let mut tree = BoostedTree { nodes: vec![leaf], values: vec![0.0], depth: 0 };
        let mut leaves = vec![root];
        while leaves.len() < self.settings.leaves
            && let Some((index, split)) = best_leaf(&leaves)
        {
            let parent = leaves.swap_remove(index);
            leaves.extend(self.split(parent, split, &mut tree, inputs, errors));
        }
        for leaf in leaves {
            let rows = &self.rows[leaf.first..leaf.first + leaf.rows];
            let sum: f64 = rows.iter().map(|row| f64::from(errors[*row as usize])).sum();
            tree.values[leaf.node] = (self.settings.rate * sum / leaf.rows.max(1) as f64) as f32;
        }
        Some(tree)
    }

    /// The sums of the errors of a range of the list of rows.
    fn count(&self, first: usize, rows: usize, inputs: &[u32], errors: &[f32]) -> Vec<BinSum> {
        let mut sums = vec![BinSum::default(); inputs.len() * BINS];
        for (input, sums) in inputs.iter().zip(sums.chunks_exact_mut(BINS)) {
            let column = self.binned.column(*input as usize);
            for row in &self.rows[first..first + rows] {
                let sum = &mut sums[usize::from(column[*row as usize])];
                sum.error += f64::from(errors[*row as usize]);
                sum.rows += 1;
            }
        }
        sums
    }

    /// The split with the largest gain; the first of equals.
    fn best_split(&self, leaf: &Leaf, inputs: &[u32]) -> Option<LeafSplit> {
        if leaf.depth == self.settings.depth {
            return None;
        }
        let mut best: Option<LeafSplit> = None;
        for (place, sums) in leaf.sums.chunks_exact(BINS).enumerate() {
            let error: f64 = sums.iter().map(|sum| sum.error).sum();
            let rows: u32 = sums.iter().map(|sum| sum.rows).sum();
            let whole = error * error / f64::from(rows.max(1));
            let (mut below, mut below_rows) = (0.0, 0);
            let bins = self.binned.thresholds(inputs[place] as usize).len();
            for (bin, sum) in sums.iter().take(bins).enumerate() {
                below += sum.error;
                below_rows += sum.rows;
                let above_rows = rows - below_rows;
                if below_rows.min(above_rows) < self.settings.leaf_rows.max(1) {
                    continue;
                }
                let above = error - below;
                let gain = below * below / f64::from(below_rows)
                    + above * above / f64::from(above_rows)
                    - whole;
                if gain > best.map_or(1e-9, |best| best.gain) {
                    best = Some(LeafSplit { gain, input: place, bin });
                }
            }
        }
        best
    }

    /// Splits a leaf in two.
    fn split(
        &mut self,
        parent: Leaf,
        split: LeafSplit,
        tree: &mut BoostedTree,
        inputs: &[u32],
        errors: &[f32],
    ) -> [Leaf; 2] {
        let input = inputs[split.input] as usize;
        let below = self.part(&parent, self.binned.column(input), split.bin);
        let child = tree.nodes.len();
        tree.nodes[parent.node] = BoostedNode {
            threshold: self.binned.thresholds(input)[split.bin],
            input: input as u16,
            child: child as u16,
        };
        for node in [child, child + 1] {
            tree.nodes.push(BoostedNode { threshold: f32::INFINITY, input: 0, child: node as u16 });
            tree.values.push(0.0);
        }
        tree.depth = tree.depth.max(parent.depth + 1);
        let above = parent.rows - below;
        let places = [(parent.first, below), (parent.first + below, above)];
        let fewer = usize::from(above < below);
        let counted = self.count(places[fewer].0, places[fewer].1, inputs, errors);
        let mut rest = parent.sums;
        for (sum, counted) in rest.iter_mut().zip(&counted) {
            sum.error -= counted.error;
            sum.rows -= counted.rows;
        }
        let sums = if fewer == 0 { [counted, rest] } else { [rest, counted] };
        let mut number = 0;
        sums.map(|sums| {
            let (first, rows) = places[number];
            let (node, depth) = (child + number, parent.depth + 1);
            number += 1;
            let mut leaf = Leaf { node, depth, first, rows, sums, split: None };
            leaf.split = self.best_split(&leaf, inputs);
            leaf
        })
    }

    /// Sorts the rows of a leaf by side, each side in its order; returns how many are not above.
    fn part(&mut self, leaf: &Leaf, column: &[u8], bin: usize) -> usize {
        self.beyond.clear();
        let rows = &mut self.rows[leaf.first..leaf.first + leaf.rows];
        let mut below = 0;
        for index in 0..rows.len() {
            let row = rows[index];
            if usize::from(column[row as usize]) <= bin {
                rows[below] = row;
                below += 1;
            } else {
                self.beyond.push(row);
            }
        }
        rows[below..].copy_from_slice(&self.beyond);
        below
    }
}

/// The leaf whose split gains most; the first of equals.
fn best_leaf(leaves: &[Leaf]) -> Option<(usize, LeafSplit)> {
    let mut best: Option<(usize, LeafSplit)> = None;
    for (index, leaf) in leaves.iter().enumerate() {
        if let Some(split) = leaf.split
            && best.is_none_or(|(_, best)| split.gain > best.gain)
        {
            best = Some((index, split));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_a_bin_each_and_many_share_them_evenly() {
        let rows = [3.0, 0.0, 1.0, f32::INFINITY, 3.0, 2.0, -1.0, 9.0];
        let binned = BinnedRows::new(2, &rows);
        assert_eq!(binned.thresholds(0), [-1.0, 1.0]);
        assert_eq!(
            (binned.column(0), binned.thresholds(1)),
            (&[2, 1, 2, 0][..], &[0.0, 2.0, 9.0][..])
        );
        assert_eq!(binned.column(1), [0, 3, 1, 2]);
        let many: Vec<f32> = (0..10_000).map(|value| (value * 7 % 10_000) as f32).collect();
        let binned = BinnedRows::new(1, &many);
        let mut sizes = [0; BINS];
        binned.column(0).iter().for_each(|bin| sizes[usize::from(*bin)] += 1);
        assert!(sizes.iter().all(|size| (100..220).contains(size)), "{sizes:?}");
    }
}
