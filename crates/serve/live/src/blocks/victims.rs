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

/// A segment is cleaned if at most so much of one is copied, in 1024ths, and space is won for sure.
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
    /// The same, where it is being filled: it must be ended before it can be cleaned. A stream that
    /// takes few blocks may fill one for long.
    open: Option<SegmentId>,
}

impl Candidates {
    /// Whether space can be won.
    fn can_win(&self) -> bool {
        let wins = |facts: &SegmentFacts| facts.reclaimable > 0;
        self.crowding.is_some() || self.segments.iter().any(wins)
    }
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
        if self.content.obstacles.is_fruitless(pool) {
            return false;
        }
        let found = self.candidates(pool);
        found.can_win() || found.open.is_some()
    }

    /// The segment to be ended so that a pool can be cleaned, where nothing else can be.
    pub(super) fn to_be_ended(&self, pool: usize) -> Option<SegmentId> {
        let found = self.candidates(pool);
        let is_fruitless = self.content.obstacles.is_fruitless(pool);
        found.open.filter(|_| !found.can_win() && !is_fruitless)
    }

    /// The segment to be cleaned for a pool: of its own that win space the choice of the reclaim
    /// policy. Where records that take content away crowd the pool, it is the one for which they
    /// are kept: that with the oldest content of all pools.
    pub(super) fn victim(&mut self, pool: usize) -> Option<SegmentId> {
        if self.content.obstacles.is_fruitless(pool) {
            return None;
        }
        let candidates = self.candidates(pool);
        if !candidates.can_win() {
            return None;
        }
        let Candidates { segments, crowding, .. } = candidates;
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
            let cost = shape.copied_share(segment.live, kept);
            let won = u64::from(shape.max_blocks) * 1024_u64.saturating_sub(cost) / 1024;
            let gains = cost <= WORTHWHILE && shape.gains(segment.live, kept);
            let won = if gains { won.max(1) as u32 } else { 0 };
            facts(id, segment, won)
        };
        let segments = log.segments().map(&mut won).collect();
        let records = set.segments_of(pool) * set.max_records();
        let crowded = kept_records * CROWDED > records as u64;
        let last = Version::last(self.decisions.in_log(self.decisions.made()));
        let oldest = oldest.filter(|(_, segment)| crowded && segment.oldest < last);
        let crowding = oldest.filter(|(id, segment)| cleanable(*id, segment));
        let open = oldest.filter(|(_, segment)| segment.usage == SegmentUse::Begun);
        let [crowding, open] = [crowding, open].map(|found| found.map(|(id, _)| id));
        Candidates { segments, crowding, open }
    }
}
