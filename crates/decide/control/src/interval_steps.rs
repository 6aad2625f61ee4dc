//! The steps of an interval, and when each ends.
//!
//! For: features of equal parts of an interval. Must never know: intervals' reasons, partitioners.
//! Units: nanoseconds on the decision clock. What arrives at a border belongs to the later step.

use cachewright_curve::signal::{StepCounts, StepMeter};

/// Steps, and when the one under way ends.
pub struct IntervalSteps {
    /// Counts the step under way.
    pub meter: StepMeter,
    per_interval: u32,
    interval_ns: u64,
    /// When the interval began.
    start_ns: u64,
    /// Steps of the interval that have ended.
    ended: u32,
    /// When the one under way ends; the last ends with the interval.
    due_ns: u64,
}

impl IntervalSteps {
    /// Steps of a meter: `per_interval` in each interval of `interval_ns`.
    pub fn new(tenants: usize, per_interval: u32, interval_ns: u64) -> IntervalSteps {
        let meter = StepMeter::new(tenants);
        let (start_ns, ended, due_ns) = (0, 0, 0);
        let mut steps = IntervalSteps { meter, per_interval, interval_ns, start_ns, ended, due_ns };
        steps.due_ns = steps.border_ns();
        steps
    }

    fn border_ns(&self) -> u64 {
        if self.ended + 1 >= self.per_interval {
            return u64::MAX;
        }
        let share = u128::from(self.interval_ns) * u128::from(self.ended + 1);
        self.start_ns.saturating_add((share / u128::from(self.per_interval)) as u64)
    }

    /// Ends the steps that end at or before `now_ns`.
    #[inline]
    pub fn reach(&mut self, now_ns: u64) {
        while now_ns >= self.due_ns {
            self.end_step();
        }
    }

    fn end_step(&mut self) {
        self.meter.end_step();
        self.ended += 1;
        self.due_ns = self.border_ns();
    }

    /// The steps of the interval that ends now.
    pub fn end_interval(&mut self) -> Vec<Vec<StepCounts>> {
        while self.ended < self.per_interval {
            self.end_step();
        }
        self.ended = 0;
        self.start_ns = self.start_ns.saturating_add(self.interval_ns);
        self.due_ns = self.border_ns();
        self.meter.take()
    }
}
