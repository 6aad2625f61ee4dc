//! Boosted trees against an exhaustive search, by hand, and on a known function.

use cachewright_model::learn::{BoostedTrees, BoostingSettings};
use cachewright_types::{Rng, Seed};

const WHOLE: BoostingSettings = BoostingSettings {
    trees: 1,
    leaves: 2,
    depth: 8,
    leaf_rows: 1,
    rate: 0.5,
    row_share: 1.0,
    redraw: 1,
    input_share: 1.0,
};

/// Targets 0 0 0 8 at 1 2 3 4, mean 2. Errors -2 -2 -2 6: the split above 3 gains 12 + 36, the
/// most. Leaves of half the mean errors, -1 and 3: predictions 1 1 1 5. A second tree splits alike,
/// with errors -1 -1 -1 3: 0.5 0.5 0.5 6.5.
#[test]
fn a_split_by_hand() {
    let (rows, targets) = ([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 8.0]);
    let single = BoostedTrees::fit(1, &rows, &targets, &WHOLE, Seed(0));
    assert_eq!([1.0, 3.0, 3.1, 9.0].map(|row| single.predict(&[row])), [1.0, 1.0, 5.0, 5.0]);
    let settings = BoostingSettings { trees: 2, ..WHOLE };
    let two = BoostedTrees::fit(1, &rows, &targets, &settings, Seed(0));
    assert_eq!([1.0, 4.0].map(|row| two.predict(&[row])), [0.5, 6.5]);
}

/// A leaf of the naive tree: its rows, and whether the search has been there.
fn gain(errors: &[f64], rows: &[usize], goes_up: impl Fn(usize) -> bool) -> Option<f64> {
    let square = |side: Vec<f64>| side.iter().sum::<f64>().powi(2) / side.len() as f64;
    let side = |up: bool| -> Vec<f64> {
        rows.iter().filter(|row| goes_up(**row) == up).map(|row| errors[*row]).collect()
    };
    let (up, down) = (side(true), side(false));
    let both: Vec<f64> = rows.iter().map(|row| errors[*row]).collect();
    (up.len() >= 5 && down.len() >= 5).then(|| square(up) + square(down) - square(both))
}

/// The leaves of a tree grown best first, by trying every value of every input.
fn naive_leaves(inputs: &[Vec<f64>], errors: &[f64], leaves: usize) -> Vec<Vec<usize>> {
    let mut grown = vec![(0..errors.len()).collect::<Vec<usize>>()];
    while grown.len() < leaves {
        let mut best = (1e-9, 0, 0, 0.0);
        for (index, rows) in grown.iter().enumerate() {
            for (number, input) in inputs.iter().enumerate() {
                for row in rows {
                    let threshold = input[*row];
                    if let Some(gain) = gain(errors, rows, |row| input[row] > threshold)
                        && gain > best.0 + 1e-9
                    {
                        best = (gain, index, number, threshold);
                    }
                }
            }
        }
        let (gain, index, number, threshold) = best;
        if gain <= 1e-9 {
            break;
        }
        let rows = grown.swap_remove(index);
        let (up, down) = rows.into_iter().partition(|row| inputs[number][*row] > threshold);
        grown.extend::<[Vec<usize>; 2]>([down, up]);
    }
    grown
}

fn random_rows(rng: &mut Rng, count: usize, inputs: usize) -> (Vec<f32>, Vec<f32>) {
    let rows: Vec<f32> = (0..count * inputs).map(|_| rng.below(40) as f32).collect();
    let target = |row: &[f32]| row[0] * 2.0 - row[1] + if row[2] > 20.0 { 30.0 } else { 0.0 };
    let noisy = |row: &[f32]| target(row) + rng.unit() as f32;
    let targets = rows.chunks_exact(inputs).map(noisy).collect();
    (rows, targets)
}

#[test]
fn trees_are_those_of_an_exhaustive_search() {
    let settings = BoostingSettings { trees: 3, leaves: 6, leaf_rows: 5, ..WHOLE };
    for seed in 0..5 {
        let (rows, targets) = random_rows(&mut Seed(seed).rng(), 120, 3);
        let trees = BoostedTrees::fit(3, &rows, &targets, &settings, Seed(seed));
        let input = |number: usize| {
            rows.iter().skip(number).step_by(3).map(|value| f64::from(*value)).collect()
        };
        let inputs: Vec<Vec<f64>> = (0..3).map(input).collect();
        let mean = targets.iter().map(|target| f64::from(*target)).sum::<f64>() / 120.0;
        let mut predictions = vec![mean; 120];
        for _ in 0..3 {
            let errors: Vec<f64> =
                targets.iter().zip(&predictions).map(|(t, p)| f64::from(*t) - p).collect();
            for leaf in naive_leaves(&inputs, &errors, 6) {
                let sum: f64 = leaf.iter().map(|row| errors[*row]).sum();
                leaf.iter().for_each(|row| predictions[*row] += 0.5 * sum / leaf.len() as f64);
            }
        }
        for (row, expected) in rows.chunks_exact(3).zip(&predictions) {
            let ours = f64::from(trees.predict(row));
            assert!((ours - expected).abs() < 1e-3, "seed {seed}: {ours}, expected {expected}");
        }
    }
}

#[test]
fn a_known_function_is_learned_the_same_way_each_time() {
    let (rows, targets) = random_rows(&mut Seed(7).rng(), 4000, 5);
    let settings = BoostingSettings::default();
    let trees = BoostedTrees::fit(5, &rows, &targets, &settings, Seed(1));
    let again = BoostedTrees::fit(5, &rows, &targets, &settings, Seed(1));
    assert_eq!(trees, again);
    assert_ne!(trees, BoostedTrees::fit(5, &rows, &targets, &settings, Seed(2)));
    let (mut places, mut together) = (Vec::new(), Vec::new());
    trees.predict_all(&rows, &mut places, &mut together);
    let alone: Vec<f32> = rows.chunks_exact(5).map(|row| trees.predict(row)).collect();
    assert_eq!(together, alone);
    let mean = targets.iter().sum::<f32>() / 4000.0;
    let spread: f32 = targets.iter().map(|target| (target - mean).powi(2)).sum();
    let unexplained: f32 = targets.iter().zip(&alone).map(|(t, p)| (t - p).powi(2)).sum();
    assert!(unexplained < 0.05 * spread, "{unexplained} of {spread}");
    assert!(trees.bytes() > 32 * 12, "{} bytes", trees.bytes());
}

#[test]
fn rows_without_a_pattern_and_no_rows_give_the_mean() {
    let none = BoostedTrees::fit(2, &[], &[], &BoostingSettings::default(), Seed(1));
    assert_eq!(none.predict(&[1.0, 2.0]), 0.0);
    let same = BoostedTrees::fit(1, &[4.0; 50], &[3.0; 50], &BoostingSettings::default(), Seed(1));
    assert_eq!(same.predict(&[f32::INFINITY]), 3.0);
}
