//! `shared`: no division, one pool for all tenants.
//!
//! For: the baseline of every scheme. Must never know: what was measured.

use crate::entry::{Entry, Registered};
use crate::{CacheDivision, Partitioner, TenantView};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// One pool.
#[derive(Clone, Debug)]
pub struct SharedPool;

impl Registered for SharedPool {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "shared",
        doc: "one pool that all tenants share",
        source: "the usual cache of a shared device",
        needs: &[],
    };

    fn new(_: &NoSettings, _: usize, _: Seed) -> Self {
        SharedPool
    }
}

impl Partitioner for SharedPool {
    fn divide(&mut self, _: &[TenantView], _: u32) -> CacheDivision {
        CacheDivision::Shared
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }
}
