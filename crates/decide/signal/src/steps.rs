//! Counting what each tenant asks for, step by step.
//!
//! For: whoever replays requests and tells what they are and when a step ends. Must never know:
//! time, caches. Units: requests of at most a page each; pages by id, of which each tenant has its
//! own. Cost: one look into a hash table per request; memory: the pages of the step under way, and
//! the steps not yet taken.

use crate::Step;
use cachewright_types::{BlockId, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Room for pages that is kept from step to step.
const KEPT_PAGES: usize = 1024;

/// What one tenant has asked for.
#[derive(Clone, Debug, Default)]
struct Asked {
    step: Step,
    /// The pages of this step, and whether each was asked for only once.
    pages: HashMap<BlockId, bool, FixedState>,
    /// The steps that have ended.
    ended: Vec<Step>,
}

/// Counters of the step under way, per tenant, and the steps that have ended.
#[derive(Clone, Debug)]
pub struct StepMeter {
    tenants: Vec<Asked>,
}

impl Asked {
    #[inline]
    fn request(&mut self, page: BlockId, write: bool, bytes: u32) {
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
            // A burst leaves no table behind that every later step would have to clear.
            if self.pages.capacity() > KEPT_PAGES.max(8 * pages) {
                self.pages.shrink_to(2 * pages);
            }
        }
    }
}

impl StepMeter {
    /// A meter of so many tenants at the start of a step.
    pub fn new(tenants: usize) -> StepMeter {
        StepMeter { tenants: vec![Asked::default(); tenants] }
    }

    /// Counts a request for `bytes` of one page; a tenant that was not announced is ignored.
    #[inline]
    pub fn request(&mut self, tenant: TenantId, page: BlockId, write: bool, bytes: u32) {
        if let Some(asked) = self.tenants.get_mut(tenant.index()) {
            asked.request(page, write, bytes);
        }
    }

    /// Ends the step of every tenant and begins the next.
    pub fn end_step(&mut self) {
        self.tenants.iter_mut().for_each(Asked::end_step);
    }

    /// Hands out each tenant's steps that have ended since the last call, the earliest first.
    pub fn take(&mut self) -> Vec<Vec<Step>> {
        self.tenants.iter_mut().map(|asked| std::mem::take(&mut asked.ended)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_by_hand() {
        let mut meter = StepMeter::new(2);
        let (one, two) = (TenantId(0), TenantId(1));
        meter.request(one, BlockId(7), false, 4096);
        meter.request(one, BlockId(7), true, 512);
        meter.request(one, BlockId(8), false, 4096);
        meter.request(two, BlockId(7), true, 1);
        meter.end_step();
        meter.request(one, BlockId(7), false, 100);
        meter.end_step();
        let first = Step { requests: 3, writes: 1, bytes: 8704, unique: 1 };
        let second = Step { requests: 1, writes: 0, bytes: 100, unique: 1 };
        let other = Step { requests: 1, writes: 1, bytes: 1, unique: 1 };
        assert_eq!(meter.take(), [[first, second], [other, Step::default()]]);
        assert_eq!(meter.take(), [[], []], "taken once");
        meter.request(TenantId(9), BlockId(0), true, 1);
    }

    #[test]
    fn a_burst_leaves_no_large_table() {
        let mut meter = StepMeter::new(1);
        (0..100_000).for_each(|page| meter.request(TenantId(0), BlockId(page), false, 1));
        meter.end_step();
        meter.request(TenantId(0), BlockId(1), false, 1);
        meter.end_step();
        assert!(meter.tenants[0].pages.capacity() < 2 * KEPT_PAGES);
    }

    /// The step of requests, looked at one by one.
    fn model(requests: &[(u32, bool, u32)]) -> Step {
        let times = |page| requests.iter().filter(|request| request.0 == page).count();
        Step {
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
                prop::collection::vec((0_u32..20, any::<bool>(), 1_u32..9000), 0..40), 0..6),
        ) {
            let mut meter = StepMeter::new(1);
            for step in &steps {
                for (page, write, bytes) in step {
                    meter.request(TenantId(0), BlockId(*page), *write, *bytes);
                }
                meter.end_step();
            }
            let expected: Vec<Step> = steps.iter().map(|step| model(step)).collect();
            prop_assert_eq!(meter.take(), vec![expected]);
        }
    }
}
