//! What a volume's requests are like: the answers of `trace report` and `observe`.
//!
//! Counts of blocks and of block accesses are estimates where `sample_rate` is below 1: what was
//! met of the sample, times 1/rate. Requests and their bytes are always exact. Histograms have one
//! entry per bin that is not empty: its largest value, then its counts.

use crate::document::Written;
use crate::trace::VolumeTotals;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `trace report` and of `observe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadAnswer {
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
    /// Names of the volumes with a request, the busiest first.
    pub volumes: Vec<String>,
    /// Whether the trace has times.
    pub has_times: bool,
    /// Time from the first request to the latest; null without times.
    pub span_ns: Option<u64>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Whether the trace numbers objects: then each is one block, of the size first asked for.
    pub counts_objects: bool,
    /// Share of the blocks that are followed, 0 to 1: 1 while all fit into the memory allowed.
    pub sample_rate: f64,
    /// Blocks that are followed.
    pub sampled_blocks: u64,
    /// Bytes that the counts take, about.
    pub memory_bytes: u64,
    /// Records that could not be read.
    pub skipped_bad: u64,
    /// Records that are no block requests.
    pub skipped_irrelevant: u64,
    /// What was done to the trace beside reading it, in sentences.
    pub notes: Vec<String>,
    /// Nanoseconds of a period.
    pub period_ns: u64,
    /// The trace by periods, in order of time; empty without times.
    pub periods: Vec<WorkloadPeriod>,
    /// The busiest second.
    pub peak: PeakSecond,
    /// Blocks in use within windows of time, from one period up, each window twice the last.
    pub windows: Vec<WindowBlocks>,
    /// Where requests go over time: a map for each of the busiest volumes.
    pub offsets: Vec<OffsetMap>,
    /// Sizes of reads, in bytes.
    pub read_bytes_each: Distribution,
    /// Sizes of writes, in bytes.
    pub write_bytes_each: Distribution,
    /// Reads and writes of whole sectors (512 B) whose offset or length is no multiple of 4 KiB.
    pub misaligned: u64,
    /// Times between a request and the next, in nanoseconds.
    pub arrivals_ns: Distribution,
    /// Runs of reads at consecutive offsets.
    pub read_runs: Runs,
    /// Runs of writes at consecutive offsets.
    pub write_runs: Runs,
    /// Re-use of blocks.
    pub reuse: BlockReuse,
    /// Updates of blocks.
    pub updates: Updates,
    /// How accesses spread over blocks.
    pub popularity: Popularity,
    /// The LRU miss-ratio curve.
    pub curve: Vec<WorkloadPoint>,
    /// The size beyond which the curve is flatter than from nothing to its end, in blocks; null for
    /// a trace without re-use.
    pub knee_blocks: Option<u64>,
    /// The least sizes at which LRU has 50, 90 and 99 % of the hits that any size has, in blocks;
    /// empty for a trace without re-use.
    pub sizes: Vec<ReachedSize>,
    /// What caches of each size do for reads within scans.
    pub scans: Scans,
}

/// A period of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPeriod {
    /// Where it begins, in nanoseconds since the first request.
    pub start_ns: u64,
    /// Requests that read.
    pub reads: u64,
    /// Requests that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Distinct blocks read or written in it.
    pub used_blocks: f64,
    /// Of these, the ones that were never used before.
    pub new_blocks: f64,
}

/// The most in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeakSecond {
    /// Most reads and writes in one second.
    pub requests: u64,
    /// Most bytes read and written in one second.
    pub bytes: u64,
}

/// Distinct blocks in windows of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowBlocks {
    /// Length of the window in nanoseconds.
    pub window_ns: u64,
    /// Mean over all windows.
    pub mean_blocks: f64,
    /// The most in any window.
    pub most_blocks: f64,
}

/// Requests of one volume by offset and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffsetMap {
    /// Name of the volume.
    pub volume: String,
    /// Where the first row begins, in bytes.
    pub first_bytes: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Nanoseconds of a column.
    pub column_ns: u64,
    /// The cells with requests: column, row, reads, writes.
    pub cells: Vec<[u64; 4]>,
}

/// Values, with a histogram of eight bins an octave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// How many.
    pub count: f64,
    /// Mean.
    pub mean: f64,
    /// Value that half do not exceed, within 3 %.
    pub p50: u64,
    /// Value that 90 % do not exceed, within 3 %.
    pub p90: u64,
    /// Value that 99 % do not exceed, within 3 %.
    pub p99: u64,
    /// Largest value.
    pub max: u64,
    /// Per bin: largest value, count.
    pub histogram: Vec<(u64, f64)>,
}

/// Requests of one kind that follow each other on a volume without a gap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Runs; a request that nothing precedes or follows is one.
    pub count: u64,
    /// Share of the bytes that lie in scans, 0 to 1.
    pub scan_share: f64,
    /// Bytes of a run that is called a scan, at least.
    pub scan_bytes: u64,
    /// Per bin: longest run in bytes, runs, bytes in them.
    pub histogram: Vec<(u64, u64, u64)>,
}

/// How soon blocks are used again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockReuse {
    /// Accesses to blocks.
    pub accesses: f64,
    /// Accesses to blocks that were not accessed before, or were trimmed since.
    pub first_uses: f64,
    /// Times from one access of a block to its next, in nanoseconds.
    pub times_ns: Distribution,
    /// Re-uses by time and distance, octaves of both: longest time in nanoseconds, longest distance
    /// in blocks, accesses.
    pub cells: Vec<(u64, u64, f64)>,
}

/// How soon blocks are written again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Updates {
    /// Writes of blocks.
    pub writes: f64,
    /// Writes of blocks that were written before.
    pub overwrites: f64,
    /// Times from one write of a block to its next, in nanoseconds.
    pub intervals_ns: Distribution,
}

/// Accesses by block, the most popular first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Popularity {
    /// Rank of a block from 1, and its accesses, at some tens of ranks.
    pub ranks: Vec<(u64, u64)>,
    /// The exponent a of accesses = c / rank^a, by least squares over the logarithms of these
    /// ranks; null for fewer than three ranks above the least count.
    pub exponent: Option<f64>,
    /// How much of the variance of the logarithms the fit explains, 0 to 1.
    pub fit: Option<f64>,
    /// Share of the blocks, and the share of the accesses that go to these, most popular first.
    pub shares: Vec<(f64, f64)>,
    /// Share of the blocks that are accessed once.
    pub once_share: f64,
}

/// A point of the LRU miss-ratio curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPoint {
    /// Size of the cache in blocks.
    pub blocks: u64,
    /// Share of the accesses that miss, 0 to 1.
    pub miss_ratio: f64,
    /// Share of the reads that miss, 0 to 1.
    pub read_miss_ratio: f64,
}

/// A size that has a share of the hits that any size has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReachedSize {
    /// The share, 0 to 1.
    pub share: f64,
    /// The least size in blocks.
    pub blocks: u64,
    /// Its hit ratio, 0 to 1.
    pub hit_ratio: f64,
}

/// Block reads that continue a run which is a scan by then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scans {
    /// Reads of blocks within scans.
    pub reads: f64,
    /// Of these, the first uses.
    pub first_uses: f64,
    /// The least size of an LRU cache, in blocks, in which a tenth of them hit; null if none.
    pub helped_from_blocks: Option<u64>,
    /// The hit ratio of them in the largest cache, 0 to 1.
    pub best_hit_ratio: f64,
}
