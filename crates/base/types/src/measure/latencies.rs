//! Response times in buckets whose counts only rise.
//!
//! For: a server that is watched: what came since an earlier look is a difference of two. Must
//! never know: what was waited for. Units: nanoseconds. Bounds of buckets are an eighth of a power
//! of two apart, from 1 us to 137 s; memory is taken at the first response.

/// Powers of two that are divided into buckets: from 2^10 ns up to 2^37 ns.
const FIRST_POWER: u32 = 10;
const LAST_POWER: u32 = 37;
/// Buckets of a power of two, as a power of two.
const PART_BITS: u32 = 3;
const PARTS: u32 = 1 << PART_BITS;
/// One for what is shorter, one for what is longer.
const BUCKETS: usize = ((LAST_POWER - FIRST_POWER) * PARTS) as usize + 2;

/// Counts of response times.
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
