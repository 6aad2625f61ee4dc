//! Recovery: what is in the log after a stop of any kind.
//!
//! For: the newest content of each block, and segments that can be appended to again. Must never
//! know: policies, volumes' names. Units: blocks, numbers of groups.
//!
//! All groups up to the highest number that any structure calls durable count. Of the others those
//! count that follow without a gap; each must be there with all its content. What lies behind the
//! gap is void. Reading writes nothing; `settle` ends what was begun, before anything is appended.
//! A group that was durable and is in no segment is lost: a device did not keep what it had synced,
//! or the group was damaged.

use super::format::{
    Footer, FooterRecord, GroupHeader, LAST_COUNTS, LogRecord, LogRecordKind, PAGE, SegmentHeader,
    SegmentState, Version, data_checksum,
};
use super::heads::SegmentRecords;
use super::index::{RecordIndex, RecoveredBlock};
use super::open::{OpenSet, OpenSetError};
use super::segments::{Segment, SegmentUse};
use super::set::{DeviceSet, SegmentId};
use super::settle::RecoveredLog;
use crate::io::{Buffer, Io, IoError, batch};
use std::collections::{BTreeMap, BTreeSet};

/// Segments whose headers are read at once.
const HEADERS_AT_ONCE: usize = 1024;
/// Segments whose footers are read at once.
const SEGMENTS_AT_ONCE: usize = 64;

/// What a set holds, as it was read. Nothing was written.
#[derive(Clone, Debug)]
pub struct FoundLog {
    pub(super) set: DeviceSet,
    /// The segments; those without a footer stand as begun.
    pub segments: Vec<Segment>,
    /// The records that count of segments without a footer.
    pub(super) loose: BTreeMap<SegmentId, SegmentRecords>,
    /// The number of the last group that counts.
    pub last_group: u64,
    /// The number of the last decision that a record speaks of.
    pub last_decision: u64,
    /// The newest content of each block that is cached, oldest first.
    pub blocks: Vec<RecoveredBlock>,
    /// Groups that were found and do not count: they follow a gap.
    pub void_groups: u64,
    /// The pages of them in each segment that has some.
    pub(super) void: BTreeMap<SegmentId, Vec<u32>>,
    /// Groups that were durable and are not there, as far as what is there proves it.
    pub lost_groups: u64,
    /// Footers that are there and damaged: the groups of their segments are read instead.
    pub damaged_footers: u64,
    /// Headers of segments that are damaged: dirty content of these segments counts as damaged.
    pub damaged_headers: u64,
    /// The segments whose headers are damaged.
    pub(super) doubtful: BTreeSet<SegmentId>,
}

/// A group of a segment without a footer.
#[derive(Clone, Debug)]
pub(super) struct LooseGroup {
    pub(super) segment: SegmentId,
    pub(super) records: Vec<FooterRecord>,
    /// All of its content is there.
    pub(super) whole: bool,
    /// Its first page.
    pub(super) page: u32,
}

/// What is known while segments are read.
pub(super) struct SegmentReading<'a, I> {
    pub(super) io: &'a mut I,
    pub(super) set: &'a DeviceSet,
    pub(super) segments: Vec<Segment>,
    index: RecordIndex,
    pub(super) loose: BTreeMap<u64, LooseGroup>,
    /// What segments hold that get a footer, besides loose groups.
    pub(super) ended: BTreeMap<SegmentId, SegmentRecords>,
    /// Groups in segments with footers.
    sealed_groups: Vec<u64>,
    /// Groups up to this number may have stood in segments that were emptied.
    emptied: u64,
    /// The highest number that any structure calls durable.
    pub(super) durable: u64,
    damaged_footers: u64,
    pub(super) damaged_headers: u64,
    /// Segments whose headers are damaged.
    pub(super) doubtful: BTreeSet<SegmentId>,
}

/// Finds what a set holds, and ends what was begun. Errors: a device fails.
pub fn recover(io: &mut impl Io, open: &OpenSet) -> Result<RecoveredLog, OpenSetError> {
    read_log(io, open)?.settle(io)
}

/// Finds what a set holds, and writes nothing. Errors: a device fails, numbers that are near their
/// end.
pub fn read_log(io: &mut impl Io, open: &OpenSet) -> Result<FoundLog, OpenSetError> {
    let set = &open.set;
    let headers = read_headers(io, set)?;
    let segments = headers.iter().map(|header| segment_of(header.as_ref())).collect();
    let emptied = headers.iter().flatten().map(|header| header.emptied).max();
    let mut reading = SegmentReading {
        io,
        set,
        segments,
        index: RecordIndex::default(),
        loose: BTreeMap::new(),
        ended: BTreeMap::new(),
        sealed_groups: Vec::new(),
        emptied: emptied.unwrap_or_default(),
        durable: 0,
        damaged_footers: 0,
        damaged_headers: 0,
        doubtful: BTreeSet::new(),
    };
    let begun: Vec<SegmentId> = (0..headers.len())
        .filter(|index| reading.segments[*index].usage == SegmentUse::Begun)
        .map(SegmentId::new)
        .collect();
    for some in begun.chunks(SEGMENTS_AT_ONCE) {
        for segment in reading.sealed(some)? {
            reading.scan(segment)?;
        }
    }
    reading.doubtful(&headers)?;
    let found = reading.end();
    check_counts(&found)?;
    Ok(found)
}

/// Errors: numbers that leave the log too few to go on with.
fn check_counts(found: &FoundLog) -> Result<(), OpenSetError> {
    let generation = found.segments.iter().map(|segment| segment.generation).max();
    let counts = [
        ("generation of a segment", generation.unwrap_or_default()),
        ("number of a group", found.last_group),
        ("number of a decision", found.last_decision),
    ];
    let mut counts = counts.into_iter().zip(LAST_COUNTS);
    match counts.find(|((_, found), max)| found > max) {
        Some(((name, found), max)) => Err(OpenSetError::Count { name, found, max }),
        None => Ok(()),
    }
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
        stream: header.map_or(0, |header| header.stream),
        times: (0, 0),
    }
}

/// The headers of all segments that are of this set and stand where they say.
fn read_headers(
    io: &mut impl Io,
    set: &DeviceSet,
) -> Result<Vec<Option<SegmentHeader>>, OpenSetError> {
    let all: Vec<SegmentId> = (0..set.segments()).map(SegmentId::new).collect();
    let header = |(segment, page): (&SegmentId, Buffer)| {
        let header = SegmentHeader::decode(&page)?;
        let here = set.home(*segment, header.home.generation);
        (header.home == here).then_some(header)
    };
    let mut headers = Vec::with_capacity(all.len());
    for some in all.chunks(HEADERS_AT_ONCE) {
        let pages = read_pages(io, set, some.iter().map(|segment| (*segment, 0, 1)))?;
        headers.extend(some.iter().zip(pages).map(header));
    }
    Ok(headers)
}

/// Reads runs of pages of segments.
pub(super) fn read_pages(
    io: &mut impl Io,
    set: &DeviceSet,
    runs: impl IntoIterator<Item = (SegmentId, u32, u32)>,
) -> Result<Vec<Buffer>, OpenSetError> {
    let runs: Vec<_> = runs.into_iter().collect();
    let range = |(segment, page, pages): &(SegmentId, u32, u32)| {
        let start = set.page(*segment, *page);
        (start.file, start.offset, *pages as usize * PAGE)
    };
    let found = batch::read(io, runs.iter().map(range));
    let buffer = |((segment, ..), found): (&(SegmentId, u32, u32), Result<_, IoError>)| {
        found.map_err(|error| OpenSetError::Io { device: set.device(*segment), error })
    };
    runs.iter().zip(found).map(buffer).collect()
}

impl<I: Io> SegmentReading<'_, I> {
    /// Takes in the segments that have footers; returns the others.
    fn sealed(&mut self, some: &[SegmentId]) -> Result<Vec<SegmentId>, OpenSetError> {
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
            let footer = bytes.as_ref().and_then(|bytes| self.footer(bytes));
            let damaged = bytes.is_some() && footer.is_none();
            match footer.filter(|footer| footer.home == home) {
                Some(footer) => self.take(*id, &footer),
                None => {
                    // A footer of another generation is whole: it was read as none.
                    self.damaged_footers += u64::from(damaged);
                    loose.push(*id);
                }
            }
        }
        Ok(loose)
    }

    /// A footer whose records have their content where content can be.
    pub(super) fn footer(&self, bytes: &[u8]) -> Option<Footer> {
        let sound = |footer: &Footer| footer.records.iter().all(|placed| self.set.holds(placed));
        Footer::decode(bytes).filter(sound)
    }

    pub(super) fn take(&mut self, id: SegmentId, footer: &Footer) {
        self.durable = self.durable.max(footer.last_group());
        let emptied = self.emptied;
        self.sealed_groups.extend(footer.groups.iter().filter(|number| **number > emptied));
        self.segments[id.index()].usage = SegmentUse::Sealed;
        self.segments[id.index()].last_group = footer.last_group();
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

    /// Finds the groups of a segment without a footer. One that is missing hides none behind it.
    fn scan(&mut self, id: SegmentId) -> Result<(), OpenSetError> {
        let pages = read_pages(self.io, self.set, [(id, 0, self.set.footer_page())])?;
        let Some(bytes) = pages.into_iter().next() else { return Ok(()) };
        let generation = self.segments[id.index()].generation;
        let mut last = 0;
        for (header, records, whole) in self.groups_in(id, Some(generation), &bytes) {
            if header.number <= last {
                continue;
            }
            last = header.number;
            self.durable = self.durable.max(header.durable);
            let page = header.page;
            let found = LooseGroup { segment: id, records, whole, page };
            self.loose.entry(header.number).or_insert(found);
        }
        Ok(())
    }

    /// Groups that were durable and are in no segment. A segment whose header is damaged may have
    /// been emptied: then nothing is proven.
    fn lost_groups(&mut self) -> u64 {
        if self.damaged_headers > 0 || self.durable <= self.emptied {
            return 0;
        }
        let durable = self.emptied + 1..self.durable + 1;
        let mut there = std::mem::take(&mut self.sealed_groups);
        there.extend(self.loose.keys());
        there.retain(|number| durable.contains(number));
        there.sort_unstable();
        there.dedup();
        durable.end - durable.start - there.len() as u64
    }

    /// Takes in the groups that count.
    fn end(mut self) -> FoundLog {
        let lost_groups = self.lost_groups();
        let mut last_group = self.durable;
        let mut loose = std::mem::take(&mut self.ended);
        let (mut void_groups, mut void) = (0, BTreeMap::<SegmentId, Vec<u32>>::new());
        for (number, group) in std::mem::take(&mut self.loose) {
            let next = number == last_group + 1 && group.whole;
            if number > self.durable && !next {
                void_groups += 1;
                void.entry(group.segment).or_default().push(group.page);
                continue;
            }
            last_group = last_group.max(number);
            self.segments[group.segment.index()].last_group = number;
            group.records.iter().for_each(|placed| self.note(group.segment, *placed));
            let ended = loose.entry(group.segment).or_default();
            ended.groups.push(number);
            ended.records.extend(group.records);
        }
        let last_decision = self.index.last_decision();
        let blocks = std::mem::take(&mut self.index).into_blocks();
        for block in &blocks {
            self.segments[self.set.locate(block.place).0.index()].live += 1;
        }
        FoundLog {
            set: self.set.clone(),
            segments: self.segments,
            loose,
            last_group,
            last_decision,
            blocks,
            void_groups,
            void,
            lost_groups,
            damaged_footers: self.damaged_footers,
            damaged_headers: self.damaged_headers,
            doubtful: self.doubtful,
        }
    }
}

/// The records of a group with their pages, and whether all of their content is there.
pub(super) fn placed(
    header: &GroupHeader,
    records: &[LogRecord],
    bytes: &[u8],
) -> (Vec<FooterRecord>, bool) {
    let mut page = header.page + 1;
    let mut whole = true;
    let place = |record: &LogRecord| {
        let Some(checksum) = record.kind.checksum() else {
            return FooterRecord { record: *record, page: 0 };
        };
        let start = page as usize * PAGE;
        let content = &bytes[start..start + header.block_pages as usize * PAGE];
        let damaged = matches!(record.kind, LogRecordKind::Damaged { .. });
        whole &= damaged || data_checksum(record.volume, record.number, content) == checksum;
        page += header.block_pages;
        FooterRecord { record: *record, page: page - header.block_pages }
    };
    let placed = records.iter().map(place).collect();
    (placed, whole)
}
