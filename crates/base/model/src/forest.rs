//! The walk down regression trees.
//!
//! For: predictions of random forests and boosted trees, several outputs at once. Must never know:
//! how trees are stored (see `trees`) or grown. A walk has no branch that depends on data: a leaf
//! is its own child. Eight trees of like depth are walked together, so that their memory accesses
//! overlap. Invariant: leaves are summed in f32 in the order of the trees, so all machines give the
//! same bits.

use crate::description::{Architecture, MAX_WIDTH, NetworkKind, Normalisation};
use crate::error::ModelError;
use crate::forest_shape::{
    BASE, Combine, LEAF, LEAF_VALUES, MAX_NODES, NODE_FEATURE, NODE_THRESHOLD, TREE_NODES,
};
use crate::stored::StoredModel;

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
            let depth = crate::trees::depth(&features[own.clone()])
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
