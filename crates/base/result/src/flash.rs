//! The flash inside a drive, and its wear.
//!
//! For: `flash` of a device. Must never know: how flash works. Units: pages of the drive; shares
//! are of the replay's time.

use crate::Entries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
