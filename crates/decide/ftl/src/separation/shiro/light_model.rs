//! The light model that judges a candidate threshold.
//!
//! For: Algorithm 1's `LabelAndResample` and `TrainEvalLightModel`: logistic regression on a small
//! balanced sample, its accuracy on a held-out fifth. Must never know: pages, windows. Units:
//! accuracy in `[0, 1]`. Source: Shiro, section III-B, Algorithm 1. Cost: 4 M multiplications.

use cachewright_model::learn::{DescentSettings, LogisticRegression};
use cachewright_types::Seed;
use cachewright_types::seed::Rng;

/// Rows of each class in the sample that is learned.
const TRAIN_PER_CLASS: usize = 800;
/// Rows of each class in the sample that is judged.
const TEST_PER_CLASS: usize = 200;
/// The descent over the whole sample.
const DESCENT: DescentSettings = DescentSettings { steps: 60, rate: 1.0 };

/// Lifetimes of one window, and for some of them the inputs of the writes that began them.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// All lifetimes.
    pub all: &'a [u32],
    /// Those of the rows.
    pub lifetimes: &'a [u32],
    /// Numbers per row.
    pub inputs: usize,
    /// One row per entry of `lifetimes`, one after another.
    pub rows: &'a [f32],
}

/// How well a logistic regression separates lifetimes up to `threshold` from the others. The
/// accuracy is 0 if one side has no lifetime to train on or to test with. 0 if one side has no
/// lifetime to train on or to test with.
pub fn accuracy(observed: &Observed<'_>, threshold: u32, seed: Seed) -> f64 {
    let mut rng = seed.rng();
    let Some((train, test)) = samples(observed, threshold, &mut rng) else { return 0.0 };
    let model = LogisticRegression::fit(observed.inputs, &train, DESCENT);
    let right = test.iter().filter(|(row, short)| (model.logit(row) > 0.0) == *short);
    right.count() as f64 / test.len() as f64
}

type Sample<'a> = Vec<(&'a [f32], bool)>;

/// Balanced samples, drawn with replacement, for training and for testing. A fifth of the rows is
/// held out before anything is drawn, so that none is in both.
fn samples<'a>(
    observed: &Observed<'a>,
    threshold: u32,
    rng: &mut Rng,
) -> Option<(Sample<'a>, Sample<'a>)> {
    let mut groups = [const { Vec::new() }; 4];
    for (row, lifetime) in observed.lifetimes.iter().enumerate() {
        let held_out = row % 5 == 4;
        let short = *lifetime <= threshold;
        groups[2 * usize::from(held_out) + usize::from(short)].push(row);
    }
    if groups.iter().any(Vec::is_empty) {
        return None;
    }
    let mut draw = |groups: &[Vec<usize>], count: usize| {
        let mut sample = Vec::with_capacity(2 * count);
        for _ in 0..count {
            for (group, short) in groups.iter().zip([false, true]) {
                let row = group[rng.below(group.len() as u64) as usize];
                sample.push((row_of(observed, row), short));
            }
        }
        sample
    };
    let train = draw(&groups[..2], TRAIN_PER_CLASS);
    Some((train, draw(&groups[2..], TEST_PER_CLASS)))
}

fn row_of<'a>(observed: &Observed<'a>, row: usize) -> &'a [f32] {
    observed.rows.get(row * observed.inputs..(row + 1) * observed.inputs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_tells_is_learned_and_noise_is_not() {
        let mut rng = Seed(5).rng();
        let lifetimes: Vec<u32> = (0..1000).map(|_| rng.below(1000) as u32).collect();
        let telling: Vec<f32> = lifetimes.iter().map(|l| *l as f32 / 1000.0).collect();
        let noise: Vec<f32> = lifetimes.iter().map(|_| rng.unit() as f32).collect();
        let judge = |rows: &[f32]| {
            let (all, lifetimes) = (&lifetimes, &lifetimes);
            accuracy(&Observed { all, lifetimes, inputs: 1, rows }, 300, Seed(1))
        };
        assert!(judge(&telling) > 0.85, "{}", judge(&telling));
        assert!((0.4..0.6).contains(&judge(&noise)), "{}", judge(&noise));
        assert_eq!([judge(&telling), judge(&noise)], [0.975, 0.51], "pinned to the digit");
    }

    #[test]
    fn one_class_alone_cannot_be_judged() {
        let observed = Observed { all: &[], lifetimes: &[5; 100], inputs: 1, rows: &[1.0; 100] };
        assert_eq!(accuracy(&observed, 5, Seed(1)), 0.0);
        assert_eq!(accuracy(&observed, 4, Seed(1)), 0.0);
    }
}
