//! Response times of one tenant or of all, in nanoseconds.

use hdrhistogram::Histogram;

/// Significant digits of a percentile.
const DIGITS: u8 = 3;

/// The response times of a stream of requests: exact mean and extremes, percentiles within a
/// thousandth.
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

    /// The responses by time: per bin that is not empty its longest time and how many fell into
    /// it, the shortest first. Eight bins divide a power of two; the last ends at the longest.
    pub fn by_time(&self) -> Vec<(u64, u64)> {
        let mut bins: Vec<(u64, u64)> = Vec::new();
        for step in self.histogram.iter().flat_map(Histogram::iter_recorded) {
            // The histogram's own bins are finer and do not cross an end of these.
            let end_ns = end_of_part(step.value_iterated_to()).min(self.max_ns);
            let count = step.count_since_last_iteration();
            match bins.last_mut() {
                Some(last) if last.0 == end_ns => last.1 += count,
                _ => bins.push((end_ns, count)),
            }
        }
        bins
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

/// The longest time of the eighth of a power of two that a time lies in; short times stand alone.
fn end_of_part(time_ns: u64) -> u64 {
    if time_ns < u64::from(PARTS) {
        return time_ns;
    }
    time_ns | ((1 << (time_ns.ilog2() - PART_BITS)) - 1)
}

/// Powers of two that are divided into buckets: from 2^10 ns up to 2^37 ns.
const FIRST_POWER: u32 = 10;
const LAST_POWER: u32 = 37;
/// Buckets of a power of two, as a power of two.
const PART_BITS: u32 = 3;
const PARTS: u32 = 1 << PART_BITS;
/// One for what is shorter, one for what is longer.
const BUCKETS: usize = ((LAST_POWER - FIRST_POWER) * PARTS) as usize + 2;

/// Response times in buckets whose counts only rise, for a server that is watched: what came since
/// an earlier look is a difference of two. Bounds of buckets are an eighth of a power of two apart,
/// from 1 us to 137 s; memory is taken at the first response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Empty until the first response.
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
}

impl Latencies {
    /// Counts one response.
    pub fn record(&mut self, response_ns: u64) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        self.buckets[bucket(response_ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(response_ns);
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

    /// A time that a share of all responses do not exceed: the upper bound of a bucket, at most an
    /// eighth above the least such time; 0 without responses. The last bound is that of 137 s.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            below += count;
            if below >= wanted {
                return upper_ns(index);
            }
        }
        0
    }

    /// What was counted since `before`, counts of the same stream at an earlier time.
    pub fn since(&self, before: &Latencies) -> Latencies {
        let earlier = |index: usize| before.buckets.get(index).copied().unwrap_or(0);
        let later = self.buckets.iter().enumerate();
        Latencies {
            buckets: later.map(|(index, count)| count - earlier(index)).collect(),
            count: self.count - before.count,
            sum_ns: self.sum_ns - before.sum_ns,
        }
    }

    /// Adds another stream's responses.
    pub fn add(&mut self, other: &Latencies) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }

    /// Responses by powers of two: the upper bound of each, and how many are above the bound
    /// before it. The last bound is `None`: there is none.
    pub fn by_power(&self) -> Vec<(Option<u64>, u64)> {
        let count = |index: usize| self.buckets.get(index).copied().unwrap_or(0);
        let parts = PARTS as usize;
        let powers = FIRST_POWER..LAST_POWER;
        let power = |(place, power): (usize, u32)| {
            let own = (1 + place * parts..1 + (place + 1) * parts).map(count).sum();
            (Some(1_u64 << (power + 1)), own)
        };
        let first = (Some(1_u64 << FIRST_POWER), count(0));
        let last = (None, count(BUCKETS - 1));
        [first].into_iter().chain(powers.enumerate().map(power)).chain([last]).collect()
    }
}

/// The bucket of a response.
fn bucket(response_ns: u64) -> usize {
    if response_ns < 1 << FIRST_POWER {
        return 0;
    }
    let power = response_ns.ilog2();
    if power >= LAST_POWER {
        return BUCKETS - 1;
    }
    let part = (response_ns >> (power - PART_BITS)) as u32 & (PARTS - 1);
    ((power - FIRST_POWER) * PARTS + part) as usize + 1
}

/// The bound that all responses of a bucket are below; of the last one, the bound above which all
/// are.
fn upper_ns(index: usize) -> u64 {
    let place = index.min(BUCKETS - 2) as u32;
    if place == 0 {
        return 1 << FIRST_POWER;
    }
    let (power, part) = ((place - 1) / PARTS + FIRST_POWER, (place - 1) % PARTS);
    u64::from(PARTS + part + 1) << (power - PART_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn responses_by_time_are_those_counted_one_by_one() {
        let mut rng = Seed(7).rng();
        let powers: Vec<u64> = (0..5_000).map(|_| 1 << rng.below(40)).collect();
        let all: Vec<u64> = powers.into_iter().map(|power| rng.below(power + 1)).collect();
        let mut responses = Responses::default();
        assert!(responses.by_time().is_empty());
        all.iter().for_each(|time_ns| responses.record(*time_ns));
        let bins = responses.by_time();
        let mut shorter = 0;
        for pair in bins.windows(2) {
            assert!(pair[0].0 < pair[1].0);
        }
        for (end_ns, count) in &bins {
            assert!(*count > 0);
            shorter += count;
            let found = all.iter().filter(|time_ns| *time_ns <= end_ns).count() as u64;
            assert_eq!(shorter, found, "up to {end_ns} ns");
        }
        assert_eq!(bins.last().map(|bin| bin.0), all.iter().max().copied());
        assert_eq!(shorter, 5_000);
        // An eighth of a power of two: from 1,024 on they are 128 wide.
        assert_eq!((end_of_part(1_024), end_of_part(1_151), end_of_part(7)), (1_151, 1_151, 7));
        assert_eq!(end_of_part(u64::MAX), u64::MAX);
    }

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

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!((bucket(0), bucket(1023), bucket(1024)), (0, 0, 1));
        for index in 0..BUCKETS - 1 {
            let upper = upper_ns(index);
            assert_eq!((bucket(upper - 1), bucket(upper)), (index, index + 1), "{upper}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(upper_ns(BUCKETS - 1), 1 << LAST_POWER);
    }

    #[test]
    fn quantiles_are_at_most_an_eighth_above_the_sorted_ones() {
        let mut found = Latencies::default();
        assert_eq!((found.quantile_ns(0.5), found.count()), (0, 0));
        let mut times: Vec<u64> = (0..2_000_u64).map(|n| 2_000 + n * n * 997).collect();
        times.iter().for_each(|time| found.record(*time));
        times.sort_unstable();
        for share in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = times[((share * 2_000.0_f64).ceil() as usize).max(1) - 1];
            let quantile = found.quantile_ns(share);
            assert!(quantile > exact && quantile <= exact + exact / 8 + 1, "{share}: {quantile}");
        }
        assert_eq!(found.sum_ns(), times.iter().map(|time| u128::from(*time)).sum());
    }

    #[test]
    fn a_difference_holds_what_came_in_between_and_a_sum_both() {
        let mut early = Latencies::default();
        early.record(5_000);
        let mut late = early.clone();
        late.record(900);
        late.record(1 << 40);
        let between = late.since(&early);
        assert_eq!((between.count(), between.sum_ns()), (2, 900 + (1 << 40)));
        let mut sum = early.clone();
        sum.add(&between);
        assert_eq!(sum, late);
        assert_eq!(late.since(&Latencies::default()), late);
        let mut empty = Latencies::default();
        empty.add(&late);
        assert_eq!(empty, late);
    }

    #[test]
    fn powers_of_two_add_up_to_all() {
        let mut found = Latencies::default();
        [1, 1_023, 1_024, 2_047, 2_048, 1 << 37].into_iter().for_each(|time| found.record(time));
        let powers = found.by_power();
        assert_eq!(powers[..3], [(Some(1_024), 2), (Some(2_048), 2), (Some(4_096), 1)]);
        assert_eq!(powers.last(), Some(&(None, 1)));
        assert_eq!(powers.iter().map(|(_, count)| count).sum::<u64>(), found.count());
        assert_eq!(Latencies::default().by_power().len(), powers.len());
    }
}
