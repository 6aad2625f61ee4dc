//! Meters of what a partitioner reads of an interval, beside the cache's own counts.
//!
//! An interval is cut into steps of equal length; what arrives at a border belongs to the later
//! step, what is answered at the end of an interval to the one that ends. Blocks are known by
//! tenant and number, whatever ids a cache gives them; they are the pages of all signals. Memory is
//! that of the samples, whatever the volumes' sizes; only exact curves keep every block. Times are
//! nanoseconds on the decision clock.

use cachewright_curve::signal::{Prices, ReuseMeter, SignalSet, Signals, StepCounts, StepMeter};
use cachewright_curve::{BlockName, CurveSet};
use cachewright_snapshot::Snapshot;
use cachewright_types::{
    Op, Request, TenantId, VolumeKeys, block_bytes, block_numbers, whole_block_numbers,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// What is to be measured; nothing by default.
#[derive(Default)]
pub struct SignalNeeds {
    /// Curves, measured so.
    pub curves: Option<CurveSet>,
    /// Steps per interval; 0 for none.
    pub steps: u32,
    /// The other signals: reuse distances, and response times, which only devices have.
    pub signals: SignalSet,
}

impl SignalNeeds {
    /// A meter of what is needed, if anything is.
    pub fn meter(self, tenants: usize, interval_ns: u64) -> Option<SignalMeter> {
        let steps = if interval_ns > 0 { self.steps } else { 0 };
        let meter = SignalMeter {
            curves: self.curves,
            steps: (steps > 0).then(|| IntervalSteps::new(tenants, steps, interval_ns)),
            reuse: self.signals.reuse.then(|| ReuseMeter::new(tenants)),
            prices: self.signals.prices.then(|| ResponseTimes::new(tenants, interval_ns)),
        };
        let needed = meter.counts_accesses() || meter.prices.is_some();
        needed.then_some(meter)
    }
}

/// Measures the interval under way.
#[derive(Snapshot)]
pub struct SignalMeter {
    #[snapshot(each)]
    curves: Option<CurveSet>,
    #[snapshot(each)]
    steps: Option<IntervalSteps>,
    #[snapshot(each)]
    reuse: Option<ReuseMeter>,
    #[snapshot(each)]
    prices: Option<ResponseTimes>,
}

/// One access to a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockUse<'a> {
    /// The tenant that sent the request.
    pub tenant: TenantId,
    /// The block.
    pub block: BlockName<'a>,
    /// Whether it is written.
    pub write: bool,
    /// Bytes of the block that the request covers.
    pub bytes: u32,
}

impl SignalMeter {
    /// The interval of this number, counted from 0, is the first that is measured.
    fn begin_at(&mut self, interval: u64) {
        self.steps.iter_mut().for_each(|steps| steps.begin_at(interval));
        self.prices.iter_mut().for_each(|prices| prices.interval = interval);
    }

    /// Whether accesses are measured at all.
    pub fn counts_accesses(&self) -> bool {
        self.curves.is_some() || self.steps.is_some() || self.reuse.is_some()
    }

    /// Whether accesses must come with times and bytes.
    pub fn counts_steps(&self) -> bool {
        self.steps.is_some()
    }

    /// Time goes on to `now_ns`, at which requests may follow; it is within the interval.
    #[inline]
    pub fn reach(&mut self, now_ns: u64) {
        if let Some(steps) = &mut self.steps {
            steps.reach(now_ns);
        }
    }

    /// Counts an access.
    #[inline]
    pub fn access(&mut self, access: BlockUse<'_>) {
        let BlockUse { tenant, block, write, bytes } = access;
        if let Some(curves) = &mut self.curves {
            curves.access(tenant, block, write);
        }
        if let Some(steps) = &mut self.steps {
            steps.meter.request(tenant, block.key(), write, bytes);
        }
        if let Some(reuse) = self.reuse.as_mut().filter(|_| write) {
            reuse.write(tenant, block.key());
        }
    }

    /// Forgets a trimmed block.
    pub fn trim(&mut self, tenant: TenantId, block: BlockName<'_>) {
        if let Some(curves) = &mut self.curves {
            curves.remove(tenant, block);
        }
        if let Some(reuse) = &mut self.reuse {
            reuse.trim(tenant, block.key());
        }
    }

    /// Forgets the trimmed blocks of a range of a tenant's volume, known by their keys.
    pub fn trim_range(&mut self, tenant: TenantId, volume: VolumeKeys, numbers: Range<u64>) {
        if let Some(curves) = &mut self.curves {
            curves.remove_range(tenant, volume, numbers.clone());
        }
        if let Some(reuse) = &mut self.reuse {
            reuse.trim_range(tenant, volume, numbers);
        }
    }

    /// Takes in a block that was read ahead of its use: no access is counted.
    pub fn bring_in(&mut self, tenant: TenantId, block: BlockName<'_>) {
        if let Some(curves) = &mut self.curves {
            curves.bring_in(tenant, block);
        }
    }

    /// Counts the answer to a request.
    pub fn answered(&mut self, tenant: TenantId, op: Op, times: AnswerTimes) {
        if let Some(prices) = &mut self.prices {
            prices.count(tenant, op, times);
        }
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        Signals {
            curves: self.curves.as_mut().map(CurveSet::end_window).unwrap_or_default(),
            steps: self.steps.as_mut().map(IntervalSteps::end_interval).unwrap_or_default(),
            reuse: self.reuse.as_mut().map(ReuseMeter::take).unwrap_or_default(),
            prices: self.prices.as_mut().map(ResponseTimes::end_interval).unwrap_or_default(),
        }
    }
}

/// Signals of the interval under way, from requests: every access, every answer, and what was read
/// ahead of its use. What is read ahead depends on the reads alone and not on what is cached. A
/// cache of any size therefore sees the same further uses, and a block that was read ahead shortly
/// before its use hits in every cache that holds it so long.
#[derive(Snapshot)]
pub struct RequestMeter {
    signals: SignalMeter,
    /// log2 of the block size in bytes.
    #[snapshot(settings)]
    block_shift: u32,
    /// Where each tenant's blocks begin; 0 for tenants without an entry.
    #[snapshot(settings)]
    first_blocks: Vec<u64>,
}

impl RequestMeter {
    /// A meter of blocks of `1 << block_shift` bytes.
    pub fn new(signals: SignalMeter, block_shift: u32) -> RequestMeter {
        RequestMeter { signals, block_shift, first_blocks: Vec::new() }
    }

    /// The same where the blocks of each tenant begin at a number of their own, as on a device that
    /// several share.
    pub fn with_first_blocks(self, first_blocks: Vec<u64>) -> RequestMeter {
        RequestMeter { first_blocks, ..self }
    }

    /// The interval of this number, counted from 0, is the first that is measured.
    pub fn begin_at(&mut self, interval: u64) {
        self.signals.begin_at(interval);
    }

    /// A tenant's volume, and the number at which it begins.
    fn volume(&self, tenant: TenantId) -> (VolumeKeys, u64) {
        let first = self.first_blocks.get(tenant.index()).copied().unwrap_or_default();
        (VolumeKeys::new(tenant, 0), first)
    }

    /// Counts a request that arrives at `now_ns`; its blocks are known by tenant and number.
    pub fn request(&mut self, request: &Request, now_ns: u64) {
        self.signals.reach(now_ns);
        if !self.signals.counts_accesses() {
            return;
        }
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let (offset, length) = (request.offset.0, request.length.0);
        let (volume, first) = self.volume(tenant);
        match request.op {
            Op::Read | Op::Write => {
                let covered = block_bytes(offset, length, self.block_shift);
                let numbers = block_numbers(offset, length, self.block_shift);
                for (number, bytes) in numbers.zip(covered) {
                    let block = BlockName::Keyed(volume.key(number.saturating_sub(first)));
                    self.signals.access(BlockUse { tenant, block, write, bytes });
                }
            }
            Op::Trim => {
                let whole = whole_block_numbers(offset, length, self.block_shift);
                let own = whole.start.saturating_sub(first)..whole.end.saturating_sub(first);
                if !own.is_empty() {
                    self.signals.trim_range(tenant, volume, own);
                }
            }
            Op::Flush => {}
        }
    }

    /// Counts a request that arrives at `now_ns` and whose blocks are recorded, in order; each with
    /// whether it is trimmed. One meter is fed in one of the two ways.
    pub fn recorded_request<'a>(
        &mut self,
        request: &Request,
        blocks: impl Iterator<Item = (BlockName<'a>, bool)>,
        now_ns: u64,
    ) {
        self.signals.reach(now_ns);
        if !self.signals.counts_accesses() {
            return;
        }
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let mut covered = block_bytes(request.offset.0, request.length.0, self.block_shift);
        for (block, is_trimmed) in blocks {
            if is_trimmed {
                self.signals.trim(tenant, block);
            } else {
                let bytes = covered.next().unwrap_or_default();
                self.signals.access(BlockUse { tenant, block, write, bytes });
            }
        }
    }

    /// Takes in blocks of a tenant that are read ahead, by their numbers.
    pub fn read_ahead(&mut self, tenant: TenantId, blocks: Range<u64>) {
        let (volume, first) = self.volume(tenant);
        for number in blocks {
            let block = BlockName::Keyed(volume.key(number.saturating_sub(first)));
            self.signals.bring_in(tenant, block);
        }
    }

    /// Counts the answer to a request.
    pub fn answered(&mut self, tenant: TenantId, op: Op, times: AnswerTimes) {
        self.signals.answered(tenant, op, times);
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        self.signals.end_interval()
    }
}

/// When a request was answered, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerTimes {
    /// When it was answered.
    pub finish_ns: u64,
    /// The time since it arrived.
    pub response_ns: u64,
    /// The part of it behind memory; a hit has none.
    pub behind_ns: u64,
}

/// Response times of hits and misses by the interval in which answers came. A replay finds borders
/// when its next request comes, so answers of later intervals may be known before one ends.
#[derive(Snapshot)]
pub struct ResponseTimes {
    #[snapshot(settings)]
    tenants: usize,
    #[snapshot(settings)]
    interval_ns: u64,
    /// The interval under way.
    interval: u64,
    prices: BTreeMap<u64, Vec<Prices>>,
}

impl ResponseTimes {
    /// No answers yet, with intervals of `interval_ns`.
    pub fn new(tenants: usize, interval_ns: u64) -> ResponseTimes {
        ResponseTimes { tenants, interval_ns, interval: 0, prices: BTreeMap::new() }
    }

    /// Counts the answer to a request.
    pub fn count(&mut self, tenant: TenantId, op: Op, times: AnswerTimes) {
        let last_ns = times.finish_ns.saturating_sub(1);
        let interval = last_ns.checked_div(self.interval_ns).unwrap_or(0).max(self.interval);
        let tenants = self.tenants;
        let prices = self.prices.entry(interval);
        let prices = prices.or_insert_with(|| vec![Prices::default(); tenants]);
        let Some(prices) = prices.get_mut(tenant.index()) else { return };
        let price = match (op, times.behind_ns > 0) {
            (Op::Read, false) => &mut prices.read_hits,
            (Op::Read, true) => &mut prices.read_misses,
            (Op::Write, false) => &mut prices.write_hits,
            (Op::Write, true) => &mut prices.write_misses,
            (Op::Trim | Op::Flush, _) => return,
        };
        price.add(times.response_ns, times.behind_ns);
        prices.responses.add(times.response_ns);
    }

    /// The prices of the interval that ends now.
    pub fn end_interval(&mut self) -> Vec<Prices> {
        let prices = self.prices.remove(&self.interval);
        self.interval += 1;
        prices.unwrap_or_else(|| vec![Prices::default(); self.tenants])
    }
}

/// Steps, and when the one under way ends.
#[derive(Snapshot)]
pub struct IntervalSteps {
    /// Counts the step under way.
    pub meter: StepMeter,
    #[snapshot(settings)]
    per_interval: u32,
    #[snapshot(settings)]
    interval_ns: u64,
    /// When the interval began.
    start_ns: u64,
    /// Steps of the interval that have ended.
    ended: u32,
    /// When the one under way ends; the last ends with the interval.
    due_ns: u64,
}

impl IntervalSteps {
    /// Steps of a meter: `per_interval` in each interval of `interval_ns`.
    pub fn new(tenants: usize, per_interval: u32, interval_ns: u64) -> IntervalSteps {
        let meter = StepMeter::new(tenants);
        let (start_ns, ended, due_ns) = (0, 0, 0);
        let mut steps = IntervalSteps { meter, per_interval, interval_ns, start_ns, ended, due_ns };
        steps.due_ns = steps.border_ns();
        steps
    }

    fn begin_at(&mut self, interval: u64) {
        self.start_ns = interval.saturating_mul(self.interval_ns);
        self.due_ns = self.border_ns();
    }

    fn border_ns(&self) -> u64 {
        if self.ended + 1 >= self.per_interval {
            return u64::MAX;
        }
        let share = u128::from(self.interval_ns) * u128::from(self.ended + 1);
        self.start_ns.saturating_add((share / u128::from(self.per_interval)) as u64)
    }

    /// Ends the steps that end at or before `now_ns`.
    #[inline]
    pub fn reach(&mut self, now_ns: u64) {
        while now_ns >= self.due_ns {
            self.end_step();
        }
    }

    fn end_step(&mut self) {
        self.meter.end_step();
        self.ended += 1;
        self.due_ns = self.border_ns();
    }

    /// The steps of the interval that ends now.
    pub fn end_interval(&mut self) -> Vec<Vec<StepCounts>> {
        while self.ended < self.per_interval {
            self.end_step();
        }
        self.ended = 0;
        self.start_ns = self.start_ns.saturating_add(self.interval_ns);
        self.due_ns = self.border_ns();
        self.meter.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::signal::Price;
    use cachewright_types::BlockKey;

    const TENANT: TenantId = TenantId(0);
    const PRICES: SignalSet = SignalSet { prices: true, ..SignalSet::NONE };

    fn steps(per_interval: u32, interval_ns: u64, arrivals: &[u64]) -> Vec<u32> {
        let needs = SignalNeeds { steps: per_interval, ..SignalNeeds::default() };
        let mut meter = needs.meter(1, interval_ns).expect("something is needed");
        for arrival_ns in arrivals {
            meter.reach(*arrival_ns);
            let (block, write, bytes) = (BlockName::Keyed(BlockKey(0)), false, 1);
            meter.access(BlockUse { tenant: TENANT, block, write, bytes });
        }
        meter.end_interval().steps[0].iter().map(|step| step.requests).collect()
    }

    #[test]
    fn a_request_at_a_border_belongs_to_the_later_step() {
        // Steps of 10 ns end at 3 1/3 and 6 2/3: whole nanoseconds from 3 and 6 on.
        assert_eq!(steps(3, 10, &[0, 2, 3, 5, 6, 9]), [2, 2, 2]);
        assert_eq!(steps(3, 10, &[]), [0, 0, 0], "idle steps are there");
        assert_eq!(steps(5, 2, &[0, 1]), [0, 0, 1, 0, 1], "more steps than nanoseconds");
    }

    #[test]
    fn steps_go_on_where_the_interval_ended() {
        let mut meter =
            SignalNeeds { steps: 2, ..SignalNeeds::default() }.meter(1, 10).expect("needed");
        let block = BlockName::Keyed(BlockKey(1));
        let access = BlockUse { tenant: TENANT, block, write: true, bytes: 8 };
        let one = StepCounts { requests: 1, writes: 1, bytes: 8, unique: 1 };
        meter.reach(4);
        meter.access(access);
        assert_eq!(meter.end_interval().steps, [[one, StepCounts::default()]]);
        meter.reach(15);
        meter.access(access);
        assert_eq!(meter.end_interval().steps, [[StepCounts::default(), one]]);
    }

    /// A meter that begins late: what comes is of its interval, and of the step under way.
    #[test]
    fn a_later_interval_is_the_first_that_is_measured() {
        let needs = SignalNeeds { steps: 2, signals: PRICES, ..SignalNeeds::default() };
        let mut meter = needs.meter(1, 10).expect("needed");
        meter.begin_at(7);
        let mut interval_of = |requests: &[u64]| {
            for time_ns in requests {
                meter.reach(*time_ns);
                let block = BlockName::Keyed(BlockKey(1));
                meter.access(BlockUse { tenant: TENANT, block, write: false, bytes: 8 });
                let times = AnswerTimes { finish_ns: time_ns + 1, response_ns: 1, behind_ns: 0 };
                meter.answered(TENANT, Op::Read, times);
            }
            let Signals { steps, prices, .. } = meter.end_interval();
            ([0, 1].map(|step| steps[0][step].requests), prices[0].read_hits.count)
        };
        assert_eq!(interval_of(&[71, 73, 76]), ([2, 1], 3));
        assert_eq!(interval_of(&[84]), ([1, 0], 1));
    }

    #[test]
    fn nothing_needed_is_no_meter() {
        assert!(SignalNeeds::default().meter(2, 10).is_none());
        let meter = SignalNeeds { signals: PRICES, ..SignalNeeds::default() }.meter(2, 10);
        assert!(!meter.expect("prices").counts_accesses());
    }

    #[test]
    fn answers_count_where_they_came() {
        let mut meter =
            SignalNeeds { signals: PRICES, ..SignalNeeds::default() }.meter(2, 10).expect("prices");
        let answer =
            |finish_ns, behind_ns| AnswerTimes { finish_ns, response_ns: finish_ns, behind_ns };
        meter.answered(TENANT, Op::Read, answer(10, 7));
        meter.answered(TENANT, Op::Write, answer(11, 0));
        meter.answered(TenantId(1), Op::Read, answer(9, 0));
        meter.answered(TenantId(1), Op::Trim, answer(9, 0));
        let first = meter.end_interval().prices;
        assert_eq!(first[0].read_misses, Price { count: 1, sum_ns: 10, behind_ns: 7 });
        assert_eq!((first[0].write_hits.count, first[1].read_hits.count), (0, 1));
        let second = meter.end_interval().prices;
        assert_eq!(second[0].write_hits.sum_ns, 11);
        assert_eq!(meter.end_interval().prices, [Prices::default(); 2]);
    }
}
