//! What a partitioner may know of one tenant.
//!
//! For: facts of the stack file, counts of the last interval, and the signals that the partitioner
//! declares. Must never know: any partitioner, how a signal is measured. Units: blocks.

use crate::ResponseGoal;
use cachewright_curve::Curve;
use cachewright_curve::signal::TenantSignals;
use std::sync::Arc;

/// Facts of a tenant that stay the same during a run.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Current quota; 0 under a shared pool.
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
