//! Recovery: what is in the log after a stop of any kind.
//!
//! For: the newest content of each block, and segments that can be appended to again. Must never
//! know: policies, volumes' names. Units: blocks, numbers of groups.
//!
//! All groups up to the highest number that any structure calls durable count. Of the others those
//! count that follow without a gap; each must be there with all its content. What lies behind the
//! gap is void, unless a page that cannot be read may have held what is missing: a group that was
//! made durable behind it must not go with it. Reading writes nothing; `settle` ends what was
//! begun, before anything is appended. A group that was durable and is in no segment is lost: a
//! device did not keep what it had synced, or the group was damaged. A page that cannot be read
//! counts as damaged: all others are read.

use super::doubtful::doubt;
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
use std::ops::Range;

/// Segments whose headers are read at once.
const HEADERS_AT_ONCE: usize = 1024;
/// Segments whose footers are read at once.
const SEGMENTS_AT_ONCE: usize = 64;
/// Bad pages in fewer segments are no sign of a device that fails as a whole.
const FAILING_SEGMENTS: usize = 4;

/// A page of a device that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadablePage {
    /// The device, in the order of the set.
    pub device: usize,
    /// The byte of the device at which it begins.
    pub offset: u64,
    /// Why.
    pub error: IoError,
}

/// Pages of a segment as they were read.
pub(super) struct SegmentBytes {
    /// From the first page that was asked for on; zeroes where a page cannot be read.
    pub(super) data: Buffer,
    /// The pages that cannot be read, counted in the segment, in order.
    pub(super) unreadable: Vec<u32>,
}

impl SegmentBytes {
    /// Whether one of some pages cannot be read.
    fn misses(&self, pages: Range<u32>) -> bool {
        self.unreadable.iter().any(|page| pages.contains(page))
    }
}

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
    /// A page cannot be read where a group may have begun, which may have been durable: as with
    /// groups that are lost, volumes may hold older content.
    pub hides_groups: bool,
    /// Pages that were to be read and cannot be.
    pub unreadable: Vec<UnreadablePage>,
    /// Segments of which a page cannot be read.
    bad_segments: BTreeSet<SegmentId>,
    /// Footers that are damaged, of segments of which a group is missing or void.
    pub damaged_footers: u64,
    /// Footers that are torn or damaged, of segments of which all groups are there: a loss of power
    /// leaves them, and they tell nothing that the groups do not.
    pub torn_footers: u64,
    /// Headers of segments that are damaged: dirty content of these segments counts as damaged.
    pub damaged_headers: u64,
    /// The segments whose headers are damaged, or were once.
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
    /// Segments whose footers are there and damaged.
    damaged_footers: Vec<SegmentId>,
    pub(super) damaged_headers: u64,
    /// Pages of segments that cannot be read and where a group may begin.
    pub(super) hiding: BTreeSet<(SegmentId, u32)>,
    unreadable: Vec<UnreadablePage>,
    bad_segments: BTreeSet<SegmentId>,
    /// Segments whose headers are damaged, or were once.
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
    let mut reading = SegmentReading {
        io,
        set,
        segments: Vec::new(),
        index: RecordIndex::default(),
        loose: BTreeMap::new(),
        ended: BTreeMap::new(),
        sealed_groups: Vec::new(),
        emptied: 0,
        durable: 0,
        damaged_footers: Vec::new(),
        damaged_headers: 0,
        hiding: BTreeSet::new(),
        unreadable: open.unreadable.clone(),
        bad_segments: BTreeSet::new(),
        doubtful: BTreeSet::new(),
    };
    let headers = reading.headers()?;
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
    let begun = header.is_some_and(|header| header.state != SegmentState::Free);
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

/// The header of a segment, as it was found.
#[derive(Clone, Copy, Debug)]
pub(super) enum FoundHeader {
    /// It is whole, of this set, and stands where it says.
    Whole(SegmentHeader),
    /// There is none, or it is damaged.
    Missing,
    /// Its page cannot be read.
    Unreadable,
}

impl FoundHeader {
    /// The header, if it is whole.
    pub(super) fn whole(&self) -> Option<&SegmentHeader> {
        match self {
            FoundHeader::Whole(header) => Some(header),
            FoundHeader::Missing | FoundHeader::Unreadable => None,
        }
    }
}

impl FoundLog {
    /// Whether content that was durable may be gone, so that volumes may hold older content.
    pub fn has_lost(&self) -> bool {
        self.lost_groups > 0 || self.hides_groups
    }

    /// A device that reads so little that nothing may be concluded from what is missing: of more
    /// than half of its segments that hold something a page cannot be read. What is there must not
    /// be overwritten.
    pub fn failing_device(&self) -> Option<UnreadablePage> {
        let fails = |device: &usize| {
            let bad = self.bad_segments.iter().filter(|id| self.set.device(**id) == *device);
            let bad = bad.count();
            let segments = self.segments.iter().enumerate();
            let used = segments.filter(|(index, segment)| {
                let id = SegmentId::new(*index);
                let is_used = segment.usage != SegmentUse::Free || self.bad_segments.contains(&id);
                self.set.device(id) == *device && is_used
            });
            bad >= FAILING_SEGMENTS && bad * 2 > used.count()
        };
        let device = (0..self.set.files().len()).find(fails)?;
        self.unreadable.iter().find(|page| page.device == device).copied()
    }
}

impl<I: Io> SegmentReading<'_, I> {
    /// The headers of all segments; what they say of segments and groups is taken in.
    fn headers(&mut self) -> Result<Vec<FoundHeader>, OpenSetError> {
        let all: Vec<SegmentId> = (0..self.set.segments()).map(SegmentId::new).collect();
        let mut headers = Vec::with_capacity(all.len());
        for some in all.chunks(HEADERS_AT_ONCE) {
            let pages = self.read(some.iter().map(|segment| (*segment, 0, 1)))?;
            for (segment, page) in some.iter().zip(pages) {
                let header = SegmentHeader::decode(&page.data);
                let home = |header: &SegmentHeader| self.set.home(*segment, header.home.generation);
                headers.push(match header.filter(|header| header.home == home(header)) {
                    Some(header) => FoundHeader::Whole(header),
                    None if !page.unreadable.is_empty() => FoundHeader::Unreadable,
                    None => FoundHeader::Missing,
                });
            }
        }
        let whole = || headers.iter().map(FoundHeader::whole);
        for (index, header) in whole().enumerate() {
            if header.is_some_and(|header| header.state == SegmentState::Doubtful) {
                self.doubtful.insert(SegmentId::new(index));
            }
        }
        self.segments = whole().map(segment_of).collect();
        self.emptied = whole().flatten().map(|header| header.emptied).max().unwrap_or_default();
        Ok(headers)
    }

    /// Reads runs of pages of segments; pages that cannot be read are noted. Errors: a device is
    /// gone, or refuses to read for another reason than what the pages hold.
    pub(super) fn read(
        &mut self,
        runs: impl IntoIterator<Item = (SegmentId, u32, u32)>,
    ) -> Result<Vec<SegmentBytes>, OpenSetError> {
        let set = self.set;
        let runs: Vec<_> = runs.into_iter().collect();
        let range = |(segment, page, pages): &(SegmentId, u32, u32)| {
            let start = set.page(*segment, *page);
            (start.file, start.offset, *pages as usize * PAGE)
        };
        let ranges: Vec<_> = runs.iter().map(range).collect();
        let found = batch::read_pages(self.io, &ranges).map_err(|(index, error)| {
            let (device, offset) = (set.device(runs[index].0), ranges[index].1);
            OpenSetError::Unreadable(UnreadablePage { device, offset, error })
        })?;
        let mut segments = Vec::with_capacity(found.len());
        for ((segment, first, _), read) in runs.into_iter().zip(found) {
            let mut unreadable = Vec::new();
            for (start, error) in read.unreadable {
                let page = first + (start / PAGE) as u32;
                let offset = set.page(segment, page).offset;
                let found = UnreadablePage { device: set.device(segment), offset, error };
                let is_known = |known: &UnreadablePage| {
                    (known.device, known.offset) == (found.device, found.offset)
                };
                if !self.unreadable.iter().any(is_known) {
                    self.unreadable.push(found);
                }
                self.bad_segments.insert(segment);
                unreadable.push(page);
            }
            segments.push(SegmentBytes { data: read.data, unreadable });
        }
        Ok(segments)
    }

    /// Takes in the segments that have footers; returns the others.
    fn sealed(&mut self, some: &[SegmentId]) -> Result<Vec<SegmentId>, OpenSetError> {
        let page = self.set.footer_page();
        let first = self.read(some.iter().map(|id| (*id, page, 1)))?;
        let length = |page: &SegmentBytes| {
            let pages = Footer::pages_at(&page.data)? as u32;
            (pages <= self.set.footer_pages()).then_some(pages)
        };
        let lengths: Vec<u32> = first.iter().map(|page| length(page).unwrap_or_default()).collect();
        let runs = some.iter().zip(&lengths).map(|(id, pages)| (*id, page, *pages));
        let footers = self.read(runs.filter(|(.., pages)| *pages > 0))?;
        let mut footers = footers.into_iter();
        let mut loose = Vec::new();
        for (id, pages) in some.iter().zip(lengths) {
            let home = self.set.home(*id, self.segments[id.index()].generation);
            let bytes = if pages > 0 { footers.next() } else { None };
            let footer = bytes.as_ref().and_then(|bytes| self.footer(&bytes.data));
            let damaged = bytes.is_some_and(|bytes| bytes.unreadable.is_empty());
            let damaged = damaged && footer.is_none();
            match footer.filter(|footer| footer.home == home) {
                Some(mut footer) => {
                    if self.doubtful.contains(id) {
                        footer.records.iter_mut().for_each(doubt);
                    }
                    self.take(*id, &footer);
                }
                None => {
                    // A footer of another generation is whole: it was read as none.
                    self.damaged_footers.extend(damaged.then_some(*id));
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
        let pages = self.read([(id, 0, self.set.footer_page())])?;
        let Some(bytes) = pages.into_iter().next() else { return Ok(()) };
        let generation = self.segments[id.index()].generation;
        let mut last = 0;
        for (header, mut records, whole) in self.groups_in(id, Some(generation), &bytes) {
            if header.number <= last {
                continue;
            }
            last = header.number;
            if self.doubtful.contains(&id) {
                records.iter_mut().for_each(doubt);
            }
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
        // Each such page hides one group at most.
        let mut hidden = self.hiding.len() as u64;
        let mut is_void = false;
        let mut loose = std::mem::take(&mut self.ended);
        let (mut void_groups, mut void) = (0, BTreeMap::<SegmentId, Vec<u32>>::new());
        for (number, group) in std::mem::take(&mut self.loose) {
            let missing = number.saturating_sub(last_group + 1);
            is_void |= number > self.durable && (!group.whole || missing > hidden);
            if is_void {
                void_groups += 1;
                void.entry(group.segment).or_default().push(group.page);
                continue;
            }
            hidden -= missing;
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
        let hides = |id: SegmentId| self.hiding.iter().any(|(segment, _)| *segment == id);
        let is_missing = |id: &&SegmentId| lost_groups > 0 || void.contains_key(id) || hides(**id);
        let footers = self.damaged_footers.len();
        let damaged_footers = self.damaged_footers.iter().filter(is_missing).count();
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
            hides_groups: !self.hiding.is_empty(),
            unreadable: self.unreadable,
            bad_segments: self.bad_segments,
            damaged_footers: damaged_footers as u64,
            torn_footers: (footers - damaged_footers) as u64,
            damaged_headers: self.damaged_headers,
            doubtful: self.doubtful,
        }
    }
}

/// The records of a group with their pages, and whether all of their content is there that can be
/// read. What cannot be read was not torn by a loss of power: it counts as damaged content.
pub(super) fn placed(
    header: &GroupHeader,
    records: &[LogRecord],
    bytes: &SegmentBytes,
) -> (Vec<FooterRecord>, bool) {
    let mut page = header.page + 1;
    let mut whole = true;
    let place = |record: &LogRecord| {
        let Some(checksum) = record.kind.checksum() else {
            return FooterRecord { record: *record, page: 0 };
        };
        let (first, end) = (page, page + header.block_pages);
        let content = &bytes.data[first as usize * PAGE..end as usize * PAGE];
        let is_known = matches!(record.kind, LogRecordKind::Damaged { .. });
        let is_damaged = is_known || bytes.misses(first..end);
        whole &= is_damaged || data_checksum(record.volume, record.number, content) == checksum;
        page = end;
        FooterRecord { record: *record, page: first }
    };
    let placed = records.iter().map(place).collect();
    (placed, whole)
}
