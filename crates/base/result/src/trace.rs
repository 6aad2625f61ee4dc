//! What was read of traces: the answers of `trace info` and `characterize`, and `tenants` of the
//! answers of `run`, `mrc` and `wa`.
//!
//! Units: bytes, nanoseconds since the trace's first request; the working set is of 4 KiB pages.

use crate::document::Written;
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

/// The answer of `characterize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CharacterizeAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Names of the volumes, by number.
    pub volumes: Vec<String>,
    /// Path of the trace.
    pub path: String,
    /// Name of the characterizer; null without a model.
    pub characterizer: Option<String>,
    /// The kinds of workload that the model knows; empty without a model.
    pub kinds: Vec<String>,
    /// Length of a period: a duration with unit, or a number of requests.
    pub every: String,
    /// Whether the length was chosen by the trace's span.
    pub every_chosen: bool,
    /// Counts of the whole trace.
    pub total: PeriodCounts,
    /// The periods, in order of time.
    pub periods: Vec<JudgedPeriod>,
}

/// Counts of one stretch of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodCounts {
    /// Where it begins.
    pub start_ns: u64,
    /// Its latest request.
    pub end_ns: u64,
    /// Requests that read.
    pub reads: u64,
    /// Requests that write.
    pub writes: u64,
    /// Requests that trim.
    pub trims: u64,
    /// Requests that flush.
    pub flushes: u64,
    /// Reads and writes per second; 0 where all arrive at one time.
    pub rate_per_s: f64,
    /// Share of reads among reads and writes, 0 to 1.
    pub read_share: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Mean bytes of a read or write.
    pub mean_bytes: f64,
    /// Shares of reads and writes by class.
    pub classes: ClassShares,
    /// Shares of their bytes by class.
    pub class_bytes: ClassShares,
    /// Bytes of the distinct pages read or written.
    pub working_set_bytes: u64,
}

/// Shares by class of request, 0 to 1; together 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassShares {
    /// Share of sequential requests.
    pub sequential: f64,
    /// Share of requests that overlap recent ones.
    pub overlapped: f64,
    /// Share of requests at a constant distance.
    pub strided: f64,
    /// Share of all others.
    pub random: f64,
}

/// One period with its judgements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedPeriod {
    /// Counts of the period.
    #[serde(flatten)]
    pub counts: PeriodCounts,
    /// Judgements of the volumes with requests in the period; empty without a model.
    pub judged: Vec<KindJudgement>,
}

/// The kind of workload on one volume at the end of a period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindJudgement {
    /// Number of the volume.
    pub volume: usize,
    /// The kind of workload.
    pub kind: String,
    /// Score of that kind, 0 to 1.
    pub confidence: f64,
    /// A score per kind; together 1.
    pub scores: Vec<f64>,
}

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
