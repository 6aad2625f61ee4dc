//! The answers on fleets of volumes, which the Python package writes: `fleet study` (`study.json`)
//! and `plan --fleet` (`fleet.json`).
//!
//! Units: blocks, bytes.

use crate::document::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of `fleet study`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Where the volumes are.
    pub name: String,
    /// What was measured of each volume.
    pub plan: StudyPlan,
    /// Volumes with an answer.
    pub volumes: u64,
    /// Their requests.
    pub requests: u64,
    /// Their working sets together.
    pub working_set_bytes: u64,
    /// Volumes without an answer.
    pub failed: Vec<FailedVolume>,
    /// Files that cannot be read.
    pub unread: Vec<FailedVolume>,
    /// The classes of volumes, most volumes first.
    pub classes: Vec<VolumeClass>,
    /// Each measure over the volumes.
    pub distributions: Vec<VolumeDistribution>,
    /// How often each policy is the best.
    pub wins: Vec<PolicyWins>,
}

/// What a study measures of each volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyPlan {
    /// The policies.
    pub policies: Vec<String>,
    /// Sizes of the cache, in bytes or shares of a volume's working set.
    pub sizes: Vec<String>,
    /// Share of blocks in the samples of miniature simulations.
    pub rate: f64,
    /// Difference of hit ratios below which policies are simulated exactly.
    pub close: f64,
    /// Size of a block.
    pub block: String,
    /// Options of `wa` for the drives; null without drives.
    pub drive: Option<Value>,
}

/// A volume or file without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedVolume {
    /// Name of the volume, or path of the file.
    pub name: String,
    /// Why there is no answer.
    pub error: String,
}

/// How many volumes are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeClass {
    /// The class: its mix of requests and how it moves over its blocks, or its kind.
    pub volume_class: String,
    /// Volumes of the class.
    pub volumes: u64,
    /// Their requests.
    pub requests: u64,
}

/// A measure over the volumes that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeDistribution {
    /// Name of the measure.
    pub measure: String,
    /// Size of the cache; absent for measures without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// The policy; absent for measures without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The separation of the drive; absent for measures without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separation: Option<String>,
    /// Volumes that have it.
    pub count: u64,
    /// Mean over these volumes; null without any.
    pub mean: Option<f64>,
    /// Shares of volumes, each with the value that they stay below; empty without any.
    pub quantiles: Vec<(f64, f64)>,
}

/// How often a policy is the best at one size, and what it loses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyWins {
    /// Size of the cache.
    pub size: String,
    /// The class of the volumes; `all` for all of them.
    pub volume_class: String,
    /// The policy.
    pub policy: String,
    /// Volumes of the class.
    pub volumes: u64,
    /// Share of them on which it alone has the highest hit ratio.
    pub win_share: f64,
    /// Share on which others have the highest hit ratio as well.
    pub tie_share: f64,
    /// Share on which it is within `plan.close` of the highest.
    pub close_share: f64,
    /// Share on which its hit ratio is exact.
    pub exact_share: f64,
    /// Mean by which its hit ratio is below the highest.
    pub mean_loss: f64,
}

/// The answer of `plan --fleet`: the host of each volume, and the flash of every host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetPlanAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Name of the fleet.
    pub name: String,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Windows of time in which volumes have needs of their own.
    pub windows: u64,
    /// Hosts in use.
    pub hosts: u64,
    /// Hosts that no plan can do with less of.
    pub bound_hosts: u64,
    /// Flash of each host.
    pub flash_blocks: u64,
    /// Flash per host that no plan can be below.
    pub bound_blocks: u64,
    /// Share by which the planned flash is above its bound.
    pub gap: f64,
    /// Whether the hosts' flash was given, and the fewest hosts were looked for.
    pub flash_given: bool,
    /// Problems that were solved.
    pub solves: u64,
    /// The volumes, in the order of the fleet file.
    pub volumes: Vec<PlannedVolume>,
    /// Other ways to place the volumes.
    pub others: Vec<OtherPlacing>,
    /// What moves when a host dies or volumes grow.
    pub changes: Vec<PlacementChange>,
    /// Goals met when the hosts' caches are replayed; empty unless asked for.
    pub replayed: Vec<ReplayedPlacing>,
    /// What a reader must know of the plan.
    pub notes: Vec<String>,
}

/// A volume's host, its part of that host's cache and what it gets by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedVolume {
    /// Name of the volume.
    pub name: String,
    /// Number of its host.
    pub host: u64,
    /// Volumes of one group are on different hosts; null without a group.
    pub group: Option<String>,
    /// The goal, 0 to 1; null without a goal.
    pub goal_hit_ratio: Option<f64>,
    /// Whether any cache meets the goal.
    pub reached: bool,
    /// Hit ratio of a cache that holds all blocks.
    pub best_hit_ratio: f64,
    /// Hit ratio of its part of the cache, read off its curve.
    pub hit_ratio: f64,
    /// What its goal needs in its fullest window.
    pub need_blocks: u64,
    /// Its part of the cache.
    pub blocks: u64,
    /// Blocks that its cache writes to flash in a day.
    pub written_blocks_per_day: f64,
    /// Requests per second that it may send.
    pub iops: u64,
    /// Bytes per second that it may send.
    pub bandwidth_bytes: u64,
}

/// Another way to place the volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherPlacing {
    /// Name of the way.
    pub name: String,
    /// Flash per host with which it meets all goals; null where no size does.
    pub flash_blocks: Option<u64>,
}

/// What moves when a host dies or volumes grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementChange {
    /// The change.
    pub what: String,
    /// Whether the volumes fit on the hosts after it.
    pub fits: bool,
    /// Volumes that move.
    pub moved: Vec<String>,
    /// Flash that moved volumes fill on their new hosts.
    pub blocks: u64,
    /// Flash per host with which the volumes fit; that of the plan where they do.
    pub needed_blocks: u64,
}

/// Goals met when the hosts' caches are replayed at the plan's size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedPlacing {
    /// Name of the way to place the volumes.
    pub name: String,
    /// Volumes with a goal that can be met.
    pub goals: u64,
    /// Goals met.
    pub goals_met: u64,
    /// Hit ratio of all volumes together.
    pub hit_ratio: f64,
    /// Volumes whose goals are missed.
    pub missed: Vec<String>,
}
