//! What happens per stretch of time, for a run whose length is not known ahead.
//!
//! For: throughput and response time over time, per tenant. Must never know: what is counted.
//! Units: nanoseconds, bytes. All bins have one width; when there are too many, pairs become one.

/// What happened in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Requests completed.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their responses.
    pub response_ns: u64,
}

impl Bin {
    fn add(&mut self, other: &Bin) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.response_ns += other.response_ns;
    }
}

/// Bins over time for several tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    width_ns: u64,
    max_bins: usize,
    /// Per tenant.
    bins: Vec<Vec<Bin>>,
}

impl Rates {
    /// No bin yet. Bins are `width_ns` wide (at least 1) until there are more than `max_bins` (at
    /// least 2), then wider by powers of two.
    pub fn new(tenants: usize, width_ns: u64, max_bins: usize) -> Rates {
        Rates {
            width_ns: width_ns.max(1),
            max_bins: max_bins.max(2),
            bins: vec![Vec::new(); tenants],
        }
    }

    /// Counts a request of a tenant completed at `now_ns`.
    pub fn record(&mut self, tenant: usize, now_ns: u64, bytes: u64, response_ns: u64) {
        while now_ns / self.width_ns >= self.max_bins as u64 {
            self.halve();
        }
        let index = (now_ns / self.width_ns) as usize;
        let bins = &mut self.bins[tenant];
        if bins.len() <= index {
            bins.resize(index + 1, Bin::default());
        }
        bins[index].add(&Bin { requests: 1, bytes, response_ns });
    }

    /// The width of all bins.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// A tenant's bins from time 0 on, to its last request.
    pub fn bins(&self, tenant: usize) -> &[Bin] {
        &self.bins[tenant]
    }

    fn halve(&mut self) {
        self.width_ns *= 2;
        for bins in &mut self.bins {
            for index in 0..bins.len().div_ceil(2) {
                let mut both = bins[2 * index];
                both.add(&bins.get(2 * index + 1).copied().unwrap_or_default());
                bins[index] = both;
            }
            bins.truncate(bins.len().div_ceil(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_widen_and_nothing_is_lost() {
        let mut rates = Rates::new(2, 10, 4);
        for now in [0, 9, 10, 35, 39] {
            rates.record(0, now, 100, 5);
        }
        assert_eq!(rates.width_ns(), 10);
        let requests = |rates: &Rates, tenant| {
            rates.bins(tenant).iter().map(|b| b.requests).collect::<Vec<_>>()
        };
        assert_eq!(requests(&rates, 0), [2, 1, 0, 2]);
        rates.record(1, 40, 1, 1);
        assert_eq!(rates.width_ns(), 20);
        assert_eq!((requests(&rates, 0), requests(&rates, 1)), (vec![3, 2], vec![0, 0, 1]));
        rates.record(0, 1000, 1, 1);
        assert_eq!(rates.width_ns(), 320);
        assert_eq!(requests(&rates, 0), [5, 0, 0, 1]);
        assert_eq!(rates.bins(0)[0], Bin { requests: 5, bytes: 500, response_ns: 25 });
    }
}
