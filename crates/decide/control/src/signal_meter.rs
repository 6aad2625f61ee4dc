//! Measures what a partitioner reads of an interval, beside the cache's own counts.
//!
//! For: the signals that the partitioner needs and no others. Must never know: partitioners,
//! caches, devices. Units: nanoseconds on the decision clock, blocks, which are the pages of all
//! signals. An interval is cut into steps of equal length; what arrives at a border belongs to the
//! later step, what is answered at the end of an interval to the one that ends.

use crate::answer_prices::AnswerPrices;
use crate::interval_steps::IntervalSteps;
use cachewright_curve::signal::{ReuseMeter, SignalSet, Signals};
use cachewright_curve::{BlockName, CurveSet};
use cachewright_types::{Op, TenantId, VolumeKeys};
use std::ops::Range;

pub use crate::answer_prices::AnswerTimes;

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
            prices: self.signals.prices.then(|| AnswerPrices::new(tenants, interval_ns)),
        };
        let needed = meter.counts_accesses() || meter.prices.is_some();
        needed.then_some(meter)
    }
}

/// Measures the interval under way.
pub struct SignalMeter {
    curves: Option<CurveSet>,
    steps: Option<IntervalSteps>,
    reuse: Option<ReuseMeter>,
    prices: Option<AnswerPrices>,
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
            prices: self.prices.as_mut().map(AnswerPrices::end_interval).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::signal::{Price, Prices, StepCounts};
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
