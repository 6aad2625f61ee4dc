//! What a control loop tells its partitioner of an interval, beside the cache's own counts.
//!
//! For: measuring it while requests are replayed, of what the partitioner asks for and nothing
//! else. Must never know: partitioners, caches, devices. Units: nanoseconds of the replay, blocks,
//! which are the pages of all signals. An interval is cut into steps of equal length; what arrives
//! at a border belongs to the later step, what is answered at the end of an interval to the one
//! that ends, as devices come before borders.

use crate::recording::{Recording, TRIM, WRITE};
use cachewright_curve::CurveSet;
use cachewright_signal::{Prices, ReuseMeter, SignalSet, Step, StepMeter};
use cachewright_types::{BlockId, Op, TenantId};
use std::collections::BTreeMap;
use std::ops::Range;

pub use cachewright_signal::Signals;

/// What is to be measured; nothing by default.
#[derive(Default)]
pub struct Wanted {
    /// Curves, measured so.
    pub curves: Option<CurveSet>,
    /// Steps per interval; 0 for none.
    pub steps: u32,
    /// The other signals: reuse distances, and response times, which only devices have.
    pub signals: SignalSet,
}

impl Wanted {
    /// A meter of what is wanted, if anything is.
    pub fn meter(self, tenants: usize, interval_ns: u64) -> Option<SignalMeter> {
        let steps = if interval_ns > 0 { self.steps } else { 0 };
        let meter = SignalMeter {
            curves: self.curves,
            steps: (steps > 0).then(|| Steps::new(tenants, steps, interval_ns)),
            reuse: self.signals.reuse.then(|| ReuseMeter::new(tenants)),
            prices: self.signals.prices.then(|| Answers::new(tenants, interval_ns)),
        };
        let wanted = meter.counts_accesses() || meter.prices.is_some();
        wanted.then_some(meter)
    }
}

/// Measures the interval under way.
pub struct SignalMeter {
    curves: Option<CurveSet>,
    steps: Option<Steps>,
    reuse: Option<ReuseMeter>,
    prices: Option<Answers>,
}

/// One access to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockUse {
    /// Who asks.
    pub tenant: TenantId,
    /// For which of its blocks.
    pub block: BlockId,
    /// Whether it is written.
    pub write: bool,
    /// Bytes of the block that are asked for.
    pub bytes: u32,
}

impl SignalMeter {
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
    pub fn access(&mut self, access: BlockUse) {
        let BlockUse { tenant, block, write, bytes } = access;
        if let Some(curves) = &mut self.curves {
            curves.access(tenant, block, write);
        }
        if let Some(steps) = &mut self.steps {
            steps.meter.request(tenant, block, write, bytes);
        }
        if let Some(reuse) = self.reuse.as_mut().filter(|_| write) {
            reuse.write(tenant, block);
        }
    }

    /// Forgets a trimmed block.
    pub fn trim(&mut self, tenant: TenantId, block: BlockId) {
        if let Some(curves) = &mut self.curves {
            curves.remove(tenant, block);
        }
        if let Some(reuse) = &mut self.reuse {
            reuse.trim(tenant, block);
        }
    }

    /// Takes in a block that was read ahead of its use: no access is counted.
    pub fn bring_in(&mut self, tenant: TenantId, block: BlockId) {
        if let Some(curves) = &mut self.curves {
            curves.bring_in(tenant, block);
        }
    }

    /// Counts the answer to a request.
    pub fn answered(&mut self, tenant: TenantId, op: Op, times: Answered) {
        if let Some(prices) = &mut self.prices {
            prices.count(tenant, op, times);
        }
    }

    /// What was measured in the interval that ends now.
    pub fn end_interval(&mut self) -> Signals {
        Signals {
            curves: self.curves.as_mut().map(CurveSet::end_window).unwrap_or_default(),
            steps: self.steps.as_mut().map(Steps::end_interval).unwrap_or_default(),
            reuse: self.reuse.as_mut().map(ReuseMeter::take).unwrap_or_default(),
            prices: self.prices.as_mut().map(Answers::end_interval).unwrap_or_default(),
        }
    }
}

/// Steps, and when the one under way ends.
struct Steps {
    meter: StepMeter,
    per_interval: u32,
    interval_ns: u64,
    /// When the interval began.
    start_ns: u64,
    /// Steps of the interval that have ended.
    ended: u32,
    /// When the one under way ends; the last ends with the interval.
    due_ns: u64,
}

impl Steps {
    fn new(tenants: usize, per_interval: u32, interval_ns: u64) -> Steps {
        let meter = StepMeter::new(tenants);
        let mut steps =
            Steps { meter, per_interval, interval_ns, start_ns: 0, ended: 0, due_ns: 0 };
        steps.due_ns = steps.border_ns();
        steps
    }

    fn border_ns(&self) -> u64 {
        if self.ended + 1 >= self.per_interval {
            return u64::MAX;
        }
        let share = u128::from(self.interval_ns) * u128::from(self.ended + 1);
        self.start_ns.saturating_add((share / u128::from(self.per_interval)) as u64)
    }

    #[inline]
    fn reach(&mut self, now_ns: u64) {
        while now_ns >= self.due_ns {
            self.end_step();
        }
    }

    fn end_step(&mut self) {
        self.meter.end_step();
        self.ended += 1;
        self.due_ns = self.border_ns();
    }

    fn end_interval(&mut self) -> Vec<Vec<Step>> {
        while self.ended < self.per_interval {
            self.end_step();
        }
        self.ended = 0;
        self.start_ns = self.start_ns.saturating_add(self.interval_ns);
        self.due_ns = self.border_ns();
        self.meter.take()
    }
}

/// When a request was answered, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When.
    pub finish_ns: u64,
    /// How long after it came.
    pub response_ns: u64,
    /// How much of it passed behind memory; a hit has none.
    pub behind_ns: u64,
}

/// Prices by the interval in which answers came. A replay learns of borders when its next request
/// comes, so answers of later intervals may be known before one ends.
struct Answers {
    tenants: usize,
    interval_ns: u64,
    /// The interval under way.
    interval: u64,
    prices: BTreeMap<u64, Vec<Prices>>,
}

impl Answers {
    fn new(tenants: usize, interval_ns: u64) -> Answers {
        Answers { tenants, interval_ns, interval: 0, prices: BTreeMap::new() }
    }

    fn count(&mut self, tenant: TenantId, op: Op, times: Answered) {
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
    }

    fn end_interval(&mut self) -> Vec<Prices> {
        let prices = self.prices.remove(&self.interval);
        self.interval += 1;
        prices.unwrap_or_else(|| vec![Prices::default(); self.tenants])
    }
}

impl Recording {
    /// Tells a meter of a tenant's accesses and trims in `range`.
    pub(crate) fn tell(&self, range: Range<usize>, tenant: TenantId, meter: &mut SignalMeter) {
        let ids = self.ids_for(false);
        for at in range {
            let (block, flags) = (BlockId(ids[at]), self.flags[at]);
            if flags & TRIM != 0 {
                meter.trim(tenant, block);
            } else {
                let bytes = self.bytes.get(at).copied().unwrap_or_default();
                meter.access(BlockUse { tenant, block, write: flags & WRITE != 0, bytes });
            }
        }
    }

    /// Tells a meter of all tenants' accesses and trims in `range`.
    pub(crate) fn tell_each(&self, range: Range<usize>, meter: &mut SignalMeter) {
        for at in range {
            self.tell(at..at + 1, self.tenant_at(at), meter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_signal::Price;

    const ONE: TenantId = TenantId(0);
    const PRICES: SignalSet = SignalSet { prices: true, ..SignalSet::NONE };

    fn steps(wanted: u32, interval_ns: u64, arrivals: &[u64]) -> Vec<u32> {
        let wanted = Wanted { steps: wanted, ..Wanted::default() };
        let mut meter = wanted.meter(1, interval_ns).expect("something is wanted");
        for at in arrivals {
            meter.reach(*at);
            let (block, write, bytes) = (BlockId(0), false, 1);
            meter.access(BlockUse { tenant: ONE, block, write, bytes });
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
        let mut meter = Wanted { steps: 2, ..Wanted::default() }.meter(1, 10).expect("wanted");
        let access = BlockUse { tenant: ONE, block: BlockId(1), write: true, bytes: 8 };
        let one = Step { requests: 1, writes: 1, bytes: 8, unique: 1 };
        meter.reach(4);
        meter.access(access);
        assert_eq!(meter.end_interval().steps, [[one, Step::default()]]);
        meter.reach(15);
        meter.access(access);
        assert_eq!(meter.end_interval().steps, [[Step::default(), one]]);
    }

    #[test]
    fn nothing_wanted_is_no_meter() {
        assert!(Wanted::default().meter(2, 10).is_none());
        let meter = Wanted { signals: PRICES, ..Wanted::default() }.meter(2, 10);
        assert!(!meter.expect("prices").counts_accesses());
    }

    #[test]
    fn answers_count_where_they_came() {
        let mut meter =
            Wanted { signals: PRICES, ..Wanted::default() }.meter(2, 10).expect("prices");
        let answer =
            |finish_ns, behind_ns| Answered { finish_ns, response_ns: finish_ns, behind_ns };
        meter.answered(ONE, Op::Read, answer(10, 7));
        meter.answered(ONE, Op::Write, answer(11, 0));
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
