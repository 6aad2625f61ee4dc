//! The sizes of a forest, and the names of its tensors.
//!
//! For: what a description and the trees themselves share. Must never know: nodes, files.

use crate::error::ModelError;
use serde::{Deserialize, Serialize};

/// Most trees.
pub const MAX_TREES: usize = 1 << 16;
/// Most nodes of all trees together.
pub const MAX_NODES: usize = 1 << 22;
/// Most splits on a path from root to leaf.
pub const MAX_DEPTH: usize = 64;
/// Most numbers in all leaves together.
pub const MAX_LEAF_NUMBERS: usize = 1 << 24;

/// Per tree its number of nodes.
pub const TREE_NODES: &str = "tree.nodes";
/// Per node the input its split looks at, [`LEAF`] for a leaf.
pub const NODE_FEATURE: &str = "node.feature";
/// Per node its split's threshold, 0 for a leaf.
pub const NODE_THRESHOLD: &str = "node.threshold";
/// Per leaf, in the order of the nodes, a number per output.
pub const LEAF_VALUES: &str = "leaf.values";
/// Per output the number that is added to what the trees give.
pub const BASE: &str = "base";
/// [`NODE_FEATURE`] of a leaf.
pub const LEAF: i32 = -1;

/// What is done with the leaves that the trees give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// Their mean: random forests.
    Mean,
    /// Their sum: boosted trees.
    Sum,
}

/// The sizes of a forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForestForm {
    /// Trees.
    pub trees: usize,
    /// Nodes of all trees together, leaves included.
    pub nodes: usize,
    /// What is done with their leaves.
    pub combine: Combine,
}

impl ForestForm {
    /// Leaves of all trees: each split has two children, so a tree has one leaf more than splits.
    pub fn leaves(self) -> usize {
        self.nodes.saturating_add(self.trees) / 2
    }

    /// Names and shapes of the tensors.
    pub(crate) fn tensors(self, outputs: usize) -> Vec<(String, Vec<usize>)> {
        [
            (TREE_NODES, vec![self.trees]),
            (NODE_FEATURE, vec![self.nodes]),
            (NODE_THRESHOLD, vec![self.nodes]),
            (LEAF_VALUES, vec![self.leaves(), outputs]),
            (BASE, vec![outputs]),
        ]
        .map(|(name, shape)| (name.to_owned(), shape))
        .to_vec()
    }

    /// Checks sizes against their limits.
    pub(crate) fn check(self, outputs: usize) -> Result<(), ModelError> {
        if !(1..=MAX_TREES).contains(&self.trees) {
            return Err(ModelError::size("trees", self.trees, format!("1 to {MAX_TREES}")));
        }
        if !(self.trees..=MAX_NODES).contains(&self.nodes) {
            let expected = format!("{} to {MAX_NODES}", self.trees);
            return Err(ModelError::size("nodes of all trees", self.nodes, expected));
        }
        if !(self.nodes + self.trees).is_multiple_of(2) {
            let expected = "an odd number per tree";
            return Err(ModelError::size("nodes of all trees", self.nodes, expected));
        }
        let numbers = self.leaves().saturating_mul(outputs);
        if numbers > MAX_LEAF_NUMBERS {
            let expected = format!("at most {MAX_LEAF_NUMBERS}");
            return Err(ModelError::size("numbers in all leaves", numbers, expected));
        }
        Ok(())
    }
}
