//! Where a replay's next request comes from: the trace's clock, or tenants that wait for answers.
//!
//! For: the order and the times of requests. Must never know: caches, devices, stack files. Units:
//! nanoseconds. A tenant that repeats sends its first request after its last, as another one: the
//! tags of both say so. A noisy one sends in its on-periods only.

use super::drive::Replay;
use super::machine::Answer;
use super::requests::Requests;
use crate::closed::NEVER_NS;
use crate::noise::{Noise, Periods};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Where a tag has how often its tenant began anew; below is the request's place.
const LAP_SHIFT: u32 = 32;
/// How long a tenant waits that has sent all its requests in no time.
const EMPTY_LAP_NS: u64 = 1000;

/// When requests are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loop {
    /// At the times of the trace.
    Open,
    /// Each tenant keeps `queue_depth` requests under way and waits `think_ns` after an answer.
    Closed {
        /// Per tenant; at least 1.
        queue_depth: Vec<u32>,
        /// Per tenant.
        think_ns: Vec<u64>,
        /// Whether each process of a tenant's trace sends for itself instead, one request at a time
        /// and after the pauses recorded.
        recorded: Vec<bool>,
        /// When each tenant begins.
        start_ns: Vec<u64>,
        /// From when on each tenant sends nothing; [`NEVER_NS`] for all
        /// its requests.
        stop_ns: Vec<u64>,
        /// How the rate of each tenant switches, if it does.
        noise: Vec<Option<Noise>>,
        /// Whether each tenant begins anew at the end of its requests, until it stops.
        repeat: Vec<bool>,
    },
}

impl Loop {
    /// When the last window of the time series ends, where windows are of time: those of an open
    /// loop over `span_ns`, and of a closed one in which requests have no end.
    pub(super) fn windows_end_ns(&self, span_ns: u64) -> Option<u64> {
        match self {
            Loop::Open => Some(span_ns.saturating_add(1)),
            Loop::Closed { stop_ns, repeat, .. } => {
                let stops = stop_ns.iter().copied().filter(|stop| *stop < NEVER_NS);
                stops.max().filter(|_| repeat.contains(&true))
            }
        }
    }
}

/// Where the next request comes from.
#[derive(Default)]
pub(super) struct Source {
    /// Requests in order: of all tenants when open, else per tenant, or per process of one.
    order: Vec<Vec<u32>>,
    next: Vec<usize>,
    /// Whether each order begins anew at its end.
    repeat: Vec<bool>,
    /// How often each order has begun anew, and when last.
    laps: Vec<(u64, Option<u64>)>,
    /// From when on each order sends nothing.
    stop_ns: Vec<u64>,
    /// Requests under way of each order, at most.
    depths: Vec<u32>,
    /// When each order sends, where that is not always.
    periods: Vec<Option<Periods>>,
    /// When something may be sent: (time, number of the schedule, order).
    ready: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The orders of each tenant of a closed loop.
    of_tenant: Vec<Range<usize>>,
    /// The order of each process of a tenant, and the orders that begin after a request, where
    /// processes send.
    of_process: HashMap<(usize, u32), u32, FixedState>,
    begin_after: HashMap<u32, Vec<u32>, FixedState>,
    scheduled: u64,
}

impl Source {
    pub(super) fn new(replay: &Replay<'_>, tenants: usize) -> Source {
        let requests = replay.requests;
        let wanted = |tenant: usize| replay.only.is_none_or(|only| only.index() == tenant);
        let mut source = Source::default();
        match &replay.pace {
            Loop::Open => {
                let all = 0..requests.len() as u32;
                let chosen = all.filter(|at| wanted(requests.tenant(*at as usize).index()));
                source.order.push(chosen.collect());
                source.next.push(0);
                source.stop_ns.push(NEVER_NS);
                source.repeat.push(false);
                source.laps.push((0, None));
                source.depths.push(1);
                source.periods.push(None);
                source.schedule_open(requests);
            }
            Loop::Closed { queue_depth, start_ns, recorded, .. } => {
                for (tenant, order) in requests.by_tenant(tenants).into_iter().enumerate() {
                    let first = source.order.len();
                    let order = if wanted(tenant) { order } else { Vec::new() };
                    let depth = if recorded[tenant] { 1 } else { queue_depth[tenant].max(1) };
                    if recorded[tenant] {
                        source.add_processes(tenant, &order, requests);
                    } else {
                        source.order.push(order);
                    }
                    let orders = first..source.order.len();
                    source.of_tenant.push(orders.clone());
                    source.add_manners(&replay.pace, tenant, orders.len());
                    source.depths.resize(source.order.len(), depth);
                    for _ in 0..depth {
                        source.schedule(start_ns[tenant], first as u32);
                    }
                }
            }
        }
        source
    }

    /// An answer: in a closed loop its tenant may send again once it has thought.
    pub(super) fn answered(&mut self, pace: &Loop, requests: &Requests, answer: &Answer) {
        let Loop::Closed { think_ns, recorded, .. } = pace else { return };
        let tenant = answer.tenant.index();
        let at = request_of(answer.tag) as u32;
        if !recorded[tenant] {
            let again = answer.finish_ns.saturating_add(think_ns[tenant]);
            return self.schedule(again, self.of_tenant[tenant].start as u32);
        }
        let process = requests.call(at as usize).process;
        let own = self.of_process.get(&(tenant, process)).copied();
        for order in own.into_iter().chain(self.begin_after.remove(&at).unwrap_or_default()) {
            let next = self.order[order as usize].get(self.next[order as usize]);
            let pause_ns = next.map_or(0, |next| requests.call(*next as usize).pause_ns);
            self.schedule(answer.finish_ns.saturating_add(pause_ns), order);
        }
    }

    /// Splits a tenant's requests into one order per process. The first process begins at once,
    /// each other one after the request before its first.
    fn add_processes(&mut self, tenant: usize, all: &[u32], requests: &Requests) {
        let first = self.order.len() as u32;
        self.order.push(Vec::new());
        for (place, at) in all.iter().enumerate() {
            let process = requests.call(*at as usize).process;
            let fresh = if place == 0 { first } else { self.order.len() as u32 };
            let order = *self.of_process.entry((tenant, process)).or_insert(fresh);
            if order as usize == self.order.len() {
                self.order.push(Vec::new());
                self.begin_after.entry(all[place - 1]).or_default().push(order);
            }
            self.order[order as usize].push(*at);
        }
    }

    /// Notes how a tenant of a closed loop sends, for so many orders of its.
    fn add_manners(&mut self, pace: &Loop, tenant: usize, orders: usize) {
        let Loop::Closed { start_ns, stop_ns, noise, repeat, .. } = pace else { return };
        let periods = || noise[tenant].map(|noise| Periods::new(noise, start_ns[tenant]));
        self.next.resize(self.order.len(), 0);
        self.laps.resize(self.order.len(), (0, None));
        self.repeat.resize(self.order.len(), repeat[tenant]);
        self.stop_ns.resize(self.order.len(), stop_ns[tenant]);
        self.periods.extend((0..orders).map(|_| periods()));
    }

    fn schedule(&mut self, time_ns: u64, order: u32) {
        let lane = order as usize;
        let repeats = self.repeat[lane] && !self.order[lane].is_empty();
        if repeats || self.next[lane] < self.order[lane].len() {
            let periods = self.periods[lane].as_mut();
            let depth = self.depths[lane];
            let begin = |periods: &mut Periods| periods.begin_within_ns(time_ns, depth);
            let time_ns = periods.map_or(time_ns, begin);
            self.ready.push(Reverse((time_ns, self.scheduled, order)));
            self.scheduled += 1;
        }
    }

    pub(super) fn schedule_open(&mut self, requests: &Requests) {
        if let Some(at) = self.order[0].get(self.next[0]) {
            self.schedule(requests.time_ns(*at as usize), 0);
        }
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.ready.peek().map(|Reverse(ready)| ready.0)
    }

    /// Whether a tenant of a closed loop sends nothing from `now_ns` on; of an open loop it is not
    /// known here.
    pub(super) fn is_done(&self, pace: &Loop, tenant: usize, now_ns: u64) -> bool {
        let Some(mut orders) = self.of_tenant.get(tenant).cloned() else {
            return *pace == Loop::Open;
        };
        orders.all(|one| {
            let sent = !self.repeat[one] && self.next[one] >= self.order[one].len();
            sent || now_ns >= self.stop_ns[one]
        })
    }

    /// Requests in all, each once; fewer once a tenant has stopped.
    pub(super) fn total(&self) -> u64 {
        self.order.iter().map(|requests| requests.len() as u64).sum()
    }

    /// A tag for the next request, if its tenant has one left: [`request_of`] has its place. Tags
    /// of a tenant ascend.
    pub(super) fn take(&mut self) -> Option<u64> {
        let Reverse((now_ns, _, lane)) = self.ready.pop()?;
        let lane = lane as usize;
        if now_ns >= self.stop_ns[lane] {
            self.order[lane].truncate(self.next[lane]);
            self.repeat[lane] = false;
        }
        if self.repeat[lane] && self.next[lane] == self.order[lane].len() {
            let (lap, begun_ns) = self.laps[lane];
            if begun_ns == Some(now_ns) {
                // All of a lap was answered from memory: time must go on before the next.
                self.schedule(now_ns + EMPTY_LAP_NS, lane as u32);
                return None;
            }
            self.next[lane] = 0;
            self.laps[lane] = (lap + 1, Some(now_ns));
        }
        let at = *self.order[lane].get(self.next[lane])?;
        self.next[lane] += 1;
        Some(self.laps[lane].0 << LAP_SHIFT | u64::from(at))
    }
}

/// The place of the request that a tag stands for.
pub(super) fn request_of(tag: u64) -> usize {
    (tag & ((1 << LAP_SHIFT) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_done_by_its_own_stop_though_another_has_several_orders() {
        // Tenant 0 sends from two processes and stops at 100 ns, tenant 1 from one until 1,000 ns.
        let source = Source {
            order: vec![vec![0], vec![1], vec![2]],
            next: vec![0; 3],
            stop_ns: vec![100, 100, 1000],
            repeat: vec![false; 3],
            of_tenant: vec![0..2, 2..3],
            ..Source::default()
        };
        let pace = Loop::Closed {
            queue_depth: vec![1; 2],
            think_ns: vec![0; 2],
            recorded: vec![true, false],
            start_ns: vec![0; 2],
            stop_ns: vec![100, 1000],
            noise: vec![None; 2],
            repeat: vec![false; 2],
        };
        let done = |now_ns| [0, 1].map(|tenant| source.is_done(&pace, tenant, now_ns));
        assert_eq!([50, 500, 1000].map(done), [[false, false], [true, false], [true, true]]);
    }
}
