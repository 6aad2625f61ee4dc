//! Closed-loop replay: each tenant keeps a number of requests under way and sends the next when one
//! is answered, so that its speed follows its hits.
//!
//! For: workloads that wait. Trace times order a tenant's requests and are otherwise not used. A
//! request takes the hit time when every block hits, else the miss time; nothing queues. Must
//! never know: devices (they replace the two constants). Units: nanoseconds.

use crate::lane::{EngineLane, Lane, LaneResult};
use crate::recording::{RecordError, Recording, TRIM};
use crate::signals::{SignalMeter, Wanted};
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Intervals of one replay at most: long pauses hold many of them.
const MAX_INTERVALS: u64 = 10_000_000;
/// Requests, or intervals, between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1 << 16;

/// How fast answers come and how each tenant behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// Requests under way, per tenant; at least 1.
    pub queue_depth: Vec<u32>,
    /// Pause between an answer and the next request, per tenant.
    pub think_ns: Vec<u64>,
    /// When each tenant begins.
    pub start_ns: Vec<u64>,
    /// From when on each tenant sends nothing; [`crate::event_loop::NEVER_NS`] for all its requests.
    pub stop_ns: Vec<u64>,
    /// Duration of a request all of whose blocks hit.
    pub hit_ns: u64,
    /// Duration of any other request.
    pub miss_ns: u64,
    /// Partition interval; 0 for none.
    pub interval_ns: u64,
    /// Windows of the time series, each of the same number of requests; when a tenant stops, the
    /// windows to come share what is left.
    pub windows: u32,
}

/// What a tenant experienced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Experience {
    /// Requests answered (reads and writes).
    pub requests: u64,
    /// Sum of their durations in nanoseconds.
    pub busy_ns: u64,
    /// When the last one was answered.
    pub finished_ns: u64,
}

impl Experience {
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

/// The requests of each tenant in order, as indices into the recording's requests.
pub fn requests_by_tenant(recording: &Recording) -> Vec<Vec<u32>> {
    let mut requests = vec![Vec::new(); recording.totals.len()];
    for request in 0..recording.times_ns.len() {
        let start = recording.accesses_of(request).start;
        requests[recording.tenant_at(start).index()].push(request as u32);
    }
    requests
}

/// The state of one closed-loop replay.
pub struct ClosedLoop<'a, P> {
    recording: &'a Recording,
    requests: &'a [Vec<u32>],
    pace: &'a Pace,
    lane: EngineLane<P>,
    meter: Option<SignalMeter>,
    /// Next request to send, per tenant.
    next: Vec<usize>,
    /// Requests sent or still to be sent.
    total: u64,
    /// When a tenant may send: (time, order of scheduling, tenant). The order breaks ties.
    ready: BinaryHeap<Reverse<(u64, u64, u16)>>,
    experience: Vec<Experience>,
}

impl<'a, P: Policy> ClosedLoop<'a, P> {
    /// A replay at its start. `requests` are [`requests_by_tenant`]; `wanted` is
    /// what the partitioner is told.
    pub fn new(
        recording: &'a Recording,
        requests: &'a [Vec<u32>],
        pace: &'a Pace,
        lane: EngineLane<P>,
        wanted: Wanted,
    ) -> Self {
        let mut ready = BinaryHeap::new();
        let mut order = 0;
        for tenant in 0..requests.len() {
            for _ in 0..pace.queue_depth[tenant].max(1) {
                ready.push(Reverse((pace.start_ns[tenant], order, tenant as u16)));
                order += 1;
            }
        }
        ClosedLoop {
            recording,
            requests,
            pace,
            lane,
            meter: wanted.meter(requests.len(), pace.interval_ns),
            next: vec![0; requests.len()],
            total: requests.iter().map(|requests| requests.len() as u64).sum(),
            ready,
            experience: vec![Experience::default(); requests.len()],
        }
    }

    /// Runs to the end; `progress` is told the requests done and stops the replay by returning
    /// false.
    pub fn run(
        mut self,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(LaneResult, Vec<Experience>), RecordError> {
        let mut order = self.ready.len() as u64;
        let (mut done, mut window) = (0_u64, 0_u32);
        let (mut interval_end, mut intervals) = (self.pace.interval_ns, 0_u64);
        while let Some(Reverse((now, _, tenant))) = self.ready.pop() {
            while self.pace.interval_ns > 0 && now >= interval_end {
                self.end_interval();
                interval_end = interval_end.saturating_add(self.pace.interval_ns);
                intervals += 1;
                if intervals > MAX_INTERVALS {
                    return Err(RecordError::Intervals { limit: MAX_INTERVALS });
                }
                if intervals.is_multiple_of(PROGRESS_EVERY) && !progress(done) {
                    return Err(RecordError::Cancelled);
                }
            }
            let Some(answered) = self.send(usize::from(tenant), now) else { continue };
            let again = answered.saturating_add(self.pace.think_ns[usize::from(tenant)]);
            self.ready.push(Reverse((again, order, tenant)));
            order += 1;
            done += 1;
            while window < self.pace.windows
                && done * u64::from(self.pace.windows) >= self.total * u64::from(window + 1)
            {
                self.lane.end_window(window, now);
                window += 1;
            }
            if done.is_multiple_of(PROGRESS_EVERY) && !progress(done) {
                return Err(RecordError::Cancelled);
            }
        }
        Ok((self.lane.finish(), self.experience))
    }

    /// Sends a tenant's next request at `now`; returns when it is answered, nothing when the
    /// tenant has no more.
    fn send(&mut self, tenant: usize, now: u64) -> Option<u64> {
        if now >= self.pace.stop_ns[tenant] {
            let all = self.requests[tenant].len();
            self.total -= (all - self.next[tenant]) as u64;
            self.next[tenant] = all;
        }
        let request = *self.requests[tenant].get(self.next[tenant])?;
        self.next[tenant] += 1;
        let range = self.recording.accesses_of(request as usize);
        if let Some(meter) = &mut self.meter {
            meter.reach(now);
            self.recording.tell(range.clone(), TenantId(tenant as u16), meter);
        }
        let trim = self.recording.flags[range.start] & TRIM != 0;
        let all_hit = self.lane.request(self.recording, request as usize, now);
        let duration = if all_hit { self.pace.hit_ns } else { self.pace.miss_ns };
        let answered = now.saturating_add(duration);
        let experience = &mut self.experience[tenant];
        if !trim {
            experience.requests += 1;
            experience.busy_ns = experience.busy_ns.saturating_add(duration);
        }
        experience.finished_ns = experience.finished_ns.max(answered);
        Some(answered)
    }

    fn end_interval(&mut self) {
        let signals = self.meter.as_mut().map(SignalMeter::end_interval).unwrap_or_default();
        self.lane.end_interval(&signals);
    }
}
