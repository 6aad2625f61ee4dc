//! `shared`: no division, one pool for all.
//!
//! For: the baseline that every scheme is compared with. Must never know: anything.

use crate::entry::{Entry, Registered};
use crate::{Division, Partitioner, TenantView};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// One pool.
#[derive(Clone, Debug)]
pub struct Shared;

impl Registered for Shared {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "shared",
        doc: "one pool, from which every tenant takes",
        source: "the usual cache of a shared device",
        needs: &[],
    };

    fn new(_: &NoSettings, _: usize, _: Seed) -> Self {
        Shared
    }
}

impl Partitioner for Shared {
    fn divide(&mut self, _: &[TenantView], _: u32) -> Division {
        Division::Shared
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }
}
