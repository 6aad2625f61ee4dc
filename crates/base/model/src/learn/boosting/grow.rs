//! Growing one regression tree: the leaf whose split lowers the squared error most is split next.
//!
//! For: boosting. Must never know: how many trees there are. A split is sought in histograms of
//! errors by bin; of two children the one with fewer rows is counted, the other is the rest.

use super::bins::{BINS, BinnedRows};
use super::{BoostedNode, BoostedTree, BoostingSettings};

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

/// Grows trees over the same rows.
pub struct Grower<'a> {
    binned: &'a BinnedRows,
    settings: &'a BoostingSettings,
    rows: Vec<u32>,
    /// Room for one side of a split.
    beyond: Vec<u32>,
}

impl<'a> Grower<'a> {
    /// For these rows.
    pub fn new(binned: &'a BinnedRows, settings: &'a BoostingSettings) -> Grower<'a> {
        Grower { binned, settings, rows: Vec::new(), beyond: Vec::new() }
    }

    /// A tree of the rows and inputs drawn, for the errors by row; nothing without a split.
    pub fn grow(&mut self, drawn: &[u32], inputs: &[u32], errors: &[f32]) -> Option<BoostedTree> {
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
