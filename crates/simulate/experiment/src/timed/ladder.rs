//! Each tenant alone with every number of granules of the cache, summed by step.
//!
//! For: response times by cache size and interval, from which demands are labelled and which
//! partitioners that know the future are told. Must never know: labels, partitioners. Every size is
//! one replay of the whole workload, so that an interval begins with the cache and the drive that
//! the intervals before have left. Size 0 is the cache switched off, as in latency curves. Source:
//! Li, Sun, Qin, iCache (TCAD 2025), section IV-C. Units: blocks, granules.

use crate::ExperimentError;
use crate::case::ResolvedCase;
use crate::job::Job;
use crate::workload::Workload;
use cachewright_partition::share::granules_blocks;
use cachewright_system::event_loop::{StepClock, StepSums};

/// By tenant, then by granules from 0 on.
pub type Ladder = Vec<Vec<StepSums>>;

/// The replays of a case's tenants, tenant by tenant, each with 0 to `granules` granules.
pub(super) fn jobs<'c>(
    workload: &'c Workload<'c>,
    case: &'c ResolvedCase<'c>,
    granules: u32,
    clock: StepClock,
) -> Vec<Job<'c>> {
    let size = |count| granules_blocks(case.capacity_blocks, granules, count);
    let sizes: Vec<u32> = (0..=granules).map(size).collect();
    let job = |tenant, capacity_blocks| Job {
        capacity_blocks,
        clock: Some(clock),
        ..Job::alone(workload, case, tenant)
    };
    let tenants = 0..case.spec.tenants.len();
    tenants.flat_map(|tenant| sizes.iter().map(move |size| job(tenant, *size))).collect()
}

/// What such replays found, in their order.
pub(super) fn ladder(found: Vec<StepSums>, granules: u32) -> Ladder {
    found.chunks(granules as usize + 1).map(<[StepSums]>::to_vec).collect()
}

impl Workload<'_> {
    /// Climbs the ladder of one open-loop case on devices, in parallel. Errors: a drive
    /// that cannot go on, cancelled.
    pub fn ladder(
        &self,
        case: &ResolvedCase<'_>,
        granules: u32,
        clock: StepClock,
    ) -> Result<Ladder, ExperimentError> {
        let jobs = jobs(self, case, granules, clock);
        Ok(ladder(self.climb(&jobs, &self.sum(jobs.len()))?, granules))
    }
}
