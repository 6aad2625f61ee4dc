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
/// Records that are kept crowd the log when they take more than this part of its records.
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
    /// Whether the log is to be cleaned. Once it is short of free segments, it stays so until a
    /// few more are free than made it short.
    pub(super) fn is_short(&self) -> bool {
        let log = &self.content.log;
        let low = kept_free(&log.settings()) + CLEAN_AHEAD;
        let further = (log.set().segments() / SEGMENTS_PER_FURTHER).min(MAX_FURTHER);
        let mark = if self.waiting.short_of_space { low + further } else { low };
        !self.waiting.queue.is_empty() || log.free_segments() <= mark
    }

    /// Whether a segment can be cleaned with gain.
    pub(super) fn can_clean(&self) -> bool {
        let found = self.candidates();
        found.crowding.is_some() || found.segments.iter().any(|facts| facts.reclaimable > 0)
    }

    /// The segment to be cleaned: of those that win space the choice of the reclaim policy. Where
    /// records that take content away crowd the log, it is the one for which they are kept: that
    /// with the oldest content.
    pub(super) fn victim(&mut self) -> Option<SegmentId> {
        let Candidates { segments, crowding } = self.candidates();
        if crowding.is_none() && segments.iter().all(|facts| facts.reclaimable == 0) {
            return None;
        }
        let (free, clock) = (self.content.log.free_segments() as u32, self.content.log.clock());
        let schemes = &mut self.content.streams.schemes;
        schemes.look(&segments);
        let victim = crowding.or_else(|| schemes.choose(free, clock).map(SegmentId))?;
        schemes.begin(victim.0, clock);
        Some(victim)
    }

    fn candidates(&self) -> Candidates {
        let log = &self.content.log;
        let (set, settings) = (log.set(), log.settings());
        let shape = LogShape::new(set, &settings);
        let oldest = log.segments().min_by_key(|(id, segment)| (segment.oldest, *id));
        let mut kept_records = 0;
        let cleanable = |id: SegmentId, segment: &Segment| {
            segment.usage == SegmentUse::Sealed && !self.waiting.damaged_segments.contains(&id)
        };
        let mut won = |(id, segment): (SegmentId, &Segment)| {
            if !cleanable(id, segment) {
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
        let crowded = kept_records * CROWDED > (set.segments() * set.max_records()) as u64;
        let last = Version::last(self.decisions.in_log(self.decisions.made()));
        let helps = |(id, segment): &(SegmentId, &Segment)| {
            crowded && cleanable(*id, segment) && segment.oldest < last
        };
        Candidates { segments, crowding: oldest.filter(helps).map(|(id, _)| id) }
    }
}
