//! The ends of intervals and windows, in order of time.
//!
//! For: telling a replay what ends before its next request. Must never know: what is done then, or
//! which machine replays. Units: nanoseconds of simulated time. An interval ends before a window of
//! the same time, the warm-up before both.

use super::drive::{PROGRESS_EVERY, Replay};
use crate::recording::RecordError;

/// Intervals of one replay at most: long pauses hold many of them.
const MAX_INTERVALS: u64 = 10_000_000;

/// What ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
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
}

/// How far a replay is in intervals and windows.
#[derive(Clone, Copy, Debug)]
pub struct Borders {
    interval_end_ns: u64,
    /// Intervals that have ended.
    intervals: u64,
    window: u32,
    warm: bool,
}

impl Borders {
    /// Before the first.
    pub fn new(replay: &Replay<'_>) -> Borders {
        let (interval_end_ns, warm) = (replay.interval_ns, replay.warmup_ns == 0);
        Borders { interval_end_ns, intervals: 0, window: 0, warm }
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
    pub fn next(
        &mut self,
        replay: &Replay<'_>,
        progress: (u64, u64),
        now_ns: u64,
    ) -> Option<Border> {
        let interval_ns = if replay.interval_ns == 0 { u64::MAX } else { self.interval_end_ns };
        let window_ns = self.window_end_ns(replay, progress, now_ns);
        if !self.warm && replay.warmup_ns <= now_ns.min(interval_ns).min(window_ns) {
            self.warm = true;
            return Some(Border::Warmup);
        }
        if interval_ns.min(window_ns) > now_ns {
            return None;
        }
        if interval_ns <= window_ns {
            self.interval_end_ns = self.interval_end_ns.saturating_add(replay.interval_ns);
            self.intervals += 1;
            return Some(Border::Interval);
        }
        Some(self.window_ends(window_ns))
    }

    /// The next end of a warm-up or window that is left when the replay is done at `now_ns`.
    pub fn last(&mut self, replay: &Replay<'_>, now_ns: u64) -> Option<Border> {
        if !std::mem::replace(&mut self.warm, true) {
            return Some(Border::Warmup);
        }
        let timed = replay.pace.windows_end_ns(0).is_some();
        let time_ns = if timed { self.window_end_ns(replay, (1, 1), now_ns) } else { now_ns };
        (self.window < replay.windows).then(|| self.window_ends(time_ns))
    }

    fn window_ends(&mut self, time_ns: u64) -> Border {
        let number = self.window;
        self.window += 1;
        Border::Window { number, time_ns }
    }

    /// When the next window ends: at its share of the trace's time, or (closed) when its share of
    /// requests has been sent, or (closed, where requests repeat) at its share of the run.
    fn window_end_ns(&self, replay: &Replay<'_>, (sent, total): (u64, u64), now_ns: u64) -> u64 {
        let (windows, next) = (u64::from(replay.windows), u64::from(self.window) + 1);
        if next > windows {
            return u64::MAX;
        }
        match replay.pace.windows_end_ns(replay.recording.span_ns()) {
            Some(end_ns) => (u128::from(end_ns) * u128::from(next) / u128::from(windows)) as u64,
            None if sent * windows >= total * next => now_ns,
            None => u64::MAX,
        }
    }
}
