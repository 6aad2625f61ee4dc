//! The loop of events: requests go to a system at their time, or when their tenant may send them.
//!
//! There is one order of events for every system ([`System`]): constant times
//! ([`constant_times`]), a machine ([`crate::machines`]), a drive with a data cache
//! ([`ssd_replay`]). At one time the system's own events come before the end of the warm-up, that
//! before intervals, intervals before windows, windows before requests: so an open loop decides
//! exactly as the replay without devices does. Times are nanoseconds of simulated time.

pub mod constant_times;
mod source;
pub mod ssd_replay;
pub mod times;

pub use cachewright_control::Presence;
pub use constant_times::{AnswerTotals, ConstantRun, Durations, run_constant};
pub use source::{Loop, NEVER_NS, Noise, TimedRequests};
pub use ssd_replay::run_ssd;
pub use times::{BlockTotals, ChannelTotals, DriveTotals, Experience, StepClock, StepSums, Times};

pub(crate) use source::request_of;

use crate::machines::Requests;
use crate::recording::{RecordError, Recording};
use cachewright_policy::FutureSlice;
use cachewright_types::TenantId;
use source::RequestSource;
use std::ops::Range;

/// Requests, or intervals, between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1 << 10;
/// Intervals of one replay at most: long pauses hold many of them.
const MAX_INTERVALS: u64 = 10_000_000;

/// What is replayed, and how.
pub struct Replay<'a, W = Requests> {
    /// The workload by blocks.
    pub recording: &'a Recording,
    /// The workload by requests, placed on devices where there are some.
    pub requests: &'a W,
    /// Bytes of each tenant on its backing device; empty without devices.
    pub extents: &'a [Range<u64>],
    /// The future of each access, for policies that need it.
    pub futures: FutureSlice<'a>,
    /// When requests are sent.
    pub pace: Loop,
    /// Only this tenant's requests.
    pub only: Option<TenantId>,
    /// Partition interval; 0 for none.
    pub interval_ns: u64,
    /// Windows of the cache's time series.
    pub windows: u32,
    /// What arrives before is carried out and counted in time series only.
    pub warmup_ns: u64,
    /// Width of the windows in which answers are counted by tenant; 0 for none.
    pub throughput_ns: u64,
    /// Sums responses and hits by the step in which requests arrive; open loops only.
    pub clock: Option<StepClock>,
    /// Blocks the cache may hold.
    pub capacity_blocks: u32,
}

/// A request answered, as the loop sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its number in the workload.
    pub request: u32,
    /// Whose it was.
    pub tenant: TenantId,
    /// When it was answered.
    pub finish_ns: u64,
}

/// What serves requests in simulated time.
pub trait System {
    /// Whether a request's answer is known, at a time to come, as soon as it is submitted. Such a
    /// system has nothing due by itself. Its windows of equal numbers of requests end with the
    /// request that completes them, otherwise with the next one; and its intervals go on until
    /// every tenant has paused after its last answer.
    const FORETELLS: bool = false;
    /// What it found.
    type Found;

    /// When something next happens in it; nothing while it is idle.
    fn next_due(&self) -> Option<u64>;
    /// Lets what is due at `due_ns` happen, which is the next due time, and perhaps more, in order
    /// of time: up to `until_ns`, and no later than something is answered. Returns the time of the
    /// last that happened.
    fn advance(&mut self, due_ns: u64, until_ns: u64) -> u64;
    /// A request arrives at `now_ns`; the low half of its tag is its number in the workload.
    fn submit(&mut self, tag: u64, now_ns: u64);
    /// Some requests come next: what their decisions will read can be loaded ahead.
    fn prefetch(&mut self, _upcoming: &[u32]) {}
    /// Something ends at or before `now_ns`, when the next request comes.
    fn on_boundary(&mut self, boundary: Boundary, now_ns: u64);
    /// An event is over: hands out its answers, and lets the system begin what it does beside
    /// requests, as a machine its write-backs.
    fn end_event(&mut self, answers: &mut Vec<Answered>);
    /// The workload has ended at `now_ns` and the system is idle.
    fn finish(self, now_ns: u64) -> Self::Found;

    /// Which tenants are there, where the system follows that.
    fn presence(&mut self) -> Option<&mut Presence> {
        None
    }
}

/// The state of one replay.
struct EventLoop<'a, S, W> {
    replay: &'a Replay<'a, W>,
    system: S,
    source: RequestSource<'a>,
    boundaries: Boundaries,
    /// Kept for its memory.
    answers: Vec<Answered>,
    sent: u64,
    now_ns: u64,
    /// Whether the system follows which tenants are there.
    follows: bool,
}

/// Replays to the end on an idle system; `progress` is told the requests sent and stops the replay
/// by returning false. Errors: stopped, too many intervals.
pub(crate) fn run<S: System, W: TimedRequests>(
    replay: &Replay<'_, W>,
    mut system: S,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<S::Found, RecordError> {
    let tenants = replay.recording.totals.len();
    let follows = system.presence().is_some();
    if let Some(presence) = system.presence().filter(|_| replay.pace == Loop::Open) {
        let requests = replay.requests.by_tenant(tenants);
        presence.expect_requests(requests.iter().map(|requests| requests.len() as u64));
    }
    let (source, boundaries) =
        (RequestSource::new(replay, tenants), Boundaries::new(replay, S::FORETELLS));
    let (answers, sent, now_ns) = (Vec::new(), 0, 0);
    let event_loop =
        EventLoop { replay, system, source, boundaries, answers, sent, now_ns, follows };
    event_loop.run(progress)
}

impl<S: System, W: TimedRequests> EventLoop<'_, S, W> {
    fn run(mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<S::Found, RecordError> {
        loop {
            match (self.system.next_due(), self.source.next_ns()) {
                (None, None) => return self.finish(progress),
                (Some(due_ns), next) if next.is_none_or(|next_ns| due_ns <= next_ns) => {
                    self.now_ns = self.system.advance(due_ns, next.unwrap_or(NEVER_NS));
                }
                (_, Some(now_ns)) => self.send(now_ns, progress)?,
                (Some(_), None) => {}
            }
            self.end_event();
            self.retire_tenants();
        }
    }

    /// Passes what ends until `now_ns` and sends the request that is next then.
    fn send(
        &mut self,
        now_ns: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), RecordError> {
        self.now_ns = now_ns;
        self.pass_boundaries(progress)?;
        self.admit_tenants();
        if let Some(tag) = self.source.take() {
            let upcoming = self.source.upcoming();
            if !upcoming.is_empty() {
                self.system.prefetch(upcoming);
            }
            self.system.submit(tag, now_ns);
            self.sent += 1;
            let requests = self.replay.requests;
            if let Some(presence) = self.presence() {
                presence.sent(requests.tenant(request_of(tag)));
            }
            self.complete_windows();
            if self.sent.is_multiple_of(PROGRESS_EVERY) && !progress(self.sent) {
                return Err(RecordError::Cancelled);
            }
        }
        self.source.schedule_open(self.replay.requests);
        Ok(())
    }

    /// Ends the event at hand: the tenants of its answers may send again.
    fn end_event(&mut self) {
        let EventLoop { replay, system, source, answers, follows, .. } = self;
        system.end_event(answers);
        for answer in answers.drain(..) {
            if *follows && let Some(presence) = system.presence() {
                presence.answered(answer.tenant);
            }
            source.answered(replay.requests, &answer);
        }
    }

    /// Passes every boundary up to now. Errors: too many intervals, stopped.
    fn pass_boundaries(
        &mut self,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), RecordError> {
        if self.boundaries.are_ahead(self.now_ns) {
            return Ok(());
        }
        let (sent, total) = (self.sent, self.source.total());
        while let Some(boundary) = self.boundaries.next(self.replay, sent, total, self.now_ns) {
            self.system.on_boundary(boundary, self.now_ns);
            if boundary == Boundary::Interval {
                self.boundaries.check(|| progress(self.sent))?;
            }
        }
        Ok(())
    }

    /// Ends the windows that the request just sent completes, where it is the request that ends
    /// them.
    fn complete_windows(&mut self) {
        if !S::FORETELLS {
            return;
        }
        let (sent, total) = (self.sent, self.source.total());
        while let Some(window) = self.boundaries.completed(self.replay, sent, total, self.now_ns) {
            self.system.on_boundary(window, self.now_ns);
        }
    }

    /// Which tenants are there, where that matters.
    fn presence(&mut self) -> Option<&mut Presence> {
        if self.follows { self.system.presence() } else { None }
    }

    /// Tenants that begin until now come.
    fn admit_tenants(&mut self) {
        let now_ns = self.now_ns;
        if self.presence().is_some_and(|presence| presence.admit(now_ns)) {
            self.system.on_boundary(Boundary::Tenants, now_ns);
        }
    }

    /// Tenants that have sent and been answered all leave.
    fn retire_tenants(&mut self) {
        if !self.follows {
            return;
        }
        let (now_ns, source) = (self.now_ns, &self.source);
        let done = |tenant: usize| source.is_done(tenant, now_ns);
        if self.system.presence().is_some_and(|presence| presence.retire(done)) {
            self.system.on_boundary(Boundary::Tenants, now_ns);
        }
    }

    fn finish(mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<S::Found, RecordError> {
        if S::FORETELLS {
            self.now_ns = self.now_ns.max(self.source.last_ns());
            self.pass_boundaries(progress)?;
        }
        while let Some(boundary) = self.boundaries.last(self.replay, self.now_ns) {
            self.system.on_boundary(boundary, self.now_ns);
        }
        Ok(self.system.finish(self.now_ns))
    }
}

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
struct Boundaries {
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
    fn new<W>(replay: &Replay<'_, W>, with_requests: bool) -> Boundaries {
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
    fn check(&self, proceed: impl FnOnce() -> bool) -> Result<(), RecordError> {
        if self.intervals > MAX_INTERVALS {
            return Err(RecordError::Intervals { limit: MAX_INTERVALS });
        }
        let due = self.intervals > 0 && self.intervals.is_multiple_of(PROGRESS_EVERY);
        if due && !proceed() { Err(RecordError::Cancelled) } else { Ok(()) }
    }

    /// Whether nothing ends at or before `now_ns`, told at once; otherwise ask for the next.
    #[inline]
    fn are_ahead(&self, now_ns: u64) -> bool {
        let windows_ahead = match self.window_end_ns {
            Some(end_ns) => now_ns < end_ns,
            None => self.with_requests,
        };
        self.warm && windows_ahead && now_ns < self.interval_end_ns
    }

    /// The next end at or before `now_ns`; `sent` of `total` requests were sent.
    fn next<W>(
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
    fn completed<W>(
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
    fn last<W>(&mut self, replay: &Replay<'_, W>, now_ns: u64) -> Option<Boundary> {
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
