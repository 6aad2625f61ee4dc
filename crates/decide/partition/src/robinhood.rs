//! `robinhood`: each interval a tax on all tenants goes to those that block the slowest requests.
//!
//! For: short tails where means do not matter. Must never know: how response times were measured.
//! Units: blocks; bands are shares of requests. Source: Berger et al., RobinHood (OSDI 2018),
//! section 4: a tax of 1 % of each cache, the request blocking count (RBC), and caches with unused
//! space.
//!
//! A tenant's RBC is the number of its requests in a band of the slowest requests of all tenants,
//! from `band_low` to `band_high`. Deviations: RobinHood divides among back ends, of which one
//! request asks many, and the slowest blocks it; here tenants stand in for back ends, and each
//! request has one. Response times are counted in classes an eighth apart; a class on the edge of
//! the band counts in part. RBCs are of one interval, where RobinHood keeps those of some. A tenant
//! that holds less than `full_from` of its quota gets nothing, as it would not use it.

use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_curve::signal::ResponseClasses;
use cachewright_curve::signal::response_times::CLASSES;
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `robinhood`.
    pub struct RobinHoodSettings {
        /// share of each tenant's blocks that one division takes
        tax: f64 = 0.01, "ratio", 0.0001 ..= 1.0;
        /// share of all requests that are faster than the band
        band_low: f64 = 0.985, "ratio", 0.0 ..= 1.0;
        /// share of all requests that are not slower than the band
        band_high: f64 = 0.995, "ratio", 0.0 ..= 1.0;
        /// share of its quota that a tenant must hold to gain more
        full_from: f64 = 0.7, "ratio", 0.0 ..= 1.0;
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
    }
}

/// Blocks for tenants that block the slowest requests.
#[derive(Clone, Debug, Snapshot)]
pub struct RobinHood {
    #[snapshot(settings)]
    settings: RobinHoodSettings,
    /// Quotas of the last division; empty before the first.
    last: Vec<u32>,
}

impl Registered for RobinHood {
    type Settings = RobinHoodSettings;
    const ENTRY: Entry = Entry {
        name: "robinhood",
        doc: "a tax on all tenants for those whose requests are the slowest of all",
        source: "Berger et al., RobinHood (OSDI 2018), section 4",
        needs: &[Need::Interval, Need::Prices],
    };

    fn new(settings: &RobinHoodSettings, _: usize, _: Seed) -> Self {
        RobinHood { settings: settings.clone(), last: Vec::new() }
    }
}

/// Requests of each tenant in the band from `low` to `high` (shares of all requests, ascending by
/// response time). A class that an edge of the band cuts counts in proportion.
fn blocking_counts(responses: &[Option<&ResponseClasses>], low: f64, high: f64) -> Vec<f64> {
    let count = |tenant: &Option<&ResponseClasses>, class: usize| {
        tenant.map_or(0.0, |responses| f64::from(responses.counts()[class]))
    };
    let of_class = |class: usize| responses.iter().map(|tenant| count(tenant, class)).sum::<f64>();
    let all: f64 = (0..CLASSES).map(of_class).sum();
    let (low, high) = (low * all, high * all);
    let mut counts = vec![0.0; responses.len()];
    let mut before = 0.0;
    for class in 0..CLASSES {
        let requests = of_class(class);
        let inside = (before + requests).min(high) - f64::max(before, low);
        if inside > 0.0 {
            for (sum, tenant) in counts.iter_mut().zip(responses) {
                *sum += count(tenant, class) * inside / requests;
            }
        }
        before += requests;
    }
    counts
}

impl Partitioner for RobinHood {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let known = self.last.len() == tenants.len()
            && self.last.iter().copied().map(u64::from).sum::<u64>() == u64::from(total_blocks);
        if !known {
            self.last = share::equal(total_blocks, tenants.len());
        }
        let responses: Vec<Option<&ResponseClasses>> =
            tenants.iter().map(|tenant| tenant.signals.prices.map(|p| &p.responses)).collect();
        let RobinHoodSettings { tax, band_low, band_high, full_from, .. } = self.settings;
        let mut claims = blocking_counts(&responses, band_low, band_high);
        for (claim, tenant) in claims.iter_mut().zip(tenants) {
            let used = full_from * f64::from(tenant.quota_blocks);
            if f64::from(tenant.occupancy_blocks) < used {
                *claim = 0.0;
            }
        }
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        let floors = vec![floor; tenants.len()];
        let blocks = (tax * f64::from(total_blocks)).ceil() as u32;
        share::redistribute(&mut self.last, &floors, blocks, &claims);
        CacheDivision::PerTenant(self.last.clone())
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::signal::{Prices, TenantSignals};
    use proptest::prelude::*;

    fn responses(times: impl IntoIterator<Item = u64>) -> ResponseClasses {
        let mut responses = ResponseClasses::default();
        times.into_iter().for_each(|response_ns| responses.add(response_ns));
        responses
    }

    fn view(prices: &Prices, quota_blocks: u32, occupancy_blocks: u32) -> TenantView<'_> {
        let signals = TenantSignals { prices: Some(prices), ..TenantSignals::default() };
        TenantView { quota_blocks, occupancy_blocks, signals, ..TenantView::default() }
    }

    #[test]
    fn the_tax_goes_to_tenants_that_block_the_slowest_requests() {
        // 1000 requests: the first tenant's 970 take 10 ns, the second's 20 take 1 us, 10 of the
        // third 4 us. The band is 5 of the second (985 to 990) and 5 of the third (990 to 995).
        let times = [(970, 10), (20, 1 << 10), (10, 1 << 12)];
        let prices = times.map(|(count, response_ns)| Prices {
            responses: responses((0..count).map(|_| response_ns)),
            ..Prices::default()
        });
        let each = prices.each_ref().map(|prices| Some(&prices.responses));
        let counts = blocking_counts(&each, 0.985, 0.995);
        assert!((counts[0], counts[1]) == (0.0, 5.0) && (counts[2] - 5.0).abs() < 1e-9);
        let settings = RobinHoodSettings { floor_blocks: 0, ..RobinHoodSettings::default() };
        let mut scheme = RobinHood::new(&settings, 3, Seed(1));
        let full = prices.each_ref().map(|prices| view(prices, 1000, 1000));
        // 30 of 3000 blocks: 10 from each, 15 to each of two.
        assert_eq!(scheme.divide(&full, 3000), CacheDivision::PerTenant(vec![990, 1005, 1005]));
        let mut half = full;
        half[2].occupancy_blocks = 600;
        // The third has space that it does not use: 30 to the second.
        let CacheDivision::PerTenant(quotas) = scheme.divide(&half, 3000) else { panic!("quotas") };
        assert_eq!(quotas, [980, 1025, 995]);
    }

    #[test]
    fn nothing_moves_without_answers() {
        let none = Prices::default();
        let mut scheme = RobinHood::new(&RobinHoodSettings::default(), 2, Seed(1));
        let views = [view(&none, 0, 0), TenantView::default()];
        for _ in 0..3 {
            assert_eq!(scheme.divide(&views, 9), CacheDivision::PerTenant(vec![5, 4]));
        }
    }

    proptest! {
        /// Sorts all requests, where each response time is a class of its own.
        #[test]
        fn counts_are_those_of_a_sorted_list(
            times in prop::collection::vec((0_usize..4, 0_u64..16), 1..400),
        ) {
            let of = |tenant| times.iter().filter(move |(t, _)| *t == tenant).map(|(_, ns)| *ns);
            let each: Vec<ResponseClasses> = (0..4).map(|tenant| responses(of(tenant))).collect();
            let views: Vec<Option<&ResponseClasses>> = each.iter().map(Some).collect();
            let (low, high) = (0.75, 0.95);
            let counts = blocking_counts(&views, low, high);
            // Requests of equal times share the part of the band that they cover.
            let all = times.len() as f64;
            for (tenant, count) in counts.iter().enumerate() {
                let slow: f64 = of(tenant).map(|ns| {
                    let faster = times.iter().filter(|(_, other)| *other < ns).count() as f64;
                    let alike = times.iter().filter(|(_, other)| *other == ns).count() as f64;
                    let inside = (faster + alike).min(high * all) - faster.max(low * all);
                    inside.max(0.0) / alike
                }).sum();
                prop_assert!((count - slow).abs() < 1e-9);
            }
        }
    }
}
