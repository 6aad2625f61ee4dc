//! What tenants were promised, beside what was measured.
//!
//! For: the status and the history of a server: each goal is judged by what it is about. Must never
//! know: how counts are kept. Units: hit ratios from 0 to 1, nanoseconds, microseconds in statuses.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::exports::{ExportMeter, LimitMeter, RequestKind};
use cachewright_partition::ResponseGoal;
use cachewright_result::status::GoalStatus;
use cachewright_stack::Goal;
use cachewright_types::Nanos;
use cachewright_types::measure::{Counts, Latencies};

const NS_PER_US: f64 = 1e3;
/// One request in so many may be later than a 99th percentile.
const LATE_OF: u64 = 100;

/// A tenant's goal, and what it needs to be judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    goal: Goal,
    /// The hit ratio that it is, or stands for it.
    hit_ratio: Option<f64>,
    /// The times of a hit and of a miss.
    hit: Nanos,
    miss: Nanos,
}

/// What was counted of a tenant in some time.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Accesses to blocks.
    pub blocks: Counts,
    /// Times of reads and writes to their answers.
    pub responses: Latencies,
    /// The same beside the goal's time, if there is one.
    pub limit: Option<LimitMeter>,
}

impl Counted {
    /// All that was counted since the start.
    pub fn all(blocks: Counts, meter: &ExportMeter) -> Counted {
        let mut responses = meter.kind(RequestKind::Read).latencies.clone();
        responses.add(&meter.kind(RequestKind::Write).latencies);
        Counted { blocks, responses, limit: meter.limit() }
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Counted) -> Counted {
        Counted {
            blocks: self.blocks.since(&before.blocks),
            responses: self.responses.since(&before.responses),
            limit: self.limit.map(|limit| limit.since(before.limit)),
        }
    }
}

impl Promise {
    /// What each tenant of a plan was promised. Errors: a latency that no hit ratio gives.
    pub fn all(plan: &LivePlan) -> Result<Vec<Option<Promise>>, LiveError> {
        let (hit, miss) = (plan.stack.replay.hit_time, plan.stack.replay.miss_time);
        let ratios = plan.goals()?;
        let promise = |(goal, hit_ratio): (Option<Goal>, Option<f64>)| {
            goal.map(|goal| Promise { goal, hit_ratio, hit, miss })
        };
        let goals = plan.stack.tenants.iter().map(|tenant| tenant.goal);
        Ok(goals.zip(ratios).map(promise).collect())
    }

    /// The hit ratio that it is, or stands for it.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.hit_ratio
    }

    /// The time that 99 of 100 requests are to keep.
    pub fn limit_ns(&self) -> Option<u64> {
        match self.goal {
            Goal::Response(ResponseGoal::P99(limit)) => Some(limit.0),
            _ => None,
        }
    }

    /// The goal beside what was counted.
    pub fn evaluate(&self, counted: &Counted) -> GoalStatus {
        let Counted { blocks, responses, limit } = counted;
        let accesses = blocks.reads + blocks.writes;
        let hits = blocks.read_hits + blocks.write_hits;
        let ratio = (accesses > 0).then(|| hits as f64 / accesses as f64);
        let us = |time: Nanos| time.0 as f64 / NS_PER_US;
        let (unit, promised, measured, samples, met) = match self.goal {
            Goal::HitRatio(wanted) => {
                ("ratio", wanted, ratio, accesses, ratio.map(|ratio| ratio >= wanted))
            }
            Goal::Latency(wanted) => {
                let mean = |ratio: f64| ratio * us(self.hit) + (1.0 - ratio) * us(self.miss);
                let is_met = self.hit_ratio.zip(ratio).map(|(wanted, ratio)| ratio >= wanted);
                ("us", us(wanted), ratio.map(mean), accesses, is_met)
            }
            Goal::Response(ResponseGoal::Mean(wanted)) => {
                let count = responses.count();
                let mean = (count > 0).then(|| responses.mean_ns());
                let is_met = mean.map(|mean| mean <= wanted.0 as f64);
                ("us", us(wanted), mean.map(|mean| mean / NS_PER_US), count, is_met)
            }
            Goal::Response(ResponseGoal::P99(wanted)) => {
                let (count, late) = limit.map_or((0, 0), |limit| (limit.answers(), limit.late()));
                let is_met = (count > 0).then(|| late * LATE_OF <= count);
                let bound = responses.quantile_ns(0.99);
                // The bound of a bucket may be later than the goal, and the percentile not.
                let bound = if is_met == Some(true) { bound.min(wanted.0) } else { bound };
                let measured = is_met.map(|_| bound as f64 / NS_PER_US);
                ("us", us(wanted), measured, count, is_met)
            }
        };
        let (key, unit) = (self.goal.key().to_owned(), unit.to_owned());
        GoalStatus { key, unit, promised, measured, samples, met }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_nbd::{NbdCommand, Range};

    const US: u64 = 1000;

    fn promise(goal: Goal) -> Promise {
        let (hit, miss) = (Nanos(100 * US), Nanos(5000 * US));
        Promise { goal, hit_ratio: goal.hit_ratio(hit, miss).unwrap(), hit, miss }
    }

    /// A meter of writes that took so long.
    fn meter(promise: &Promise, times_us: &[u64]) -> ExportMeter {
        let mut meter = ExportMeter::default();
        meter.set_limit(promise.limit_ns());
        let write = NbdCommand::Write(Range { offset: 0, length: 512 });
        times_us.iter().for_each(|time_us| meter.note(write, time_us * US, false));
        meter
    }

    fn evaluated(goal: Goal, times_us: &[u64]) -> (Option<f64>, u64, Option<bool>) {
        let promise = promise(goal);
        let blocks = Counts { reads: 100, read_hits: 60, ..Counts::default() };
        let found = promise.evaluate(&Counted::all(blocks, &meter(&promise, times_us)));
        assert_eq!(found.key, goal.key());
        (found.measured, found.samples, found.met)
    }

    #[test]
    fn each_goal_is_judged_by_what_it_is_about() {
        assert_eq!(evaluated(Goal::HitRatio(0.6), &[]), (Some(0.6), 100, Some(true)));
        assert_eq!(evaluated(Goal::HitRatio(0.61), &[]), (Some(0.6), 100, Some(false)));
        let (mean, samples, met) = evaluated(Goal::Latency(Nanos(2061 * US)), &[]);
        assert!((mean.unwrap() - 2060.0).abs() < 1e-6, "{mean:?}");
        assert_eq!((samples, met), (100, Some(true)));
        assert_eq!(evaluated(Goal::Latency(Nanos(2059 * US)), &[]).2, Some(false));
        let mean = |limit_us| Goal::Response(ResponseGoal::Mean(Nanos(limit_us * US)));
        assert_eq!(evaluated(mean(200), &[100, 300]), (Some(200.0), 2, Some(true)));
        assert_eq!(evaluated(mean(199), &[100, 300]), (Some(200.0), 2, Some(false)));
        assert_eq!(evaluated(mean(199), &[]), (None, 0, None), "nothing was asked");
    }

    #[test]
    fn of_a_99th_percentile_one_request_in_a_hundred_may_be_late() {
        let limit = Goal::Response(ResponseGoal::P99(Nanos(20_000 * US)));
        let mut times = vec![20_000; 99];
        times.push(90_000);
        assert_eq!(evaluated(limit, &times), (Some(20_000.0), 100, Some(true)));
        times.push(20_001);
        let (measured, samples, met) = evaluated(limit, &times);
        assert!(measured.unwrap() > 20_000.0, "{measured:?}");
        assert_eq!((samples, met), (101, Some(false)));
        assert_eq!(evaluated(limit, &[]), (None, 0, None));
    }

    #[test]
    fn only_what_was_counted_of_late_is_judged() {
        let promise = promise(Goal::Response(ResponseGoal::P99(Nanos(200 * US))));
        let mut meter = meter(&promise, &[900; 50]);
        let before = Counted::all(Counts::default(), &meter);
        let write = NbdCommand::Write(Range { offset: 0, length: 512 });
        meter.note(write, 100 * US, false);
        let now = Counted::all(Counts::default(), &meter);
        assert_eq!(promise.evaluate(&now).met, Some(false));
        let recent = promise.evaluate(&now.since(&before));
        assert_eq!((recent.samples, recent.met), (1, Some(true)));
    }
}
