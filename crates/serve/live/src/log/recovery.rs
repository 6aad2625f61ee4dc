//! Recovery: what is in the log after a stop of any kind, the newest content of each block, and
//! segments that can be appended to again.
//!
//! All groups up to the highest number that any structure calls durable count. Of the others those
//! count that follow without a gap; each must be there with all its content. What lies behind the
//! gap is void, unless a page that cannot be read may have held what is missing: a group that was
//! made durable behind it must not go with it. Reading writes nothing; `settle` ends what was
//! begun, before anything is appended. A group that was durable and is in no segment is lost: a
//! device did not keep what it had synced, or the group was damaged. A page that cannot be read
//! counts as damaged: all others are read.

use super::devices::{
    DevicePage, DeviceSet, OpenSet, OpenSetError, Place, SegmentId, rewrite_both,
};
use super::format::{
    Footer, FooterRecord, GroupHeader, Home, LAST_COUNTS, LogRecord, LogRecordKind, PAGE,
    SegmentHeader, SegmentState, Version, VolumeId, data_checksum,
};
use super::writer::{Segment, SegmentRecords, SegmentUse, Segments};
use crate::io::{Buffer, FileId, Io, IoError, IoOp, Output, batch};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
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
struct SegmentBytes {
    /// From the first page that was asked for on; zeroes where a page cannot be read.
    data: Buffer,
    /// The pages that cannot be read, counted in the segment, in order.
    unreadable: Vec<u32>,
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
    set: DeviceSet,
    /// The segments; those without a footer stand as begun.
    pub segments: Vec<Segment>,
    /// The records that count of segments without a footer.
    loose: BTreeMap<SegmentId, SegmentRecords>,
    /// The number of the last group that counts.
    pub last_group: u64,
    /// The number of the last decision that a record speaks of.
    pub last_decision: u64,
    /// The newest content of each block that is cached, oldest first.
    pub blocks: Vec<RecoveredBlock>,
    /// Groups that were found and do not count: they follow a gap.
    pub void_groups: u64,
    /// The pages of them in each segment that has some.
    void: BTreeMap<SegmentId, Vec<u32>>,
    /// Groups that were durable and are not there, as far as what is there proves it.
    pub lost_groups: u64,
    /// Groups may be gone that were durable, and nothing proves or refutes it: a page cannot be
    /// read where one may have begun, or the header of a segment is gone. As with groups that are
    /// lost, volumes may hold older content.
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
    /// Headers of segments that are damaged or gone: dirty content of these segments counts as
    /// damaged.
    pub damaged_headers: u64,
    /// The segments whose headers are damaged, or were once.
    doubtful: BTreeSet<SegmentId>,
}

/// A group of a segment without a footer.
#[derive(Clone, Debug)]
struct LooseGroup {
    segment: SegmentId,
    records: Vec<FooterRecord>,
    /// All of its content is there.
    whole: bool,
    /// Its first page.
    page: u32,
}

/// What is known while segments are read.
struct SegmentReading<'a, I> {
    io: &'a mut I,
    set: &'a DeviceSet,
    segments: Vec<Segment>,
    index: RecordIndex,
    loose: BTreeMap<u64, LooseGroup>,
    /// What segments hold that get a footer, besides loose groups.
    ended: BTreeMap<SegmentId, SegmentRecords>,
    /// Groups in segments with footers.
    sealed_groups: Vec<u64>,
    /// Groups up to this number may have stood in segments that were emptied.
    emptied: u64,
    /// The highest number that any structure calls durable.
    durable: u64,
    /// Segments whose footers are there and damaged.
    damaged_footers: Vec<SegmentId>,
    damaged_headers: u64,
    /// Pages of segments that cannot be read and where a group may begin.
    hiding: BTreeSet<(SegmentId, u32)>,
    /// Segments whose headers are gone, with any number of groups.
    gone: BTreeSet<SegmentId>,
    unreadable: Vec<UnreadablePage>,
    bad_segments: BTreeSet<SegmentId>,
    /// Segments whose headers are damaged, or were once.
    doubtful: BTreeSet<SegmentId>,
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
        gone: BTreeSet::new(),
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
enum FoundHeader {
    /// It is whole, of this set, and stands where it says.
    Whole(SegmentHeader),
    /// There is none, or it is damaged.
    Missing,
    /// Its page cannot be read.
    Unreadable,
}

impl FoundHeader {
    /// The header, if it is whole.
    fn whole(&self) -> Option<&SegmentHeader> {
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

    /// Marks the set if content that was durable may be gone: its volumes may hold older content.
    /// To be called before [`FoundLog::settle`], which leaves nothing that proves it. Errors: a
    /// device fails.
    pub fn mark_lost(&self, io: &mut impl Io, open: &mut OpenSet) -> Result<(), OpenSetError> {
        if !self.has_lost() || open.superblock.has_lost {
            return Ok(());
        }
        open.superblock.has_lost = true;
        rewrite_both(io, open)
    }

    /// Ends what was begun: segments without a footer get one with the records that count, before
    /// anything is appended. It can be cut short at any point and done again, and ends the same.
    /// Errors: a device fails.
    pub fn settle(mut self, io: &mut impl Io) -> Result<RecoveredLog, OpenSetError> {
        self.sync_all(io)?;
        self.write_ends(io)?;
        self.free_dead(io)?;
        self.raise_free(io)?;
        let generations = self.segments.iter().map(|found| found.generation);
        let mut segments = Segments::new(generations, self.last_group);
        for (index, found) in self.segments.iter().enumerate() {
            segments.restore(SegmentId::new(index), *found);
        }
        let FoundLog { last_group, last_decision, blocks, void_groups, .. } = self;
        Ok(RecoveredLog { segments, last_group, last_decision, blocks, void_groups })
    }

    /// Makes what was found durable: after a stop of the program alone it may not be, and what is
    /// written from now on says that it is. Errors: a device fails.
    fn sync_all(&self, io: &mut impl Io) -> Result<(), OpenSetError> {
        let syncs = self.set.files().iter().map(|file| IoOp::Sync { file: *file }).collect();
        let mut ended = batch::run(io, syncs).into_iter().enumerate();
        let failed = |(device, result): (usize, Result<Output, IoError>)| match result {
            Ok(_) => Ok(()),
            Err(error) => Err(OpenSetError::Io { device, error }),
        };
        ended.try_for_each(failed)
    }

    /// The header page of a segment of which nothing counts.
    fn free_header(&self, id: SegmentId) -> PieceToWrite {
        self.header(id, SegmentState::Free)
    }

    fn header(&self, id: SegmentId, state: SegmentState) -> PieceToWrite {
        let Segment { generation, stream, .. } = self.segments[id.index()];
        let home = self.set.home(id, generation);
        let header = SegmentHeader { home, state, stream, emptied: self.last_group };
        let DevicePage { file, offset } = self.set.page(id, 0);
        (file, offset, Buffer::padded(&header.encode()))
    }

    /// Writes pages of segments and makes them durable, device by device. Errors: a device fails.
    fn write(
        &self,
        io: &mut impl Io,
        pieces: impl IntoIterator<Item = (SegmentId, PieceToWrite)>,
    ) -> Result<(), OpenSetError> {
        let mut by_device: BTreeMap<usize, Vec<PieceToWrite>> = BTreeMap::new();
        for (id, piece) in pieces {
            by_device.entry(self.set.device(id)).or_default().push(piece);
        }
        for (device, pieces) in by_device {
            batch::write(io, pieces).map_err(|error| OpenSetError::Io { device, error })?;
        }
        Ok(())
    }

    /// Frees segments of which nothing counts. None of them needs another, so that any part of them
    /// may be freed when power is lost. Each that is void lets others be.
    fn free_dead(&mut self, io: &mut impl Io) -> Result<(), OpenSetError> {
        loop {
            let dead = self.dead();
            if dead.is_empty() {
                return Ok(());
            }
            self.write(io, dead.iter().map(|id| (*id, self.free_header(*id))))?;
            for id in dead {
                let segment = &mut self.segments[id.index()];
                segment.usage = SegmentUse::Free;
                segment.oldest = Version(u64::MAX);
                segment.notes = (0, Version::default());
            }
        }
    }

    /// Segments of which nothing counts: no content is live, and no other segment holds content
    /// that a record of it takes away.
    fn dead(&self) -> Vec<SegmentId> {
        let all = || self.segments.iter().enumerate();
        let mut oldest: Vec<(Version, usize)> =
            all().map(|(index, segment)| (segment.oldest, index)).collect();
        oldest.sort_unstable();
        let besides = |index: usize| oldest.iter().find(|(_, other)| *other != index);
        let is_dead = |(index, segment): &(usize, &Segment)| {
            let (notes, newest_note) = segment.notes;
            let is_sealed = segment.usage == SegmentUse::Sealed && segment.live == 0;
            let needed = || besides(*index).is_some_and(|(oldest, _)| *oldest <= newest_note);
            is_sealed && !(notes > 0 && needed())
        };
        all().filter(is_dead).map(|(index, _)| SegmentId::new(index)).collect()
    }

    /// Free segments get a generation that was never used: one may have been begun without its
    /// header being there, and its groups would count when the generation is used again.
    fn raise_free(&mut self, io: &mut impl Io) -> Result<(), OpenSetError> {
        let mut headers = Vec::new();
        for index in 0..self.segments.len() {
            if self.segments[index].usage == SegmentUse::Free {
                self.segments[index].generation += 1;
                let id = SegmentId::new(index);
                headers.push((id, self.free_header(id)));
            }
        }
        self.write(io, headers)
    }

    /// Segments without a footer get one; those without a group that counts become free. Headers
    /// go last: until then groups must be found again as void, or as doubtful. Void groups
    /// are cut off first: their numbers are given again, and they must not be found
    /// when the footer is damaged later.
    fn write_ends(&mut self, io: &mut impl Io) -> Result<(), OpenSetError> {
        let (mut cuts, mut footers, mut headers) = (Vec::new(), Vec::new(), Vec::new());
        let doubtful = std::mem::take(&mut self.doubtful);
        for index in 0..self.segments.len() {
            let Segment { generation, usage, .. } = self.segments[index];
            if usage != SegmentUse::Begun {
                continue;
            }
            let id = SegmentId::new(index);
            let home = self.set.home(id, generation);
            for page in self.void.remove(&id).unwrap_or_default() {
                let DevicePage { file, offset } = self.set.page(id, page);
                cuts.push((id, (file, offset, Buffer::zeroed(PAGE))));
            }
            self.segments[index].usage = if let Some(ended) = self.loose.remove(&id) {
                let SegmentRecords { groups, records } = ended;
                let footer = Footer { home, groups, records };
                let DevicePage { file, offset } = self.set.page(id, self.set.footer_page());
                footers.push((id, (file, offset, Buffer::padded(&footer.encode()))));
                if doubtful.contains(&id) {
                    headers.push((id, self.header(id, SegmentState::Doubtful)));
                }
                SegmentUse::Sealed
            } else {
                headers.push((id, self.free_header(id)));
                SegmentUse::Free
            };
        }
        self.write(io, cuts)?;
        self.write(io, footers)?;
        self.write(io, headers)
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
        // Only a segment whose groups are durable is emptied. The group behind them may have been
        // written before they were, and be the only other one: nothing else says that they were.
        self.durable = self.emptied;
        Ok(headers)
    }

    /// Reads runs of pages of segments; pages that cannot be read are noted. Errors: a device is
    /// gone, or refuses to read for another reason than what the pages hold.
    fn read(
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
    fn footer(&self, bytes: &[u8]) -> Option<Footer> {
        let sound = |footer: &Footer| footer.records.iter().all(|placed| self.set.holds(placed));
        Footer::decode(bytes).filter(sound)
    }

    fn take(&mut self, id: SegmentId, footer: &Footer) {
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

    /// Groups that were durable and are in no segment.
    fn missing_groups(&mut self) -> u64 {
        if self.durable <= self.emptied {
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
        let missing_groups = self.missing_groups();
        // A damaged header may have said that the missing groups were emptied: then none is proven
        // to be lost.
        let lost_groups = if self.damaged_headers == 0 { missing_groups } else { 0 };
        let hides_groups =
            !self.hiding.is_empty() || !self.gone.is_empty() || missing_groups > lost_groups;
        let mut last_group = self.durable;
        // An unreadable page hides one group at most, a segment one per page.
        let in_segments = self.gone.len() as u64 * u64::from(self.set.segment_pages());
        let mut hidden = self.hiding.len() as u64 + in_segments;
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
        let hides = |id: SegmentId| {
            self.gone.contains(&id) || self.hiding.iter().any(|(segment, _)| *segment == id)
        };
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
            hides_groups,
            unreadable: self.unreadable,
            bad_segments: self.bad_segments,
            damaged_footers: damaged_footers as u64,
            torn_footers: (footers - damaged_footers) as u64,
            damaged_headers: self.damaged_headers,
            doubtful: self.doubtful,
        }
    }

    /// Reads segments whose headers are damaged. Their footers and groups name the segment and its
    /// generation, too. Whether the segment was emptied is lost with the header, and newer records
    /// may have been dropped since. So dirty content counts as damaged, that it be neither lost in
    /// silence nor read where it may be too old, and clean content as gone; the other records are
    /// true for ever. The header that is written in its place says so until the segment is emptied.
    ///
    /// A loss of power damages no header: it stands in one sector. Nor does it take one away once
    /// a group was written, because the first start makes all headers durable before. So a device
    /// lost what it had synced, and the newest groups of the segment may be gone with the header.
    /// Errors: a device fails.
    fn doubtful(&mut self, headers: &[FoundHeader]) -> Result<(), OpenSetError> {
        let whole = || headers.iter().filter_map(FoundHeader::whole);
        let newest = whole().map(|header| header.home.generation).max();
        let can_read = |header: &FoundHeader| !matches!(header, FoundHeader::Unreadable);
        // Where no segment has a header, none was written: the set was formatted and never opened.
        if newest.is_none() && headers.iter().all(can_read) {
            return Ok(());
        }
        let is_used = |header: &SegmentHeader| header.state != SegmentState::Free;
        let has_groups = whole().any(|header| is_used(header) || header.emptied > 0);
        let damaged = headers.iter().enumerate().filter(|(_, header)| header.whole().is_none());
        for (index, header) in damaged {
            let id = SegmentId::new(index);
            // A generation that the segment has not had, if nothing in it can be read.
            self.segments[index].generation = newest.unwrap_or_default();
            let pages = self.read([(id, 0, self.set.segment_pages())])?;
            let Some(bytes) = pages.first() else { continue };
            let found = self.take_doubtful(id, bytes);
            let is_expected = has_groups && can_read(header);
            self.damaged_headers += u64::from(found.is_some() || is_expected);
            // The first group of a generation follows the header: where an older one stands, a
            // newer generation may have begun.
            if found == Some(false) || found.is_none() && is_expected {
                self.gone.insert(id);
            }
        }
        Ok(())
    }

    /// Takes in what a segment without a header holds; returns whether its first group is there,
    /// and nothing if no group is.
    fn take_doubtful(&mut self, id: SegmentId, bytes: &SegmentBytes) -> Option<bool> {
        let own = |home: &Home| *home == self.set.home(id, home.generation);
        let footer = bytes.data.get(self.set.footer_page() as usize * PAGE..);
        let footer = footer.and_then(|bytes| self.footer(bytes)).filter(|footer| own(&footer.home));
        let hidden_before = self.hiding.clone();
        let groups = self.groups_in(id, None, bytes);
        let of_groups = groups.iter().map(|(header, ..)| header.home.generation).max();
        let of_footer = footer.as_ref().map(|footer| footer.home.generation);
        let generation = of_groups.max(of_footer)?;
        let is_first = |group: &GroupHeader| group.page == 1 && group.home.generation == generation;
        let has_first = groups.iter().any(|(header, ..)| is_first(header));
        if of_footer == Some(generation) {
            // The footer names all groups: none is hidden.
            self.hiding = hidden_before;
        }
        let segment = &mut self.segments[id.index()];
        (segment.usage, segment.generation) = (SegmentUse::Begun, generation);
        self.doubtful.insert(id);
        if let Some(mut footer) = footer.filter(|footer| footer.home.generation == generation) {
            footer.records.iter_mut().for_each(doubt);
            self.take(id, &footer);
            self.segments[id.index()].usage = SegmentUse::Begun;
            let Footer { groups, records, .. } = footer;
            self.ended.insert(id, SegmentRecords { groups, records });
            return Some(has_first);
        }
        for (header, mut records, whole) in self.groups_in(id, Some(generation), bytes) {
            self.durable = self.durable.max(header.durable);
            records.iter_mut().for_each(doubt);
            let page = header.page;
            let found = LooseGroup { segment: id, records, whole, page };
            self.loose.entry(header.number).or_insert(found);
        }
        Some(has_first)
    }

    /// The groups of a generation that a segment holds, or of any, wherever they stand. Each begins
    /// where the one before it ends: if that page cannot be read, a group may be hidden there.
    fn groups_in(
        &mut self,
        id: SegmentId,
        generation: Option<u64>,
        bytes: &SegmentBytes,
    ) -> Vec<(GroupHeader, Vec<FooterRecord>, bool)> {
        let (mut found, mut page, end) = (Vec::new(), 1, self.set.footer_page());
        let mut next = page;
        while page < end {
            let start = page as usize * PAGE;
            let descriptor = &bytes.data[start..start + PAGE];
            let group = GroupHeader::decode(descriptor).filter(|(header, records)| {
                header.home == self.set.home(id, header.home.generation)
                    && generation.is_none_or(|own| own == header.home.generation)
                    && header.page == page
                    && header.block_pages == self.set.block_pages()
                    && header.pages(records) <= end - page
            });
            if page == next && bytes.unreadable.contains(&page) {
                self.hiding.insert((id, page));
            }
            page += match group {
                Some((header, records)) => {
                    let (records_with_pages, whole) = placed(&header, &records, bytes);
                    found.push((header, records_with_pages, whole));
                    next = page + header.pages(&records);
                    header.pages(&records)
                }
                None => 1,
            };
        }
        found
    }
}

/// The records of a group with their pages, and whether all of their content is there that can be
/// read. What cannot be read was not torn by a loss of power: it counts as damaged content.
fn placed(
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

/// What a record of a doubtful segment says.
fn doubt(placed: &mut FooterRecord) {
    match placed.record.kind {
        LogRecordKind::Dirty { checksum } => {
            placed.record.kind = LogRecordKind::Damaged { checksum }
        }
        LogRecordKind::Clean { .. } => {
            (placed.record.kind, placed.page) = (LogRecordKind::Gone { blocks: 1 }, 0)
        }
        LogRecordKind::Damaged { .. }
        | LogRecordKind::Gone { .. }
        | LogRecordKind::Cleaned { .. } => {}
    }
}

/// The newest content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredBlock {
    /// The volume.
    pub volume: VolumeId,
    /// Its number on it.
    pub number: u64,
    /// The version of the content.
    pub version: Version,
    /// Where it lies.
    pub place: Place,
    /// Its checksum.
    pub checksum: u32,
    /// The backing device has older content.
    pub dirty: bool,
    /// The log says that the content is damaged, or may be too old: it must not be read. Only dirty
    /// content is.
    pub damaged: bool,
}

/// A record about a range of blocks.
#[derive(Clone, Copy, Debug)]
struct RangeNote {
    volume: VolumeId,
    start: u64,
    end: u64,
    version: Version,
    gone: bool,
}

/// The newest version of each block, from records in any order. Content counts if no newer record
/// takes it away. It is clean if it was written as such, or if the backing device has that version.
#[derive(Clone, Debug, Default)]
pub struct RecordIndex {
    contents: Vec<RecoveredBlock>,
    ranges: Vec<RangeNote>,
    last_decision: u64,
}

impl RecordIndex {
    /// Notes a record, whose content lies at `place`.
    pub fn note(&mut self, record: LogRecord, place: Place) {
        let LogRecord { volume, number, version, kind } = record;
        self.last_decision = self.last_decision.max(version.decision());
        let Some(checksum) = kind.checksum() else {
            let Range { start, end } = record.blocks();
            let gone = matches!(kind, LogRecordKind::Gone { .. });
            self.ranges.push(RangeNote { volume, start, end, version, gone });
            return;
        };
        let dirty = !matches!(kind, LogRecordKind::Clean { .. });
        let damaged = matches!(kind, LogRecordKind::Damaged { .. });
        let found = RecoveredBlock { volume, number, version, place, checksum, dirty, damaged };
        self.contents.push(found);
    }

    /// The number of the last decision that a record speaks of.
    pub fn last_decision(&self) -> u64 {
        self.last_decision
    }

    /// The blocks whose content counts, oldest version first.
    pub fn into_blocks(self) -> Vec<RecoveredBlock> {
        let RecordIndex { contents: mut blocks, mut ranges, .. } = self;
        // The newest of each block first, of equal ones one that is not damaged. Sorting once is
        // faster than a table with a line of the processor's cache per block.
        blocks.sort_unstable_by_key(|block| {
            (block.volume, block.number, Reverse(block.version), block.damaged, block.place)
        });
        blocks.dedup_by_key(|block| (block.volume, block.number));
        ranges.sort_unstable_by_key(|range| (range.volume, range.start));
        let mut ranges = ranges.into_iter().peekable();
        // Ranges that began at or before the block at hand: the newest of each kind on top.
        let mut open = [BinaryHeap::new(), BinaryHeap::new()];
        blocks.retain_mut(|block| {
            let here = (block.volume, block.number);
            while let Some(range) = ranges.next_if(|range| (range.volume, range.start) <= here) {
                let end = (range.volume, range.end);
                open[usize::from(range.gone)].push((range.version, end));
            }
            let newest = open.each_mut().map(|heap| {
                while heap.peek().is_some_and(|(_, end)| *end <= here) {
                    heap.pop();
                }
                heap.peek().map(|(version, _)| *version)
            });
            let [cleaned, gone] = newest.map(|newest| newest >= Some(block.version));
            block.dirty &= !cleaned;
            !gone && (block.dirty || !block.damaged)
        });
        blocks.sort_unstable_by_key(|block| (block.version, block.volume, block.number));
        blocks
    }
}

/// What was found, and can be gone on with.
#[derive(Clone, Debug)]
pub struct RecoveredLog {
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

/// Something to be written, and where.
type PieceToWrite = (FileId, u64, Buffer);

/// Bytes of content that are read at once.
const CHUNK_BYTES: usize = 16 << 20;

/// Blocks of a volume that lie one behind the other.
pub type BlockRun = (VolumeId, Range<u64>);

/// Where a volume lies, outside the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackingFile {
    /// Its backing device.
    pub file: FileId,
    /// Its size: of a block that goes beyond, only what lies before it is written.
    pub bytes: u64,
}

/// What became of dirty blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenBack {
    /// In each run every dirty block was written back; at most 2^32 - 1 blocks each. One record
    /// per run says so: a log that is full has space for few.
    pub runs: Vec<BlockRun>,
    /// Blocks that were not: their content is damaged, or their volume has no backing device.
    pub damaged: Vec<RecoveredBlock>,
}

impl WrittenBack {
    /// Takes the next block, in the order of volumes and numbers.
    fn note(&mut self, block: &RecoveredBlock, written: bool, joins: bool) {
        if !written {
            return self.damaged.push(*block);
        }
        let end = block.number + 1;
        match self.runs.last_mut() {
            Some((volume, run))
                if joins && *volume == block.volume && end - run.start <= u64::from(u32::MAX) =>
            {
                run.end = end;
            }
            _ => self.runs.push((block.volume, block.number..end)),
        }
    }
}

/// Blocks whose content is read at once.
pub fn chunk_blocks(set: &DeviceSet) -> usize {
    (CHUNK_BYTES / set.block_bytes()).max(1)
}

/// The content of some blocks, in their order; none where it is damaged or cannot be read.
pub fn contents(
    io: &mut impl Io,
    set: &DeviceSet,
    blocks: &[RecoveredBlock],
) -> Vec<Option<Buffer>> {
    let range = |block: &RecoveredBlock| {
        let (segment, page) = set.locate(block.place);
        let start = set.page(segment, page);
        (start.file, start.offset, set.block_bytes())
    };
    let read = batch::read(io, blocks.iter().map(range));
    let whole = |(block, read): (&RecoveredBlock, Result<Buffer, _>)| {
        let sum = |data: &Buffer| data_checksum(block.volume, block.number, data);
        read.ok().filter(|data| !block.damaged && sum(data) == block.checksum)
    };
    blocks.iter().zip(read).map(whole).collect()
}

/// Writes dirty blocks to the backing devices of their volumes and makes that durable, in the order
/// of volumes and numbers. Errors: a backing device's.
pub fn write_back(
    io: &mut impl Io,
    set: &DeviceSet,
    mut blocks: Vec<RecoveredBlock>,
    backing: impl Fn(VolumeId) -> Option<BackingFile>,
) -> Result<WrittenBack, IoError> {
    blocks.sort_unstable_by_key(|block| (block.volume, block.number));
    let (mut written_back, mut joins) = (WrittenBack::default(), false);
    for some in blocks.chunks(chunk_blocks(set)) {
        let mut pieces = Vec::new();
        for (block, data) in some.iter().zip(contents(io, set, some)) {
            let piece = data.zip(backing(block.volume));
            written_back.note(block, piece.is_some(), joins);
            joins = piece.is_some();
            let offset = block.number.saturating_mul(set.block_bytes() as u64);
            if let Some((mut data, BackingFile { file, bytes })) = piece {
                data.truncate(bytes.saturating_sub(offset) as usize);
                pieces.push((file, offset, data));
            }
        }
        batch::write(io, pieces)?;
    }
    Ok(written_back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    /// What a slow reading gives: each block looks at all records.
    fn slow(records: &[LogRecord]) -> Vec<RecoveredBlock> {
        let mut index: Vec<RecoveredBlock> = Vec::new();
        for (place, record) in records.iter().enumerate() {
            let Some(checksum) = record.kind.checksum() else { continue };
            let of_block = |other: &&LogRecord| {
                let end = other.number + u64::from(other.kind.blocks());
                other.volume == record.volume && (other.number..end).contains(&record.number)
            };
            let mut later = records.iter().filter(of_block);
            let superseded = later.any(|other| match other.kind {
                LogRecordKind::Cleaned { .. } => false,
                LogRecordKind::Gone { .. } => other.version >= record.version,
                _ => other.version > record.version,
            });
            let mut cleaned = records.iter().filter(of_block);
            let cleaned = cleaned.any(|other| {
                matches!(other.kind, LogRecordKind::Cleaned { .. })
                    && other.version >= record.version
            });
            if !superseded {
                let LogRecord { volume, number, version, kind } = *record;
                let dirty = matches!(kind, LogRecordKind::Dirty { .. }) && !cleaned;
                let place = Place(place as u32);
                let damaged = matches!(kind, LogRecordKind::Damaged { .. });
                if damaged && cleaned {
                    continue;
                }
                let dirty = dirty || damaged;
                let block =
                    RecoveredBlock { volume, number, version, place, checksum, dirty, damaged };
                index.push(block);
            }
        }
        index.sort_by_key(|block| (block.version, block.volume, block.number));
        index
    }

    #[test]
    fn the_newest_content_is_found_as_by_a_slow_reading() {
        let mut rng = Seed(5).rng();
        for _ in 0..300 {
            let records: Vec<LogRecord> = (0..rng.below(40) + 1)
                .map(|place| {
                    let blocks = rng.below(5) as u32 + 1;
                    let kind = match rng.below(6) {
                        0 => LogRecordKind::Gone { blocks },
                        1 => LogRecordKind::Cleaned { blocks },
                        2 => LogRecordKind::Clean { checksum: place as u32 },
                        3 => LogRecordKind::Damaged { checksum: place as u32 },
                        _ => LogRecordKind::Dirty { checksum: place as u32 },
                    };
                    let version = Version(rng.below(1000) * 64 + place);
                    let (volume, number) = (VolumeId(rng.below(2) as u32), rng.below(8));
                    LogRecord { volume, number, version, kind }
                })
                .collect();
            let mut index = RecordIndex::default();
            let noted = records.iter().enumerate();
            noted.for_each(|(place, record)| index.note(*record, Place(place as u32)));
            assert_eq!(index.into_blocks(), slow(&records), "{records:?}");
        }
    }

    fn block(volume: u32, number: u64) -> RecoveredBlock {
        let (volume, version, place) = (VolumeId(volume), Version(0), Place(0));
        RecoveredBlock { volume, number, version, place, checksum: 0, dirty: true, damaged: false }
    }

    #[test]
    fn runs_end_at_damaged_blocks_at_volumes_and_at_what_a_record_can_count() {
        let far = 40 + u64::from(u32::MAX);
        let all = [
            (block(1, 3), true),
            (block(1, 9), true),
            (block(1, 10), false),
            (block(1, 11), true),
            (block(2, 12), true),
            (block(2, 40), true),
            (block(3, 40), true),
            (block(3, far - 1), true),
            (block(3, far), true),
        ];
        let (mut found, mut joins) = (WrittenBack::default(), false);
        for (block, written) in &all {
            found.note(block, *written, joins);
            joins = *written;
        }
        let run = |volume: u32, blocks: Range<u64>| (VolumeId(volume), blocks);
        let runs =
            [run(1, 3..10), run(1, 11..12), run(2, 12..41), run(3, 40..far), run(3, far..far + 1)];
        assert_eq!((&found.runs[..], &found.damaged[..]), (&runs[..], &[block(1, 10)][..]));
    }
}
