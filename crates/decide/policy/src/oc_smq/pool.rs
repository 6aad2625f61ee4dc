//! How much a tenant may write into the shared region of `oc-smq`.
//!
//! For: keeping the pool from being accessed too intensively (Wang et al., section IV), in terms of
//! what its channels can write, not in accesses of the tenant. Must never know: blocks, levels.
//! The paper names no rate; this is one reading, off by default. A bucket of tokens: so many come
//! in per second, those of a second at most are kept. A new block needs one; a block rewritten
//! there takes one whether or not there is one, so that new blocks wait. Units: blocks,
//! nanoseconds.

const NS_PER_S: f64 = 1e9;

/// What may still be written.
#[derive(Clone, Debug)]
pub(super) struct PoolWrites {
    /// Blocks per second; 0 for any number.
    rate: f64,
    left: f64,
    /// The last time; none without a clock, and then there is no limit.
    now_ns: Option<u64>,
}

impl PoolWrites {
    pub fn new(rate: f64) -> PoolWrites {
        PoolWrites { rate, left: rate, now_ns: None }
    }

    /// It is `now_ns` now; never earlier than before.
    pub fn clock(&mut self, now_ns: u64) {
        let passed = self.now_ns.map_or(0, |before| now_ns.saturating_sub(before));
        self.left = (self.left + self.rate * passed as f64 / NS_PER_S).min(self.rate.max(1.0));
        self.now_ns = Some(now_ns);
    }

    /// Whether a new block may be written.
    pub fn allows(&self) -> bool {
        self.rate == 0.0 || self.now_ns.is_none() || self.left >= 1.0
    }

    /// A block is written; what is owed is that of a second at most.
    pub fn written(&mut self) {
        self.left = (self.left - 1.0).max(-self.rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_blocks_wait_until_the_pool_may_be_written_again() {
        let mut pool = PoolWrites::new(2.0);
        (0..9).for_each(|_| pool.written());
        assert!(pool.allows(), "without a clock there is no limit");
        pool.clock(5_000_000_000);
        assert!(!pool.allows(), "two are owed");
        pool.clock(6_499_999_000);
        assert!(!pool.allows());
        pool.clock(6_500_001_000);
        assert!(pool.allows());
        pool.written();
        assert!(!pool.allows());
        pool.clock(60_000_000_000);
        (0..2).for_each(|_| pool.written());
        assert!(!pool.allows(), "no more is saved up than comes in a second");
        let mut free = PoolWrites::new(0.0);
        free.clock(1);
        (0..9).for_each(|_| free.written());
        assert!(free.allows());
    }
}
