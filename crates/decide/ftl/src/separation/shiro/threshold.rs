//! The lifetime up to which a page counts as short-living.
//!
//! For: the first threshold at the inflection point and its adjustment by the paper's Algorithm 1.
//! Must never know: pages, the model that is trained with it. Units: lifetimes in host page writes;
//! percentiles in 0..=100. Source: Shiro, section III-B; where the printed step rules lost their
//! signs, the sentences beside them decide (rules 2 and 3 decrement). A lifetime equal to the
//! threshold is short: the inflection point is the last lifetime before the tail, and writers with
//! one fixed period would otherwise never be short.

use super::logistic;
use cachewright_types::Seed;

/// Fewest lifetimes that say anything about a distribution.
const LEAST_LIFETIMES: usize = 32;
/// The step at the start, in percentiles.
const FIRST_STEP: i32 = 5;
/// The longest step, in percentiles.
const LONGEST_STEP: i32 = 10;

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

/// The threshold and the memory of its last adjustment.
#[derive(Clone, Debug)]
pub struct Threshold {
    value: Option<u32>,
    step: i32,
    direction: i32,
    fixed: bool,
    /// Least and most value.
    bounds: Option<(u32, u32)>,
    seed: Seed,
}

impl Threshold {
    /// No threshold yet; `seed` draws the samples of the light models.
    pub fn new(seed: Seed) -> Threshold {
        Threshold { value: None, step: FIRST_STEP, direction: 0, fixed: false, bounds: None, seed }
    }

    /// Keeps every value found within these bounds (fixed ones are taken as they come).
    pub fn keep_within(&mut self, least: u32, most: u32) {
        self.bounds = Some((least, most.max(least)));
    }

    /// The threshold, once a window had lifetimes.
    pub fn value(&self) -> Option<u32> {
        self.value
    }

    /// Takes a threshold for good: that of a model which is not trained any more.
    pub fn fix(&mut self, value: u32) {
        (self.value, self.fixed) = (Some(value), true);
    }

    /// A window ended. A window with fewer than 32 lifetimes changes nothing.
    pub fn adjust(&mut self, window: u64, observed: &Observed<'_>) {
        if self.fixed || observed.all.len() < LEAST_LIFETIMES {
            return;
        }
        let mut sorted = observed.all.to_vec();
        sorted.sort_unstable();
        let Some(previous) = self.value else {
            self.value = Some(self.bounded(inflection(&sorted)));
            return;
        };
        let p = percentile_of(&sorted, previous);
        let accuracy = |value: u32| {
            let seed = self.seed.derive(&format!("window {window}"));
            logistic::accuracy(observed, value, seed)
        };
        // The old threshold first, so that it stays when nothing is better.
        let kept = self.bounded(value_at(&sorted, p));
        let mut best = (accuracy(kept), kept, 0);
        for direction in [-1, 1] {
            let value = self.bounded(value_at(&sorted, p + f64::from(direction * self.step)));
            let found = accuracy(value);
            if found > best.0 {
                best = (found, value, direction);
            }
        }
        let (_, value, direction) = best;
        self.value = Some(value);
        self.step = next_step(self.step, self.direction, direction);
        self.direction = direction;
    }

    fn bounded(&self, value: u32) -> u32 {
        self.bounds.map_or(value, |(least, most)| value.clamp(least, most))
    }
}

/// The step after a window (Algorithm 1, "adjust step"), from the directions taken in the previous
/// and in this window.
fn next_step(step: i32, previous: i32, current: i32) -> i32 {
    let change = match (previous, current) {
        (0, 0) => 1,
        (0, _) => 0,
        (_, 0) => -1,
        (previous, current) if previous != current => -1,
        _ => 1,
    };
    (step + change).abs().clamp(1, LONGEST_STEP)
}

/// The lifetime at which the sorted curve is farthest below the line from its first to its last
/// point, both axes scaled to `[0, 1]`; the first among equals.
pub fn inflection(sorted: &[u32]) -> u32 {
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else { return 0 };
    let width = (sorted.len() - 1).max(1) as f64;
    let height = f64::from(last - first).max(1.0);
    let (mut best, mut farthest) = (first, 0.0);
    for (i, lifetime) in sorted.iter().enumerate() {
        let distance = i as f64 / width - f64::from(lifetime - first) / height;
        if distance > farthest {
            (best, farthest) = (*lifetime, distance);
        }
    }
    best
}

/// The percentile at which a value stands or would stand; the inverse of [`value_at`].
fn percentile_of(sorted: &[u32], value: u32) -> f64 {
    let index = sorted.partition_point(|lifetime| *lifetime <= value).saturating_sub(1);
    100.0 * index as f64 / sorted.len().saturating_sub(1).max(1) as f64
}

/// The value at a percentile; one outside 0..=100 is taken as the nearest.
fn value_at(sorted: &[u32], percentile: f64) -> u32 {
    let last = sorted.len().saturating_sub(1);
    let index = (percentile.clamp(0.0, 100.0) / 100.0 * last as f64).round() as usize;
    sorted.get(index.min(last)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inflection_point_of_a_long_tail() {
        // Scaled: (0, 0), (1/5, 1/99), (2/5, 2/99), (3/5, 3/99), (4/5, 49/99), (1, 1);
        // distances 0, .190, .380, .570, .305, 0.
        assert_eq!(inflection(&[1, 2, 3, 4, 50, 100]), 4);
        assert_eq!(inflection(&[5, 5, 5]), 5);
        assert_eq!(inflection(&[]), 0);
    }

    #[test]
    fn percentiles_and_values_are_inverse() {
        let sorted = [10, 20, 30, 40, 50];
        assert_eq!(percentile_of(&sorted, 30), 50.0);
        assert_eq!(value_at(&sorted, 50.0), 30);
        assert_eq!(value_at(&sorted, 56.0), 30);
        assert_eq!(value_at(&sorted, 63.0), 40);
        assert_eq!((value_at(&sorted, -4.0), value_at(&sorted, 104.0)), (10, 50));
        assert_eq!([5, 45, 1000].map(|value| percentile_of(&sorted, value)), [0.0, 75.0, 100.0]);
    }

    #[test]
    fn the_four_step_rules() {
        assert_eq!(next_step(5, 0, 0), 6, "no adjustment twice: look farther");
        assert_eq!(next_step(5, 1, 0), 4, "adjusted before, not now: finer");
        assert_eq!(next_step(5, 1, -1), 4, "back again: finer");
        assert_eq!(next_step(5, -1, -1), 6, "the same way: faster");
        assert_eq!(next_step(5, 0, 1), 5, "a first adjustment keeps the step");
        assert_eq!((next_step(10, 1, 1), next_step(1, 1, 0)), (10, 1), "within 1..=10");
    }

    /// 400 writes: half live for about 100 writes, half for about 1000, and the row says which.
    fn clear_cut() -> (Vec<u32>, Vec<f32>) {
        let mut rng = Seed(3).rng();
        let (mut lifetimes, mut rows) = (Vec::new(), Vec::new());
        for i in 0..400 {
            let long = i % 2 == 1;
            lifetimes.push(if long { 1000 } else { 100 } + rng.below(60) as u32);
            rows.extend([f32::from(u8::from(long)), rng.unit() as f32]);
        }
        (lifetimes, rows)
    }

    #[test]
    fn the_threshold_moves_to_where_a_light_model_separates_best() {
        let (lifetimes, rows) = clear_cut();
        let observed = Observed { all: &lifetimes, lifetimes: &lifetimes, inputs: 2, rows: &rows };
        let mut threshold = Threshold::new(Seed(1));
        threshold.adjust(0, &observed);
        let first = threshold.value().unwrap();
        assert!((100..160).contains(&first), "the last of the short: {first}");
        threshold.value = Some(130);
        for window in 1..12 {
            threshold.adjust(window, &observed);
        }
        let value = threshold.value().unwrap();
        assert!((150..1010).contains(&value), "between the classes: {value}");
    }

    #[test]
    fn bounds_hold_from_the_first_window_on() {
        let (lifetimes, rows) = clear_cut();
        let observed = Observed { all: &lifetimes, lifetimes: &lifetimes, inputs: 2, rows: &rows };
        for (bounds, expected) in [((200, 900), 200), ((2, 50), 50)] {
            let mut threshold = Threshold::new(Seed(1));
            threshold.keep_within(bounds.0, bounds.1);
            threshold.adjust(0, &observed);
            assert_eq!(threshold.value(), Some(expected));
            (1..9).for_each(|window| threshold.adjust(window, &observed));
            assert!((bounds.0..=bounds.1).contains(&threshold.value().unwrap()));
        }
    }

    #[test]
    fn few_lifetimes_change_nothing() {
        let mut threshold = Threshold::new(Seed(1));
        let lifetimes = &[1; 31];
        threshold.adjust(0, &Observed { all: lifetimes, lifetimes, inputs: 1, rows: &[0.0; 31] });
        assert_eq!((threshold.value(), threshold.step), (None, 5));
    }
}
