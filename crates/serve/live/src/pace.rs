//! A rate that is kept: so many units per second, with short bursts.
//!
//! For: caps on clients and on background work. Must never know: what a unit is, clocks. Units:
//! nanoseconds of the caller's clock, units of the caller. Source: virtual scheduling, the form of
//! the generic cell rate algorithm without queues (ITU-T I.371). What is too large for a burst
//! passes at once, and the next waits for as long as it takes.

/// What may pass at once after a pause, in nanoseconds of the rate.
const BURST_NS: u64 = 100_000_000;
const NS_PER_S: u128 = 1_000_000_000;

/// A rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    per_second: u64,
    /// When all that has passed is paid for.
    paid_ns: u64,
}

impl Pace {
    /// So many units per second, at least one.
    pub fn new(per_second: u64) -> Pace {
        Pace { per_second: per_second.max(1), paid_ns: 0 }
    }

    /// Units per second.
    pub fn rate(&self) -> u64 {
        self.per_second
    }

    /// Another rate from now on; what has passed is not paid for again.
    pub fn set_rate(&mut self, per_second: u64) {
        self.per_second = per_second.max(1);
    }

    /// When something may pass: at once if that is not after now.
    pub fn due_ns(&self) -> u64 {
        self.paid_ns
    }

    /// Units pass.
    pub fn charge(&mut self, units: u64, now_ns: u64) {
        let cost_ns = u128::from(units) * NS_PER_S / u128::from(self.per_second);
        let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX);
        self.paid_ns = self.paid_ns.max(now_ns.saturating_sub(BURST_NS)).saturating_add(cost_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_is_kept() {
        let mut pace = Pace::new(1000);
        let (mut now_ns, mut passed) = (1_000_000_000, 0);
        while now_ns < 3_000_000_000 {
            while pace.due_ns() <= now_ns {
                pace.charge(1, now_ns);
                passed += 1;
            }
            now_ns += 1_000_000;
        }
        assert_eq!(passed, 2_100, "two seconds at the rate, and a burst of a tenth");
    }

    #[test]
    fn what_is_larger_than_a_burst_is_paid_for_afterwards() {
        let mut pace = Pace::new(1 << 20);
        pace.charge(4 << 20, 1_000_000_000);
        assert_eq!(pace.due_ns(), 4_900_000_000);
        pace.set_rate(0);
        assert_eq!(pace.rate(), 1);
        pace.charge(u64::MAX, 0);
        assert_eq!(pace.due_ns(), u64::MAX);
    }
}
