//! Divisions that no measurement changes: `shared`, `equal`, `static`, `scheduled`, and divisions
//! that were recorded.

use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Seed, declare};

/// `shared`: one pool for all tenants, the baseline of every scheme.
#[derive(Clone, Debug, SnapshotValue)]
pub struct SharedPool;

impl Registered for SharedPool {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "shared",
        doc: "one pool that all tenants share",
        source: "the usual cache of a shared device",
        needs: &[],
    };

    fn new(_: &NoSettings, _: usize, _: Seed) -> Self {
        SharedPool
    }
}

impl Partitioner for SharedPool {
    fn divide(&mut self, _: &[TenantView], _: u32) -> CacheDivision {
        CacheDivision::Shared
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }
}

/// `equal`: equal quotas, the baseline of isolation. The first tenants get the remainder, one block
/// each.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Equal;

impl Registered for Equal {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "equal",
        doc: "the same number of blocks for each tenant, the remainder to the first",
        source: "static partitioning into equal shares",
        needs: &[],
    };

    fn new(_: &NoSettings, _: usize, _: Seed) -> Self {
        Equal
    }
}

impl Partitioner for Equal {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        CacheDivision::PerTenant(share::equal(total_blocks, tenants.len()))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(u32::MAX, tenants, total_blocks)
    }
}

declare! {
    /// Settings of `static`.
    pub struct StaticSettings {
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
    }
}

/// `static`: quotas in proportion to weights, for operators who set shares by hand. Whole blocks by
/// largest remainder.
#[derive(Clone, Debug, Snapshot)]
pub struct Static {
    #[snapshot(settings)]
    settings: StaticSettings,
}

impl Registered for Static {
    type Settings = StaticSettings;
    const ENTRY: Entry = Entry {
        name: "static",
        doc: "blocks in proportion to the tenants' weights",
        source: "proportional shares by largest remainder (Hamilton)",
        needs: &[],
    };

    fn new(settings: &StaticSettings, _: usize, _: Seed) -> Self {
        Static { settings: settings.clone() }
    }
}

impl Partitioner for Static {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let weights: Vec<f64> = tenants.iter().map(|tenant| tenant.facts.weight).collect();
        let floor = self.floor_blocks(tenants.len(), total_blocks);
        CacheDivision::PerTenant(share::proportional_above(total_blocks, &weights, floor))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }
}

declare! {
    /// Settings of `scheduled`.
    pub struct ScheduledSettings {
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
    }
}

/// `scheduled`: quotas in proportion to the weights of the interval that begins, for tenants whose
/// needs are known to change with time, as a plan of many hosts finds them. Intervals are counted
/// from the first; a schedule that has ended begins again.
#[derive(Clone, Debug, Snapshot)]
pub struct Scheduled {
    #[snapshot(settings)]
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

/// Quotas by interval, those of one hold until the next: replays of what a live server divided by
/// what only it could measure. Intervals are counted from 0, before anything was measured. It is in
/// no table: a stack cannot name it.
#[derive(Clone, Debug, Snapshot)]
pub struct Recorded {
    /// The interval from which on quotas hold, and the blocks of each tenant.
    #[snapshot(settings)]
    divisions: Vec<(u64, Vec<u32>)>,
    /// The division that holds.
    place: usize,
    /// The interval that begins with the next division.
    interval: u64,
}

impl Recorded {
    /// Divisions in the order of intervals, the first one at 0.
    pub fn new(divisions: Vec<(u64, Vec<u32>)>) -> Recorded {
        Recorded { divisions, place: 0, interval: 0 }
    }
}

impl Partitioner for Recorded {
    fn divide(&mut self, tenants: &[TenantView], _: u32) -> CacheDivision {
        let interval = self.interval;
        let due = |next: &&(u64, Vec<u32>)| next.0 <= interval;
        while self.divisions.get(self.place + 1).as_ref().is_some_and(due) {
            self.place += 1;
        }
        self.interval += 1;
        let quotas = self.divisions.get(self.place).map(|division| division.1.clone());
        CacheDivision::PerTenant(quotas.unwrap_or_else(|| vec![0; tenants.len()]))
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TenantConstants;

    #[test]
    fn the_remainder_goes_to_the_first() {
        assert_eq!(share::equal(11, 4), [3, 3, 3, 2]);
        assert_eq!(share::equal(2, 4), [1, 1, 0, 0], "more tenants than blocks");
        assert_eq!(Equal.floor_blocks(4, 11), 2);
    }

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

    #[test]
    fn quotas_hold_until_the_next_division() {
        let mut recorded = Recorded::new(vec![(0, vec![5, 5]), (2, vec![9, 1]), (3, vec![0, 4])]);
        let views = [TenantView::default(); 2];
        let mut divide = || match recorded.divide(&views, 10) {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("{other:?}"),
        };
        let found: Vec<Vec<u32>> = (0..5).map(|_| divide()).collect();
        assert_eq!(found, [[5, 5], [5, 5], [9, 1], [0, 4], [0, 4]]);
    }
}
