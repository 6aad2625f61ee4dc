//! Response times and slowdowns of each tenant by its blocks, learned interval by interval from
//! curves and measured response times, which fade. For `icache-x` and `dp-response`. Units: blocks,
//! nanoseconds.
//!
//! A request of many blocks waits for its slowest block, and most writes return at once whether
//! their block was cached or not. So the cost of a miss is not the response of a request that
//! missed. It is the time that all requests spent behind memory, over the misses that the curve
//! expects at the current quota. This value is right while quotas stay, and changes as misses do.

use crate::TenantView;
use cachewright_curve::signal::{Price, Prices};
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_snapshot::SnapshotValue;

/// What was learned of all tenants.
#[derive(Clone, Debug, SnapshotValue)]
pub struct ResponseModel {
    prior: Prior,
    /// Most growth of a tenant's waits per growth of its misses; 0 takes waits as constant.
    max_queueing: f64,
    /// What an interval counts after the next one, 0 to 1.
    share_of_past: f64,
    /// Sizes of averaged curves; empty before the first interval.
    grid: Vec<u32>,
    patterns: Vec<Option<AccessPattern>>,
    spendings: Vec<TimeSpent>,
    /// Tenants of the last call; 0 before the first.
    known: usize,
}

impl ResponseModel {
    /// A model without intervals, which count half after `half_life` further ones. Waits grow with
    /// a tenant's misses at most `max_queueing` times as fast; with 0 they stay as measured.
    pub fn new(prior: Prior, half_life: f64, max_queueing: f64) -> ResponseModel {
        let share_of_past = 0.5_f64.powf(1.0 / half_life);
        let (grid, patterns, spendings) = (Vec::new(), Vec::new(), Vec::new());
        ResponseModel { prior, max_queueing, share_of_past, grid, patterns, spendings, known: 0 }
    }

    /// Learns from the interval that ended, unless all tenants were idle.
    pub fn learn(&mut self, tenants: &[TenantView], total_blocks: u32) {
        self.patterns.resize(tenants.len(), None);
        self.spendings.resize(tenants.len(), TimeSpent::default());
        if self.grid.last() != Some(&total_blocks) {
            self.grid = grid(total_blocks);
            self.patterns.iter_mut().for_each(|pattern| *pattern = None);
        }
        let is_first = self.known != tenants.len();
        self.known = tenants.len();
        if tenants.iter().all(|tenant| tenant.accesses == 0) && !is_first {
            return;
        }
        let past = self.share_of_past;
        for ((tenant, pattern), spending) in
            tenants.iter().zip(&mut self.patterns).zip(&mut self.spendings)
        {
            let Some(curves) = tenant.signals.curves else { continue };
            pattern.get_or_insert_default().learn(curves, &self.grid, past);
            let held = match tenant.quota_blocks {
                0 => tenant.occupancy_blocks,
                quota => quota,
            };
            let ratios = [curves.reads.miss_ratio(held), curves.writes.miss_ratio(held)];
            let none = Prices::default();
            let blocks = [curves.reads.accesses() as f64, curves.writes.accesses() as f64];
            spending.learn(tenant.signals.prices.unwrap_or(&none), ratios, blocks, past);
        }
    }

    /// Sizes at which responses are known, ascending from 0 to the whole cache.
    pub fn grid(&self) -> &[u32] {
        &self.grid
    }

    /// Each tenant's slowdown by blocks, once every tenant has curves.
    pub fn slowdowns(&self) -> Option<Vec<Slowdown>> {
        self.of_each(|pattern, cost, queue| pattern.slowdown(cost, queue, &self.grid))
    }

    /// The sum of each tenant's recent response times in ns at the sizes of the grid, once every
    /// tenant has curves; 0 for a tenant without requests.
    pub fn responses(&self) -> Option<Vec<Vec<f64>>> {
        let none = || vec![0.0; self.grid.len()];
        self.of_each(|pattern, cost, queue| {
            pattern.responses(cost, queue, &self.grid).unwrap_or_else(none)
        })
    }

    fn of_each<T>(
        &self,
        value: impl Fn(&AccessPattern, &[RequestCost; 2], WaitGrowth) -> T,
    ) -> Option<Vec<T>> {
        let patterns: Option<Vec<&AccessPattern>> =
            self.patterns.iter().map(Option::as_ref).collect();
        let costs = costs(&self.spendings, self.prior);
        let queues = self.spendings.iter().map(|spending| spending.queue(self.max_queueing));
        let each = patterns?.into_iter().zip(&costs).zip(queues);
        Some(each.map(|((pattern, cost), queue)| value(pattern, cost, queue)).collect())
    }
}

/// Requests of one kind, and their response times.
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
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
#[derive(Clone, Copy, Debug, PartialEq, SnapshotValue)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
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
/// Fewest waits of an interval of which a mean is taken for that of an idle device.
const MIN_WAITS: u64 = 50;

/// The wait of a miss at an idle device: the least mean wait of any interval so far.
#[derive(Clone, Copy, Debug, PartialEq, SnapshotValue)]
pub struct IdleWait {
    /// Infinite before the first interval with enough waits.
    ns: f64,
}

/// Growth of waits with load, around the load of today: a tenant that overruns its device gains by
/// blocks what it would save of the queue that its own misses make.
///
/// Waits follow those of one server with random arrivals: `1 / (1 - utilisation)` times the wait of
/// an idle device. The least mean wait of any interval stands for the idle device. Beyond today's
/// load waits grow on along their tangent: an overrun device has a queue, not an infinite wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitGrowth {
    /// Relative growth of the wait per relative growth of the load; at least 0.
    growth: f64,
}

impl Default for IdleWait {
    fn default() -> IdleWait {
        IdleWait { ns: f64::INFINITY }
    }
}

impl IdleWait {
    /// Takes in the waits of an interval.
    pub fn learn(&mut self, count: u64, sum_ns: u64) {
        if count >= MIN_WAITS {
            self.ns = self.ns.min(sum_ns as f64 / count as f64);
        }
    }
}

impl WaitGrowth {
    /// Waits that no load changes.
    pub const NONE: WaitGrowth = WaitGrowth { growth: 0.0 };

    /// The queue in which so many misses waited `sum_ns` in all, with a growth of at most
    /// `max_growth`.
    pub fn new(waited: f64, sum_ns: f64, idle: IdleWait, max_growth: f64) -> WaitGrowth {
        let idle_ns = idle.ns * waited;
        let growth = if idle_ns > 0.0 { sum_ns / idle_ns - 1.0 } else { 0.0 };
        WaitGrowth { growth: growth.clamp(0.0, max_growth) }
    }

    /// The wait at `load` times today's misses, beside today's wait.
    pub fn wait(&self, load: f64) -> f64 {
        if load > 1.0 {
            return 1.0 + self.growth * (load - 1.0);
        }
        let utilisation = self.growth / (1.0 + self.growth);
        (1.0 - utilisation) / (1.0 - utilisation * load.max(0.0))
    }
}

/// Parts of the grid; curves are linear between its sizes.
const PARTS: u64 = 512;

/// Units of a [`Curve`] per unit of slowdown.
const FINE: f64 = 1e9;
/// The largest power of a slowdown: with [`FINE`] it fits 64 bits.
const MAX_POWERED: f64 = 1e9;

/// Sizes of the grid, ascending from 0 to the whole cache.
pub fn grid(total_blocks: u32) -> Vec<u32> {
    let total = u64::from(total_blocks);
    let parts = total.min(PARTS);
    (0..=parts).map(|part| (part * total).checked_div(parts).unwrap_or(0) as u32).collect()
}

/// Accesses of one kind and their misses at the sizes of a grid; earlier intervals fade.
#[derive(Clone, Debug, Default, PartialEq, SnapshotValue)]
struct MissCounts {
    accesses: f64,
    misses: Vec<f64>,
}

/// Averaged curves of a tenant's reads and writes.
#[derive(Clone, Debug, Default, PartialEq, SnapshotValue)]
pub struct AccessPattern([MissCounts; 2]);

impl MissCounts {
    fn learn(&mut self, curve: &Curve, grid: &[u32], share_of_past: f64) {
        self.accesses = self.accesses * share_of_past + curve.accesses() as f64;
        self.misses.resize(grid.len(), 0.0);
        let (sizes, misses) = (curve.sizes(), curve.knot_misses());
        let mut right = 0;
        for (sum, &size) in self.misses.iter_mut().zip(grid) {
            while right < sizes.len() && sizes[right] < size {
                right += 1;
            }
            // Sizes begin at 0, so that whatever has none to its right has one to its left.
            let here = match (right.checked_sub(1), sizes.get(right)) {
                (Some(lower), Some(&next)) => {
                    let share = f64::from(size - sizes[lower]) / f64::from(next - sizes[lower]);
                    misses[lower] + share * (misses[right] - misses[lower])
                }
                (Some(lower), None) => misses[lower],
                (None, _) => misses[0],
            };
            *sum = *sum * share_of_past + here;
        }
    }

    /// Misses per access at an index of the grid.
    fn ratio(&self, index: usize) -> f64 {
        if self.accesses > 0.0 { self.misses[index] / self.accesses } else { 0.0 }
    }
}

impl AccessPattern {
    /// Adds the curves of an interval; earlier ones count for `share_of_past`.
    pub fn learn(&mut self, curves: &Curves, grid: &[u32], share_of_past: f64) {
        let [reads, writes] = &mut self.0;
        reads.learn(&curves.reads, grid, share_of_past);
        writes.learn(&curves.writes, grid, share_of_past);
    }

    /// The sum of the tenant's response times by blocks, in ns; it never rises. The weights of
    /// reads and writes are the measured requests, otherwise the accesses of the curves. Misses
    /// wait as their queue would let them. Nothing for a tenant without requests.
    pub fn responses(
        &self,
        costs: &[RequestCost; 2],
        queue: WaitGrowth,
        grid: &[u32],
    ) -> Option<Vec<f64>> {
        let [reads, writes] = &self.0;
        let priced = costs[0].requests + costs[1].requests > 0.0;
        let count = |cost: &RequestCost, known: &MissCounts| {
            if priced { cost.requests } else { known.accesses }
        };
        let (read, write) = (count(&costs[0], reads), count(&costs[1], writes));
        let expected = costs[0].expected + costs[1].expected;
        let response = |index: usize| {
            let misses = read * reads.ratio(index) + write * writes.ratio(index);
            let wait = if expected > 0.0 { queue.wait(misses / expected) } else { 1.0 };
            let response_ns = |cost: &RequestCost, known: &MissCounts| {
                let added_ns = cost.added_miss_ns * known.ratio(index);
                cost.hit_ns + wait * added_ns.min(cost.max_added_ns)
            };
            read * response_ns(&costs[0], reads) + write * response_ns(&costs[1], writes)
        };
        if reads.misses.len() != grid.len() || read + write <= 0.0 {
            return None;
        }
        let mut values: Vec<f64> = (0..grid.len()).map(response).collect();
        for index in 1..values.len() {
            values[index] = values[index].min(values[index - 1]);
        }
        Some(values)
    }

    /// The tenant's mean response by blocks, over that with the whole cache.
    pub fn slowdown(&self, costs: &[RequestCost; 2], queue: WaitGrowth, grid: &[u32]) -> Slowdown {
        let Some(mut values) = self.responses(costs, queue, grid) else {
            return Slowdown { values: vec![1.0; grid.len()] };
        };
        let best = values[values.len() - 1];
        values.iter_mut().for_each(|value| *value = if best > 0.0 { *value / best } else { 1.0 });
        Slowdown { values }
    }
}

/// A value between those at the sizes of a grid; beyond the last that of the last.
pub fn interpolated(values: &[f64], blocks: u32, grid: &[u32]) -> f64 {
    let right = grid.partition_point(|&size| size < blocks).min(grid.len() - 1);
    if right == 0 || grid[right] <= blocks {
        return values[right];
    }
    let share = f64::from(blocks - grid[right - 1]) / f64::from(grid[right] - grid[right - 1]);
    values[right - 1] + share * (values[right] - values[right - 1])
}

/// Slowdown at the sizes of a grid; it never rises and ends at 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowdown {
    values: Vec<f64>,
}

impl Slowdown {
    /// The slowdown with `blocks`, at most the whole cache.
    pub fn value_at(&self, blocks: u32, grid: &[u32]) -> f64 {
        interpolated(&self.values, blocks, grid)
    }

    /// The fewest blocks, at least `floor_blocks`, with a slowdown of at most `level`, which is 1
    /// or more.
    pub fn need(&self, level: f64, floor_blocks: u32, grid: &[u32]) -> u32 {
        let right = self.values.partition_point(|&value| value > level).min(grid.len() - 1);
        if right == 0 {
            return floor_blocks;
        }
        let (low, high) = (grid[right - 1], grid[right]);
        let fall = self.values[right - 1] - self.values[right];
        let share = if fall > 0.0 { (self.values[right - 1] - level) / fall } else { 1.0 };
        let blocks = low + (share * f64::from(high - low)).ceil() as u32;
        // Rounding up the product may overshoot by one where the exact answer is whole.
        let over = blocks > low + 1 && self.value_at(blocks - 1, grid) <= level;
        (blocks - u32::from(over)).clamp(low + 1, high).max(floor_blocks)
    }

    /// The slowdown to this power, which is 1 or more; at most 1e9, so that a curve can hold it.
    pub fn powered(&self, power: f64) -> Slowdown {
        let values = self.values.iter().map(|value| value.powf(power).min(MAX_POWERED));
        Slowdown { values: if power > 1.0 { values.collect() } else { self.values.clone() } }
    }

    /// The slowdown beyond 1 as a curve.
    pub fn curve(&self, grid: &[u32]) -> Curve {
        let fine = |value: &f64| (value - 1.0) * FINE;
        let max_value = self.values.first().map_or(0.0, fine).ceil() as u64;
        let knots = grid.iter().copied().zip(self.values.iter().map(fine));
        Curve::from_knots(knots, max_value, Provenance::Exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn waits_as_at_an_idle_device_are_no_queue_and_longer_ones_are() {
        let mut idle = IdleWait::default();
        assert_eq!(WaitGrowth::new(0.0, 0.0, idle, 8.0), WaitGrowth::NONE, "nothing waited yet");
        idle.learn(100, 600_000);
        idle.learn(100, 200_000);
        assert_eq!(WaitGrowth::new(50.0, 100_000.0, idle, 8.0), WaitGrowth::NONE);
        // Three times the wait: a utilisation of two thirds.
        let queue = WaitGrowth::new(50.0, 300_000.0, idle, 8.0);
        assert!((queue.growth - 2.0).abs() < 1e-12, "{queue:?}");
        assert!((queue.wait(0.5) - 0.5).abs() < 1e-12, "half the load: (1/3) / (2/3)");
        assert!((queue.wait(0.0) - 1.0 / 3.0).abs() < 1e-12, "the idle device");
        assert!((queue.wait(1.5) - 2.0).abs() < 1e-12, "along the tangent");
        assert_eq!(WaitGrowth::new(50.0, 300_000.0, idle, 1.0).growth, 1.0);
        assert_eq!(WaitGrowth::new(50.0, 300_000.0, idle, 0.0), WaitGrowth::NONE);
    }

    #[test]
    fn few_waits_are_no_measure_of_an_idle_device() {
        let mut idle = IdleWait::default();
        idle.learn(MIN_WAITS - 1, 10);
        assert_eq!(WaitGrowth::new(100.0, 400_000.0, idle, 8.0), WaitGrowth::NONE);
        idle.learn(MIN_WAITS, 100_000);
        assert_eq!(WaitGrowth::new(100.0, 400_000.0, idle, 8.0).growth, 1.0);
    }

    const NONE: WaitGrowth = WaitGrowth::NONE;

    fn curves(reads: &[(u32, f64)], writes: &[(u32, f64)]) -> Curves {
        let curve =
            |knots: &[(u32, f64)]| Curve::from_knots(knots.iter().copied(), 100, Provenance::Exact);
        Curves { all: curve(&[]), reads: curve(reads), writes: curve(writes) }
    }

    fn cost(requests: f64, added_miss_ns: f64) -> RequestCost {
        let max_added_ns = added_miss_ns;
        RequestCost { requests, hit_ns: 20.0, added_miss_ns, max_added_ns, expected: 0.0 }
    }

    #[test]
    fn a_grid_has_every_size_or_512_parts() {
        assert_eq!(grid(3), [0, 1, 2, 3]);
        assert_eq!(grid(0), [0]);
        let large = grid(u32::MAX);
        assert_eq!((large.len(), large[1], large[512]), (513, (1 << 23) - 1, u32::MAX));
    }

    #[test]
    fn reads_and_writes_count_by_their_requests_and_costs() {
        // Reads miss 100, 50, 0 of 100 with 0, 10, 20 blocks, writes 100, 60, 20.
        let sizes = grid(20);
        let mut pattern = AccessPattern::default();
        let both = curves(&[(20, 0.0)], &[(20, 20.0)]);
        pattern.learn(&both, &sizes, 0.5);
        let slowdown = pattern.slowdown(&[cost(300.0, 100.0), cost(100.0, 50.0)], NONE, &sizes);
        let response = |reads: f64, writes: f64| 300.0 * (20.0 + reads) + 100.0 * (20.0 + writes);
        let alone = response(0.0, 10.0);
        for (blocks, expected) in [(0, response(100.0, 50.0)), (10, response(50.0, 30.0))] {
            assert!(
                (slowdown.value_at(blocks, &sizes) - expected / alone).abs() < 1e-12,
                "{blocks}"
            );
        }
        assert_eq!((slowdown.value_at(20, &sizes), slowdown.value_at(99, &sizes)), (1.0, 1.0));
        // Nothing priced: as many of each as the curves counted, here the same.
        let slowdown = pattern.slowdown(&[cost(0.0, 100.0), cost(0.0, 50.0)], NONE, &sizes);
        assert!((slowdown.value_at(0, &sizes) - (120.0 + 70.0) / (20.0 + 30.0)).abs() < 1e-12);
        let silent = AccessPattern::default().slowdown(&[cost(0.0, 1.0); 2], NONE, &sizes);
        assert_eq!(silent.value_at(0, &sizes), 1.0);
    }

    #[test]
    fn misses_wait_as_their_queue_lets_them() {
        // Reads miss 100, 50, 0 of 100; with 10 of 20 blocks they waited five times as long as at
        // an idle device: a utilisation of 0.8.
        let sizes = grid(20);
        let mut pattern = AccessPattern::default();
        pattern.learn(&curves(&[(20, 0.0)], &[]), &sizes, 0.5);
        let read = RequestCost { expected: 50.0, ..cost(100.0, 80.0) };
        let mut idle = IdleWait::default();
        idle.learn(100, 1_600);
        let queue = WaitGrowth::new(100.0, 8_000.0, idle, 8.0);
        let costs = [read, cost(0.0, 0.0)];
        let of = |queue: WaitGrowth| pattern.responses(&costs, queue, &sizes).unwrap();
        let (queued, constant) = (of(queue), of(NONE));
        assert_eq!((constant[0], constant[10], constant[20]), (10_000.0, 6_000.0, 2_000.0));
        // Twice the misses of today wait 1 + 4 times as long; half of them 0.2 / 0.6 times.
        let expected = [2_000.0 + 8_000.0 * 5.0, 6_000.0, 2_000.0];
        for (blocks, expected) in [0, 10, 20].into_iter().zip(expected) {
            assert!((queued[blocks] - expected).abs() < 1e-6, "{blocks}: {queued:?}");
        }
        assert!((queued[15] - (2_000.0 + 2_000.0 / 3.0)).abs() < 1e-6, "{queued:?}");
    }

    #[test]
    fn earlier_curves_fade_by_their_accesses() {
        let sizes = grid(10);
        let mut pattern = AccessPattern::default();
        pattern.learn(&curves(&[(10, 0.0)], &[]), &sizes, 0.5);
        pattern.learn(&curves(&[(10, 100.0)], &[]), &sizes, 0.5);
        // Misses with all 10 blocks: 0 of 50 and 100 of 100.
        assert!((pattern.0[0].ratio(10) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(pattern.0[0].ratio(0), 1.0);
    }

    #[test]
    fn the_slowdown_is_a_curve_of_what_is_beyond_1() {
        let sizes = grid(4);
        let slowdown = Slowdown { values: vec![3.0, 2.0, 2.0, 1.5, 1.0] };
        let curve = slowdown.curve(&sizes);
        assert_eq!((curve.misses(0), curve.misses(3), curve.misses(4)), (2e9, 0.5e9, 0.0));
    }

    proptest! {
        #[test]
        fn a_need_is_the_fewest_blocks(
            mut values in prop::collection::vec(1.0_f64..9.0, 2..40),
            total in prop_oneof![1_u32..40, 1_000_u32..3_000],
            floor in 0_u32..10,
            level in 1.0_f64..9.0,
        ) {
            let sizes = grid(total);
            values.sort_by(|a, b| b.total_cmp(a));
            values.push(1.0);
            let last = values.len() - 1;
            let value = |index: usize| values[index * last / (sizes.len() - 1)];
            let values = (0..sizes.len()).map(value).collect();
            let slowdown = Slowdown { values };
            let floor = floor.min(total);
            for level in [level, 1.0, slowdown.value_at(total / 2, &sizes)] {
                let slow = (floor..=total).find(|&q| slowdown.value_at(q, &sizes) <= level);
                prop_assert_eq!(Some(slowdown.need(level, floor, &sizes)), slow, "{}", level);
            }
        }

        #[test]
        fn curves_are_read_as_they_are(
            knots in prop::collection::btree_map(1_u32..3_000, 0.0_f64..100.0, 0..20),
            total in 0_u32..2_000,
        ) {
            let knots: Vec<(u32, f64)> = knots.into_iter().collect();
            let (both, sizes) = (curves(&knots, &[]), grid(total));
            let mut pattern = AccessPattern::default();
            pattern.learn(&both, &sizes, 0.0);
            for (index, &size) in sizes.iter().enumerate() {
                prop_assert!((pattern.0[0].misses[index] - both.reads.misses(size)).abs() < 1e-9);
            }
        }
    }
}
