//! The answer of `live load`: how a live server answered recorded requests.
//!
//! For: what Python receives. Must never know: how requests are sent. Units: the last word of a
//! field's name, or its comment. Percentiles are at most an eighth too high.

use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `live load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// The tenants, in the order of the stack file.
    pub tenants: Vec<LoadedTenant>,
}

/// What was sent to the export of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedTenant {
    /// The name of the tenant.
    pub name: String,
    /// The name of its export.
    pub export: String,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Requests of the trace that were sent or skipped.
    pub sent: u64,
    /// Requests of the trace that lie beyond the export, or have no bytes.
    pub skipped: u64,
    /// Requests as they were sent, long ones in pieces, by kind.
    pub requests: Vec<LoadedRequests>,
}

/// Answers to requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedRequests {
    /// The kind: `read`, `write`, `flush`, `trim`.
    pub kind: String,
    /// Requests.
    pub count: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// The mean time to the answer.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The time that 99 % do not exceed.
    pub p99_us: f64,
    /// The time that 99.9 % do not exceed.
    pub p999_us: f64,
}
