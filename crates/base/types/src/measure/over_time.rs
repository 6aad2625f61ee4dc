//! What happens over time, in nanoseconds: throughput in bins, and how many are inside something.

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

/// Bins over time for several tenants, in a run whose length is not known ahead. All bins have one
/// width; when there are too many, pairs become one.
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

/// Those inside, and the integral of their number over time: for utilisation, mean queue length,
/// and Little's law as a check of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Population {
    inside: u64,
    max: u64,
    entered: u64,
    since_ns: u64,
    inside_ns: u128,
    busy_ns: u64,
}

impl Population {
    /// Lets time pass until `now_ns`, which never goes back.
    fn pass(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        self.inside_ns += u128::from(passed_ns) * u128::from(self.inside);
        if self.inside > 0 {
            self.busy_ns += passed_ns;
        }
        self.since_ns = self.since_ns.max(now_ns);
    }

    /// One enters.
    pub fn enter(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.inside += 1;
        self.entered += 1;
        self.max = self.max.max(self.inside);
    }

    /// One leaves.
    pub fn leave(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.inside = self.inside.saturating_sub(1);
    }

    /// Those inside now.
    pub fn inside(&self) -> u64 {
        self.inside
    }

    /// The most that were inside at once.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// All that ever entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Time with at least one request inside.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// The integral of the number inside over time: by Little's law the sum of all stays, once all
    /// have left.
    pub fn inside_ns(&self) -> u128 {
        self.inside_ns
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

    #[test]
    fn the_integral_is_the_sum_of_the_stays() {
        let mut population = Population::default();
        population.enter(10);
        population.enter(20);
        population.leave(25);
        population.leave(40);
        population.enter(100);
        population.leave(101);
        assert_eq!(population.inside_ns(), (15 + 20 + 1));
        assert_eq!((population.busy_ns(), population.max(), population.entered()), (31, 2, 3));
        assert_eq!(population.inside(), 0);
    }
}
