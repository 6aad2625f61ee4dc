//! Which segment is cleaned next.
//!
//! For: the conditions of the log on a victim, within which the reclaim policy of the stack
//! chooses. Must never know: how a policy chooses, how a segment is cleaned. Units: blocks,
//! segments, shares in 1024ths. Source of the default: M. Rosenblum and J. Ousterhout, SOSP 1991
//! (greedy).

use super::capacity::{CLEAN_AHEAD, LogShape, kept_free};
use super::server::BlockServer;
use super::streams::facts;
use crate::log::format::Version;
use crate::log::{Segment, SegmentId, SegmentUse};
use cachewright_ftl::SegmentFacts;

/// A segment is cleaned if at most so much of one is copied, in 1024ths.
const WORTHWHILE: u64 = 1024 * 15 / 16;
/// Records that are kept crowd a pool when they take more than this part of its records.
const CROWDED: u64 = 16;
/// Of so many segments, one more is brought free once cleaning has begun, up to a limit.
const SEGMENTS_PER_FURTHER: usize = 64;
const MAX_FURTHER: usize = 8;

/// What the log knows of its segments.
struct Candidates {
    /// All segments, with what cleaning them wins.
    segments: Vec<SegmentFacts>,
    /// The one for which records are kept that crowd the log.
    crowding: Option<SegmentId>,
}

impl BlockServer {
    /// Whether a pool is to be cleaned. Once it is short of free segments, it stays so until a few
    /// more are free than made it short. Cleaning that is bounded begins earlier, by as many.
    pub(super) fn is_short(&self, pool: usize) -> bool {
        let log = &self.content.log;
        let further = (log.set().segments_of(pool) / SEGMENTS_PER_FURTHER).min(MAX_FURTHER);
        let early = if self.background.is_bounded() { further } else { 0 };
        let low = self.low_mark() + early;
        let mark = if self.waiting.short_pools.contains(&pool) { low + further } else { low };
        self.waits_for(pool) || log.free_segments(pool) <= mark
    }

    /// Whether cleaning a pool cannot wait.
    pub(super) fn is_urgent(&self, pool: usize) -> bool {
        self.waits_for(pool) || self.content.log.free_segments(pool) <= self.low_mark()
    }

    /// Free segments at which a pool is short of them.
    fn low_mark(&self) -> usize {
        kept_free(&self.content.log.settings()) + CLEAN_AHEAD
    }

    /// Whether a segment can be cleaned with gain for a pool.
    pub(super) fn can_clean(&self, pool: usize) -> bool {
        let found = self.candidates(pool);
        found.crowding.is_some() || found.segments.iter().any(|facts| facts.reclaimable > 0)
    }

    /// The segment to be cleaned for a pool: of its own that win space the choice of the reclaim
    /// policy. Where records that take content away crowd the pool, it is the one for which they
    /// are kept: that with the oldest content of all pools.
    pub(super) fn victim(&mut self, pool: usize) -> Option<SegmentId> {
        let Candidates { segments, crowding } = self.candidates(pool);
        if crowding.is_none() && segments.iter().all(|facts| facts.reclaimable == 0) {
            return None;
        }
        let log = &self.content.log;
        let (free, clock) = (log.free_segments(pool) as u32, log.clock());
        let schemes = &mut self.content.streams.schemes;
        schemes.look(&segments);
        let victim = crowding.or_else(|| schemes.choose(free, clock).map(SegmentId))?;
        schemes.begin(victim.0, clock);
        Some(victim)
    }

    fn candidates(&self, pool: usize) -> Candidates {
        let log = &self.content.log;
        let (set, settings) = (log.set(), log.settings());
        let shape = LogShape::new(set, &settings);
        let oldest = log.segments().min_by_key(|(id, segment)| (segment.oldest, *id));
        let mut kept_records = 0;
        let cleanable = |id: SegmentId, segment: &Segment| {
            segment.usage == SegmentUse::Sealed && !self.content.obstacles.is_damaged(id)
        };
        let mut won = |(id, segment): (SegmentId, &Segment)| {
            if !cleanable(id, segment) || set.pool(id) != pool {
                return facts(id, segment, 0);
            }
            let (records, newest) = segment.notes;
            let needed = oldest.is_some_and(|(_, oldest)| oldest.oldest <= newest);
            let kept = if needed { records } else { 0 };
            kept_records += u64::from(kept);
            let cost = shape.copied_share((segment.live, kept));
            let won = u64::from(shape.max_blocks) * 1024_u64.saturating_sub(cost) / 1024;
            let won = if cost <= WORTHWHILE { won.max(1) as u32 } else { 0 };
            facts(id, segment, won)
        };
        let segments = log.segments().map(&mut won).collect();
        let records = set.segments_of(pool) * set.max_records();
        let crowded = kept_records * CROWDED > records as u64;
        let last = Version::last(self.decisions.in_log(self.decisions.made()));
        let helps = |(id, segment): &(SegmentId, &Segment)| {
            crowded && cleanable(*id, segment) && segment.oldest < last
        };
        Candidates { segments, crowding: oldest.filter(helps).map(|(id, _)| id) }
    }
}
