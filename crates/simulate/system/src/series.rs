//! The time series of a replay: one row per window and tenant.

use cachewright_cache::Engine;
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use cachewright_types::measure::Counts;

/// The row's tenant index that stands for all tenants together.
pub(crate) const ALL_TENANTS: u32 = u32::MAX;

/// How what a tenant holds compares with what the division gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum QuotaState {
    /// It has no quota of its own.
    #[default]
    None = 0,
    /// It holds more, and gives up.
    Supply = 1,
    /// It holds less, and grows.
    Demand = 2,
    /// It holds what it is given, exactly.
    Stable = 3,
}

impl QuotaState {
    /// All states, by their numbers.
    pub const ALL: [QuotaState; 4] =
        [QuotaState::None, QuotaState::Supply, QuotaState::Demand, QuotaState::Stable];

    /// The state of a tenant that holds so many blocks and is given so many.
    pub fn compare(held_blocks: u32, given_blocks: u32) -> QuotaState {
        match held_blocks.cmp(&given_blocks) {
            std::cmp::Ordering::Greater => QuotaState::Supply,
            std::cmp::Ordering::Less => QuotaState::Demand,
            std::cmp::Ordering::Equal => QuotaState::Stable,
        }
    }

    /// The word used in results.
    pub fn word(self) -> &'static str {
        match self {
            QuotaState::None => "none",
            QuotaState::Supply => "supply",
            QuotaState::Demand => "demand",
            QuotaState::Stable => "stable",
        }
    }
}

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
    /// The tenant's state at the end of the window.
    pub state: QuotaState,
}

/// The rows of a window that has ended at `time_ns`, one per tenant and one for all; `before` holds
/// each tenant's counters at the window's start and then those at its end.
pub fn window_rows<P: Policy>(
    engine: &Engine<P>,
    before: &mut [Counts],
    window: u32,
    time_ns: u64,
) -> Vec<Row> {
    let total = (0..engine.pools()).map(|p| u64::from(engine.quota_of_pool(p))).sum();
    let tenants = (0..before.len()).map(|tenant| TenantId(tenant as u16));
    let now: Vec<Held> = tenants
        .map(|id| Held {
            counts: *engine.counts(id),
            occupancy: engine.occupancy(id),
            quota: engine.quota(id),
            state: match engine.has_quota(id) {
                true => QuotaState::compare(engine.occupancy(id), engine.quota(id)),
                false => QuotaState::None,
            },
        })
        .collect();
    rows_of(&now, total, before, window, time_ns)
}

/// A tenant's counters and blocks at one time.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Its counters.
    pub counts: Counts,
    /// Blocks it holds.
    pub occupancy: u32,
    /// Blocks it may hold.
    pub quota: u32,
    /// How the two compare.
    pub state: QuotaState,
}

/// As [`window_rows`], of a cache known by what its tenants hold; `total_quota` is that of all.
pub fn rows_of(
    held: &[Held],
    total_quota: u64,
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
        state: QuotaState::None,
    };
    let mut rows = Vec::with_capacity(before.len() + 1);
    for (tenant, (before, held)) in before.iter_mut().zip(held).enumerate() {
        let now = held.counts;
        let row = Row {
            tenant: tenant as u32,
            accesses: now.accesses() - before.accesses(),
            hits: now.hits() - before.hits(),
            occupancy_blocks: u64::from(held.occupancy),
            quota_blocks: u64::from(held.quota),
            state: held.state,
            ..all
        };
        all.accesses += row.accesses;
        all.hits += row.hits;
        all.occupancy_blocks += row.occupancy_blocks;
        rows.push(row);
        *before = now;
    }
    all.quota_blocks = total_quota;
    rows.push(all);
    rows
}
