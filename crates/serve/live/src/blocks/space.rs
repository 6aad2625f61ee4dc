//! Room in the log: requests wait for it before they are decided.
//!
//! A request is decided when the log has room for all that it may append, beyond the segments that
//! only cleaning and notes may begin: a log never fills up under a decided request.
//!
//! Room comes back when blocks are written back, as fast as a tenant's backing device takes them.
//! So that a slow one holds up no tenant but its own, a part of the room is each tenant's alone,
//! and a tenant that has more than that waits by itself. Units: blocks, segments.

use super::capacity::{kept_free, space_for_sure};
use super::request::{BlockOp, BlockRequest};
use super::server::{BlockServer, State};
use crate::io::IoError;
use crate::log::SegmentUse;
use cachewright_types::{TenantId, block_numbers};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The least room that is worth keeping for a tenant: that of a write of two blocks.
const LEAST_OWN_ROOM: u64 = 8;
/// Free segments of a pool that are left to the cleaner by records of blocks that have left.
const LEFT_BY_NOTES: usize = 1;

/// Requests that wait for room in the log, and the room that is kept for those under way.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// Requests that are not decided.
    pub queue: VecDeque<BlockRequest>,
    /// Blocks for which requests under way keep room, by tenant.
    reserved: BTreeMap<TenantId, u64>,
    /// Pools for whose room requests wait, or soon will.
    pub short_pools: BTreeSet<usize>,
    /// A division waits for room, and requests wait for it.
    pub division_waits: bool,
}

impl Space {
    /// So many blocks of room are kept for a tenant from now on.
    pub fn reserve(&mut self, tenant: TenantId, blocks: u64) {
        *self.reserved.entry(tenant).or_default() += blocks;
    }

    /// So many blocks less.
    pub fn release(&mut self, tenant: TenantId, blocks: u64) {
        if let Some(reserved) = self.reserved.get_mut(&tenant) {
            *reserved -= blocks;
        }
    }
}

impl BlockServer {
    /// Requests that are not decided are dropped, without an answer: the server ends. Returns their
    /// tags.
    pub fn drop_undecided(&mut self) -> Vec<u64> {
        let mut state = self.state();
        let queue = std::mem::take(&mut state.space.queue);
        queue.into_iter().filter_map(|request| state.answers.drop_request(request.tag)).collect()
    }
}

impl State {
    /// Decides about queued requests for which there is room, each tenant's in their order.
    pub(super) fn decide_queued(&mut self) {
        if !self.divide_due() {
            return;
        }
        // Requests for the room of one pool of devices do not hold those of another one up.
        let (mut place, mut full, mut held) = (0, Vec::new(), Vec::new());
        while let Some(request) = self.space.queue.get(place) {
            let tenant = request.tenant;
            let pool = self.content.streams.pool(tenant);
            if full.contains(&pool) || held.contains(&tenant) {
                place += 1;
                continue;
            }
            let needed = self.blocks_needed(request);
            // Cleaning may never make room for all that a large request could append: alone, it
            // goes on with less.
            let fits = self.has_space_for(tenant, needed)
                || (self.is_quiet() && self.fits_alone(pool, needed));
            if !fits && self.split_queued(place) {
                continue;
            }
            if !fits && !self.is_stuck(pool) {
                // What the tenant has under way will make room for it. Without any it would wait
                // for what others begin, so that no other request goes before it.
                if self.is_beyond_own(tenant) {
                    held.push(tenant);
                    continue;
                }
                full.push(pool);
                if full.len() == self.content.log.set().pools() {
                    return;
                }
                continue;
            }
            let Some(request) = self.space.queue.remove(place) else { return };
            match fits {
                true => self.decide(request, needed),
                false => {
                    self.counts.without_space += 1;
                    self.answers.refuse(&request, IoError::NO_SPACE);
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
        let Some(request) = self.space.queue.get(place) else { return false };
        let is_long = matches!(request.op, BlockOp::Read | BlockOp::Write | BlockOp::Zero);
        if !is_long || self.blocks_needed(request) <= space {
            return false;
        }
        let Some(request) = self.space.queue.remove(place) else { return false };
        // A piece of a write may need room for two blocks more than it has.
        let piece_bytes = space.saturating_sub(2).max(1) << self.block_shift;
        let pieces = self.answers.split(request, piece_bytes);
        for (further, piece) in pieces.into_iter().enumerate() {
            self.space.queue.insert(place + further, piece);
        }
        true
    }

    /// Whether a request waits for room in a pool: its own, or that of a division before it.
    pub(super) fn waits_for(&self, pool: usize) -> bool {
        let own = |request: &BlockRequest| self.content.streams.pool(request.tenant) == pool;
        let queue = &self.space.queue;
        !queue.is_empty() && (self.space.division_waits || queue.iter().any(own))
    }

    /// Whether requests wait for room in a pool, and nothing could make some.
    pub(super) fn is_stuck_anywhere(&self) -> bool {
        let waits = !self.space.queue.is_empty() && self.is_quiet();
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

    /// Whether a pool has room for so many blocks beside all that requests under way may append.
    pub(super) fn has_space(&self, pool: usize, needed: u64) -> bool {
        let used: u64 = self.tenants_of(pool).map(|tenant| self.room_used(tenant)).sum();
        needed == 0 || self.blocks_free(pool) >= 2 * needed + used
    }

    /// Whether a tenant's pool has room for a request. A tenant with more than its own room leaves
    /// a segment to the others: once the last one is begun, all wait until one is cleaned. It also
    /// leaves as much as it has not yet written back: no cleaning makes room of that.
    fn has_space_for(&self, tenant: TenantId, needed: u64) -> bool {
        let pool = self.content.streams.pool(tenant);
        if !self.has_space(pool, needed) {
            return false;
        }
        let segment = self.content.streams.shape().min_blocks();
        let leaving = self.volumes.backing(tenant).leaving() as u64;
        needed == 0
            || !self.is_beyond_own(tenant)
            || self.has_space(pool, needed + (segment + leaving).div_ceil(2))
    }

    /// Whether a tenant uses more than the room that it has for itself.
    pub(super) fn is_beyond_own(&self, tenant: TenantId) -> bool {
        let pool = self.content.streams.pool(tenant);
        self.own_room(pool).is_some_and(|own_room| self.room_used(tenant) > own_room)
    }

    /// Room that a tenant's requests may yet take. A block that is appended may drive another out
    /// and be cleaned: two records of one page each, as large as a block. What a request has left
    /// behind is counted as well: blocks to be filled, and records that wait for backing devices.
    fn room_used(&self, tenant: TenantId) -> u64 {
        let backing = self.volumes.backing(tenant);
        let reserved = self.space.reserved.get(&tenant).copied().unwrap_or_default();
        let records = backing.leaving() + backing.unsettled();
        2 * reserved + records.div_ceil(2) as u64
    }

    /// Room of a pool that each of its tenants has for itself: together at most half of what
    /// cleaning makes for sure, so that large requests find enough in the rest. Nothing where that
    /// is too little to divide, and for a tenant alone.
    fn own_room(&self, pool: usize) -> Option<u64> {
        let log = &self.content.log;
        let room = space_for_sure(log.set(), &log.settings());
        let tenants = self.tenants_of(pool).count() as u64;
        let each = (room / 4 / tenants.max(1)).max(LEAST_OWN_ROOM);
        (tenants > 1 && tenants * each <= room / 2).then_some(each)
    }

    fn tenants_of(&self, pool: usize) -> impl Iterator<Item = TenantId> + '_ {
        self.volumes.tenants().filter(move |tenant| self.content.streams.pool(*tenant) == pool)
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
        free * self.content.streams.shape().min_blocks()
    }

    /// Whether no request is under way, and nothing that one has left behind.
    pub(super) fn is_quiet(&self) -> bool {
        let mut backings = self.volumes.tenants().map(|tenant| self.volumes.backing(tenant));
        self.with_jobs == 0
            && self.leavings.write_backs() == 0
            && self.space.reserved.values().all(|blocks| *blocks == 0)
            && !backings.any(|backing| backing.is_syncing() || backing.leaving() > 0)
    }

    /// Whether nothing is under way that could make room in a pool.
    pub(super) fn is_stuck(&self, pool: usize) -> bool {
        let passing = |usage| matches!(usage, SegmentUse::Full | SegmentUse::Emptied);
        let mut segments = self.content.log.segments();
        self.is_quiet()
            && !self.can_go_on_cleaning(pool)
            && !segments.any(|(_, segment)| passing(segment.usage))
    }

    /// Whether a segment is being cleaned, or one can be with gain for a pool, and nothing keeps
    /// the cleaner from it.
    fn can_go_on_cleaning(&self, pool: usize) -> bool {
        let cleaner = &self.content.cleaner;
        !cleaner.obstacles.is_blocked() && (cleaner.is_busy() || self.can_clean(pool))
    }

    /// Whether what the log is told of a tenant's blocks waits for room. A reload, or a division,
    /// may take thousands of blocks away at once, and their records fill segments faster than the
    /// cleaner empties them. They leave it the last free one as long as it goes on.
    pub(super) fn notes_wait(&self, tenant: TenantId) -> bool {
        let pool = self.content.streams.of_notes(tenant).pool;
        let ends = self.content.failed.is_some() || self.is_closing || self.bypass.is_begun();
        self.content.log.free_segments(pool) <= LEFT_BY_NOTES
            && !ends
            && self.may_clean()
            && self.can_go_on_cleaning(pool)
    }
}
