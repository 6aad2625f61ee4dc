//! `static`: fixed shares in proportion to the tenants' weights.
//!
//! For: operators who set shares by hand. Must never know: what was measured. Units: blocks. Whole
//! blocks by largest remainder.

use crate::entry::{Entry, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_types::Seed;
use cachewright_types::declare;

declare! {
    /// Settings of `static`.
    pub struct StaticSettings {
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
    }
}

/// Quotas in proportion to weights.
#[derive(Clone, Debug)]
pub struct Static {
    settings: StaticSettings,
}

impl Registered for Static {
    type Settings = StaticSettings;
    const ENTRY: Entry = Entry {
        name: "static",
        doc: "blocks in proportion to the tenants' weights",
        source: "proportional shares by largest remainder (Hamilton)",
        needs: &[],
    };

    fn new(settings: &StaticSettings, _: usize, _: Seed) -> Self {
        Static { settings: settings.clone() }
    }
}

impl Partitioner for Static {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let weights: Vec<f64> = tenants.iter().map(|tenant| tenant.facts.weight).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        CacheDivision::PerTenant(share::proportional_above(total_blocks, &weights, floor))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}
