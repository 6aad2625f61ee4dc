//! Zipf-distributed ranks in constant time and memory.
//!
//! For: rank `k` of `1..=n` with probability proportional to `k^-alpha`. Must never know: what is
//! ranked. Source: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions", ACM TOMACS 6(3), 1996, section 4.

use cachewright_types::Rng;

/// A sampler; exact up to the rounding of `f64`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    ranks: f64,
    alpha: f64,
    /// The area below the density's hat, from the first rank's part ...
    area_low: f64,
    /// ... to the last rank's end.
    area_high: f64,
    /// Left of a rank by no more than this, acceptance is certain.
    certain: f64,
}

/// ln(1 + x) / x, also near 0.
fn ln_1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

/// (e^x - 1) / x, also near 0.
fn exp_m1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

impl Zipf {
    /// Ranks `1..=ranks` (at least 1) with exponent `alpha` of at least 0; 0 is uniform.
    pub fn new(ranks: u64, alpha: f64) -> Zipf {
        let mut zipf =
            Zipf { ranks: ranks.max(1) as f64, alpha, area_low: 0.0, area_high: 0.0, certain: 0.0 };
        zipf.area_low = zipf.area(1.5) - 1.0;
        zipf.area_high = zipf.area(zipf.ranks + 0.5);
        zipf.certain = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.density(2.0));
        zipf
    }

    /// The hat: x^-alpha.
    fn density(&self, x: f64) -> f64 {
        (-self.alpha * x.ln()).exp()
    }

    /// Its integral from 1: (x^(1-alpha) - 1) / (1 - alpha), or ln x where alpha is 1.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_m1_ratio((1.0 - self.alpha) * log) * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        // Rounding may take the argument below the domain's edge.
        let scaled = (area * (1.0 - self.alpha)).max(-1.0);
        (ln_1p_ratio(scaled) * area).exp()
    }

    /// The next rank, from 1. Needs 1.1 draws on average or fewer.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.area_high + rng.unit() * (self.area_low - self.area_high);
            let x = self.area_inverse(area);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.certain || area >= self.area(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    #[test]
    fn frequencies_are_those_of_the_law() {
        const RANKS: usize = 60;
        const DRAWS: usize = 200_000;
        for alpha in [0.0, 0.5, 0.99, 1.0, 1.2, 3.0] {
            let zipf = Zipf::new(RANKS as u64, alpha);
            let mut rng = Seed(11).derive(&alpha.to_string()).rng();
            let mut counts = [0_u32; RANKS];
            for _ in 0..DRAWS {
                counts[zipf.sample(&mut rng) as usize - 1] += 1;
            }
            let weights: Vec<f64> = (1..=RANKS).map(|k| (k as f64).powf(-alpha)).collect();
            let total: f64 = weights.iter().sum();
            // Ranks expected fewer than 5 times are left out, as the chi-square test asks.
            let (mut chi_square, mut cells) = (0.0, 0);
            for (count, weight) in counts.iter().zip(&weights) {
                let expected = weight / total * DRAWS as f64;
                if expected >= 5.0 {
                    chi_square += (f64::from(*count) - expected).powi(2) / expected;
                    cells += 1;
                }
            }
            // Mean `cells`, deviation sqrt(2 cells): five deviations above the mean.
            let limit = f64::from(cells) + 5.0 * (2.0 * f64::from(cells)).sqrt();
            assert!(chi_square < limit, "alpha {alpha}: {chi_square} over {cells} cells");
        }
    }

    #[test]
    fn extremes_stay_within_the_ranks() {
        let mut rng = Seed(1).rng();
        for (ranks, alpha) in [(1, 1.0), (2, 0.0), (1 << 50, 1.0), (1 << 50, 0.2), (10, 50.0)] {
            let zipf = Zipf::new(ranks, alpha);
            assert!((0..1000).all(|_| (1..=ranks).contains(&zipf.sample(&mut rng))));
        }
    }
}
