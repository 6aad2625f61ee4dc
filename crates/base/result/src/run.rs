//! The answer of `run` and `compare` (`result.json`): cases with their counters, of all tenants and
//! of each.
//!
//! Units: blocks of the cache; accesses are to single blocks.

use crate::Entries;
use crate::devices::CacheDrive;
use crate::document::Written;
use crate::timing::{Throughput, Timing};
use crate::trace::TenantFacts;
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

/// What one combination of settings gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Number of the case, from 0.
    pub case: usize,
    /// The schemes of each stage and the varied keys, as text, by key of the stack file.
    pub settings: Entries<String>,
    /// Capacity of the cache, in blocks.
    pub capacity_blocks: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Counters of all tenants together.
    pub total: CaseTotal,
    /// Counters of each tenant, in the order of the stack file.
    pub tenants: Vec<CaseTenant>,
    /// The flash drive under the cache; absent without `[flash]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash: Option<CacheDrive>,
    /// Throughput in windows of a closed loop without devices; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Times on devices; absent without `[device]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// What was decided, beside the server's decisions; absent unless the replay continues from the
    /// state of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continued: Option<ContinuedDecisions>,
}

/// Decisions of a replay that continues from the state of a server, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContinuedDecisions {
    /// A hash of what was decided from the start of the server to the end of the recording: which
    /// blocks were found, brought and evicted, and all quotas; 16 hexadecimal digits.
    pub decided: String,
    /// The server's own, which the state beside the next recording has; null without that.
    pub decided_by_server: Option<String>,
}

/// Counters of a cache, after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheCounts {
    /// Accesses to blocks, reads and writes.
    pub accesses: u64,
    /// Accesses that found their block.
    pub hits: u64,
    /// Accesses that did not.
    pub misses: u64,
    /// Hits per access, 0 to 1.
    pub hit_ratio: f64,
    /// Accesses that read.
    pub read_accesses: u64,
    /// Reads that found their block.
    pub read_hits: u64,
    /// Hits per read, 0 to 1.
    pub read_hit_ratio: f64,
    /// Accesses that write.
    pub write_accesses: u64,
    /// Writes that found their block.
    pub write_hits: u64,
    /// Bytes that accesses read and wrote; absent where they are not counted, as in the data cache
    /// of a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accessed_bytes: Option<u64>,
    /// Bytes of accesses that found their block; absent like `accessed_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_bytes: Option<u64>,
    /// Hit bytes per byte read or written, 0 to 1; absent like `accessed_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_hit_ratio: Option<f64>,
    /// Hit bytes of reads per byte read, 0 to 1; absent like `accessed_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_byte_hit_ratio: Option<f64>,
    /// Requests; one touches one block or several.
    pub requests: u64,
    /// Requests that found all their blocks.
    pub request_hits: u64,
    /// Requests that went past the cache because their sequential stream had become too long;
    /// absent without `cache.sequential_cutoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off_requests: Option<u64>,
    /// Bytes of these requests; absent like them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off_bytes: Option<u64>,
    /// Blocks admitted after a miss.
    pub admissions: u64,
    /// Misses whose block was not admitted.
    pub bypasses: u64,
    /// Blocks evicted.
    pub evictions: u64,
    /// Dirty blocks written back.
    pub writebacks: u64,
    /// Blocks dropped because they were trimmed or written around the cache.
    pub invalidations: u64,
    /// Blocks written to the cache device.
    pub cache_writes: u64,
    /// Blocks read from the backing device.
    pub backing_reads: u64,
    /// Blocks written to the backing device.
    pub backing_writes: u64,
}

/// Counters of all tenants of a case together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseTotal {
    /// Counters of the cache.
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// Dirty blocks at the end.
    pub dirty_blocks: u64,
    /// Tenants with a goal; absent without goals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<usize>,
    /// Goals met over the whole run; absent without goals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals_met: Option<usize>,
    /// Divisions of the cache that count; absent where the cache is not divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub divisions: Option<u32>,
    /// Mean share of the cache that a division moves, 0 to 1; absent like `divisions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_mean: Option<f64>,
    /// Largest share of the cache that a division moves, 0 to 1; absent like `divisions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_most: Option<f64>,
    /// Changes of direction of all quotas together; absent like `divisions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Response times; absent in an open loop without devices.
    #[serde(flatten)]
    pub responses: Option<CaseResponses>,
}

/// Counters of one tenant of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseTenant {
    /// Name of the tenant.
    pub name: String,
    /// Counters of the cache.
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// The goal as a hit ratio, 0 to 1; absent without a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_hit_ratio: Option<f64>,
    /// The mean response promised, ns; absent without such a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_response_ns: Option<u64>,
    /// The 99th percentile of responses promised, ns; absent without such a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_p99_ns: Option<u64>,
    /// Whether the goal is met over the whole run; absent without a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_met: Option<bool>,
    /// Blocks with which the goal would have been kept, by the curves of the run; absent where no
    /// size keeps it, and where the partitioner does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_blocks: Option<u32>,
    /// Blocks that the tenant may hold at the end.
    pub quota_blocks: u32,
    /// Blocks that the tenant holds at the end.
    pub occupancy_blocks: u32,
    /// Misses by cause; absent without `replay.causes`, and where a sample has no miss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causes: Option<MissCauses>,
    /// Shares of windows by state; absent for a tenant without a quota of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<QuotaStates>,
    /// Number of the pool that the tenant shares; absent where no pool is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<u16>,
    /// Blocks that the tenant makes use of by the last division; absent without such a division.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_blocks: Option<u32>,
    /// Miss ratio with `required_blocks`, 0 to 1; absent like them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_miss_ratio: Option<f64>,
    /// Changes of direction of the tenant's quota; absent where the cache is not divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Response times; absent in an open loop without devices.
    #[serde(flatten)]
    pub responses: Option<CaseResponses>,
}

/// Misses of a tenant by cause, which together are all its misses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissCauses {
    /// Misses that were looked at: all, or with `replay.causes = "sampled"` some, in whose
    /// proportion all are divided below.
    pub sampled: u64,
    /// The tenant had not used the block before.
    pub first_use: u64,
    /// A trim had dropped the block since its last use.
    pub trimmed: u64,
    /// The cache had lost its copy.
    pub lost: u64,
    /// The block was still on its way, with `machine.in_flight = "miss"`.
    pub in_flight: u64,
    /// Its last use was kept out by admission, write mode or cut-off; an lru of the blocks that the
    /// tenant held would have had it.
    pub bypassed: u64,
    /// An lru of the blocks that the tenant held would have had it; the policy had not.
    pub policy: u64,
    /// An lru of the whole cache would have had it; the tenant's quota is too small.
    pub quota: u64,
    /// The same, and a division had taken the space.
    pub division: u64,
    /// The same, and other tenants of the pool had the space.
    pub pushed_out: u64,
    /// Not even an lru of the whole cache, for the tenant alone, would have had it.
    pub capacity: u64,
    /// Nor would the optimum of the whole cache, so that no policy would; absent where the future
    /// is not known: on devices, in closed loops, and with policies that weigh benefits. These
    /// misses are then in `capacity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
    /// `pushed_out` by the tenant that had the space, in the order of the stack file.
    pub pushed_out_by: Vec<u64>,
    /// Time that a miss adds on average: time behind the cache per miss on devices, else the
    /// difference of `replay.miss_time` and `replay.hit_time` per request with a miss, spread over
    /// the misses.
    pub added_ns: f64,
    /// `pushed_out_by` times `added_ns`, rounded.
    pub pushed_out_ns: Vec<u64>,
}

impl MissCauses {
    /// The same with another time that a miss adds.
    pub fn costing(self, added_ns: f64) -> MissCauses {
        let cost = |misses: &u64| (*misses as f64 * added_ns).round() as u64;
        let pushed_out_ns = self.pushed_out_by.iter().map(cost).collect();
        MissCauses { added_ns, pushed_out_ns, ..self }
    }
}

/// Shares of windows by how the blocks held compare with the quota; together 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaStates {
    /// Share of windows that end with more blocks than the quota.
    pub supply: f64,
    /// Share of windows that end with fewer blocks.
    pub demand: f64,
    /// Share of windows that end with as many blocks.
    pub stable: f64,
}

/// Response times of a case, by where they come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CaseResponses {
    /// Measured on simulated devices.
    Measured(MeasuredResponses),
    /// Of a closed loop with constant times of hits and misses.
    Constant(ConstantResponses),
}

/// Response times measured on simulated devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredResponses {
    /// Time from the tenant's start to the last answer; absent in an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_time_ns: Option<u64>,
    /// Mean response time.
    pub mean_response_ns: f64,
    /// Response time that 99 % of the requests do not exceed.
    pub p99_response_ns: u64,
    /// Requests answered per second.
    pub throughput_per_s: f64,
    /// When the last request was answered.
    pub finished_ns: u64,
}

/// Response times of a closed loop with constant times of hits and misses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConstantResponses {
    /// Mean response time.
    pub mean_response_ns: f64,
    /// Requests answered per second.
    pub throughput_per_s: f64,
    /// When the last request was answered.
    pub finished_ns: u64,
    /// Time from the start to the last answer.
    pub run_time_ns: u64,
}

/// A row of the time series. Columns: case, window, end of the window in nanoseconds, tenant
/// (4294967295 for all), accesses, hits, blocks held, quota in blocks, state.
///
/// States are 0 (none), 1 (supply), 2 (demand) and 3 (stable).
pub type SeriesRow = (u32, u32, u64, u32, u64, u64, u64, u64, u8);
