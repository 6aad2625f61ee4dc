//! Response times: exact mean and extremes, percentiles within a thousandth.
//!
//! For: what one tenant (or all) waited. Must never know: what was waited for. Units: nanoseconds.

use hdrhistogram::Histogram;

/// Significant digits of a percentile.
const DIGITS: u8 = 3;

/// The response times of a stream of requests.
#[derive(Clone, Debug)]
pub struct Responses {
    /// Nothing until the first response; grows with the longest.
    histogram: Option<Histogram<u64>>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Responses {
    fn default() -> Self {
        Responses { histogram: None, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Responses {
    /// Counts one response.
    pub fn record(&mut self, response_ns: u64) {
        if self.histogram.is_none() {
            self.histogram = Histogram::new(DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            // It grows as needed: nothing is refused.
            let recorded = histogram.record(response_ns);
            debug_assert!(recorded.is_ok());
        }
        self.count += 1;
        self.sum_ns += u128::from(response_ns);
        self.min_ns = self.min_ns.min(response_ns);
        self.max_ns = self.max_ns.max(response_ns);
    }

    /// Responses counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The mean; 0 without responses.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The longest; 0 without responses.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The response that a share of all do not exceed, within a thousandth of itself; 0 without
    /// responses. Never below the shortest or above the longest.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        match &self.histogram {
            Some(histogram) => histogram.value_at_quantile(share).clamp(self.min_ns, self.max_ns),
            None => 0,
        }
    }

    /// Adds another stream's responses.
    pub fn add(&mut self, other: &Responses) {
        match (&mut self.histogram, &other.histogram) {
            (Some(mine), Some(theirs)) => {
                // Both have the same digits and grow as needed: nothing can be refused.
                let added = mine.add(theirs);
                debug_assert!(added.is_ok());
            }
            (mine @ None, Some(_)) => mine.clone_from(&other.histogram),
            (_, None) => {}
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn mean_and_extremes_are_exact_and_percentiles_within_a_hundredth() {
        let mut rng = Seed(5).rng();
        let mut all: Vec<u64> =
            (0..50_000).map(|_| (50_000.0 * (-(1.0 - rng.unit()).ln()).powi(4)) as u64).collect();
        let (mut responses, mut half) = (Responses::default(), Responses::default());
        for (at, response) in all.iter().enumerate() {
            if at % 2 == 0 { responses.record(*response) } else { half.record(*response) }
        }
        responses.add(&half);
        all.sort_unstable();
        let sum: u64 = all.iter().sum();
        assert_eq!((responses.count(), responses.sum_ns()), (50_000, u128::from(sum)));
        assert_eq!(responses.mean_ns(), sum as f64 / 50_000.0);
        assert_eq!(responses.max_ns(), all[49_999]);
        for (share, at) in [(0.5, 24_999), (0.9, 44_999), (0.99, 49_499), (0.999, 49_949)] {
            let (found, exact) = (responses.quantile_ns(share) as f64, all[at] as f64);
            assert!((found / exact - 1.0).abs() < 0.01, "{share}: {found} for {exact}");
        }
        assert_eq!(responses.quantile_ns(1.0), responses.max_ns());
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let mut none = Responses::default();
        assert_eq!((none.mean_ns(), none.quantile_ns(0.99), none.max_ns()), (0.0, 0, 0));
        none.add(&Responses::default());
        let mut one = Responses::default();
        one.record(7_000_000_000);
        none.add(&one);
        assert_eq!((none.quantile_ns(0.5), none.count()), (7_000_000_000, 1));
    }
}
