//! How long a tenant's misses would wait with more or fewer of them.
//!
//! For: the queue at a device that a tenant's own misses make, so that a tenant which overruns its
//! device gains by blocks what it would save of the queue. Must never know: curves, quotas, the
//! division, other tenants. Units: nanoseconds; a load is in misses beside those of today.
//!
//! Waits follow those of one server with random arrivals: `1 / (1 - utilisation)` times the wait of
//! an idle device. The least mean wait of any interval stands for the idle device. Beyond today's
//! load waits grow on along their tangent: an overrun device has a queue, not an infinite wait.

/// Fewest waits of an interval of which a mean is taken for that of an idle device.
const MIN_WAITS: u64 = 50;

/// The wait of a miss at an idle device: the least mean wait of any interval so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleWait {
    /// Infinite before the first interval with enough waits.
    ns: f64,
}

/// Growth of waits with load, around the load of today.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
