//! The ends of intervals and windows, in order of time.
//!
//! For: telling a replay what ends before its next request. Must never know: what is done then, or
//! which system serves. Units: nanoseconds of simulated time. An interval ends before a window of
//! the same time, the warm-up before both.

use super::{NEVER_NS, PROGRESS_EVERY, Replay};
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
    /// The next window.
    window: u32,
    /// When it ends, where windows are of time.
    window_end_ns: Option<u64>,
    /// When the last one ends, where windows are of time.
    windows_end_ns: Option<u64>,
    warm: bool,
    /// A window of so many requests ends with the last of them, not before the next request.
    with_requests: bool,
}

impl Boundaries {
    /// Before the first.
    pub fn new<W>(replay: &Replay<'_, W>, with_requests: bool) -> Boundaries {
        let windows_end_ns = replay.pace.windows_end_ns(replay.recording.span_ns());
        let mut boundaries = Boundaries {
            interval_end_ns: if replay.interval_ns == 0 { NEVER_NS } else { replay.interval_ns },
            intervals: 0,
            window: 0,
            window_end_ns: None,
            windows_end_ns,
            warm: replay.warmup_ns == 0,
            with_requests,
        };
        boundaries.set_window_end(replay.windows);
        boundaries
    }

    /// Gives progress after every so many intervals. Errors: too many of them, stopped.
    pub fn check(&self, proceed: impl FnOnce() -> bool) -> Result<(), RecordError> {
        if self.intervals > MAX_INTERVALS {
            return Err(RecordError::Intervals { limit: MAX_INTERVALS });
        }
        let due = self.intervals > 0 && self.intervals.is_multiple_of(PROGRESS_EVERY);
        if due && !proceed() { Err(RecordError::Cancelled) } else { Ok(()) }
    }

    /// Whether nothing ends at or before `now_ns`, told at once; otherwise ask for the next.
    #[inline]
    pub fn are_ahead(&self, now_ns: u64) -> bool {
        let windows_ahead = match self.window_end_ns {
            Some(end_ns) => now_ns < end_ns,
            None => self.with_requests,
        };
        self.warm && windows_ahead && now_ns < self.interval_end_ns
    }

    /// The next end at or before `now_ns`; `sent` of `total` requests were sent.
    pub fn next<W>(
        &mut self,
        replay: &Replay<'_, W>,
        sent: u64,
        total: u64,
        now_ns: u64,
    ) -> Option<Boundary> {
        let interval_ns = self.interval_end_ns;
        let window_ns = self.window_end_ns(replay.windows, sent, total, now_ns);
        if !self.warm && replay.warmup_ns <= now_ns.min(interval_ns).min(window_ns) {
            self.warm = true;
            return Some(Boundary::Warmup);
        }
        // Time saturates at the value that stands for "never", and nothing ends then.
        let next_ns = interval_ns.min(window_ns);
        if next_ns > now_ns || next_ns == NEVER_NS {
            return None;
        }
        if interval_ns <= window_ns {
            self.interval_end_ns = self.interval_end_ns.saturating_add(replay.interval_ns);
            self.intervals += 1;
            return Some(Boundary::Interval);
        }
        Some(self.end_window(replay.windows, window_ns))
    }

    /// The next window that is complete with the request just sent, at `now_ns`.
    pub fn completed<W>(
        &mut self,
        replay: &Replay<'_, W>,
        sent: u64,
        total: u64,
        now_ns: u64,
    ) -> Option<Boundary> {
        let complete =
            self.windows_end_ns.is_none() && self.is_complete(replay.windows, sent, total);
        complete.then(|| self.end_window(replay.windows, now_ns))
    }

    /// The next end of a warm-up or window that is left when the replay is done at `now_ns`.
    pub fn last<W>(&mut self, replay: &Replay<'_, W>, now_ns: u64) -> Option<Boundary> {
        if !std::mem::replace(&mut self.warm, true) {
            return Some(Boundary::Warmup);
        }
        let time_ns = self.window_end_ns.unwrap_or(now_ns);
        (self.window < replay.windows).then(|| self.end_window(replay.windows, time_ns))
    }

    fn end_window(&mut self, windows: u32, time_ns: u64) -> Boundary {
        let number = self.window;
        self.window += 1;
        self.set_window_end(windows);
        Boundary::Window { number, time_ns }
    }

    /// When the next of so many windows ends: at its share of the trace's time, or (closed) when
    /// its share of requests has been sent, or (closed, where requests repeat) at its share of the
    /// run.
    fn window_end_ns(&self, windows: u32, sent: u64, total: u64, now_ns: u64) -> u64 {
        match self.window_end_ns {
            _ if self.window >= windows => NEVER_NS,
            Some(end_ns) => end_ns,
            None if !self.with_requests && self.is_complete(windows, sent, total) => now_ns,
            None => NEVER_NS,
        }
    }

    fn set_window_end(&mut self, windows: u32) {
        let next = u128::from(self.window) + 1;
        let share = |end_ns: u64| (u128::from(end_ns) * next / u128::from(windows.max(1))) as u64;
        self.window_end_ns = self.windows_end_ns.map(share);
    }

    /// Whether the next of so many windows has its share of the requests.
    fn is_complete(&self, windows: u32, sent: u64, total: u64) -> bool {
        let (windows, next) = (u64::from(windows), u64::from(self.window) + 1);
        next <= windows && sent * windows >= total * next
    }
}
