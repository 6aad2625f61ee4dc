//! The log as its owner drives it: entries in, events out.
//!
//! For: appending, reading, syncing and emptying segments through [`Io`]. Must never know: which
//! blocks are wanted, policies, clients. Units: blocks, numbers of groups. The owner says which
//! content has died; a segment without live content can be emptied. A stream has a segment of its
//! own that is being filled, so that content of one kind lies together.

use super::flight::{Flight, Flying};
use super::format::{Footer, FooterRecord, PAGE, SegmentHeader, SegmentState, Version, VolumeId};
use super::group::{LogEntry, OpenGroup};
use super::segments::{Segment, SegmentUse, Segments};
use super::set::{DeviceSet, Place, SegmentId, WritePoint};
use super::syncs::Syncs;
use crate::io::{Buffer, Done, Io, IoError, IoOp, Output, SpareBuffers, Token};
use std::sync::Arc;

/// How a log gathers and keeps entries.
#[derive(Clone, Copy, Debug)]
pub struct LogSettings {
    /// Streams.
    pub streams: usize,
    /// Those of them to which requests' blocks may go.
    pub user_streams: usize,
    /// Those of them to which moved blocks may go.
    pub moved_streams: usize,
    /// Most blocks of a group.
    pub group_blocks: u32,
    /// Segments that only cleaning may begin.
    pub spare_segments: usize,
}

/// Why an entry could not be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No segment is free: one must be cleaned first.
    #[error("the cache device is full: no segment is free")]
    Full,
    /// A device has failed; nothing can be appended or made durable any more.
    #[error("the cache device has failed: {0}")]
    Failed(IoError),
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Where its content lies; without content, the start of its group.
    pub place: Place,
    /// The number of its group.
    pub group: u64,
    /// The checksum of its content; 0 without content.
    pub checksum: u32,
}

/// What has happened since the owner last looked.
#[derive(Debug)]
pub enum LogEvent {
    /// All groups up to this number are written.
    Written(u64),
    /// All groups up to this number are durable.
    Durable(u64),
    /// The sync of this caller is over. Errors: a device has failed.
    Synced(u64, Result<(), LogError>),
    /// The read of this caller is over: the content of a block. Errors: the device's.
    Read(u64, Buffer, Result<(), IoError>),
    /// The records of a sealed segment, for this caller. Errors: the device's; a footer that was
    /// damaged counts as one.
    Records(u64, Result<Vec<FooterRecord>, IoError>),
    /// A device has failed: syncs and appends fail from now on.
    Failed(IoError),
}

/// The segment that a stream of a pool fills.
#[derive(Debug)]
pub(super) struct StreamHead {
    pub(super) segment: SegmentId,
    next_page: u32,
    /// The numbers of its groups that were closed, and their records.
    pub(super) ended: SegmentRecords,
    group: Option<OpenGroup>,
}

/// What the footer of a segment will hold.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentRecords {
    pub(super) groups: Vec<u64>,
    pub(super) records: Vec<FooterRecord>,
}

/// What the token of an operation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogPurpose {
    Group(u64),
    Sync(usize),
    Read(u64),
    Records(SegmentId),
    Footer(SegmentId),
    Emptied(SegmentId),
}

/// A log on a set of devices.
pub struct Log {
    pub(super) set: DeviceSet,
    settings: LogSettings,
    pub(super) segments: Segments,
    pub(super) heads: Vec<Option<StreamHead>>,
    pub(super) flight: Flight,
    pub(super) syncs: Syncs,
    /// Segments that are full, with what their footers will hold.
    pub(super) full: Vec<(SegmentId, SegmentRecords)>,
    /// Segments whose records are read, by callers.
    record_reads: Vec<(SegmentId, u64)>,
    /// Memory for blocks that are read.
    blocks: SpareBuffers,
    pub(super) failed: Option<IoError>,
    /// The device of the operation that failed first.
    pub(super) failed_device: Option<usize>,
    namespace: u64,
    /// Blocks that were written and not moved, as far as the owner has said so.
    pub(super) clock: u64,
}

/// Bits of a token that say what it is for.
const PURPOSE_SHIFT: u32 = 52;
/// Bits of a token that belong to the owner.
const NAMESPACE_SHIFT: u32 = 56;
const KEPT_BLOCKS: usize = 256; // Their memory is kept for the next reads.

impl Log {
    /// A log with these segments, whose groups up to `last_group` are durable. The eight highest
    /// bits of its tokens are `namespace`.
    pub fn new(
        set: DeviceSet,
        settings: LogSettings,
        (mut segments, last_group): (Segments, u64),
        namespace: u8,
    ) -> Log {
        let devices = set.files().len();
        let clock = segments.date(set.max_blocks().into());
        segments.divide(set.pool_of_devices());
        let heads = (0..set.pools() * settings.streams).map(|_| None).collect();
        Log {
            set,
            settings,
            segments,
            heads,
            flight: Flight::new(last_group),
            syncs: Syncs::new(devices),
            full: Vec::new(),
            record_reads: Vec::new(),
            blocks: SpareBuffers::new(KEPT_BLOCKS),
            failed: None,
            failed_device: None,
            namespace: u64::from(namespace) << NAMESPACE_SHIFT,
            clock,
        }
    }

    /// The devices.
    pub fn set(&self) -> &DeviceSet {
        &self.set
    }

    /// How it gathers and keeps entries.
    pub fn settings(&self) -> LogSettings {
        self.settings
    }

    /// Whether groups are on their way to the devices.
    pub fn is_writing(&self) -> bool {
        self.flight.is_busy()
    }

    /// The number of the last group that was begun.
    pub fn last_group(&self) -> u64 {
        self.flight.last()
    }

    /// A segment.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        self.segments.get(id)
    }

    /// All segments.
    pub fn segments(&self) -> impl Iterator<Item = (SegmentId, &Segment)> + '_ {
        self.segments.iter()
    }

    /// Segments of a pool that are free.
    pub fn free_segments(&self, pool: usize) -> usize {
        self.segments.free(pool)
    }

    /// Whether a record of that version, which takes content away and stands in `but`, is needed:
    /// content that is not newer could be found in another segment.
    pub fn holds_older(&self, version: Version, but: SegmentId) -> bool {
        self.segments.holds_older(version, but)
    }

    /// All groups up to this number are durable.
    pub fn durable(&self) -> u64 {
        self.flight.durable()
    }

    /// All groups up to this number are written.
    pub fn written(&self) -> u64 {
        self.flight.written()
    }

    /// Appends an entry about a block; `cleaning` may use the spare segments, and joins another
    /// stream where none is free. Errors: no segment has space, a device has failed; nothing is
    /// appended then.
    pub fn append(
        &mut self,
        io: &mut impl Io,
        (point, cleaning): (WritePoint, bool),
        block: (VolumeId, u64),
        version: Version,
        entry: LogEntry<'_>,
    ) -> Result<Appended, LogError> {
        if let Some(error) = self.failed {
            return Err(LogError::Failed(error));
        }
        let point = match self.provide_group(io, (point, cleaning), &entry) {
            Err(LogError::Full) if cleaning => self.provide_elsewhere(io, point.pool, &entry)?,
            provided => provided.map(|()| point)?,
        };
        let index = self.head_of(point);
        let Some(head) = self.heads[index].as_mut() else { return Err(LogError::Full) };
        let Some(group) = head.group.as_mut() else { return Err(LogError::Full) };
        let placed = group.append(block, version, entry);
        let segment = head.segment;
        let checksum = placed.record.kind.checksum();
        self.segments.note_entry(segment, version, checksum.is_some());
        let checksum = checksum.unwrap_or_default();
        let place = self.set.place(segment, placed.page);
        Ok(Appended { place, group: group.number(), checksum })
    }

    /// Sees to an open group at a point in which the entry fits.
    pub(super) fn provide_group(
        &mut self,
        io: &mut impl Io,
        (point, cleaning): (WritePoint, bool),
        entry: &LogEntry<'_>,
    ) -> Result<(), LogError> {
        let index = self.head_of(point);
        let fits = |head: &StreamHead| head.group.as_ref().is_some_and(|group| group.fits(entry));
        if self.heads[index].as_ref().is_some_and(fits) {
            return Ok(());
        }
        self.close_group(io, index);
        let limits = (self.set.footer_page(), self.set.max_records());
        let block_pages = self.set.block_pages();
        let is_full = |head: &StreamHead| {
            head.next_page + 2 + block_pages > limits.0 || head.ended.records.len() >= limits.1
        };
        if self.heads[index].as_ref().is_some_and(is_full) {
            self.close_segment(index);
        }
        if self.heads[index].is_none() {
            let spare = if cleaning { 0 } else { self.settings.spare_segments };
            if self.segments.free(point.pool) <= spare {
                return Err(LogError::Full);
            }
            let segment = self.segments.begin(point, self.clock).ok_or(LogError::Full)?;
            let ended = SegmentRecords::default();
            self.heads[index] = Some(StreamHead { segment, next_page: 0, ended, group: None });
        }
        if let Some(head) = &mut self.heads[index] {
            let generation = self.segments.get(head.segment).generation;
            let home = self.set.home(head.segment, generation);
            let max_pages = 2 + self.settings.group_blocks * block_pages;
            let pages = max_pages.min(limits.0 - head.next_page);
            let memory = self.flight.memory(pages as usize * PAGE);
            let number = self.flight.begin();
            let records = limits.1 - head.ended.records.len();
            let home = (home, head.next_page);
            head.group = Some(OpenGroup::new(number, home, (block_pages, records), memory));
        }
        Ok(())
    }

    /// Hands the open group of a head to its device.
    fn close_group(&mut self, io: &mut impl Io, index: usize) {
        let Some(head) = self.heads[index].as_mut() else { return };
        let Some(group) = head.group.take() else { return };
        let (segment, first_page) = (head.segment, head.next_page);
        let number = group.number();
        head.next_page = group.end_page();
        let of_pool = index % self.settings.streams;
        let header = (of_pool as u32, self.segments.emptied());
        let (memory, records) = group.finish(self.flight.durable(), header);
        head.ended.groups.push(number);
        head.ended.records.extend(records);
        let memory = Arc::new(memory);
        self.segments.note_group(segment, number);
        let page = self.set.page(segment, first_page);
        let op = IoOp::Write { file: page.file, offset: page.offset, buffer: memory.clone() };
        self.flight.launch(Flying { number, segment, first_page, memory, done: false });
        io.submit(self.token(LogPurpose::Group(number)), op);
    }

    /// Hands all open groups to their devices.
    pub fn commit(&mut self, io: &mut impl Io) {
        (0..self.heads.len()).for_each(|head| self.close_group(io, head));
    }

    /// Everything appended so far shall be durable; [`LogEvent::Synced`] says when it is.
    pub fn sync(&mut self, io: &mut impl Io, caller: u64) {
        self.commit(io);
        self.syncs.wait(self.flight.last(), caller);
    }

    /// The content of a block that is not on its device yet.
    pub fn content(&self, place: Place) -> Option<&[u8]> {
        let (segment, page) = self.set.locate(place);
        let open = self.heads.iter().flatten().filter(|head| head.segment == segment);
        let mut open = open.filter_map(|head| head.group.as_ref()?.content(page));
        open.next().or_else(|| self.flight.content(segment, page, self.set.block_pages()))
    }

    /// Reads a block from its device; [`LogEvent::Read`] brings it.
    pub fn read(&mut self, io: &mut impl Io, place: Place, caller: u64) {
        let (segment, page) = self.set.locate(place);
        let start = self.set.page(segment, page);
        let buffer = self.blocks.take(self.set.block_bytes());
        let op = IoOp::Read { file: start.file, offset: start.offset, buffer };
        io.submit(self.token(LogPurpose::Read(caller)), op);
    }

    /// Memory of a block is used again.
    pub fn give_back(&mut self, block: Buffer) {
        self.blocks.give_back(block);
    }

    /// Reads the records of a sealed segment; [`LogEvent::Records`] brings them.
    pub fn read_records(&mut self, io: &mut impl Io, segment: SegmentId, caller: u64) {
        let start = self.set.page(segment, self.set.footer_page());
        let buffer = Buffer::zeroed(self.set.footer_pages() as usize * PAGE);
        let op = IoOp::Read { file: start.file, offset: start.offset, buffer };
        self.record_reads.push((segment, caller));
        io.submit(self.token(LogPurpose::Records(segment)), op);
    }

    /// The content at a place is no longer the newest of its block.
    pub fn note_dead(&mut self, place: Place) {
        self.segments.note_dead(self.set.locate(place).0);
    }

    /// Nothing in a sealed segment is needed any more: what was needed is durable elsewhere. It is
    /// free when that is durable, too.
    pub fn empty(&mut self, io: &mut impl Io, segment: SegmentId) {
        debug_assert_eq!(self.segments.get(segment).usage, SegmentUse::Sealed);
        let generation = self.segments.get(segment).generation;
        let home = self.set.home(segment, generation);
        self.segments.set_usage(segment, SegmentUse::Emptied);
        let (state, emptied) = (SegmentState::Free, self.segments.emptied());
        let header = SegmentHeader { home, state, stream: 0, emptied };
        let page = self.set.page(segment, 0);
        let buffer = Arc::new(Buffer::padded(&header.encode()));
        let op = IoOp::Write { file: page.file, offset: page.offset, buffer };
        io.submit(self.token(LogPurpose::Emptied(segment)), op);
    }

    /// Whether an operation that is done is one of the log's.
    pub fn owns(&self, token: Token) -> bool {
        token.0 >> NAMESPACE_SHIFT << NAMESPACE_SHIFT == self.namespace
    }

    /// An operation of the log is done.
    pub fn on_done(&mut self, io: &mut impl Io, done: Done, events: &mut Vec<LogEvent>) {
        let Some(purpose) = self.purpose(done.token) else { return };
        match (purpose, done.output) {
            (LogPurpose::Read(caller), Output::Buffer(buffer, _)) => {
                let result = done.error.map_or(Ok(()), Err);
                return events.push(LogEvent::Read(caller, buffer, result));
            }
            (LogPurpose::Records(segment), Output::Buffer(buffer, _)) => {
                return self.records_are_read(segment, (&buffer, done.error), events);
            }
            _ => {}
        }
        if let Some(error) = done.error {
            return self.operation_failed(purpose, error, events);
        }
        match purpose {
            LogPurpose::Group(number) => self.group_is_written(number, events),
            LogPurpose::Footer(segment) => self.segments.set_usage(segment, SegmentUse::Sealed),
            LogPurpose::Emptied(segment) => {
                self.syncs.note_emptied(self.set.device(segment), segment);
            }
            LogPurpose::Sync(_) => {
                let synced = self.syncs.end_device();
                self.round_is_over(io, synced, events);
            }
            LogPurpose::Read(_) | LogPurpose::Records(_) => {}
        }
    }

    /// A footer counts if it is whole, and the segment's own.
    fn records_are_read(
        &mut self,
        segment: SegmentId,
        (bytes, error): (&[u8], Option<IoError>),
        events: &mut Vec<LogEvent>,
    ) {
        let mut reads = self.record_reads.extract_if(.., |(other, _)| *other == segment);
        let Some((_, caller)) = reads.next() else { return };
        drop(reads);
        let home = self.set.home(segment, self.segments.get(segment).generation);
        let sound = |footer: &Footer| {
            error.is_none()
                && footer.home == home
                && footer.records.iter().all(|placed| self.set.holds(placed))
        };
        let footer = Footer::decode(bytes).filter(sound);
        let records = footer.ok_or(error.unwrap_or(IoError::IO)).map(|footer| footer.records);
        events.push(LogEvent::Records(caller, records));
    }

    /// Begins what is due: a round of syncs. To be called after the owner has taken the events.
    pub fn advance(&mut self, io: &mut impl Io, events: &mut Vec<LogEvent>) {
        if let Some(error) = self.failed {
            return self.fail(error, events);
        }
        let served = self.syncs.take_served(self.flight.durable());
        events.extend(served.into_iter().map(|caller| LogEvent::Synced(caller, Ok(()))));
        self.seal_durable(io); // What was durable before it was full.
        let last_group = |(segment, _): &(SegmentId, _)| self.segments.get(*segment).last_group;
        let also = self.full.iter().map(last_group).min();
        let also = also.filter(|group| *group > self.flight.durable());
        let devices = self.syncs.begin(self.flight.written(), also);
        for device in devices {
            let file = self.set.files()[device];
            io.submit(self.token(LogPurpose::Sync(device)), IoOp::Sync { file });
        }
        let synced = self.syncs.end_round();
        self.round_is_over(io, synced, events);
    }

    fn group_is_written(&mut self, number: u64, events: &mut Vec<LogEvent>) {
        let before = self.flight.written();
        if let Some(segment) = self.flight.segment_of(number) {
            self.syncs.note_write(self.set.device(segment));
        }
        self.flight.land(number);
        if self.flight.written() > before {
            events.push(LogEvent::Written(self.flight.written()));
        }
    }

    fn round_is_over(
        &mut self,
        io: &mut impl Io,
        synced: Option<super::syncs::SyncedGroups>,
        events: &mut Vec<LogEvent>,
    ) {
        let Some(synced) = synced else { return };
        self.flight.settle(synced.group);
        for segment in synced.emptied {
            self.segments.set_usage(segment, SegmentUse::Free);
        }
        events.push(LogEvent::Durable(synced.group));
        let served = self.syncs.take_served(synced.group);
        events.extend(served.into_iter().map(|caller| LogEvent::Synced(caller, Ok(()))));
        self.seal_durable(io);
    }

    pub(super) fn token(&self, purpose: LogPurpose) -> Token {
        let (code, value) = match purpose {
            LogPurpose::Group(number) => (0_u64, number),
            LogPurpose::Sync(device) => (1, device as u64),
            LogPurpose::Read(caller) => (2, caller),
            LogPurpose::Footer(segment) => (3, u64::from(segment.0)),
            LogPurpose::Emptied(segment) => (4, u64::from(segment.0)),
            LogPurpose::Records(segment) => (5, u64::from(segment.0)),
        };
        let value = value & ((1 << PURPOSE_SHIFT) - 1);
        Token(self.namespace | code << PURPOSE_SHIFT | value)
    }

    fn purpose(&self, token: Token) -> Option<LogPurpose> {
        let value = token.0 & ((1 << PURPOSE_SHIFT) - 1);
        let segment = SegmentId(value as u32);
        match token.0 >> PURPOSE_SHIFT & 0xf {
            0 => Some(LogPurpose::Group(value)),
            1 => Some(LogPurpose::Sync(value as usize)),
            2 => Some(LogPurpose::Read(value)),
            3 => Some(LogPurpose::Footer(segment)),
            4 => Some(LogPurpose::Emptied(segment)),
            5 => Some(LogPurpose::Records(segment)),
            _ => None,
        }
    }
}
