//! Tenants alone on the machine of a case, each distinct machine once.
//!
//! For: slowdowns. Must never know: how a replay works. A tenant alone has the whole cache to
//! itself, so that it depends neither on the partitioner nor on goals, intervals and windows; cases
//! that differ in nothing else have their replays alone in common.

use crate::case::ResolvedCase;
use crate::job::Job;
use crate::workload::Workload;
use cachewright_stack::Shared;
use cachewright_system::event_loop::Times;
use std::ops::Range;
use std::sync::Arc;

/// The replays alone of some cases.
pub(super) struct Solos<'c> {
    /// Every tenant on every distinct machine of the cases that ask for it.
    pub(super) jobs: Vec<Job<'c>>,
    /// The jobs of each case; none if it does not ask.
    of_case: Vec<Range<usize>>,
}

impl<'c> Solos<'c> {
    /// What is to be replayed for `cases`.
    pub(super) fn new(workload: &'c Workload<'c>, cases: &[&'c ResolvedCase<'c>]) -> Solos<'c> {
        let mut machines: Vec<(&ResolvedCase<'_>, Range<usize>)> = Vec::new();
        let mut solos = Solos { jobs: Vec::new(), of_case: Vec::new() };
        for case in cases {
            if !case.spec.stack.as_ref().is_some_and(|stack| stack.alone) {
                solos.of_case.push(0..0);
                continue;
            }
            let same = |(other, _): &&(&ResolvedCase<'_>, Range<usize>)| {
                other.capacity_blocks == case.capacity_blocks
                    && other.spec.can_share(&case.spec, Shared::Alone)
            };
            if let Some((_, known)) = machines.iter().find(same) {
                solos.of_case.push(known.clone());
                continue;
            }
            let first = solos.jobs.len();
            let tenants = 0..case.spec.tenants.len();
            solos.jobs.extend(tenants.map(|tenant| Job::alone(workload, case, tenant)));
            solos.of_case.push(first..solos.jobs.len());
            machines.push((case, first..solos.jobs.len()));
        }
        solos
    }

    /// Each tenant alone on the machine of a case, by its place; `times` are those of the jobs.
    pub(super) fn alone(&self, case: usize, times: &[Arc<Times>]) -> Vec<Arc<Times>> {
        let range = self.of_case.get(case).cloned().unwrap_or_default();
        times.get(range).unwrap_or_default().to_vec()
    }
}
