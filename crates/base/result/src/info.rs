//! The answer of `trace info`: what a trace holds.
//!
//! For: what Python receives. Must never know: trace formats. Units: bytes, nanoseconds, blocks.

use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `trace info`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceInfo {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Totals of the whole trace.
    #[serde(flatten)]
    pub totals: VolumeTotals,
    /// Path of the trace.
    pub path: String,
    /// Name of its format.
    pub format: String,
    /// Whether the trace has times.
    pub has_times: bool,
    /// Time from the earliest request to the latest; null without times.
    pub span_ns: Option<u64>,
    /// Bytes of a block for the working set and re-use distances.
    pub block_bytes: u64,
    /// Whether the trace numbers objects: then each is one block, of the size first asked for.
    #[serde(default)]
    pub counts_objects: bool,
    /// Requests earlier than one before them.
    pub out_of_order: u64,
    /// Records that could not be read.
    pub skipped_bad: u64,
    /// Records that are no block requests.
    pub skipped_irrelevant: u64,
    /// Some of the records that could not be read, each with its place and reason.
    pub skipped_examples: Vec<String>,
    /// What was done to the trace beside reading it, and what its content shows beside its
    /// requests, such as units that cannot be meant, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Sizes of reads and writes, in bytes.
    pub request_bytes: SizeDistribution,
    /// Re-use distances.
    pub reuse: Reuse,
    /// Per bin of time: start in nanoseconds, requests, bytes; empty without times.
    pub rate: Vec<(u64, u64, u64)>,
    /// Every volume with a request, the busiest first.
    pub volumes: Vec<VolumeInfo>,
}

/// Requests and bytes of a volume, or of a whole trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeTotals {
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
    /// Share of reads among reads and writes, 0 to 1.
    pub read_share: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes trimmed.
    pub trim_bytes: u64,
    /// Distinct blocks read or written.
    pub distinct_blocks: u64,
    /// Bytes of these blocks.
    pub working_set_bytes: u64,
    /// Bytes of the blocks that are written.
    pub written_working_set_bytes: u64,
    /// Requests per second over the span of the whole trace; null without times.
    pub rate_per_s: Option<f64>,
}

/// One volume of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeInfo {
    /// Totals of the volume.
    #[serde(flatten)]
    pub totals: VolumeTotals,
    /// Name of the volume.
    pub name: String,
}

/// Sizes, with a histogram by powers of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeDistribution {
    /// Mean size, in bytes.
    pub mean: f64,
    /// Size that half do not exceed, in bytes.
    pub p50: u64,
    /// Size that 90 % do not exceed, in bytes.
    pub p90: u64,
    /// Size that 99 % do not exceed, in bytes.
    pub p99: u64,
    /// Largest size, in bytes.
    pub max: u64,
    /// Per bin: largest size in bytes, requests.
    pub histogram: Vec<[u64; 2]>,
}

/// LRU stack distances over all volumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reuse {
    /// Accesses to blocks.
    pub accesses: u64,
    /// Accesses to blocks that were not accessed before.
    pub compulsory: u64,
    /// Per bin: largest distance in blocks, accesses.
    pub histogram: Vec<[u64; 2]>,
    /// The LRU curve: cache size in blocks, miss ratio (0 to 1).
    pub lru_miss_ratio: Vec<(u32, f64)>,
}
