//! Tenants alone on the machine of a case, each distinct machine once.
//!
//! For: slowdowns. Must never know: how a replay works. A tenant alone has the whole cache to
//! itself, so that it depends neither on the partitioner nor on goals, intervals and windows; cases
//! that differ in nothing else have their replays alone in common.

use super::{Job, Workload};
use crate::ExperimentError;
use crate::case::Case;
use crate::spec::{Scheme, Spec};
use cachewright_system::event_loop::Times;
use cachewright_types::{Nanos, TenantId};
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
    pub(super) fn of(
        workload: &Workload<'_>,
        cases: &[&'c Case],
    ) -> Result<Solos<'c>, ExperimentError> {
        let mut machines: Vec<(Spec, u32, Range<usize>)> = Vec::new();
        let mut solos = Solos { jobs: Vec::new(), of_case: Vec::new() };
        for case in cases {
            let Some(stack) = case.spec.stack.as_ref().filter(|stack| stack.alone) else {
                solos.of_case.push(0..0);
                continue;
            };
            let (settings, capacity_blocks) = (settings(case), workload.capacity_blocks(case)?);
            let same = |machine: &&(Spec, u32, Range<usize>)| {
                machine.0 == settings && machine.1 == capacity_blocks
            };
            if let Some((_, _, known)) = machines.iter().find(same) {
                solos.of_case.push(known.clone());
                continue;
            }
            let first = solos.jobs.len();
            solos.jobs.extend((0..case.spec.tenants.len()).map(|at| {
                let only = Some(TenantId(at as u16));
                let (clock, future) = (None, None);
                Job { case, stack, capacity_blocks, only, clock, future }
            }));
            solos.of_case.push(first..solos.jobs.len());
            machines.push((settings, capacity_blocks, first..solos.jobs.len()));
        }
        Ok(solos)
    }

    /// Each tenant alone on the machine of a case, by its place; `times` are those of the jobs.
    pub(super) fn alone(&self, case: usize, times: &[Arc<Times>]) -> Vec<Arc<Times>> {
        let range = self.of_case.get(case).cloned().unwrap_or_default();
        times.get(range).unwrap_or_default().to_vec()
    }
}

/// The settings of a case that a tenant alone depends on.
pub(super) fn settings(case: &Case) -> Spec {
    let mut spec = case.spec.clone();
    spec.name.clear();
    spec.cache.partition = Scheme { name: String::new(), pairs: Vec::new() };
    let replay = &mut spec.replay;
    (replay.interval, replay.hit_time, replay.miss_time) = (Nanos(0), Nanos(0), Nanos(0));
    (replay.windows, replay.profile_share, replay.curves) = (0, 0.0, false);
    replay.throughput_window = Nanos(0);
    spec.cache.model = None;
    for tenant in &mut spec.tenants {
        (tenant.goal, tenant.model, tenant.sensitive) = (None, None, false);
    }
    spec.without_tables()
}
