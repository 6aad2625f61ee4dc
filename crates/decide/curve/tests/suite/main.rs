//! The tests of the curve crate, one module per subject, in one binary.
//!
//! For: one link for all of them. Must never know: what any of them tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

mod cloudphysics_rows;
mod hulls_divide_best;
mod mini_simulation_agrees_or_refuses;
mod shards_stays_within_its_interval;
mod stack_distance_is_exact;
mod windows_keep_tenants_apart;

use cachewright_curve::BlockName;
use cachewright_types::{BlockId, BlockKey};

/// The key of a block in a volume whose numbers are its ids.
fn key(block: BlockId) -> BlockKey {
    BlockKey(u64::from(block.0))
}

/// A block known by that key alone.
fn keyed(block: BlockId) -> BlockName<'static> {
    BlockName::Keyed(key(block))
}
