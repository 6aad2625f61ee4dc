//! Layouts assign the channels of a drive to tenants.
//!
//! For: deterministic functions of tenants' requirements and of channel sizes. Must never know:
//! devices, addresses, caches, files, clocks. Units: channels (or groups of channels that a drive
//! exposes as one), blocks of the cache. Invariants, checked by [`ChannelMap::audit`]: a channel is
//! in one pool; a pool holds all that it promises.

pub mod dedicated;
pub mod entry;
pub mod flashblox;
mod map;
pub mod on_demand;
pub mod registry;
pub mod striped;

pub use entry::{Entry, Need, Registered};
pub use map::{ChannelMap, PoolShare};
pub use registry::{boxed, entries, entry};

use thiserror::Error;

/// Channels that a stack file assigns to a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// This number of channels.
    Count(u32),
    /// These channels.
    Channels(Vec<u32>),
}

/// What a layout may know of one tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayoutTenant<'a> {
    /// The weight in the stack file; positive.
    pub weight: f64,
    /// Blocks it may hold: its quota, or the whole cache where all share it.
    pub quota_blocks: u32,
    /// Blocks that it can use (S_r), and the spare blocks of the machine.
    pub need_blocks: u32,
    /// Miss ratio with these blocks, 0 to 1 (R_e).
    pub miss_ratio: f64,
    /// Whether the tenant has not started yet or has left.
    pub absent: bool,
    /// The channels in the stack file.
    pub wish: Option<&'a Wish>,
}

/// The channels of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSizes {
    /// Blocks that each channel holds.
    pub blocks: Vec<u32>,
    /// Blocks that all tenants together may hold: the cache.
    pub total_blocks: u32,
}

/// Why a layout is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found}, expected {expected}")]
pub struct Refusal {
    /// The tenant whose channels are refused; nothing if the refusal is about all tenants.
    pub tenant: Option<usize>,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// Assigns channels to tenants.
pub trait ChannelLayout: Send {
    /// Pools of channels, and each tenant's shares of them. Deterministic. Errors: the channels do
    /// not suffice.
    fn lay_out(
        &mut self,
        tenants: &[LayoutTenant],
        channels: &ChannelSizes,
    ) -> Result<ChannelMap, Refusal>;

    /// Whether a tenant may get channels for less than its quota, which is then cut.
    fn may_cut(&self) -> bool {
        false
    }

    /// Whether the layout is computed again when tenants start or leave; the channels of other
    /// tenants then stay. Other layouts are computed once and ignore absence.
    fn follows_tenants(&self) -> bool {
        false
    }

    /// Tenants that were present and refused at the last call, and the channels that each lacks.
    fn refused(&self) -> Vec<(usize, u32)> {
        Vec::new()
    }
}
