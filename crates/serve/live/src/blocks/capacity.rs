//! How much a log holds.
//!
//! For: sizes of caches and of requests that a log takes for sure. Must never know: what it holds
//! now. Units: blocks, segments, pages, shares in 1024ths.

use super::copies::{BlockCopy, CopyId};
use crate::log::format::GROUP_RECORDS;
use crate::log::{DeviceSet, LogSettings, cleaning_batch};

/// Segments that are cleaned ahead of need.
pub const CLEAN_AHEAD: usize = 2;

/// Bytes of memory that a cached block takes beside the index and the policy: its copy, and the
/// name that the cache's id has for it.
pub const BLOCK_MEMORY: u64 = (size_of::<BlockCopy>() + size_of::<CopyId>()) as u64;

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
    pub fn copied_share(&self, live: u32, kept: u32) -> u64 {
        let groups = self.moved_groups(live, kept);
        let pages = u64::from(live * self.block_pages + groups + 1);
        let records = u64::from(live + kept);
        let of_pages = pages * 1024 / u64::from(self.pages);
        of_pages.max(records * 1024 / u64::from(self.max_records))
    }

    /// Whether cleaning a segment with so many live blocks and records that are kept wins space
    /// for sure: what is moved takes less than a segment. Of one that the cleaner fills its header,
    /// an end that is too short for a block in a group, and the descriptor of a group that did not
    /// fit and was divided are lost. Cleaning of other segments could go round for ever.
    pub fn gains(&self, live: u32, kept: u32) -> bool {
        let lost = 1 + (self.block_pages + 1) + 1;
        let pages = live * self.block_pages + self.moved_groups(live, kept);
        pages < self.pages.saturating_sub(lost) && live + kept < self.max_records
    }

    /// Most live blocks of a segment whose cleaning wins space.
    fn gaining_blocks(&self) -> u32 {
        (0..=self.max_blocks).rev().find(|live| self.gains(*live, 0)).unwrap_or_default()
    }

    /// Groups that the cleaner makes of so many blocks and records.
    fn moved_groups(&self, live: u32, kept: u32) -> u32 {
        live.div_ceil(self.group_blocks) + kept.div_ceil(GROUP_RECORDS as u32)
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
/// writing and cleaning makes cleaning end. However they are spread, a segment has so few of them
/// that cleaning it wins space, until `CLEAN_AHEAD` segments are free for requests.
pub fn max_blocks(set: &DeviceSet, settings: &LogSettings, segments: usize) -> u64 {
    let segments = segments.saturating_sub(needed_segments(settings)) as u64;
    let shape = LogShape::new(set, settings);
    let spread = segments * u64::from(shape.gaining_blocks());
    (segments * shape.blocks_when_cleaned() * 85 / 100).min(spread)
}

/// Blocks that a request may append at most so that the log can make space for it whatever the log
/// holds.
pub fn space_for_sure(set: &DeviceSet, settings: &LogSettings) -> u64 {
    CLEAN_AHEAD as u64 * LogShape::new(set, settings).min_blocks()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::FileId;
    use crate::log::format::{SetGeometry, SetId};

    /// A set of one device, and settings of so many streams for moved blocks.
    fn shaped(block_bytes: u32, segment_bytes: u32, streams: usize) -> (DeviceSet, LogSettings) {
        let geometry = SetGeometry { block_bytes, segment_bytes, segments: 40 };
        let set = DeviceSet::new(SetId(1), vec![FileId(0)], geometry);
        let group_blocks = ((1 << 20) / block_bytes).clamp(1, 128);
        let settings = LogSettings {
            streams,
            user_streams: 1,
            moved_streams: streams,
            group_blocks,
            spare_segments: 2 + streams,
        };
        (set, settings)
    }

    /// Segments that all hold `live` blocks are cleaned: the pages that the cleaner needs for them,
    /// with the rest of a segment at which it begins another, as a slow count.
    fn segments_filled(shape: &LogShape, live: u32, cleaned: u32) -> u32 {
        let (mut begun, mut next) = (0, shape.pages);
        for _ in 0..cleaned {
            let mut left = live;
            while left > 0 {
                if next + 2 + shape.block_pages > shape.pages {
                    (begun, next) = (begun + 1, 1);
                }
                let fits = (shape.pages - next - 1) / shape.block_pages;
                let group = left.min(shape.group_blocks).min(fits);
                next += 1 + group * shape.block_pages;
                left -= group;
            }
        }
        begun
    }

    #[test]
    fn cleaning_that_is_worth_it_frees_more_segments_than_it_fills_in_every_shape() {
        for block_shift in 12..22 {
            let block = 1_u32 << block_shift;
            for segment in [8_u32, 9, 12, 16, 31, 64, 256, 4096] {
                let Some(bytes) = block.checked_mul(segment) else { continue };
                let bytes = bytes.max(64 << 10);
                // More pages only take longer to count.
                if bytes > 4 << 20 {
                    continue;
                }
                for streams in [1, 2, 6] {
                    let (set, settings) = shaped(block, bytes, streams);
                    let shape = LogShape::new(&set, &settings);
                    let max_live = shape.gaining_blocks();
                    assert!(max_live > 0, "blocks of {block}, segments of {bytes}");
                    for live in [1, max_live / 2, max_live.saturating_sub(1), max_live] {
                        let cleaned = 2 * shape.pages;
                        let filled = segments_filled(&shape, live, cleaned);
                        let text = "blocks of {block}, segments of {bytes}, {live} live";
                        assert!(filled < cleaned, "{text}: {filled} of {cleaned}");
                    }
                    assert!(max_blocks(&set, &settings, 40) > 0);
                    assert!(space_for_sure(&set, &settings) >= 4, "a write of two blocks");
                }
            }
        }
    }

    #[test]
    fn large_segments_hold_as_much_as_their_writing_and_cleaning_leaves() {
        let (set, settings) = shaped(4096, 16 << 20, 1);
        let segments = (40 - needed_segments(&settings)) as u64;
        assert_eq!(max_blocks(&set, &settings, 40), segments * 3792 * 85 / 100);
    }
}
