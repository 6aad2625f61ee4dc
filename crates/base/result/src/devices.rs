//! Devices of a case: how they were used, the flash inside, stores on them, the energy that they
//! spent.
//!
//! Units: pages of the drive; shares are of the replay's time; a drive write is as many host pages
//! as the drive has logical pages; joules, watts.

use crate::Entries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one device was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its part in the machine, numbered from 1 within an array.
    pub name: String,
    /// Name of its model; null where the stack has none.
    pub model: Option<String>,
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Share of the time with a command inside, 0 to 1.
    pub busy: f64,
    /// Mean number of commands inside.
    pub mean_inside: f64,
    /// Highest number of commands inside.
    pub max_inside: u64,
    /// Energy; absent where no power is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<DeviceEnergy>,
    /// Disk-head time; absent for a device that is no disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_time: Option<DiskHeadTime>,
    /// Its flash; absent for a device without flash, and for a drive that is the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
}

/// The seek, half a revolution and the transfer of each request, as if it were alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskHeadTime {
    /// Time of all requests.
    pub total_ns: u64,
    /// Length of an interval, the setting `head_interval` of the disk.
    pub interval_ns: u64,
    /// Time of the busiest interval.
    pub peak_ns: u64,
    /// The same over the length of the interval: disks that the requests need at least.
    pub peak_disks: f64,
}

/// A drive with a data cache that is the whole machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CachedDrive {
    /// Its flash.
    #[serde(flatten)]
    pub flash: Flash,
    /// Pages written from the cache to flash.
    pub destaged_pages: u64,
    /// Pages that entered the cache from flash.
    pub read_filled_pages: u64,
    /// Writes that waited for space in the cache.
    pub held_writes: u64,
    /// Dirty pages evicted because their pool had to give space.
    pub given_up_pages: u64,
    /// Most bytes on their way to flash at one time.
    pub most_outgoing_bytes: u64,
    /// Use of the link between host and drive.
    pub link_busy: LinkBusy,
}

/// Shares of the time in which the link carries data, 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkBusy {
    /// Share of the time towards the drive.
    pub to_drive: f64,
    /// Share of the time towards the host.
    pub to_host: f64,
}

/// The drive under a cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheDrive {
    /// The separation with its settings.
    pub separation: String,
    /// The reclaim policy with its settings.
    pub reclaim: String,
    /// Over-provisioning, a ratio.
    pub op: f64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of a superblock.
    pub superblock_bytes: u64,
    /// Superblocks kept free for host writes.
    pub reserve_superblocks: u32,
    /// Logical pages.
    pub logical_pages: u32,
    /// Whether the place of an evicted block is trimmed at once.
    pub trim_evicted: bool,
    /// What the drive did.
    #[serde(flatten)]
    pub work: DriveWork,
    /// Pages that the cache wrote over logical pages, a ratio.
    pub drive_writes: f64,
    /// Whether there were enough drive writes for a steady state.
    pub steady: bool,
}

/// What a flash translation layer did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveWork {
    /// Superblocks.
    pub superblocks: u32,
    /// Streams of the separation.
    pub streams_used: u32,
    /// Pages that the host wrote.
    pub user_pages: u64,
    /// Valid pages moved by cleaning.
    pub moved_pages: u64,
    /// Pages of a separation's own data written.
    pub meta_pages: u64,
    /// Pages programmed to flash, all together.
    pub flash_pages: u64,
    /// Pages programmed per page that the host wrote, a ratio.
    pub write_amplification: f64,
    /// `write_amplification` minus 1.
    pub extra_writes: f64,
    /// Write amplification of the last drive write, a ratio.
    pub last_write_amplification: f64,
    /// Superblocks cleaned.
    pub collections: u64,
    /// Share of invalid pages in cleaned superblocks, 0 to 1.
    pub victim_invalid_share: f64,
    /// Mapped pages that the host trimmed.
    pub trimmed_pages: u64,
    /// Moved pages that joined another stream than their own.
    pub misplaced_pages: u64,
    /// Pages of a separation's own data read for writes.
    pub meta_reads: u64,
    /// Logical pages that hold data at the end.
    pub mapped_pages: u32,
    /// Bytes of metadata per logical page.
    pub metadata_bytes_per_page: f64,
    /// Bytes of metadata in memory per logical page.
    pub memory_bytes_per_page: f64,
    /// Erases of superblocks.
    pub erases: EraseSpread,
    /// Pages by stream.
    pub streams: Vec<Stream>,
    /// Per part of the run: drive writes at its end, pages the host wrote in it, pages programmed.
    pub series: Vec<(f64, u64, u64)>,
    /// Predictions of short lifetimes against what came; null where nothing is predicted.
    pub classifier: Option<Classifier>,
    /// What a model did in the run; null for a separation that does not learn.
    pub learning: Option<Learning>,
    /// Trainings of a model; null for a separation that does not learn.
    pub training: Option<Training>,
}

/// Erases of superblocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EraseSpread {
    /// Fewest erases of a superblock.
    pub min: f64,
    /// Mean erases.
    pub mean: f64,
    /// Most erases of a superblock.
    pub max: f64,
    /// Standard deviation of erases.
    pub stddev: f64,
}

/// Pages given to one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Number of the stream.
    pub stream: usize,
    /// Pages from the host.
    pub user_pages: u64,
    /// Pages moved into it by cleaning.
    pub moved_pages: u64,
    /// Per bin of lifetimes: largest lifetime in pages (null: not overwritten), pages from the
    /// host, pages moved. Absent under a cache, where lifetimes are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetimes: Option<Vec<(Option<u64>, u64, u64)>>,
}

/// Predictions of short lifetimes against what came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classifier {
    /// Predictions that can be judged.
    pub judged: u64,
    /// Lifetimes predicted short that were short.
    pub short_right: u64,
    /// Lifetimes predicted short that were long.
    pub short_wrong: u64,
    /// Lifetimes predicted long that were long.
    pub long_right: u64,
    /// Lifetimes predicted long that were short.
    pub long_wrong: u64,
    /// Share of right predictions, 0 to 1; null without predictions.
    pub accuracy: Option<f64>,
    /// Share of those predicted short that were short, 0 to 1; null without predictions.
    pub precision: Option<f64>,
    /// Share of the short that were predicted short, 0 to 1; null without predictions.
    pub recall: Option<f64>,
    /// Harmonic mean of precision and recall, 0 to 1; null without predictions.
    pub f1: Option<f64>,
    /// Share of the more frequent true class, 0 to 1; null without predictions.
    pub majority: Option<f64>,
    /// Share of those predicted short, 0 to 1; null without predictions.
    pub called_short: Option<f64>,
    /// Share of those that were short, 0 to 1; null without predictions.
    pub were_short: Option<f64>,
    /// Parts of the run: drive writes at the start, threshold in pages, short right, short wrong,
    /// long right, long wrong.
    pub parts: Vec<(f64, u32, u64, u64, u64, u64)>,
    /// The thresholds of all parts.
    pub threshold: ThresholdSpread,
}

/// Thresholds between short and long lifetimes, in pages; null without parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdSpread {
    /// Smallest threshold.
    pub min: Option<u32>,
    /// Median threshold.
    pub median: Option<u32>,
    /// Largest threshold.
    pub max: Option<u32>,
}

/// What a model did in the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Learning {
    /// Predictions.
    pub predictions: u64,
    /// Predictions that a write waited for.
    pub waited_predictions: u64,
    /// Windows of training that ended.
    pub windows: u64,
    /// Models that came into use.
    pub trainings: u64,
    /// Trainings that gave no usable model.
    pub failures: u64,
    /// Look-ups of metadata.
    pub meta_lookups: u64,
    /// Look-ups of metadata that read flash.
    pub meta_misses: u64,
    /// Share of look-ups that read flash, 0 to 1.
    pub meta_miss_share: f64,
}

/// Trainings of a model, the load included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Training {
    /// Windows of training that ended.
    pub windows: u64,
    /// Pages that the host writes in a window.
    pub window_pages: u32,
    /// Models that came into use.
    pub models: u64,
    /// Trainings that gave no usable model.
    pub failures: u64,
    /// Why the last training failed; null where none failed.
    pub last: Option<String>,
}

/// What the flash of a drive did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flash {
    /// How the drive was filled at the start.
    pub preconditioned: String,
    /// Share of the logical pages that held data at the start, 0 to 1.
    pub filled_share: f64,
    /// Pages programmed per page that the host wrote, a ratio; 1 where it wrote nothing.
    pub write_amplification: f64,
    /// Blocks cleaned.
    pub collections: u64,
    /// Valid pages moved by cleaning.
    pub moved_pages: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Pages read for the host.
    pub host_reads: u64,
    /// Pages read because a write changes a part of them.
    pub update_reads: u64,
    /// Pages of the mapping table read from flash.
    pub map_misses: u64,
    /// Pages of the mapping table programmed.
    pub map_programs: u64,
    /// Pages programmed for the host.
    pub host_programs: u64,
    /// Pages of a separation's own data programmed.
    pub meta_programs: u64,
    /// Reads of pages that hold nothing.
    pub unwritten_reads: u64,
    /// Reads of pages that were on their way to flash.
    pub buffered_reads: u64,
    /// Reads on several planes at once.
    pub multi_plane_reads: u64,
    /// Programs on several planes at once.
    pub multi_plane_programs: u64,
    /// Erases on several planes at once.
    pub multi_plane_erases: u64,
    /// Pages moved inside a plane, without the channel.
    pub copy_backs: u64,
    /// Programs and erases suspended for a read.
    pub suspends: u64,
    /// Predictions of a model in the controller.
    pub predictions: u64,
    /// Predictions that a write waited for.
    pub awaited_predictions: u64,
    /// Share of the time in which the controller predicts, 0 to 1.
    pub predicting: f64,
    /// Shares of the time in which channels are taken.
    pub channels: BusyShares,
    /// Shares of the time in which dies (or chips) work.
    pub dies: Dies,
    /// Waits before dies, by what waits.
    pub queues: Entries<Queue>,
    /// Erases of blocks, and the life of the drive.
    pub wear: Wear,
}

/// Shares of the time in which units work, 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyShares {
    /// Smallest share of a unit.
    pub min: f64,
    /// Mean share.
    pub mean: f64,
    /// Largest share of a unit.
    pub max: f64,
    /// Share of each unit.
    pub busy: Vec<f64>,
}

/// Dies, or chips where the dies of one chip do not work at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dies {
    /// The shares.
    #[serde(flatten)]
    pub shares: BusyShares,
    /// `die` or `chip`.
    pub unit: String,
    /// Share of the time of all units that is cleaning, 0 to 1.
    pub cleaning: f64,
    /// Shares of the time of all units by stage of an operation, 0 to 1.
    pub stages: Entries<f64>,
}

/// Operations of one class that waited for a die.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// Operations that left the queue.
    pub served: u64,
    /// Mean number waiting.
    pub mean_waiting: f64,
    /// Highest number waiting.
    pub max_waiting: u32,
    /// Mean wait of an operation.
    pub mean_wait_ns: f64,
}

/// Erases of blocks, and what the replay means for the life of the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wear {
    /// Fewest erases of a block.
    pub min: u32,
    /// Mean erases of a block.
    pub mean: f64,
    /// Most erases of a block.
    pub max: u32,
    /// Standard deviation of erases between blocks.
    pub stddev: f64,
    /// Blocks moved to level the wear.
    pub levelling_moves: u64,
    /// Bytes that the host wrote.
    pub written_bytes: u64,
    /// Bytes programmed to flash.
    pub programmed_bytes: u64,
    /// Program and erase cycles that the replay cost a block, on average.
    pub cycles: f64,
    /// How often a day the host writes as much as the drive holds, at the rate of the replay.
    pub drive_writes_per_day: f64,
    /// Shares of the rated endurance; null where none is given.
    pub rated: Option<RatedLife>,
}

/// Shares of a rated endurance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatedLife {
    /// Cycles that a block is rated for.
    pub cycles: u32,
    /// Share of them that the average block has used, a ratio.
    pub used_share: f64,
    /// Share of them that the most worn block has used, a ratio.
    pub max_used_share: f64,
    /// Days that a new drive lasts at the rate of the replay; null where nothing is programmed.
    pub life_days: Option<f64>,
    /// Bytes that the host can write to a new drive; null where nothing is programmed.
    pub life_bytes: Option<f64>,
}

/// Energy as a power, and per unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyRates {
    /// Energy of the whole replay, in joules.
    pub joules: f64,
    /// Mean power, in watts; null for a replay of no length.
    pub watts: Option<f64>,
    /// Joules per command of a device, or per request of all tenants; null without any.
    pub joules_per_request: Option<f64>,
    /// Joules per gibibyte read and written; null without any.
    pub joules_per_gib: Option<f64>,
}

/// Energy of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceEnergy {
    /// The sums.
    #[serde(flatten)]
    pub rates: EnergyRates,
    /// Joules by what they were spent on.
    pub parts: Entries<f64>,
}

/// Energy of all devices whose power is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TotalEnergy {
    /// The sums.
    #[serde(flatten)]
    pub rates: EnergyRates,
    /// Devices whose power is not known.
    pub unknown_devices: usize,
}

/// What all stores of a machine did together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Store {
    /// The separation with its settings.
    pub separation: String,
    /// The reclaim policy with its settings.
    pub reclaim: String,
    /// Over-provisioning, a ratio.
    pub op: f64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of a superblock, which is a segment of the log.
    pub superblock_bytes: u64,
    /// Logical pages.
    pub logical_pages: u64,
    /// Segments.
    pub segments: u64,
    /// Pages written to the device per page that users wrote, a ratio.
    pub write_amplification: f64,
    /// Pages that users wrote over logical pages, a ratio.
    pub drive_writes: f64,
    /// Pages that users wrote.
    pub user_pages: u64,
    /// Valid pages moved by cleaning.
    pub moved_pages: u64,
    /// Pages of a separation's own data written.
    pub meta_pages: u64,
    /// Segments cleaned.
    pub collections: u64,
    /// Segments reset.
    pub resets: u64,
    /// Pages of writes that waited for a segment to be reset.
    pub held_pages: u64,
    /// Commands that appended.
    pub appends: u64,
    /// Mean bytes of a command that appended.
    pub mean_append_bytes: f64,
    /// Commands that read for requests.
    pub reads: u64,
    /// Commands that read pages to move them.
    pub move_reads: u64,
    /// Pages read because a write changes a part of them.
    pub update_reads: u64,
    /// Pages of a separation's own data read for writes.
    pub meta_reads: u64,
    /// Pages read while they were on their way to the device.
    pub memory_reads: u64,
    /// Pages read that hold nothing.
    pub unwritten_reads: u64,
}
