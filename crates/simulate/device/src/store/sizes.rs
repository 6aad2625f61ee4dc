//! The sizes of a store.
//!
//! For: pages of a range of bytes, bytes of a page. Must never know: what lies where. Units: bytes,
//! pages.

use cachewright_types::Bytes;
use std::ops::Range;

/// The sizes of a store, which do not change.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    page_bytes: u64,
    segment_pages: u32,
    logical_pages: u32,
    /// Pages of one command at most.
    max_pages: u32,
}

impl Sizes {
    /// Pages of `page`, segments of so many, so many pages in all; commands of at most `command`.
    pub fn new(page: Bytes, segment_pages: u32, logical_pages: u32, command: Bytes) -> Sizes {
        let max_pages = (command.0 / page.0).max(1) as u32;
        Sizes { page_bytes: page.0, segment_pages, logical_pages, max_pages }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.segment_pages) * self.page_bytes
    }

    /// Pages of a segment.
    pub fn segment_pages(&self) -> u32 {
        self.segment_pages
    }

    /// Pages that the store shows.
    pub fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    /// Bytes that the store shows.
    pub fn capacity(&self) -> Bytes {
        Bytes(u64::from(self.logical_pages) * self.page_bytes)
    }

    /// Pages of one command at most.
    pub fn max_pages(&self) -> u32 {
        self.max_pages
    }

    /// The pages that a range of bytes touches.
    pub fn pages(&self, offset: Bytes, length: Bytes) -> Range<u32> {
        let end = offset.0.saturating_add(length.0).div_ceil(self.page_bytes);
        let last = end.min(self.logical_pages.into()) as u32;
        let first = (offset.0 / self.page_bytes).min(last.into()) as u32;
        if length.0 == 0 { first..first } else { first..last }
    }

    /// The pages that a range of bytes covers whole.
    pub fn whole_pages(&self, offset: Bytes, length: Bytes) -> Range<u32> {
        let end = offset.0.saturating_add(length.0) / self.page_bytes;
        let end = end.min(self.logical_pages.into()) as u32;
        let first = offset.0.div_ceil(self.page_bytes).min(end.into()) as u32;
        first..end
    }

    /// The first byte of a page.
    pub fn first_byte(&self, page: u32) -> u64 {
        u64::from(page) * self.page_bytes
    }

    /// The number of a place among all of the device.
    pub fn cell(&self, segment: u32, offset: u32) -> u64 {
        u64::from(segment) * u64::from(self.segment_pages) + u64::from(offset)
    }

    /// The first byte of a place on the device.
    pub fn address(&self, segment: u32, offset: u32) -> u64 {
        self.cell(segment, offset) * self.page_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_the_store_that_a_range_touches_or_covers() {
        let sizes = Sizes::new(Bytes(512), 8, 20, Bytes(1024));
        let range = |offset, length| {
            let (offset, length) = (Bytes(offset), Bytes(length));
            (sizes.pages(offset, length), sizes.whole_pages(offset, length))
        };
        assert_eq!(range(512, 1024), (1..3, 1..3));
        assert_eq!(range(513, 1024), (1..4, 2..3));
        assert_eq!(range(513, 0), (1..1, 1..1));
        assert_eq!(range(9_728, u64::MAX), (19..20, 19..20));
        assert_eq!(range(u64::MAX, 512), (20..20, 20..20));
        assert_eq!((sizes.max_pages(), sizes.capacity()), (2, Bytes(10_240)));
        assert_eq!((sizes.cell(2, 3), sizes.address(2, 3)), (19, 19 * 512));
    }
}
