//! `scheduled`: shares that follow a schedule, by weights of each interval.
//!
//! For: tenants whose needs are known to change with time, as a plan of many hosts finds them. Must
//! never know: what was measured, clocks. Units: blocks; intervals are counted from the first. A
//! schedule that has ended begins again.

use crate::entry::{Entry, Need, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_types::Seed;
use cachewright_types::declare;

declare! {
    /// Settings of `scheduled`.
    pub struct ScheduledSettings {
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
    }
}

/// Quotas in proportion to the weights of the interval that begins.
#[derive(Clone, Debug)]
pub struct Scheduled {
    settings: ScheduledSettings,
}

impl Registered for Scheduled {
    type Settings = ScheduledSettings;
    const ENTRY: Entry = Entry {
        name: "scheduled",
        doc: "blocks in proportion to the tenants' weights of each interval, repeated",
        source: "ours: proportional shares by largest remainder, at times that are known",
        needs: &[Need::Interval],
    };

    fn new(settings: &ScheduledSettings, _: usize, _: Seed) -> Self {
        Scheduled { settings: settings.clone() }
    }
}

impl Partitioner for Scheduled {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let weights: Vec<f64> = tenants.iter().map(weight).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        CacheDivision::PerTenant(share::proportional_above(total_blocks, &weights, floor))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}

/// The weight of a tenant in the interval that begins: its only weight without a schedule.
fn weight(tenant: &TenantView) -> f64 {
    let schedule = &tenant.facts.schedule;
    let place = tenant.interval.checked_rem(schedule.len() as u64);
    place.and_then(|place| schedule.get(place as usize)).copied().unwrap_or(tenant.facts.weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TenantConstants;

    #[test]
    fn weights_follow_the_schedule_and_begin_again() {
        let day = TenantConstants { schedule: vec![3.0, 1.0], ..TenantConstants::default() };
        let night = TenantConstants { schedule: vec![1.0, 1.0, 7.0], ..TenantConstants::default() };
        let plain = TenantConstants { weight: 4.0, ..TenantConstants::default() };
        let mut scheduled = Scheduled::new(&ScheduledSettings::default(), 3, Seed(1));
        let mut divide = |interval| {
            let view = |facts| TenantView { facts, interval, ..TenantView::default() };
            match scheduled.divide(&[view(&day), view(&night), view(&plain)], 120) {
                CacheDivision::PerTenant(quotas) => quotas,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(divide(0), [45, 15, 60]);
        assert_eq!(divide(1), [20, 20, 80]);
        assert_eq!(divide(2), [26, 60, 34]);
        assert_eq!(divide(3), divide(1 + 2 * 3 * 2), "after six intervals all begins again");
    }
}
