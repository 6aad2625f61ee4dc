//! Where a replay's next request comes from: the trace's clock, or tenants that wait for answers.
//!
//! A tenant that repeats sends its first request after its last, as another one: the tags of both
//! say so. Requests ready at one time are sent in the order in which they were scheduled.
//!
//! A noisy tenant sends in its on-periods only, or little in its off-periods. Source: Wang et al.
//! (oc-cache), V, where a noisy tenant is one whose rate varies; how is not said. Here on-periods
//! and off-periods take turns, the first is on, and lengths are drawn from a seed of the tenant's
//! own: exponential about their means, or all of them the mean.

use super::{Answered, Replay};
use crate::machines::Requests;
use crate::recording::Recording;
use cachewright_trace::Call;
use cachewright_types::{Rng, Seed, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Where a tag has how often its tenant began anew; below is the request's place.
const LAP_SHIFT: u32 = 32;
/// How long a tenant waits that has sent all its requests in no time.
const EMPTY_LAP_NS: u64 = 1000;

/// Requests that are looked at together: what they wait for in memory, they wait for at once.
const AHEAD: usize = 8;

/// The time that stands for "never".
pub const NEVER_NS: u64 = u64::MAX;

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
        /// From when on each tenant sends nothing; [`NEVER_NS`] for all its requests.
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

/// Requests that are sent one after the other: all of an open loop, else those of a tenant, or of
/// one process of a tenant.
#[derive(Debug, Default)]
struct Order {
    requests: Vec<u32>,
    next: usize,
    /// Requests before this place have been looked at ahead.
    seen: usize,
    /// Requests under way, at most.
    depth: u32,
    /// From when on nothing is sent.
    stop_ns: u64,
    /// Whether it begins anew at its end.
    repeat: bool,
    /// How often it has begun anew, and when last.
    lap: u64,
    lap_begun_ns: Option<u64>,
    /// When it sends, where that is not always.
    periods: Option<Periods>,
}

impl Order {
    /// Whether nothing more is to be sent by itself.
    fn is_sent(&self) -> bool {
        self.next >= self.requests.len() && (!self.repeat || self.requests.is_empty())
    }

    /// Sends nothing more; returns the requests left out.
    fn stop(&mut self) -> u64 {
        let left = self.requests.len() - self.next;
        self.requests.truncate(self.next);
        self.repeat = false;
        left as u64
    }
}

/// Where the next request comes from.
pub(super) struct RequestSource<'a> {
    pace: &'a Loop,
    orders: Vec<Order>,
    /// When something may be sent: (time, number of the schedule, order).
    ready: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The orders of each tenant of a closed loop.
    of_tenant: Vec<Range<usize>>,
    /// The order of each process of a tenant, and the orders that begin after a request, where
    /// processes send.
    of_process: HashMap<(usize, u32), u32, FixedState>,
    begin_after: HashMap<u32, Vec<u32>, FixedState>,
    scheduled: u64,
    /// The order of the last request taken.
    taken: usize,
    /// Requests in all, each once; fewer once a tenant has stopped.
    total: u64,
    /// The latest time at which a tenant began or might have sent again.
    last_ns: u64,
}

impl<'a> RequestSource<'a> {
    pub(super) fn new<W: TimedRequests>(
        replay: &'a Replay<'_, W>,
        tenants: usize,
    ) -> RequestSource<'a> {
        let requests = replay.requests;
        let mut source = RequestSource {
            pace: &replay.pace,
            orders: Vec::new(),
            ready: BinaryHeap::new(),
            of_tenant: Vec::new(),
            of_process: HashMap::default(),
            begin_after: HashMap::default(),
            scheduled: 0,
            taken: 0,
            total: 0,
            last_ns: 0,
        };
        let wanted = |tenant: usize| replay.only.is_none_or(|only| only.index() == tenant);
        if replay.pace == Loop::Open {
            let all = 0..requests.count() as u32;
            let chosen = all.filter(|index| wanted(requests.tenant(*index as usize).index()));
            let (requests, stop_ns) = (chosen.collect(), NEVER_NS);
            source.orders.push(Order { requests, depth: 1, stop_ns, ..Order::default() });
            source.total = source.orders[0].requests.len() as u64;
            source.schedule_open(replay.requests);
            return source;
        }
        for (tenant, order) in requests.by_tenant(tenants).into_iter().enumerate() {
            source.add_tenant(tenant, if wanted(tenant) { order } else { Vec::new() }, requests);
        }
        source
    }

    /// Adds a tenant of a closed loop and schedules its first requests.
    fn add_tenant<W: TimedRequests>(&mut self, tenant: usize, requests: Vec<u32>, workload: &W) {
        let Loop::Closed { queue_depth, start_ns, stop_ns, recorded, noise, repeat, .. } =
            self.pace
        else {
            return;
        };
        let (first, start_ns) = (self.orders.len(), start_ns[tenant]);
        let depth = if recorded[tenant] { 1 } else { queue_depth[tenant].max(1) };
        self.total += requests.len() as u64;
        if recorded[tenant] {
            self.add_processes(tenant, &requests, workload);
        } else {
            self.orders.push(Order { requests, ..Order::default() });
        }
        for order in &mut self.orders[first..] {
            order.depth = depth;
            order.stop_ns = stop_ns[tenant];
            order.repeat = repeat[tenant];
            order.periods = noise[tenant].map(|noise| Periods::new(noise, start_ns));
        }
        self.of_tenant.push(first..self.orders.len());
        self.last_ns = self.last_ns.max(start_ns);
        for _ in 0..depth {
            self.schedule(start_ns, first as u32);
        }
    }

    /// Splits a tenant's requests into one order per process. The first process begins at once,
    /// each other one after the request before its first.
    fn add_processes<W: TimedRequests>(&mut self, tenant: usize, all: &[u32], workload: &W) {
        let first = self.orders.len() as u32;
        self.orders.push(Order::default());
        for (place, index) in all.iter().enumerate() {
            let process = workload.call(*index as usize).process;
            let fresh = if place == 0 { first } else { self.orders.len() as u32 };
            let order = *self.of_process.entry((tenant, process)).or_insert(fresh);
            if order as usize == self.orders.len() {
                self.orders.push(Order::default());
                self.begin_after.entry(all[place - 1]).or_default().push(order);
            }
            self.orders[order as usize].requests.push(*index);
        }
    }

    /// An answer: in a closed loop its tenant may send again once it has thought.
    pub(super) fn answered<W: TimedRequests>(&mut self, workload: &W, answer: &Answered) {
        let Loop::Closed { think_ns, recorded, .. } = self.pace else { return };
        let (tenant, finish_ns) = (answer.tenant.index(), answer.finish_ns);
        if !recorded[tenant] {
            let again_ns = finish_ns.saturating_add(think_ns[tenant]);
            return self.schedule(again_ns, self.of_tenant[tenant].start as u32);
        }
        let index = answer.request;
        let process = workload.call(index as usize).process;
        let own = self.of_process.get(&(tenant, process)).copied();
        for number in own.into_iter().chain(self.begin_after.remove(&index).unwrap_or_default()) {
            let order = &self.orders[number as usize];
            let next = order.requests.get(order.next);
            let pause_ns = next.map_or(0, |next| workload.call(*next as usize).pause_ns);
            self.schedule(finish_ns.saturating_add(pause_ns), number);
        }
    }

    fn schedule(&mut self, time_ns: u64, number: u32) {
        self.last_ns = self.last_ns.max(time_ns);
        let order = &mut self.orders[number as usize];
        if order.is_sent() {
            return;
        }
        let depth = order.depth;
        let begin = |periods: &mut Periods| periods.begin_within_ns(time_ns, depth);
        let time_ns = order.periods.as_mut().map_or(time_ns, begin);
        self.ready.push(Reverse((time_ns, self.scheduled, number)));
        self.scheduled += 1;
    }

    /// Schedules the next request of an open loop; a closed one waits for answers.
    pub(super) fn schedule_open<W: TimedRequests>(&mut self, workload: &W) {
        if !matches!(self.pace, Loop::Open) {
            return;
        }
        let order = &self.orders[0];
        if let Some(index) = order.requests.get(order.next) {
            self.schedule(workload.time_ns(*index as usize), 0);
        }
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.ready.peek().map(|Reverse(ready)| ready.0)
    }

    /// Whether a tenant of a closed loop sends nothing from `now_ns` on; of an open loop it is not
    /// known here.
    pub(super) fn is_done(&self, tenant: usize, now_ns: u64) -> bool {
        let Some(orders) = self.of_tenant.get(tenant) else {
            return *self.pace == Loop::Open;
        };
        let mut orders = self.orders[orders.clone()].iter();
        orders.all(|order| {
            let sent = !order.repeat && order.next >= order.requests.len();
            sent || now_ns >= order.stop_ns
        })
    }

    /// Requests in all, each once; fewer once a tenant has stopped.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The latest time at which a tenant began or might have sent again.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The places of the next requests of the order of the last one taken, each once.
    pub(super) fn upcoming(&mut self) -> &[u32] {
        let Some(order) = self.orders.get_mut(self.taken) else { return &[] };
        if order.next < order.seen {
            return &[];
        }
        let last = (order.next + AHEAD).min(order.requests.len());
        order.seen = last;
        order.requests.get(order.next..last).unwrap_or_default()
    }

    /// A tag for the next request, if its tenant has one left: [`request_of`] has its place. Tags
    /// of a tenant ascend.
    pub(super) fn take(&mut self) -> Option<u64> {
        let Reverse((now_ns, _, number)) = self.ready.pop()?;
        let order = &mut self.orders[number as usize];
        if now_ns >= order.stop_ns {
            self.total -= order.stop();
        }
        if order.repeat && order.next == order.requests.len() {
            if order.lap_begun_ns == Some(now_ns) {
                // All of a lap was answered from memory: time must go on before the next.
                self.schedule(now_ns + EMPTY_LAP_NS, number);
                return None;
            }
            order.next = 0;
            order.seen = 0;
            order.lap += 1;
            order.lap_begun_ns = Some(now_ns);
        }
        let index = *order.requests.get(order.next)?;
        order.next += 1;
        self.taken = number as usize;
        Some(order.lap << LAP_SHIFT | u64::from(index))
    }
}

/// The place of the request that a tag stands for.
pub(crate) fn request_of(tag: u64) -> usize {
    (tag & ((1 << LAP_SHIFT) - 1)) as usize
}

/// Requests in order of time, by number.
pub trait TimedRequests {
    /// How many there are.
    fn count(&self) -> usize;
    /// When a request arrives.
    fn time_ns(&self, index: usize) -> u64;
    /// Whose request it is.
    fn tenant(&self, index: usize) -> TenantId;
    /// The process of a request, and its pause.
    fn call(&self, index: usize) -> Call;

    /// The requests of each tenant in order.
    fn by_tenant(&self, tenants: usize) -> Vec<Vec<u32>> {
        let mut each = vec![Vec::new(); tenants];
        for index in 0..self.count() {
            each[self.tenant(index).index()].push(index as u32);
        }
        each
    }
}

impl TimedRequests for Requests {
    fn count(&self) -> usize {
        self.len()
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.time_ns(index)
    }

    fn tenant(&self, index: usize) -> TenantId {
        self.tenant(index)
    }

    fn call(&self, index: usize) -> Call {
        self.call(index)
    }
}

impl TimedRequests for Recording {
    fn count(&self) -> usize {
        self.times_ns().len()
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.times_ns()[index]
    }

    fn tenant(&self, index: usize) -> TenantId {
        self.tenant_at(self.start_of(index))
    }

    fn call(&self, index: usize) -> Call {
        self.calls.get(index).copied().unwrap_or_default()
    }
}

/// How a tenant's rate switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Mean length of an on-period.
    pub on_ns: u64,
    /// Mean length of an off-period.
    pub off_ns: u64,
    /// Requests kept under way in off-periods; 0 for silence.
    pub off_depth: u32,
    /// Lengths are exponential; else each is the mean.
    pub exponential: bool,
    /// What lengths are drawn from.
    pub seed: Seed,
}

/// Where a tenant is in its periods.
#[derive(Clone, Debug)]
pub struct Periods {
    noise: Noise,
    rng: Rng,
    /// When the on-period at hand begins, and when it ends.
    on_ns: (u64, u64),
    /// How many of the tenant's requests wait for the on-period that begins then.
    waiting: (u32, u64),
}

impl Periods {
    /// Before the first request; the first on-period begins at `start_ns`.
    pub fn new(noise: Noise, start_ns: u64) -> Periods {
        let mut periods =
            Periods { noise, rng: noise.seed.rng(), on_ns: (start_ns, start_ns), waiting: (0, 0) };
        periods.on_ns.1 = start_ns.saturating_add(periods.length_ns(noise.on_ns));
        periods
    }

    /// When a request that could begin at `time_ns` may: then, or with the next on-period. Times
    /// of calls never decrease.
    pub fn begin_ns(&mut self, time_ns: u64) -> u64 {
        while time_ns >= self.on_ns.1 && self.on_ns.1 < u64::MAX {
            let begin_ns = self.on_ns.1.saturating_add(self.length_ns(self.noise.off_ns));
            let end_ns = begin_ns.saturating_add(self.length_ns(self.noise.on_ns));
            self.on_ns = (begin_ns, end_ns);
        }
        time_ns.max(self.on_ns.0)
    }

    /// The same for one of a tenant's `depth` requests: in an off-period it may begin at once while
    /// no more than `off_depth` of them do not wait.
    fn begin_within_ns(&mut self, time_ns: u64, depth: u32) -> u64 {
        let begin_ns = self.begin_ns(time_ns);
        if begin_ns <= time_ns || self.noise.off_depth == 0 {
            return begin_ns;
        }
        if self.waiting.1 != begin_ns {
            self.waiting = (0, begin_ns);
        }
        if depth.saturating_sub(self.waiting.0) <= self.noise.off_depth {
            return time_ns;
        }
        self.waiting.0 += 1;
        begin_ns
    }

    /// At least a nanosecond, so that time goes on.
    fn length_ns(&mut self, mean_ns: u64) -> u64 {
        if !self.noise.exponential {
            return mean_ns.max(1);
        }
        // 1 - unit is in (0, 1], so that the logarithm is finite.
        let drawn = -(1.0 - self.rng.unit()).ln() * mean_ns as f64;
        (drawn.round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Orders of a loop of which none begins by itself.
    fn source(pace: &Loop, orders: Vec<Order>, of_tenant: Vec<Range<usize>>) -> RequestSource<'_> {
        let total = orders.iter().map(|order| order.requests.len() as u64).sum();
        RequestSource {
            pace,
            orders,
            ready: BinaryHeap::new(),
            of_tenant,
            of_process: HashMap::default(),
            begin_after: HashMap::default(),
            scheduled: 0,
            taken: 0,
            total,
            last_ns: 0,
        }
    }

    #[test]
    fn each_request_but_the_first_is_looked_at_once_before_it_is_taken() {
        let requests: Vec<u32> = (0..3 * AHEAD as u32 + 2).rev().collect();
        let (depth, stop_ns) = (1, NEVER_NS);
        let order = Order { requests: requests.clone(), depth, stop_ns, ..Order::default() };
        let mut source = source(&Loop::Open, vec![order], Vec::new());
        let mut seen = Vec::new();
        for (place, expected) in requests.iter().enumerate() {
            source.schedule(place as u64, 0);
            assert!(place == 0 || seen.contains(expected));
            assert_eq!(source.take(), Some(u64::from(*expected)));
            seen.extend_from_slice(source.upcoming());
        }
        assert_eq!(seen, requests[1..]);
    }

    #[test]
    fn a_tenant_is_done_by_its_own_stop_though_another_has_several_orders() {
        // Tenant 0 sends from two processes and stops at 100 ns, tenant 1 from one until 1,000 ns.
        let pace = Loop::Closed {
            queue_depth: vec![1; 2],
            think_ns: vec![0; 2],
            recorded: vec![true, false],
            start_ns: vec![0; 2],
            stop_ns: vec![100, 1000],
            noise: vec![None; 2],
            repeat: vec![false; 2],
        };
        let order = |index, stop_ns| Order { requests: vec![index], stop_ns, ..Order::default() };
        let orders = vec![order(0, 100), order(1, 100), order(2, 1000)];
        let source = source(&pace, orders, vec![0..2, 2..3]);
        let done = |now_ns| [0, 1].map(|tenant| source.is_done(tenant, now_ns));
        assert_eq!([50, 500, 1000].map(done), [[false, false], [true, false], [true, true]]);
    }

    #[test]
    fn requests_wait_for_the_next_on_period() {
        let noise = Noise { on_ns: 10, off_ns: 5, off_depth: 0, exponential: false, seed: Seed(1) };
        let mut periods = Periods::new(noise, 100);
        // On from 100 to 110, from 115 to 125, from 130 to 140, from 145 to 155.
        let begin = [100, 109, 110, 114, 115, 124, 126, 140, 160].map(|at| periods.begin_ns(at));
        assert_eq!(begin, [100, 109, 115, 115, 115, 124, 130, 145, 160]);
        assert_eq!(Periods::new(noise, 100).begin_ns(7), 100, "not before the first");
    }

    /// Of four requests, one goes on in off-periods: three wait for the next on-period, each period
    /// anew.
    #[test]
    fn a_few_requests_may_go_on_in_off_periods() {
        let noise = Noise { on_ns: 10, off_ns: 5, off_depth: 1, exponential: false, seed: Seed(1) };
        let mut periods = Periods::new(noise, 0);
        // On from 0 to 10, from 15 to 25, from 30 to 40.
        let mut begin = |at| periods.begin_within_ns(at, 4);
        assert_eq!([9, 10, 11, 12, 12, 13, 14].map(&mut begin), [9, 15, 15, 15, 12, 13, 14]);
        assert_eq!([15, 15, 24, 25, 25, 26, 27].map(&mut begin), [15, 15, 24, 30, 30, 30, 27]);
        let mut silent = Periods::new(Noise { off_depth: 0, ..noise }, 0);
        assert_eq!([10, 11, 12, 13, 14].map(|at| silent.begin_within_ns(at, 4)), [15; 5]);
    }

    #[test]
    fn exponential_lengths_have_their_means() {
        let noise =
            Noise { on_ns: 2000, off_ns: 1000, off_depth: 0, exponential: true, seed: Seed(7) };
        let mut periods = Periods::new(noise, 0);
        let (mut on, mut begun) = (0, 0);
        for _ in 0..20_000 {
            let (begin, end) = periods.on_ns;
            on += end - begin;
            begun += 1;
            periods.begin_ns(end);
        }
        let (mean, cycle) = (on / begun, periods.on_ns.0 / begun);
        assert!((1950..2050).contains(&mean) && (2930..3070).contains(&cycle), "{mean} {cycle}");
    }

    proptest! {
        /// The periods written down from the start, and looked through for each request.
        #[test]
        fn every_request_begins_at_the_first_time_that_is_on(
            on_ns in 1..50_u64,
            off_ns in 1..50_u64,
            seed in any::<u64>(),
            exponential in any::<bool>(),
            mut times in prop::collection::vec(0..2000_u64, 1..60),
        ) {
            let noise = Noise { on_ns, off_ns, off_depth: 0, exponential, seed: Seed(seed) };
            let mut walk = Periods::new(noise, 3);
            let mut all = vec![walk.on_ns];
            while walk.on_ns.0 < 3000 {
                walk.begin_ns(walk.on_ns.1);
                all.push(walk.on_ns);
            }
            times.sort_unstable();
            let mut periods = Periods::new(noise, 3);
            for time in times {
                let is_on = |at: &u64| all.iter().any(|(begin, end)| (*begin..*end).contains(at));
                prop_assert_eq!(Some(periods.begin_ns(time)), (time..).find(is_on));
            }
        }
    }
}
