//! Disk-head time: how long requests keep the heads of a disk, and the busiest interval.
//!
//! Source: Wong et al., Baleen (FAST 2024): a backend needs as many disks as its peak of disk-head
//! time asks for, which misses and bytes alone do not tell. A request costs a constant to position
//! the heads and its bytes over the bandwidth (the public code, wonglkd/BCacheSim, takes 11.5 ms
//! and 143 MiB/s of its testbed). The time is the cost of requests as if each were alone, so that
//! it can exceed the interval: then one disk is too few. Departures: the constants are those of the
//! disk, its average seek, half a revolution and the outermost rate; writes count as reads do.

/// The disk-head time of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadTime {
    /// What a request costs beside its bytes.
    position_ns: u64,
    bytes_per_s: f64,
    interval_ns: u64,
    /// The interval under way, counted from time 0, and its time.
    interval: u64,
    current_ns: u64,
    peak_ns: u64,
    total_ns: u64,
}

impl HeadTime {
    /// No requests yet, of a disk that positions its heads in `position_ns` on average.
    pub(super) fn new(position_ns: u64, bytes_per_s: f64, interval_ns: u64) -> HeadTime {
        HeadTime {
            position_ns,
            bytes_per_s,
            interval_ns: interval_ns.max(1),
            interval: 0,
            current_ns: 0,
            peak_ns: 0,
            total_ns: 0,
        }
    }

    /// Counts a request for `bytes` that arrives at `now_ns`, which is never earlier than the last.
    pub(super) fn request(&mut self, now_ns: u64, bytes: u64) {
        let interval = now_ns / self.interval_ns;
        if interval != self.interval {
            (self.interval, self.current_ns) = (interval, 0);
        }
        let transfer_ns = (bytes as f64 * 1e9 / self.bytes_per_s).round() as u64;
        let cost_ns = self.position_ns.saturating_add(transfer_ns);
        self.current_ns = self.current_ns.saturating_add(cost_ns);
        self.total_ns = self.total_ns.saturating_add(cost_ns);
        self.peak_ns = self.peak_ns.max(self.current_ns);
    }

    /// Length of an interval in ns.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// The time of all requests in ns.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The time of the busiest interval in ns.
    pub fn peak_ns(&self) -> u64 {
        self.peak_ns
    }

    /// The time of the busiest interval over its length: disks that it needs at least.
    pub fn peak_disks(&self) -> f64 {
        self.peak_ns as f64 / self.interval_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Baleen's constants, 11.5 ms and 143 MiB/s, and intervals of 20 ms. A chunk of 128 KiB takes
    /// 0.874126 ms to pass.
    ///
    /// | at | bytes | cost | sum of its interval |
    /// |---|---|---|---|
    /// | 0 ms | 128 KiB | 12.374126 ms | 12.374126 ms |
    /// | 19.999999 ms | 0 | 11.5 ms | 23.874126 ms: more than 20 |
    /// | 20 ms | 1 MiB | 18.493007 ms | 18.493007 ms |
    /// | 100 ms | 128 KiB | 12.374126 ms | 12.374126 ms |
    #[test]
    fn the_busiest_of_three_intervals_worked_by_hand() {
        let mut time = HeadTime::new(11_500_000, 143.0 * 1048576.0, 20_000_000);
        time.request(0, 131_072);
        time.request(19_999_999, 0);
        time.request(20_000_000, 1_048_576);
        time.request(100_000_000, 131_072);
        assert_eq!(time.peak_ns(), 12_374_126 + 11_500_000);
        assert_eq!(time.total_ns(), 2 * 12_374_126 + 11_500_000 + 18_493_007);
        assert!((time.peak_disks() - 1.1937063).abs() < 1e-9, "{}", time.peak_disks());
    }
}
