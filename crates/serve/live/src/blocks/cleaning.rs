//! Cleaning the log: when, which segment, and what the cleaner is told of its content.
//!
//! A pool of devices is cleaned when it is short of free segments. Within the conditions of the log
//! the reclaim policy of the stack chooses the victim; the default is greedy (M. Rosenblum and J.
//! Ousterhout, SOSP 1991). How a segment is cleaned: [`crate::log::clean`]. Units: blocks,
//! segments, shares in 1024ths.

use super::capacity::{CLEAN_AHEAD, kept_free};
use super::content::{LogContent, StrandedBlocks};
use super::copies::{Copies, CopyId, StoredBlock};
use super::decisions::Decisions;
use super::server::{Engine, Procedure, State};
use super::streams::{Streams, facts};
use super::volumes::Volumes;
use crate::io::executor::Executor;
use crate::log::format::{Version, VolumeId};
use crate::log::{
    Appended, CleaningError, CleaningLoss, CleaningSite, ContentStanding, Log, Owner, Place,
    Segment, SegmentId, SegmentUse, clean,
};
use cachewright_ftl::SegmentFacts;
use cachewright_types::TenantId;
use cachewright_types::measure::LossReason;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

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

/// Cleaning a segment wins at least a page, and in segments of many pages one part of so many: the
/// shares that are worth it and the loss at a segment's end leave more.
const PARTS_WON: usize = 64;

/// What is cleaned, and how far that is.
#[derive(Debug, Default)]
pub struct Cleaner {
    /// The segment that is being cleaned.
    victim: Option<SegmentId>,
    /// Blocks that were moved so far.
    moved: u64,
    /// What keeps it from going on.
    pub obstacles: CleaningObstacles,
}

impl Cleaner {
    /// Whether a segment is being cleaned.
    pub fn is_busy(&self) -> bool {
        self.victim.is_some()
    }

    /// Whether content lies in the segment that is being cleaned.
    pub fn is_in_victim(&self, log: &Log, place: Place) -> bool {
        self.victim.is_some_and(|victim| log.set().locate(place).0 == victim)
    }

    /// Blocks that were moved so far.
    pub fn moved(&self) -> u64 {
        self.moved
    }
}

impl Engine {
    /// Cleans a segment.
    pub(super) async fn clean(self, victim: SegmentId) {
        let result = clean(&self, victim).await;
        self.with(|state| state.end_cleaning(victim, result));
    }
}

/// What is begun for the cleaner counts as work beside clients.
impl CleaningSite for Engine {
    fn with<R>(&self, work: impl FnOnce(&mut Log, &mut Executor, &mut dyn Owner) -> R) -> R {
        Engine::with(self, |state| {
            let before = state.content.cleaner.moved;
            let LogContent { cleaner, log, streams, copies, stranded, leaving, .. } =
                &mut state.content;
            let mut owner = ContentOwner {
                decisions: &state.decisions,
                volumes: &state.volumes,
                streams,
                copies,
                stranded,
                leaving,
                moved: &mut cleaner.moved,
                forgotten: Vec::new(),
            };
            let result = work(log, &mut state.tasks, &mut owner);
            // Their copies end, so that the cleaner finds their content dead.
            let forgotten = owner.forgotten;
            forgotten.into_iter().for_each(|block| state.forget(block));
            state.charge_cleaning(before);
            result
        })
    }

    async fn goes_on(&self) -> bool {
        loop {
            let (ends, goes_on, advanced) = Engine::with(self, |state| {
                let ends = state.content.failed.is_some() || state.is_closing;
                (ends, state.may_clean(), state.advanced.clone())
            });
            if ends || goes_on {
                return !ends;
            }
            advanced.wait().await;
        }
    }

    async fn waits(&self, room: bool) -> bool {
        let advanced = Engine::with(self, |state| {
            let obstacles = &mut state.content.cleaner.obstacles;
            (obstacles.is_blocked, obstacles.is_waiting) = (room, true);
            state.advanced.clone()
        });
        advanced.wait().await;
        Engine::with(self, |state| {
            let obstacles = &mut state.content.cleaner.obstacles;
            (obstacles.is_blocked, obstacles.is_waiting) = (false, false);
        });
        self.goes_on().await
    }
}

impl State {
    /// Begins to clean a segment if a pool is short of room.
    pub(super) fn make_space(&mut self) {
        let pools = 0..self.content.log.set().pools();
        self.space.short_pools = pools.filter(|pool| self.is_short(*pool)).collect();
        let ends = self.content.failed.is_some() || self.is_closing;
        if ends || self.content.cleaner.is_busy() || !self.may_clean() {
            return;
        }
        if let Some(victim) = self.victim_of_short() {
            self.content.cleaner.victim = Some(victim);
            self.begun.push_back(Procedure::Clean(victim));
        } else {
            let mut short = self.space.short_pools.iter();
            if let Some(segment) = short.find_map(|pool| self.to_be_ended(*pool)) {
                self.content.log.end_segment(&mut self.tasks, segment);
            }
        }
    }

    /// Whether cleaning may go on now: it is not bounded, it is allowed to, or it cannot wait.
    pub(super) fn may_clean(&self) -> bool {
        if !self.background.is_bounded() {
            return true;
        }
        let mut short = self.space.short_pools.iter();
        self.background.may_go_on(self.now_ns) || short.any(|pool| self.is_urgent(*pool))
    }

    /// What cleaning has copied counts as work beside clients; `before`: blocks before that.
    fn charge_cleaning(&mut self, before: u64) {
        let copied = self.content.cleaner.moved - before;
        if self.background.is_bounded() && copied > 0 {
            self.background.charge(copied << self.block_shift, self.now_ns);
        }
    }

    /// The segment to be cleaned, if a pool is short of room: for the one with the fewest free
    /// segments in which one can be cleaned.
    fn victim_of_short(&mut self) -> Option<SegmentId> {
        let mut short: Vec<usize> = self.space.short_pools.iter().copied().collect();
        short.sort_by_key(|pool| self.content.log.free_segments(*pool));
        short.into_iter().find_map(|pool| self.victim(pool))
    }

    /// Cleaning a segment has ended: it is free, or stays as it is.
    fn end_cleaning(&mut self, victim: SegmentId, result: Result<(), CleaningError>) {
        let LogContent { cleaner, log, streams, .. } = &mut self.content;
        cleaner.victim = None;
        match result {
            Ok(()) => {
                streams.schemes.end(true, log.clock());
                self.counts.cleaned += 1;
                self.note_cleaned(victim);
            }
            Err(CleaningError::Unreadable) => {
                cleaner.obstacles.damaged.insert(victim);
                streams.schemes.end(false, log.clock());
            }
            Err(CleaningError::Log(_) | CleaningError::Ended) => {}
        }
    }

    /// Notes that a segment was cleaned, for the end of cleaning that frees nothing. While requests
    /// are under way more may be won by what they do.
    fn note_cleaned(&mut self, victim: SegmentId) {
        if !self.is_quiet() {
            return self.content.cleaner.obstacles.note_change();
        }
        let LogContent { cleaner, log, .. } = &mut self.content;
        let pool = log.set().pool(victim);
        let free = log.segments().filter(|(id, segment)| {
            let is_free = matches!(segment.usage, SegmentUse::Free | SegmentUse::Emptied);
            is_free && log.set().pool(*id) == pool
        });
        let enough =
            log.set().segments_of(pool) + PARTS_WON.min(log.set().segment_pages() as usize);
        cleaner.obstacles.note_cleaned(pool, enough, free.count());
    }

    /// Forgets a block whose clean content is not moved. Its leaving is in the log before its
    /// segment is emptied: an older copy of it must not be found again.
    fn forget(&mut self, block: ForgottenBlock) {
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
                self.content.note_gone(tenant, volume, number..number + 1, version);
            }
            None => self.lose(tenant, number, reason),
        }
    }
}

impl State {
    /// Whether a pool is to be cleaned. Once it is short of free segments, it stays so until a few
    /// more are free than made it short. Cleaning that is bounded begins earlier, by as many.
    pub(super) fn is_short(&self, pool: usize) -> bool {
        let log = &self.content.log;
        let further = (log.set().segments_of(pool) / SEGMENTS_PER_FURTHER).min(MAX_FURTHER);
        let early = if self.background.is_bounded() { further } else { 0 };
        let low = self.low_mark() + early;
        let mark = if self.space.short_pools.contains(&pool) { low + further } else { low };
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
        if self.content.cleaner.obstacles.is_fruitless(pool) {
            return false;
        }
        let found = self.candidates(pool);
        found.can_win() || found.open.is_some()
    }

    /// The segment to be ended so that a pool can be cleaned, where nothing else can be.
    pub(super) fn to_be_ended(&self, pool: usize) -> Option<SegmentId> {
        let found = self.candidates(pool);
        let is_fruitless = self.content.cleaner.obstacles.is_fruitless(pool);
        found.open.filter(|_| !found.can_win() && !is_fruitless)
    }

    /// The segment to be cleaned for a pool: of its own that win space the choice of the reclaim
    /// policy. Where records that take content away crowd the pool, it is the one for which they
    /// are kept: that with the oldest content of all pools.
    pub(super) fn victim(&mut self, pool: usize) -> Option<SegmentId> {
        if self.content.cleaner.obstacles.is_fruitless(pool) {
            return None;
        }
        let candidates = self.candidates(pool);
        if !candidates.can_win() {
            return None;
        }
        let Candidates { mut segments, crowding, .. } = candidates;
        // Cleaning waits for content that a slow device has not taken, and all tenants wait for
        // cleaning: of the segments that win space those come first that are free of it soonest.
        let held = self.held_segments();
        let free_from = |facts: &SegmentFacts| held.get(&SegmentId(facts.id)).copied();
        let wins = |facts: &&SegmentFacts| facts.reclaimable > 0;
        let soonest = segments.iter().filter(wins).map(free_from).min().flatten();
        let later = segments.iter_mut().filter(|facts| free_from(facts) > soonest);
        later.for_each(|facts| facts.reclaimable = 0);
        let log = &self.content.log;
        let (free, clock) = (log.free_segments(pool) as u32, log.clock());
        let schemes = &mut self.content.streams.schemes;
        schemes.look(&segments);
        let victim = crowding.or_else(|| schemes.choose(free, clock).map(SegmentId))?;
        schemes.begin(victim.0, clock);
        Some(victim)
    }

    /// Segments with content that waits for the backing device of a tenant which uses more room
    /// than its own, and by which decision the last of it left the cache: devices get it in that
    /// order.
    fn held_segments(&self) -> BTreeMap<SegmentId, u64> {
        let LogContent { log, copies, leaving, .. } = &self.content;
        let tenants = self.volumes.tenants().filter(|tenant| self.is_beyond_own(*tenant));
        let slow: BTreeSet<TenantId> = tenants.collect();
        // What only a sync has not reached yet is free before all that is to be written.
        let written = leaving.iter().filter(|(_, tenant)| slow.contains(tenant));
        let written = written.map(|(place, _)| (*place, 0));
        let departing = slow.iter().flat_map(|tenant| copies.leaving(*tenant, 0..u64::MAX));
        let departing = departing.filter_map(|copy| {
            copies.stored(copy).map(|stored| (stored.place, copies.get(copy).left))
        });
        let mut held = BTreeMap::new();
        for (place, left) in written.chain(departing) {
            let last: &mut u64 = held.entry(log.set().locate(place).0).or_default();
            *last = left.max(*last);
        }
        held
    }

    fn candidates(&self, pool: usize) -> Candidates {
        let log = &self.content.log;
        let set = log.set();
        let shape = self.content.streams.shape();
        let oldest = log.segments().min_by_key(|(id, segment)| (segment.oldest, *id));
        let mut kept_records = 0;
        let cleanable = |id: SegmentId, segment: &Segment| {
            segment.usage == SegmentUse::Sealed && !self.content.cleaner.obstacles.is_damaged(id)
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

/// A block whose clean content is not moved, and why.
pub struct ForgottenBlock {
    pub tenant: TenantId,
    pub number: u64,
    pub loss: CleaningLoss,
}

/// What the cleaner asks about.
pub struct ContentOwner<'a> {
    pub decisions: &'a Decisions,
    pub volumes: &'a Volumes,
    pub streams: &'a mut Streams,
    pub copies: &'a mut Copies,
    pub stranded: &'a mut StrandedBlocks,
    pub leaving: &'a HashMap<Place, TenantId, FixedState>,
    /// Blocks that were moved so far.
    pub moved: &'a mut u64,
    pub forgotten: Vec<ForgottenBlock>,
}

impl ContentOwner<'_> {
    fn cached(&self, tenant: TenantId, number: u64) -> Option<CopyId> {
        self.copies.find(&self.decisions.decider.cache.find(tenant, number)?)
    }
}

impl Owner for ContentOwner<'_> {
    fn standing(&self, volume: VolumeId, number: u64, place: Place) -> ContentStanding {
        let Some(tenant) = self.volumes.tenant(volume) else { return ContentStanding::Dead };
        let here = |id| self.copies.stored(id).filter(|stored| stored.place == place);
        if let Some(copy) = self.cached(tenant, number)
            && let Some(stored) = here(copy)
        {
            return match stored.dirty {
                _ if self.copies.is_changing(copy) => ContentStanding::Changing,
                true => ContentStanding::Dirty,
                false => ContentStanding::Clean,
            };
        }
        let mut departing = self.copies.leaving(tenant, number..number + 1);
        if let Some(found) = self.stranded.get(&(volume, number))
            && found.place == place
        {
            // A copy would be newer than what is on its way to the log.
            let newer = self.cached(tenant, number).is_some();
            return match found.dirty {
                _ if newer || departing.next().is_some() => ContentStanding::Changing,
                true => ContentStanding::Dirty,
                false => ContentStanding::Clean,
            };
        }
        let still_read = departing.any(|copy| here(copy).is_some());
        if still_read || self.leaving.contains_key(&place) {
            ContentStanding::Changing
        } else {
            ContentStanding::Dead
        }
    }

    fn moved(&mut self, volume: VolumeId, number: u64, from: Place, to: &Appended) {
        *self.moved += 1;
        let Some(tenant) = self.volumes.tenant(volume) else { return };
        let version = Version::last(self.last_decision());
        self.copies.note_moved(from, to);
        if let Some(copy) = self.cached(tenant, number)
            && self.copies.stored(copy).is_some_and(|stored| stored.place == from)
        {
            self.copies.moved(copy, to, version);
        } else if let Some(found) = self.stranded.get_mut(&(volume, number)) {
            (found.place, found.version) = (to.place, version);
        }
    }

    fn may_return(&self, volume: VolumeId, blocks: Range<u64>) -> bool {
        let Some(tenant) = self.volumes.tenant(volume) else { return false };
        self.copies.leaving(tenant, blocks).next().is_some()
    }

    fn stream(&mut self, log: &Log, volume: VolumeId, number: u64, from: Place) -> usize {
        let tenant = self.volumes.tenant(volume);
        let copy = tenant.and_then(|tenant| self.cached(tenant, number));
        let lies_there =
            |id: &_| self.copies.stored(*id).is_some_and(|stored| stored.place == from);
        let copy = copy.filter(lies_there);
        self.streams.of_moved(log, copy, from)
    }

    /// A block that was not read since it was stored or moved has won nothing by its stay: it is
    /// fetched again if it is wanted. Content that only the log has is never cold.
    fn is_cold(&self, volume: VolumeId, number: u64, place: Place) -> bool {
        let Some(tenant) = self.volumes.tenant(volume) else { return false };
        let stored = self.cached(tenant, number).and_then(|copy| self.copies.stored(copy));
        let unread =
            |stored: StoredBlock| stored.place == place && !stored.dirty && !stored.was_read;
        self.streams.drops_cold
            && stored.is_some_and(unread)
            && !self.decisions.is_dirty(tenant, number)
    }

    fn forget(&mut self, volume: VolumeId, number: u64, loss: CleaningLoss) {
        let tenant = self.volumes.tenant(volume);
        self.forgotten.extend(tenant.map(|tenant| ForgottenBlock { tenant, number, loss }));
    }

    fn last_decision(&self) -> u64 {
        self.decisions.in_log(self.decisions.made())
    }
}

/// What keeps the cleaner from going on, and from cleaning some segments at all.
#[derive(Debug, Default)]
pub struct CleaningObstacles {
    /// The cleaner has found no room for what it copies.
    is_blocked: bool,
    /// It waits for that, or for others to change what it copies.
    is_waiting: bool,
    /// Segments that cannot be cleaned, because their records cannot be read.
    damaged: BTreeSet<SegmentId>,
    /// How far the cleaning of each pool is since the last decision.
    rounds: BTreeMap<usize, CleaningRound>,
}

/// So many segments cleaned one after the other that at least one more should be free, while
/// nothing else changes.
#[derive(Clone, Copy, Debug, Default)]
struct CleaningRound {
    /// Segments that were cleaned in it.
    cleaned: usize,
    /// Free segments at its start.
    free: usize,
    /// A round has freed nothing: the pool is not cleaned before something else changes.
    is_fruitless: bool,
}

impl CleaningObstacles {
    /// Whether the cleaner cannot go on by itself.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Whether it waits for anything but its own operations.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// A segment of a pool was cleaned while no request was under way; so many are free or on their
    /// way to be. After `enough` of them one more should be.
    pub fn note_cleaned(&mut self, pool: usize, enough: usize, free: usize) {
        let start = CleaningRound { cleaned: 0, free, is_fruitless: false };
        let round = self.rounds.entry(pool).or_insert(start);
        round.cleaned += 1;
        if round.cleaned > enough {
            *round = CleaningRound { is_fruitless: free <= round.free, ..start };
        }
    }

    /// Something has changed besides cleaning: more may be won now.
    pub fn note_change(&mut self) {
        self.rounds.clear();
    }

    /// Whether cleaning a pool has freed nothing for as long as it should take to free a segment.
    pub fn is_fruitless(&self, pool: usize) -> bool {
        self.rounds.get(&pool).is_some_and(|round| round.is_fruitless)
    }

    /// Whether a segment cannot be cleaned.
    pub fn is_damaged(&self, segment: SegmentId) -> bool {
        self.damaged.contains(&segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_frees_nothing_ends_cleaning_until_something_changes() {
        let mut obstacles = CleaningObstacles::default();
        for cleaned in 0..10 {
            obstacles.note_cleaned(1, 4, 3 + cleaned / 3);
            assert!(!obstacles.is_fruitless(1), "segments are won");
        }
        (0..10).for_each(|_| obstacles.note_cleaned(1, 4, 5));
        assert!(obstacles.is_fruitless(1) && !obstacles.is_fruitless(0));
        obstacles.note_change();
        assert!(!obstacles.is_fruitless(1));
    }
}
