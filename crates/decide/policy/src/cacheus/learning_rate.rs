//! The learning rate of CACHEUS, which follows hit ratios.
//!
//! For: `cacheus`. Must never know: blocks, experts. Source: Rodriguez et al., FAST'21, section 4.3
//! and Algorithm 4, with the authors' code (`sylab/cacheus`) for what it leaves open: hit ratios
//! and rates are compared after rounding to three digits. Unit: accesses.

use cachewright_types::Rng;

const LOWEST: f64 = 0.001;
const HIGHEST: f64 = 1.0;
/// Periods of no gain after which the rate starts again.
const PATIENCE: u32 = 10;

/// The rate, and what the last periods said.
#[derive(Clone, Debug)]
pub struct LearningRate {
    rate: f64,
    initial: f64,
    /// The rates during the last period and the one before.
    current: f64,
    previous: f64,
    /// Accesses of a period, those of this one, and the hits among them.
    period: u32,
    elapsed: u32,
    hits: u32,
    hit_ratio_before: f64,
    /// Periods without a hit or with fewer hits, and those with fewer hits.
    idle_periods: u32,
    worse_periods: u32,
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1000.0).round() / 1000.0
}

impl LearningRate {
    /// The rate with the least regret over a period (`sqrt(2 ln 2 / period)`).
    pub fn new(period: u32) -> LearningRate {
        let rate = (2.0 * std::f64::consts::LN_2 / f64::from(period.max(1))).sqrt();
        LearningRate {
            rate,
            initial: rate.clamp(LOWEST, HIGHEST),
            current: rate,
            previous: 0.0,
            period: period.max(1),
            elapsed: 0,
            hits: 0,
            hit_ratio_before: 0.0,
            idle_periods: 0,
            worse_periods: 0,
        }
    }

    /// The rate now.
    #[inline(always)]
    pub fn get(&self) -> f64 {
        self.rate
    }

    /// Periods have so many accesses from now on.
    pub fn set_period(&mut self, period: u32) {
        self.period = period.max(1);
    }

    /// Counts a hit.
    #[inline(always)]
    pub fn count_hit(&mut self) {
        self.hits += 1;
    }

    /// An access begins; the last one of a period ends it before it is decided.
    #[inline(always)]
    pub fn tick(&mut self, rng: &mut Rng) {
        self.elapsed += 1;
        if self.elapsed >= self.period {
            self.end_period(rng);
        }
    }

    #[cold]
    fn end_period(&mut self, rng: &mut Rng) {
        let hit_ratio = rounded(f64::from(self.hits) / f64::from(self.elapsed));
        let gain = rounded(hit_ratio - self.hit_ratio_before);
        let change = rounded(self.current) - rounded(self.previous);
        let step = (self.rate * change).abs();
        if change * gain > 0.0 {
            self.rate = (self.rate + step).min(HIGHEST);
            (self.idle_periods, self.worse_periods) = (0, 0);
        } else if change * gain < 0.0 {
            self.rate = (self.rate - step).max(LOWEST);
            (self.idle_periods, self.worse_periods) = (0, 0);
        } else if gain <= 0.0 {
            self.without_direction(hit_ratio, gain, rng);
        }
        (self.previous, self.current) = (self.current, self.rate);
        self.hit_ratio_before = hit_ratio;
        (self.elapsed, self.hits) = (0, 0);
    }

    /// The rate did not change, or the hit ratio did not: start again, or try another rate.
    fn without_direction(&mut self, hit_ratio: f64, gain: f64, rng: &mut Rng) {
        let worse = u32::from(gain < 0.0);
        self.worse_periods += worse;
        self.idle_periods += worse + u32::from(hit_ratio <= 0.0 && gain == 0.0);
        if self.idle_periods >= PATIENCE {
            self.rate = self.initial;
            self.idle_periods = 0;
        } else if self.worse_periods >= PATIENCE && gain < 0.0 {
            self.rate = self.initial;
            self.worse_periods = 0;
        } else if gain < 0.0 {
            self.try_another(rng);
        }
    }

    fn try_another(&mut self, rng: &mut Rng) {
        self.rate = if self.rate >= HIGHEST {
            0.9
        } else if self.rate <= LOWEST {
            0.005
        } else if rng.below(2) == 0 {
            (self.rate * 1.25).min(HIGHEST)
        } else {
            (self.rate * 0.75).max(LOWEST)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    /// A period of 4: the rate starts at sqrt(2 ln 2 / 4) = 0.5887, before it was 0. A first period
    /// of 2 hits in 4: both rose, so the rate grows by 0.5887 x 0.589. The second one has no hits:
    /// the rate had risen and hits fell, so that it falls by the share 0.346, its last change.
    #[test]
    fn the_rate_follows_hits_by_hand() {
        let mut rng = Seed(0).rng();
        let mut rate = LearningRate::new(4);
        let first = (0.5 * std::f64::consts::LN_2).sqrt();
        assert_eq!(rate.get(), first);
        rate.count_hit();
        rate.count_hit();
        (0..4).for_each(|_| rate.tick(&mut rng));
        let second = first + first * 0.589;
        assert!((rate.get() - second).abs() < 1e-12, "{}", rate.get());
        (0..4).for_each(|_| rate.tick(&mut rng));
        let third = second - second * (0.935 - 0.589);
        assert!((rate.get() - third).abs() < 1e-12, "{}", rate.get());
        (0..400).for_each(|_| rate.tick(&mut rng));
        assert_eq!(rate.get(), first, "without hits it starts again");
    }
}
