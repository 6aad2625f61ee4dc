//! The segments that streams fill, each with its open group.
//!
//! For: content of one kind that lies together. Must never know: which block belongs to a stream,
//! operations. Units: pages, numbers of groups. A head has a segment until that is full; at most
//! one group of it is open.

use super::format::{FooterRecord, Home, Version, VolumeId};
use super::group::{LogEntry, OpenGroup};
use super::set::{SegmentId, WritePoint};
use crate::io::Buffer;

/// What the footer of a segment will hold.
#[derive(Clone, Debug, Default)]
pub struct SegmentRecords {
    /// The numbers of its groups that were closed.
    pub groups: Vec<u64>,
    /// Their records.
    pub records: Vec<FooterRecord>,
}

/// What bounds a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentLimits {
    /// Where its footer begins.
    pub footer_page: u32,
    /// Records for which its footer has space.
    pub max_records: usize,
    /// Pages of a block.
    pub block_pages: u32,
}

/// The segment that a stream of a pool fills.
#[derive(Debug)]
pub struct StreamHead {
    segment: SegmentId,
    next_page: u32,
    ended: SegmentRecords,
    group: Option<OpenGroup>,
}

impl StreamHead {
    /// The segment.
    pub fn segment(&self) -> SegmentId {
        self.segment
    }

    /// Whether an entry fits into the open group.
    pub fn fits(&self, entry: &LogEntry<'_>) -> bool {
        self.group.as_ref().is_some_and(|group| group.fits(entry))
    }

    /// Whether there is no space for another group with a block.
    pub fn is_full(&self, limits: &SegmentLimits) -> bool {
        self.next_page + 2 + limits.block_pages > limits.footer_page
            || self.ended.records.len() >= limits.max_records
    }

    /// Pages that a group may have, at most `max_pages`.
    pub fn pages(&self, max_pages: u32, limits: &SegmentLimits) -> u32 {
        max_pages.min(limits.footer_page - self.next_page)
    }

    /// Opens a group of this number.
    pub fn open_group(
        &mut self,
        (number, home): (u64, Home),
        limits: &SegmentLimits,
        memory: Buffer,
    ) {
        let records = limits.max_records - self.ended.records.len();
        let (home, shape) = ((home, self.next_page), (limits.block_pages, records));
        self.group = Some(OpenGroup::new(number, home, shape, memory));
    }

    /// Appends an entry, which fits, to the open group; returns its record, and the group's number.
    pub fn append(
        &mut self,
        block: (VolumeId, u64),
        version: Version,
        entry: LogEntry<'_>,
    ) -> Option<(FooterRecord, u64)> {
        let group = self.group.as_mut()?;
        Some((group.append(block, version, entry), group.number()))
    }

    /// Closes the open group, if there is one; returns its first page, and itself.
    pub fn close_group(&mut self) -> Option<(u32, OpenGroup)> {
        let group = self.group.take()?;
        Some((std::mem::replace(&mut self.next_page, group.end_page()), group))
    }

    /// The records of a group that was closed.
    pub fn note_closed(&mut self, number: u64, records: Vec<FooterRecord>) {
        self.ended.groups.push(number);
        self.ended.records.extend(records);
    }
}

/// The heads of all streams, pool by pool.
#[derive(Debug)]
pub struct StreamHeads {
    list: Vec<Option<StreamHead>>,
    /// Streams of a pool.
    streams: usize,
}

impl StreamHeads {
    /// Heads without segments.
    pub fn new(pools: usize, streams: usize) -> StreamHeads {
        StreamHeads { list: (0..pools * streams).map(|_| None).collect(), streams }
    }

    /// Heads, those without segments included.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The place of a point among the heads.
    pub fn place(&self, point: WritePoint) -> usize {
        point.pool * self.streams + point.stream
    }

    /// The stream of a place, in its pool.
    pub fn stream(&self, place: usize) -> usize {
        place % self.streams
    }

    /// The head at a place, if it has a segment.
    pub fn get(&self, place: usize) -> Option<&StreamHead> {
        self.list[place].as_ref()
    }

    /// The same, to change.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut StreamHead> {
        self.list[place].as_mut()
    }

    /// The head at a place fills another segment from now on.
    pub fn begin(&mut self, place: usize, segment: SegmentId) {
        let ended = SegmentRecords::default();
        self.list[place] = Some(StreamHead { segment, next_page: 0, ended, group: None });
    }

    /// The segment at a place is full: it, and what its footer will hold.
    pub fn end(&mut self, place: usize) -> Option<(SegmentId, SegmentRecords)> {
        self.list[place].take().map(|head| (head.segment, head.ended))
    }

    /// Whether a segment was begun.
    pub fn has_begun(&self) -> bool {
        self.list.iter().any(Option::is_some)
    }

    /// The content of a block in an open group.
    pub fn content(&self, segment: SegmentId, page: u32) -> Option<&[u8]> {
        let mut open = self.list.iter().flatten().filter(|head| head.segment == segment);
        open.find_map(|head| head.group.as_ref()?.content(page))
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{LogRecordKind, PAGE, SetId};
    use super::super::group::LogEntry;
    use super::*;

    #[test]
    fn a_head_has_one_group_behind_the_other_until_it_is_full() {
        let limits = SegmentLimits { footer_page: 8, max_records: 3, block_pages: 1 };
        let home = Home { set: SetId(1), device: 0, segment: 5, generation: 1 };
        let mut heads = StreamHeads::new(2, 3);
        let place = heads.place(WritePoint { pool: 1, stream: 2 });
        assert_eq!((heads.count(), place, heads.stream(place)), (6, 5, 2));
        heads.begin(place, SegmentId(5));
        let head = heads.get_mut(place).unwrap();
        let note = || LogEntry::Note(LogRecordKind::Gone { blocks: 1 });
        for (number, first_page) in [(7, 0), (8, 2), (9, 3)] {
            assert!(!head.is_full(&limits) && !head.fits(&note()));
            let pages = head.pages(3, &limits) as usize;
            head.open_group((number, home), &limits, Buffer::zeroed(pages * PAGE));
            assert!(head.fits(&note()));
            let (record, group) = head.append((VolumeId(0), 4), Version(1), note()).unwrap();
            assert_eq!(group, number);
            assert_eq!(head.close_group().map(|(page, _)| page), Some(first_page));
            head.note_closed(number, vec![record]);
        }
        assert!(head.is_full(&limits), "three records");
        assert!(heads.has_begun());
        let (segment, ended) = heads.end(place).unwrap();
        assert_eq!((segment, ended.groups, ended.records.len()), (SegmentId(5), vec![7, 8, 9], 3));
        assert!(!heads.has_begun());
    }
}
