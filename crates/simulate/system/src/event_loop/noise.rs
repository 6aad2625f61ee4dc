//! Tenants whose rate switches: requests begin in on-periods, and few or none in off-periods.
//!
//! For: closed loops with noisy tenants. Must never know: requests, caches, devices. Units:
//! nanoseconds. Source: Wang et al. (oc-cache), V, where a noisy tenant is one whose rate varies;
//! how is not said. Here on-periods and off-periods take turns, the first is on, and lengths are
//! drawn from a seed of the tenant's own: exponential about their means, or all of them the mean.

use cachewright_types::{Rng, Seed};

/// How a tenant's rate switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Mean length of an on-period.
    pub on_ns: u64,
    /// Mean length of an off-period.
    pub off_ns: u64,
    /// Requests kept under way in off-periods; 0 for silence.
    pub off_depth: u32,
    /// Lengths are exponential; else each is the mean.
    pub exponential: bool,
    /// What lengths are drawn from.
    pub seed: Seed,
}

/// Where a tenant is in its periods.
#[derive(Clone, Debug)]
pub struct Periods {
    noise: Noise,
    rng: Rng,
    /// When the on-period at hand begins, and when it ends.
    on_ns: (u64, u64),
    /// How many of the tenant's requests wait for the on-period that begins then.
    waiting: (u32, u64),
}

impl Periods {
    /// Before the first request; the first on-period begins at `start_ns`.
    pub fn new(noise: Noise, start_ns: u64) -> Periods {
        let mut periods =
            Periods { noise, rng: noise.seed.rng(), on_ns: (start_ns, start_ns), waiting: (0, 0) };
        periods.on_ns.1 = start_ns.saturating_add(periods.length_ns(noise.on_ns));
        periods
    }

    /// When a request that could begin at `time_ns` may: then, or with the next on-period. Times
    /// of calls never decrease.
    pub fn begin_ns(&mut self, time_ns: u64) -> u64 {
        while time_ns >= self.on_ns.1 && self.on_ns.1 < u64::MAX {
            let begin_ns = self.on_ns.1.saturating_add(self.length_ns(self.noise.off_ns));
            let end_ns = begin_ns.saturating_add(self.length_ns(self.noise.on_ns));
            self.on_ns = (begin_ns, end_ns);
        }
        time_ns.max(self.on_ns.0)
    }

    /// The same for one of a tenant's `depth` requests: in an off-period it may begin at once while
    /// no more than `off_depth` of them do not wait.
    pub fn begin_within_ns(&mut self, time_ns: u64, depth: u32) -> u64 {
        let begin_ns = self.begin_ns(time_ns);
        if begin_ns <= time_ns || self.noise.off_depth == 0 {
            return begin_ns;
        }
        if self.waiting.1 != begin_ns {
            self.waiting = (0, begin_ns);
        }
        if depth.saturating_sub(self.waiting.0) <= self.noise.off_depth {
            return time_ns;
        }
        self.waiting.0 += 1;
        begin_ns
    }

    /// At least a nanosecond, so that time goes on.
    fn length_ns(&mut self, mean_ns: u64) -> u64 {
        if !self.noise.exponential {
            return mean_ns.max(1);
        }
        // 1 - unit is in (0, 1], so that the logarithm is finite.
        let drawn = -(1.0 - self.rng.unit()).ln() * mean_ns as f64;
        (drawn.round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_wait_for_the_next_on_period() {
        let noise = Noise { on_ns: 10, off_ns: 5, off_depth: 0, exponential: false, seed: Seed(1) };
        let mut periods = Periods::new(noise, 100);
        // On from 100 to 110, from 115 to 125, from 130 to 140, from 145 to 155.
        let begin = [100, 109, 110, 114, 115, 124, 126, 140, 160].map(|at| periods.begin_ns(at));
        assert_eq!(begin, [100, 109, 115, 115, 115, 124, 130, 145, 160]);
        assert_eq!(Periods::new(noise, 100).begin_ns(7), 100, "not before the first");
    }

    /// Of four requests, one goes on in off-periods: three wait for the next on-period, each period
    /// anew.
    #[test]
    fn a_few_requests_may_go_on_in_off_periods() {
        let noise = Noise { on_ns: 10, off_ns: 5, off_depth: 1, exponential: false, seed: Seed(1) };
        let mut periods = Periods::new(noise, 0);
        // On from 0 to 10, from 15 to 25, from 30 to 40.
        let mut begin = |at| periods.begin_within_ns(at, 4);
        assert_eq!([9, 10, 11, 12, 12, 13, 14].map(&mut begin), [9, 15, 15, 15, 12, 13, 14]);
        assert_eq!([15, 15, 24, 25, 25, 26, 27].map(&mut begin), [15, 15, 24, 30, 30, 30, 27]);
        let mut silent = Periods::new(Noise { off_depth: 0, ..noise }, 0);
        assert_eq!([10, 11, 12, 13, 14].map(|at| silent.begin_within_ns(at, 4)), [15; 5]);
    }

    #[test]
    fn exponential_lengths_have_their_means() {
        let noise =
            Noise { on_ns: 2000, off_ns: 1000, off_depth: 0, exponential: true, seed: Seed(7) };
        let mut periods = Periods::new(noise, 0);
        let (mut on, mut begun) = (0, 0);
        for _ in 0..20_000 {
            let (begin, end) = periods.on_ns;
            on += end - begin;
            begun += 1;
            periods.begin_ns(end);
        }
        let (mean, cycle) = (on / begun, periods.on_ns.0 / begun);
        assert!((1950..2050).contains(&mean) && (2930..3070).contains(&cycle), "{mean} {cycle}");
    }

    proptest! {
        /// The periods written down from the start, and looked through for each request.
        #[test]
        fn every_request_begins_at_the_first_time_that_is_on(
            on_ns in 1..50_u64,
            off_ns in 1..50_u64,
            seed in any::<u64>(),
            exponential in any::<bool>(),
            mut times in prop::collection::vec(0..2000_u64, 1..60),
        ) {
            let noise = Noise { on_ns, off_ns, off_depth: 0, exponential, seed: Seed(seed) };
            let mut walk = Periods::new(noise, 3);
            let mut all = vec![walk.on_ns];
            while walk.on_ns.0 < 3000 {
                walk.begin_ns(walk.on_ns.1);
                all.push(walk.on_ns);
            }
            times.sort_unstable();
            let mut periods = Periods::new(noise, 3);
            for time in times {
                let is_on = |at: &u64| all.iter().any(|(begin, end)| (*begin..*end).contains(at));
                prop_assert_eq!(Some(periods.begin_ns(time)), (time..).find(is_on));
            }
        }
    }
}
