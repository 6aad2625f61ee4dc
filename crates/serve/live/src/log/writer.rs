//! The log as its owner drives it: entries in, events out.
//!
//! For: appending, reading, syncing and emptying segments through [`Io`]. Must never know: which
//! blocks are wanted, policies, clients. Units: blocks, numbers of groups. The owner says which
//! content has died; a segment without live content can be emptied. A stream has a segment of its
//! own that is being filled, so that content of one kind lies together.

use super::events::{Appended, LogError, LogEvent};
use super::failure::LogFailure;
use super::flight::{Flight, Flying};
use super::format::{Footer, PAGE, SegmentHeader, SegmentState, Version, VolumeId};
use super::group::LogEntry;
use super::heads::{SegmentLimits, SegmentRecords, StreamHeads};
use super::segments::{Segment, SegmentUse, Segments};
use super::set::{DeviceSet, Place, SegmentId, WritePoint};
use super::syncs::{SyncedGroups, Syncs};
use super::tokens::{LogPurpose, LogTokens};
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

/// A log on a set of devices.
pub struct Log {
    pub(super) set: DeviceSet,
    settings: LogSettings,
    pub(super) segments: Segments,
    pub(super) heads: StreamHeads,
    pub(super) flight: Flight,
    pub(super) syncs: Syncs,
    /// Segments that are full, with what their footers will hold.
    pub(super) full: Vec<(SegmentId, SegmentRecords)>,
    /// Segments whose records are read, by callers.
    record_reads: Vec<(SegmentId, u64)>,
    /// Memory for blocks that are read.
    blocks: SpareBuffers,
    pub(super) failure: LogFailure,
    pub(super) tokens: LogTokens,
    /// Blocks that were written and not moved, as far as the owner has said so.
    pub(super) clock: u64,
}

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
        let heads = StreamHeads::new(set.pools(), settings.streams);
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
            failure: LogFailure::default(),
            tokens: LogTokens::new(namespace),
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
        if let Some(error) = self.failure.error() {
            return Err(LogError::Failed(error));
        }
        let point = match self.provide_group(io, (point, cleaning), &entry) {
            Err(LogError::Full) if cleaning => self.provide_elsewhere(io, point.pool, &entry)?,
            provided => provided.map(|()| point)?,
        };
        let index = self.heads.place(point);
        let Some(head) = self.heads.get_mut(index) else { return Err(LogError::Full) };
        let appended = head.append(block, version, entry);
        let (placed, group) = appended.ok_or(LogError::Full)?;
        let segment = head.segment();
        let checksum = placed.record.kind.checksum();
        self.segments.note_entry(segment, version, checksum.is_some());
        let checksum = checksum.unwrap_or_default();
        let place = self.set.place(segment, placed.page);
        Ok(Appended { place, group, checksum })
    }

    /// Sees to an open group at a point in which the entry fits.
    pub(super) fn provide_group(
        &mut self,
        io: &mut impl Io,
        (point, cleaning): (WritePoint, bool),
        entry: &LogEntry<'_>,
    ) -> Result<(), LogError> {
        let index = self.heads.place(point);
        if self.heads.get(index).is_some_and(|head| head.fits(entry)) {
            return Ok(());
        }
        self.close_group(io, index);
        let limits = SegmentLimits {
            footer_page: self.set.footer_page(),
            max_records: self.set.max_records(),
            block_pages: self.set.block_pages(),
        };
        if self.heads.get(index).is_some_and(|head| head.is_full(&limits)) {
            self.close_segment(index);
        }
        if self.heads.get(index).is_none() {
            let spare = if cleaning { 0 } else { self.settings.spare_segments };
            if self.segments.free(point.pool) <= spare {
                return Err(LogError::Full);
            }
            let segment = self.segments.begin(point, self.clock).ok_or(LogError::Full)?;
            self.heads.begin(index, segment);
        }
        if let Some(head) = self.heads.get_mut(index) {
            let generation = self.segments.get(head.segment()).generation;
            let home = self.set.home(head.segment(), generation);
            let max_pages = 2 + self.settings.group_blocks * limits.block_pages;
            let memory = self.flight.memory(head.pages(max_pages, &limits) as usize * PAGE);
            head.open_group((self.flight.begin(), home), &limits, memory);
        }
        Ok(())
    }

    /// Hands the open group of a head to its device.
    pub(super) fn close_group(&mut self, io: &mut impl Io, index: usize) {
        let stream = self.heads.stream(index) as u32;
        let Some(head) = self.heads.get_mut(index) else { return };
        let Some((first_page, group)) = head.close_group() else { return };
        let (segment, number) = (head.segment(), group.number());
        let header = (stream, self.segments.emptied());
        let (memory, records) = group.finish(self.flight.durable(), header);
        head.note_closed(number, records);
        let memory = Arc::new(memory);
        self.segments.note_group(segment, number);
        let page = self.set.page(segment, first_page);
        let op = IoOp::Write { file: page.file, offset: page.offset, buffer: memory.clone() };
        self.flight.launch(Flying { number, segment, first_page, memory, done: false });
        io.submit(self.tokens.token(LogPurpose::Group(number)), op);
    }

    /// Hands all open groups to their devices.
    pub fn commit(&mut self, io: &mut impl Io) {
        (0..self.heads.count()).for_each(|head| self.close_group(io, head));
    }

    /// Everything appended so far shall be durable; [`LogEvent::Synced`] says when it is.
    pub fn sync(&mut self, io: &mut impl Io, caller: u64) {
        self.commit(io);
        self.syncs.wait(self.flight.last(), caller);
    }

    /// The content of a block that is not on its device yet.
    pub fn content(&self, place: Place) -> Option<&[u8]> {
        let (segment, page) = self.set.locate(place);
        let open = self.heads.content(segment, page);
        open.or_else(|| self.flight.content(segment, page, self.set.block_pages()))
    }

    /// Reads a block from its device; [`LogEvent::Read`] brings it.
    pub fn read(&mut self, io: &mut impl Io, place: Place, caller: u64) {
        let (segment, page) = self.set.locate(place);
        let start = self.set.page(segment, page);
        let buffer = self.blocks.take(self.set.block_bytes());
        let op = IoOp::Read { file: start.file, offset: start.offset, buffer };
        io.submit(self.tokens.token(LogPurpose::Read(caller)), op);
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
        io.submit(self.tokens.token(LogPurpose::Records(segment)), op);
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
        io.submit(self.tokens.token(LogPurpose::Emptied(segment)), op);
    }

    /// Whether an operation that is done is one of the log's.
    pub fn owns(&self, token: Token) -> bool {
        self.tokens.owns(token)
    }

    /// An operation of the log is done.
    pub fn on_done(&mut self, io: &mut impl Io, done: Done, events: &mut Vec<LogEvent>) {
        let Some(purpose) = self.tokens.purpose(done.token) else { return };
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
        if let Some(error) = self.failure.error() {
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
            io.submit(self.tokens.token(LogPurpose::Sync(device)), IoOp::Sync { file });
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
        synced: Option<SyncedGroups>,
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
}
