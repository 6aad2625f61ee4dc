//! Log-structured stores on backing devices.
//!
//! For: `timing.store` of a case. Must never know: how a store works. Units: pages, segments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
