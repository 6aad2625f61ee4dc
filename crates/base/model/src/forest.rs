//! Regression trees: as they are built, as they are stored, and as they are walked.
//!
//! Layout of a stored tree: its nodes lie breadth first. The children of its k-th split are the
//! nodes 1 + 2k and 2 + 2k. No child is stored, so no node can have two parents and no path can
//! come back.

use crate::description::{
    Architecture, BASE, Combine, ForestForm, LEAF, LEAF_VALUES, MAX_DEPTH, MAX_NODES, MAX_WIDTH,
    NODE_FEATURE, NODE_THRESHOLD, NetworkKind, Normalisation, TREE_NODES,
};

use crate::error::ModelError;
use crate::stored::{Numbers, StoredModel, Tensor};
use std::collections::{BTreeMap, VecDeque};

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

/// Trees that go down together.
const TOGETHER: usize = 8;
/// Bits of a link that name the input; [`MAX_WIDTH`] of them.
const FEATURE_BITS: u32 = 10;
const _: () = assert!(MAX_WIDTH == 1 << FEATURE_BITS);
const _: () = assert!(MAX_NODES <= 1 << (u32::BITS - FEATURE_BITS));

/// A node in eight bytes: a walk goes to `child`, or to the node after it where the input is above
/// the threshold. A leaf is its own child and nothing is above its threshold.
#[derive(Clone, Copy, Debug)]
struct Packed {
    threshold: f32,
    /// The child's index, then the input in the lowest bits.
    link: u32,
}

/// Trees that go down together.
#[derive(Clone, Debug)]
struct TreeGroup {
    /// Their numbers; the last one again where there are fewer.
    trees: [u32; TOGETHER],
    roots: [u32; TOGETHER],
    /// Splits on the longest path of any of them.
    depth: usize,
}

/// A forest that predicts. Shared freely between threads; what changes is in the caller's
/// [`ForestScratch`].
#[derive(Clone, Debug)]
pub struct ForestModel {
    architecture: Architecture,
    mean: Vec<f32>,
    inverse_deviation: Vec<f32>,
    nodes: Vec<Packed>,
    /// Per node where its numbers begin in `values`; 0 for a split.
    places: Vec<u32>,
    values: Vec<f32>,
    groups: Vec<TreeGroup>,
    /// What the sum of the leaves is multiplied by.
    scale: f32,
    base: Vec<f32>,
}

/// Room for one thread; made once, so that no prediction allocates.
#[derive(Clone, Debug)]
pub struct ForestScratch {
    inputs: Box<[f32; MAX_WIDTH]>,
    /// Per tree where its leaf's numbers begin.
    leaves: Vec<u32>,
    outputs: Vec<f32>,
}

impl ForestModel {
    /// The model of stored trees. The test vector is not replayed.
    pub fn new(stored: &StoredModel) -> Result<ForestModel, ModelError> {
        stored.check()?;
        let architecture = stored.description.architecture.clone();
        let NetworkKind::Forest(shape) = architecture.kind else {
            return Err(ModelError::Precision { found: "a layered", expected: "a forest" });
        };
        let outputs = architecture.outputs();
        let sizes = stored.i32s(TREE_NODES)?.iter().map(|size| *size as usize);
        let (features, thresholds) = (stored.i32s(NODE_FEATURE)?, stored.f32s(NODE_THRESHOLD)?);
        let (mut nodes, mut places, mut roots) = (Vec::new(), Vec::new(), Vec::new());
        let (mut first, mut leaves) = (0, 0);
        for (tree, size) in sizes.enumerate() {
            let own = first..first + size;
            let depth = depth(&features[own.clone()])
                .map_err(|problem| ModelError::Tree { tree, problem })?;
            roots.push((depth, first as u32));
            let mut child = first + 1;
            for node in own {
                let is_leaf = features[node] == LEAF;
                let (to, feature) =
                    if is_leaf { (node, 0) } else { (child, features[node] as u32) };
                let threshold = if is_leaf { f32::INFINITY } else { thresholds[node] };
                nodes.push(Packed { threshold, link: (to as u32) << FEATURE_BITS | feature });
                places.push(if is_leaf { (leaves * outputs) as u32 } else { 0 });
                leaves += usize::from(is_leaf);
                child += if is_leaf { 0 } else { 2 };
            }
            first += size;
        }
        let Normalisation { mean, deviation } = stored.description.normalisation.clone();
        Ok(ForestModel {
            mean,
            inverse_deviation: deviation.iter().map(|deviation| 1.0 / deviation).collect(),
            nodes,
            places,
            values: stored.f32s(LEAF_VALUES)?.to_vec(),
            groups: groups(&roots),
            scale: match shape.combine {
                Combine::Mean => 1.0 / shape.trees as f32,
                Combine::Sum => 1.0,
            },
            base: stored.f32s(BASE)?.to_vec(),
            architecture,
        })
    }

    /// Reads a model file and replays its test vector, which must be reproduced exactly.
    pub fn load(bytes: &[u8]) -> Result<ForestModel, ModelError> {
        let stored = StoredModel::from_bytes(bytes)?;
        let model = ForestModel::new(&stored)?;
        let outputs = model.replay(&stored.test_vector.inputs)?;
        stored.test_vector.check_outputs(&outputs, |found, expected| found == expected)?;
        Ok(model)
    }

    /// The shape.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Room for one thread.
    pub fn scratch(&self) -> ForestScratch {
        let trees = self.groups.len() * TOGETHER;
        ForestScratch {
            inputs: Box::new([0.0; MAX_WIDTH]),
            leaves: vec![0; trees],
            outputs: vec![0.0; self.architecture.outputs()],
        }
    }

    /// The outputs of all heads for `features`, taken before normalisation: base + scale * sum,
    /// the sum in the order of the trees. Errors: another number of features than inputs.
    pub fn predict<'s>(
        &self,
        scratch: &'s mut ForestScratch,
        features: &[f32],
    ) -> Result<&'s [f32], ModelError> {
        if features.len() != self.architecture.inputs {
            let (found, expected) = (features.len(), self.architecture.inputs);
            return Err(ModelError::size("features of a step", found, expected));
        }
        let normal = features.iter().zip(&self.mean).zip(&self.inverse_deviation);
        for (input, ((feature, mean), inverse)) in scratch.inputs.iter_mut().zip(normal) {
            *input = (feature - mean) * inverse;
        }
        for group in &self.groups {
            let leaves = self.walk(group, &scratch.inputs);
            for (tree, leaf) in group.trees.into_iter().zip(leaves) {
                scratch.leaves[tree as usize] = self.places[leaf as usize];
            }
        }
        let outputs = scratch.outputs.as_mut_slice();
        outputs.fill(0.0);
        let NetworkKind::Forest(shape) = self.architecture.kind else {
            return Ok(&scratch.outputs);
        };
        for place in &scratch.leaves[..shape.trees] {
            let leaf = &self.values[*place as usize..];
            for (sum, value) in outputs.iter_mut().zip(leaf) {
                *sum += value;
            }
        }
        for (output, base) in outputs.iter_mut().zip(&self.base) {
            *output = base + self.scale * *output;
        }
        Ok(&scratch.outputs)
    }

    /// The leaves a group of trees gives.
    #[inline(always)]
    fn walk(&self, group: &TreeGroup, inputs: &[f32; MAX_WIDTH]) -> [u32; TOGETHER] {
        const FEATURE: u32 = (1 << FEATURE_BITS) - 1;
        let mut reached = group.roots;
        for _ in 0..group.depth {
            for node_index in &mut reached {
                let node = self.nodes[*node_index as usize];
                let input = inputs[(node.link & FEATURE) as usize];
                *node_index = (node.link >> FEATURE_BITS) + u32::from(input > node.threshold);
            }
        }
        reached
    }

    /// The outputs of each of these inputs.
    pub(crate) fn replay(&self, inputs: &[Vec<f32>]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut scratch = self.scratch();
        inputs.iter().map(|row| Ok(self.predict(&mut scratch, row)?.to_vec())).collect()
    }
}

/// Trees by depth, in groups of [`TOGETHER`]; `roots` holds a depth and a first node per tree.
fn groups(roots: &[(usize, u32)]) -> Vec<TreeGroup> {
    let mut order: Vec<u32> = (0..roots.len() as u32).collect();
    order.sort_by_key(|tree| (roots[*tree as usize].0, *tree));
    let group = |trees: &[u32]| {
        let last = trees.len() - 1;
        let trees = std::array::from_fn(|lane| trees[lane.min(last)]);
        let depth = trees.iter().map(|tree| roots[*tree as usize].0).max().unwrap_or(0);
        TreeGroup { trees, roots: trees.map(|tree| roots[tree as usize].1), depth }
    };
    order.chunks(TOGETHER).map(group).collect()
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
