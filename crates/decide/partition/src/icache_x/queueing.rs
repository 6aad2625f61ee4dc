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

/// Recent waits of one tenant behind memory, and the least of their means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    count: f64,
    sum_ns: f64,
    min_ns: f64,
}

/// Growth of waits with load, around the load of today.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Relative growth of the wait per relative growth of the load; at least 0.
    growth: f64,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { count: 0.0, sum_ns: 0.0, min_ns: f64::INFINITY }
    }
}

impl Waits {
    /// Adds the waits of an interval; earlier ones count for `share_of_past`.
    pub fn learn(&mut self, count: u64, sum_ns: u64, share_of_past: f64) {
        self.count = self.count * share_of_past + count as f64;
        self.sum_ns = self.sum_ns * share_of_past + sum_ns as f64;
        if count >= MIN_WAITS {
            self.min_ns = self.min_ns.min(sum_ns as f64 / count as f64);
        }
    }

    /// The queue that these waits show, with a growth of at most `max_growth`.
    pub fn queue(&self, max_growth: f64) -> Queue {
        let idle_ns = self.min_ns * self.count;
        let growth = if idle_ns > 0.0 { self.sum_ns / idle_ns - 1.0 } else { 0.0 };
        Queue { growth: growth.clamp(0.0, max_growth) }
    }
}

impl Queue {
    /// Waits that no load changes.
    pub const NONE: Queue = Queue { growth: 0.0 };

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
    fn waits_of_the_least_interval_are_no_queue_and_longer_ones_are() {
        let mut waits = Waits::default();
        assert_eq!(waits.queue(8.0), Queue::NONE, "nothing waited yet");
        waits.learn(100, 200_000, 0.0);
        assert_eq!(waits.queue(8.0).growth, 0.0);
        // Three times the wait: a utilisation of two thirds.
        waits.learn(100, 600_000, 0.0);
        let queue = waits.queue(8.0);
        assert!((queue.growth - 2.0).abs() < 1e-12, "{queue:?}");
        assert!((queue.wait(0.5) - 0.5).abs() < 1e-12, "half the load: (1/3) / (2/3)");
        assert!((queue.wait(0.0) - 1.0 / 3.0).abs() < 1e-12, "the idle device");
        assert!((queue.wait(1.5) - 2.0).abs() < 1e-12, "along the tangent");
        assert_eq!((waits.queue(1.0).growth, waits.queue(0.0).wait(0.3)), (1.0, 1.0));
    }

    #[test]
    fn few_waits_are_no_measure_of_an_idle_device() {
        let mut waits = Waits::default();
        waits.learn(MIN_WAITS - 1, 10, 0.0);
        waits.learn(100, 400_000, 0.0);
        assert_eq!(waits.queue(8.0).growth, 0.0);
    }

    #[test]
    fn earlier_intervals_fade_and_the_least_stays() {
        let mut waits = Waits::default();
        waits.learn(100, 100_000, 0.5);
        waits.learn(100, 300_000, 0.5);
        // 150 waits of 350,000 ns in all beside 1,000 each.
        assert!((waits.queue(8.0).growth - 4.0 / 3.0).abs() < 1e-12);
    }
}
