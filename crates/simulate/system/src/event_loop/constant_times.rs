//! A cache whose answers take one of two constants, as a system of the event loop.
//!
//! Trace times order a tenant's requests and are otherwise not used. A request takes the hit time
//! when every block hits, else the miss time; nothing queues, so that an answer is known as soon as
//! its request is sent.

use super::times::WINDOWS;
use super::{Answered, Boundary, Replay, System, request_of};
use crate::lane::{EngineLane, Lane, LaneResult};
use crate::recording::{RecordError, Recording, TRIM};
use crate::replay::feed_tenant;
use cachewright_control::{SignalMeter, SignalNeeds};
use cachewright_policy::Policy;
use cachewright_types::measure::Rates;

/// How long requests take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durations {
    /// A request all of whose blocks hit.
    pub hit_ns: u64,
    /// Any other request.
    pub miss_ns: u64,
}

/// The answers to a tenant's reads and writes, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerTotals {
    /// Requests answered that were sent after the warm-up.
    pub requests: u64,
    /// Sum of their durations in nanoseconds.
    pub busy_ns: u64,
    /// When the last request of all was answered.
    pub finished_ns: u64,
}

impl AnswerTotals {
    /// Mean response in nanoseconds; 0 without requests.
    pub fn mean_response_ns(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.busy_ns as f64 / self.requests as f64 }
    }

    /// Requests per second until the last answer, from `start_ns`; 0 without requests.
    pub fn throughput_per_s(&self, start_ns: u64) -> f64 {
        let span = self.finished_ns.saturating_sub(start_ns);
        if span == 0 { 0.0 } else { self.requests as f64 * 1e9 / span as f64 }
    }
}

/// What a replay with constant times found.
#[derive(Clone, Debug)]
pub struct ConstantRun {
    /// What the cache counted.
    pub cache: LaneResult,
    /// Per tenant.
    pub answers: Vec<AnswerTotals>,
    /// Answers in windows of the width asked for, if one is; bytes are known where the recording
    /// has those of accesses.
    pub throughput: Option<Rates>,
}

/// The state of one replay with constant times.
struct ConstantTimes<'a, P> {
    replay: &'a Replay<'a, Recording>,
    durations: Durations,
    lane: EngineLane<P>,
    meter: Option<SignalMeter>,
    totals: Vec<AnswerTotals>,
    throughput: Option<Rates>,
    /// The answer to the request just sent.
    answer: Option<Answered>,
}

/// Replays a recording to the end through `lane`; `needs` are the signals of the partitioner,
/// `progress` is told the requests sent and stops the replay by returning false. Errors: stopped,
/// too many intervals.
pub fn run_constant<P: Policy>(
    replay: &Replay<'_, Recording>,
    durations: Durations,
    lane: EngineLane<P>,
    needs: SignalNeeds,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<ConstantRun, RecordError> {
    let tenants = replay.recording.totals.len();
    let width_ns = replay.throughput_ns;
    let system = ConstantTimes {
        replay,
        durations,
        lane,
        meter: needs.meter(tenants, replay.interval_ns),
        totals: vec![AnswerTotals::default(); tenants],
        throughput: (width_ns > 0).then(|| Rates::new(tenants, width_ns, WINDOWS)),
        answer: None,
    };
    super::run(replay, system, progress)
}

impl<P: Policy> System for ConstantTimes<'_, P> {
    const FORETELLS: bool = true;
    type Found = ConstantRun;

    fn next_due(&self) -> Option<u64> {
        None
    }

    fn advance(&mut self, due_ns: u64, _: u64) -> u64 {
        due_ns
    }

    fn submit(&mut self, tag: u64, now_ns: u64) {
        let (recording, index) = (self.replay.recording, request_of(tag));
        let range = recording.accesses_of(index);
        let tenant = recording.tenant_at(range.start);
        if let Some(meter) = &mut self.meter {
            meter.reach(now_ns);
            feed_tenant(recording, range.clone(), tenant, meter);
        }
        let all_hit = self.lane.request(recording, index, now_ns);
        let duration = if all_hit { self.durations.hit_ns } else { self.durations.miss_ns };
        let finish_ns = now_ns.saturating_add(duration);
        let totals = &mut self.totals[tenant.index()];
        totals.finished_ns = totals.finished_ns.max(finish_ns);
        self.answer = Some(Answered { request: index as u32, tenant, finish_ns });
        if recording.flags[range.start] & TRIM != 0 {
            return;
        }
        if now_ns >= self.replay.warmup_ns {
            totals.requests += 1;
            totals.busy_ns = totals.busy_ns.saturating_add(duration);
        }
        if let Some(windows) = &mut self.throughput {
            let bytes = recording.bytes.get(range).unwrap_or_default();
            let bytes = bytes.iter().map(|bytes| u64::from(*bytes)).sum();
            windows.record(tenant.index(), finish_ns, bytes, duration);
        }
    }

    fn on_boundary(&mut self, boundary: Boundary, _: u64) {
        match boundary {
            Boundary::Warmup => self.lane.end_warmup(),
            Boundary::Interval => {
                let signals = self.meter.as_mut().map(SignalMeter::end_interval);
                self.lane.end_interval(&signals.unwrap_or_default());
            }
            Boundary::Window { number, time_ns } => self.lane.end_window(number, time_ns),
            // Nothing here is laid out by tenants of the moment.
            Boundary::Tenants => {}
        }
    }

    fn end_event(&mut self, answers: &mut Vec<Answered>) {
        answers.extend(self.answer.take());
    }

    fn finish(mut self, _: u64) -> ConstantRun {
        let (cache, answers) = (self.lane.finish(), self.totals);
        ConstantRun { cache, answers, throughput: self.throughput }
    }
}
