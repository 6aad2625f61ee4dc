//! Recovery: what is in the log after a stop of any kind.
//!
//! For: the newest content of each block, and segments that can be appended to again. Must never
//! know: policies, volumes' names. Units: blocks, numbers of groups.
//!
//! All groups up to the highest number that any structure calls durable count. Of the others those
//! count that follow without a gap; each must be there with all its content. What lies behind the
//! gap is void: segments without a footer get one with the records that count, before anything is
//! appended. Recovery can be cut short at any point and done again: it ends the same.

use super::format::{
    Footer, FooterRecord, GroupHeader, Kind, PAGE, Record, SegmentHeader, SegmentState, Version,
    data_checksum,
};
use super::index::{BlockIndex, RecoveredBlock};
use super::open::{OpenError, OpenSet};
use super::segments::{Segment, SegmentUse, Segments};
use super::set::{DeviceSet, SegmentId};
use crate::io::{Buffer, Io, IoError, batch};
use std::collections::BTreeMap;

/// Segments whose footers are read at once.
const SEGMENTS_AT_ONCE: usize = 64;

/// What was found.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The segments.
    pub segments: Segments,
    /// The number of the last group that counts.
    pub last_group: u64,
    /// The number of the last decision that a record speaks of.
    pub last_decision: u64,
    /// The newest content of each block that is cached, oldest first.
    pub blocks: Vec<RecoveredBlock>,
    /// Groups that were found and do not count: they follow a gap.
    pub void_groups: u64,
}

/// A group of a segment without a footer.
#[derive(Clone, Debug)]
struct LooseGroup {
    segment: SegmentId,
    records: Vec<FooterRecord>,
    /// All of its content is there.
    whole: bool,
}

/// What is known while segments are read.
struct Reading<'a, I> {
    io: &'a mut I,
    set: &'a DeviceSet,
    segments: Vec<Segment>,
    index: BlockIndex,
    loose: BTreeMap<u64, LooseGroup>,
    /// The highest number that any structure calls durable.
    durable: u64,
}

/// Finds what a set holds, and ends what was begun. Errors: a device fails.
pub fn recover(io: &mut impl Io, open: &OpenSet) -> Result<Recovered, OpenError> {
    let set = &open.set;
    let headers = read_headers(io, set)?;
    let segments = headers.iter().map(|header| segment_of(header.as_ref())).collect();
    let (index, loose) = (BlockIndex::default(), BTreeMap::new());
    let mut reading = Reading { io, set, segments, index, loose, durable: 0 };
    let begun: Vec<SegmentId> = (0..headers.len())
        .filter(|index| reading.segments[*index].usage == SegmentUse::Begun)
        .map(SegmentId::new)
        .collect();
    for some in begun.chunks(SEGMENTS_AT_ONCE) {
        for segment in reading.sealed(some)? {
            reading.scan(segment)?;
        }
    }
    reading.end(&begun)
}

/// A segment of which only the header is known.
fn segment_of(header: Option<&SegmentHeader>) -> Segment {
    let begun = header.is_some_and(|header| header.state == SegmentState::Begun);
    Segment {
        usage: if begun { SegmentUse::Begun } else { SegmentUse::Free },
        generation: header.map_or(0, |header| header.home.generation),
        live: 0,
        oldest: Version(u64::MAX),
        notes: (0, Version::default()),
        last_group: 0,
    }
}

/// The headers of all segments that are of this set and stand where they say.
fn read_headers(
    io: &mut impl Io,
    set: &DeviceSet,
) -> Result<Vec<Option<SegmentHeader>>, OpenError> {
    let all: Vec<SegmentId> = (0..set.segments()).map(SegmentId::new).collect();
    let pages = read_pages(io, set, all.iter().map(|segment| (*segment, 0, 1)))?;
    let header = |(segment, page): (&SegmentId, Buffer)| {
        let header = SegmentHeader::decode(&page)?;
        let here = set.home(*segment, header.home.generation);
        (header.home == here).then_some(header)
    };
    Ok(all.iter().zip(pages).map(header).collect())
}

/// Reads runs of pages of segments.
fn read_pages(
    io: &mut impl Io,
    set: &DeviceSet,
    runs: impl IntoIterator<Item = (SegmentId, u32, u32)>,
) -> Result<Vec<Buffer>, OpenError> {
    let runs: Vec<_> = runs.into_iter().collect();
    let range = |(segment, page, pages): &(SegmentId, u32, u32)| {
        let start = set.page(*segment, *page);
        (start.file, start.offset, *pages as usize * PAGE)
    };
    let found = batch::read(io, runs.iter().map(range));
    let buffer = |((segment, ..), found): (&(SegmentId, u32, u32), Result<_, IoError>)| {
        found.map_err(|error| OpenError::Io { device: set.device(*segment), error })
    };
    runs.iter().zip(found).map(buffer).collect()
}

impl<I: Io> Reading<'_, I> {
    /// Takes in the segments that have footers; returns the others.
    fn sealed(&mut self, some: &[SegmentId]) -> Result<Vec<SegmentId>, OpenError> {
        let page = self.set.footer_page();
        let first = read_pages(self.io, self.set, some.iter().map(|id| (*id, page, 1)))?;
        let length = |page: &Buffer| {
            let pages = Footer::pages_at(page)? as u32;
            (pages <= self.set.footer_pages()).then_some(pages)
        };
        let lengths: Vec<u32> = first.iter().map(|page| length(page).unwrap_or_default()).collect();
        let runs = some.iter().zip(&lengths).map(|(id, pages)| (*id, page, *pages));
        let footers = read_pages(self.io, self.set, runs.filter(|(.., pages)| *pages > 0))?;
        let mut footers = footers.into_iter();
        let mut loose = Vec::new();
        for (id, pages) in some.iter().zip(lengths) {
            let home = self.set.home(*id, self.segments[id.index()].generation);
            let bytes = if pages > 0 { footers.next() } else { None };
            let footer = bytes.and_then(|bytes| Footer::decode(&bytes));
            match footer.filter(|footer| footer.home == home) {
                Some(footer) => self.take(*id, &footer),
                None => loose.push(*id),
            }
        }
        Ok(loose)
    }

    fn take(&mut self, id: SegmentId, footer: &Footer) {
        self.durable = self.durable.max(footer.last_group);
        self.segments[id.index()].usage = SegmentUse::Sealed;
        self.segments[id.index()].last_group = footer.last_group;
        footer.records.iter().for_each(|placed| self.note(id, *placed));
    }

    fn note(&mut self, id: SegmentId, placed: FooterRecord) {
        let segment = &mut self.segments[id.index()];
        if placed.record.kind.has_data() {
            segment.oldest = segment.oldest.min(placed.record.version);
        } else {
            segment.add_note(placed.record.version);
        }
        self.index.note(placed.record, self.set.place(id, placed.page));
    }

    /// Finds the groups of a segment without a footer.
    fn scan(&mut self, id: SegmentId) -> Result<(), OpenError> {
        let end = self.set.footer_page();
        let pages = read_pages(self.io, self.set, [(id, 0, end)])?;
        let Some(bytes) = pages.into_iter().next() else { return Ok(()) };
        let home = self.set.home(id, self.segments[id.index()].generation);
        let (mut page, mut last) = (1, 0);
        while page < end {
            let start = page as usize * PAGE;
            let Some((header, records)) = GroupHeader::decode(&bytes[start..start + PAGE]) else {
                break;
            };
            let pages = header.pages(&records);
            let fits = header.block_pages == self.set.block_pages() && pages <= end - page;
            if header.home != home || header.page != page || header.number <= last || !fits {
                break;
            }
            self.durable = self.durable.max(header.durable);
            let (records, whole) = placed(&header, &records, &bytes);
            self.loose.insert(header.number, LooseGroup { segment: id, records, whole });
            (page, last) = (page + pages, header.number);
        }
        Ok(())
    }

    /// Takes in the groups that count, and writes a footer to each segment without one.
    fn end(mut self, begun: &[SegmentId]) -> Result<Recovered, OpenError> {
        let mut last_group = self.durable;
        let mut loose: BTreeMap<SegmentId, Vec<FooterRecord>> = BTreeMap::new();
        let mut void_groups = 0;
        for (number, group) in std::mem::take(&mut self.loose) {
            let next = number == last_group + 1 && group.whole;
            if number > self.durable && !next {
                void_groups += 1;
                continue;
            }
            last_group = last_group.max(number);
            self.segments[group.segment.index()].last_group = number;
            group.records.iter().for_each(|placed| self.note(group.segment, *placed));
            loose.entry(group.segment).or_default().extend(group.records);
        }
        self.write_ends(begun, &loose)?;
        let last_decision = self.index.last_decision();
        let blocks = std::mem::take(&mut self.index).into_blocks();
        for block in &blocks {
            self.segments[self.set.locate(block.place).0.index()].live += 1;
        }
        self.free_dead()?;
        self.raise_free()?;
        let mut segments = Segments::new(self.segments.iter().map(|found| found.generation));
        for (index, found) in self.segments.iter().enumerate() {
            segments.restore(SegmentId::new(index), *found);
        }
        Ok(Recovered { segments, last_group, last_decision, blocks, void_groups })
    }

    /// Frees segments of which nothing counts, one after another: each that is void lets others be.
    fn free_dead(&mut self) -> Result<(), OpenError> {
        loop {
            let all = 0..self.segments.len();
            let dead = all.filter(|id| is_dead(*id, &self.segments));
            let dead: Vec<usize> = dead.take(1).collect();
            let Some(index) = dead.first().copied() else { return Ok(()) };
            let id = SegmentId::new(index);
            let home = self.set.home(id, self.segments[index].generation);
            let header = SegmentHeader { home, state: SegmentState::Free, stream: 0 };
            let start = self.set.page(id, 0);
            let written = batch::write(
                self.io,
                [(start.file, start.offset, Buffer::padded(&header.encode()))],
            );
            let device = self.set.device(id);
            written.map_err(|error| OpenError::Io { device, error })?;
            self.segments[index].usage = SegmentUse::Free;
            self.segments[index].oldest = Version(u64::MAX);
            self.segments[index].notes = (0, Version::default());
        }
    }

    /// Free segments get a generation that was never used: one may have been begun without its
    /// header being there, and its groups would count when the generation is used again.
    fn raise_free(&mut self) -> Result<(), OpenError> {
        let mut headers = Vec::new();
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if segment.usage == SegmentUse::Free {
                segment.generation += 1;
                let id = SegmentId::new(index);
                let home = self.set.home(id, segment.generation);
                let header = SegmentHeader { home, state: SegmentState::Free, stream: 0 };
                let start = self.set.page(id, 0);
                headers.push((start.file, start.offset, Buffer::padded(&header.encode())));
            }
        }
        let written = batch::write(self.io, headers);
        written.map_err(|error| OpenError::Io { device: 0, error })
    }

    /// Segments without a footer get one; those without a group that counts become free. Headers of
    /// these go last: until then their groups must be found again as void.
    fn write_ends(
        &mut self,
        begun: &[SegmentId],
        loose: &BTreeMap<SegmentId, Vec<FooterRecord>>,
    ) -> Result<(), OpenError> {
        let open = |id: &&SegmentId| self.segments[id.index()].usage == SegmentUse::Begun;
        let open: Vec<SegmentId> = begun.iter().filter(open).copied().collect();
        let (mut footers, mut headers) = (Vec::new(), Vec::new());
        for id in open {
            let Segment { generation, last_group, .. } = self.segments[id.index()];
            let home = self.set.home(id, generation);
            if let Some(records) = loose.get(&id) {
                let footer = Footer { home, last_group, records: records.clone() };
                let start = self.set.page(id, self.set.footer_page());
                footers.push((start.file, start.offset, Buffer::padded(&footer.encode())));
                self.segments[id.index()].usage = SegmentUse::Sealed;
            } else {
                let header = SegmentHeader { home, state: SegmentState::Free, stream: 0 };
                let start = self.set.page(id, 0);
                headers.push((start.file, start.offset, Buffer::padded(&header.encode())));
                self.segments[id.index()].usage = SegmentUse::Free;
            }
        }
        for pieces in [footers, headers] {
            let written = batch::write(self.io, pieces);
            written.map_err(|error| OpenError::Io { device: 0, error })?;
        }
        Ok(())
    }
}

/// Whether nothing in a segment counts: no content is live, and no other segment holds content that
/// a record of it takes away.
fn is_dead(id: usize, segments: &[Segment]) -> bool {
    let (notes, newest_note) = segments[id].notes;
    let mut others = segments.iter().enumerate().filter(|(other, _)| *other != id);
    let needed = notes > 0 && others.any(|(_, other)| other.oldest <= newest_note);
    segments[id].usage == SegmentUse::Sealed && segments[id].live == 0 && !needed
}

/// The records of a group with their pages, and whether all of their content is there.
fn placed(header: &GroupHeader, records: &[Record], bytes: &[u8]) -> (Vec<FooterRecord>, bool) {
    let mut page = header.page + 1;
    let mut whole = true;
    let place = |record: &Record| {
        let Some(checksum) = record.kind.checksum() else {
            return FooterRecord { record: *record, page: 0 };
        };
        let start = page as usize * PAGE;
        let content = &bytes[start..start + header.block_pages as usize * PAGE];
        let damaged = matches!(record.kind, Kind::Damaged { .. });
        whole &= damaged || data_checksum(record.volume, record.number, content) == checksum;
        page += header.block_pages;
        FooterRecord { record: *record, page: page - header.block_pages }
    };
    let placed = records.iter().map(place).collect();
    (placed, whole)
}
