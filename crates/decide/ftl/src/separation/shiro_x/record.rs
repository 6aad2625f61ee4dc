//! What ways moved, window by window, and whether another one is better beyond the noise.
//!
//! For: the choice of `shiro-x` among its ways. Must never know: drives, streams. Units: pages
//! moved in small. Design of Cachewright. Ways are compared in pairs, window by window, so that
//! what all of them share is no noise. A window counts 0.95 times as much as the next. With
//! weights w and differences d, the sum of w d has a standard error of sqrt(V sum w^2). V is the
//! weighted variance of d.

/// Ways that are compared.
pub const COMPARED: usize = 4;
/// How much a window counts for, of the window after it.
const KEEP: f64 = 0.95;
/// Windows before the first choice.
pub const WARM_WINDOWS: u64 = 25;
/// Another way is chosen if it moves less than this share of what the present one moves.
const BETTER: f64 = 0.97;

/// Pages that each way moved in a window; infinitely many of a way that cannot be followed.
pub type MovedByWay = [f64; COMPARED];

/// Weighted sums over windows.
#[derive(Clone, Debug, Default)]
pub struct WindowSums {
    windows: u64,
    weight: f64,
    /// Of the squares of weights.
    weight_squares: f64,
    moved: MovedByWay,
    /// Of the squares of differences.
    difference_squares: [MovedByWay; COMPARED],
}

impl WindowSums {
    /// Counts a window.
    pub fn add(&mut self, moved: &MovedByWay) {
        self.windows += 1;
        self.weight = KEEP * self.weight + 1.0;
        self.weight_squares = KEEP * KEEP * self.weight_squares + 1.0;
        for (first, own) in moved.iter().enumerate() {
            self.moved[first] = KEEP * self.moved[first] + own;
            for (second, its) in moved.iter().enumerate() {
                let squares = &mut self.difference_squares[first][second];
                *squares = KEEP * *squares + (own - its) * (own - its);
            }
        }
    }

    /// The way to follow after `present`: the one that moved least, if it moved less by enough and
    /// by `certainty` standard errors.
    pub fn choose(&self, present: usize, certainty: f64) -> usize {
        let score = |way: &usize| self.moved[*way];
        let best = (0..COMPARED).min_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(present);
        if self.windows <= WARM_WINDOWS || score(&best) >= BETTER * score(&present) {
            return present;
        }
        // A way that cannot be followed has no noise: it is left at once.
        let gain = score(&present) - score(&best);
        if gain < certainty * self.noise(present, best) { present } else { best }
    }

    /// The standard error of the difference of two sums.
    fn noise(&self, first: usize, second: usize) -> f64 {
        let mean = (self.moved[first] - self.moved[second]) / self.weight;
        let variance = self.difference_squares[first][second] / self.weight - mean * mean;
        (variance.max(0.0) * self.weight_squares).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(windows: &[MovedByWay]) -> WindowSums {
        let mut record = WindowSums::default();
        windows.iter().for_each(|window| record.add(window));
        record
    }

    /// Way 1 moves 10 fewer in every window: no noise. Way 2 moves 100 fewer and 70 more in turn:
    /// it is as good over time and has a standard error of about 85 times the root of the weights'
    /// squares.
    #[test]
    fn what_varies_is_believed_later() {
        let mut windows = vec![[100.0, 90.0, 100.0, 200.0]; WARM_WINDOWS as usize];
        assert_eq!(record(&windows).choose(0, 2.0), 0, "not warm");
        windows.push([100.0, 90.0, 100.0, 200.0]);
        assert_eq!(record(&windows).choose(0, 2.0), 1);
        assert_eq!(record(&windows).choose(1, 2.0), 1);
        let varied =
            |turn: u64| [100.0, 98.0, if turn.is_multiple_of(2) { 0.0 } else { 170.0 }, 200.0];
        let found = record(&(0..200).map(varied).collect::<Vec<MovedByWay>>());
        assert_eq!((found.choose(0, 0.0), found.choose(0, 2.0)), (2, 0));
        assert!((found.noise(0, 2) - 85.0 * (1.0 / (1.0 - KEEP * KEEP)).sqrt()).abs() < 1.0);
    }

    #[test]
    fn little_less_is_not_better() {
        assert_eq!(record(&[[100.0, 98.0, 150.0, 99.0]; 50]).choose(0, 0.0), 0);
    }

    #[test]
    fn a_way_that_cannot_be_followed_is_left() {
        let mut windows = vec![[50.0, 90.0, 49.0, 70.0]; 50];
        windows.push([f64::INFINITY, 90.0, 49.0, 70.0]);
        assert_eq!(record(&windows).choose(0, 2.0), 2);
        windows.push([f64::INFINITY; COMPARED]);
        assert_eq!(record(&windows).choose(2, 2.0), 2);
    }

    proptest! {
        /// The sums are those over a list of all windows.
        #[test]
        fn sums_are_those_of_a_list(
            windows in prop::collection::vec(prop::array::uniform4(0_u32..1000), 1..90),
        ) {
            let windows: Vec<MovedByWay> =
                windows.iter().map(|window| window.map(f64::from)).collect();
            let found = record(&windows);
            let weights: Vec<f64> =
                (0..windows.len()).rev().map(|back| KEEP.powi(back as i32)).collect();
            let sum = |value: &dyn Fn(&MovedByWay) -> f64| -> f64 {
                weights.iter().zip(&windows).map(|(weight, window)| weight * value(window)).sum()
            };
            let whole: f64 = weights.iter().sum();
            let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
            for (first, second) in [(0, 1), (2, 3), (3, 1)] {
                let mean = sum(&|window| window[first] - window[second]) / whole;
                let variance =
                    sum(&|window| (window[first] - window[second] - mean).powi(2)) / whole;
                let error = (found.noise(first, second).powi(2) - variance * squares).abs();
                prop_assert!(error < 1e-6 * (1.0 + variance * squares), "{error}");
            }
        }
    }
}
