//! One row of a time series.
//!
//! For: what is kept per window and tenant. Must never know: where it is written.

/// The row's tenant index that stands for all tenants together.
pub const ALL_TENANTS: u32 = u32::MAX;

/// A window of one tenant in one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of the window, from 0.
    pub window: u32,
    /// End of the window in nanoseconds.
    pub time_ns: u64,
    /// Tenant index or [`ALL_TENANTS`].
    pub tenant: u32,
    /// Block accesses in the window.
    pub accesses: u64,
    /// Block accesses that hit in the window.
    pub hits: u64,
    /// Blocks held at the end of the window.
    pub occupancy_blocks: u64,
    /// Blocks the tenant might hold at the end of the window.
    pub quota_blocks: u64,
}
