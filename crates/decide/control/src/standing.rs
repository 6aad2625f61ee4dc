//! Where tenants stand in a cache: what a division is decided from.
//!
//! For: one division over one engine, or over several whose standings are summed. Must never know:
//! partitioners, engines. Units: blocks.

use cachewright_types::measure::Counts;

/// Where a tenant stands at a division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its counters since the cache was opened.
    pub counts: Counts,
    /// Its quota.
    pub quota_blocks: u32,
    /// Blocks that it holds.
    pub held_blocks: u32,
}

impl Standing {
    /// Adds where the tenant stands in another engine.
    pub fn add(&mut self, other: &Standing) {
        self.counts.add(&other.counts);
        self.quota_blocks = self.quota_blocks.saturating_add(other.quota_blocks);
        self.held_blocks = self.held_blocks.saturating_add(other.held_blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_add_up_to_one_standing() {
        let counts = Counts { reads: 3, read_hits: 1, ..Counts::default() };
        let mut sum = Standing { counts, quota_blocks: 10, held_blocks: 7 };
        sum.add(&Standing { counts, quota_blocks: u32::MAX, held_blocks: 2 });
        assert_eq!((sum.counts.reads, sum.counts.hits()), (6, 2));
        assert_eq!((sum.quota_blocks, sum.held_blocks), (u32::MAX, 9));
    }
}
