//! The time to move a disk's arm, as a function of the cylinders crossed.
//!
//! For: fitting the curve a + b sqrt(d-1) + c (d-1) to three published figures. Must never know:
//! sectors, rotation. Units: cylinders, nanoseconds. Source: Ruemmler and Wilkes, "An introduction
//! to disk drive modeling", IEEE Computer 27(3), 1994. Short seeks follow the square root of the
//! distance, long ones are linear.
//!
//! `a` is the published time to the next track. `b` and `c` give the longest seek the published
//! full stroke. Seeks between two random addresses, each byte as likely as any other, take the
//! published average. Outer cylinders hold more bytes, so they are weighted.

/// Bins of the arm's range in which the average is computed.
const BINS: usize = 512;

/// A fitted curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekCurve {
    next_track_ns: f64,
    root_ns: f64,
    linear_ns: f64,
}

/// The published figures of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekFigures {
    /// To the next cylinder.
    pub single_track_ns: u64,
    /// Between two random addresses.
    pub average_ns: u64,
    /// From the first cylinder to the last.
    pub full_stroke_ns: u64,
}

impl SeekCurve {
    /// The curve of a disk of `cylinders`. The `i`-th of equal parts of the arm's range holds a
    /// share of the bytes in proportion to `weight(i / parts)`. Errors: the smallest and largest
    /// average, in nanoseconds, for which a curve that never falls exists.
    pub fn fit(
        figures: SeekFigures,
        cylinders: u64,
        weight: impl Fn(f64) -> f64,
    ) -> Result<SeekCurve, (u64, u64)> {
        let a = figures.single_track_ns as f64;
        if cylinders < 3 {
            return Ok(SeekCurve { next_track_ns: a, root_ns: 0.0, linear_ns: 0.0 });
        }
        let (mean_root, mean_linear) = mean_distances(cylinders as f64, weight);
        let reach = (cylinders - 2) as f64;
        let rise = figures.full_stroke_ns as f64 - a;
        // All of the rise linear, and as much of it of the root as leaves the curve rising.
        let slowest_root = rise / (reach.sqrt() / 2.0);
        let average = |root: f64| a + root * mean_root + linear(rise, root, reach) * mean_linear;
        let (low, high) = (average(0.0), average(slowest_root));
        let wanted = figures.average_ns as f64;
        if rise < 0.0 || wanted < low.min(high) || wanted > low.max(high) {
            return Err((low.max(0.0) as u64, high.max(0.0) as u64));
        }
        let share = if high > low { (wanted - low) / (high - low) } else { 0.0 };
        let root_ns = slowest_root * share;
        Ok(SeekCurve { next_track_ns: a, root_ns, linear_ns: linear(rise, root_ns, reach) })
    }

    /// The time to cross so many cylinders; 0 for none.
    #[inline]
    pub fn time_ns(&self, cylinders: u64) -> u64 {
        if cylinders == 0 {
            return 0;
        }
        let more = (cylinders - 1) as f64;
        (self.next_track_ns + self.root_ns * more.sqrt() + self.linear_ns * more).round() as u64
    }
}

/// The linear factor with which root and line together rise by `rise` over `reach` cylinders.
fn linear(rise: f64, root: f64, reach: f64) -> f64 {
    (rise - root * reach.sqrt()) / reach
}

/// Means of sqrt(d) and d over two random addresses, d in cylinders.
fn mean_distances(cylinders: f64, weight: impl Fn(f64) -> f64) -> (f64, f64) {
    let weights: Vec<f64> = (0..BINS).map(|bin| weight((bin as f64 + 0.5) / BINS as f64)).collect();
    let total: f64 = weights.iter().sum();
    let width = cylinders / BINS as f64;
    let (mut root, mut line) = (0.0, 0.0);
    for apart in 0..BINS {
        let pairs: f64 = weights.iter().zip(&weights[apart..]).map(|(x, y)| x * y).sum();
        if apart == 0 {
            // Two uniform points of one bin: E sqrt|x-y| = 8/15, E|x-y| = 1/3 of its width.
            root += pairs * width.sqrt() * 8.0 / 15.0;
            line += pairs * width / 3.0;
        } else {
            let distance = width * apart as f64;
            root += 2.0 * pairs * distance.sqrt();
            line += 2.0 * pairs * distance;
        }
    }
    (root / (total * total), line / (total * total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    #[test]
    fn the_curve_meets_its_three_figures_and_never_falls() {
        let figures = SeekFigures {
            single_track_ns: 800_000,
            average_ns: 8_500_000,
            full_stroke_ns: 19_000_000,
        };
        let curve = SeekCurve::fit(figures, 100_000, |_| 1.0).unwrap();
        assert_eq!((curve.time_ns(0), curve.time_ns(1)), (0, 800_000));
        assert_eq!(curve.time_ns(99_999), 19_000_000);
        assert!((1..99_999).all(|d| curve.time_ns(d) <= curve.time_ns(d + 1)));
        let mut rng = Seed(1).rng();
        let mut draw = || rng.below(100_000);
        let sum: u64 = (0..400_000).map(|_| curve.time_ns(draw().abs_diff(draw()))).sum();
        let mean = sum as f64 / 400_000.0;
        assert!((mean / 8_500_000.0 - 1.0).abs() < 0.004, "{mean}");
    }

    #[test]
    fn figures_that_no_curve_meets_are_refused_with_the_bounds() {
        let figures = SeekFigures {
            single_track_ns: 1_000_000,
            average_ns: 20_000_000,
            full_stroke_ns: 19_000_000,
        };
        let (low, high) = SeekCurve::fit(figures, 10_000, |_| 1.0).unwrap_err();
        assert!(low > 6_000_000 && high < 15_000_000, "{low} {high}");
        let one = SeekCurve::fit(figures, 1, |_| 1.0).unwrap();
        assert_eq!(one.time_ns(0), 0);
    }
}
