//! The last hour of a live server.
//!
//! For: the document at `/history`, from which the page draws its charts when it is opened. Must
//! never know: how a server samples. Units: the last word of a field's name, or its comment. All
//! lists of a history are as long as its `uptime_seconds`, and belong to the same times.

use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a live server sampled in its last hour, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveHistory {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Seconds between two samples.
    pub every_seconds: f64,
    /// When each sample was taken: seconds since the start of the server.
    pub uptime_seconds: Vec<f64>,
    /// Bytes that only the cache had.
    pub dirty_bytes: Vec<u64>,
    /// Segments of the log that held nothing.
    pub free_segments: Vec<u64>,
    /// The tenants that are served, in the order of the status; at most the first 64.
    pub tenants: Vec<TenantHistory>,
}

/// A tenant in the last hour. Where it was not served yet, its values are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantHistory {
    /// The name of the tenant.
    pub name: String,
    /// Hits over accesses since the sample before; null without accesses.
    pub hit_ratio: Vec<Option<f64>>,
    /// Bytes that it held.
    pub cached_bytes: Vec<Option<u64>>,
    /// The 99th percentile of reads since the sample before; null without reads.
    pub read_p99_us: Vec<Option<f64>>,
    /// The 99th percentile of writes since the sample before; null without writes.
    pub write_p99_us: Vec<Option<f64>>,
    /// Whether its goal was met since the sample before; null without a goal, and where nothing was
    /// measured.
    pub goal_met: Vec<Option<bool>>,
}
