//! Response time of a tenant's hits, and the added time of a miss on its curve.
//!
//! For: means of measured responses over recent intervals. Must never know: curves beyond one
//! expected miss ratio, quotas, the division. Units: nanoseconds; counts fade from interval to
//! interval.
//!
//! A request of many blocks waits for its slowest block, and most writes return at once whether
//! their block was cached or not. So the cost of a miss is not the response of a request that
//! missed. It is the time that all requests spent behind memory, over the misses that the curve
//! expects at the current quota. This value is right while quotas stay, and changes as misses do.

use super::queueing::{IdleWait, WaitGrowth};
use cachewright_curve::signal::{Price, Prices};

/// Requests of one kind, and their response times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ResponseTally {
    requests: f64,
    /// Time in memory and on the way to it.
    before_ns: f64,
    /// Requests that waited behind memory, and their waits in total.
    waited: f64,
    behind_ns: f64,
    /// Misses that the curve expects for these requests, one block each.
    expected: f64,
    /// Blocks of these requests.
    blocks: f64,
}

/// Assumed response times without a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Response time of a hit.
    pub hit_ns: f64,
    /// Response time of a miss.
    pub miss_ns: f64,
    /// Weight of the mean of all tenants, in requests of one tenant.
    pub requests: f64,
}

/// Costs of reads or of writes of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestCost {
    /// Recent requests; 0 without a measurement.
    pub requests: f64,
    /// Response time of a hit.
    pub hit_ns: f64,
    /// Added time of a miss per access of the curve; at least 0.
    pub added_miss_ns: f64,
    /// Largest added time: that of a request which waits behind memory.
    pub max_added_ns: f64,
    /// Misses that the curve expected of these requests, at the quotas of their time.
    pub expected: f64,
}

/// Response times of one tenant, reads and writes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeSpent {
    kinds: [ResponseTally; 2],
    idle_wait: IdleWait,
}

impl ResponseTally {
    fn learn(&mut self, prices: [Price; 2], miss_ratio: f64, blocks: f64, share_of_past: f64) {
        let add = |sum: &mut f64, more: f64| *sum = *sum * share_of_past + more;
        let all = |part: fn(&Price) -> u64| prices.iter().map(part).sum::<u64>() as f64;
        let (requests, behind_ns) = (all(|price| price.count), all(|price| price.behind_ns));
        add(&mut self.requests, requests);
        add(&mut self.before_ns, all(|price| price.sum_ns) - behind_ns);
        add(&mut self.waited, prices[1].count as f64);
        add(&mut self.behind_ns, behind_ns);
        add(&mut self.expected, requests * miss_ratio);
        add(&mut self.blocks, blocks.max(requests));
    }

    /// Misses that share the time behind memory: the expected misses, or the waiting requests over
    /// the blocks of a request, if those are more.
    fn misses(&self) -> f64 {
        let per_request = if self.requests > 0.0 { self.blocks / self.requests } else { 1.0 };
        self.expected.max(self.waited / per_request)
    }
}

impl TimeSpent {
    /// Adds an interval: response times of reads and writes, their miss ratios by the curves at the
    /// current quota, and their blocks.
    pub fn learn(
        &mut self,
        prices: &Prices,
        miss_ratios: [f64; 2],
        blocks: [f64; 2],
        share_of_past: f64,
    ) {
        let [reads, writes] = &mut self.kinds;
        let priced = [prices.read_hits, prices.read_misses];
        reads.learn(priced, miss_ratios[0], blocks[0], share_of_past);
        let priced = [prices.write_hits, prices.write_misses];
        writes.learn(priced, miss_ratios[1], blocks[1], share_of_past);
        let waited = [prices.read_misses, prices.write_misses];
        let all = |part: fn(&Price) -> u64| waited.iter().map(part).sum::<u64>();
        self.idle_wait.learn(all(|price| price.count), all(|price| price.behind_ns));
    }

    /// The queue of the tenant's misses; waits grow at most `max_growth` times as fast as load.
    pub fn queue(&self, max_growth: f64) -> WaitGrowth {
        let all = |part: fn(&ResponseTally) -> f64| self.kinds.iter().map(part).sum::<f64>();
        let (waited, behind_ns) = (all(|tally| tally.waited), all(|tally| tally.behind_ns));
        WaitGrowth::new(waited, behind_ns, self.idle_wait, max_growth)
    }
}

/// Costs of reads and writes of every tenant. Few requests of a kind are weighed with the mean of
/// all tenants. Without any requests of a kind the prior counts.
pub fn costs(spendings: &[TimeSpent], prior: Prior) -> Vec<[RequestCost; 2]> {
    let means = [0, 1].map(|kind| {
        let sum = |part: fn(&ResponseTally) -> f64| {
            spendings.iter().map(|spending| part(&spending.kinds[kind])).sum::<f64>()
        };
        let requests = sum(|tally| tally.requests);
        let hit_ns = mean(sum(|tally| tally.before_ns), requests, 0.0, prior.hit_ns);
        let prior_more_ns = (prior.miss_ns - hit_ns).max(0.0);
        let behind_ns = sum(|tally| tally.behind_ns);
        RequestCost {
            requests: 0.0,
            hit_ns,
            added_miss_ns: mean(behind_ns, sum(ResponseTally::misses), 0.0, prior_more_ns),
            max_added_ns: mean(behind_ns, sum(|tally| tally.waited), 0.0, prior_more_ns),
            expected: 0.0,
        }
    });
    let cost = |tally: &ResponseTally, all: &RequestCost| RequestCost {
        requests: tally.requests,
        // At least a nanosecond, so that a slowdown against hits is finite.
        hit_ns: mean(tally.before_ns, tally.requests, prior.requests, all.hit_ns).max(1.0),
        added_miss_ns: mean(tally.behind_ns, tally.misses(), prior.requests, all.added_miss_ns),
        max_added_ns: mean(tally.behind_ns, tally.waited, prior.requests, all.max_added_ns),
        expected: tally.expected,
    };
    let both = |spending: &TimeSpent| [0, 1].map(|kind| cost(&spending.kinds[kind], &means[kind]));
    spendings.iter().map(both).collect()
}

/// `sum / count`, with `weight` further requests of `otherwise` each; `otherwise` if both are 0.
fn mean(sum: f64, count: f64, weight: f64, otherwise: f64) -> f64 {
    let all = count + weight;
    if all > 0.0 { (sum + weight * otherwise) / all } else { otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: Prior = Prior { hit_ns: 10.0, miss_ns: 100.0, requests: 0.0 };

    /// Requests with this mean response and this mean time behind memory.
    fn price(count: u64, mean_ns: u64, behind_ns: u64) -> Price {
        Price { count, sum_ns: count * mean_ns, behind_ns: count * behind_ns }
    }

    fn spending(prices: &Prices, miss_ratios: [f64; 2], blocks: f64) -> TimeSpent {
        let mut spending = TimeSpent::default();
        spending.learn(prices, miss_ratios, [blocks; 2], 0.5);
        spending
    }

    #[test]
    fn the_time_behind_memory_is_spread_over_the_misses_expected() {
        let prices = Prices {
            read_hits: price(60, 20, 0),
            read_misses: price(40, 120, 100),
            write_hits: price(90, 20, 0),
            write_misses: price(10, 1020, 1000),
            ..Prices::default()
        };
        // As many reads as expected waited; of 50 writes that should have missed, 10.
        let [reads, writes] = costs(&[spending(&prices, [0.4, 0.5], 100.0)], PRIOR)[0];
        let cost = |added_miss_ns, max_added_ns, expected| RequestCost {
            requests: 100.0,
            hit_ns: 20.0,
            added_miss_ns,
            max_added_ns,
            expected,
        };
        let expected = (cost(100.0, 100.0, 40.0), cost(200.0, 1000.0, 50.0));
        assert_eq!((reads, writes), expected);
        // 40 of 100 reads of ten blocks each waited though but a tenth of the blocks missed: each
        // miss makes four times as many wait as reads of one block would.
        let [reads, _] = costs(&[spending(&prices, [0.1, 0.5], 1000.0)], PRIOR)[0];
        assert_eq!(reads, cost(400.0, 100.0, 10.0));
        // Of one block each, no more can have missed than waited.
        let [reads, _] = costs(&[spending(&prices, [0.1, 0.5], 100.0)], PRIOR)[0];
        assert_eq!(reads, cost(100.0, 100.0, 10.0));
    }

    #[test]
    fn long_requests_that_hit_do_not_make_misses_free() {
        // Reads that hit take longer in memory than those that miss take in all.
        let prices = Prices {
            read_hits: price(50, 400, 0),
            read_misses: price(50, 190, 150),
            ..Prices::default()
        };
        let [reads, _] = costs(&[spending(&prices, [0.5; 2], 100.0)], PRIOR)[0];
        assert_eq!((reads.hit_ns, reads.added_miss_ns), (220.0, 150.0));
    }

    #[test]
    fn writes_that_are_all_taken_at_once_gain_nothing_from_cache() {
        let prices = Prices { write_hits: price(100, 20, 0), ..Prices::default() };
        let [_, writes] = costs(&[spending(&prices, [0.0, 0.7], 100.0)], PRIOR)[0];
        assert_eq!((writes.hit_ns, writes.added_miss_ns), (20.0, 0.0));
    }

    #[test]
    fn one_without_misses_takes_the_mean_of_all_and_all_without_take_the_prior() {
        let never = Prices { read_hits: price(50, 30, 0), ..Prices::default() };
        let some = Prices {
            read_hits: price(50, 10, 0),
            read_misses: price(50, 220, 200),
            ..Prices::default()
        };
        let spendings = [spending(&never, [0.0; 2], 50.0), spending(&some, [0.5; 2], 100.0)];
        let two = costs(&spendings, PRIOR);
        assert_eq!(two[0][0].added_miss_ns, 200.0);
        assert_eq!(two[1][0].added_miss_ns, 200.0);
        // No tenant wrote: a hit and a miss as assumed.
        assert_eq!((two[0][1].hit_ns, two[0][1].added_miss_ns), (10.0, 90.0));
        let alone = costs(&[spending(&never, [0.0; 2], 50.0)], PRIOR);
        assert_eq!(alone[0][0].added_miss_ns, 70.0, "100 less a hit");
        // A mean of all that counts as 50 requests: hits take 3000 / 150 in the mean.
        let drawn = Prior { requests: 50.0, ..PRIOR };
        let two = costs(&spendings, drawn);
        assert_eq!(two[0][0].hit_ns, 25.0);
    }

    #[test]
    fn earlier_intervals_fade() {
        let cheap = Prices { read_hits: price(100, 10, 0), ..Prices::default() };
        let dear = Prices { read_hits: price(100, 40, 0), ..Prices::default() };
        let mut spending = spending(&cheap, [0.0; 2], 100.0);
        spending.learn(&dear, [0.0; 2], [100.0; 2], 0.5);
        let [reads, _] = costs(&[spending], PRIOR)[0];
        assert_eq!((reads.requests, reads.hit_ns), (150.0, 30.0));
    }
}
