//! What partitioners that know the future are told, each distinct workload and machine once.
//!
//! For: cases whose partitioner asks for the interval to come. Must never know: what is made of
//! it. A tenant's mean response in an interval, alone with each number of granules, depends neither
//! on the partitioner nor on goals, windows and the warm-up; cases that differ in nothing else, and
//! have interval and granules in common, have their replays in common. Units: nanoseconds.

use super::ladder::{self, Ladder};
use crate::ExperimentError;
use crate::case::ResolvedCase;
use crate::job::Job;
use crate::workload::Workload;
use cachewright_partition::Need;
use cachewright_stack::Shared;
use cachewright_system::event_loop::{StepClock, StepSums};
use cachewright_types::Nanos;
use std::ops::Range;
use std::sync::Arc;

/// Mean responses by tenant, interval and granules; none of an interval without requests.
pub type ResponseOutlook = Vec<Vec<Vec<f64>>>;

/// The replays that outlooks are made of.
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
                outlooks.jobs.extend(ladder::jobs(workload, case, granules, clock));
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
            Arc::new(table(&ladder::ladder(sums, *granules)))
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
