//! Work that no request waits for yet: how much of it goes on beside clients.
//!
//! Segments are cleaned ahead of need, and dirty blocks written back before they must leave, so
//! that requests later find free segments and clean blocks. Dirty blocks are taken in the order of
//! their ids and written in that of their numbers, a batch at a time. Hits, admissions and
//! evictions are those of a server that writes nothing back early; only write-backs come earlier,
//! and there are more of them where blocks are written again. The rate is halved while more than
//! one request in a hundred is later than the target, and grows slowly while fewer than one in two
//! hundred is: the 99th percentile keeps to the target, and between the two nothing changes
//! (additive increase, multiplicative decrease: D. Chiu and R. Jain, Computer Networks 17, 1989).
//! Work that requests already wait for is never held up. Units: bytes, nanoseconds, shares.

use super::server::{BlockServer, State};
use crate::pace::Pace;
use cachewright_types::{BlockId, TenantId};

/// Rates, in bytes per second: none is set below the least or above the most.
const MIN_RATE: u64 = 1 << 20;
const MAX_RATE: u64 = 1 << 32;
/// The rate is adjusted after so many answers and nanoseconds; downwards as soon as that is sure.
const WINDOW_ANSWERS: u64 = 500;
const WINDOW_NS: u64 = 100_000_000;
/// After so long it is adjusted with fewer answers.
const QUIET_NS: u64 = 1_000_000_000;
/// The rate grows by this part of itself.
const GROWTH: u64 = 8;

/// Bounds on work that no request waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackgroundSettings {
    /// Share of a pool's blocks that may be dirty before some are written back ahead of need; 1:
    /// none are.
    pub dirty_high: f64,
    /// Share of dirty blocks at which that ends.
    pub dirty_low: f64,
    /// Bytes per second that are moved by cleaning ahead of need and written back, at most.
    pub bytes_per_s: Option<u64>,
    /// What 99 of 100 requests shall not exceed because of it, from arrival to answer.
    pub latency_ns: Option<u64>,
}

impl Default for BackgroundSettings {
    fn default() -> BackgroundSettings {
        BackgroundSettings { dirty_high: 1.0, dirty_low: 1.0, bytes_per_s: None, latency_ns: None }
    }
}

/// Answers since the rate was adjusted.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerWindow {
    since_ns: u64,
    answers: u64,
    late: u64,
}

/// What background work may do.
#[derive(Clone, Debug, Default)]
pub struct Background {
    settings: BackgroundSettings,
    pace: Option<Pace>,
    window: AnswerWindow,
    /// Pools of which dirty blocks are being written back, each with the id to go on at.
    pools: Vec<Option<u32>>,
    /// Bytes that were moved or written back ahead of need.
    moved_bytes: u64,
}

impl Background {
    /// Keeps to other settings from now on.
    pub fn set(&mut self, settings: BackgroundSettings) {
        let max = settings.bytes_per_s.unwrap_or(MAX_RATE).min(MAX_RATE);
        let is_bounded = settings.bytes_per_s.is_some() || settings.latency_ns.is_some();
        self.pace = is_bounded.then(|| Pace::new(max));
        (self.settings, self.window) = (settings, AnswerWindow::default());
    }

    /// Whether there are bounds, so that cleaning begins ahead of need.
    pub fn is_bounded(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether answers are to be noted.
    pub fn has_target(&self) -> bool {
        self.settings.latency_ns.is_some()
    }

    /// Bytes per second that are allowed now, if there are bounds.
    pub fn rate(&self) -> Option<u64> {
        self.pace.as_ref().map(Pace::rate)
    }

    /// Bytes that were moved or written back ahead of need.
    pub fn moved_bytes(&self) -> u64 {
        self.moved_bytes
    }

    /// Whether more may be done at this time.
    pub fn may_go_on(&self, now_ns: u64) -> bool {
        self.pace.as_ref().is_none_or(|pace| pace.due_ns() <= now_ns)
    }

    /// So many bytes are moved or written back.
    pub fn charge(&mut self, bytes: u64, now_ns: u64) {
        self.moved_bytes += bytes;
        self.pace.iter_mut().for_each(|pace| pace.charge(bytes, now_ns));
    }

    /// A request was answered after so long.
    pub fn answered(&mut self, now_ns: u64, response_ns: u64) {
        let Some(latency_ns) = self.settings.latency_ns else { return };
        self.window.answers += 1;
        self.window.late += u64::from(response_ns > latency_ns);
        self.adjust(now_ns);
    }

    /// Changes the rate when enough is known of requests beside it.
    pub fn adjust(&mut self, now_ns: u64) {
        let Some(pace) = self.pace.as_mut().filter(|_| self.settings.latency_ns.is_some()) else {
            return;
        };
        let AnswerWindow { since_ns, answers, late } = self.window;
        let passed_ns = now_ns.saturating_sub(since_ns);
        let is_quiet = passed_ns >= QUIET_NS;
        let is_bad = late * 100 > answers.max(WINDOW_ANSWERS);
        if passed_ns < WINDOW_NS || (answers < WINDOW_ANSWERS && !is_quiet && !is_bad) {
            return;
        }
        let max = self.settings.bytes_per_s.unwrap_or(MAX_RATE).min(MAX_RATE);
        let rate = pace.rate();
        if late * 100 > answers {
            pace.set_rate((rate / 2).max(MIN_RATE.min(max)));
        } else if late * 200 <= answers {
            pace.set_rate(rate.saturating_add(rate / GROWTH).min(max));
        }
        self.window = AnswerWindow { since_ns: now_ns, ..AnswerWindow::default() };
    }

    /// Whether dirty blocks of a pool are to be written back, of which it holds so many; the id to
    /// go on at. Once that has begun it goes on until the lower mark.
    pub fn begins_at(&mut self, pool: usize, dirty: u64, capacity: u64) -> Option<u32> {
        if self.settings.dirty_high >= 1.0 {
            return None;
        }
        self.pools.resize(self.pools.len().max(pool + 1), None);
        let share = dirty as f64 / capacity.max(1) as f64;
        let begun = &mut self.pools[pool];
        if dirty == 0 || share <= self.settings.dirty_low {
            *begun = None;
        } else if share > self.settings.dirty_high {
            begun.get_or_insert(0);
        }
        *begun
    }

    /// Where to go on in a pool; nothing: from its first id.
    pub fn go_on_at(&mut self, pool: usize, next: Option<u32>) {
        if let Some(begun) = self.pools.get_mut(pool) {
            *begun = Some(next.unwrap_or(0));
        }
    }
}

/// Blocks that are written back together: a sixteenth of a pool's, and at most so many.
const MAX_BATCH: u64 = 32;
/// Write-backs under way beyond which no batch begins.
const MAX_UNDER_WAY: usize = 64;

impl BlockServer {
    /// Bounds work that no request waits for, from now on.
    pub fn set_background(&mut self, settings: BackgroundSettings) {
        self.state().background.set(settings);
    }

    /// Bytes per second that such work may move now, if it is bounded, and those it has moved.
    pub fn background(&self) -> (Option<u64>, u64) {
        let background = &self.look().background;
        (background.rate(), background.moved_bytes())
    }

    /// A client's request was answered after so long.
    pub fn client_answered(&mut self, now_ns: u64, response_ns: u64) {
        let background = &mut self.state().background;
        if background.has_target() {
            background.answered(now_ns, response_ns);
        }
    }

    /// Begins to write back a batch of each pool with too many dirty blocks.
    pub(super) fn write_back_ahead(&mut self) {
        let pools = self.look().decisions.decider.cache.engine().pools();
        for pool in 0..pools {
            if !self.state().write_back_some(pool) {
                return;
            }
            self.settle();
        }
    }
}

impl State {
    /// Begins to write back a batch of a pool, if it has too many dirty blocks; false if no more
    /// may be written back now.
    fn write_back_some(&mut self, pool: usize) -> bool {
        if self.content.failed.is_some() || self.is_closing || self.bypass.is_begun() {
            return false;
        }
        let engine = self.decisions.decider.cache.engine();
        let dirty = u64::from(engine.dirty_in(pool));
        let capacity = u64::from(engine.policy(pool).capacity());
        let Some(next) = self.background.begins_at(pool, dirty, capacity) else { return true };
        let batch = (capacity / 16).clamp(1, MAX_BATCH);
        if !self.may_write_ahead(pool, batch) {
            return true;
        }
        let now_ns = self.now_ns;
        self.background.adjust(now_ns);
        if !self.background.may_go_on(now_ns) {
            return false;
        }
        let (plan, next) = self.decisions.clean_some(pool, BlockId(next), batch as u32);
        let cleaned = plan.moves.len() as u64;
        self.carry_alone(TenantId(0), plan);
        self.background.go_on_at(pool, next.map(|block| block.0));
        self.background.charge(cleaned << self.block_shift, now_ns);
        true
    }

    /// Whether the devices of a pool's tenants and the log take another batch.
    fn may_write_ahead(&self, pool: usize, batch: u64) -> bool {
        let engine = self.decisions.decider.cache.engine();
        let own = |tenant: &TenantId| engine.pool_of(*tenant) == pool;
        let mut tenants = self.volumes.tenants().filter(own);
        self.leavings.write_backs() < MAX_UNDER_WAY
            && tenants.all(|tenant| {
                let place = self.content.streams.pool(tenant);
                !self.volumes.backing(tenant).has_failed() && self.has_space(place, batch)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn with_target(bytes_per_s: Option<u64>) -> Background {
        let mut background = Background::default();
        let latency_ns = Some(2 * MS);
        background.set(BackgroundSettings { bytes_per_s, latency_ns, ..Default::default() });
        background
    }

    /// A second of a thousand requests, so many of them late.
    fn second(background: &mut Background, second: u64, late: u64) {
        for request in 0..1000 {
            let is_late = late > 0 && request % (1000 / late) == 0;
            let now_ns = second * 1_000 * MS + request * MS;
            background.answered(now_ns, if is_late { 3 * MS } else { MS });
        }
    }

    #[test]
    fn the_rate_falls_quickly_and_grows_slowly() {
        let mut background = with_target(Some(64 << 20));
        second(&mut background, 1, 50);
        let fallen = background.rate().unwrap();
        assert!(fallen <= 4 << 20, "{fallen}");
        second(&mut background, 2, 50);
        assert_eq!(background.rate(), Some(MIN_RATE));
        second(&mut background, 3, 0);
        let grown = background.rate().unwrap();
        assert!(grown > MIN_RATE && grown < 2 * MIN_RATE, "{grown}");
        (4..30).for_each(|number| second(&mut background, number, 0));
        assert_eq!(background.rate(), Some(64 << 20), "and no further than the cap");
    }

    #[test]
    fn between_the_marks_nothing_changes() {
        let mut background = with_target(None);
        (1..3).for_each(|number| second(&mut background, number, 50));
        let rate = background.rate();
        (3..9).for_each(|number| second(&mut background, number, 8));
        assert_eq!(background.rate(), rate);
        background.adjust(20_000 * MS);
        assert!(background.rate() > rate, "no client is there to be disturbed");
    }

    #[test]
    fn dirty_blocks_are_written_back_between_two_marks() {
        let mut background = Background::default();
        assert_eq!(background.begins_at(0, 100, 100), None, "not unless it is wanted");
        background.set(BackgroundSettings {
            dirty_high: 0.5,
            dirty_low: 0.25,
            ..Default::default()
        });
        assert!(!background.is_bounded() && background.may_go_on(0));
        assert_eq!(background.begins_at(1, 50, 100), None);
        assert_eq!(background.begins_at(1, 51, 100), Some(0));
        background.go_on_at(1, Some(40));
        assert_eq!(background.begins_at(1, 26, 100), Some(40));
        background.go_on_at(1, None);
        assert_eq!(background.begins_at(1, 26, 100), Some(0));
        assert_eq!(background.begins_at(1, 25, 100), None);
        assert_eq!(background.begins_at(1, 50, 100), None);
    }
}
