//! Room in the log: requests that wait for it, and cleaning.
//!
//! For: a log that never fills up under a decided request. Must never know: what requests do.
//! Units: blocks, segments. A request is decided when the log has room for all that it may append,
//! beyond the segments that only cleaning and notes may begin.

use super::capacity::{LogShape, kept_free, space_for_sure};
use super::content::LogContent;
use super::known::{ContentOwner, ForgottenBlock};
use super::request::{BlockOp, BlockRequest};
use super::server::BlockServer;
use crate::io::{Buffer, Io, IoError};
use crate::log::format::{FooterRecord, Version};
use crate::log::{CleaningError, CleaningLoss, LogError, SegmentId, SegmentUse};
use cachewright_types::measure::LossReason;
use cachewright_types::{TenantId, block_numbers};

/// Cleaning a segment wins at least a page, and in segments of many pages one part of so many: the
/// shares that are worth it and the loss at a segment's end leave more.
const PARTS_WON: usize = 64;

impl BlockServer {
    /// Decides about queued requests for which there is room, in their order.
    pub(super) fn decide_queued(&mut self, io: &mut impl Io) {
        if !self.divide_due(io) {
            return;
        }
        // Requests for the room of one pool of devices do not hold those of another one up.
        let (mut place, mut full) = (0, Vec::new());
        while let Some(request) = self.waiting.queue.get(place) {
            let pool = self.content.streams.pool(request.tenant);
            if full.contains(&pool) {
                place += 1;
                continue;
            }
            let needed = self.blocks_needed(request);
            // Cleaning may never make room for all that a large request could append: alone, it
            // goes on with less.
            let fits =
                self.has_space(pool, needed) || (self.is_quiet() && self.fits_alone(pool, needed));
            if !fits && self.split_queued(place) {
                continue;
            }
            if !fits && !self.is_stuck(pool) {
                full.push(pool);
                if full.len() == self.content.log.set().pools() {
                    return;
                }
                continue;
            }
            let Some(request) = self.waiting.queue.remove(place) else { return };
            match fits {
                true => self.decide(io, request, needed),
                false => {
                    self.counts.without_space += 1;
                    self.refuse(&request, IoError::NO_SPACE);
                }
            }
        }
    }

    /// Divides a queued request that may append more than the log has room for whatever it holds
    /// into pieces that it has room for, which take its place in the queue; false if the request is
    /// as small as that. A larger one could wait for ever.
    fn split_queued(&mut self, place: usize) -> bool {
        let log = &self.content.log;
        let space = space_for_sure(log.set(), &log.settings());
        let Some(request) = self.waiting.queue.get(place) else { return false };
        let is_long = matches!(request.op, BlockOp::Read | BlockOp::Write | BlockOp::Zero);
        if !is_long || self.blocks_needed(request) <= space {
            return false;
        }
        let Some(request) = self.waiting.queue.remove(place) else { return false };
        // A piece of a write may need room for two blocks more than it has.
        let piece_bytes = space.saturating_sub(2).max(1) << self.block_shift;
        let pieces = self.answers.split(request, piece_bytes);
        for (further, piece) in pieces.into_iter().enumerate() {
            self.waiting.queue.insert(place + further, piece);
        }
        true
    }

    /// Requests that are not decided are dropped, without an answer: the server ends. Returns their
    /// tags.
    pub fn drop_undecided(&mut self) -> Vec<u64> {
        let queue = std::mem::take(&mut self.waiting.queue);
        queue.into_iter().filter_map(|request| self.answers.drop_request(request.tag)).collect()
    }

    /// Whether a request waits for room in a pool: its own, or that of a division before it.
    pub(super) fn waits_for(&self, pool: usize) -> bool {
        let own = |request: &BlockRequest| self.content.streams.pool(request.tenant) == pool;
        let queue = &self.waiting.queue;
        !queue.is_empty() && (self.waiting.division_waits || queue.iter().any(own))
    }

    /// Whether requests wait for room in a pool, and nothing could make some.
    pub(super) fn is_stuck_anywhere(&self) -> bool {
        let waits = !self.waiting.queue.is_empty() && self.is_quiet();
        let mut pools = 0..self.content.log.set().pools();
        waits && pools.any(|pool| self.waits_for(pool) && self.is_stuck(pool))
    }

    /// Blocks that a request may append: each is filled, or written, and a partly written one both.
    fn blocks_needed(&self, request: &BlockRequest) -> u64 {
        let blocks = block_numbers(request.offset, request.length, self.block_shift);
        let blocks = blocks.end - blocks.start;
        match request.op {
            BlockOp::Read => blocks,
            BlockOp::Write => blocks + 2,
            BlockOp::Zero | BlockOp::Provision => 4,
            BlockOp::Trim => 1,
            BlockOp::Flush => 0,
        }
    }

    /// Whether a pool has room for a request beside all that those under way may append. A block
    /// that is appended may drive another out and be cleaned: two records of one page each, as
    /// large as a block. What a request has left behind is counted as well: blocks to be filled,
    /// those of all pools, and records that wait for backing devices.
    pub(super) fn has_space(&self, pool: usize, needed: u64) -> bool {
        let own = |tenant: &TenantId| self.content.streams.pool(*tenant) == pool;
        let tenants = self.volumes.tenants().filter(own);
        let backings = tenants.map(|tenant| self.volumes.backing(tenant));
        let reserved = self.waiting.reserved.get(&pool).copied().unwrap_or_default();
        let records: usize = backings.map(|backing| backing.leaving() + backing.unsettled()).sum();
        let left = (self.content.staged.len() + records.div_ceil(2)) as u64;
        needed == 0 || self.blocks_free(pool) >= 2 * (reserved + needed) + left
    }

    /// Whether a pool has room for a request when nothing else is under way.
    fn fits_alone(&self, pool: usize, needed: u64) -> bool {
        self.blocks_free(pool) >= needed
    }

    /// Blocks for which a pool has room for sure.
    fn blocks_free(&self, pool: usize) -> u64 {
        let log = &self.content.log;
        let settings = log.settings();
        let free = log.free_segments(pool).saturating_sub(kept_free(&settings)) as u64;
        free * LogShape::new(log.set(), &settings).min_blocks()
    }

    /// Whether no request is under way, and nothing that one has left behind.
    fn is_quiet(&self) -> bool {
        let mut backings = self.volumes.tenants().map(|tenant| self.volumes.backing(tenant));
        self.decisions.steps.state().graph.open() == 0
            && self.waiting.reserved.values().all(|blocks| *blocks == 0)
            && !backings.any(|backing| backing.is_syncing() || backing.leaving() > 0)
    }

    /// Whether nothing is under way that could make room in a pool.
    pub(super) fn is_stuck(&self, pool: usize) -> bool {
        let passing = |usage| matches!(usage, SegmentUse::Full | SegmentUse::Emptied);
        let mut segments = self.content.log.segments();
        self.is_quiet()
            && (!self.content.cleaner.is_busy() || self.content.obstacles.is_blocked())
            && (self.content.obstacles.is_blocked() || !self.can_clean(pool))
            && !segments.any(|(_, segment)| passing(segment.usage))
    }

    /// Cleans a segment if a pool is short of room. A turn copies or drops one batch of blocks.
    pub(super) fn make_space(&mut self, io: &mut impl Io) {
        let pools = 0..self.content.log.set().pools();
        self.waiting.short_pools = pools.filter(|pool| self.is_short(*pool)).collect();
        if self.content.failed.is_some() || self.waiting.is_closing {
            return;
        }
        if !self.may_clean(io) {
            return;
        }
        if self.content.cleaner.is_busy() {
            let before = self.content.cleaner.moved();
            let (result, forgotten) =
                self.with_cleaner(|content, known| content.cleaner.go_on(content.log, known, io));
            self.end_cleaning(io, result, forgotten);
            self.charge_cleaning(io, before);
        } else if let Some(victim) = self.victim_of_short() {
            let LogContent { cleaner, log, obstacles, .. } = &mut self.content;
            obstacles.begin();
            cleaner.begin(log, io, victim);
        } else {
            let mut short = self.waiting.short_pools.iter();
            if let Some(segment) = short.find_map(|pool| self.to_be_ended(*pool)) {
                self.content.log.end_segment(io, segment);
            }
        }
    }

    /// Whether cleaning may go on now: it is not bounded, it is allowed to, or it cannot wait.
    fn may_clean(&mut self, io: &mut impl Io) -> bool {
        if !self.background.is_bounded() {
            return true;
        }
        let mut short = self.waiting.short_pools.iter();
        self.background.may_go_on(io.now_ns()) || short.any(|pool| self.is_urgent(*pool))
    }

    /// What cleaning has copied counts as work beside clients; `before`: blocks before that.
    fn charge_cleaning(&mut self, io: &mut impl Io, before: u64) {
        let copied = self.content.cleaner.moved() - before;
        if self.background.is_bounded() && copied > 0 {
            self.background.charge(copied << self.block_shift, io.now_ns());
        }
    }

    /// The segment to be cleaned, if a pool is short of room: for the one with the fewest free
    /// segments in which one can be cleaned.
    fn victim_of_short(&mut self) -> Option<SegmentId> {
        let mut short: Vec<usize> = self.waiting.short_pools.iter().copied().collect();
        short.sort_by_key(|pool| self.content.log.free_segments(*pool));
        short.into_iter().find_map(|pool| self.victim(pool))
    }

    /// Lets the cleaner work; returns what it gives, and the blocks that are to be forgotten.
    fn with_cleaner<R>(
        &mut self,
        work: impl FnOnce(&mut CleanerParts<'_>, &mut ContentOwner<'_>) -> R,
    ) -> (R, Vec<ForgottenBlock>) {
        let LogContent { cleaner, log, streams, stored_blocks, stranded, leaving, .. } =
            &mut self.content;
        let mut known = ContentOwner {
            decisions: &self.decisions,
            volumes: &self.volumes,
            streams,
            stored_blocks,
            stranded,
            leaving,
            forgotten: Vec::new(),
        };
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
        let (result, forgotten) = self.with_cleaner(|content, known| {
            content.cleaner.records(content.log, known, io, records)
        });
        self.end_cleaning(io, result, forgotten);
    }

    /// A block of the segment that is cleaned was read.
    pub(super) fn cleaner_read(
        &mut self,
        io: &mut impl Io,
        caller: u64,
        data: Buffer,
        result: Result<(), IoError>,
    ) {
        if self.content.failed.is_some() || self.waiting.is_closing {
            return;
        }
        let before = self.content.cleaner.moved();
        let (result, forgotten) = self.with_cleaner(|content, known| {
            content.cleaner.read(content.log, known, io, caller, data, result)
        });
        self.end_cleaning(io, result, forgotten);
        self.charge_cleaning(io, before);
    }

    /// What the cleaner has copied is durable.
    pub(super) fn cleaner_settled(&mut self, io: &mut impl Io, result: Result<(), LogError>) {
        let LogContent { cleaner, log, streams, failed, .. } = &mut self.content;
        // A record may be missing that takes content away: no segment is emptied any more.
        if failed.is_none() && cleaner.settled(log, io, result).is_ok() {
            streams.schemes.end(true, log.clock());
            self.counts.cleaned += 1;
            self.note_cleaned();
        }
    }

    /// Notes that a segment was cleaned, for the end of cleaning that frees nothing. While requests
    /// are under way more may be won by what they do.
    fn note_cleaned(&mut self) {
        if !self.is_quiet() {
            return self.content.obstacles.note_change();
        }
        let LogContent { cleaner, log, obstacles, .. } = &mut self.content;
        let pool = log.set().pool(cleaner.victim());
        let free = log.segments().filter(|(id, segment)| {
            let is_free = matches!(segment.usage, SegmentUse::Free | SegmentUse::Emptied);
            is_free && log.set().pool(*id) == pool
        });
        let enough =
            log.set().segments_of(pool) + PARTS_WON.min(log.set().segment_pages() as usize);
        obstacles.note_cleaned(pool, enough, free.count());
    }

    /// Blocks are forgotten that the cleaner could not read, or that are cold; then it goes on. A
    /// full log is no error: the cleaner goes on when a segment is free; a segment that cannot be
    /// read stays as it is.
    fn end_cleaning(
        &mut self,
        io: &mut impl Io,
        mut result: Result<(), CleaningError>,
        mut forgotten: Vec<ForgottenBlock>,
    ) {
        loop {
            let LogContent { cleaner, log, streams, obstacles, .. } = &mut self.content;
            obstacles.note(cleaner.victim(), result);
            if result == Err(CleaningError::Unreadable) {
                streams.schemes.end(false, log.clock());
            }
            if forgotten.is_empty() {
                return;
            }
            forgotten.into_iter().for_each(|block| self.forget(io, block));
            // Their residents end, so that the cleaner finds their content dead.
            self.take_ends(io);
            if self.content.failed.is_some() || !self.content.cleaner.is_busy() {
                return;
            }
            (result, forgotten) =
                self.with_cleaner(|content, known| content.cleaner.go_on(content.log, known, io));
        }
    }

    /// Forgets a block whose clean content is not moved. Its leaving is in the log before its
    /// segment is emptied: an older copy of it must not be found again.
    fn forget(&mut self, io: &mut impl Io, block: ForgottenBlock) {
        let ForgottenBlock { tenant, number, loss } = block;
        let volume = self.volumes.id(tenant);
        let reason = match loss {
            CleaningLoss::Damaged => LossReason::Device,
            CleaningLoss::Cold => LossReason::Cleaning,
        };
        match loss {
            CleaningLoss::Damaged => self.counts.damaged_clean += 1,
            CleaningLoss::Cold => self.counts.dropped += 1,
        }
        match self.content.stranded.remove(&(volume, number)) {
            Some(found) => {
                self.content.log.note_dead(found.place);
                let version = Version::last(self.decisions.in_log(self.decisions.made()));
                self.content.note_gone(io, tenant, volume, number..number + 1, version);
            }
            None => self.lose(io, tenant, number, reason),
        }
    }
}

/// What the cleaner works on.
struct CleanerParts<'a> {
    cleaner: &'a mut crate::log::Cleaner,
    log: &'a mut crate::log::Log,
}
