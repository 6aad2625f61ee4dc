//! The answer of `cachewrightd rehearse`: how a server would answer a recording, in virtual time on
//! models of its devices.
//!
//! Units: bytes; microseconds of response times, exact but for percentiles, which are within a
//! thousandth; seconds of virtual time.

use crate::document::Written;
use crate::live::AnsweredRequests;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `cachewrightd rehearse`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsalAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Path of the stack file.
    pub stack: String,
    /// Path of the recording.
    pub recording: String,
    /// The model of each device of the cache.
    pub drive: String,
    /// The model of the backing devices.
    pub backing: String,
    /// What chooses the fates of writes that are under way at a kill.
    pub seed: u64,
    /// The stack as it is, then one case for each `--what-if`.
    pub cases: Vec<RehearsedCase>,
}

/// The rehearsal of a stack with some keys set over it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsedCase {
    /// The keys that are set over the stack and their values, with `=` between them; empty for the
    /// stack as it is.
    pub what_if: Vec<String>,
    /// The replacement policy.
    pub policy: String,
    /// The partitioner.
    pub partition: String,
    /// The write mode.
    pub write: String,
    /// Bytes of the cache.
    pub capacity_bytes: u64,
    /// Virtual time from the beginning of the recording to the last answer.
    pub seconds: f64,
    /// Share of that time for which the one processor of the server worked.
    pub processor_share: f64,
    /// Requests that lie beyond their volume or have no bytes: they were not sent.
    pub skipped_requests: u64,
    /// The tenants, in the order of the stack file.
    pub tenants: Vec<RehearsedTenant>,
    /// The log that holds the cache.
    pub log: RehearsedLog,
    /// The devices: those of the cache first.
    pub devices: Vec<RehearsedDevice>,
    /// The kills, in the order of time.
    pub kills: Vec<RehearsedKill>,
    /// What reads found, compared with what was written; null unless it was asked for.
    pub verified: Option<VerifiedContent>,
}

/// A tenant of a rehearsal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsedTenant {
    /// Its name.
    pub name: String,
    /// Bytes of its volume.
    pub volume_bytes: u64,
    /// Blocks that it may have in the cache at the end.
    pub quota_blocks: u64,
    /// Block reads.
    pub read_accesses: u64,
    /// Those served from the cache.
    pub read_hits: u64,
    /// Block writes.
    pub write_accesses: u64,
    /// Those whose block was in the cache.
    pub write_hits: u64,
    /// Hits over accesses; 0 without accesses.
    pub hit_ratio: f64,
    /// Reads and writes that were decided.
    pub requests: u64,
    /// Those all of whose blocks hit.
    pub request_hits: u64,
    /// Blocks that entered the cache.
    pub admissions: u64,
    /// Blocks that left it to make room.
    pub evictions: u64,
    /// Dirty blocks that were written back when they left.
    pub writebacks: u64,
    /// Blocks that were dropped, by a trim for example.
    pub invalidations: u64,
    /// Requests that went past the cache for their stream.
    pub cut_off_requests: u64,
    /// Response times by kind: reads, writes, trims and flushes, as far as there were some.
    pub responses: Vec<AnsweredRequests>,
}

/// The log of a rehearsal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsedLog {
    /// Bytes of blocks that requests have written to the log or filled.
    pub appended_bytes: u64,
    /// Bytes of blocks that cleaning has copied.
    pub moved_bytes: u64,
    /// Bytes of blocks appended and moved, by those appended; 1 if there were none.
    pub write_amplification: f64,
    /// Segments that were cleaned.
    pub cleaned_segments: u64,
    /// Clean blocks that cleaning has dropped instead of copying them.
    pub dropped_blocks: u64,
    /// Requests that were refused because the log had no room.
    pub refused_requests: u64,
}

/// A device of a rehearsal, from the beginning of the recording to the last answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsedDevice {
    /// What it holds: the path of a device of the cache, or of volumes.
    pub holds: Vec<String>,
    /// Its model.
    pub model: String,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Trim commands.
    pub trims: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub write_bytes: u64,
    /// Commands inside, on average over time.
    pub mean_queue_depth: f64,
    /// The most commands that were inside at once.
    pub max_queue_depth: u64,
    /// Share of the time for which a command was inside.
    pub busy_share: f64,
    /// Pages that flash programmed by those that were written to it; null for a device without
    /// flash of its own.
    pub write_amplification: Option<f64>,
}

/// A kill of the rehearsed server, and the start after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsedKill {
    /// When, from the beginning of the recording.
    pub at_seconds: f64,
    /// From the beginning of the start to the first request that it takes.
    pub recovery_seconds: f64,
    /// Requests that were not answered, and that clients sent again.
    pub unanswered_requests: u64,
    /// Blocks that the start put back into the cache whose backing device has their content.
    pub clean_blocks: u64,
    /// Blocks that the start put back into the cache whose backing device has older content.
    pub dirty_blocks: u64,
}

/// What reads found, compared with what was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedContent {
    /// Sectors that were compared, all written ones at the end among them.
    pub sectors: u64,
    /// Those that held neither the last answered write nor a later one.
    pub violations: u64,
    /// The first of them, in words.
    pub examples: Vec<String>,
}
