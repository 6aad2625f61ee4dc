//! Goals in response time: the hit ratio that a tenant needs, by what its requests took.
//!
//! For: `soft-qos-x`, in replays on devices and in live servers alike. Must never know: the causes
//! of a response time, curves. Ours. Units: nanoseconds; hit ratios of block accesses, 0 to 1.
//!
//! The mean response is that of hits and that of misses, each by its share of requests. Both are
//! measured, so the share of misses that a goal allows is known. For a percentile, requests beyond
//! the limit are taken to grow with misses. Misses of blocks are taken to grow with misses of
//! requests. Both are wrong where queues form, so a division changes misses by at most
//! [`MAX_FACTOR`], and the next one sees what that did.

use cachewright_curve::signal::{Price, Prices};
use cachewright_types::Nanos;

/// Misses allowed by one division are at most so many times those measured, or part of them.
const MAX_FACTOR: f64 = 2.0;
/// Share of requests that may be beyond the limit of a percentile.
const TAIL: f64 = 0.01;

/// What was promised of a tenant's response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseGoal {
    /// The mean of all requests is at most this.
    Mean(Nanos),
    /// 99 of 100 requests take at most this.
    P99(Nanos),
}

impl ResponseGoal {
    fn limit_ns(self) -> u64 {
        match self {
            ResponseGoal::Mean(limit) | ResponseGoal::P99(limit) => limit.0,
        }
    }
}

/// Requests and their times, older ones counting less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    hits: f64,
    hits_ns: f64,
    misses: f64,
    misses_ns: f64,
    /// Requests beyond the goal's limit.
    beyond: f64,
    blocks: f64,
    missed_blocks: f64,
}

impl Sums {
    /// The sums with those before at a `share`.
    fn after(self, before: Sums, share: f64) -> Sums {
        let sum = |now: f64, then: f64| now + share * then;
        Sums {
            hits: sum(self.hits, before.hits),
            hits_ns: sum(self.hits_ns, before.hits_ns),
            misses: sum(self.misses, before.misses),
            misses_ns: sum(self.misses_ns, before.misses_ns),
            beyond: sum(self.beyond, before.beyond),
            blocks: sum(self.blocks, before.blocks),
            missed_blocks: sum(self.missed_blocks, before.missed_blocks),
        }
    }

    fn requests(&self) -> f64 {
        self.hits + self.misses
    }
}

/// What a tenant's requests took, of late and in the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ResponseRecord {
    late: Sums,
    whole: Sums,
}

impl ResponseRecord {
    /// Adds an interval with `accesses` to blocks, of which `hits` hit; earlier ones keep
    /// `smoothing` of their weight.
    pub fn learn(
        &mut self,
        goal: ResponseGoal,
        prices: &Prices,
        (accesses, hits): (u64, u64),
        smoothing: f64,
    ) {
        let pair = |read: Price, write: Price| {
            ((read.count + write.count) as f64, read.sum_ns as f64 + write.sum_ns as f64)
        };
        let (hit, hits_ns) = pair(prices.read_hits, prices.write_hits);
        let (missed, misses_ns) = pair(prices.read_misses, prices.write_misses);
        let found = Sums {
            hits: hit,
            hits_ns,
            misses: missed,
            misses_ns,
            beyond: prices.responses.beyond(goal.limit_ns()) as f64,
            blocks: accesses as f64,
            missed_blocks: accesses.saturating_sub(hits) as f64,
        };
        self.late = found.after(self.late, smoothing);
        self.whole = found.after(self.whole, 1.0);
    }

    /// The hit ratio under which the goal holds from now on, which corrects that part of the
    /// distance so far; nothing before requests were answered.
    pub fn hit_ratio(&self, goal: ResponseGoal, correction: f64) -> Option<f64> {
        let (late, whole) = (&self.late, &self.whole);
        if late.requests() <= 0.0 || late.blocks <= 0.0 {
            return None;
        }
        let factor = match goal {
            ResponseGoal::Mean(limit) => {
                let goal_ns = limit.0 as f64;
                let so_far_ns = (whole.hits_ns + whole.misses_ns) / whole.requests();
                late.mean_factor(goal_ns + correction * (goal_ns - so_far_ns))
            }
            ResponseGoal::P99(_) => {
                let so_far = whole.beyond / whole.requests();
                let allowed = (TAIL + correction * (TAIL - so_far)).max(0.0);
                // Without a request beyond the limit there is half a one.
                allowed * late.requests() / late.beyond.max(0.5)
            }
        };
        let factor = factor.clamp(1.0 / MAX_FACTOR, MAX_FACTOR);
        // Without a missed block there is one, or misses could never grow.
        let miss_ratio = factor * late.missed_blocks.max(1.0) / late.blocks;
        Some(1.0 - miss_ratio.min(1.0))
    }
}

impl Sums {
    /// Misses that a mean of `target_ns` allows over those measured.
    fn mean_factor(&self, target_ns: f64) -> f64 {
        if self.misses <= 0.0 {
            let mean_ns = self.hits_ns / self.hits;
            return if mean_ns <= target_ns { MAX_FACTOR } else { 0.0 };
        }
        let miss_ns = self.misses_ns / self.misses;
        // Without hits, what a hit takes is not known: as little as nothing.
        let hit_ns = if self.hits > 0.0 { self.hits_ns / self.hits } else { 0.0 };
        if miss_ns <= hit_ns {
            return if miss_ns <= target_ns { MAX_FACTOR } else { 0.0 };
        }
        let allowed = ((target_ns - hit_ns) / (miss_ns - hit_ns)).clamp(0.0, 1.0);
        allowed * self.requests() / self.misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of one block: `hits` of 1 ms and `misses` of 9 ms.
    fn prices(hits: u64, misses: u64) -> Prices {
        let mut prices = Prices::default();
        for (count, ns, behind) in [(hits, 1_000_000, 0), (misses, 9_000_000, 8_000_000)] {
            for _ in 0..count {
                let price =
                    if behind == 0 { &mut prices.read_hits } else { &mut prices.read_misses };
                price.add(ns, behind);
                prices.responses.add(ns);
            }
        }
        prices
    }

    fn record(goal: ResponseGoal, hits: u64, misses: u64) -> ResponseRecord {
        let mut record = ResponseRecord::default();
        record.learn(goal, &prices(hits, misses), (hits + misses, hits), 0.8);
        record
    }

    #[test]
    fn a_mean_is_met_by_the_share_of_misses_that_it_allows() {
        // 3 ms are a quarter of the way from 1 ms to 9 ms.
        let goal = ResponseGoal::Mean(Nanos(3_000_000));
        let found = record(goal, 60, 40).hit_ratio(goal, 0.0);
        assert!((found.unwrap() - 0.75).abs() < 1e-12, "{found:?}");
        // The mean so far, 4.2 ms, is 1.2 ms too long: 1.8 ms next, a tenth of misses; but a
        // division halves the misses at most.
        let found = record(goal, 60, 40).hit_ratio(goal, 1.0);
        assert!((found.unwrap() - 0.8).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_percentile_is_met_by_as_many_misses_less_as_requests_beyond_it() {
        let goal = ResponseGoal::P99(Nanos(5_000_000));
        // 15 of 1,000 are beyond: a third of the misses is too much.
        let found = record(goal, 985, 15).hit_ratio(goal, 0.0);
        assert!((found.unwrap() - 0.99).abs() < 1e-12, "{found:?}");
        // None is: misses may double.
        let goal = ResponseGoal::P99(Nanos(50_000_000));
        let found = record(goal, 985, 15).hit_ratio(goal, 0.0);
        assert!((found.unwrap() - 0.97).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn goals_out_of_reach_and_goals_met_by_misses_move_by_a_factor() {
        let out = ResponseGoal::Mean(Nanos(500_000));
        assert_eq!(record(out, 60, 40).hit_ratio(out, 0.0), Some(0.8));
        let easy = ResponseGoal::Mean(Nanos(20_000_000));
        let found = record(easy, 60, 40).hit_ratio(easy, 0.0);
        assert!((found.unwrap() - 0.2).abs() < 1e-12, "{found:?}");
        assert_eq!(record(easy, 50, 0).hit_ratio(easy, 0.0), Some(1.0 - 2.0 / 50.0));
        assert_eq!(ResponseRecord::default().hit_ratio(easy, 1.0), None);
    }

    #[test]
    fn recent_times_count_more() {
        let goal = ResponseGoal::Mean(Nanos(3_000_000));
        let mut record = record(goal, 60, 40);
        let late = prices(80, 20);
        record.learn(goal, &late, (100, 80), 0.0);
        // By the second interval alone 25 of 100 may miss.
        let found = record.hit_ratio(goal, 0.0).unwrap();
        assert!((found - 0.75).abs() < 1e-12, "{found}");
    }
}
