//! The answers on sizes: `plan` (`plan.json`), the smallest cache that meets the tenants' goals,
//! and `advise`, what other settings would have given a live server's load.
//!
//! Units: blocks, bytes, nanoseconds.

use crate::document::Written;
use crate::run::MissCauses;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of `plan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Name of the stack.
    pub name: String,
    /// The stack file with every default filled in.
    pub spec: Value,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How much too large an answer may be, as a share of it, 0 to 1.
    pub precision: f64,
    /// Each tenant alone.
    pub tenants: Vec<PlanTenant>,
    /// Sum of the smallest caches of tenants with a goal; null where a goal cannot be met.
    pub smallest_blocks: Option<u64>,
    /// The partitioner that requires the smallest cache; null where none meets all goals.
    pub best: Option<String>,
    /// The smallest cache under each partitioner.
    pub partitions: Vec<PlanPartition>,
    /// What a reader must know of the plan.
    pub notes: Vec<String>,
}

/// What one tenant requires in a cache of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanTenant {
    /// Name of the tenant.
    pub name: String,
    /// The goal, 0 to 1; null without a goal.
    pub goal_hit_ratio: Option<f64>,
    /// The smallest cache that meets the goal; null without a goal, or where no size meets it.
    pub alone_blocks: Option<u32>,
    /// Hit ratio of a cache that holds all blocks, 0 to 1.
    pub best_hit_ratio: f64,
}

/// The smallest cache under one partitioner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanPartition {
    /// Name of the partitioner.
    pub partition: String,
    /// The smallest cache that meets all goals; null where no size does.
    pub smallest_blocks: Option<u32>,
    /// Quota of each tenant in it; null where no size meets all goals.
    pub quota_blocks: Option<Vec<u32>>,
    /// Hit ratio of each tenant in it, or in the largest cache where no size meets all goals.
    pub hit_ratios: Option<Vec<f64>>,
    /// A larger size at which goals are not met; null where there is none.
    pub warning: Option<String>,
    /// Sizes tried: blocks, whether all goals are met, hit ratio of each tenant.
    pub tried: Vec<(u32, bool, Vec<f64>)>,
}

/// The answer of `advise`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviseAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Name of the stack.
    pub name: String,
    /// What the numbers come from: replays of `recordings` or of the stack's `traces`, or estimates
    /// from the sampled `curves` of a server that records nothing.
    pub source: String,
    /// The recordings that were replayed, oldest first; else empty.
    pub recordings: Vec<String>,
    /// Requests that were replayed; 0 for estimates.
    pub requests: u64,
    /// Accesses to blocks that all hit ratios belong to.
    pub accesses: u64,
    /// Time from the first request to the last one; for estimates, the time that curves count.
    pub span_ns: u64,
    /// The cache as the stack has it.
    pub present: AdviseCase,
    /// All caches that were tried, the best first: the present one is among them.
    pub cases: Vec<AdviseCase>,
    /// What each tenant with a goal needs.
    pub goals: Vec<AdviseGoal>,
    /// Why the cache as it is missed, of each tenant that has misses; empty for estimates, and on
    /// simulated drives with a cache of their own.
    pub causes: Vec<AdviseCauses>,
    /// What to change, the most important first.
    pub advice: Vec<String>,
    /// What a reader must know of the answer.
    pub notes: Vec<String>,
}

/// A cache that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviseCase {
    /// The policy.
    pub policy: String,
    /// The partitioner.
    pub partition: String,
    /// The size of the cache.
    pub capacity_bytes: u64,
    /// Hits per access of all tenants together, 0 to 1.
    pub hit_ratio: f64,
    /// Goals that are met, of all tenants; 0 without goals.
    pub goals_met: u64,
    /// The tenants, in the order of the stack file.
    pub tenants: Vec<AdviseTenant>,
}

/// A tenant of a cache that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviseTenant {
    /// Name of the tenant.
    pub name: String,
    /// Hits per access, 0 to 1.
    pub hit_ratio: f64,
    /// Bytes that it may hold at the end; all of the cache where tenants share it.
    pub quota_bytes: u64,
    /// Whether its goal is met; null without a goal.
    pub goal_met: Option<bool>,
}

/// The misses of a tenant by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviseCauses {
    /// Name of the tenant.
    pub name: String,
    /// All its misses.
    pub misses: u64,
    /// The same by cause; of a large cache they are those of a sample, in proportion.
    pub causes: MissCauses,
}

/// What a tenant with a goal needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviseGoal {
    /// Name of the tenant.
    pub name: String,
    /// The goal, 0 to 1.
    pub goal_hit_ratio: f64,
    /// What it has in the present cache, 0 to 1.
    pub hit_ratio: f64,
    /// The smallest quota that keeps the goal under the present policy; null where none does.
    pub needed_bytes: Option<u64>,
    /// The smallest quota that keeps it at the high end of the 95 % confidence interval of misses;
    /// null for replays, and where none does.
    pub safe_bytes: Option<u64>,
    /// Bytes beyond its present quota, less than 0 if it has more than it needs; null where no
    /// quota keeps the goal, and where tenants share the cache.
    pub more_bytes: Option<i64>,
    /// The hit ratio of a cache that holds all blocks, 0 to 1.
    pub best_hit_ratio: f64,
}
