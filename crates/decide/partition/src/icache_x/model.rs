//! Response times of each tenant by its blocks, learned interval by interval.
//!
//! For: partitioners that divide by response times. Must never know: objectives, divisions. Units:
//! blocks, nanoseconds. Curves and response times fade by a half-life.

use super::costs::{Prior, RequestCost, TimeSpent, costs};
use super::queueing::WaitGrowth;
use super::slowdown::{AccessPattern, Slowdown, grid};
use crate::TenantView;
use cachewright_curve::signal::Prices;

/// What was learned of all tenants.
#[derive(Clone, Debug)]
pub struct ResponseModel {
    prior: Prior,
    /// Most growth of a tenant's waits per growth of its misses; 0 takes waits as constant.
    max_queueing: f64,
    /// What an interval counts after the next one, 0 to 1.
    share_of_past: f64,
    /// Sizes of averaged curves; empty before the first interval.
    grid: Vec<u32>,
    patterns: Vec<Option<AccessPattern>>,
    spendings: Vec<TimeSpent>,
    /// Tenants of the last call; 0 before the first.
    known: usize,
}

impl ResponseModel {
    /// A model without intervals, which count half after `half_life` further ones. Waits grow with
    /// a tenant's misses at most `max_queueing` times as fast; with 0 they stay as measured.
    pub fn new(prior: Prior, half_life: f64, max_queueing: f64) -> ResponseModel {
        let share_of_past = 0.5_f64.powf(1.0 / half_life);
        let (grid, patterns, spendings) = (Vec::new(), Vec::new(), Vec::new());
        ResponseModel { prior, max_queueing, share_of_past, grid, patterns, spendings, known: 0 }
    }

    /// Learns from the interval that ended, unless all tenants were idle.
    pub fn learn(&mut self, tenants: &[TenantView], total_blocks: u32) {
        self.patterns.resize(tenants.len(), None);
        self.spendings.resize(tenants.len(), TimeSpent::default());
        if self.grid.last() != Some(&total_blocks) {
            self.grid = grid(total_blocks);
            self.patterns.iter_mut().for_each(|pattern| *pattern = None);
        }
        let is_first = self.known != tenants.len();
        self.known = tenants.len();
        if tenants.iter().all(|tenant| tenant.accesses == 0) && !is_first {
            return;
        }
        let past = self.share_of_past;
        for ((tenant, pattern), spending) in
            tenants.iter().zip(&mut self.patterns).zip(&mut self.spendings)
        {
            let Some(curves) = tenant.signals.curves else { continue };
            pattern.get_or_insert_default().learn(curves, &self.grid, past);
            let held = match tenant.quota_blocks {
                0 => tenant.occupancy_blocks,
                quota => quota,
            };
            let ratios = [curves.reads.miss_ratio(held), curves.writes.miss_ratio(held)];
            let none = Prices::default();
            let blocks = [curves.reads.accesses() as f64, curves.writes.accesses() as f64];
            spending.learn(tenant.signals.prices.unwrap_or(&none), ratios, blocks, past);
        }
    }

    /// Sizes at which responses are known, ascending from 0 to the whole cache.
    pub fn grid(&self) -> &[u32] {
        &self.grid
    }

    /// Each tenant's slowdown by blocks, once every tenant has curves.
    pub fn slowdowns(&self) -> Option<Vec<Slowdown>> {
        self.of_each(|pattern, cost, queue| pattern.slowdown(cost, queue, &self.grid))
    }

    /// The sum of each tenant's recent response times in ns at the sizes of the grid, once every
    /// tenant has curves; 0 for a tenant without requests.
    pub fn responses(&self) -> Option<Vec<Vec<f64>>> {
        let none = || vec![0.0; self.grid.len()];
        self.of_each(|pattern, cost, queue| {
            pattern.responses(cost, queue, &self.grid).unwrap_or_else(none)
        })
    }

    fn of_each<T>(
        &self,
        value: impl Fn(&AccessPattern, &[RequestCost; 2], WaitGrowth) -> T,
    ) -> Option<Vec<T>> {
        let patterns: Option<Vec<&AccessPattern>> =
            self.patterns.iter().map(Option::as_ref).collect();
        let costs = costs(&self.spendings, self.prior);
        let queues = self.spendings.iter().map(|spending| spending.queue(self.max_queueing));
        let each = patterns?.into_iter().zip(&costs).zip(queues);
        Some(each.map(|((pattern, cost), queue)| value(pattern, cost, queue)).collect())
    }
}
