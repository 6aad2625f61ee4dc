//! Responses and hits by the step in which requests arrived.
//!
//! For: curves of response time by cache size, interval by interval, of open loops. Must never
//! know: caches, devices, what a sum is for. Units: nanoseconds; blocks. An interval is cut into
//! steps of equal length; what arrives at a border belongs to the later step. Trims and flushes are
//! not counted; a warm-up changes nothing here.

use crate::machines::machine::TimedAnswer;
use cachewright_types::{Op, Request};

/// Intervals and their steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepClock {
    /// Length of an interval; above 0.
    pub interval_ns: u64,
    /// Steps per interval; above 0.
    pub steps: u32,
}

/// What came in each step, all tenants together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSums {
    clock: StepClock,
    /// Reads and writes.
    pub requests: Vec<u32>,
    /// The sum of their responses.
    pub response_ns: Vec<u64>,
    /// Blocks they asked for.
    pub accesses: Vec<u32>,
    /// Those that the cache had.
    pub hits: Vec<u32>,
}

impl StepClock {
    /// The step of a time, counted from the start of the replay.
    pub fn step(&self, time_ns: u64) -> usize {
        let (interval_ns, steps) = (u128::from(self.interval_ns), u128::from(self.steps));
        let (interval, within) = (time_ns / self.interval_ns, time_ns % self.interval_ns);
        // The last step that begins, in whole nanoseconds rounded down, at or before the time.
        let step = ((u128::from(within) + 1) * steps - 1) / interval_ns;
        (u128::from(interval) * steps + step) as usize
    }

    /// Intervals that a workload has whose last request comes at `span_ns`.
    pub fn intervals(&self, span_ns: u64) -> usize {
        (span_ns / self.interval_ns) as usize + 1
    }
}

impl StepSums {
    /// Nothing counted yet of a workload whose last request comes at `span_ns`.
    pub fn new(clock: StepClock, span_ns: u64) -> StepSums {
        let steps = clock.intervals(span_ns) * clock.steps as usize;
        StepSums {
            clock,
            requests: vec![0; steps],
            response_ns: vec![0; steps],
            accesses: vec![0; steps],
            hits: vec![0; steps],
        }
    }

    /// A request has asked for blocks at its arrival.
    pub(crate) fn on_request(&mut self, request: &Request, arrival_ns: u64, accesses: u64) {
        if matches!(request.op, Op::Read | Op::Write) {
            add(&mut self.accesses, self.clock.step(arrival_ns), accesses);
        }
    }

    /// Blocks of a request that came at that time were in the cache.
    pub(crate) fn hit(&mut self, arrival_ns: u64, hits: u64) {
        add(&mut self.hits, self.clock.step(arrival_ns), hits);
    }

    /// A request has been answered.
    pub(crate) fn answered(&mut self, request: &Request, answer: &TimedAnswer) {
        let step = self.clock.step(answer.arrival_ns);
        if matches!(request.op, Op::Read | Op::Write)
            && let Some(sum) = self.response_ns.get_mut(step)
        {
            *sum += answer.finish_ns - answer.arrival_ns;
            add(&mut self.requests, step, 1);
        }
    }
}

fn add(counts: &mut [u32], step: usize, more: u64) {
    if let Some(count) = counts.get_mut(step) {
        *count = count.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_arrives_at_a_border_belongs_to_the_later_step() {
        // Steps of 3 1/3 ns begin at 0, 3 and 6.
        let clock = StepClock { interval_ns: 10, steps: 3 };
        let steps = [0, 2, 3, 5, 6, 9, 10, 12, 13, 20].map(|time_ns| clock.step(time_ns));
        assert_eq!(steps, [0, 0, 1, 1, 2, 2, 3, 3, 4, 6]);
        assert_eq!([0, 9, 10].map(|span_ns| clock.intervals(span_ns)), [1, 1, 2]);
        assert_eq!(StepClock { interval_ns: 2, steps: 5 }.step(1), 4, "more steps than time");
    }

    proptest! {
        #[test]
        fn a_step_is_the_last_that_has_begun(
            interval_ns in 1..10_000_u64,
            steps in 1..300_u32,
            time_ns in 0..100_000_u64,
        ) {
            let clock = StepClock { interval_ns, steps };
            let begins = |step: u64| {
                let (interval, step) = (step / u64::from(steps), step % u64::from(steps));
                interval * interval_ns + interval_ns * step / u64::from(steps)
            };
            let model = (0..).take_while(|step| begins(*step) <= time_ns).last();
            prop_assert_eq!(Some(clock.step(time_ns) as u64), model);
        }
    }
}
