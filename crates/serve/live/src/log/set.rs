//! The devices of a set, and where each page of the log lies on them.
//!
//! For: arithmetic of places. Must never know: what a page holds. Units: bytes, pages. Segments of
//! all devices have one row of numbers, taken in turn: neighbours lie on different devices.

use super::format::{Footer, FooterRecord, Home, PAGE, SUPERBLOCK_BYTES, SetGeometry, SetId};
use crate::io::FileId;

cachewright_types::index_ids! {
    /// A segment of the set.
    SegmentId,
}

/// A page of the set: that of a segment, counted through all segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u32);

/// A page on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePage {
    /// The device's file.
    pub file: FileId,
    /// The byte at which the page begins.
    pub offset: u64,
}

/// Where entries are appended: a stream of a pool of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WritePoint {
    /// The pool.
    pub pool: usize,
    /// The stream.
    pub stream: usize,
}

/// The devices of a set.
#[derive(Clone, Debug)]
pub struct DeviceSet {
    id: SetId,
    files: Vec<FileId>,
    geometry: SetGeometry,
    /// The pool of each device.
    pools: Vec<usize>,
}

impl DeviceSet {
    /// The devices, in the order of the set, each cut by `geometry`.
    pub fn new(id: SetId, files: Vec<FileId>, geometry: SetGeometry) -> DeviceSet {
        let pools = vec![0; files.len()];
        DeviceSet { id, files, geometry, pools }
    }

    /// The same devices in pools, one of which holds each device: `pools` has its number, by
    /// device. Content of a pool is filled and cleaned together.
    pub fn in_pools(self, pools: Vec<usize>) -> DeviceSet {
        debug_assert_eq!(pools.len(), self.files.len());
        DeviceSet { pools, ..self }
    }

    /// How many pools the devices are in.
    pub fn pools(&self) -> usize {
        self.pools.iter().max().map_or(1, |last| last + 1)
    }

    /// The pool of each device.
    pub fn pool_of_devices(&self) -> &[usize] {
        &self.pools
    }

    /// The pool of a segment.
    pub fn pool(&self, segment: SegmentId) -> usize {
        self.pools[self.device(segment)]
    }

    /// Segments of a pool.
    pub fn segments_of(&self, pool: usize) -> usize {
        let devices = self.pools.iter().filter(|other| **other == pool).count();
        devices * self.geometry.segments as usize
    }

    /// The id of the set.
    pub fn id(&self) -> SetId {
        self.id
    }

    /// The files, in the order of the devices.
    pub fn files(&self) -> &[FileId] {
        &self.files
    }

    /// Segments of all devices.
    pub fn segments(&self) -> usize {
        self.files.len() * self.geometry.segments as usize
    }

    /// Pages of a segment.
    pub fn segment_pages(&self) -> u32 {
        self.geometry.segment_bytes / PAGE as u32
    }

    /// Pages of a block.
    pub fn block_pages(&self) -> u32 {
        self.geometry.block_bytes / PAGE as u32
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.geometry.block_bytes as usize
    }

    /// The first page of the footer, which ends the segment.
    pub fn footer_page(&self) -> u32 {
        self.segment_pages() - self.footer_pages()
    }

    /// Pages that are kept for a footer: one in 64, at least one.
    pub fn footer_pages(&self) -> u32 {
        (self.segment_pages() / 64).max(1)
    }

    /// Most blocks of a segment: all of them in one group.
    pub fn max_blocks(&self) -> u32 {
        self.footer_page().saturating_sub(2) / self.block_pages()
    }

    /// Most records of a segment: as many as its footer can hold, beside the numbers of as many
    /// groups as a segment has pages.
    pub fn max_records(&self) -> usize {
        let (pages, groups) = (self.footer_pages() as usize, self.footer_page() as usize);
        let fits = |records: &usize| Footer::pages(groups, *records) <= pages;
        (1..=pages * PAGE / 32).rev().find(fits).unwrap_or_default()
    }

    /// The device of a segment.
    pub fn device(&self, segment: SegmentId) -> usize {
        segment.index() % self.files.len()
    }

    /// How a segment names itself.
    pub fn home(&self, segment: SegmentId, generation: u64) -> Home {
        let (device, own) = (self.device(segment), segment.index() / self.files.len());
        Home { set: self.id, device: device as u32, segment: own as u32, generation }
    }

    /// Where a page of a segment lies.
    pub fn page(&self, segment: SegmentId, page: u32) -> DevicePage {
        let own = (segment.index() / self.files.len()) as u64;
        let start = 2 * SUPERBLOCK_BYTES as u64 + own * u64::from(self.geometry.segment_bytes);
        let file = self.files[self.device(segment)];
        DevicePage { file, offset: start + u64::from(page) * PAGE as u64 }
    }

    /// Whether the content of a record lies wholly between the header and the footer of a segment.
    pub fn holds(&self, placed: &FooterRecord) -> bool {
        let has_data = placed.record.kind.has_data();
        let pages = if has_data { self.block_pages() } else { 0 };
        let end = placed.page.saturating_add(pages);
        end <= self.footer_page() && (placed.page > 0 || !has_data)
    }

    /// The place of a page of a segment.
    pub fn place(&self, segment: SegmentId, page: u32) -> Place {
        Place(segment.0 * self.segment_pages() + page)
    }

    /// The segment and the page of a place.
    pub fn locate(&self, place: Place) -> (SegmentId, u32) {
        let pages = self.segment_pages();
        (SegmentId(place.0 / pages), place.0 % pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart_and_found_again() {
        let geometry = SetGeometry { block_bytes: 4096, segment_bytes: 1 << 20, segments: 3 };
        let set = DeviceSet::new(SetId(7), vec![FileId(0), FileId(1)], geometry);
        assert_eq!((set.segments(), set.segment_pages(), set.footer_page()), (6, 256, 252));
        assert!(set.max_records() > 440 && Footer::pages(252, set.max_records()) == 4);
        let place = set.place(SegmentId(3), 5);
        assert_eq!(set.locate(place), (SegmentId(3), 5));
        let offset = (2 << 20) + (1 << 20) + 5 * 4096;
        assert_eq!(set.page(SegmentId(3), 5), DevicePage { file: FileId(1), offset });
        let home = set.home(SegmentId(3), 9);
        assert_eq!((home.device, home.segment, home.generation), (1, 1, 9));
    }
}
