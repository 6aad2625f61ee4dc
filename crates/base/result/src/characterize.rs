//! The answer of `characterize`: what runs on a trace over time.
//!
//! For: what Python receives. Must never know: characterizers. Units: bytes, nanoseconds since the
//! trace's first request; the working set is of 4 KiB pages.

use crate::written::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
