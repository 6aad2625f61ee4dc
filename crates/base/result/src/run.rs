//! The answer of `run` and `compare`.
//!
//! For: `result.json`, and what Python receives. Must never know: how a case is run.

use crate::case::Case;
use crate::facts::TenantFacts;
use crate::series::SeriesRow;
use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of `run` and `compare`: every combination of what is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Name of the stack.
    pub name: String,
    /// The stack file with every default filled in.
    pub spec: Value,
    /// Totals of the workload of the first case.
    pub workload: Workload,
    /// The trace of each tenant, in the order of the stack file.
    pub tenants: Vec<TenantFacts>,
    /// The keys that are varied, in full.
    pub varied: Vec<String>,
    /// The cases, in the order of their numbers.
    pub cases: Vec<Case>,
    /// Exact LRU curves of all tenants together (`all`) and of each; empty unless asked for.
    pub curves: Vec<TenantCurve>,
    /// File of the time series, in the result folder; absent without a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// File of the throughput windows; absent without windows or without a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<String>,
    /// File of the windows of block regions; absent without regions or without a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rooms: Option<String>,
    /// Cases whose answers were kept from before. It is not written into the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused: Option<usize>,
    /// The time series as rows; absent with a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_rows: Option<Vec<SeriesRow>>,
}

/// Totals of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Requests of all kinds.
    pub requests: u64,
    /// Accesses to single blocks.
    pub block_accesses: u64,
    /// Distinct blocks.
    pub distinct_blocks: u32,
    /// Time of the last request, in nanoseconds since the first.
    pub span_ns: u64,
    /// Bytes of all distinct blocks.
    pub working_set_bytes: u64,
}

/// An exact LRU curve of one tenant, or of all together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantCurve {
    /// Name of the tenant; `all` for all together.
    pub tenant: String,
    /// Points: cache size in blocks, miss ratio (0 to 1).
    pub points: Vec<(u32, f64)>,
}
