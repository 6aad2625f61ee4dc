//! Regression trees as they are built and as they are stored.
//!
//! For: turning trees of any node order into tensors, and checking tensors that came from a file.
//! Must never know: how trees are grown, how they are walked fast (see `forest`). Layout: the nodes
//! of a tree lie breadth first. The children of its k-th split are the nodes 1 + 2k and 2 + 2k. No
//! child is stored, so no node can have two parents and no path can come back.

use std::collections::{BTreeMap, VecDeque};

use crate::description::{Architecture, NetworkKind};
use crate::error::ModelError;
use crate::forest_shape::{
    BASE, Combine, ForestForm, LEAF, LEAF_VALUES, MAX_DEPTH, MAX_NODES, NODE_FEATURE,
    NODE_THRESHOLD, TREE_NODES,
};
use crate::tensor::{Numbers, Tensor};

/// A node of a [`Tree`].
#[derive(Clone, Debug, PartialEq)]
pub enum TreeNode {
    /// Where the input is above the threshold the walk goes right, else (also where it is not a
    /// number) left.
    Split {
        /// Which input.
        feature: usize,
        /// Compared after normalisation.
        threshold: f32,
        /// Index of a node of the tree.
        left: usize,
        /// Index of a node of the tree.
        right: usize,
    },
    /// The end of a walk: a number per output.
    Leaf(Vec<f32>),
}

/// A regression tree; its root is node 0 and every other node has one parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// In any order after the root.
    pub nodes: Vec<TreeNode>,
}

/// Regression trees together: base + mean or sum of the leaves they give.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// Summed in this order, in f32.
    pub trees: Vec<Tree>,
    /// Mean or sum.
    pub combine: Combine,
    /// A number per output.
    pub base: Vec<f32>,
}

impl Forest {
    /// The kind of a model of these trees.
    pub fn kind(&self) -> NetworkKind {
        let nodes = self.trees.iter().map(|tree| tree.nodes.len()).sum();
        NetworkKind::Forest(ForestForm { trees: self.trees.len(), nodes, combine: self.combine })
    }

    /// The tensors of a model with these trees. Errors: a node that is reached twice or never, a
    /// leaf of another number of outputs, a tree that is too deep.
    pub(crate) fn tensors(
        &self,
        architecture: &Architecture,
    ) -> Result<BTreeMap<String, Tensor>, ModelError> {
        let outputs = architecture.outputs();
        let mut flat = Flat::default();
        for (number, tree) in self.trees.iter().enumerate() {
            let wrong = |problem| ModelError::Tree { tree: number, problem };
            flat.push(tree, outputs).map_err(wrong)?;
        }
        let (trees, nodes, leaves) =
            (flat.sizes.len(), flat.features.len(), flat.values.len() / outputs.max(1));
        let tensors = [
            (TREE_NODES, vec![trees], Numbers::I32(flat.sizes)),
            (NODE_FEATURE, vec![nodes], Numbers::I32(flat.features)),
            (NODE_THRESHOLD, vec![nodes], Numbers::F32(flat.thresholds)),
            (LEAF_VALUES, vec![leaves, outputs], Numbers::F32(flat.values)),
            (BASE, vec![self.base.len()], Numbers::F32(self.base.clone())),
        ];
        let named =
            |(name, shape, numbers): (&str, _, _)| (name.to_owned(), Tensor { shape, numbers });
        Ok(tensors.into_iter().map(named).collect())
    }
}

/// Trees breadth first, one after another.
#[derive(Default)]
struct Flat {
    sizes: Vec<i32>,
    features: Vec<i32>,
    thresholds: Vec<f32>,
    values: Vec<f32>,
}

impl Flat {
    fn push(&mut self, tree: &Tree, outputs: usize) -> Result<(), String> {
        let size = tree.nodes.len();
        if size == 0 || size > MAX_NODES {
            return Err(format!("found {size} nodes, expected 1 to {MAX_NODES}"));
        }
        let (mut waiting, mut reached) = (VecDeque::from([0_usize]), 0);
        while let Some(node) = waiting.pop_front() {
            reached += 1;
            if reached > size {
                return Err("found a node with two parents, expected one".to_owned());
            }
            match tree.nodes.get(node) {
                None => return Err(format!("found a child {node}, expected one below {size}")),
                Some(TreeNode::Split { feature, threshold, left, right }) => {
                    self.features.push(i32::try_from(*feature).unwrap_or(i32::MAX));
                    self.thresholds.push(*threshold);
                    waiting.extend([*left, *right]);
                }
                Some(TreeNode::Leaf(values)) => {
                    if values.len() != outputs {
                        let found = values.len();
                        return Err(format!("found {found} numbers in a leaf, expected {outputs}"));
                    }
                    self.features.push(LEAF);
                    self.thresholds.push(0.0);
                    self.values.extend_from_slice(values);
                }
            }
        }
        if reached < size {
            return Err(format!("found {} nodes that nothing leads to", size - reached));
        }
        self.sizes.push(size as i32);
        Ok(())
    }
}

/// Checks that the tensors of a stored forest ([`TREE_NODES`], [`NODE_FEATURE`]) are trees: whole
/// ones, of splits that ask for inputs there are, none too deep.
pub(crate) fn check(sizes: &[i32], features: &[i32], inputs: usize) -> Result<(), ModelError> {
    let mut left = features;
    for (tree, size) in sizes.iter().enumerate() {
        let own = usize::try_from(*size).ok().and_then(|size| left.split_at_checked(size));
        let Some((own, rest)) = own else {
            let problem = format!("found {size} nodes, expected 1 to {}", left.len());
            return Err(ModelError::Tree { tree, problem });
        };
        check_tree(own, inputs).map_err(|problem| ModelError::Tree { tree, problem })?;
        left = rest;
    }
    if left.is_empty() {
        return Ok(());
    }
    let expected = format!("{} as `{TREE_NODES}` says", features.len() - left.len());
    Err(ModelError::size(format!("nodes in `{NODE_FEATURE}`"), features.len(), expected))
}

fn check_tree(features: &[i32], inputs: usize) -> Result<(), String> {
    let known = |feature: i32| {
        feature == LEAF || usize::try_from(feature).is_ok_and(|feature| feature < inputs)
    };
    if let Some(feature) = features.iter().find(|feature| !known(**feature)) {
        return Err(format!("found input {feature} at a split, expected 0 to {}", inputs - 1));
    }
    let depth = depth(features)?;
    if depth > MAX_DEPTH {
        return Err(format!("found a path of {depth} splits, expected at most {MAX_DEPTH}"));
    }
    Ok(())
}

/// The splits on the longest path of a tree whose nodes lie breadth first. Errors: a node that no
/// split leads to, or a split whose children are missing.
pub(crate) fn depth(features: &[i32]) -> Result<usize, String> {
    // The nodes up to `level_end` are those of this depth and above.
    let (mut declared, mut level_end, mut depth) = (1_usize, 1_usize, 0);
    for (node, feature) in features.iter().enumerate() {
        if node >= declared {
            return Err(format!("found {} nodes, its splits lead to {declared}", features.len()));
        }
        if node == level_end {
            depth += 1;
            level_end = declared;
        }
        if *feature != LEAF {
            declared += 2;
        }
    }
    if declared == features.len() {
        return Ok(depth);
    }
    Err(format!("found {} nodes, its splits lead to {declared}", features.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_the_splits_of_the_longest_path() {
        assert_eq!(depth(&[LEAF]), Ok(0));
        assert_eq!(depth(&[0, LEAF, LEAF]), Ok(1));
        assert_eq!(depth(&[0, LEAF, 1, LEAF, LEAF]), Ok(2));
        assert_eq!(depth(&[0, 1, 1, LEAF, LEAF, LEAF, LEAF]), Ok(2));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for broken in [&[][..], &[0], &[0, LEAF], &[LEAF, LEAF, LEAF], &[0, 1, LEAF, LEAF]] {
            assert!(depth(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn nodes_in_any_order_become_breadth_first() {
        let split = |feature, left, right| TreeNode::Split { feature, threshold: 0.5, left, right };
        let leaf = |value| TreeNode::Leaf(vec![value]);
        // Root 0 -> (3, 1); 3 -> (4, 2).
        let nodes = vec![split(7, 3, 1), leaf(1.0), leaf(2.0), split(8, 4, 2), leaf(4.0)];
        let mut flat = Flat::default();
        flat.push(&Tree { nodes }, 1).unwrap();
        assert_eq!(flat.features, [7, 8, LEAF, LEAF, LEAF]);
        assert_eq!(flat.values, [1.0, 4.0, 2.0]);
    }

    #[test]
    fn circles_and_islands_are_refused() {
        let split = |left, right| TreeNode::Split { feature: 0, threshold: 0.0, left, right };
        let leaf = || TreeNode::Leaf(vec![0.0]);
        let push = |nodes| Flat::default().push(&Tree { nodes }, 1).unwrap_err();
        assert!(push(vec![split(0, 1), leaf(), leaf()]).contains("two parents"));
        assert!(push(vec![split(1, 1), leaf()]).contains("two parents"));
        assert!(push(vec![split(1, 9), leaf(), leaf()]).contains("found a child 9"));
        assert!(push(vec![leaf(), leaf()]).contains("nothing leads to"));
        assert!(push(vec![TreeNode::Leaf(vec![])]).contains("0 numbers in a leaf"));
    }
}
