//! The answers of `cachewright live`: what the devices of a live cache hold, and how a server
//! answered recorded requests.
//!
//! Units: bytes; percentiles of `live load` are at most an eighth too high.

use crate::document::Written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer of `live format`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveFormatAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// The id of the new set of devices: 16 hexadecimal digits.
    pub set: String,
    /// Paths of the devices, in the order of the set.
    pub devices: Vec<String>,
    /// Segments of all devices.
    pub segments: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The largest cache that the devices hold beside what the log needs.
    pub max_cache_bytes: u64,
    /// Bytes that only the devices had, and that are lost.
    pub discarded_bytes: u64,
    /// The volumes.
    pub volumes: Vec<LiveVolume>,
}

/// The answer of `explain`: what became of one block, as recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// The name of the tenant whose volume it is on.
    pub volume: String,
    /// Where the block begins there.
    pub offset_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The policy of the cache.
    pub policy: String,
    /// Its partitioner.
    pub partition: String,
    /// The recordings, in the order in which they were made.
    pub recordings: Vec<String>,
    /// Of these, the ones at whose beginning the cache was made as the state beside them says: the
    /// first one with a state, and later ones that do not continue the one before. Where the first
    /// recording is none of them, the cache is empty at first.
    pub states: u64,
    /// Requests in them that were decided about.
    pub requests: u64,
    /// Further ones, of volumes that the stack does not have any more.
    pub requests_left_out: u64,
    /// Time from the beginning of the first to the last request, ns.
    pub span_ns: u64,
    /// Reads and writes of the block.
    pub accesses: u64,
    /// Those that found it in the cache.
    pub hits: u64,
    /// Whether the cache has it at the end.
    pub is_cached: bool,
    /// Whether its backing device has older content then.
    pub is_dirty: bool,
    /// What became of it, in the order of time; the first 10,000 events.
    pub events: Vec<BlockEvent>,
    /// Later events, which are not listed.
    pub events_left_out: u64,
}

/// Something that became of a block, once or several times in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockEvent {
    /// Time since the beginning of the first recording, ns.
    pub time_ns: u64,
    /// The place of the recording in the list.
    pub recording: u64,
    /// What: `read hit`, `write hit`, `admitted by a read`, `admitted by a write`, `read past the
    /// cache`, `write past the cache`, `evicted`, `evicted and written back`, `written back`,
    /// `trimmed` or `dropped`; `held` and `gone` as a state says it.
    pub event: String,
    /// How often in a row.
    pub count: u64,
    /// Time of the last of them, ns.
    pub last_ns: u64,
    /// Why; empty where the event says it.
    pub why: String,
}

/// A volume that a set of devices knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveVolume {
    /// The name of its tenant.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// The answer of `live check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveCheckAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// The id of the set of devices: 16 hexadecimal digits.
    pub set: String,
    /// Whether nothing is damaged.
    pub sound: bool,
    /// Whether a server went on without these devices, because one had failed: they are served no
    /// more.
    pub bypassed: bool,
    /// The devices, in the order of the set.
    pub devices: Vec<LiveDevice>,
    /// The volumes, and one more for each number that the set does not name.
    pub volumes: Vec<CachedVolume>,
    /// Groups that follow a gap: a loss of power voided them, or a stop at the wrong time.
    pub void_groups: u64,
    /// Footers that are torn or damaged, of segments of which all groups are there: a loss of power
    /// leaves them, and nothing is missing.
    pub torn_footers: u64,
    /// Footers that are damaged, of segments of which groups are missing.
    pub damaged_footers: u64,
    /// Headers of segments that are damaged or gone; dirty blocks of such segments count as
    /// damaged.
    pub damaged_headers: u64,
    /// Groups that were durable and are gone, as far as what is there proves it.
    pub lost_groups: u64,
    /// Whether groups may be gone that were durable: a page cannot be read where one may have
    /// begun, or the header of a segment is gone with what followed it.
    pub hides_groups: bool,
    /// Pages that cannot be read.
    pub unreadable_pages: Vec<LiveUnreadablePage>,
    /// Whether content that was durable is gone, or may be: exports are read-only until a repair.
    pub read_only: bool,
    /// Whether a server of another host, or one that knew the devices by another name, had them
    /// last: if it runs still, they change while they are read.
    pub held_elsewhere: bool,
    /// Backing devices that are not as the cache knows them, and that a start may refuse.
    pub changed_backings: Vec<LiveChangedBacking>,
}

/// A backing device that is not as the cache knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveChangedBacking {
    /// The tenant whose volume it holds.
    pub name: String,
    /// The path of the device.
    pub path: String,
    /// What is known of it: another device, written to, smaller, or what the system says.
    pub why: String,
}

/// A page of a device that cannot be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveUnreadablePage {
    /// The path of the device.
    pub path: String,
    /// The byte of the device at which the page begins.
    pub offset: u64,
    /// What the system says.
    pub error: String,
}

/// A device of a live cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveDevice {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Copies of the superblock that are valid, of two.
    pub superblocks: u64,
    /// Segments that hold nothing.
    pub free_segments: u64,
    /// Segments that are full and have a footer.
    pub sealed_segments: u64,
    /// Segments without a valid footer.
    pub open_segments: u64,
}

/// What the devices hold of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CachedVolume {
    /// The name of its tenant; `number N` if the set does not name it.
    pub name: String,
    /// Its size; null if the set does not know it.
    pub bytes: Option<u64>,
    /// Whether its backing device was written to past the devices: nothing here counts for it.
    pub out_of_date: bool,
    /// Bytes that its backing device has, too.
    pub clean_bytes: u64,
    /// Bytes that only the devices have.
    pub dirty_bytes: u64,
    /// Clean bytes whose content is damaged; null where content was not read.
    pub damaged_clean_bytes: Option<u64>,
    /// Dirty bytes whose content is damaged; null where content was not read.
    pub damaged_dirty_bytes: Option<u64>,
}

/// The answer of `live dump`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveDumpAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// The id of the set of devices: 16 hexadecimal digits.
    pub set: String,
    /// Whether a server went on without these devices, because one had failed: they are served no
    /// more.
    pub bypassed: bool,
    /// The volumes, and one more for each number that the set does not name.
    pub volumes: Vec<CachedVolume>,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// The cached blocks, oldest first; null if they were not asked for.
    pub blocks: Option<Vec<CachedBlock>>,
}

/// A block that the devices hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CachedBlock {
    /// The name of the volume.
    pub volume: String,
    /// Where it begins on the volume, in bytes.
    pub offset: u64,
    /// Whether only the devices have its content.
    pub dirty: bool,
    /// The number of the decision by which it was stored.
    pub decision: u64,
    /// Path of the device on which it lies.
    pub device: String,
    /// Where it begins on the device, in bytes.
    pub device_offset: u64,
}

/// The answer of `live writeback` and `live repair`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveChangeAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// The id of the set of devices: 16 hexadecimal digits.
    pub set: String,
    /// Whether nothing is damaged any more.
    pub sound: bool,
    /// The volumes of which something was written back, dropped, or found damaged.
    pub volumes: Vec<ChangedVolume>,
    /// Copies of superblocks and footers that were written again.
    pub rewritten: u64,
    /// Content that was durable is gone, or may be, and a repair has accepted it: exports can be
    /// written to again.
    pub accepted_loss: bool,
}

/// What became of a volume's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedVolume {
    /// The name of its tenant.
    pub name: String,
    /// Bytes that were written to its backing device, and are clean now.
    pub written_back_bytes: u64,
    /// Damaged bytes that were dropped; the backing device has them, or an older state of them.
    pub dropped_bytes: u64,
    /// Damaged dirty bytes that are still there: reads of them fail.
    pub damaged_bytes: u64,
}

/// The answer of `live calibrate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveCalibrateAnswer {
    /// The versions of the program and of the document.
    #[serde(flatten)]
    pub written: Written,
    /// Bytes of a block, and of a read.
    pub block_bytes: u64,
    /// Reads of each device at each depth.
    pub reads: u64,
    /// The devices of the cache, then those of the volumes, in the order of the stack file.
    pub devices: Vec<CalibratedDevice>,
    /// The mean time of single reads of the cache's devices, as `replay.hit_time` takes it.
    pub hit_time: String,
    /// The mean time of single reads of the volumes' devices, as `replay.miss_time` takes it.
    pub miss_time: String,
    /// Whether a miss takes longer than a hit: without that no hit ratio stands for a latency.
    pub is_usable: bool,
    /// What operators should know of the devices: reads that went through the page cache.
    pub notices: Vec<String>,
}

/// How long reads of a device take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedDevice {
    /// Its path.
    pub path: String,
    /// The tenant whose volume it is; null: it is a device of the cache.
    pub tenant: Option<String>,
    /// Single reads, then reads at a greater depth if one was asked for.
    pub times: Vec<ReadTimes>,
}

/// Times of reads of random blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadTimes {
    /// Reads under way at one time.
    pub depth: u64,
    /// The mean time.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The time that 99 % do not exceed.
    pub p99_us: f64,
}

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
    /// How late, after their times in the trace, 99 % of the requests were sent at most; none where
    /// they go as fast as answers come.
    pub late_p99_us: Option<f64>,
    /// Requests as they were sent, long ones in pieces, by kind.
    pub requests: Vec<AnsweredRequests>,
}

/// Answers to requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredRequests {
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
