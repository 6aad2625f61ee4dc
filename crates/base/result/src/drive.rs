//! A flash drive: under a cache, alone, or as a whole machine.
//!
//! For: `flash` of a case, the cases of `wa`, and `timing.drive`. Must never know: separations.
//! Units: pages; a drive write is as many host pages as the drive has logical pages.

use crate::flash::Flash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
