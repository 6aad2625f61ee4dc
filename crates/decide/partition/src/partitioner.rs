//! What a partitioner is, what it may know of each tenant, and the division that it returns. Units:
//! blocks.

use crate::ResponseGoal;
use cachewright_curve::Curve;
use cachewright_curve::signal::TenantSignals;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use std::sync::Arc;

/// Which curves a partitioner divides by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurveKind {
    /// Curves of the cache's own policy, by miniature simulation; otherwise of LRU.
    pub own_policy: bool,
    /// Curves of the head of each trace, before the run; otherwise of each interval.
    pub ahead: bool,
}

/// Model files that a run was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// One per tenant, in order, for partitioners that declare [`Need::Model`](crate::Need::Model).
    pub each: Vec<Vec<u8>>,
    /// Models that replace a tenant's first one during the run; for no tenant, or for each.
    pub later: Vec<Vec<Vec<u8>>>,
    /// One for all tenants together, for partitioners that declare
    /// [`Need::JointModel`](crate::Need::JointModel).
    pub joint: Option<Vec<u8>>,
}

/// Divides the cache at the start and after every interval. Its [`Snapshot`] is restored into a
/// partitioner of the same settings, of as many tenants, that has the same models.
pub trait Partitioner: Snapshot + Send {
    /// The division for the next interval. Deterministic: it depends on the settings, on earlier
    /// calls and on this one. Before the first interval counts are 0 and signals absent.
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision;

    /// The fewest blocks that a tenant keeps, among this many tenants on such a cache.
    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32;

    /// Takes trained models in place of those before, at any time; they count from the next
    /// division on. Divisions with the same files are those without the call. Errors: a file is no
    /// model or has another shape; the text names the tenant, what was found and what was expected.
    /// The models before stay in use.
    fn learn(&mut self, _models: &Models) -> Result<(), String> {
        Ok(())
    }

    /// Chooses evictions, for partitioners that divide as [`CacheDivision::Elastic`].
    fn victim_selector(&self) -> Option<Box<dyn VictimSelector>> {
        None
    }

    /// Steps of equal length in an interval, for partitioners that declare
    /// [`Need::Features`](crate::Need::Features).
    fn steps(&self) -> u32 {
        0
    }

    /// The curves to measure, for partitioners that declare [`Need::Curve`](crate::Need::Curve).
    fn curves(&self) -> CurveKind {
        CurveKind::default()
    }

    /// Whether tenants start from profiles of heads of their traces, for partitioners that declare
    /// [`Need::Goal`](crate::Need::Goal).
    fn reads_profiles(&self) -> bool {
        false
    }

    /// Whether a replay takes those profiles from tenants alone on its devices, to their ends, not
    /// from heads. A live server has no such replay and profiles heads.
    fn profiles_on_devices(&self) -> bool {
        false
    }

    /// Blocks that each tenant can use after the last division, which gave it `quotas`: its whole
    /// quota, unless the partitioner knows better.
    fn requirements(&self, tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        Requirement::whole_quotas(tenants, quotas)
    }

    /// Blocks with which each tenant would have kept its goal, by what was measured until the last
    /// division: nothing for a tenant without a goal, and where no size keeps it. Empty for
    /// partitioners that do not know.
    fn goal_blocks(&self, _tenants: &[TenantView]) -> Vec<Option<u32>> {
        Vec::new()
    }

    /// Granules of the cache in [`TenantView::future_ns`].
    fn granules(&self) -> u32 {
        0
    }
}

/// Facts of a tenant that stay the same during a run.
#[derive(Clone, Debug, PartialEq, SnapshotValue)]
pub struct TenantConstants {
    /// The weight in the stack file; 1 by default. Never negative.
    pub weight: f64,
    /// The weights of the intervals, over and over; empty without a schedule. Never negative.
    pub schedule: Vec<f64>,
    /// Whether the stack file marks the tenant as sensitive to latency.
    pub sensitive: bool,
    /// The goal and profile, for partitioners that declare [`Need::Goal`](crate::Need::Goal).
    pub goal: Option<TenantGoal>,
    /// Misses by cache size over the head of the trace, measured before the run, for partitioners
    /// whose [`Partitioner::curves`](crate::Partitioner::curves) ask for it.
    pub head_curve: Option<Arc<Curve>>,
}

/// The goal of a tenant, and its hit ratios measured before the run.
#[derive(Clone, Debug, Default, PartialEq, SnapshotValue)]
pub struct TenantGoal {
    /// The hit ratio promised to the tenant; nothing for a tenant without a goal.
    pub hit_ratio: Option<f64>,
    /// The response time promised to the tenant instead.
    pub response: Option<ResponseGoal>,
    /// Hit ratio by quota in blocks; empty without a profile.
    pub profile: Vec<(u32, f64)>,
}

impl TenantGoal {
    /// The quotas of a profile in a cache of so many blocks: one block, half of the cache, all.
    pub fn profile_sizes(capacity_blocks: u32) -> Vec<u32> {
        let mut sizes = vec![1, capacity_blocks / 2, capacity_blocks];
        sizes.dedup();
        sizes
    }
}

/// One tenant at a division: its facts, its last interval, its quota.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TenantView<'a> {
    /// Facts that stay the same during the run.
    pub facts: &'a TenantConstants,
    /// The interval that begins, counted from 0.
    pub interval: u64,
    /// Block accesses in the last interval.
    pub accesses: u64,
    /// Block accesses that hit.
    pub hits: u64,
    /// Blocks that it may hold now: its quota, or its size of before while no other tenant has
    /// needed the room.
    pub quota_blocks: u32,
    /// Blocks held.
    pub occupancy_blocks: u32,
    /// Whether the tenant has not started yet or has left, under a layout that divides channels
    /// among the tenants present.
    pub absent: bool,
    /// Signals of the last interval: those of the needs declared.
    pub signals: TenantSignals<'a>,
    /// Mean response in ns of the tenant alone in the next interval, with 0, 1, ... granules of the
    /// cache, for partitioners that declare [`Need::Future`](crate::Need::Future).
    pub future_ns: Option<&'a [f64]>,
}

/// The facts of a tenant without settings.
static PLAIN: TenantConstants = TenantConstants {
    weight: 1.0,
    schedule: Vec::new(),
    sensitive: false,
    goal: None,
    head_curve: None,
};

impl Default for TenantConstants {
    fn default() -> TenantConstants {
        PLAIN.clone()
    }
}

impl Default for &TenantConstants {
    fn default() -> Self {
        &PLAIN
    }
}

impl TenantConstants {
    /// The hit ratio promised to the tenant.
    pub fn goal_hit_ratio(&self) -> Option<f64> {
        self.goal.as_ref().and_then(|goal| goal.hit_ratio)
    }

    /// The response time promised to the tenant.
    pub fn goal_response(&self) -> Option<ResponseGoal> {
        self.goal.as_ref().and_then(|goal| goal.response)
    }

    /// Hit ratio by quota in blocks, measured before the run; empty without a profile.
    pub fn profile(&self) -> &[(u32, f64)] {
        self.goal.as_ref().map_or(&[], |goal| &goal.profile)
    }
}

impl TenantView<'_> {
    /// Misses over accesses of the last interval; 0 without accesses.
    pub fn miss_ratio(&self) -> f64 {
        let misses = self.accesses - self.hits.min(self.accesses);
        misses as f64 / self.accesses.max(1) as f64
    }
}

/// A division of the cache. Quotas sum to the cache, and none is below the floor: see
/// [`CacheDivision::audit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheDivision {
    /// One pool for all tenants.
    Shared,
    /// A quota for each tenant, in the order of the tenants.
    PerTenant(Vec<u32>),
    /// Pools, each for one tenant or several.
    Pools {
        /// The pool of each tenant, in the order of the tenants; every pool has a tenant.
        pool_of: Vec<u16>,
        /// The blocks of each pool.
        blocks: Vec<u32>,
    },
    /// One cache with a list per tenant, whose lengths follow the misses; see
    /// [`VictimSelector`](crate::VictimSelector).
    Elastic,
}

/// Blocks that a tenant can use, for layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
pub struct Requirement {
    /// Blocks (S_r).
    pub blocks: u32,
    /// Miss ratio with these blocks, 0 to 1 (R_e).
    pub miss_ratio: f64,
}

impl Requirement {
    /// The whole quota of each tenant, at the miss ratio of its last interval.
    pub fn whole_quotas(tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        let requirement = |(view, blocks): (&TenantView, &u32)| Requirement {
            blocks: *blocks,
            miss_ratio: view.miss_ratio(),
        };
        tenants.iter().zip(quotas).map(requirement).collect()
    }
}

impl CacheDivision {
    /// Checks that each tenant has a quota, or a pool, and each pool a tenant; quotas must sum to
    /// `total_blocks`, each at least `floor_blocks`. Errors: the rule that is broken.
    pub fn audit(
        &self,
        tenants: usize,
        total_blocks: u32,
        floor_blocks: u32,
    ) -> Result<(), String> {
        let quotas = match self {
            CacheDivision::Shared | CacheDivision::Elastic => return Ok(()),
            CacheDivision::PerTenant(quotas) => quotas,
            CacheDivision::Pools { pool_of, blocks } => {
                let pools = 0..blocks.len();
                if let Some(pool) =
                    pool_of.iter().find(|pool| !pools.contains(&usize::from(**pool)))
                {
                    return Err(format!("pool {pool} of {} pools", blocks.len()));
                }
                let unused = |pool: &usize| !pool_of.contains(&(*pool as u16));
                if let Some(pool) = pools.into_iter().find(unused) {
                    return Err(format!("pool {pool} has no tenant"));
                }
                blocks
            }
        };
        let assigned = if let CacheDivision::Pools { pool_of, .. } = self {
            pool_of.len()
        } else {
            quotas.len()
        };
        if assigned != tenants {
            return Err(format!("{assigned} quotas for {tenants} tenants"));
        }
        let sum: u64 = quotas.iter().copied().map(u64::from).sum();
        if tenants > 0 && sum != u64::from(total_blocks) {
            return Err(format!("quotas sum to {sum} of {total_blocks} blocks"));
        }
        match quotas.iter().position(|&quota| quota < floor_blocks) {
            Some(index) => Err(format!(
                "{} {index} has {} blocks, below its floor of {floor_blocks}",
                if matches!(self, CacheDivision::Pools { .. }) { "pool" } else { "tenant" },
                quotas[index]
            )),
            None => Ok(()),
        }
    }
}
/// A write request that reaches the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRequest<'a> {
    /// The tenant that sends it.
    pub tenant: usize,
    /// Blocks that it writes.
    pub blocks: u32,
    /// Channels of the drive that are busy.
    pub busy_channels: u32,
    /// Channels of the drive.
    pub channels: u32,
    /// Blocks that each tenant holds.
    pub held: &'a [u32],
    /// Whether the cache is full.
    pub full: bool,
}

/// The eviction at the next miss of a full cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VictimChoice {
    /// The tenant whose blocks are evicted; without one, the tenant that then holds most.
    pub victim: Option<usize>,
    /// Blocks evicted together, at most those that the tenant holds. Once their slots are used,
    /// each admission evicts a block of its own tenant.
    pub blocks: u32,
}

/// Chooses the tenant that a full cache evicts from, where tenants' lists grow and shrink with
/// requests ([`CacheDivision::Elastic`]). A choice is used once, and holds until the
/// next write request.
pub trait VictimSelector: Send {
    /// The choice before the first write request.
    fn initial(&self) -> VictimChoice;
    /// The choice from this write request on. Deterministic, as a division is.
    fn on_write(&mut self, request: &WriteRequest<'_>) -> VictimChoice;
}
