//! Layouts: which channels of a drive hold which tenant's blocks.
//!
//! For: pure functions of what tenants need and what channels hold. Must never know: devices,
//! addresses, caches, files, clocks. Units: channels (or groups of channels that a drive shows as
//! one), blocks of the cache. Invariants, checked by [`Map::audit`]: a channel is in one pool; what
//! a pool promises it can hold.

pub mod dedicated;
pub mod entry;
pub mod flashblox;
mod map;
pub mod on_demand;
pub mod registry;
pub mod striped;

pub use entry::{Entry, Need, Registered};
pub use map::{Map, Share};
pub use registry::{boxed, entries, entry};

use thiserror::Error;

/// Which channels a tenant asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// So many, whichever they are.
    Count(u32),
    /// These.
    Channels(Vec<u32>),
}

/// What a layout may know of one tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantView<'a> {
    /// The weight in the stack file; positive.
    pub weight: f64,
    /// Blocks it may hold: its quota, or the whole cache where all share it.
    pub quota_blocks: u32,
    /// Blocks it makes use of (S_r), with those that a machine keeps beside them.
    pub need_blocks: u32,
    /// Its miss ratio with them, 0 to 1 (R_e).
    pub miss_ratio: f64,
    /// It has not come yet, or has left.
    pub absent: bool,
    /// The channels it asks for in the stack file.
    pub wish: Option<&'a Wish>,
}

/// What there is to lay out on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Blocks that each channel holds.
    pub blocks: Vec<u32>,
    /// Blocks that all tenants together may hold: the cache.
    pub total_blocks: u32,
}

/// Why there is no layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found}, expected {expected}")]
pub struct Refusal {
    /// The tenant whose channels are refused; nothing where it is about all of them.
    pub tenant: Option<usize>,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// Decides which channels hold which tenant's blocks.
pub trait Layout: Send {
    /// Pools of channels, and each tenant's shares of them. Deterministic. Errors: what is asked
    /// for cannot be given.
    fn lay_out(&mut self, tenants: &[TenantView], channels: &Channels) -> Result<Map, Refusal>;

    /// Whether it may give a tenant room for less than its quota, which is then cut.
    fn may_cut(&self) -> bool {
        false
    }

    /// Whether it is to be asked again whenever tenants come or go: what those hold who stay does
    /// not change. Other layouts are asked once and look at nobody's absence.
    fn follows_tenants(&self) -> bool {
        false
    }

    /// Who was there at the last call and found no room, and how many more channels it needs.
    fn refused(&self) -> Vec<(usize, u32)> {
        Vec::new()
    }
}
