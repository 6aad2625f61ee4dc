//! Timers that were begun cannot be taken back: one that was made useless by an earlier one ends
//! without effect, so that they never grow in number.

/// The time of the timer that counts, if one is under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarliestTimer {
    at_ns: Option<u64>,
}

impl EarliestTimer {
    /// Whether a timer for this time is to begin: none is under way that ends as early. It counts
    /// as begun.
    pub fn begin(&mut self, at_ns: u64) -> bool {
        let begins = self.at_ns.is_none_or(|begun_ns| at_ns < begun_ns);
        if begins {
            self.at_ns = Some(at_ns);
        }
        begins
    }

    /// A timer is over; whether it is the one that counts.
    pub fn end(&mut self, now_ns: u64) -> bool {
        let counts = self.at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        if counts {
            self.at_ns = None;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_timer_takes_the_place_of_a_later_one() {
        let mut timer = EarliestTimer::default();
        assert_eq!([30, 40, 10, 20].map(|at_ns| timer.begin(at_ns)), [true, false, true, false]);
        assert_eq!((timer.end(10), timer.begin(50)), (true, true));
        assert!(!timer.end(30), "it was made useless");
        assert!(!timer.begin(50) && timer.end(50));
    }
}
