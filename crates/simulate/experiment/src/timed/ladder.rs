//! Each tenant alone with every number of granules of the cache, summed by step.
//!
//! For: response times by cache size and interval, from which demands are labelled and which
//! partitioners that know the future are told. Must never know: labels, partitioners. Every size is
//! one replay of the whole workload, so that an interval begins with the cache and the drive that
//! the intervals before have left. Size 0 is the cache switched off, as in latency curves. Source:
//! Li, Sun, Qin, iCache (TCAD 2025), section IV-C. Units: blocks, granules.

use super::{Job, TimedWorkload};
use crate::ExperimentError;
use crate::case::Case;
use cachewright_partition::share::granules_blocks;
use cachewright_system::event_loop::{StepClock, StepSums};
use cachewright_types::TenantId;

/// By tenant, then by granules from 0 on.
pub type Ladder = Vec<Vec<StepSums>>;

/// The replays of a case's tenants, tenant by tenant, each with 0 to `granules` granules.
pub(super) fn jobs<'c>(
    case: &'c Case,
    capacity_blocks: u32,
    granules: u32,
    clock: StepClock,
) -> Vec<Job<'c>> {
    let Some(stack) = &case.spec.stack else { return Vec::new() };
    let sizes: Vec<u32> =
        (0..=granules).map(|count| granules_blocks(capacity_blocks, granules, count)).collect();
    let tenants = (0..case.spec.tenants.len()).map(|tenant| Some(TenantId(tenant as u16)));
    let job = |only, capacity_blocks| {
        let (clock, future) = (Some(clock), None);
        Job { case, stack, capacity_blocks, only, clock, future }
    };
    tenants.flat_map(|only| sizes.iter().map(move |size| job(only, *size))).collect()
}

/// What such replays found, in their order.
pub(super) fn ladder(found: Vec<StepSums>, granules: u32) -> Ladder {
    found.chunks(granules as usize + 1).map(<[StepSums]>::to_vec).collect()
}

impl TimedWorkload<'_> {
    /// Climbs the ladder of one open-loop case on devices, in parallel. Errors: a capacity that
    /// cannot be, a drive that cannot go on, cancelled.
    pub fn ladder(
        &self,
        case: &Case,
        granules: u32,
        clock: StepClock,
    ) -> Result<Ladder, ExperimentError> {
        let jobs = jobs(case, self.capacity_blocks(case)?, granules, clock);
        Ok(ladder(self.climb(&jobs, &self.sum(jobs.len()))?, granules))
    }
}
