//! `equal`: the same quota for each tenant.
//!
//! For: the baseline of isolation. Must never know: what was measured. Units: blocks.

use crate::entry::{Entry, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// Equal quotas; the first tenants get the remainder, one block each.
#[derive(Clone, Debug)]
pub struct Equal;

impl Registered for Equal {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "equal",
        doc: "the same number of blocks for each tenant, the remainder to the first",
        source: "static partitioning into equal shares",
        needs: &[],
    };

    fn new(_: &NoSettings, _: usize, _: Seed) -> Self {
        Equal
    }
}

impl Partitioner for Equal {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        CacheDivision::PerTenant(share::equal(total_blocks, tenants.len()))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(u32::MAX, tenants, total_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_goes_to_the_first() {
        assert_eq!(share::equal(11, 4), [3, 3, 3, 2]);
        assert_eq!(share::equal(2, 4), [1, 1, 0, 0], "more tenants than blocks");
        assert_eq!(Equal.floor_blocks(4, 11), 2);
    }
}
