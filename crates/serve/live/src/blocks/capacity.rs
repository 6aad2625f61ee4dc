//! How much a log holds.
//!
//! For: sizes of caches and of requests that a log takes for sure. Must never know: what it holds
//! now. Units: blocks, segments, pages, shares in 1024ths.

use super::placement::Stay;
use super::stored_blocks::StoredBlock;
use crate::log::format::GROUP_RECORDS;
use crate::log::{DeviceSet, LogSettings, cleaning_batch};

/// Segments that are cleaned ahead of need.
pub const CLEAN_AHEAD: usize = 2;

/// Bytes of memory that a cached block takes beside the index and the policy: its resident, a line
/// of 64 bytes, its stay, and its place in the log.
pub const BLOCK_MEMORY: u64 = (64 + size_of::<Stay>() + size_of::<Option<StoredBlock>>()) as u64;

/// A log's segments, as content fills them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogShape {
    /// Most blocks of a segment.
    pub max_blocks: u32,
    /// Blocks that the cleaner puts into one group, at least on average.
    group_blocks: u32,
    /// Pages before the footer.
    pages: u32,
    block_pages: u32,
    max_records: u32,
}

impl LogShape {
    /// The shape of a set's segments.
    pub fn new(set: &DeviceSet, settings: &LogSettings) -> LogShape {
        let (streams, block_pages) = (settings.moved_streams, set.block_pages());
        let batch = cleaning_batch(streams, block_pages);
        // Of each stream one group is not full.
        let groups = batch.div_ceil(settings.group_blocks.max(1)) + streams as u32 - 1;
        LogShape {
            max_blocks: set.max_blocks().min(set.max_records() as u32).max(2),
            group_blocks: (batch / groups).max(1),
            pages: set.footer_page(),
            block_pages,
            max_records: set.max_records() as u32,
        }
    }

    /// What is copied of a segment with so many live blocks and records that are kept, in 1024ths
    /// of what one holds.
    pub fn copied_share(&self, (live, kept): (u32, u32)) -> u64 {
        let groups = live.div_ceil(self.group_blocks) + kept.div_ceil(GROUP_RECORDS as u32);
        let pages = u64::from(live * self.block_pages + groups + 1);
        let records = u64::from(live + kept);
        let of_pages = pages * 1024 / u64::from(self.pages);
        of_pages.max(records * 1024 / u64::from(self.max_records))
    }

    /// Blocks that a segment holds when the cleaner has filled it.
    fn blocks_when_cleaned(&self) -> u64 {
        let (pages, together) = (self.pages.saturating_sub(2), self.group_blocks);
        let group = together * self.block_pages + 1;
        let rest = (pages % group).saturating_sub(1) / self.block_pages;
        u64::from(pages / group * together + rest).min(self.max_records.into())
    }

    /// Blocks that a segment holds at least when requests have filled it: each in a group of its
    /// own.
    pub fn min_blocks(&self) -> u64 {
        let by_pages = self.pages.saturating_sub(2) / (self.block_pages + 1);
        u64::from(by_pages).min(u64::from(self.max_records) / 2).max(1)
    }
}

/// Segments of a pool that requests must leave free: the spare ones, and one for each further
/// stream to which a request may go.
pub fn kept_free(settings: &LogSettings) -> usize {
    settings.spare_segments + settings.user_streams.saturating_sub(1)
}

/// Segments that a pool needs beside those that hold a cache: free ones, and one open per stream.
pub fn needed_segments(settings: &LogSettings) -> usize {
    kept_free(settings) + CLEAN_AHEAD + settings.streams
}

/// Most blocks that can be cached on so many segments of a set that are a pool: what is left for
/// writing and cleaning makes cleaning end.
pub fn max_blocks(set: &DeviceSet, settings: &LogSettings, segments: usize) -> u64 {
    let segments = segments.saturating_sub(needed_segments(settings)) as u64;
    segments * LogShape::new(set, settings).blocks_when_cleaned() * 85 / 100
}
