//! When requests arrive.
//!
//! For: constant and Poisson arrivals, with bursts. Must never know: what arrives. Units:
//! nanoseconds since the tenant's start, requests per nanosecond. Bursts make the rate a step
//! function of time. Each arrival uses up one unit of its integral (constant) or an exponential
//! amount (Poisson, the exact inhomogeneous process).

use cachewright_types::Rng;

/// What is to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArrivalSpec {
    pub(super) poisson: bool,
    /// Requests per nanosecond.
    pub(super) rate: f64,
    pub(super) bursts: Option<Bursts>,
}

/// The rate holds for `on_ns`, then `off_rate` for `off_ns`, and so on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bursts {
    pub(super) on_ns: f64,
    pub(super) off_ns: f64,
    /// Requests per nanosecond between bursts.
    pub(super) off_rate: f64,
}

/// Draws arrivals one after another.
pub(super) struct ArrivalTimes {
    spec: ArrivalSpec,
    rng: Rng,
    now_ns: f64,
}

impl ArrivalTimes {
    pub(super) fn new(spec: &ArrivalSpec, rng: Rng) -> ArrivalTimes {
        ArrivalTimes { spec: spec.clone(), rng, now_ns: 0.0 }
    }

    /// The next arrival.
    pub(super) fn next_ns(&mut self) -> f64 {
        let work = if self.spec.poisson { -(1.0 - self.rng.unit()).ln() } else { 1.0 };
        self.now_ns = match self.spec.bursts {
            None => self.now_ns + work / self.spec.rate,
            Some(bursts) => advance(self.now_ns, work, self.spec.rate, bursts),
        };
        self.now_ns
    }
}

/// When the integral of the rate from `now_ns` on reaches `work`.
fn advance(now_ns: f64, work: f64, rate: f64, bursts: Bursts) -> f64 {
    let cycle_ns = bursts.on_ns + bursts.off_ns;
    let cycle_work = rate * bursts.on_ns + bursts.off_rate * bursts.off_ns;
    let cycles = (work / cycle_work).floor();
    let mut now_ns = now_ns + cycles * cycle_ns;
    let mut work = work - cycles * cycle_work;
    // What is left takes less than a cycle: the rest of this part, two more and the part's start.
    for _ in 0..4 {
        let phase_ns = now_ns % cycle_ns;
        let (part_rate, end_ns) = if phase_ns < bursts.on_ns {
            (rate, bursts.on_ns)
        } else {
            (bursts.off_rate, cycle_ns)
        };
        let part_work = part_rate * (end_ns - phase_ns);
        if part_work >= work && part_rate > 0.0 {
            return now_ns + work / part_rate;
        }
        work -= part_work;
        now_ns += end_ns - phase_ns;
    }
    now_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    fn arrivals(poisson: bool, bursts: Option<Bursts>, count: usize) -> Vec<f64> {
        let spec = ArrivalSpec { poisson, rate: 0.01, bursts };
        let mut arrival = ArrivalTimes::new(&spec, Seed(9).rng());
        (0..count).map(|_| arrival.next_ns()).collect()
    }

    #[test]
    fn constant_arrivals_keep_their_distance() {
        assert_eq!(arrivals(false, None, 3), [100.0, 200.0, 300.0]);
    }

    #[test]
    fn poisson_gaps_have_the_exponentials_mean_and_deviation() {
        let times = arrivals(true, None, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 100.0).abs() < 1.5, "{mean}");
        assert!((variance.sqrt() - 100.0).abs() < 2.0, "{variance}");
    }

    #[test]
    fn bursts_hold_their_rates() {
        let bursts = Bursts { on_ns: 1000.0, off_ns: 9000.0, off_rate: 0.0 };
        let times = arrivals(false, Some(bursts), 25);
        assert!(times.iter().all(|time| time % 10_000.0 <= 1000.0 + 1e-6), "{times:?}");
        assert_eq!(times[19], 11_000.0);

        let bursts = Bursts { off_rate: 0.001, ..bursts };
        let times = arrivals(true, Some(bursts), 100_000);
        let on = times.iter().filter(|time| *time % 10_000.0 < 1000.0).count() as f64;
        let expected = 100_000.0 * 10.0 / 19.0;
        assert!((on - expected).abs() < 0.02 * expected, "{on} of {expected}");
    }

    #[test]
    fn a_rate_far_below_the_cycle_is_no_endless_loop() {
        let bursts = Bursts { on_ns: 1.0, off_ns: 1.0, off_rate: 0.0 };
        let spec = ArrivalSpec { poisson: false, rate: 1e-15, bursts: Some(bursts) };
        let first = ArrivalTimes::new(&spec, Seed(9).rng()).next_ns();
        assert!((first / 2e15 - 1.0).abs() < 1e-6, "{first}");
    }
}
