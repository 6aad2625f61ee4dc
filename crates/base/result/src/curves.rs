//! The answer of `mrc` (`mrc.json`): miss-ratio curves, and response times by cache size.
//!
//! Units: blocks.

use crate::document::Written;
use crate::timing::ResponseTimes;
use crate::trace::TenantFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of `mrc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvesAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Name of the stack.
    pub name: String,
    /// The stack file with every default filled in.
    pub spec: Value,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The method that was asked for.
    pub method: String,
    /// The sizes of all curves, ascending.
    pub sizes_blocks: Vec<u32>,
    /// The trace of each tenant, in the order of the stack file.
    pub tenants: Vec<TenantFacts>,
    /// The curves by policy, tenant and window.
    pub curves: Vec<MissRatioCurve>,
    /// What a reader must know of the curves, one sentence for many of them.
    pub notes: Vec<String>,
    /// Curves compared with exact simulation; empty unless asked for.
    pub verify: Vec<CurveCheck>,
    /// Response times by cache size; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Vec<LatencyCurve>>,
}

/// One miss-ratio curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissRatioCurve {
    /// Name of the tenant; `all` for all together.
    pub tenant: String,
    /// Name of the policy.
    pub policy: String,
    /// Number of the window of time; null for a curve of the whole trace.
    pub window: Option<usize>,
    /// How the curve was measured.
    pub method: String,
    /// Accesses to blocks.
    pub accesses: u64,
    /// Distinct blocks.
    pub distinct: u32,
    /// Size from which a sample is large enough.
    pub trusted_from_blocks: u32,
    /// Points: size in blocks, miss ratio, low and high end of its band (null where exact).
    pub points: Vec<(u32, f64, Option<f64>, Option<f64>)>,
}

/// A point of a curve compared with exact simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveCheck {
    /// Name of the tenant; `all` for all together.
    pub tenant: String,
    /// Name of the policy.
    pub policy: String,
    /// Size of the cache.
    pub size_blocks: u32,
    /// Miss ratio of the curve, 0 to 1.
    pub curve: f64,
    /// Miss ratio of the simulation, 0 to 1.
    pub exact: f64,
    /// `curve` minus `exact`.
    pub error: f64,
}

/// Response times of one tenant alone by cache size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyCurve {
    /// Name of the tenant.
    pub tenant: String,
    /// Name of the policy.
    pub policy: String,
    /// How volumes lie on the backing devices.
    pub layout: String,
    /// The points by size, from a cache that is switched off.
    pub points: Vec<LatencyPoint>,
}

/// Response times at one cache size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPoint {
    /// Response times.
    #[serde(flatten)]
    pub responses: ResponseTimes,
    /// Size of the cache; 0 for a cache that is switched off.
    pub size_blocks: u32,
    /// Hits per access, 0 to 1.
    pub hit_ratio: f64,
}
