//! Tenants alone on the machine of a case, each distinct machine once.
//!
//! For: slowdowns. Must never know: how a replay works. A tenant alone has the whole cache to
//! itself, so that it depends neither on the partitioner nor on goals, intervals and windows; cases
//! that differ in nothing else have their replays alone in common.

use super::{Job, TimedWorkload};
use crate::ExperimentError;
use crate::case::Case;
use cachewright_stack::Shared;
use cachewright_system::event_loop::Times;
use cachewright_types::TenantId;
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
    /// What is to be replayed for `cases`. Errors: a capacity that cannot be.
    pub(super) fn new(
        workload: &TimedWorkload<'_>,
        cases: &[&'c Case],
    ) -> Result<Solos<'c>, ExperimentError> {
        let mut machines: Vec<(&Case, u32, Range<usize>)> = Vec::new();
        let mut solos = Solos { jobs: Vec::new(), of_case: Vec::new() };
        for case in cases {
            let Some(stack) = case.spec.stack.as_ref().filter(|stack| stack.alone) else {
                solos.of_case.push(0..0);
                continue;
            };
            let capacity_blocks = workload.capacity_blocks(case)?;
            let same = |(other, blocks, _): &&(&Case, u32, Range<usize>)| {
                *blocks == capacity_blocks && other.spec.can_share(&case.spec, Shared::Alone)
            };
            if let Some((_, _, known)) = machines.iter().find(same) {
                solos.of_case.push(known.clone());
                continue;
            }
            let first = solos.jobs.len();
            solos.jobs.extend((0..case.spec.tenants.len()).map(|index| {
                let only = Some(TenantId(index as u16));
                let (clock, future) = (None, None);
                Job { case, stack, capacity_blocks, only, clock, future }
            }));
            solos.of_case.push(first..solos.jobs.len());
            machines.push((case, capacity_blocks, first..solos.jobs.len()));
        }
        Ok(solos)
    }

    /// Each tenant alone on the machine of a case, by its place; `times` are those of the jobs.
    pub(super) fn alone(&self, case: usize, times: &[Arc<Times>]) -> Vec<Arc<Times>> {
        let range = self.of_case.get(case).cloned().unwrap_or_default();
        times.get(range).unwrap_or_default().to_vec()
    }
}
