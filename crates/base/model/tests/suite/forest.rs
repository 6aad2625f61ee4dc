//! Forests predict what a recursive walk predicts, come back from files bit by bit, and whatever is
//! wrong with one is named, never a panic.

#![allow(clippy::unwrap_used)]

use cachewright_model::{
    Combine, FloatModel, Forest, ForestModel, Int8Model, Model, ModelError, NetworkKind, Numbers,
    OUTPUT_ONE, StoredModel, Tree, TreeNode, quantise,
};
use cachewright_testkit::models;
use cachewright_testkit::models::{random_forest, sequence, signed, stored_forest};
use cachewright_types::Seed;
use proptest::prelude::*;

/// The slow model: a recursive walk, then a sum in the order of the trees.
fn slow(forest: &Forest, inputs: &[f32]) -> Vec<f32> {
    fn leaf<'t>(tree: &'t Tree, at: usize, inputs: &[f32]) -> &'t [f32] {
        match &tree.nodes[at] {
            TreeNode::Leaf(values) => values,
            TreeNode::Split { feature, threshold, left, right } => {
                leaf(tree, if inputs[*feature] > *threshold { *right } else { *left }, inputs)
            }
        }
    }
    let mut sum = vec![0.0_f32; forest.base.len()];
    for tree in &forest.trees {
        for (sum, value) in sum.iter_mut().zip(leaf(tree, 0, inputs)) {
            *sum += value;
        }
    }
    let scale = match forest.combine {
        Combine::Mean => 1.0 / forest.trees.len() as f32,
        Combine::Sum => 1.0,
    };
    sum.iter().zip(&forest.base).map(|(sum, base)| base + scale * sum).collect()
}

fn small() -> StoredModel {
    stored_forest(&random_forest(3, 2, 5, 9, Combine::Mean, 1), 3, 1)
}

#[test]
fn two_trees_worked_by_hand() {
    let split =
        |feature, threshold, left, right| TreeNode::Split { feature, threshold, left, right };
    let leaf = |a, b| TreeNode::Leaf(vec![a, b]);
    // x0 > 0.5 ? (x1 > 2 ? (4, 40) : (2, 20)) : (1, 10), and a stump of (5, 7).
    let first = vec![
        split(0, 0.5, 2, 1),
        split(1, 2.0, 3, 4),
        leaf(1.0, 10.0),
        leaf(2.0, 20.0),
        leaf(4.0, 40.0),
    ];
    let trees = vec![Tree { nodes: first }, Tree { nodes: vec![leaf(5.0, 7.0)] }];
    let mut forest = Forest { trees, combine: Combine::Sum, base: vec![0.0, 100.0] };
    // Inputs are (feature - i) / (i + 1): x0 is the first feature, x1 half of the second less 1.
    let predict = |forest: &Forest, features: [f32; 2]| {
        let model = ForestModel::new(&stored_forest(forest, 2, 1)).unwrap();
        model.predict(&mut model.scratch(), &features).unwrap().to_vec()
    };
    assert_eq!(predict(&forest, [0.5, 0.0]), [6.0, 117.0], "not above: left");
    assert_eq!(predict(&forest, [0.6, 5.0]), [7.0, 127.0]);
    assert_eq!(predict(&forest, [0.6, 5.1]), [9.0, 147.0]);
    assert_eq!(predict(&forest, [f32::NAN, 9.0]), [6.0, 117.0], "not a number: left");
    forest.combine = Combine::Mean;
    assert_eq!(predict(&forest, [0.6, 5.1]), [4.5, 123.5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_forest_predicts_what_a_recursive_walk_does(
        inputs in 1..40_usize,
        outputs in 1..4_usize,
        trees in 1..40_usize,
        splits in 0..60_usize,
        mean in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let combine = if mean { Combine::Mean } else { Combine::Sum };
        let forest = random_forest(inputs, outputs, trees, splits, combine, seed);
        let stored = stored_forest(&forest, inputs, seed);
        let bytes = stored.to_bytes().unwrap();
        prop_assert_eq!(&StoredModel::from_bytes(&bytes).unwrap(), &stored);
        let model = ForestModel::load(&bytes).unwrap();
        let mut scratch = model.scratch();
        let rows = sequence(&mut Seed(seed).derive("rows").rng(), inputs, 20);
        for row in rows.chunks_exact(inputs) {
            let normal: Vec<f32> = row
                .iter()
                .enumerate()
                .map(|(i, x)| (x - i as f32) * (1.0 / (i as f32 + 1.0)))
                .collect();
            let expected = slow(&forest, &normal);
            prop_assert_eq!(model.predict(&mut scratch, row).unwrap(), expected.as_slice());
        }
    }

    #[test]
    fn changed_tensors_give_a_model_or_an_error(
        changes in prop::collection::vec((0..95_usize, -2..4_i32), 0..3),
        moved in 0..3_i32,
    ) {
        let mut stored = small();
        let mut change = |name: &str, at: usize, to: &dyn Fn(i32) -> i32| {
            if let Some(Numbers::I32(numbers)) =
                stored.tensors.get_mut(name).map(|tensor| &mut tensor.numbers)
            {
                numbers[at] = to(numbers[at]);
            }
        };
        for (at, feature) in changes {
            change("node.feature", at, &|_| feature);
        }
        change("tree.nodes", 1, &|size| size + moved);
        change("tree.nodes", 2, &|size| size - moved);
        if let Ok(model) = ForestModel::new(&stored) {
            model.predict(&mut model.scratch(), &[0.0; 3]).unwrap();
        }
    }
}

#[test]
fn what_is_no_forest_is_named() {
    let change = |name: &str, at: usize, number: i32| {
        let mut stored = small();
        let Numbers::I32(numbers) = &mut stored.tensors.get_mut(name).unwrap().numbers else {
            panic!("expected whole numbers in {name}");
        };
        numbers[at] = number;
        stored.check().unwrap_err().to_string()
    };
    let error = change("node.feature", 0, 3);
    assert_eq!(error, "tree 0: found input 3 at a split, expected 0 to 2");
    let error = change("node.feature", 19, -1);
    assert!(error.starts_with("tree 1: found 19 nodes, its splits lead to "), "{error}");
    let error = change("tree.nodes", 0, -5);
    assert_eq!(error, "tree 0: found -5 nodes, expected 1 to 95");
    let error = change("tree.nodes", 4, 17);
    assert!(error.starts_with("tree 4: found 17 nodes, its splits lead to "), "{error}");
    let mut stored = small();
    stored.tensors.get_mut("node.feature").unwrap().numbers = Numbers::F32(vec![0.0; 95]);
    let error = stored.check().unwrap_err().to_string();
    assert_eq!(error, "tensor `node.feature`: found numbers of type F32, expected I32");
}

#[test]
fn a_path_that_is_too_long_is_refused() {
    let mut nodes = Vec::new();
    for at in 0..65 {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        nodes.push(TreeNode::Split { feature: 0, threshold: at as f32, left, right });
        nodes.push(TreeNode::Leaf(vec![0.0]));
    }
    nodes.push(TreeNode::Leaf(vec![1.0]));
    let forest = Forest { trees: vec![Tree { nodes }], combine: Combine::Sum, base: vec![0.0] };
    let description = models::forest_description(&forest, 1);
    let error = StoredModel::forest(description, &forest, vec![vec![0.0]]).unwrap_err();
    assert_eq!(error.to_string(), "tree 0: found a path of 65 splits, expected at most 64");
}

#[test]
fn a_test_vector_must_be_reproduced_exactly() {
    let mut stored = small();
    let output = &mut stored.test_vector.outputs[2][1];
    *output = f32::from_bits(output.to_bits() + 1);
    let error = ForestModel::load(&stored.to_bytes().unwrap()).unwrap_err();
    assert!(matches!(error, ModelError::NotReproduced { step: 2, output: 1, .. }), "{error}");
}

#[test]
fn forests_and_layers_are_told_apart() {
    let stored = small();
    let error = FloatModel::new(&stored).unwrap_err().to_string();
    assert_eq!(error, "found a forest model, expected one of layers");
    let error = quantise(&stored, &[&[0.0; 3]]).unwrap_err().to_string();
    assert_eq!(error, "found a forest model, expected one of layers");
    let layers = models::random_model(models::shape(NetworkKind::Mlp, 3, &[4], &[2]), 1.0, 1);
    let error = ForestModel::new(&layers).unwrap_err().to_string();
    assert_eq!(error, "found a layered model, expected a forest");
    let error = ForestModel::new(&stored)
        .map(|model| model.predict(&mut model.scratch(), &[0.0; 2]).unwrap_err().to_string());
    assert_eq!(error.unwrap(), "features of a step: found 2, expected 3");
}

#[test]
fn the_last_step_of_any_model_is_that_of_its_own_run() {
    for kind in [NetworkKind::Gru, NetworkKind::Lstm, NetworkKind::Mlp] {
        let stored = models::random_model(models::shape(kind, 3, &[7], &[2]), 1.0, 3);
        let features = sequence(&mut Seed(4).rng(), 3, 11);
        let float = FloatModel::new(&stored).unwrap();
        let whole = float.run(&mut float.zero_state(), &features).unwrap();
        let model = Model::load(&stored.to_bytes().unwrap()).unwrap();
        assert_eq!(model.last(&features).unwrap(), whole[20..]);
        let stored = models::random_int8(&stored, 3);
        let int8 = Int8Model::new(&stored).unwrap();
        let whole = int8.run(&mut int8.zero_state(), &features).unwrap();
        let whole: Vec<f32> = whole.iter().map(|output| *output as f32 / OUTPUT_ONE).collect();
        let model = Model::load(&stored.to_bytes().unwrap()).unwrap();
        assert_eq!(model.last(&features).unwrap(), whole[20..]);
        assert!(model.last(&features[1..]).is_err() && model.last(&[]).is_err());
    }
    let mut rng = Seed(5).rng();
    let row: Vec<f32> = (0..3).map(|_| signed(&mut rng)).collect();
    let model = Model::load(&small().to_bytes().unwrap()).unwrap();
    let Model::Forest(forest) = &model else { panic!("expected a forest") };
    let expected = forest.predict(&mut forest.scratch(), &row).unwrap().to_vec();
    assert_eq!(model.last(&[vec![9.0; 3], row].concat()).unwrap(), expected);
}
