//! What a timed replay measures and finds: response times, their parts, rates, the use of devices.
//!
//! Trims and flushes are carried out and not counted, and so is what arrives in the warm-up, but in
//! the rates and the sums by step, which are whole.

use super::Replay;
use crate::lane::LaneResult;
use crate::machines::latency::{LatencySums, TimedAnswer};
use crate::machines::machine::GroupUse;
use crate::machines::tenancy::Event;
use crate::machines::{Migrated, RegionBlocks};
use crate::recording::TRIM;
use crate::ssd::CacheStats;
use cachewright_control::{AnswerTimes, RequestMeter, SignalMeter, Signals};
use cachewright_device::{DeviceUse, Use};
use cachewright_partition::layout::ChannelMap;
use cachewright_types::measure::{Population, Rates, Responses};
use cachewright_types::{Op, Request, TenantId};
use std::ops::Range;

/// Width of a bin of rates at first.
const BIN_NS: u64 = 1_000_000;
/// Bins of rates at most.
const BINS: usize = 256;
/// Windows of throughput at most; then they widen, as bins do.
pub(crate) const WINDOWS: usize = 1 << 20;

/// What one tenant (or all) experienced.
#[derive(Clone, Debug, Default)]
pub struct Experience {
    /// Responses to reads.
    pub reads: Responses,
    /// Responses to writes.
    pub writes: Responses,
    /// Bytes read and written.
    pub bytes: u64,
    /// Where the time of all responses went.
    pub breakdown: LatencySums,
    /// Requests inside over time.
    pub population: Population,
    /// When the first request arrived.
    pub first_ns: Option<u64>,
    /// When the last one was answered.
    pub last_ns: u64,
}

/// All that a timed replay found.
#[derive(Clone, Debug)]
pub struct Times {
    /// Per tenant.
    pub tenants: Vec<Experience>,
    /// Requests and bytes over time, per tenant.
    pub rates: Rates,
    /// The same in windows of the width asked for, if one is.
    pub throughput: Option<Rates>,
    /// Responses and hits by step, if asked for.
    pub sums: Option<StepSums>,
    /// Requests inside over time, all tenants together.
    pub population: Population,
    /// How each device was used: the cache device, then the backing devices.
    pub devices: Vec<DeviceUse>,
    /// What the channels of the first device did and held.
    pub channels: ChannelTotals,
    /// What became of blocks, beside hits and misses.
    pub blocks: BlockTotals,
    /// When everything was done.
    pub end_ns: u64,
    /// What arrived before is in no experience, no population and no count of the cache.
    pub warmup_ns: u64,
    /// What the cache counted.
    pub cache: LaneResult,
    /// What a drive that is the whole machine did.
    pub drive: Option<DriveTotals>,
}

/// What the channels of the first device did, and whose blocks they held.
#[derive(Clone, Debug, Default)]
pub struct ChannelTotals {
    /// What was sent to each group of channels that the device shows.
    pub groups: Vec<GroupUse>,
    /// Which of these groups hold which tenant's blocks, at the end; nothing where all hold all.
    pub layout: Option<ChannelMap>,
    /// Who came, left and was given which channels, where the layout follows that.
    pub tenancy: Vec<Event>,
    /// What changed places on the cache device, per tenant.
    pub migrated: Vec<Migrated>,
    /// Where each tenant's blocks lay, at the end of each window and of the replay: when, and per
    /// tenant; nothing where channels are not laid out.
    pub regions: Vec<(u64, Vec<RegionBlocks>)>,
}

/// What became of blocks, beside hits and misses.
#[derive(Clone, Debug, Default)]
pub struct BlockTotals {
    /// Read ahead of their use.
    pub read_ahead: u64,
    /// Per tenant, asked for while they were still being read.
    pub in_flight: Vec<u64>,
    /// Written back while they stayed.
    pub cleaned: u64,
}

/// What a drive that is the whole machine did.
#[derive(Clone, Debug, Default)]
pub struct DriveTotals {
    /// Its data cache.
    pub cache: CacheStats,
    /// Time in which the wires to it and from it carried something.
    pub link_busy_ns: [u64; 2],
}

impl Experience {
    /// Responses to reads and writes together.
    pub fn responses(&self) -> Responses {
        let mut all = self.reads.clone();
        all.add(&self.writes);
        all
    }

    /// Requests per second from the first arrival to the last answer; 0 without requests.
    pub fn throughput_per_s(&self) -> f64 {
        self.per_second(self.reads.count() + self.writes.count())
    }

    /// Bytes per second from the first arrival to the last answer; 0 without requests.
    pub fn bytes_per_s(&self) -> f64 {
        self.per_second(self.bytes)
    }

    fn per_second(&self, count: u64) -> f64 {
        let span_ns = self.last_ns - self.first_ns.unwrap_or(self.last_ns);
        if span_ns == 0 { 0.0 } else { count as f64 * 1e9 / span_ns as f64 }
    }

    fn add(&mut self, other: &Experience) {
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        self.bytes += other.bytes;
        self.breakdown.merge(&other.breakdown);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        };
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}

impl Times {
    pub(crate) fn new(replay: &Replay<'_>) -> Times {
        let (tenants, warmup_ns) = (replay.recording.totals.len(), replay.warmup_ns);
        let span_ns = replay.recording.span_ns();
        Times {
            tenants: vec![Experience::default(); tenants],
            rates: Rates::new(tenants, BIN_NS, BINS),
            throughput: (replay.throughput_ns > 0)
                .then(|| Rates::new(tenants, replay.throughput_ns, WINDOWS)),
            sums: replay.clock.map(|clock| StepSums::new(clock, span_ns)),
            population: Population::default(),
            devices: Vec::new(),
            channels: ChannelTotals {
                migrated: vec![Migrated::default(); tenants],
                ..ChannelTotals::default()
            },
            blocks: BlockTotals { in_flight: vec![0; tenants], ..BlockTotals::default() },
            end_ns: 0,
            warmup_ns,
            cache: LaneResult::default(),
            drive: None,
        }
    }

    /// Of a drive that is the whole machine.
    pub(crate) fn of_drive(replay: &Replay<'_>) -> Times {
        let mut times = Times::new(replay);
        let breakdowns = times.tenants.iter_mut().map(|tenant| &mut tenant.breakdown);
        breakdowns.for_each(|breakdown| *breakdown = LatencySums::of_one_device());
        times
    }

    /// All tenants together.
    pub fn total(&self) -> Experience {
        let mut total = Experience { population: self.population, ..Experience::default() };
        self.tenants.iter().for_each(|tenant| total.add(tenant));
        total
    }

    /// A request has arrived.
    fn arrived(&mut self, request: &Request, now_ns: u64) {
        if matches!(request.op, Op::Read | Op::Write) && now_ns >= self.warmup_ns {
            let tenant = &mut self.tenants[request.tenant.index()];
            tenant.first_ns.get_or_insert(now_ns);
            tenant.bytes += request.length.0;
            tenant.population.enter(now_ns);
            self.population.enter(now_ns);
        }
    }

    /// A request has been answered.
    fn answered(&mut self, request: &Request, answer: &TimedAnswer) {
        let response_ns = answer.finish_ns - answer.arrival_ns;
        let index = answer.tenant.index();
        let tenant = &mut self.tenants[index];
        if let Some(sums) = &mut self.sums {
            sums.answered(request, answer);
        }
        if matches!(request.op, Op::Trim | Op::Flush) {
            return;
        }
        self.rates.record(index, answer.finish_ns, request.length.0, response_ns);
        if let Some(windows) = &mut self.throughput {
            windows.record(index, answer.finish_ns, request.length.0, response_ns);
        }
        if answer.arrival_ns < self.warmup_ns {
            return;
        }
        let responses = if request.op == Op::Read { &mut tenant.reads } else { &mut tenant.writes };
        responses.record(response_ns);
        tenant.breakdown.add(&answer.latency);
        tenant.last_ns = answer.finish_ns;
        tenant.population.leave(answer.finish_ns);
        self.population.leave(answer.finish_ns);
    }

    /// Checks what holds of every replay: all requests have left, Little's law, every nanosecond of
    /// every response has a part, no device was busy for longer than the replay took. Errors: the
    /// rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        for (index, tenant) in self.tenants.iter().enumerate() {
            let sum = tenant.reads.sum_ns() + tenant.writes.sum_ns();
            let inside = tenant.population.inside_ns();
            if tenant.population.inside() > 0 || inside != sum {
                return Err(format!("tenant {index}: {inside} ns inside, {sum} ns of responses"));
            }
            if tenant.breakdown.total_ns() != sum {
                let parts = tenant.breakdown.total_ns();
                return Err(format!("tenant {index}: parts add up to {parts} ns of {sum} ns"));
            }
        }
        let all: Vec<&Use> = self.devices.iter().flat_map(DeviceUse::all).collect();
        if let Some(device) = all.iter().find(|used| used.population.inside() > 0) {
            return Err(format!("{} commands are left on a device", device.population.inside()));
        }
        match all.iter().find(|used| used.population.busy_ns() > self.end_ns) {
            Some(used) => Err(format!(
                "a device was busy for {} ns of {} ns",
                used.population.busy_ns(),
                self.end_ns
            )),
            None => Ok(()),
        }
    }
}

/// The measurements of one replay.
pub(crate) struct Measures {
    /// Signals for the partitioner, if it needs any.
    meter: Option<RequestMeter>,
    /// log2 of the block size in bytes.
    block_shift: u32,
    /// Blocks are read ahead that no request may ever touch. The recording does not have them, so
    /// that all blocks are known by where they lie on the backing device.
    reads_ahead: bool,
    /// What the replay found.
    pub times: Times,
}

impl Measures {
    /// Nothing measured yet, with blocks of `1 << block_shift` bytes; `extents` are the bytes of
    /// each tenant on its backing device.
    pub fn new(
        signals: Option<SignalMeter>,
        block_shift: u32,
        reads_ahead: bool,
        extents: &[Range<u64>],
        times: Times,
    ) -> Measures {
        let first_blocks: Vec<u64> =
            extents.iter().map(|extent| extent.start >> block_shift).collect();
        let meter = signals
            .map(|signals| RequestMeter::new(signals, block_shift).with_first_blocks(first_blocks));
        Measures { meter, block_shift, reads_ahead, times }
    }

    /// The request numbered `index` arrives.
    pub fn arrived(&mut self, replay: &Replay<'_>, index: usize, request: &Request, now_ns: u64) {
        match &mut self.meter {
            Some(meter) if self.reads_ahead => meter.request(request, now_ns),
            Some(meter) => {
                let recording = replay.recording;
                let accesses = replay.requests.accesses(index, recording, self.block_shift);
                let block = |position: usize| {
                    (recording.block_at(position, false), recording.flags[position] & TRIM != 0)
                };
                meter.recorded_request(request, accesses.map(block), now_ns);
            }
            None => {}
        }
        self.times.arrived(request, now_ns);
    }

    /// A machine that reads ahead reads these blocks of a tenant, by their numbers.
    pub fn read_ahead(&mut self, tenant: TenantId, blocks: Range<u64>) {
        if let Some(meter) = &mut self.meter {
            meter.read_ahead(tenant, blocks);
        }
    }

    /// A request is answered that spent `behind_ns` behind memory.
    pub fn answered(&mut self, request: &Request, answer: &TimedAnswer, behind_ns: u64) {
        if let Some(meter) = &mut self.meter {
            let (finish_ns, response_ns) = (answer.finish_ns, answer.finish_ns - answer.arrival_ns);
            let times = AnswerTimes { finish_ns, response_ns, behind_ns };
            meter.answered(answer.tenant, request.op, times);
        }
        self.times.answered(request, answer);
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        self.meter.as_mut().map(RequestMeter::end_interval).unwrap_or_default()
    }
}

/// Intervals and their steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepClock {
    /// Length of an interval; above 0.
    pub interval_ns: u64,
    /// Steps per interval; above 0.
    pub steps: u32,
}

/// What came in each step, all tenants together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSums {
    clock: StepClock,
    /// Reads and writes.
    pub requests: Vec<u32>,
    /// The sum of their responses.
    pub response_ns: Vec<u64>,
    /// Blocks they asked for.
    pub accesses: Vec<u32>,
    /// Those that the cache had.
    pub hits: Vec<u32>,
}

impl StepClock {
    /// The step of a time, counted from the start of the replay.
    pub fn step(&self, time_ns: u64) -> usize {
        let (interval_ns, steps) = (u128::from(self.interval_ns), u128::from(self.steps));
        let (interval, within) = (time_ns / self.interval_ns, time_ns % self.interval_ns);
        // The last step that begins, in whole nanoseconds rounded down, at or before the time.
        let step = ((u128::from(within) + 1) * steps - 1) / interval_ns;
        (u128::from(interval) * steps + step) as usize
    }

    /// Intervals that a workload has whose last request comes at `span_ns`.
    pub fn intervals(&self, span_ns: u64) -> usize {
        (span_ns / self.interval_ns) as usize + 1
    }
}

impl StepSums {
    /// Nothing counted yet of a workload whose last request comes at `span_ns`.
    pub fn new(clock: StepClock, span_ns: u64) -> StepSums {
        let steps = clock.intervals(span_ns) * clock.steps as usize;
        StepSums {
            clock,
            requests: vec![0; steps],
            response_ns: vec![0; steps],
            accesses: vec![0; steps],
            hits: vec![0; steps],
        }
    }

    /// A request has asked for blocks at its arrival.
    pub(crate) fn on_request(&mut self, request: &Request, arrival_ns: u64, accesses: u64) {
        if matches!(request.op, Op::Read | Op::Write) {
            add_saturating(&mut self.accesses, self.clock.step(arrival_ns), accesses);
        }
    }

    /// Blocks of a request that came at that time were in the cache.
    pub(crate) fn hit(&mut self, arrival_ns: u64, hits: u64) {
        add_saturating(&mut self.hits, self.clock.step(arrival_ns), hits);
    }

    /// A request has been answered.
    fn answered(&mut self, request: &Request, answer: &TimedAnswer) {
        let step = self.clock.step(answer.arrival_ns);
        if matches!(request.op, Op::Read | Op::Write)
            && let Some(sum) = self.response_ns.get_mut(step)
        {
            *sum += answer.finish_ns - answer.arrival_ns;
            add_saturating(&mut self.requests, step, 1);
        }
    }
}

fn add_saturating(counts: &mut [u32], step: usize, more: u64) {
    if let Some(count) = counts.get_mut(step) {
        *count = count.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_arrives_at_a_border_belongs_to_the_later_step() {
        // Steps of 3 1/3 ns begin at 0, 3 and 6.
        let clock = StepClock { interval_ns: 10, steps: 3 };
        let steps = [0, 2, 3, 5, 6, 9, 10, 12, 13, 20].map(|time_ns| clock.step(time_ns));
        assert_eq!(steps, [0, 0, 1, 1, 2, 2, 3, 3, 4, 6]);
        assert_eq!([0, 9, 10].map(|span_ns| clock.intervals(span_ns)), [1, 1, 2]);
        assert_eq!(StepClock { interval_ns: 2, steps: 5 }.step(1), 4, "more steps than time");
    }

    proptest! {
        #[test]
        fn a_step_is_the_last_that_has_begun(
            interval_ns in 1..10_000_u64,
            steps in 1..300_u32,
            time_ns in 0..100_000_u64,
        ) {
            let clock = StepClock { interval_ns, steps };
            let begins = |step: u64| {
                let (interval, step) = (step / u64::from(steps), step % u64::from(steps));
                interval * interval_ns + interval_ns * step / u64::from(steps)
            };
            let model = (0..).take_while(|step| begins(*step) <= time_ns).last();
            prop_assert_eq!(Some(clock.step(time_ns) as u64), model);
        }
    }
}
