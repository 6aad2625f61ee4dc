//! Channels of a drive, the tenants on them, and blocks that moved between them.
//!
//! For: `timing.channels`, `timing.migrations` and `timing.rooms` of a case. Must never know:
//! layouts. Units: bytes, blocks of the cache; shares are of the replay's time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The channels of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// Name of the layout.
    pub layout: String,
    /// Groups of channels that keep addresses of their own.
    pub groups: Vec<ChannelGroup>,
    /// Each channel, in order.
    pub each: Vec<ChannelUse>,
    /// Used over allocated space, a ratio; absent where the division does not say what is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space_utilisation: Option<f64>,
    /// Tenants that came and left; absent where the layout does not follow tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<Tenancy>,
}

/// A group of channels and what the host asked of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelGroup {
    /// Numbers of the channels.
    pub channels: Vec<u32>,
    /// Tenants whose blocks lie there.
    pub tenants: Vec<String>,
    /// Whether the group is lent to a pool.
    pub lent: bool,
    /// Bytes that it holds.
    pub capacity_bytes: u64,
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes read and written per second.
    pub bytes_per_s: f64,
}

/// How one channel was used, the drive's own work included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelUse {
    /// Number of the channel.
    pub channel: usize,
    /// Share of the time in which the channel is taken, 0 to 1.
    pub busy: f64,
    /// Share of the time in which its dies work for hosts, on average, 0 to 1.
    pub dies_working: f64,
    /// Share of the time in which its dies clean, on average, 0 to 1.
    pub dies_cleaning: f64,
}

/// Tenants that came and left under a layout that follows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenancy {
    /// The changes, in order of time.
    pub changes: Vec<TenancyChange>,
}

/// A tenant that came, was refused or left, and the space from then on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenancyChange {
    /// When it changed.
    pub time_ns: u64,
    /// Name of the tenant.
    pub tenant: String,
    /// Bytes that the tenant requires.
    pub required_bytes: u64,
    /// Miss ratio with these bytes, 0 to 1.
    pub required_miss_ratio: f64,
    /// Bytes that all tenants present require.
    pub requested_bytes: u64,
    /// Bytes allocated to all tenants present.
    pub allocated_bytes: u64,
    /// `granted`, `refused` or `left`.
    pub change: String,
    /// Groups of channels granted to the tenant alone; absent unless granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<u32>>,
    /// Bytes of these groups; absent unless granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket_bytes: Option<u64>,
    /// Bytes granted in the pool; absent unless granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_bytes: Option<u64>,
    /// Channels that are missing; absent unless refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_channels: Option<u32>,
}

/// Blocks that moved on the cache device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Migrations {
    /// Bytes moved, each read and written once.
    pub bytes: u64,
    /// The moves by tenant.
    pub tenants: Vec<TenantMigrations>,
}

/// Blocks of one tenant that moved on the cache device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantMigrations {
    /// Name of the tenant.
    pub name: String,
    /// Pairs of blocks exchanged, one of them the tenant's.
    pub swaps: u64,
    /// Blocks of the tenant moved to a free slot.
    pub moves: u64,
    /// Bytes of the tenant moved.
    pub bytes: u64,
}

/// Where blocks lie on a cache device whose channels have a layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockRegions {
    /// Blocks of each tenant at the end.
    pub tenants: Vec<TenantRegions>,
    /// Blocks of all tenants at the end of each window.
    pub windows: Vec<RegionWindow>,
}

/// Where the blocks of one tenant lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantRegions {
    /// Name of the tenant.
    pub name: String,
    /// Blocks in channels of the tenant alone.
    pub own_blocks: u32,
    /// Blocks in channels that the tenant shares.
    pub common_blocks: u32,
    /// Blocks in channels that the layout does not give to the tenant.
    pub elsewhere_blocks: u32,
}

/// Where blocks lie at the end of a window; each list has an entry per tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionWindow {
    /// End of the window.
    pub time_ns: u64,
    /// Blocks in channels of the tenant alone.
    pub own_blocks: Vec<u32>,
    /// Blocks in channels that the tenant shares.
    pub common_blocks: Vec<u32>,
    /// Blocks in channels that the layout does not give to the tenant.
    pub elsewhere_blocks: Vec<u32>,
}
