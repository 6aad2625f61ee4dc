//! Blocks whose leaving is in the log, but not durable.
//!
//! For: writes that go round the cache: they must wait until no recovery can find older content of
//! their blocks. Must never know: the log. Units: blocks, numbers of groups.

use cachewright_types::TenantId;
use std::ops::Range;

/// A run of blocks that left together.
#[derive(Clone, Debug)]
struct LeftBlocks {
    tenant: TenantId,
    blocks: Range<u64>,
    group: u64,
}

/// Blocks that left since the log was last durable.
#[derive(Clone, Debug, Default)]
pub struct FreshGone {
    runs: Vec<LeftBlocks>,
}

impl FreshGone {
    /// Blocks have left; a group says so.
    pub fn note(&mut self, tenant: TenantId, blocks: Range<u64>, group: u64) {
        self.runs.push(LeftBlocks { tenant, blocks, group });
    }

    /// All groups up to `durable` are durable.
    pub fn settle(&mut self, durable: u64) {
        self.runs.retain(|run| run.group > durable);
    }

    /// The last group that says that a block of a range has left, if it is not durable; else 0.
    pub fn last_group(&self, tenant: TenantId, blocks: &Range<u64>) -> u64 {
        let meets = |run: &&LeftBlocks| {
            run.tenant == tenant && run.blocks.start < blocks.end && blocks.start < run.blocks.end
        };
        self.runs.iter().filter(meets).map(|run| run.group).max().unwrap_or_default()
    }

    /// Runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_counts_until_its_group_is_durable() {
        let mut fresh = FreshGone::default();
        fresh.note(TenantId(1), 4..8, 10);
        fresh.note(TenantId(1), 7..9, 11);
        assert_eq!(fresh.last_group(TenantId(1), &(4..8)), 11);
        assert_eq!(fresh.last_group(TenantId(1), &(3..5)), 10);
        assert_eq!(fresh.last_group(TenantId(1), &(9..12)), 0);
        assert_eq!(fresh.last_group(TenantId(0), &(4..8)), 0);
        fresh.settle(10);
        assert_eq!((fresh.len(), fresh.last_group(TenantId(1), &(3..5))), (1, 0));
        fresh.settle(11);
        assert_eq!(fresh.len(), 0);
    }
}
