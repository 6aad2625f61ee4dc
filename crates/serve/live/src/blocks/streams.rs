//! Streams of the log: which of them takes a block.
//!
//! For: the schemes of the stack, asked about residents. Must never know: how a scheme decides,
//! which segment is cleaned. Units: blocks. A resident's number is the name of its page: it is
//! dense, the one that became free last is given again, and it stays while the block does. So a
//! block has a place, as under a simulated drive (F-3). A block that has left is trimmed. Records
//! without content join the stream of the last content, so that they need no group of their own.

use super::capacity::{LogShape, max_blocks};
use super::copies::{CopyId, StoredBlock};
use super::layout::DeviceLayout;
use crate::log::{DeviceSet, Log, LogSettings, Place, Segment, SegmentId, SegmentUse, WritePoint};
use cachewright_ftl::{
    CleaningSchemes, FtlError, Geometry, LogSchemes, PageWrite, SegmentFacts, Space, Stream,
    StreamCounts,
};
use cachewright_types::TenantId;

/// How the log is cleaned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CleaningSettings {
    /// Which stream takes a block, and which segment is cleaned.
    pub schemes: CleaningSchemes,
    /// Whether clean blocks are dropped instead of moved, if no request has read them since they
    /// were stored or moved.
    pub drops_cold: bool,
}

impl CleaningSettings {
    /// How such a log gathers and keeps entries; `spare_segments` are those where blocks
    /// are moved to one stream. Errors:
    /// a scheme that a log cannot follow.
    pub fn log_settings(
        &self,
        group_blocks: u32,
        spare_segments: usize,
    ) -> Result<LogSettings, FtlError> {
        let StreamCounts { all, user, moved } = self.schemes.streams()?;
        let [streams, user_streams, moved_streams] = [all, user, moved].map(|count| count as usize);
        // Cleaning may have to begin a segment in each of its streams before it ends one.
        let spare_segments = spare_segments + moved_streams - 1;
        Ok(LogSettings { streams, user_streams, moved_streams, group_blocks, spare_segments })
    }
}

/// The streams.
pub struct Streams {
    /// The schemes of the log.
    pub schemes: Box<dyn LogSchemes>,
    /// Whether cold blocks are dropped.
    pub drops_cold: bool,
    /// The log's segments, as content fills them.
    shape: LogShape,
    /// The pool of each tenant's devices.
    layout: DeviceLayout,
    /// The stream of records of requests without content, by pool.
    notes: Vec<usize>,
    /// Blocks that requests have written or filled.
    written: u64,
}

impl Streams {
    /// The streams of a log. Errors: a scheme that a log cannot follow.
    pub fn new(
        settings: &CleaningSettings,
        layout: DeviceLayout,
        set: &DeviceSet,
        log: &LogSettings,
    ) -> Result<Streams, FtlError> {
        let shape = LogShape::new(set, log);
        let (segments, reserve) = (set.segments() as u32, log.spare_segments as u32);
        let space =
            Space::Fixed { blocks: segments, reserve_blocks: reserve, idle_blocks: reserve };
        let logical_pages = max_blocks(set, log, set.segments()).clamp(1, 1 << 31) as u32;
        let geometry = Geometry { logical_pages, block_pages: shape.max_blocks, space };
        let schemes = settings.schemes.make(geometry)?;
        let (drops_cold, notes) = (settings.drops_cold, vec![0; set.pools()]);
        Ok(Streams { schemes, drops_cold, shape, layout, notes, written: 0 })
    }

    /// Blocks that requests have written or filled.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The log's segments, as content fills them.
    pub fn shape(&self) -> &LogShape {
        &self.shape
    }

    /// The devices of each tenant.
    pub fn layout(&self) -> &DeviceLayout {
        &self.layout
    }

    /// The pool of a tenant's devices; of one that is not served any.
    pub fn pool(&self, tenant: TenantId) -> usize {
        self.layout.pool(tenant)
    }

    /// Where records of a tenant's blocks without content are appended.
    pub fn of_notes(&self, tenant: TenantId) -> WritePoint {
        let pool = self.pool(tenant);
        WritePoint { pool, stream: self.notes[pool] }
    }

    /// Where the content of a tenant's resident is about to be appended; `old` lies in the log,
    /// where so many residents have content.
    pub fn of_written(
        &mut self,
        log: &mut Log,
        tenant: TenantId,
        copy: CopyId,
        old: Option<StoredBlock>,
        stored: u64,
    ) -> WritePoint {
        log.tick();
        self.written += 1;
        let old = old.map(|old| located(log, old.place));
        let write = PageWrite { page: copy.0, clock: log.clock(), live_pages: stored, old };
        let stream = self.schemes.place_written(&write).index();
        let pool = self.pool(tenant);
        self.notes[pool] = stream;
        WritePoint { pool, stream }
    }

    /// The stream of content that the cleaner moves: a resident's, or content that is not cached,
    /// which stays in its stream.
    pub fn of_moved(&mut self, log: &Log, copy: Option<CopyId>, from: Place) -> usize {
        let (segment, offset) = located(log, from);
        match copy {
            Some(copy) => self.schemes.place_moved(copy.0, offset, log.clock()).index(),
            None => segment.stream.index().min(log.settings().streams - 1),
        }
    }

    /// A resident has left, whose content lies in the log.
    pub fn note_left(&mut self, log: &Log, copy: CopyId, stored: &StoredBlock) {
        self.schemes.note_left(copy.0, located(log, stored.place), log.clock());
    }
}

/// What schemes see of a segment of which cleaning wins so many blocks.
pub fn facts(id: SegmentId, segment: &Segment, reclaimable: u32) -> SegmentFacts {
    SegmentFacts {
        id: id.0,
        life: segment.generation,
        stream: Stream(segment.stream.min(u8::MAX.into()) as u8),
        sealed: segment.usage == SegmentUse::Sealed,
        opened_at: segment.times.0,
        sealed_at: segment.times.1,
        reclaimable,
    }
}

/// The segment of a place, and the block's offset in it.
fn located(log: &Log, place: Place) -> (SegmentFacts, u32) {
    let (id, page) = log.set().locate(place);
    (facts(id, log.segment(id), 0), page / log.set().block_pages())
}
