//! The documents at `/status` and `/history` of a live server, from which metrics, the page and
//! `cachewright top` are made.
//!
//! Counts are those since the start of the server; the recent ones those of the last 10 to 20 s.
//! All lists of a history are as long as its `uptime_seconds`, and belong to the same times.

use crate::document::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a live server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveStatus {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Path of the stack file.
    pub stack: String,
    /// The process of the server, to which SIGHUP says that the stack file has changed.
    pub process: u32,
    /// How often a changed stack was looked at since the start.
    pub reloads: u64,
    /// Why the last one was refused; null if it was taken over.
    pub refused_reload: Option<String>,
    /// Seconds since the start of the server.
    pub uptime_seconds: f64,
    /// Seconds to which the recent counts belong.
    pub recent_seconds: f64,
    /// The replacement policy.
    pub policy: String,
    /// The partitioner.
    pub partition: String,
    /// The write mode.
    pub write: String,
    /// What carries input and output out: `io_uring` or `threads`.
    pub engine: String,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of the cache.
    pub capacity_bytes: u64,
    /// Bytes that only the cache has.
    pub dirty_bytes: u64,
    /// Clients that are connected.
    pub connections: u64,
    /// Bytes of requests under way and of answers that are not sent.
    pub held_bytes: u64,
    /// Bytes per second that work which no request waits for may move now; null without a bound.
    pub background_bytes_per_second: Option<u64>,
    /// Bytes that such work has moved or written back.
    pub background_bytes: u64,
    /// The log that holds the cache.
    pub log: LogStatus,
    /// Recordings of what is decided; null where the stack asks for none.
    pub recordings: Option<RecordingStatus>,
    /// The policy that is tried; null without one.
    pub trial: Option<TrialStatus>,
    /// The tenants, in the order of the stack file.
    pub tenants: Vec<TenantStatus>,
}

/// Recordings of a live server, since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingStatus {
    /// The folder of all recordings.
    pub folder: String,
    /// The file that the recording under way becomes; null while none could begin.
    pub under_way: Option<String>,
    /// Recordings that were finished.
    pub files: u64,
    /// Requests in them, with the flushes at which they begin and end.
    pub requests: u64,
    /// Requests that are in none.
    pub dropped_requests: u64,
    /// Old recordings that were removed.
    pub removed_files: u64,
    /// Requests of the recording under way that are found after a kill.
    pub kept_requests: u64,
    /// Unfinished recordings of servers that were killed, found up to what was kept of them.
    pub recovered_files: u64,
    /// Unfinished recordings of which nothing was kept, which were removed.
    pub abandoned_files: u64,
    /// Recordings that could not be written, and files that could not be removed.
    pub errors: u64,
    /// The last of these errors; null without any.
    pub last_error: Option<String>,
}

/// The log of a live server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogStatus {
    /// Why it takes nothing any more; null while it works.
    pub failed: Option<String>,
    /// Segments of all devices.
    pub segments: u64,
    /// Segments that hold nothing.
    pub free_segments: u64,
    /// Bytes that requests have written to it or filled.
    pub written_bytes: u64,
    /// Bytes that cleaning has copied.
    pub moved_bytes: u64,
    /// Bytes that cleaning has dropped instead.
    pub dropped_bytes: u64,
    /// Segments that were cleaned.
    pub cleaned_segments: u64,
    /// Bytes that went to the log for each that requests wrote or filled.
    pub write_amplification: f64,
    /// Requests that were refused because the log had no space.
    pub refused_requests: u64,
    /// Clean blocks whose content was damaged: read from the backing device instead.
    pub damaged_clean: u64,
    /// Reads of dirty blocks whose content was damaged: they failed.
    pub damaged_dirty: u64,
    /// Dirty blocks that could not be written back and stay in the log.
    pub stranded: u64,
    /// Cached blocks that requests have read from memory (`serve.memory`).
    pub memory_reads: u64,
}

/// A policy or a partitioner that is tried beside what decides, both in miniature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialStatus {
    /// The policy on trial, or that of the cache.
    pub policy: String,
    /// The partitioner on trial, or that of the cache.
    pub partition: String,
    /// Whether it decided before, and the one that decides now is judged beside it.
    pub was_replaced: bool,
    /// Seconds since the trial began.
    pub seconds: f64,
    /// One block of so many is looked at.
    pub sampled_of: u64,
    /// Reads and writes of sampled blocks.
    pub accesses: u64,
    /// Those that are hit as the cache decides, in miniature.
    pub present_hits: u64,
    /// Those that are hit by what is on trial.
    pub trial_hits: u64,
    /// The same by tenant, in their order.
    pub tenants: Vec<TenantTrial>,
}

/// What a trial has found of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantTrial {
    /// The name of the tenant.
    pub name: String,
    /// Reads and writes of sampled blocks.
    pub accesses: u64,
    /// Those that are hit as the cache decides, in miniature.
    pub present_hits: u64,
    /// Those that are hit by what is on trial.
    pub trial_hits: u64,
    /// Bytes of the cache that the tenant, or the pool that it shares, has in the miniature.
    pub present_quota_bytes: u64,
    /// Those that it has by what is on trial.
    pub trial_quota_bytes: u64,
}

/// A tenant of a live server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantStatus {
    /// The name of the tenant.
    pub name: String,
    /// The name of its volume for clients.
    pub export: String,
    /// The size of its volume.
    pub volume_bytes: u64,
    /// How it is served: `cached`, `bypassed` (past a cache that has failed), `read-only` (the
    /// same, reads only), `waiting` (what the cache has alone is written back first), `failed`
    /// (its backing device fails; requests get errors), `reviving` (the same device is tried
    /// again), `leaving` (removed; what the cache has alone is written back).
    pub state: String,
    /// Bytes that it may hold; null where tenants share the cache.
    pub quota_bytes: Option<u64>,
    /// Bytes that it holds.
    pub cached_bytes: u64,
    /// Bytes of them that its backing device does not have; null where tenants share a pool.
    pub dirty_bytes: Option<u64>,
    /// The hit ratio that it is to reach, or that stands for its latency; null without a goal of
    /// these kinds.
    pub goal_hit_ratio: Option<f64>,
    /// Whether it met its goal of late, whatever the goal is about; null without a goal, and where
    /// nothing was measured.
    pub goal_met: Option<bool>,
    /// Its goal, and what was measured; null without a goal.
    pub goal: Option<GoalStatus>,
    /// How often its clients had done all that `max_iops` or `max_bandwidth` allow at one time.
    pub caps_exhausted: u64,
    /// Accesses to blocks since the start.
    pub blocks: BlockCounts,
    /// The same, recent.
    pub recent: BlockCounts,
    /// Misses since the start, by cause.
    pub misses: MissedBlocks,
    /// The same, recent: they may count misses that were unexplained before.
    pub recent_misses: MissedBlocks,
    /// Blocks that left otherwise than to make space, by reason.
    pub losses: Vec<LossCount>,
    /// Requests of clients by kind.
    pub requests: Vec<RequestStatus>,
    /// Misses by cache size, of the last hour; null where no curves are sampled.
    pub curve: Option<SampledCurve>,
}

/// Misses of a tenant by cause, by a sample of its blocks; together all misses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissedBlocks {
    /// The tenant had not used the block since the start of the server, nor was it in the log.
    pub first_use: u64,
    /// A trim had dropped it since its last use.
    pub trimmed: u64,
    /// The cache had lost its copy: an error of a device, or cleaning.
    pub lost: u64,
    /// The log had it when the server started, and the cache did not keep it.
    pub restart: u64,
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
    /// Misses since the last one of the sample: their cause is not known yet.
    pub unexplained: u64,
    /// `pushed_out` by the tenant that had the space, the largest first.
    pub pushed_out_by: Vec<PushedOut>,
    /// Seconds that reads and writes waited behind the cache.
    pub behind_seconds: f64,
}

/// Misses of one tenant for another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PushedOut {
    /// The tenant that had the space.
    pub by: String,
    /// Misses.
    pub misses: u64,
    /// Their part of the seconds behind the cache.
    pub seconds: f64,
}

impl MissedBlocks {
    /// Misses by the word of their cause.
    pub fn by_cause(&self) -> [(&'static str, u64); 10] {
        [
            ("first use", self.first_use),
            ("trimmed", self.trimmed),
            ("lost", self.lost),
            ("restart", self.restart),
            ("bypassed", self.bypassed),
            ("policy", self.policy),
            ("quota", self.quota),
            ("division", self.division),
            ("pushed out", self.pushed_out),
            ("capacity", self.capacity),
        ]
    }
}

/// The goal of a tenant, judged by the last `recent_seconds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalStatus {
    /// The key of the stack file that gives it: `goal_hit_ratio`, `goal_latency`, `goal_response`
    /// or `goal_p99`.
    pub key: String,
    /// The unit of `promised` and `measured`: `ratio` or `us`.
    pub unit: String,
    /// The least hit ratio, or the longest time.
    pub promised: f64,
    /// The same of late: the hit ratio; the mean time of an access, by the hit ratio and the times
    /// of a hit and a miss; the mean, or the 99th percentile (at most an eighth too high), from the
    /// arrival of a read or write to its answer. Null where nothing was measured.
    pub measured: Option<f64>,
    /// Accesses to blocks, or reads and writes, that were measured.
    pub samples: u64,
    /// Whether the goal was met; null where nothing was measured. Of a 99th percentile: at most one
    /// request in a hundred was later or failed, which is counted exactly.
    pub met: Option<bool>,
    /// What keeps the tenant from a goal that it misses: the cause of most misses that space or
    /// another policy could mend, such as `quota` or `pushed out by mail`; `first use` where misses
    /// that nothing mends are too many; `devices` where a time goal is missed and most of the time
    /// does not pass behind the cache. Null where the goal is met, and where nothing was measured.
    pub bound_by: Option<String>,
    /// The least bytes of the cache with which the goal would be met, by `curve`; null where it is
    /// met, where no size meets it, and for times of answers.
    pub needs_bytes: Option<u64>,
}

/// The miss-ratio curve of a tenant of a live server, estimated from a sample of its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledCurve {
    /// The policy whose misses it counts: `lru`, or that of the cache.
    pub policy: String,
    /// Seconds of requests that it counts: at most the last 70 minutes.
    pub seconds: f64,
    /// Accesses to blocks that it counts.
    pub accesses: u64,
    /// The smallest size for which the sample is large enough; 0 where every size is exact.
    pub trusted_bytes: u64,
    /// Sizes in ascending order, at most 128; beyond the last one the curve is flat. Between two of
    /// them it is a line.
    pub points: Vec<CurvePoint>,
}

/// A point of a sampled curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Bytes of the cache.
    pub bytes: u64,
    /// Misses per access, 0 to 1.
    pub miss_ratio: f64,
    /// The low end of its 95 % confidence interval.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

/// How a tenant is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantState {
    /// Through the cache.
    Cached,
    /// Past a cache that has failed.
    Bypassed,
    /// Past a cache that has failed, and reads only.
    ReadOnly,
    /// Not now: what the cache has alone is written back first.
    Waiting,
    /// Its backing device has failed: requests get errors.
    Failed,
    /// Its backing device has failed and is tried again: what only the cache has is written back
    /// first, and requests get errors.
    Reviving,
    /// It was removed: what the cache has alone is written back.
    Leaving,
}

impl TenantState {
    /// The state in a word: `cached`, `bypassed`, `read-only`, `waiting`, `failed`, `reviving` or
    /// `leaving`.
    pub fn word(self) -> &'static str {
        match self {
            TenantState::Cached => "cached",
            TenantState::Bypassed => "bypassed",
            TenantState::ReadOnly => "read-only",
            TenantState::Waiting => "waiting",
            TenantState::Failed => "failed",
            TenantState::Reviving => "reviving",
            TenantState::Leaving => "leaving",
        }
    }
}

/// Accesses to blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockCounts {
    /// Blocks read.
    pub reads: u64,
    /// Blocks read from the cache.
    pub read_hits: u64,
    /// Blocks written.
    pub writes: u64,
    /// Blocks written that were in the cache.
    pub write_hits: u64,
    /// Blocks that entered the cache.
    pub admissions: u64,
    /// Misses that did not enter the cache.
    pub bypasses: u64,
    /// Requests that went past the cache because their sequential stream had become too long.
    pub cut_off_requests: u64,
    /// Bytes of these requests.
    pub cut_off_bytes: u64,
    /// Blocks that left to make space, or because the quota shrank.
    pub evictions: u64,
    /// Dirty blocks that were written to the backing device when they left.
    pub writebacks: u64,
}

/// Blocks that left for a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossCount {
    /// The reason: `trim`, `invalidation`, `fetch`, `fill`, `checksum`, `device`, `cleaning`,
    /// `removal`.
    pub reason: String,
    /// Blocks that left.
    pub blocks: u64,
    /// Those of them that were dirty.
    pub dirty: u64,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestStatus {
    /// The kind: `read`, `write`, `flush`, `trim`, `zero`, `prefetch`.
    pub kind: String,
    /// Requests answered, those with errors included.
    pub count: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Seconds from the arrival of a request to its answer, summed up over all.
    pub seconds: f64,
    /// Requests by the time to their answer.
    pub buckets: Vec<LatencyBucket>,
    /// Recent requests.
    pub recent: RecentRequests,
}

/// Requests whose time to the answer is below a bound, and not below the one before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBucket {
    /// The bound; null: there is none.
    pub below_seconds: Option<f64>,
    /// Requests.
    pub count: u64,
}

/// Recent requests of one kind. Percentiles are at most an eighth too high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecentRequests {
    /// Requests answered.
    pub count: u64,
    /// The mean time to the answer.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The time that 99 % do not exceed.
    pub p99_us: f64,
    /// The time that 99.9 % do not exceed.
    pub p999_us: f64,
}

impl BlockCounts {
    /// Hits over accesses; `None` without accesses.
    pub fn hit_ratio(&self) -> Option<f64> {
        let accesses = self.reads + self.writes;
        let hits = self.read_hits + self.write_hits;
        (accesses > 0).then(|| hits as f64 / accesses as f64)
    }
}

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
