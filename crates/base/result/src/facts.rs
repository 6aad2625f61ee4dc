//! What was read of each tenant's trace.
//!
//! For: `tenants` of the answers of `run`, `mrc` and `wa`. Must never know: trace formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The trace of one tenant, as block accesses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantFacts {
    /// Name of the tenant.
    pub name: String,
    /// The trace as the stack file names it.
    pub trace: String,
    /// Name of the trace's format.
    pub format: String,
    /// Requests of all kinds.
    pub requests: u64,
    /// Requests that read.
    pub reads: u64,
    /// Requests that write.
    pub writes: u64,
    /// Requests that trim.
    pub trims: u64,
    /// Requests that flush.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes trimmed.
    pub trim_bytes: u64,
    /// Accesses to single blocks.
    pub block_accesses: u64,
    /// Distinct blocks.
    pub distinct_blocks: u32,
    /// Time of the last request, in nanoseconds since the first.
    pub span_ns: u64,
    /// Records that could not be read.
    pub skipped_bad: u64,
    /// Records that are no block requests.
    pub skipped_irrelevant: u64,
    /// Some of the records that could not be read, each with its place and reason.
    pub skipped_examples: Vec<String>,
    /// Requests earlier than the one before them.
    pub out_of_order: u64,
    /// Whether the trace has times.
    pub has_times: bool,
    /// Volumes of the trace that the tenant has requests of.
    #[serde(default)]
    pub volumes: u64,
    /// What was done to the trace beside reading it, and what its content shows beside its
    /// requests, such as units that cannot be meant, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The trace of one tenant, as requests to a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveTenantFacts {
    /// Name of the tenant.
    pub name: String,
    /// `load` for a trace that is replayed first and not counted, else `run`.
    pub part: String,
    /// The trace as the stack file or the option names it.
    pub trace: String,
    /// Name of the trace's format.
    pub format: String,
    /// Requests of all kinds.
    pub requests: u64,
    /// Requests that read.
    pub reads: u64,
    /// Requests that write.
    pub writes: u64,
    /// Requests that trim.
    pub trims: u64,
    /// Requests that flush.
    pub flushes: u64,
    /// Records that could not be read.
    pub skipped_bad: u64,
    /// Records that are no block requests.
    pub skipped_irrelevant: u64,
    /// Some of the records that could not be read, each with its place and reason.
    pub skipped_examples: Vec<String>,
    /// Requests earlier than the one before them.
    pub out_of_order: u64,
    /// Whether the trace has times.
    pub has_times: bool,
    /// Volumes of the trace that the tenant has requests of.
    #[serde(default)]
    pub volumes: u64,
    /// What was done to the trace beside reading it, and what its content shows beside its
    /// requests, such as units that cannot be meant, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}
