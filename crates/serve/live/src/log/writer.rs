//! The log as its owner drives it: entries in, events out.
//!
//! An entry goes to the open group of its stream ([`OpenGroup`]), in the segment that this stream
//! fills ([`StreamHead`]). A group that is full, or that a request waits for, is written by one
//! write ([`InFlightGroups`]). It counts as written when all groups before it are, and as durable
//! when a round of syncs of all devices has covered it ([`Syncs`]). The footer of a full segment
//! follows when all of it is durable, so that recovery reads it at once. The owner says which
//! content has died; a segment without live content can be emptied ([`Segments`]).

use super::devices::{DeviceSet, Place, SegmentId, WritePoint};
use super::format::{
    Footer, FooterRecord, GROUP_RECORDS, GroupHeader, Home, LogRecord, LogRecordKind, PAGE,
    SegmentHeader, SegmentState, Version, VolumeId, data_checksum,
};
use crate::io::token::{Submitter, purpose};
use crate::io::{Buffer, Done, IoError, IoOp, Output, SpareBuffers, Submit, Token};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

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
    /// A device has failed: syncs and appends fail from now on.
    Failed(IoError),
}

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
    set: DeviceSet,
    settings: LogSettings,
    segments: Segments,
    heads: StreamHeads,
    in_flight: InFlightGroups,
    syncs: Syncs,
    /// Segments that are full, with what their footers will hold.
    full: Vec<(SegmentId, SegmentRecords)>,
    /// Memory for blocks that are read.
    blocks: SpareBuffers,
    failure: LogFailure,
    /// Blocks that were written and not moved, as far as the owner has said so.
    clock: u64,
}

const KEPT_BLOCKS: usize = 256; // Their memory is kept for the next reads.

impl Log {
    /// A log with these segments, whose groups up to `last_group` are durable. Its operations are
    /// those of [`Submitter::Log`].
    pub fn new(
        set: DeviceSet,
        settings: LogSettings,
        mut segments: Segments,
        last_group: u64,
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
            in_flight: InFlightGroups::new(last_group),
            syncs: Syncs::new(devices),
            full: Vec::new(),
            blocks: SpareBuffers::new(KEPT_BLOCKS),
            failure: LogFailure::default(),
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
        self.in_flight.is_busy()
    }

    /// The number of the last group that was begun.
    pub fn last_group(&self) -> u64 {
        self.in_flight.last()
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
        self.in_flight.durable()
    }

    /// All groups up to this number are written.
    pub fn written(&self) -> u64 {
        self.in_flight.written()
    }

    /// Appends an entry about a block; `cleaning` may use the spare segments, and joins another
    /// stream where none is free. Errors: no segment has space, a device has failed; nothing is
    /// appended then.
    pub fn append(
        &mut self,
        io: &mut impl Submit,
        point: WritePoint,
        cleaning: bool,
        block: (VolumeId, u64),
        version: Version,
        entry: LogEntry<'_>,
    ) -> Result<Appended, LogError> {
        if let Some(error) = self.failure.error() {
            return Err(LogError::Failed(error));
        }
        let point = match self.provide_group(io, point, cleaning, &entry) {
            Err(LogError::Full) if cleaning => self.provide_elsewhere(io, point.pool, &entry)?,
            provided => provided.map(|()| point)?,
        };
        let index = self.heads.place(point);
        let Some(head) = self.heads.get_mut(index) else { return Err(LogError::Full) };
        let (volume, number) = block;
        let appended = head.append(volume, number, version, entry);
        let (placed, group) = appended.ok_or(LogError::Full)?;
        let segment = head.segment();
        let checksum = placed.record.kind.checksum();
        self.segments.note_entry(segment, version, checksum.is_some());
        let checksum = checksum.unwrap_or_default();
        let place = self.set.place(segment, placed.page);
        Ok(Appended { place, group, checksum })
    }

    /// Sees to an open group at a point in which the entry fits.
    fn provide_group(
        &mut self,
        io: &mut impl Submit,
        point: WritePoint,
        cleaning: bool,
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
            let memory = self.in_flight.memory(head.pages(max_pages, &limits) as usize * PAGE);
            head.open_group(self.in_flight.begin(), home, &limits, memory);
        }
        Ok(())
    }

    /// Hands the open group of a head to its device.
    fn close_group(&mut self, io: &mut impl Submit, index: usize) {
        let stream = self.heads.stream(index) as u32;
        let Some(head) = self.heads.get_mut(index) else { return };
        let Some((first_page, group)) = head.close_group() else { return };
        let (segment, number) = (head.segment(), group.number());
        let (durable, emptied) = (self.in_flight.durable(), self.segments.emptied());
        let (memory, records) = group.finish(durable, stream, emptied);
        head.note_closed(number, records);
        let memory = Arc::new(memory);
        self.segments.note_group(segment, number);
        let page = self.set.page(segment, first_page);
        let op = IoOp::Write { file: page.file, offset: page.offset, buffer: memory.clone() };
        self.in_flight.submit(InFlightGroup { number, segment, first_page, memory, done: false });
        io.submit(LogPurpose::Group(number).token(), op);
    }

    /// Hands all open groups to their devices.
    pub fn commit(&mut self, io: &mut impl Submit) {
        (0..self.heads.count()).for_each(|head| self.close_group(io, head));
    }

    /// Everything appended so far shall be durable; [`LogEvent::Synced`] says when it is.
    pub fn sync(&mut self, io: &mut impl Submit, caller: u64) {
        self.commit(io);
        self.syncs.wait(self.in_flight.last(), caller);
    }

    /// The content of a block that is not on its device yet.
    pub fn content(&self, place: Place) -> Option<&[u8]> {
        let (segment, page) = self.set.locate(place);
        let open = self.heads.content(segment, page);
        open.or_else(|| self.in_flight.content(segment, page, self.set.block_pages()))
    }

    /// Reads a block from its device; [`LogEvent::Read`] brings it.
    pub fn read(&mut self, io: &mut impl Submit, place: Place, caller: u64) {
        let (segment, page) = self.set.locate(place);
        let start = self.set.page(segment, page);
        let buffer = self.blocks.take(self.set.block_bytes());
        let op = IoOp::Read { file: start.file, offset: start.offset, buffer };
        io.submit(LogPurpose::Read(caller).token(), op);
    }

    /// Memory of a block, with any content.
    pub fn spare_block(&mut self) -> Buffer {
        self.blocks.take(self.set.block_bytes())
    }

    /// Memory of a block is used again.
    pub fn give_back(&mut self, block: Buffer) {
        self.blocks.give_back(block);
    }

    /// Reads the footer of a sealed segment; [`LogEvent::Read`] brings it, for [`Log::records`].
    pub fn read_footer(&mut self, io: &mut impl Submit, segment: SegmentId, caller: u64) {
        let start = self.set.page(segment, self.set.footer_page());
        let buffer = Buffer::zeroed(self.set.footer_pages() as usize * PAGE);
        let op = IoOp::Read { file: start.file, offset: start.offset, buffer };
        io.submit(LogPurpose::Read(caller).token(), op);
    }

    /// The records of a sealed segment, if these bytes are its own footer, and whole.
    pub fn records(&self, segment: SegmentId, bytes: &[u8]) -> Option<Vec<FooterRecord>> {
        let home = self.set.home(segment, self.segments.get(segment).generation);
        let is_sound = |footer: &Footer| {
            footer.home == home && footer.records.iter().all(|placed| self.set.holds(placed))
        };
        Footer::decode(bytes).filter(is_sound).map(|footer| footer.records)
    }

    /// The content at a place is no longer the newest of its block.
    pub fn note_dead(&mut self, place: Place) {
        self.segments.note_dead(self.set.locate(place).0);
    }

    /// Nothing in a sealed segment is needed any more: what was needed is durable elsewhere. It is
    /// free when that is durable, too.
    pub fn empty(&mut self, io: &mut impl Submit, segment: SegmentId) {
        debug_assert_eq!(self.segments.get(segment).usage, SegmentUse::Sealed);
        let generation = self.segments.get(segment).generation;
        let home = self.set.home(segment, generation);
        self.segments.set_usage(segment, SegmentUse::Emptied);
        let (state, emptied) = (SegmentState::Free, self.segments.emptied());
        let header = SegmentHeader { home, state, stream: 0, emptied };
        let page = self.set.page(segment, 0);
        let buffer = Arc::new(Buffer::padded(&header.encode()));
        let op = IoOp::Write { file: page.file, offset: page.offset, buffer };
        io.submit(LogPurpose::Emptied(segment).token(), op);
    }

    /// An operation of the log is done.
    pub fn on_done(&mut self, io: &mut impl Submit, done: Done, events: &mut Vec<LogEvent>) {
        let Some(purpose) = LogPurpose::of(done.token) else { return };
        if let LogPurpose::Read(caller) = purpose
            && let Output::Buffer(buffer, _) = done.output
        {
            let result = done.error.map_or(Ok(()), Err);
            return events.push(LogEvent::Read(caller, buffer, result));
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
            LogPurpose::Read(_) => {}
        }
    }

    /// Begins what is due: a round of syncs. To be called after the owner has taken the events.
    pub fn advance(&mut self, io: &mut impl Submit, events: &mut Vec<LogEvent>) {
        if let Some(error) = self.failure.error() {
            return self.fail(error, events);
        }
        let served = self.syncs.take_served(self.in_flight.durable());
        events.extend(served.into_iter().map(|caller| LogEvent::Synced(caller, Ok(()))));
        self.seal_durable(io); // What was durable before it was full.
        let last_group = |(segment, _): &(SegmentId, _)| self.segments.get(*segment).last_group;
        let also = self.full.iter().map(last_group).min();
        let also = also.filter(|group| *group > self.in_flight.durable());
        let devices = self.syncs.begin(self.in_flight.written(), also);
        for device in devices {
            let file = self.set.files()[device];
            io.submit(LogPurpose::Sync(device).token(), IoOp::Sync { file });
        }
        let synced = self.syncs.end_round();
        self.round_is_over(io, synced, events);
    }

    fn group_is_written(&mut self, number: u64, events: &mut Vec<LogEvent>) {
        let before = self.in_flight.written();
        if let Some(segment) = self.in_flight.segment_of(number) {
            self.syncs.note_write(self.set.device(segment));
        }
        self.in_flight.complete(number);
        if self.in_flight.written() > before {
            events.push(LogEvent::Written(self.in_flight.written()));
        }
    }

    fn round_is_over(
        &mut self,
        io: &mut impl Submit,
        synced: Option<SyncedGroups>,
        events: &mut Vec<LogEvent>,
    ) {
        let Some(synced) = synced else { return };
        self.in_flight.note_durable(synced.group);
        for segment in synced.emptied {
            self.segments.set_usage(segment, SegmentUse::Free);
        }
        events.push(LogEvent::Durable(synced.group));
        let served = self.syncs.take_served(synced.group);
        events.extend(served.into_iter().map(|caller| LogEvent::Synced(caller, Ok(()))));
        self.seal_durable(io);
    }

    /// The clock by which segments age: blocks that were written. Those that a start has found
    /// count as if each segment had been filled.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// A block is about to be written, not moved.
    pub fn tick(&mut self) {
        self.clock += 1;
    }

    /// As [`Log::provide_group`], in any stream of the pool whose segment has space. A record
    /// without content may stand anywhere: where its pool has no space, it goes to the pool with
    /// the most free segments.
    fn provide_elsewhere(
        &mut self,
        io: &mut impl Submit,
        pool: usize,
        entry: &LogEntry<'_>,
    ) -> Result<WritePoint, LogError> {
        let mut pools = vec![pool];
        if matches!(entry, LogEntry::Note(_)) {
            let mut others: Vec<usize> =
                (0..self.set().pools()).filter(|other| *other != pool).collect();
            others.sort_by_key(|other| std::cmp::Reverse(self.free_segments(*other)));
            pools.extend(others);
        }
        for other in pools {
            for stream in (0..self.settings().streams).rev() {
                let point = WritePoint { pool: other, stream };
                let may_begin = other != pool || self.heads.get(self.heads.place(point)).is_some();
                if may_begin && self.provide_group(io, point, true, entry).is_ok() {
                    return Ok(point);
                }
            }
        }
        Err(LogError::Full)
    }

    /// Hands all open groups to their devices and ends all segments that are being filled, full or
    /// not. The log may go on.
    pub fn close(&mut self, io: &mut impl Submit) {
        self.commit(io);
        (0..self.heads.count()).for_each(|head| self.close_segment(head));
    }

    /// Ends a segment that is being filled, so that it can be cleaned.
    pub fn end_segment(&mut self, io: &mut impl Submit, segment: SegmentId) {
        for place in 0..self.heads.count() {
            if self.heads.get(place).is_some_and(|head| head.segment() == segment) {
                self.close_group(io, place);
                self.close_segment(place);
            }
        }
    }

    /// Whether footers of full segments are not written yet.
    pub fn is_closing(&self) -> bool {
        self.segments.iter().any(|(_, segment)| segment.usage == SegmentUse::Full)
    }

    /// Whether groups can go to a segment that was begun.
    pub fn has_begun(&self) -> bool {
        self.heads.has_begun()
    }

    /// The segment of a head is full.
    fn close_segment(&mut self, head: usize) {
        if let Some((segment, ended)) = self.heads.end(head) {
            self.segments.note_full(segment, self.clock);
            self.full.push((segment, ended));
        }
    }

    /// Writes the footers of full segments of which all is durable.
    fn seal_durable(&mut self, io: &mut impl Submit) {
        let (segments, durable) = (&self.segments, self.in_flight.durable());
        let is_due = |(segment, _): &mut (SegmentId, SegmentRecords)| {
            segments.get(*segment).last_group <= durable
        };
        let due: Vec<_> = self.full.extract_if(.., is_due).collect();
        due.into_iter().for_each(|(segment, ended)| self.write_footer(io, segment, ended));
    }

    fn write_footer(&self, io: &mut impl Submit, segment: SegmentId, ended: SegmentRecords) {
        let home = self.set.home(segment, self.segments.get(segment).generation);
        let SegmentRecords { groups, records } = ended;
        let footer = Footer { home, groups, records };
        let page = self.set.page(segment, self.set.footer_page());
        let buffer = Arc::new(Buffer::padded(&footer.encode()));
        let op = IoOp::Write { file: page.file, offset: page.offset, buffer };
        io.submit(LogPurpose::Footer(segment).token(), op);
    }

    /// The device that failed, in the order of the set, if one has.
    pub fn failed_device(&self) -> Option<usize> {
        self.failure.device
    }

    /// A write or a sync has failed.
    fn operation_failed(
        &mut self,
        purpose: LogPurpose,
        error: IoError,
        events: &mut Vec<LogEvent>,
    ) {
        self.failure.blame(self.device_of(purpose));
        self.fail(error, events);
    }

    /// The device of an operation.
    fn device_of(&self, purpose: LogPurpose) -> Option<usize> {
        let segment = match purpose {
            LogPurpose::Sync(device) => return Some(device),
            LogPurpose::Group(number) => self.in_flight.segment_of(number)?,
            LogPurpose::Footer(segment) | LogPurpose::Emptied(segment) => segment,
            LogPurpose::Read(_) => return None,
        };
        Some(self.set.device(segment))
    }

    /// Nothing can be appended or made durable any more: what waits for that waits in vain.
    fn fail(&mut self, error: IoError, events: &mut Vec<LogEvent>) {
        if self.failure.begin(error) {
            events.push(LogEvent::Failed(error));
        }
        let waiters = self.syncs.take_all();
        let failed = |caller| LogEvent::Synced(caller, Err(LogError::Failed(error)));
        events.extend(waiters.into_iter().map(failed));
    }
}

/// The first failure of a log. Content that is on its way then stays in memory, but its groups
/// never count as written.
#[derive(Clone, Copy, Debug, Default)]
struct LogFailure {
    error: Option<IoError>,
    /// The device of the operation that failed first.
    device: Option<usize>,
}

impl LogFailure {
    /// Why nothing can be appended or made durable any more.
    fn error(&self) -> Option<IoError> {
        self.error
    }

    /// An operation has failed, on a device if that is known.
    fn blame(&mut self, device: Option<usize>) {
        self.device = self.device.or(device);
    }

    /// The log has failed; returns whether that is new.
    fn begin(&mut self, error: IoError) -> bool {
        let is_new = self.error.is_none();
        self.error.get_or_insert(error);
        is_new
    }
}

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
struct SegmentLimits {
    /// Where its footer begins.
    footer_page: u32,
    /// Records for which its footer has space.
    max_records: usize,
    /// Pages of a block.
    block_pages: u32,
}

/// The segment that a stream of a pool fills. It has one until that is full; at most one group of
/// it is open.
#[derive(Debug)]
struct StreamHead {
    segment: SegmentId,
    next_page: u32,
    ended: SegmentRecords,
    group: Option<OpenGroup>,
}

impl StreamHead {
    /// The segment.
    fn segment(&self) -> SegmentId {
        self.segment
    }

    /// Whether an entry fits into the open group.
    fn fits(&self, entry: &LogEntry<'_>) -> bool {
        self.group.as_ref().is_some_and(|group| group.fits(entry))
    }

    /// Whether there is no space for another group with a block.
    fn is_full(&self, limits: &SegmentLimits) -> bool {
        self.next_page + 2 + limits.block_pages > limits.footer_page
            || self.ended.records.len() >= limits.max_records
    }

    /// Pages that a group may have, at most `max_pages`.
    fn pages(&self, max_pages: u32, limits: &SegmentLimits) -> u32 {
        max_pages.min(limits.footer_page - self.next_page)
    }

    /// Opens a group of this number.
    fn open_group(&mut self, number: u64, home: Home, limits: &SegmentLimits, memory: Buffer) {
        let records = limits.max_records - self.ended.records.len();
        let (page, block_pages) = (self.next_page, limits.block_pages);
        self.group = Some(OpenGroup::new(number, home, page, block_pages, records, memory));
    }

    /// Appends an entry, which fits, to the open group; returns its record, and the group's number.
    fn append(
        &mut self,
        volume: VolumeId,
        number: u64,
        version: Version,
        entry: LogEntry<'_>,
    ) -> Option<(FooterRecord, u64)> {
        let group = self.group.as_mut()?;
        Some((group.append(volume, number, version, entry), group.number()))
    }

    /// Closes the open group, if there is one; returns its first page, and itself.
    fn close_group(&mut self) -> Option<(u32, OpenGroup)> {
        let group = self.group.take()?;
        Some((std::mem::replace(&mut self.next_page, group.end_page()), group))
    }

    /// The records of a group that was closed.
    fn note_closed(&mut self, number: u64, records: Vec<FooterRecord>) {
        self.ended.groups.push(number);
        self.ended.records.extend(records);
    }
}

/// The heads of all streams, pool by pool.
#[derive(Debug)]
struct StreamHeads {
    list: Vec<Option<StreamHead>>,
    /// Streams of a pool.
    streams: usize,
}

impl StreamHeads {
    /// Heads without segments.
    fn new(pools: usize, streams: usize) -> StreamHeads {
        StreamHeads { list: (0..pools * streams).map(|_| None).collect(), streams }
    }

    /// Heads, those without segments included.
    fn count(&self) -> usize {
        self.list.len()
    }

    /// The place of a point among the heads.
    fn place(&self, point: WritePoint) -> usize {
        point.pool * self.streams + point.stream
    }

    /// The stream of a place, in its pool.
    fn stream(&self, place: usize) -> usize {
        place % self.streams
    }

    /// The head at a place, if it has a segment.
    fn get(&self, place: usize) -> Option<&StreamHead> {
        self.list[place].as_ref()
    }

    /// The same, to change.
    fn get_mut(&mut self, place: usize) -> Option<&mut StreamHead> {
        self.list[place].as_mut()
    }

    /// The head at a place fills another segment from now on.
    fn begin(&mut self, place: usize, segment: SegmentId) {
        let ended = SegmentRecords::default();
        self.list[place] = Some(StreamHead { segment, next_page: 0, ended, group: None });
    }

    /// The segment at a place is full: it, and what its footer will hold.
    fn end(&mut self, place: usize) -> Option<(SegmentId, SegmentRecords)> {
        self.list[place].take().map(|head| (head.segment, head.ended))
    }

    /// Whether a segment was begun.
    fn has_begun(&self) -> bool {
        self.list.iter().any(Option::is_some)
    }

    /// The content of a block in an open group.
    fn content(&self, segment: SegmentId, page: u32) -> Option<&[u8]> {
        let mut open = self.list.iter().flatten().filter(|head| head.segment == segment);
        open.find_map(|head| head.group.as_ref()?.content(page))
    }
}

/// A block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// As long as a block.
    pub data: &'a [u8],
    /// The backing device has older content.
    pub dirty: bool,
    /// It does not fit its checksum.
    pub damaged: bool,
    /// Its checksum, if it is known: content that is moved keeps what it should have.
    pub checksum: Option<u32>,
}

/// What is to be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntry<'a> {
    /// A block's content.
    Content(Content<'a>),
    /// A record without content.
    Note(LogRecordKind),
}

/// A group that is being filled. The place of each block is known when it is appended, because a
/// descriptor is one page.
#[derive(Debug)]
struct OpenGroup {
    number: u64,
    home: Home,
    /// The page of the segment at which its memory begins.
    first_page: u32,
    /// A segment's header goes before it.
    with_header: bool,
    records: Vec<FooterRecord>,
    max_records: usize,
    memory: Buffer,
    pages: u32,
    block_pages: u32,
}

impl OpenGroup {
    /// Group `number` at a page of a segment; at page 0 the segment's header goes first. It may
    /// have `max_records` records; `memory` has room for all that it may hold.
    fn new(
        number: u64,
        home: Home,
        page: u32,
        block_pages: u32,
        max_records: usize,
        memory: Buffer,
    ) -> OpenGroup {
        let with_header = page == 0;
        let pages = 1 + u32::from(with_header);
        let (first_page, records) = (page, Vec::new());
        let max_records = max_records.min(GROUP_RECORDS);
        OpenGroup {
            number,
            home,
            first_page,
            with_header,
            records,
            max_records,
            memory,
            pages,
            block_pages,
        }
    }

    /// Its number.
    fn number(&self) -> u64 {
        self.number
    }

    /// The page behind it.
    fn end_page(&self) -> u32 {
        self.first_page + self.pages
    }

    /// Whether an entry fits: records, and memory for its data.
    fn fits(&self, entry: &LogEntry<'_>) -> bool {
        let pages = match entry {
            LogEntry::Content(_) => self.pages + self.block_pages,
            LogEntry::Note(_) => self.pages,
        };
        self.records.len() < self.max_records && pages as usize * PAGE <= self.memory.len()
    }

    /// Appends an entry, for which there must be room; returns its record, and the page of its data
    /// (0 without data).
    fn append(
        &mut self,
        volume: VolumeId,
        number: u64,
        version: Version,
        entry: LogEntry<'_>,
    ) -> FooterRecord {
        let (kind, page) = match entry {
            LogEntry::Content(Content { data, dirty, damaged, checksum }) => {
                let start = self.pages as usize * PAGE;
                self.memory[start..start + data.len()].copy_from_slice(data);
                let page = self.end_page();
                self.pages += self.block_pages;
                let checksum = checksum.unwrap_or_else(|| data_checksum(volume, number, data));
                let kind = match (damaged, dirty) {
                    (true, _) => LogRecordKind::Damaged { checksum },
                    (false, true) => LogRecordKind::Dirty { checksum },
                    (false, false) => LogRecordKind::Clean { checksum },
                };
                (kind, page)
            }
            LogEntry::Note(kind) => (kind, 0),
        };
        let placed = FooterRecord { record: LogRecord { volume, number, version, kind }, page };
        self.records.push(placed);
        placed
    }

    /// The content of a block at a page of the segment, if it lies here.
    fn content(&self, page: u32) -> Option<&[u8]> {
        let start = page.checked_sub(self.first_page)?;
        let length = self.block_pages as usize * PAGE;
        let inside = start > 0 && page + self.block_pages <= self.end_page();
        let start = start as usize * PAGE;
        inside.then(|| &self.memory[start..start + length])
    }

    /// Ends it: what is written at its first page, and its records. Groups up to `durable` are
    /// durable; groups up to `emptied` may have stood in segments that were emptied.
    fn finish(mut self, durable: u64, stream: u32, emptied: u64) -> (Buffer, Vec<FooterRecord>) {
        let header_pages = u32::from(self.with_header);
        let header = GroupHeader {
            home: self.home,
            page: self.first_page + header_pages,
            records: self.records.len() as u32,
            number: self.number,
            durable,
            block_pages: self.block_pages,
        };
        let records: Vec<LogRecord> = self.records.iter().map(|placed| placed.record).collect();
        if self.with_header {
            let (home, state) = (self.home, SegmentState::Begun);
            let segment = SegmentHeader { home, state, stream, emptied };
            self.memory[..PAGE].copy_from_slice(&segment.encode());
        }
        let start = header_pages as usize * PAGE;
        self.memory[start..start + PAGE].copy_from_slice(&header.encode(&records));
        self.memory.truncate(self.pages as usize * PAGE);
        (self.memory, self.records)
    }
}

/// Groups whose memory is kept for the next.
const KEPT_GROUPS: usize = 8;

/// A group that was handed to its device.
#[derive(Clone, Debug)]
struct InFlightGroup {
    /// Its number.
    number: u64,
    /// Its segment.
    segment: SegmentId,
    /// The page of the segment at which its memory begins.
    first_page: u32,
    /// What is written.
    memory: Arc<Buffer>,
    /// Whether the device has taken it.
    done: bool,
}

/// Groups on their way to the devices, and how far the log is written and durable.
#[derive(Debug)]
struct InFlightGroups {
    /// In the order of their numbers.
    groups: VecDeque<InFlightGroup>,
    /// Memory of groups that are written.
    spare: SpareBuffers,
    begun: u64,
    written: u64,
    durable: u64,
}

impl InFlightGroups {
    /// All groups up to `last` are durable.
    fn new(last: u64) -> InFlightGroups {
        let (groups, spare) = (VecDeque::new(), SpareBuffers::new(KEPT_GROUPS));
        InFlightGroups { groups, spare, begun: last, written: last, durable: last }
    }

    /// The number of a group that begins to be filled.
    fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// The number of the last group that was begun.
    fn last(&self) -> u64 {
        self.begun
    }

    /// Whether devices have groups to write. Some that are written may wait for an earlier group of
    /// another stream, which is still being filled.
    fn is_busy(&self) -> bool {
        self.groups.iter().any(|group| !group.done)
    }

    /// All groups up to this one are written.
    fn written(&self) -> u64 {
        self.written
    }

    /// All groups up to this one are durable.
    fn durable(&self) -> u64 {
        self.durable
    }

    /// A group is handed to its device.
    fn submit(&mut self, group: InFlightGroup) {
        let place = self.groups.partition_point(|other| other.number < group.number);
        self.groups.insert(place, group);
    }

    /// Memory of `bytes` bytes of any content, for a group.
    fn memory(&mut self, bytes: usize) -> Buffer {
        self.spare.take(bytes)
    }

    /// The device has taken a group.
    fn complete(&mut self, number: u64) {
        if let Ok(place) = self.groups.binary_search_by_key(&number, |group| group.number) {
            self.groups[place].done = true;
        }
        while let Some(group) = self.groups.front() {
            if !group.done || group.number != self.written + 1 {
                break;
            }
            self.written += 1;
            let memory = self.groups.pop_front().map(|group| Arc::try_unwrap(group.memory));
            memory.into_iter().flatten().for_each(|memory| self.spare.give_back(memory));
        }
    }

    /// The segment of a group that is under way.
    fn segment_of(&self, number: u64) -> Option<SegmentId> {
        let place = self.groups.binary_search_by_key(&number, |group| group.number).ok()?;
        Some(self.groups[place].segment)
    }

    /// All groups up to `number` are durable.
    fn note_durable(&mut self, number: u64) {
        debug_assert!(number <= self.written, "what is durable was written");
        self.durable = self.durable.max(number);
    }

    /// The content of a block of `pages` pages, if its group is under way.
    fn content(&self, segment: SegmentId, page: u32, pages: u32) -> Option<&[u8]> {
        let start = |group: &InFlightGroup| {
            let end = group.first_page as usize + group.memory.len() / PAGE;
            let inside = group.first_page < page && (page + pages) as usize <= end;
            (group.segment == segment && inside).then(|| (page - group.first_page) as usize * PAGE)
        };
        self.groups.iter().find_map(|group| {
            let start = start(group)?;
            Some(&group.memory[start..start + pages as usize * PAGE])
        })
    }
}

/// A round of syncs under way.
#[derive(Clone, Debug)]
struct SyncRound {
    /// Groups up to this number are durable when it ends.
    covers: u64,
    devices_left: usize,
    /// Segments whose headers say that they are free.
    emptied: Vec<SegmentId>,
}

/// Callers that wait for the log to be durable, and the round of syncs that makes it so: one sync
/// of each device for all of them (group commit). A round covers the groups that were written when
/// it began. One round is under way at a time; what is written meanwhile waits for the next.
#[derive(Clone, Debug)]
struct Syncs {
    /// The group that must be durable, and the name of the caller.
    waiters: Vec<(u64, u64)>,
    round: Option<SyncRound>,
    /// Devices that were written to since their last sync began.
    unsynced: Vec<bool>,
    /// Segments whose headers, which say that they are free, were written since.
    emptied: Vec<SegmentId>,
}

/// What a round has made durable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SyncedGroups {
    /// Groups up to this number.
    group: u64,
    /// Segments that are void.
    emptied: Vec<SegmentId>,
}

impl Syncs {
    /// Of so many devices.
    fn new(devices: usize) -> Syncs {
        let unsynced = vec![false; devices];
        Syncs { waiters: Vec::new(), round: None, unsynced, emptied: Vec::new() }
    }

    /// A device was written to.
    fn note_write(&mut self, device: usize) {
        self.unsynced[device] = true;
    }

    /// The header of a segment was written, which says that it is free.
    fn note_emptied(&mut self, device: usize, segment: SegmentId) {
        self.note_write(device);
        self.emptied.push(segment);
    }

    /// A caller waits until `group` is durable.
    fn wait(&mut self, group: u64, caller: u64) {
        self.waiters.push((group, caller));
    }

    /// Begins a round if one is needed and can help: a caller waits for a written group, `also`
    /// is one, or segments are to become free. Returns the devices to be synced.
    fn begin(&mut self, written: u64, also: Option<u64>) -> Vec<usize> {
        let mut wanted = self.waiters.iter().map(|(group, _)| *group).chain(also);
        let needed = !self.emptied.is_empty() || wanted.any(|group| group <= written);
        if self.round.is_some() || !needed {
            return Vec::new();
        }
        let devices: Vec<usize> =
            (0..self.unsynced.len()).filter(|device| self.unsynced[*device]).collect();
        self.unsynced.fill(false);
        let (devices_left, emptied) = (devices.len(), std::mem::take(&mut self.emptied));
        self.round = Some(SyncRound { covers: written, devices_left, emptied });
        devices
    }

    /// A device was synced; returns what the round has made durable when it was the last.
    fn end_device(&mut self) -> Option<SyncedGroups> {
        if let Some(round) = &mut self.round {
            round.devices_left = round.devices_left.saturating_sub(1);
        }
        self.end_round()
    }

    /// The end of a round, if no device is left: also of one without devices.
    fn end_round(&mut self) -> Option<SyncedGroups> {
        let round = self.round.take_if(|round| round.devices_left == 0)?;
        Some(SyncedGroups { group: round.covers, emptied: round.emptied })
    }

    /// The callers that wait for groups up to `durable`, in the order in which they came.
    fn take_served(&mut self, durable: u64) -> Vec<u64> {
        let served = self.waiters.extract_if(.., |(group, _)| *group <= durable);
        served.map(|(_, caller)| caller).collect()
    }

    /// All callers, which wait in vain.
    fn take_all(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.waiters).into_iter().map(|(_, caller)| caller).collect()
    }
}

/// How far a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentUse {
    /// Nothing in it counts.
    Free,
    /// Groups are appended.
    Begun,
    /// It is full; its footer is not written yet.
    Full,
    /// Its footer is written.
    Sealed,
    /// Nothing in it is needed; that is on its way to the device.
    Emptied,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// How far it is.
    pub usage: SegmentUse,
    /// How often it was begun.
    pub generation: u64,
    /// Blocks whose newest content lies here.
    pub live: u32,
    /// The oldest version of a block's content in it; the greatest number without content.
    pub oldest: Version,
    /// Records without content in it, and the newest version of one.
    pub notes: (u32, Version),
    /// The number of its last group.
    pub last_group: u64,
    /// The stream that fills it.
    pub stream: u32,
    /// The log's clock when it was begun, and when it was full.
    pub times: (u64, u64),
}

impl Segment {
    /// A record without content, of that version, stands in it.
    pub fn add_note(&mut self, version: Version) {
        self.notes = (self.notes.0 + 1, self.notes.1.max(version));
    }
}

/// All segments of a set. One is begun only after everything of its last generation is void for
/// recovery.
#[derive(Clone, Debug)]
pub struct Segments {
    all: Vec<Segment>,
    /// Those that can be begun, by pool of devices.
    free: Vec<BTreeSet<SegmentId>>,
    /// The pool of each device; segments lie on the devices in turn.
    pools: Vec<usize>,
    /// The highest number of a group in a segment that was emptied.
    emptied: u64,
}

/// A version after all others.
const NONE_YET: Version = Version(u64::MAX);

impl Segments {
    /// So many segments, of these generations, all free and in one pool. Groups up to `emptied` may
    /// have stood in segments that were emptied.
    pub fn new(generations: impl IntoIterator<Item = u64>, emptied: u64) -> Segments {
        let fresh = |generation| Segment {
            usage: SegmentUse::Free,
            generation,
            live: 0,
            oldest: NONE_YET,
            notes: (0, Version::default()),
            last_group: 0,
            stream: 0,
            times: (0, 0),
        };
        let all: Vec<Segment> = generations.into_iter().map(fresh).collect();
        let free = vec![(0..all.len()).map(SegmentId::new).collect()];
        Segments { all, free, pools: vec![0], emptied }
    }

    /// Segments are in the pools of their devices from now on.
    pub fn divide(&mut self, pools: &[usize]) {
        self.pools = pools.to_vec();
        let count = pools.iter().max().map_or(1, |last| last + 1);
        let free = std::mem::replace(&mut self.free, vec![BTreeSet::new(); count]);
        for id in free.into_iter().flatten() {
            self.free[self.pools[id.index() % self.pools.len()]].insert(id);
        }
    }

    fn free_beside(&mut self, id: SegmentId) -> &mut BTreeSet<SegmentId> {
        &mut self.free[self.pools[id.index() % self.pools.len()]]
    }

    /// A segment.
    pub fn get(&self, id: SegmentId) -> &Segment {
        &self.all[id.index()]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (SegmentId, &Segment)> + '_ {
        self.all.iter().enumerate().map(|(index, segment)| (SegmentId::new(index), segment))
    }

    /// Groups up to this number may have stood in segments that were emptied.
    pub fn emptied(&self) -> u64 {
        self.emptied
    }

    /// Segments of a pool that can be begun.
    pub fn free(&self, pool: usize) -> usize {
        self.free[pool].len()
    }

    /// Begins the free segment of a pool that was begun least often, of those the lowest, for a
    /// stream.
    pub fn begin(
        &mut self,
        WritePoint { pool, stream }: WritePoint,
        clock: u64,
    ) -> Option<SegmentId> {
        let by_age = |id: &&SegmentId| (self.all[id.index()].generation, **id);
        let id = *self.free[pool].iter().min_by_key(by_age)?;
        self.free[pool].remove(&id);
        let segment = &mut self.all[id.index()];
        *segment = Segment {
            usage: SegmentUse::Begun,
            generation: segment.generation + 1,
            live: 0,
            oldest: NONE_YET,
            notes: (0, Version::default()),
            last_group: 0,
            stream: stream as u32,
            times: (clock, clock),
        };
        Some(id)
    }

    /// A segment as recovery found it.
    pub fn restore(&mut self, id: SegmentId, found: Segment) {
        if found.usage != SegmentUse::Free {
            self.free_beside(id).remove(&id);
        }
        self.all[id.index()] = found;
    }

    /// A segment goes on to its next use; [`Segments::begin`] begins one.
    pub fn set_usage(&mut self, id: SegmentId, usage: SegmentUse) {
        self.all[id.index()].usage = usage;
        if usage == SegmentUse::Emptied {
            self.emptied = self.emptied.max(self.all[id.index()].last_group);
        }
        if usage == SegmentUse::Free {
            self.all[id.index()].live = 0;
            self.all[id.index()].oldest = NONE_YET;
            self.all[id.index()].notes = (0, Version::default());
            self.free_beside(id).insert(id);
        }
    }

    /// A segment is full.
    pub fn note_full(&mut self, id: SegmentId, clock: u64) {
        self.all[id.index()].times.1 = clock;
        self.set_usage(id, SegmentUse::Full);
    }

    /// Segments of which no times are known, after a start: each was filled after those with
    /// earlier groups, by `blocks` writes. Returns the clock behind them.
    pub fn date(&mut self, blocks: u64) -> u64 {
        let used = |segment: &&mut Segment| segment.usage != SegmentUse::Free;
        let mut used: Vec<&mut Segment> = self.all.iter_mut().filter(used).collect();
        used.sort_by_key(|segment| segment.last_group);
        let mut clock = 0;
        for segment in used {
            segment.times = (clock, clock + blocks);
            clock += blocks;
        }
        clock
    }

    /// A record of that version, with content or without, is appended by a group.
    pub fn note_entry(&mut self, id: SegmentId, version: Version, has_data: bool) {
        let segment = &mut self.all[id.index()];
        if has_data {
            segment.live += 1;
            segment.oldest = segment.oldest.min(version);
        } else {
            segment.add_note(version);
        }
    }

    /// A group is appended.
    pub fn note_group(&mut self, id: SegmentId, number: u64) {
        self.all[id.index()].last_group = number;
    }

    /// A block's content in it is no longer the newest.
    pub fn note_dead(&mut self, id: SegmentId) {
        let segment = &mut self.all[id.index()];
        debug_assert!(segment.live > 0, "a block dies once");
        segment.live = segment.live.saturating_sub(1);
    }

    /// Whether a segment besides `but` holds content of `version` or older: only then must a record
    /// of that version, which takes content away, be kept.
    pub fn holds_older(&self, version: Version, but: SegmentId) -> bool {
        self.iter().any(|(id, segment)| id != but && segment.oldest <= version)
    }
}

/// What the token of an operation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogPurpose {
    /// A group is written, of this number.
    Group(u64),
    /// A device is synced.
    Sync(usize),
    /// A block is read, for this caller.
    Read(u64),
    /// The footer of a full segment is written.
    Footer(SegmentId),
    /// The header of a segment is written, which says that it is free.
    Emptied(SegmentId),
}

impl LogPurpose {
    /// The token of an operation for it.
    fn token(self) -> Token {
        let (code, number) = match self {
            LogPurpose::Group(number) => (0, number as usize),
            LogPurpose::Sync(device) => (1, device),
            LogPurpose::Read(caller) => (2, caller as usize),
            LogPurpose::Footer(segment) => (3, segment.index()),
            LogPurpose::Emptied(segment) => (4, segment.index()),
        };
        Submitter::Log.token(code, number)
    }

    /// What a token of the log is for.
    fn of(token: Token) -> Option<LogPurpose> {
        let (code, number) = purpose(token);
        match code {
            0 => Some(LogPurpose::Group(number as u64)),
            1 => Some(LogPurpose::Sync(number)),
            2 => Some(LogPurpose::Read(number as u64)),
            3 => Some(LogPurpose::Footer(SegmentId::new(number))),
            4 => Some(LogPurpose::Emptied(SegmentId::new(number))),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::super::format::SetId;
    use super::*;

    #[test]
    fn the_first_failure_counts() {
        let mut failure = LogFailure::default();
        failure.blame(None);
        assert!(failure.begin(IoError::IO) && !failure.begin(IoError::NO_SPACE));
        failure.blame(Some(2));
        failure.blame(Some(1));
        assert_eq!((failure.error(), failure.device), (Some(IoError::IO), Some(2)));
    }

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
            head.open_group(number, home, &limits, Buffer::zeroed(pages * PAGE));
            assert!(head.fits(&note()));
            let (record, group) = head.append(VolumeId(0), 4, Version(1), note()).unwrap();
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

    fn group(number: u64, first_page: u32, value: u8) -> InFlightGroup {
        let mut memory = Buffer::zeroed(2 * PAGE);
        memory.fill(value);
        let (segment, memory) = (SegmentId(1), Arc::new(memory));
        InFlightGroup { number, segment, first_page, memory, done: false }
    }

    /// The log waited for ever where an earlier group of another stream was not full.
    #[test]
    fn a_group_that_waits_for_an_open_one_keeps_no_device_busy() {
        let mut in_flight = InFlightGroups::new(0);
        assert_eq!([in_flight.begin(), in_flight.begin()], [1, 2]);
        in_flight.submit(group(2, 4, 2));
        assert!(in_flight.is_busy());
        in_flight.complete(2);
        assert!(!in_flight.is_busy(), "group 1 is to be handed over");
    }

    #[test]
    fn a_group_is_written_when_all_before_it_are() {
        let mut in_flight = InFlightGroups::new(10);
        assert_eq!([in_flight.begin(), in_flight.begin(), in_flight.begin()], [11, 12, 13]);
        in_flight.submit(group(12, 4, 2));
        in_flight.submit(group(11, 2, 1));
        in_flight.complete(12);
        assert_eq!((in_flight.written(), in_flight.last()), (10, 13));
        assert!(in_flight.is_busy());
        assert_eq!(in_flight.content(SegmentId(1), 5, 1).map(|data| data[0]), Some(2));
        assert_eq!(in_flight.content(SegmentId(1), 4, 1), None, "a descriptor is no content");
        assert_eq!(in_flight.content(SegmentId(0), 5, 1), None);
        in_flight.complete(11);
        assert_eq!((in_flight.written(), in_flight.durable(), in_flight.groups.len()), (12, 10, 0));
        assert_eq!(in_flight.memory(PAGE)[0], 2, "memory of a group is used again");
        in_flight.note_durable(12);
        assert_eq!(in_flight.durable(), 12);
    }

    #[test]
    fn a_round_covers_what_was_written_when_it_began() {
        let mut syncs = Syncs::new(2);
        syncs.note_write(0);
        syncs.note_write(1);
        syncs.wait(5, 100);
        assert!(syncs.begin(4, None).is_empty(), "group 5 is not written");
        assert_eq!(syncs.begin(5, None), [0, 1]);
        syncs.note_write(1);
        syncs.wait(6, 101);
        assert!(syncs.begin(6, None).is_empty(), "one round at a time");
        assert_eq!(syncs.end_device(), None);
        let synced = SyncedGroups { group: 5, emptied: Vec::new() };
        assert_eq!(syncs.end_device(), Some(synced));
        assert_eq!(syncs.take_served(5), [100]);
        assert_eq!(syncs.begin(6, None), [1]);
        syncs.note_emptied(0, SegmentId(3));
        assert_eq!(syncs.end_device().map(|synced| synced.emptied), Some(Vec::new()));
        assert_eq!(syncs.begin(6, None), [0]);
        assert_eq!(syncs.end_device().map(|synced| synced.emptied), Some(vec![SegmentId(3)]));
        assert_eq!(syncs.take_all(), [101]);
    }

    #[test]
    fn segments_are_begun_in_turn_and_older_content_is_known() {
        let mut segments = Segments::new([0, 0, 4], 0);
        let point = |stream| WritePoint { pool: 0, stream };
        let [a, b] = [0, 1].map(|stream| segments.begin(point(stream), 0).unwrap());
        assert_eq!((a, b, segments.free(0)), (SegmentId(0), SegmentId(1), 1));
        segments.note_entry(a, Version(50), true);
        segments.note_entry(a, Version(40), true);
        assert!(segments.holds_older(Version(41), b));
        assert!(segments.holds_older(Version(40), b), "a record of the same version counts");
        assert!(!segments.holds_older(Version(39), b) && !segments.holds_older(Version(41), a));
        segments.note_entry(b, Version(45), false);
        segments.note_entry(b, Version(44), false);
        assert_eq!((segments.get(b).live, segments.get(b).notes), (0, (2, Version(45))));
        segments.note_dead(a);
        assert_eq!((segments.get(a).live, segments.get(a).generation), (1, 1));
        segments.set_usage(a, SegmentUse::Emptied);
        assert!(segments.holds_older(Version(41), b), "until it is void on the device");
        segments.set_usage(a, SegmentUse::Free);
        assert!(!segments.holds_older(Version(41), b));
        assert_eq!(segments.begin(point(0), 0), Some(a), "begun less often than the other");
    }

    #[test]
    fn a_pool_begins_segments_of_its_own_devices() {
        let mut segments = Segments::new([0; 6], 0);
        segments.divide(&[0, 1, 0]);
        assert_eq!([0, 1].map(|pool| segments.free(pool)), [4, 2]);
        let mut begin = |pool| segments.begin(WritePoint { pool, stream: 0 }, 0);
        let [first, second, none] = [begin(1), begin(1), begin(1)];
        assert_eq!([first, second, none], [Some(SegmentId(1)), Some(SegmentId(4)), None]);
        segments.set_usage(SegmentId(4), SegmentUse::Free);
        assert_eq!([0, 1].map(|pool| segments.free(pool)), [4, 1]);
    }

    #[test]
    fn segments_that_were_found_are_as_old_as_their_groups() {
        let mut segments = Segments::new([1, 1, 1], 0);
        for (index, last_group) in [(0, 9), (2, 4)] {
            let id = SegmentId::new(index);
            let found = Segment { usage: SegmentUse::Sealed, last_group, ..*segments.get(id) };
            segments.restore(id, found);
        }
        assert_eq!(segments.date(50), 100);
        let times = [0, 2].map(|index| segments.get(SegmentId::new(index)).times);
        assert_eq!(times, [(50, 100), (0, 50)]);
    }

    /// Random losses of power found it: a record that says that content is clean has the version of
    /// the content, and was dropped when that was the oldest content of all.
    #[test]
    fn a_record_is_kept_for_content_of_its_own_version() {
        let mut segments = Segments::new([0, 0], 0);
        let point = WritePoint::default();
        let [content, record] = [0; 2].map(|_| segments.begin(point, 0).unwrap());
        segments.note_entry(content, Version(40), true);
        segments.note_entry(record, Version(40), false);
        assert!(segments.holds_older(Version(40), record));
        assert!(!segments.holds_older(Version(40), content), "it goes with its own segment");
    }

    #[test]
    fn a_token_says_what_it_is_for() {
        let segment = SegmentId(77);
        for purpose in [
            LogPurpose::Group(1 << 40),
            LogPurpose::Sync(3),
            LogPurpose::Read(1 << 41),
            LogPurpose::Footer(segment),
            LogPurpose::Emptied(segment),
        ] {
            let token = purpose.token();
            assert_eq!(LogPurpose::of(token), Some(purpose));
            assert_eq!(Submitter::of(token), Some(Submitter::Log));
        }
        assert_eq!(LogPurpose::of(Submitter::Log.token(6, 0)), None);
    }
}
