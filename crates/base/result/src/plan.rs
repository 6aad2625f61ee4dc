//! The answer of `plan`: the smallest cache that meets the tenants' goals.
//!
//! For: `plan.json`, and what Python receives. Must never know: partitioners. Units: blocks; hit
//! ratios from 0 to 1.

use crate::written::Written;
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
