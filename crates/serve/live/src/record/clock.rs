//! The clock of decisions: it rises with each of them.
//!
//! For: requests that are told apart by their times, so that a replay has them in the order in
//! which they were decided. Must never know: what is decided. Units: nanoseconds.

use cachewright_types::Nanos;

/// Rises strictly, whatever the clock below it does.
#[derive(Clone, Copy, Debug)]
pub struct DecisionClock {
    origin_ns: u64,
    last: Nanos,
}

impl DecisionClock {
    /// A clock that begins at time 0 when another one shows `origin_ns`.
    pub fn new(origin_ns: u64) -> DecisionClock {
        DecisionClock { origin_ns, last: Nanos(0) }
    }

    /// The time of the next decision, made when the other clock shows `now_ns`; never 0.
    pub fn tick(&mut self, now_ns: u64) -> Nanos {
        self.last = self.next(now_ns);
        self.last
    }

    /// The time that [`DecisionClock::tick`] would give.
    pub fn next(&self, now_ns: u64) -> Nanos {
        Nanos(self.passed(now_ns).max(self.last.0 + 1))
    }

    /// The time of the last decision; 0 before the first.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// Nanoseconds since the beginning.
    pub fn passed(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.origin_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_rise_also_where_the_clock_below_stands_still_or_goes_back() {
        let mut clock = DecisionClock::new(100);
        let times = [100, 100, 90, 150, 150, 40, 200].map(|now_ns| clock.tick(now_ns).0);
        assert_eq!(times, [1, 2, 3, 50, 51, 52, 100]);
    }
}
