//! The lifetime up to which a page counts as short-living.
//!
//! For: the first threshold at the inflection point and its adjustment by the paper's Algorithm 1.
//! Must never know: pages, the model that is trained with it. Units: lifetimes in host page writes;
//! percentiles in 0..=100. Source: Shiro, section III-B; where the printed step rules lost their
//! signs, the sentences beside them decide (rules 2 and 3 decrement). A lifetime equal to the
//! threshold is short. The inflection point is the last lifetime before the tail; writers with one
//! fixed period would otherwise never be short.
//!
//! Settled here: a candidate cannot win if its percentile is not within (0, 100). Nor can one that
//! leaves less than a share of the lifetimes on one side. Taken as the nearest lifetime, as it once
//! was, it ran away to the shortest or longest there is. Where none of the three can win, the
//! window begins anew at its inflection point among the values that can. No value is below the
//! floor.

use super::light_model::{self, Observed};
use cachewright_types::Seed;

/// Fewest lifetimes that say anything about a distribution.
const MIN_LIFETIMES: usize = 32;
/// The step at the start, in percentiles.
const FIRST_STEP: i32 = 5;
/// The longest step, in percentiles.
const LONGEST_STEP: i32 = 10;

/// The threshold and the memory of its last adjustment.
#[derive(Clone, Debug)]
pub struct Threshold {
    value: Option<u32>,
    step: i32,
    direction: i32,
    fixed: bool,
    guard: Guard,
    seed: Seed,
}

/// What no threshold may do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guard {
    /// Leave fewer lifetimes on one side, as a share of all.
    pub min_class_share: f64,
    /// Lie below this.
    pub floor: u32,
}

/// Values that a threshold may take in a window: from the first on, below the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed(u32, u32);

impl Allowed {
    fn has(self, value: u32) -> bool {
        (self.0..self.1).contains(&value)
    }
}

impl Guard {
    /// The values that split sorted lifetimes; none if there are no such values.
    fn allowed(self, sorted: &[u32]) -> Option<Allowed> {
        let part = |share: f64| share * sorted.len() as f64;
        let lowest = (part(self.min_class_share).ceil() as usize).saturating_sub(1);
        let first = (*sorted.get(lowest)?).max(self.floor);
        let above = sorted.get(part(1.0 - self.min_class_share).floor() as usize);
        let found = Allowed(first, above.map_or(u32::MAX, |value| *value));
        found.has(first).then_some(found)
    }
}

impl Threshold {
    /// No threshold yet; `seed` draws the samples of the light models. Fixed thresholds are taken
    /// as they come, others under guard.
    pub fn new(guard: Guard, seed: Seed) -> Threshold {
        Threshold { value: None, step: FIRST_STEP, direction: 0, fixed: false, guard, seed }
    }

    /// The threshold, once a window had lifetimes.
    pub fn value(&self) -> Option<u32> {
        self.value
    }

    /// Takes a threshold for good: that of a model which is not trained any more.
    pub fn fix(&mut self, value: u32) {
        (self.value, self.fixed) = (Some(value), true);
    }

    /// A window ended. Returns whether its lifetimes could be split, or need not be. One with fewer
    /// than 32, or whose lifetimes cannot be split, changes nothing.
    pub fn adjust(&mut self, window: u64, observed: &Observed<'_>) -> bool {
        if self.fixed || observed.all.len() < MIN_LIFETIMES {
            return self.fixed;
        }
        let mut sorted = observed.all.to_vec();
        sorted.sort_unstable();
        let Some(allowed) = self.guard.allowed(&sorted) else { return false };
        let Some(previous) = self.value else {
            self.value = Some(inflection(&sorted, allowed));
            return true;
        };
        let p = percentile_of(&sorted, previous);
        let accuracy = |value: u32| {
            let seed = self.seed.derive(&format!("window {window}"));
            light_model::accuracy(observed, value, seed)
        };
        let mut best: Option<(f64, u32, i32)> = None;
        // The old threshold first, so that it stays when nothing is better.
        for direction in [0, -1, 1] {
            let Some(value) = value_at(&sorted, p + f64::from(direction * self.step)) else {
                continue;
            };
            let value = value.max(self.guard.floor);
            if !allowed.has(value) {
                continue;
            }
            let found = accuracy(value);
            if best.is_none_or(|(best_accuracy, _, _)| found > best_accuracy) {
                best = Some((found, value, direction));
            }
        }
        let Some((_, value, direction)) = best else {
            self.value = Some(inflection(&sorted, allowed));
            (self.step, self.direction) = (FIRST_STEP, 0);
            return true;
        };
        self.value = Some(value);
        self.step = next_step(self.step, self.direction, direction);
        self.direction = direction;
        true
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
/// point. Both axes are scaled to `[0, 1]`; the first among equals of those allowed wins.
fn inflection(sorted: &[u32], allowed: Allowed) -> u32 {
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else { return allowed.0 };
    let width = (sorted.len() - 1).max(1) as f64;
    let height = f64::from(last - first).max(1.0);
    let (mut best, mut farthest) = (allowed.0, f64::NEG_INFINITY);
    for (i, lifetime) in sorted.iter().enumerate() {
        let distance = i as f64 / width - f64::from(lifetime - first) / height;
        if distance > farthest && allowed.has(*lifetime) {
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

/// The value at a percentile; none outside (0, 100).
fn value_at(sorted: &[u32], percentile: f64) -> Option<u32> {
    if percentile <= 0.0 || percentile >= 100.0 {
        return None;
    }
    let last = sorted.len().saturating_sub(1);
    sorted.get((percentile / 100.0 * last as f64).round() as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Allowed = Allowed(0, u32::MAX);
    const GUARD: Guard = Guard { min_class_share: 0.05, floor: 0 };

    #[test]
    fn the_inflection_point_of_a_long_tail() {
        // Scaled: (0, 0), (1/5, 1/99), (2/5, 2/99), (3/5, 3/99), (4/5, 49/99), (1, 1);
        // distances 0, .190, .380, .570, .305, 0.
        let sorted = [1, 2, 3, 4, 50, 100];
        assert_eq!(inflection(&sorted, ANY), 4);
        assert_eq!(inflection(&sorted, Allowed(5, 100)), 50, "the farthest of those allowed");
        assert_eq!(inflection(&sorted, Allowed(7, 40)), 7, "none of them");
        assert_eq!(inflection(&[5, 5, 5], ANY), 5);
        assert_eq!(inflection(&[], ANY), 0);
    }

    #[test]
    fn percentiles_and_values_are_inverse() {
        let sorted = [10, 20, 30, 40, 50];
        assert_eq!(percentile_of(&sorted, 30), 50.0);
        assert_eq!(
            [50.0, 56.0, 63.0].map(|p| value_at(&sorted, p)),
            [Some(30), Some(30), Some(40)]
        );
        assert_eq!([-4.0, 0.0, 100.0, 104.0].map(|p| value_at(&sorted, p)), [None; 4]);
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
        let mut threshold = Threshold::new(GUARD, Seed(1));
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
    fn the_floor_holds_from_the_first_window_on() {
        let (lifetimes, rows) = clear_cut();
        let observed = Observed { all: &lifetimes, lifetimes: &lifetimes, inputs: 2, rows: &rows };
        let mut threshold = Threshold::new(Guard { floor: 200, ..GUARD }, Seed(1));
        threshold.adjust(0, &observed);
        assert!(threshold.value().unwrap() >= 200, "the inflection point lies below");
        for window in 1..9 {
            threshold.adjust(window, &observed);
            assert!(threshold.value().unwrap() >= 200);
        }
        let mut threshold = Threshold::new(Guard { floor: 2000, ..GUARD }, Seed(1));
        assert!(!threshold.adjust(0, &observed), "all are shorter");
        assert_eq!(threshold.value(), None);
    }

    /// Random lifetimes of many forms, and rows that say nothing or all: no window leaves less than
    /// a twentieth on either side, where the values allow it.
    #[test]
    fn no_window_collapses() {
        let mut rng = Seed(12).rng();
        for trial in 0..40 {
            let guard = Guard { min_class_share: 0.05, floor: rng.below(40) as u32 };
            let mut threshold = Threshold::new(guard, Seed(trial));
            for window in 0..30 {
                let bits = 3 + rng.below(12);
                let most = 1 + rng.below(1 << bits);
                let ones = rng.below(100);
                let lifetimes: Vec<u32> = (0..500)
                    .map(|_| if rng.below(100) < ones { 1 } else { 1 + rng.below(most) as u32 })
                    .collect();
                let rows: Vec<f32> = match trial % 2 {
                    0 => lifetimes.iter().map(|l| *l as f32 / most as f32).collect(),
                    _ => lifetimes.iter().map(|_| rng.unit() as f32).collect(),
                };
                let (all, inputs) = (&lifetimes[..], 1);
                let observed = Observed { all, lifetimes: all, inputs, rows: &rows };
                let before = threshold.value();
                let possible = threshold.adjust(window, &observed);
                let Some(value) = threshold.value().filter(|_| possible) else {
                    assert_eq!(threshold.value(), before, "nothing to split changes nothing");
                    continue;
                };
                assert!(value >= guard.floor);
                let short = lifetimes.iter().filter(|l| **l <= value).count();
                assert!((25..=475).contains(&short), "{short} of 500 up to {value}");
            }
        }
    }

    #[test]
    fn few_lifetimes_change_nothing() {
        let mut threshold = Threshold::new(GUARD, Seed(1));
        let lifetimes = &[1; 31];
        threshold.adjust(0, &Observed { all: lifetimes, lifetimes, inputs: 1, rows: &[0.0; 31] });
        assert_eq!((threshold.value(), threshold.step), (None, 5));
    }
}
