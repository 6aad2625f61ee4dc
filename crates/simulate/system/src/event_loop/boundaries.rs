//! The ends of intervals and windows, in order of time.
//!
//! For: telling a replay what ends before its next request. Must never know: what is done then, or
//! which system serves. Units: nanoseconds of simulated time. An interval ends before a window of
//! the same time, the warm-up before both.

use super::{PROGRESS_EVERY, Replay};
use crate::recording::RecordError;

/// Intervals of one replay at most: long pauses hold many of them.
const MAX_INTERVALS: u64 = 10_000_000;

/// What ends, or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The warm-up: what arrives from now on counts.
    Warmup,
    /// An interval: the cache is divided anew.
    Interval,
    /// A window of the time series.
    Window {
        /// Its number.
        number: u32,
        /// When it ends.
        time_ns: u64,
    },
    /// Tenants have come or gone.
    Tenants,
}

/// How far a replay is in intervals and windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundaries {
    interval_end_ns: u64,
    /// Intervals that have ended.
    intervals: u64,
    window: u32,
    warm: bool,
    /// A window of so many requests ends with the last of them, not before the next request.
    with_requests: bool,
}

impl Boundaries {
    /// Before the first.
    pub fn new<W>(replay: &Replay<'_, W>, with_requests: bool) -> Boundaries {
        let (interval_end_ns, warm) = (replay.interval_ns, replay.warmup_ns == 0);
        Boundaries { interval_end_ns, intervals: 0, window: 0, warm, with_requests }
    }

    /// Gives progress after every so many intervals. Errors: too many of them, stopped.
    pub fn check(&self, proceed: impl FnOnce() -> bool) -> Result<(), RecordError> {
        if self.intervals > MAX_INTERVALS {
            return Err(RecordError::Intervals { limit: MAX_INTERVALS });
        }
        let due = self.intervals > 0 && self.intervals.is_multiple_of(PROGRESS_EVERY);
        if due && !proceed() { Err(RecordError::Cancelled) } else { Ok(()) }
    }

    /// The next end at or before `now_ns`; `progress` is how many requests were sent, of how many.
    pub fn next<W>(
        &mut self,
        replay: &Replay<'_, W>,
        progress: (u64, u64),
        now_ns: u64,
    ) -> Option<Boundary> {
        let interval_ns = if replay.interval_ns == 0 { u64::MAX } else { self.interval_end_ns };
        let window_ns = self.window_end_ns(replay, progress, now_ns);
        if !self.warm && replay.warmup_ns <= now_ns.min(interval_ns).min(window_ns) {
            self.warm = true;
            return Some(Boundary::Warmup);
        }
        if interval_ns.min(window_ns) > now_ns {
            return None;
        }
        if interval_ns <= window_ns {
            self.interval_end_ns = self.interval_end_ns.saturating_add(replay.interval_ns);
            self.intervals += 1;
            return Some(Boundary::Interval);
        }
        Some(self.window_ends(window_ns))
    }

    /// The next window that is complete with the request just sent, at `now_ns`.
    pub fn completed<W>(
        &mut self,
        replay: &Replay<'_, W>,
        progress: (u64, u64),
        now_ns: u64,
    ) -> Option<Boundary> {
        let timed = replay.pace.windows_end_ns(0).is_some();
        let complete = !timed && self.is_complete(replay, progress);
        complete.then(|| self.window_ends(now_ns))
    }

    /// The next end of a warm-up or window that is left when the replay is done at `now_ns`.
    pub fn last<W>(&mut self, replay: &Replay<'_, W>, now_ns: u64) -> Option<Boundary> {
        if !std::mem::replace(&mut self.warm, true) {
            return Some(Boundary::Warmup);
        }
        let end_ns = replay.pace.windows_end_ns(replay.recording.span_ns());
        let time_ns = end_ns.map_or(now_ns, |end_ns| self.share_of(end_ns, replay.windows));
        (self.window < replay.windows).then(|| self.window_ends(time_ns))
    }

    fn window_ends(&mut self, time_ns: u64) -> Boundary {
        let number = self.window;
        self.window += 1;
        Boundary::Window { number, time_ns }
    }

    /// When the next window ends: at its share of the trace's time, or (closed) when its share of
    /// requests has been sent, or (closed, where requests repeat) at its share of the run.
    fn window_end_ns<W>(&self, replay: &Replay<'_, W>, progress: (u64, u64), now_ns: u64) -> u64 {
        if self.window >= replay.windows {
            return u64::MAX;
        }
        match replay.pace.windows_end_ns(replay.recording.span_ns()) {
            Some(end_ns) => self.share_of(end_ns, replay.windows),
            None if !self.with_requests && self.is_complete(replay, progress) => now_ns,
            None => u64::MAX,
        }
    }

    /// The end of the next of so many windows that end together at `end_ns`.
    fn share_of(&self, end_ns: u64, windows: u32) -> u64 {
        let next = u128::from(self.window) + 1;
        (u128::from(end_ns) * next / u128::from(windows.max(1))) as u64
    }

    /// Whether the next window has its share of the requests.
    fn is_complete<W>(&self, replay: &Replay<'_, W>, (sent, total): (u64, u64)) -> bool {
        let (windows, next) = (u64::from(replay.windows), u64::from(self.window) + 1);
        next <= windows && sent * windows >= total * next
    }
}
