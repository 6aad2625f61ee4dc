//! One row of a time series.
//!
//! For: what is kept per window and tenant. Must never know: where it is written.

use cachewright_cache::Engine;
use cachewright_measure::Counts;
use cachewright_policy::Policy;
use cachewright_types::TenantId;

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

/// The rows of a window that has ended at `time_ns`, one per tenant and one for all; `before` holds
/// each tenant's counters at the window's start and then those at its end.
pub fn window_rows<P: Policy>(
    engine: &Engine<P>,
    before: &mut [Counts],
    window: u32,
    time_ns: u64,
) -> Vec<Row> {
    let mut all = Row {
        window,
        time_ns,
        tenant: ALL_TENANTS,
        accesses: 0,
        hits: 0,
        occupancy_blocks: 0,
        quota_blocks: 0,
    };
    let mut rows = Vec::with_capacity(before.len() + 1);
    for (tenant, before) in before.iter_mut().enumerate() {
        let id = TenantId(tenant as u16);
        let now = *engine.counts(id);
        let row = Row {
            tenant: tenant as u32,
            accesses: now.accesses() - before.accesses(),
            hits: now.hits() - before.hits(),
            occupancy_blocks: u64::from(engine.occupancy(id)),
            quota_blocks: u64::from(engine.quota(id)),
            ..all
        };
        all.accesses += row.accesses;
        all.hits += row.hits;
        all.occupancy_blocks += row.occupancy_blocks;
        rows.push(row);
        *before = now;
    }
    all.quota_blocks = (0..engine.pools()).map(|p| u64::from(engine.policy(p).capacity())).sum();
    rows.push(all);
    rows
}
