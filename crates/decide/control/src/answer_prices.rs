//! Response times of hits and misses, by the interval in which answers came.
//!
//! For: the price signals of partitioners. Must never know: what a response consists of. Units:
//! nanoseconds on the decision clock. An answer at the end of an interval belongs to the one that
//! ends.

use cachewright_curve::signal::Prices;
use cachewright_types::{Op, TenantId};
use std::collections::BTreeMap;

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

/// Prices by the interval in which answers came. A replay finds borders when its next request
/// comes, so answers of later intervals may be known before one ends.
pub struct AnswerPrices {
    tenants: usize,
    interval_ns: u64,
    /// The interval under way.
    interval: u64,
    prices: BTreeMap<u64, Vec<Prices>>,
}

impl AnswerPrices {
    /// No answers yet, with intervals of `interval_ns`.
    pub fn new(tenants: usize, interval_ns: u64) -> AnswerPrices {
        AnswerPrices { tenants, interval_ns, interval: 0, prices: BTreeMap::new() }
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
