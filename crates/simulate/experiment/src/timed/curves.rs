//! Response times by the size of the cache: curves over the whole trace, and each interval's for
//! partitioners that know the future.
//!
//! Every size is one replay of the whole workload, so that an interval begins with the cache and
//! the drive that the intervals before have left. Size 0 is the cache switched off: every request
//! goes to the backing device (past the data cache of a drive). Unlike a miss-ratio curve this one
//! may rise, or have cliffs that no hull shows. Source: Li, Sun, Qin, iCache (TCAD 2025), section
//! IV-C, whose labels are made of the steps of this curve. Units: nanoseconds, blocks, granules.

use super::answer::response_times;
use crate::ExperimentError;
use crate::case::{Case, ResolvedCase};
use crate::job::Job;
use crate::needs::Needs;
use crate::progress::OnProgress;
use crate::record::RecordedTenants;
use crate::workload::Workload;
use cachewright_partition::Need;
use cachewright_partition::share::granules_blocks;
use cachewright_result::curves::{LatencyCurve, LatencyPoint};
use cachewright_stack::Shared;
use cachewright_system::event_loop::{StepClock, StepSums, Times};
use cachewright_system::machines::Requests;
use cachewright_types::Nanos;
use std::ops::Range;
use std::sync::Arc;

/// Each tenant alone under each of `policies`, at each of its sizes in blocks; `case` has devices.
pub fn latency_curves(
    case: &Case,
    recorded: &RecordedTenants,
    requests: Requests,
    policies: &[String],
    sizes: &[Vec<u32>],
    progress: OnProgress<'_>,
) -> Result<Vec<LatencyCurve>, ExperimentError> {
    let recording = &recorded.recording;
    case.resolve(recording)?.check_warmup()?;
    let workload = Workload::on_devices(case, recorded, requests, progress)?;
    let cases: Vec<Case> = policies.iter().map(|policy| with_policy(case, policy)).collect();
    for case in &cases {
        case.check_policy()?;
    }
    let resolved = cases.iter().map(|case| case.resolve(recording));
    let cases = resolved.collect::<Result<Vec<ResolvedCase<'_>>, ExperimentError>>()?;
    let mut jobs = Vec::new();
    let mut named = Vec::new();
    for case in &cases {
        for (tenant, sizes) in sizes.iter().enumerate() {
            named.push((case, tenant, sizes));
            for capacity_blocks in sizes.iter().copied() {
                jobs.push(Job { capacity_blocks, ..Job::alone(&workload, case, tenant) });
            }
        }
    }
    let layout = workload.placed()?.volumes.layout.word();
    let mut found = workload.run(&jobs)?.into_iter();
    let mut curves = Vec::new();
    for (case, tenant, sizes) in named {
        let point = |(size, times): (&u32, Times)| LatencyPoint {
            responses: response_times(&times.tenants[tenant]),
            size_blocks: *size,
            hit_ratio: times.cache.counts[tenant].hit_ratio(),
        };
        let points = sizes.iter().zip(found.by_ref()).map(point).collect();
        curves.push(LatencyCurve {
            tenant: case.spec.tenants[tenant].name.clone(),
            policy: case.spec.cache.policy.name.clone(),
            layout: layout.to_owned(),
            points,
        });
    }
    Ok(curves)
}

/// The case under another policy; its own keeps its settings.
fn with_policy(case: &Case, policy: &str) -> Case {
    let mut case = case.clone();
    case.spec.cache.set_policy(policy);
    case.needs = Needs::of(&case.spec);
    case
}

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
        Ok(ladder(self.climb(&jobs, &self.sum_of_jobs(jobs.len()))?, granules))
    }
}

/// Mean responses by tenant, interval and granules; none of an interval without requests.
pub type ResponseOutlook = Vec<Vec<Vec<f64>>>;

/// The replays that outlooks are made of.
/// A tenant's mean response in an interval, alone with each number of granules, depends neither on
/// the partitioner nor on goals, windows and the warm-up; cases that differ in nothing else, and
/// have interval and granules in common, have their replays in common.
pub(super) struct Outlooks<'c> {
    /// Every tenant with every number of granules, for every distinct outlook.
    pub(super) jobs: Vec<Job<'c>>,
    /// The jobs of each distinct outlook, and its granules.
    distinct: Vec<(Range<usize>, u32)>,
    /// The outlook of each case, if it asks for one.
    of_case: Vec<Option<usize>>,
}

/// What an outlook depends on.
struct OutlookKey<'c> {
    case: &'c ResolvedCase<'c>,
    interval: Nanos,
    granules: u32,
}

impl OutlookKey<'_> {
    fn is_same(&self, other: &OutlookKey<'_>) -> bool {
        let sizes = |key: &OutlookKey<'_>| (key.interval, key.case.capacity_blocks, key.granules);
        sizes(self) == sizes(other) && self.case.spec.can_share(&other.case.spec, Shared::Outlook)
    }
}

impl<'c> Outlooks<'c> {
    /// What is to be replayed for `cases`. Errors: a partitioner's settings.
    pub(super) fn new(
        workload: &'c Workload<'c>,
        cases: &[&'c ResolvedCase<'c>],
    ) -> Result<Outlooks<'c>, ExperimentError> {
        let mut keys: Vec<OutlookKey<'_>> = Vec::new();
        let mut outlooks = Outlooks { jobs: Vec::new(), distinct: Vec::new(), of_case: Vec::new() };
        for case in cases {
            if !case.needs.partitioner_needs(Need::Future) || case.spec.replay.interval.0 == 0 {
                outlooks.of_case.push(None);
                continue;
            }
            let interval = case.spec.replay.interval;
            let granules = case.partitioner()?.granules().max(1);
            let key = OutlookKey { case, interval, granules };
            let known = keys.iter().position(|other| other.is_same(&key));
            outlooks.of_case.push(Some(known.unwrap_or(keys.len())));
            if known.is_none() {
                let clock = StepClock { interval_ns: interval.0, steps: 1 };
                let first = outlooks.jobs.len();
                outlooks.jobs.extend(jobs(workload, case, granules, clock));
                outlooks.distinct.push((first..outlooks.jobs.len(), granules));
                keys.push(key);
            }
        }
        Ok(outlooks)
    }

    /// The outlook of each case that asks for one; `found` is what the jobs found.
    pub(super) fn tables(&self, found: &[StepSums]) -> Vec<Option<Arc<ResponseOutlook>>> {
        let table = |(range, granules): &(Range<usize>, u32)| {
            let sums = found.get(range.clone()).unwrap_or_default().to_vec();
            Arc::new(table(&ladder(sums, *granules)))
        };
        let tables: Vec<Arc<ResponseOutlook>> = self.distinct.iter().map(table).collect();
        self.of_case
            .iter()
            .map(|index| index.and_then(|index| tables.get(index).cloned()))
            .collect()
    }
}

/// Means by tenant, interval and granules, of sums whose steps are whole intervals.
fn table(ladder: &Ladder) -> ResponseOutlook {
    let mean = |sums: &StepSums, interval: usize| {
        sums.response_ns[interval] as f64 / f64::from(sums.requests[interval].max(1))
    };
    let tenant = |sizes: &Vec<StepSums>| {
        let requests = sizes.first().map_or(&[][..], |sums| &sums.requests);
        let row = |(interval, requests): (usize, &u32)| match requests {
            0 => Vec::new(),
            _ => sizes.iter().map(|sums| mean(sums, interval)).collect(),
        };
        requests.iter().enumerate().map(row).collect()
    };
    ladder.iter().map(tenant).collect()
}
