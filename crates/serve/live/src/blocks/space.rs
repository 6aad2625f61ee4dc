//! Room in the log: requests that wait for it, and cleaning.
//!
//! For: a log that never fills up under a decided request. Must never know: what requests do.
//! Units: blocks, segments, pages. A request is decided when the log has room for all that it may
//! append, beyond the segments that only cleaning and notes may begin. The segment of which least
//! is copied is cleaned (greedy: M. Rosenblum and J. Ousterhout, SOSP 1991).

use super::content::Content;
use super::decisions::Decisions;
use super::request::{BlockOp, BlockRequest};
use super::server::BlockServer;
use super::stored_blocks::StoredBlocks;
use super::volumes::Volumes;
use crate::io::{Buffer, Io, IoError};
use crate::log::format::{FooterRecord, GROUP_RECORDS, Version, VolumeId};
use crate::log::{
    Appended, COPIED_TOGETHER, CleaningError, DeviceSet, LogError, LogSettings, Owner, Place,
    Segment, SegmentId, SegmentUse, Standing,
};
use cachewright_measure::LossReason;
use cachewright_types::{TenantId, block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::ops::Range;

/// Segments that are cleaned ahead of need.
pub const CLEAN_AHEAD: usize = 2;
/// A segment is cleaned if at most so much of one is copied, in 1024ths.
const WORTHWHILE: u64 = 1024 * 15 / 16;
/// Records that are kept crowd the log when they take more than this part of its records.
const CROWDED: u64 = 16;

/// What the cleaner asks about.
struct Known<'a> {
    decisions: &'a Decisions,
    volumes: &'a Volumes,
    stored_blocks: &'a mut StoredBlocks,
    stranded: &'a mut super::content::StrandedBlocks,
    leaving: &'a HashSet<Place, FixedState>,
    forgotten: Vec<(TenantId, u64)>,
}

impl Owner for Known<'_> {
    fn standing(&self, (volume, number): (VolumeId, u64), place: Place) -> Standing {
        let Some(tenant) = self.volumes.tenant(volume) else { return Standing::Dead };
        let here = |id| self.stored_blocks.get(id).filter(|stored| stored.place == place);
        if let Some(resident) = self.decisions.resident(tenant, number)
            && let Some(stored) = here(resident)
        {
            return match stored.dirty {
                _ if self.decisions.is_changing(resident) => Standing::Changing,
                true => Standing::Dirty,
                false => Standing::Clean,
            };
        }
        let placement = &self.decisions.steps.state().placement;
        let mut departing = placement.departing(tenant, number..number + 1);
        if let Some(found) = self.stranded.get(&(volume, number))
            && found.place == place
        {
            // A copy would be newer than what is on its way to the log.
            let newer = self.decisions.resident(tenant, number).is_some();
            return match found.dirty {
                _ if newer || departing.next().is_some() => Standing::Changing,
                true => Standing::Dirty,
                false => Standing::Clean,
            };
        }
        let still_read = departing.any(|resident| here(resident).is_some());
        if still_read || self.leaving.contains(&place) {
            Standing::Changing
        } else {
            Standing::Dead
        }
    }

    fn moved(&mut self, (volume, number): (VolumeId, u64), from: Place, to: &Appended) {
        let Some(tenant) = self.volumes.tenant(volume) else { return };
        let version = Version::last(self.last_decision());
        self.stored_blocks.note_copy(from, to);
        if let Some(resident) = self.decisions.resident(tenant, number)
            && self.stored_blocks.get(resident).is_some_and(|stored| stored.place == from)
        {
            self.stored_blocks.moved(resident, to, version);
        } else if let Some(found) = self.stranded.get_mut(&(volume, number)) {
            (found.place, found.version) = (to.place, version);
        }
    }

    fn may_return(&self, volume: VolumeId, blocks: Range<u64>) -> bool {
        let Some(tenant) = self.volumes.tenant(volume) else { return false };
        let placement = &self.decisions.steps.state().placement;
        placement.departing(tenant, blocks).next().is_some()
    }

    fn forget(&mut self, (volume, number): (VolumeId, u64)) {
        self.forgotten.extend(self.volumes.tenant(volume).map(|tenant| (tenant, number)));
    }

    fn last_decision(&self) -> u64 {
        self.decisions.in_log(self.decisions.made())
    }
}

/// Blocks that the cleaner copies into one group.
fn copied_together(group_blocks: u32) -> u32 {
    COPIED_TOGETHER.min(group_blocks).max(1)
}

/// What is copied of a segment with so many live blocks and records that are kept, in 1024ths of
/// what one holds.
fn copied_share(set: &DeviceSet, group_blocks: u32, (live, kept): (u32, u32)) -> u64 {
    let groups = live.div_ceil(copied_together(group_blocks)) + kept.div_ceil(GROUP_RECORDS as u32);
    let pages = u64::from(live * set.block_pages() + groups + 1);
    let records = u64::from(live + kept);
    let of_pages = pages * 1024 / u64::from(set.footer_page());
    of_pages.max(records * 1024 / set.max_records() as u64)
}

/// Blocks that a segment holds when the cleaner has filled it.
fn blocks_when_cleaned(set: &DeviceSet, group_blocks: u32) -> u64 {
    let (pages, together) = (set.footer_page().saturating_sub(2), copied_together(group_blocks));
    let group = together * set.block_pages() + 1;
    let rest = (pages % group).saturating_sub(1) / set.block_pages();
    u64::from(pages / group * together + rest).min(set.max_records() as u64)
}

/// Blocks that a segment holds at least when requests have filled it: each in a group of its own.
fn blocks_at_least(set: &DeviceSet) -> u64 {
    let by_pages = set.footer_page().saturating_sub(2) / (set.block_pages() + 1);
    u64::from(by_pages).min(set.max_records() as u64 / 2).max(1)
}

/// Most blocks that can be cached on a set: what is left for writing and cleaning makes cleaning
/// end.
pub fn max_blocks(set: &DeviceSet, settings: &LogSettings) -> u64 {
    let kept = settings.spare_segments + CLEAN_AHEAD + super::content::STREAMS;
    let segments = set.segments().saturating_sub(kept) as u64;
    segments * blocks_when_cleaned(set, settings.group_blocks) * 85 / 100
}

impl BlockServer {
    /// Decides about queued requests for which there is room, in their order.
    pub(super) fn decide_queued(&mut self, io: &mut impl Io) {
        if !self.divide_due(io) {
            return;
        }
        while let Some(request) = self.waiting.queue.front() {
            let needed = self.blocks_needed(request);
            // Cleaning may never make room for all that a large request could append: alone, it
            // goes on with less.
            let fits = self.has_space(needed) || (self.is_quiet() && self.fits_alone(needed));
            if !fits {
                if !self.is_stuck() {
                    return;
                }
                self.refuse_first();
                continue;
            }
            if let Some(request) = self.waiting.queue.pop_front() {
                self.decide(io, request, needed);
            }
        }
    }

    fn refuse_first(&mut self) {
        if let Some(request) = self.waiting.queue.pop_front() {
            self.counts.without_space += 1;
            self.refuse(&request, IoError::NO_SPACE);
        }
    }

    /// Blocks that a request may append: each is filled, or written, and a partly written one both.
    fn blocks_needed(&self, request: &BlockRequest) -> u64 {
        let blocks = block_numbers(request.offset, request.length, self.block_shift);
        let blocks = blocks.end - blocks.start;
        match request.op {
            BlockOp::Read => blocks,
            BlockOp::Write => blocks + 2,
            BlockOp::Zero => 4,
            BlockOp::Trim => 1,
            BlockOp::Flush => 0,
        }
    }

    /// Whether the log has room for a request beside all that those under way may append. A block
    /// that is appended may drive another out and be cleaned: two records of one page each, as
    /// large as a block. What a request has left behind is counted as well: blocks to be filled,
    /// and records that wait for backing devices.
    pub(super) fn has_space(&self, needed: u64) -> bool {
        let backings = self.volumes.tenants().map(|tenant| self.volumes.backing(tenant));
        let records: usize = backings.map(|backing| backing.leaving() + backing.unsettled()).sum();
        let left = (self.content.staged.len() + records.div_ceil(2)) as u64;
        needed == 0 || self.blocks_free() >= 2 * (self.waiting.reserved + needed) + left
    }

    /// Whether the log has room for a request when nothing else is under way.
    fn fits_alone(&self, needed: u64) -> bool {
        self.blocks_free() >= needed
    }

    /// Blocks for which there is room for sure.
    fn blocks_free(&self) -> u64 {
        let log = &self.content.log;
        let free = log.free_segments().saturating_sub(self.spare_segments()) as u64;
        free * blocks_at_least(log.set())
    }

    fn spare_segments(&self) -> usize {
        self.content.log.settings().spare_segments
    }

    /// Whether no request is under way, and nothing that one has left behind.
    fn is_quiet(&self) -> bool {
        let mut backings = self.volumes.tenants().map(|tenant| self.volumes.backing(tenant));
        self.decisions.steps.state().graph.open() == 0
            && self.waiting.reserved == 0
            && !backings.any(|backing| backing.is_syncing() || backing.leaving() > 0)
    }

    /// Whether nothing is under way that could make room.
    pub(super) fn is_stuck(&self) -> bool {
        let passing = |usage| matches!(usage, SegmentUse::Full | SegmentUse::Emptied);
        let mut segments = self.content.log.segments();
        self.is_quiet()
            && (!self.content.cleaner.is_busy() || self.waiting.cleaner_is_blocked)
            && (self.waiting.cleaner_is_blocked || self.victim().is_none())
            && !segments.any(|(_, segment)| passing(segment.usage))
    }

    /// Cleans a segment if the log is short of room.
    pub(super) fn make_space(&mut self, io: &mut impl Io) {
        let free = self.content.log.free_segments();
        let short = !self.waiting.queue.is_empty() || free <= self.spare_segments() + CLEAN_AHEAD;
        self.waiting.short_of_space = short;
        if self.content.failed.is_some() || self.waiting.is_closing {
            return;
        }
        if self.content.cleaner.is_busy() {
            let result =
                self.with_cleaner(|content, known| content.cleaner.go_on(content.log, known, io));
            self.end_cleaning(io, result);
        } else if short && let Some(victim) = self.victim() {
            self.waiting.cleaner_is_blocked = false;
            let Content { cleaner, log, .. } = &mut self.content;
            cleaner.begin(log, io, victim);
        }
    }

    /// The sealed segment of which least must be copied, if cleaning it makes room. Where records
    /// that take content away crowd the log, it is the one for which they are kept: that with the
    /// oldest content.
    fn victim(&self) -> Option<SegmentId> {
        let log = &self.content.log;
        let set = log.set();
        let oldest = log.segments().min_by_key(|(id, segment)| (segment.oldest, *id));
        let (mut best, mut kept_records) = (None, 0);
        let cleanable = |id: SegmentId, segment: &Segment| {
            segment.usage == SegmentUse::Sealed && !self.waiting.damaged_segments.contains(&id)
        };
        for (id, segment) in log.segments().filter(|(id, segment)| cleanable(*id, segment)) {
            let (records, newest) = segment.notes;
            let needed = oldest.is_some_and(|(_, oldest)| oldest.oldest <= newest);
            let kept = if needed { records } else { 0 };
            kept_records += u64::from(kept);
            let cost = copied_share(set, log.settings().group_blocks, (segment.live, kept));
            if cost <= WORTHWHILE && best.is_none_or(|(lowest, _)| cost < lowest) {
                best = Some((cost, id));
            }
        }
        let crowded = kept_records * CROWDED > (set.segments() * set.max_records()) as u64;
        let last = Version::last(self.decisions.in_log(self.decisions.made()));
        let helps = |(id, segment): &(SegmentId, &Segment)| {
            crowded && cleanable(*id, segment) && segment.oldest < last
        };
        oldest.filter(helps).map(|(id, _)| id).or(best.map(|(_, id)| id))
    }

    /// Lets the cleaner work; returns what it gives, and the blocks that it could not read.
    fn with_cleaner<R>(
        &mut self,
        work: impl FnOnce(&mut CleanerParts<'_>, &mut Known<'_>) -> R,
    ) -> (R, Vec<(TenantId, u64)>) {
        let Content { cleaner, log, stored_blocks, stranded, leaving, .. } = &mut self.content;
        let (decisions, volumes) = (&self.decisions, &self.volumes);
        let forgotten = Vec::new();
        let mut known = Known { decisions, volumes, stored_blocks, stranded, leaving, forgotten };
        let mut parts = CleanerParts { cleaner, log };
        let result = work(&mut parts, &mut known);
        (result, known.forgotten)
    }

    /// The cleaner's records were read.
    pub(super) fn cleaner_records(
        &mut self,
        io: &mut impl Io,
        records: Result<Vec<FooterRecord>, IoError>,
    ) {
        if self.content.failed.is_some() || self.waiting.is_closing {
            return;
        }
        let result = self.with_cleaner(|content, known| {
            content.cleaner.records((content.log, known, io), records)
        });
        self.end_cleaning(io, result);
    }

    /// A block of the segment that is cleaned was read.
    pub(super) fn cleaner_read(
        &mut self,
        io: &mut impl Io,
        caller: u64,
        (data, result): (Buffer, Result<(), IoError>),
    ) {
        if self.content.failed.is_some() || self.waiting.is_closing {
            return;
        }
        let read = (caller, data, result);
        let result = self
            .with_cleaner(|content, known| content.cleaner.read((content.log, known, io), read));
        self.end_cleaning(io, result);
    }

    /// What the cleaner has copied is durable.
    pub(super) fn cleaner_settled(&mut self, io: &mut impl Io, result: Result<(), LogError>) {
        let Content { cleaner, log, failed, .. } = &mut self.content;
        // A record may be missing that takes content away: no segment is emptied any more.
        if failed.is_none() && cleaner.settled((log, io), result).is_ok() {
            self.counts.cleaned += 1;
        }
    }

    /// Blocks that the cleaner could not read are forgotten. A full log is no error: the cleaner
    /// goes on when a segment is free; a segment that cannot be read stays as it is.
    fn end_cleaning(
        &mut self,
        io: &mut impl Io,
        (result, forgotten): (Result<(), CleaningError>, Vec<(TenantId, u64)>),
    ) {
        if result == Err(CleaningError::Unreadable) {
            self.waiting.damaged_segments.insert(self.content.cleaner.victim());
        }
        self.waiting.cleaner_is_blocked = matches!(result, Err(CleaningError::Log(_)));
        for (tenant, number) in forgotten {
            self.counts.damaged_clean += 1;
            let key = (self.volumes.id(tenant), number);
            match self.content.stranded.remove(&key) {
                Some(found) => self.content.log.note_dead(found.place),
                None => self.lose(io, (tenant, number), LossReason::Device),
            }
        }
    }
}

/// What the cleaner works on.
struct CleanerParts<'a> {
    cleaner: &'a mut crate::log::Cleaner,
    log: &'a mut crate::log::Log,
}
