//! What a hit costs a tenant, and how much more a miss on its curve.
//!
//! For: means of measured responses over the intervals of late. Must never know: curves beyond one
//! expected miss ratio, quotas, what is decided. Units: nanoseconds; counts fade from interval to
//! interval.
//!
//! Not every miss of an LRU curve waits for flash: under write-back most writes are taken at once
//! whether their block was cached or not. What the requests that waited took beyond a hit is
//! therefore divided by the misses that the curve expects at the quota held, where these are more.

use cachewright_signal::{Price, Prices};

/// Requests of one kind, and what they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    hits: f64,
    hits_ns: f64,
    misses: f64,
    misses_ns: f64,
    /// Misses that the curve expects of these requests.
    expected: f64,
}

/// What is assumed where nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// A hit.
    pub hit_ns: f64,
    /// A miss.
    pub miss_ns: f64,
    /// How many requests of a tenant's own the mean of all counts as.
    pub requests: f64,
}

/// Costs of reads or of writes of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Requests of late; 0 when none was measured.
    pub requests: f64,
    /// A request that hits.
    pub hit_ns: f64,
    /// How much more one takes whose block is not cached, on average; at least 0.
    pub miss_more_ns: f64,
}

/// What responses of one tenant took, reads and writes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spending([Tally; 2]);

impl Tally {
    fn learn(&mut self, hits: Price, misses: Price, miss_ratio: f64, share_of_past: f64) {
        let add = |sum: &mut f64, more: f64| *sum = *sum * share_of_past + more;
        let requests = hits.count + misses.count;
        add(&mut self.hits, hits.count as f64);
        add(&mut self.hits_ns, hits.sum_ns as f64);
        add(&mut self.misses, misses.count as f64);
        add(&mut self.misses_ns, misses.sum_ns as f64);
        add(&mut self.expected, requests as f64 * miss_ratio);
    }

    /// What misses took beyond hits, and of how many misses.
    fn excess(&self, hit_ns: f64) -> (f64, f64) {
        let more = (self.misses_ns - self.misses * hit_ns).max(0.0);
        (more, self.expected.max(self.misses))
    }
}

impl Spending {
    /// Takes an interval whose curves gave these miss ratios (reads, writes) at the quota held.
    pub fn learn(&mut self, prices: &Prices, miss_ratios: [f64; 2], share_of_past: f64) {
        let [reads, writes] = &mut self.0;
        reads.learn(prices.read_hits, prices.read_misses, miss_ratios[0], share_of_past);
        writes.learn(prices.write_hits, prices.write_misses, miss_ratios[1], share_of_past);
    }
}

/// Costs of reads and writes of every tenant. One with few requests of a kind is drawn towards the
/// mean of all, and all without any to the prior.
pub fn costs(spendings: &[Spending], prior: Prior) -> Vec<[Cost; 2]> {
    let means = [0, 1].map(|kind| {
        let tallies = || spendings.iter().map(|spending| spending.0[kind]);
        let sum = |part: fn(Tally) -> f64| tallies().map(part).sum::<f64>();
        let hit_ns = mean(sum(|tally| tally.hits_ns), sum(|tally| tally.hits), 0.0, prior.hit_ns);
        let (more, of) = tallies().map(|tally| tally.excess(hit_ns)).fold((0.0, 0.0), add);
        let least = (prior.miss_ns - hit_ns).max(0.0);
        Cost { requests: 0.0, hit_ns, miss_more_ns: mean(more, of, 0.0, least) }
    });
    let cost = |tally: &Tally, all: &Cost| {
        // At least a nanosecond, so that a slowdown against hits is finite.
        let hit_ns = mean(tally.hits_ns, tally.hits, prior.requests, all.hit_ns).max(1.0);
        let (more, of) = tally.excess(hit_ns);
        let miss_more_ns = mean(more, of, prior.requests, all.miss_more_ns);
        Cost { requests: tally.hits + tally.misses, hit_ns, miss_more_ns }
    };
    let both =
        |Spending([reads, writes]): &Spending| [cost(reads, &means[0]), cost(writes, &means[1])];
    spendings.iter().map(both).collect()
}

fn add(left: (f64, f64), right: (f64, f64)) -> (f64, f64) {
    (left.0 + right.0, left.1 + right.1)
}

/// `sum / count`, as if `weight` more had been `otherwise` each; that itself when there is nothing.
fn mean(sum: f64, count: f64, weight: f64, otherwise: f64) -> f64 {
    let all = count + weight;
    if all > 0.0 { (sum + weight * otherwise) / all } else { otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: Prior = Prior { hit_ns: 10.0, miss_ns: 100.0, requests: 0.0 };

    fn price(count: u64, mean_ns: u64) -> Price {
        Price { count, sum_ns: count * mean_ns }
    }

    fn spending(prices: &Prices, miss_ratios: [f64; 2]) -> Spending {
        let mut spending = Spending::default();
        spending.learn(prices, miss_ratios, 0.5);
        spending
    }

    #[test]
    fn misses_are_priced_as_measured_and_spread_over_those_expected() {
        let prices = Prices {
            read_hits: price(60, 20),
            read_misses: price(40, 120),
            write_hits: price(90, 20),
            write_misses: price(10, 1020),
        };
        // As many reads as expected waited; of 50 writes that should have missed, 10.
        let [reads, writes] = costs(&[spending(&prices, [0.4, 0.5])], PRIOR)[0];
        assert_eq!(reads, Cost { requests: 100.0, hit_ns: 20.0, miss_more_ns: 100.0 });
        assert_eq!(writes, Cost { requests: 100.0, hit_ns: 20.0, miss_more_ns: 200.0 });
        // More waited than the curve expects: a miss costs no more than it took.
        let [reads, _] = costs(&[spending(&prices, [0.1, 0.5])], PRIOR)[0];
        assert_eq!(reads.miss_more_ns, 100.0);
    }

    #[test]
    fn writes_that_are_all_taken_at_once_gain_nothing_from_cache() {
        let prices = Prices { write_hits: price(100, 20), ..Prices::default() };
        let [_, writes] = costs(&[spending(&prices, [0.0, 0.7])], PRIOR)[0];
        assert_eq!((writes.hit_ns, writes.miss_more_ns), (20.0, 0.0));
    }

    #[test]
    fn one_without_misses_takes_the_mean_of_all_and_all_without_take_the_prior() {
        let never = Prices { read_hits: price(50, 30), ..Prices::default() };
        let some =
            Prices { read_hits: price(50, 10), read_misses: price(50, 220), ..Prices::default() };
        let two = costs(&[spending(&never, [0.0; 2]), spending(&some, [0.5; 2])], PRIOR);
        // A hit takes 20 on average of both.
        assert_eq!(two[0][0], Cost { requests: 50.0, hit_ns: 30.0, miss_more_ns: 200.0 });
        assert_eq!(two[1][0].miss_more_ns, 210.0);
        assert_eq!(two[0][1], Cost { requests: 0.0, hit_ns: 10.0, miss_more_ns: 90.0 });
        let alone = costs(&[spending(&never, [0.0; 2])], PRIOR);
        assert_eq!(alone[0][0].miss_more_ns, 70.0, "100 less a hit");
        // A mean of all that counts as 50 requests.
        let drawn = Prior { requests: 50.0, ..PRIOR };
        let two = costs(&[spending(&never, [0.0; 2]), spending(&some, [0.5; 2])], drawn);
        assert_eq!((two[0][0].hit_ns, two[1][0].hit_ns), (25.0, 15.0));
    }

    #[test]
    fn earlier_intervals_fade() {
        let cheap = Prices { read_hits: price(100, 10), ..Prices::default() };
        let dear = Prices { read_hits: price(100, 40), ..Prices::default() };
        let mut spending = spending(&cheap, [0.0; 2]);
        spending.learn(&dear, [0.0; 2], 0.5);
        let [reads, _] = costs(&[spending], PRIOR)[0];
        assert_eq!((reads.requests, reads.hit_ns), (150.0, 30.0));
    }
}
