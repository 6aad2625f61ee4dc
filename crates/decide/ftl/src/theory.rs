//! Write amplification in closed form, for writes that are uniform over all pages.
//!
//! For: what a simulation must agree with, and a bound to print beside it. Must never know: drives.
//! Units: ratios; `a` is physical over logical pages, the reserve of free superblocks not counted.
//! Sources: FIFO and greedy for large superblocks, Menon and Stockmeyer'95, Bux and Iliadis'10;
//! greedy for b pages per superblock, Desnoyers, SYSTOR'12; d-choices, Van Houdt, SIGMETRICS'13.

/// FIFO, which is also greedy in the limit of large superblocks: 1/(1-v) where the valid share v of
/// a victim solves v = exp(-a (1-v)). Infinite for `a` of 1 or less.
pub fn fifo(a: f64) -> f64 {
    if a.is_nan() || a <= 1.0 {
        return f64::INFINITY;
    }
    // The gap f(v) = exp(-a (1-v)) - v is convex, falls through the root and is 0 at v = 1 again.
    let (mut low, mut high) = (0.0, 1.0 - (a - 1.0).min(0.5) * 1e-3);
    for _ in 0..200 {
        let v = 0.5 * (low + high);
        if f64::exp(-a * (1.0 - v)) > v { low = v } else { high = v }
    }
    1.0 / (1.0 - low)
}

/// Greedy with `block_pages` pages per superblock.
pub fn greedy(a: f64, block_pages: u32) -> f64 {
    let k = 1.0 + 1.0 / (2.0 * f64::from(block_pages));
    fifo(k * a) / k
}

/// Greedy among `d` superblocks drawn at random, in the mean field. G(i) is the share of
/// superblocks with more than i valid pages, and G(b) = 0. It solves r(i+1) (G(i) - G(i+1)) = 1 -
/// G(i)^d with r(i) = w i a / b. The number w is such that the G(i) add up to the valid pages b /
/// a. The answer is b / w.
pub fn d_choices(a: f64, block_pages: u32, d: u32) -> f64 {
    let b = f64::from(block_pages);
    let valid = |w: f64| -> f64 {
        let mut above = 0.0;
        let mut sum = 0.0;
        for i in (0..block_pages).rev() {
            let rate = w * f64::from(i + 1) * a / b;
            above = step_down(above, rate, d);
            sum += above;
        }
        sum
    };
    // The valid pages fall as more pages are written per victim.
    let (mut low, mut high) = (1e-9 * b, b);
    for _ in 0..100 {
        let w = 0.5 * (low + high);
        if valid(w) > b / a { low = w } else { high = w }
    }
    b / (0.5 * (low + high))
}

/// G in `[above, 1]` with rate (G - above) = 1 - G^d.
fn step_down(above: f64, rate: f64, d: u32) -> f64 {
    let (mut low, mut high) = (above, 1.0);
    for _ in 0..60 {
        let g = 0.5 * (low + high);
        if rate * (g - above) < 1.0 - g.powi(d as i32) { low = g } else { high = g }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-3, "found {found}, expected {expected}");
    }

    #[test]
    fn fifo_as_printed() {
        near(fifo(1.3), 2.364);
        for (a, expected) in
            [(1.07, 7.817), (1.0737, 7.459), (1.1765, 3.518), (1.28, 2.481), (1.5, 1.716)]
        {
            near(fifo(a), expected);
        }
        assert_eq!(fifo(1.0), f64::INFINITY);
    }

    #[test]
    fn greedy_as_printed() {
        for (b, expected) in [(64, 7.001), (256, 7.595), (1024, 7.761)] {
            near(greedy(1.07, b), expected);
        }
    }

    /// Random selection has a closed form of its own, a / (a - 1).
    #[test]
    fn d_choices_as_printed() {
        near(d_choices(1.07, 256, 1), 1.07 / 0.07);
        for (d, expected) in [(1, 15.271), (2, 10.574), (5, 8.320), (10, 7.821), (30, 7.627)] {
            near(d_choices(1.07, 256, d), expected);
        }
        for (d, expected) in [(1, 4.571), (2, 3.274), (5, 2.655), (10, 2.520), (1000, 2.461)] {
            near(d_choices(1.28, 256, d), expected);
        }
    }
}
