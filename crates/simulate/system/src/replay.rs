//! Open-loop replay: every lane sees every access in order of time, and what ends, at the right
//! access.
//!
//! Lanes are independent and replayed in parallel, so the result does not depend on the number of
//! threads.

use crate::lane::{Lane, LaneResult};
use crate::recording::{RecordError, Recording, TRIM, WRITE};
use cachewright_control::{BlockUse, SignalMeter, Signals};
use cachewright_policy::FutureSlice;
use cachewright_types::TenantId;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

/// Accesses replayed through every lane before the next ones: their ids stay in the processor's
/// cache while lane after lane reads them.
const STEP: usize = 1 << 18;
/// Accesses of one lane between looks at whether to go on: a policy that learns takes tens of
/// microseconds for each.
pub(crate) const POLL: usize = 1 << 12;
/// The same of lanes that measure curves, which hold a cache for each of many sizes.
const POLL_CURVES: usize = 1 << 8;
/// Requests looked at together.
const SEARCH_PIECE: usize = 1 << 20;

/// A place in the recording where something ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The first access after it.
    pub position: usize,
    /// When, in nanoseconds.
    pub time_ns: u64,
    /// The number of the interval that ends here.
    pub interval: Option<u32>,
    /// The number of the window that ends here.
    pub window: Option<u32>,
    /// Whether the warm-up ends here.
    pub warmup: bool,
}

/// All cuts of a recording, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// In order of time and position; at one time there is one cut, and the end of a warm-up by
    /// requests beside it.
    pub cuts: Vec<Cut>,
}

impl Cuts {
    /// Interval ends every `interval_ns` (0: none) and `windows` windows of equal length over the
    /// whole span.
    pub fn new(recording: &Recording, interval_ns: u64, windows: u32) -> Cuts {
        let end = recording.span_ns().saturating_add(1);
        let mut cuts: Vec<Cut> = Vec::new();
        let mut search = TimeSearch::new(recording);
        if let Some(count) = end.checked_div(interval_ns) {
            for interval in 0..count {
                let time_ns = (interval + 1) * interval_ns;
                let position = search.position_at(time_ns);
                let interval = Some(interval as u32);
                cuts.push(Cut { position, time_ns, interval, window: None, warmup: false });
            }
        }
        let mut search = TimeSearch::new(recording);
        for window in 0..windows {
            let share = u128::from(end) * u128::from(window + 1) / u128::from(windows);
            let time_ns = share as u64;
            let position = search.position_at(time_ns);
            match cuts.binary_search_by_key(&time_ns, |cut| cut.time_ns) {
                Ok(found) => cuts[found].window = Some(window),
                Err(before) => {
                    let (interval, window) = (None, Some(window));
                    cuts.insert(before, Cut { position, time_ns, interval, window, warmup: false });
                }
            }
        }
        Cuts { cuts }
    }

    /// The same with the end of a warm-up before a request, by its index in `arrivals` (0: none).
    pub fn with_warmup_before(mut self, recording: &Recording, request: usize) -> Cuts {
        let Some(time_ns) = recording.times_ns().get(request).copied().filter(|_| request > 0)
        else {
            return self;
        };
        // What ends at the time of the request ends before the first request of that time.
        let before = self.cuts.partition_point(|cut| cut.time_ns <= time_ns);
        let (position, interval, window) = (recording.start_of(request), None, None);
        self.cuts.insert(before, Cut { position, time_ns, interval, window, warmup: true });
        self
    }

    /// The same with the end of a warm-up of `warmup_ns` (0: none).
    pub fn with_warmup(mut self, recording: &Recording, warmup_ns: u64) -> Cuts {
        let position = recording.position_at(warmup_ns);
        match self.cuts.binary_search_by_key(&warmup_ns, |cut| cut.time_ns) {
            _ if warmup_ns == 0 => {}
            Ok(found) => self.cuts[found].warmup = true,
            Err(before) => {
                let (interval, window) = (None, None);
                let cut = Cut { position, time_ns: warmup_ns, interval, window, warmup: true };
                self.cuts.insert(before, cut);
            }
        }
        self
    }
}

/// What `meter` finds in each interval.
pub fn interval_signals(
    recording: &Recording,
    cuts: &Cuts,
    mut meter: SignalMeter,
) -> Vec<Signals> {
    let mut intervals = Vec::new();
    let (mut from, mut request) = (0, 0);
    for cut in cuts.cuts.iter().filter(|cut| cut.interval.is_some()) {
        if meter.counts_steps() {
            let first = request;
            while request < recording.times_ns().len() {
                let accesses = recording.accesses_of(request);
                if accesses.start >= cut.position {
                    break;
                }
                meter.reach(recording.times_ns()[request]);
                feed_all(recording, accesses, &mut meter);
                request += 1;
                if (request - first).is_multiple_of(STEP) {
                    recording.release(from..recording.start_of(request));
                }
            }
        } else {
            for start in (from..cut.position).step_by(STEP) {
                let range = start..(start + STEP).min(cut.position);
                feed_all(recording, range.clone(), &mut meter);
                recording.release(range);
            }
        }
        recording.release(from..cut.position);
        from = cut.position;
        intervals.push(meter.end_interval());
    }
    intervals
}

/// What every lane of a replay shares.
#[derive(Clone, Copy)]
pub struct ReplayInputs<'a> {
    /// The accesses.
    pub recording: &'a Recording,
    /// The future of each access, for policies that need it.
    pub futures: FutureSlice<'a>,
    /// Interval and window ends.
    pub cuts: &'a Cuts,
    /// What was measured in each interval, or empty.
    pub signals: &'a [Signals],
}

impl ReplayInputs<'_> {
    /// Feeds one lane the accesses up to `to`, from `from`, ending what ends on the way. `next` is
    /// the first cut not yet passed; the cut after the last one passed is returned.
    fn feed(&self, lane: &mut dyn Lane, from: usize, to: usize, mut next: usize) -> usize {
        let mut position = from;
        let last = to == self.recording.len();
        while let Some(cut) = self.cuts.cuts.get(next) {
            if cut.position > to || (cut.position == to && !last) {
                break;
            }
            lane.replay(self.recording, position..cut.position, self.futures);
            position = cut.position;
            if cut.warmup {
                lane.end_warmup();
            }
            if let Some(interval) = cut.interval {
                let signals = self.signals.get(interval as usize);
                lane.end_interval(signals.unwrap_or(&Signals::default()));
            }
            if let Some(window) = cut.window {
                lane.end_window(window, cut.time_ns);
            }
            next += 1;
        }
        lane.replay(self.recording, position..to, self.futures);
        next
    }

    /// Replays the whole recording through one lane; `progress` takes the accesses done and stops
    /// the replay by returning false.
    pub fn replay_one(
        &self,
        lane: &mut dyn Lane,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<LaneResult, RecordError> {
        let length = self.recording.len();
        let (mut from, mut held, mut cut) = (0, 0, 0);
        loop {
            if !progress(from as u64) {
                return Err(RecordError::Cancelled);
            }
            if from == length && held == length {
                return Ok(lane.finish());
            }
            let to = (from + POLL).min(length);
            cut = self.feed(lane, from, to, cut);
            from = to;
            if to == length || to - held >= STEP {
                self.recording.release(held..to);
                held = to;
            }
        }
    }
}

/// Replays a recording through every lane; `progress` is told the accesses done (of all lanes
/// together) and stops the replay by returning false.
pub fn replay(
    shared: &ReplayInputs<'_>,
    lanes: &mut [Box<dyn Lane>],
    mut progress: impl FnMut(u64) -> bool + Send,
) -> Result<Vec<LaneResult>, RecordError> {
    let length = shared.recording.len();
    let (mut from, mut cut) = (0, 0);
    let mut done = 0;
    let tell = Mutex::new(|piece: usize| {
        done += piece as u64;
        progress(done)
    });
    let goes_on = |piece| tell.lock().is_ok_and(|mut tell| tell(piece));
    loop {
        let to = (from + STEP).min(length);
        let feed = |lane: &mut Box<dyn Lane>| {
            let (mut at, mut next) = (from, cut);
            while at < to {
                let end = (at + POLL_CURVES).min(to);
                next = shared.feed(lane.as_mut(), at, end, next);
                if !goes_on(end - at) {
                    return Err(RecordError::Cancelled);
                }
                at = end;
            }
            Ok(next)
        };
        let passed = lanes.par_iter_mut().map(feed);
        cut = passed.try_reduce(|| cut, |one, other| Ok(one.max(other)))?;
        shared.recording.release(from..to);
        from = to;
        if to == length {
            return Ok(lanes.iter_mut().map(|lane| lane.finish()).collect());
        }
    }
}

/// Finds positions of times that never fall.
struct TimeSearch<'a> {
    recording: &'a Recording,
    /// Requests per piece.
    piece: usize,
    /// Requests that are before every time asked for from now on.
    passed: usize,
}

impl<'a> TimeSearch<'a> {
    fn new(recording: &'a Recording) -> TimeSearch<'a> {
        TimeSearch { recording, piece: SEARCH_PIECE, passed: 0 }
    }

    /// As [`Recording::position_at`], for a time that is not before the one asked for last.
    fn position_at(&mut self, time_ns: u64) -> usize {
        let times = self.recording.times_ns();
        loop {
            let end = (self.passed + self.piece).min(times.len());
            let piece = &times[self.passed..end];
            if piece.last().is_none_or(|last| *last >= time_ns) {
                let request = self.passed + piece.partition_point(|time| *time < time_ns);
                return self.recording.start_of(request);
            }
            self.release(end);
            self.passed = end;
        }
    }

    /// Gives back the requests from those that are passed up to `end`.
    fn release(&self, end: usize) {
        self.recording.arrivals.release(self.passed..end);
    }
}

impl Drop for TimeSearch<'_> {
    fn drop(&mut self) {
        self.release(self.passed + self.piece);
    }
}

/// Feeds a meter a tenant's accesses and trims in `range`.
pub(crate) fn feed_tenant(
    recording: &Recording,
    range: Range<usize>,
    tenant: TenantId,
    meter: &mut SignalMeter,
) {
    for position in range {
        let (block, flags) = (recording.block_at(position, false), recording.flags[position]);
        if flags & TRIM != 0 {
            meter.trim(tenant, block);
        } else {
            let bytes = recording.bytes.get(position).copied().unwrap_or_default();
            meter.access(BlockUse { tenant, block, write: flags & WRITE != 0, bytes });
        }
    }
}

/// Feeds a meter all tenants' accesses and trims in `range`.
fn feed_all(recording: &Recording, range: Range<usize>, meter: &mut SignalMeter) {
    for position in range {
        feed_tenant(recording, position..position + 1, recording.tenant_at(position), meter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Arrivals;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_a_binary_search_finds(
            mut times in prop::collection::vec(0_u64..60, 0..80),
            mut asked in prop::collection::vec(0_u64..70, 1..40),
            lengths in prop::collection::vec(1_u32..4, 80),
            piece in 1_usize..20,
            whole: bool,
        ) {
            times.sort_unstable();
            asked.sort_unstable();
            let starts: Vec<u32> = lengths
                .iter()
                .scan(0, |next, length| Some(std::mem::replace(next, *next + length)))
                .take(times.len())
                .collect();
            let blocks: u32 = lengths.iter().take(times.len()).sum();
            let blocks = if whole { times.len() } else { blocks as usize };
            let starts = if whole { Vec::new() } else { starts };
            let recording = Recording {
                ids: vec![0; blocks].into(),
                arrivals: Arrivals::new(times.into(), starts.into()),
                ..Recording::default()
            };
            let mut search = TimeSearch { piece, ..TimeSearch::new(&recording) };
            for time_ns in asked {
                prop_assert_eq!(search.position_at(time_ns), recording.position_at(time_ns));
            }
        }
    }
}
