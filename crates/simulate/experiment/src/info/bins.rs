//! Histograms of fixed size for numbers of unknown range.
//!
//! For: request sizes and distances by powers of two, and requests over time in at most so many
//! bins whatever the span. Must never know: what is counted.

use cachewright_result::info::SizeDistribution;

/// Most bins of a time histogram.
const TIME_BINS: usize = 64;
/// Width of a time bin before any merging, in nanoseconds.
const FIRST_WIDTH_NS: u64 = 1_000;

/// Counts by power of two, with exact mean and maximum.
#[derive(Clone, Debug)]
pub struct PowerBins {
    counts: [u64; 65],
    total: u64,
    sum: u128,
    max: u64,
    /// Exact counts of the values met, while they are few; block traces have few request sizes.
    exact: std::collections::BTreeMap<u64, u64>,
}

/// Distinct values kept exactly for quantiles; beyond, quantiles are bin ends.
const EXACT_VALUES: usize = 4096;

impl Default for PowerBins {
    fn default() -> Self {
        PowerBins { counts: [0; 65], total: 0, sum: 0, max: 0, exact: Default::default() }
    }
}

impl PowerBins {
    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        self.add_many(value, 1);
    }

    /// Counts a value `times` times.
    pub fn add_many(&mut self, value: u64, times: u64) {
        self.counts[bin(value)] += times;
        self.total += times;
        self.sum += u128::from(value) * u128::from(times);
        self.max = self.max.max(value);
        if self.exact.len() < EXACT_VALUES || self.exact.contains_key(&value) {
            *self.exact.entry(value).or_default() += times;
        }
    }

    /// `[upper end, count]` of each bin between the first and last that are not empty.
    pub fn pairs(&self) -> Vec<[u64; 2]> {
        let filled = |bin: &usize| self.counts[*bin] > 0;
        let (Some(first), Some(last)) = ((0..65).find(filled), (0..65).rfind(filled)) else {
            return Vec::new();
        };
        (first..=last).map(|bin| [upper(bin), self.counts[bin]]).collect()
    }

    /// The smallest value with at least `share` of the values at or below it; exact while few
    /// distinct values were met, else the end of its bin.
    fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let kept: u64 = self.exact.values().sum();
        let exact = self.exact.iter().map(|(value, count)| (*value, *count));
        let bins = self.counts.iter().enumerate().map(|(bin, count)| (upper(bin), *count));
        let mut seen = 0;
        let mut reach = |(_, count): &(u64, u64)| {
            seen += count;
            seen >= rank
        };
        let found =
            if kept == self.total { { exact }.find(&mut reach) } else { { bins }.find(&mut reach) };
        found.map_or(0, |(value, _)| value.min(self.max))
    }

    /// Mean, quantiles, maximum and histogram.
    pub fn distribution(&self) -> SizeDistribution {
        SizeDistribution {
            mean: if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 },
            p50: self.quantile(0.50),
            p90: self.quantile(0.90),
            p99: self.quantile(0.99),
            max: self.max,
            histogram: self.pairs(),
        }
    }
}

/// Bin 0 holds 0 and 1; bin b holds `2^(b-1)+1 ..= 2^b`.
fn bin(value: u64) -> usize {
    if value <= 1 { 0 } else { 64 - (value - 1).leading_zeros() as usize }
}

fn upper(bin: usize) -> u64 {
    if bin >= 64 { u64::MAX } else { 1 << bin }
}

/// Requests and bytes over time; bins double in width when they run out. Times may come in any
/// order.
#[derive(Clone, Debug)]
pub struct TimeBins {
    /// Where the first bin begins: at the first time met, or as many whole bins before as needed.
    origin_ns: Option<i128>,
    width_ns: u64,
    bins: Vec<[u64; 2]>,
}

impl TimeBins {
    /// No requests yet.
    pub fn new() -> TimeBins {
        TimeBins { origin_ns: None, width_ns: FIRST_WIDTH_NS, bins: Vec::new() }
    }

    /// Counts one request.
    pub fn add(&mut self, time_ns: u64, bytes: u64) {
        let since_ns = i128::from(time_ns) - *self.origin_ns.get_or_insert(i128::from(time_ns));
        if since_ns < 0 {
            self.begin_earlier(since_ns.unsigned_abs());
        }
        let since_ns = i128::from(time_ns) - self.origin_ns.unwrap_or_default();
        while since_ns / i128::from(self.width_ns) >= TIME_BINS as i128 {
            self.widen();
        }
        let index = (since_ns / i128::from(self.width_ns)) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, [0, 0]);
        }
        self.bins[index][0] += 1;
        self.bins[index][1] = self.bins[index][1].saturating_add(bytes);
    }

    /// Adds bins before the first, so that they begin at least so much earlier.
    fn begin_earlier(&mut self, earlier_ns: u128) {
        let mut missing = earlier_ns.div_ceil(u128::from(self.width_ns));
        while missing + self.bins.len() as u128 > TIME_BINS as u128 {
            self.widen();
            missing = earlier_ns.div_ceil(u128::from(self.width_ns));
        }
        let added = std::iter::repeat_n([0, 0], missing as usize);
        self.bins.splice(0..0, added);
        let moved_ns = i128::from(self.width_ns) * missing as i128;
        self.origin_ns = self.origin_ns.map(|origin_ns| origin_ns - moved_ns);
    }

    /// Makes one bin of every two.
    fn widen(&mut self) {
        let add = |pair: &[[u64; 2]]| {
            let sum =
                |sum: [u64; 2], bin: &[u64; 2]| [sum[0] + bin[0], sum[1].saturating_add(bin[1])];
            pair.iter().fold([0, 0], sum)
        };
        self.bins = self.bins.chunks(2).map(add).collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    /// `[start in nanoseconds, requests, bytes]` per bin; the first bin starts at 0.
    pub fn rows(&self) -> Vec<(u64, u64, u64)> {
        let starts = (0..).map(|bin| bin * self.width_ns);
        let row = |(start, bin): (u64, &[u64; 2])| (start, bin[0], bin[1]);
        starts.zip(&self.bins).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_for_few_values() {
        let mut bins = PowerBins::default();
        bins.add_many(4096, 90);
        bins.add_many(65536, 10);
        let found = bins.distribution();
        assert_eq!((found.p50, found.p99), (4096, 65536));
        assert_eq!(bins.pairs(), [[4096, 90], [8192, 0], [16384, 0], [32768, 0], [65536, 10]]);
    }

    #[test]
    fn time_bins_stay_few_and_lose_nothing() {
        let mut bins = TimeBins::new();
        for step in 0..1000_u64 {
            bins.add(step * step * 1000, 1);
        }
        let rows = bins.rows();
        assert!(rows.len() <= TIME_BINS);
        assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), 1000);
    }

    #[test]
    fn times_in_any_order_fall_into_their_bins() {
        let mut bins = TimeBins::new();
        for time_ns in [500_500, 500_900, 498_000, 510_000, 499_999] {
            bins.add(time_ns, 1);
        }
        let rows: Vec<(u64, u64)> = bins
            .bins
            .iter()
            .zip(0..)
            .filter(|(b, _)| b[0] > 0)
            .map(|(b, index)| (index, b[0]))
            .collect();
        assert_eq!(bins.origin_ns, Some(497_500));
        assert_eq!(rows, [(0, 1), (2, 1), (3, 2), (12, 1)]);
        let mut bins = TimeBins::new();
        for time_ns in [u64::MAX, 0, u64::MAX / 2] {
            bins.add(time_ns, u64::MAX);
        }
        assert!(bins.bins.len() <= TIME_BINS);
        assert_eq!(bins.bins.iter().map(|bin| bin[0]).sum::<u64>(), 3);
    }
}
