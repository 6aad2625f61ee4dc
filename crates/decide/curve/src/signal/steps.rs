//! Counts of each tenant's requests, step by step, and the features that models read from them.
//!
//! Units: requests of at most a page each, as a drive splits them; pages by key, which no other
//! page has. Source: Li, Sun, Qin, iCache (TCAD 2025), section IV-B, whose step is a second. Cost:
//! one hash look-up per request. Memory: the pages of the current step, and the steps not yet
//! taken.

use cachewright_snapshot::SnapshotValue;
use cachewright_types::{BlockKey, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Pages whose memory is kept from step to step.
const RETAINED_PAGES: usize = 1024;

/// Steps of one tenant.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct TenantSteps {
    step: StepCounts,
    /// The pages of this step, and whether each had only one request.
    pages: HashMap<BlockKey, bool, FixedState>,
    /// The steps that have ended.
    ended: Vec<StepCounts>,
}

/// Counters of the current step, per tenant, and the steps that have ended.
#[derive(Clone, Debug, SnapshotValue)]
pub struct StepMeter {
    tenants: Vec<TenantSteps>,
}

impl TenantSteps {
    #[inline]
    fn request(&mut self, page: BlockKey, write: bool, bytes: u32) {
        let step = &mut self.step;
        step.requests = step.requests.saturating_add(1);
        step.writes = step.writes.saturating_add(u32::from(write));
        step.bytes += u64::from(bytes);
        match self.pages.entry(page) {
            Entry::Vacant(place) => {
                place.insert(true);
                step.unique += 1;
            }
            Entry::Occupied(mut place) => {
                step.unique -= u32::from(*place.get());
                place.insert(false);
            }
        }
    }

    fn end_step(&mut self) {
        self.ended.push(std::mem::take(&mut self.step));
        let pages = self.pages.len();
        if pages > 0 {
            self.pages.clear();
            // After a burst the table shrinks, so that later steps clear little.
            if self.pages.capacity() > RETAINED_PAGES.max(8 * pages) {
                self.pages.shrink_to(2 * pages);
            }
        }
    }
}

impl StepMeter {
    /// A meter of `tenants` tenants at the start of a step.
    pub fn new(tenants: usize) -> StepMeter {
        StepMeter { tenants: vec![TenantSteps::default(); tenants] }
    }

    /// Counts a request for `bytes` of one page; an unknown tenant is ignored.
    #[inline]
    pub fn request(&mut self, tenant: TenantId, page: BlockKey, write: bool, bytes: u32) {
        if let Some(steps) = self.tenants.get_mut(tenant.index()) {
            steps.request(page, write, bytes);
        }
    }

    /// Ends the step of every tenant and begins the next.
    pub fn end_step(&mut self) {
        self.tenants.iter_mut().for_each(TenantSteps::end_step);
    }

    /// Returns each tenant's steps that ended since the last call, the earliest first.
    pub fn take(&mut self) -> Vec<Vec<StepCounts>> {
        self.tenants.iter_mut().map(|steps| std::mem::take(&mut steps.ended)).collect()
    }
}
/// The features of a step, in their order.
pub const FEATURES: [&str; 4] = ["intensity", "write_ratio", "request_bytes", "unique_ratio"];

/// The requests of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct StepCounts {
    /// Requests.
    pub requests: u32,
    /// Requests that write.
    pub writes: u32,
    /// Bytes read and written.
    pub bytes: u64,
    /// Pages with exactly one request.
    pub unique: u32,
}

impl StepCounts {
    /// The features, named by [`FEATURES`]: requests, share of writes, mean bytes, share of pages
    /// with one request. All are 0 in a step without requests.
    pub fn features(&self) -> [f32; FEATURES.len()] {
        if self.requests == 0 {
            return [0.0; FEATURES.len()];
        }
        let per_request = |sum: f64| (sum / f64::from(self.requests)) as f32;
        [
            self.requests as f32,
            per_request(f64::from(self.writes)),
            per_request(self.bytes as f64),
            per_request(f64::from(self.unique)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_by_hand() {
        let mut meter = StepMeter::new(2);
        let (first_tenant, second_tenant) = (TenantId(0), TenantId(1));
        meter.request(first_tenant, BlockKey(7), false, 4096);
        meter.request(first_tenant, BlockKey(7), true, 512);
        meter.request(first_tenant, BlockKey(8), false, 4096);
        meter.request(second_tenant, BlockKey(7), true, 1);
        meter.end_step();
        meter.request(first_tenant, BlockKey(7), false, 100);
        meter.end_step();
        let first = StepCounts { requests: 3, writes: 1, bytes: 8704, unique: 1 };
        let second = StepCounts { requests: 1, writes: 0, bytes: 100, unique: 1 };
        let other = StepCounts { requests: 1, writes: 1, bytes: 1, unique: 1 };
        assert_eq!(meter.take(), [[first, second], [other, StepCounts::default()]]);
        assert_eq!(meter.take(), [[], []], "taken once");
        meter.request(TenantId(9), BlockKey(0), true, 1);
    }

    #[test]
    fn a_burst_leaves_no_large_table() {
        let mut meter = StepMeter::new(1);
        (0..100_000_u64).for_each(|page| meter.request(TenantId(0), BlockKey(page), false, 1));
        meter.end_step();
        meter.request(TenantId(0), BlockKey(1), false, 1);
        meter.end_step();
        assert!(meter.tenants[0].pages.capacity() < 2 * RETAINED_PAGES);
    }

    /// The step of requests, looked at one by one.
    fn model(requests: &[(u64, bool, u32)]) -> StepCounts {
        let times = |page| requests.iter().filter(|request| request.0 == page).count();
        StepCounts {
            requests: requests.len() as u32,
            writes: requests.iter().filter(|request| request.1).count() as u32,
            bytes: requests.iter().map(|request| u64::from(request.2)).sum(),
            unique: requests.iter().filter(|request| times(request.0) == 1).count() as u32,
        }
    }

    proptest! {
        #[test]
        fn it_counts_as_the_model_does(
            steps in prop::collection::vec(
                prop::collection::vec((0_u64..20, any::<bool>(), 1_u32..9000), 0..40), 0..6),
        ) {
            let mut meter = StepMeter::new(1);
            for step in &steps {
                for (page, write, bytes) in step {
                    meter.request(TenantId(0), BlockKey(*page), *write, *bytes);
                }
                meter.end_step();
            }
            let expected: Vec<StepCounts> = steps.iter().map(|step| model(step)).collect();
            prop_assert_eq!(meter.take(), vec![expected]);
        }
    }

    #[test]
    fn ratios_are_of_requests_and_idle_steps_are_zero() {
        let step = StepCounts { requests: 8, writes: 2, bytes: 16 << 10, unique: 4 };
        assert_eq!(step.features(), [8.0, 0.25, 2048.0, 0.5]);
        assert_eq!(StepCounts::default().features(), [0.0; 4]);
    }
}
