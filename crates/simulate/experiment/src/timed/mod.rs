//! Cases on devices: placing their requests, replaying them timed, alone too if asked for.
//!
//! For: what a stack file with `[device]` tables adds to a run. Must never know: how results are
//! drawn. Every replay is a job of its own with its own machine, so that the answer does not depend
//! on the number of threads.

mod alone;
mod answer;
mod channels;
mod columns;
mod drive;
mod energy;
mod flash;
mod ladder;
mod latency;
mod layout;
mod listing;
mod outlook;
pub mod regions;
mod service;
mod space;
mod store;
mod tenancy;

pub use answer::{add_responses, timing};
pub use ladder::Ladder;
pub use latency::latency_curves;
pub use listing::{devices, setting};

use alone::Solos;
use columns::Columns;
use layout::BlockLayout;
use outlook::{Outlooks, ResponseOutlook};

use crate::ExperimentError;
use crate::case::Case;
use crate::lanes::{LanePlan, wanted};
use crate::pace::pace;
use crate::profiles::Profiles;
use crate::progress::{OnProgress, Sum};
use crate::record::RecordedTenants;
use crate::spec::{DeviceSpec, Front, StackSpec};
use cachewright_cache::{Cache, Quotas};
use cachewright_device::{AnyDevice, DeviceUse};
use cachewright_partition::layout::ChannelMap;
use cachewright_policy::FutureSlice;
use cachewright_system::event_loop::{Replay, StepClock, StepSums, Times, run_ssd};
use cachewright_system::machines::{
    CacheDecider, Layout, Machine, MachineParts, PlacedVolumes, ReplayCache, ReplayDecider,
    Requests, Slots, run_machine,
};
use cachewright_system::profile::Machined;
use cachewright_system::{Control, RecordError, Recording, SignalNeeds};
use cachewright_types::{Bytes, TenantId};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// What one case found on its devices.
pub struct Timed {
    /// All tenants together.
    pub times: Times,
    /// Each tenant alone with the whole cache, if asked for.
    pub alone: Vec<Arc<Times>>,
    /// Where the requests lay.
    pub placed: PlacedVolumes,
}

/// The workload of some cases, placed on their backing devices.
pub struct TimedWorkload<'a> {
    recording: &'a Recording,
    profiles: Profiles,
    requests: Requests,
    placed: PlacedVolumes,
    progress: OnProgress<'a>,
}

/// One replay.
struct Job<'a> {
    case: &'a Case,
    stack: &'a StackSpec,
    capacity_blocks: u32,
    /// This tenant alone.
    only: Option<TenantId>,
    /// Sums responses and hits by step.
    clock: Option<StepClock>,
    /// What its partitioner knows of the future.
    future: Option<Arc<ResponseOutlook>>,
}

/// What decides and what carries out, with the map of the cache device's channels.
type Tiered = (Box<dyn ReplayDecider>, Machine, Option<ChannelMap>);

/// Whether two timed cases find the same requests at the same places.
pub fn shares_places(a: &Case, b: &Case) -> bool {
    let key = |case: &Case| {
        let stack = case.spec.stack.as_ref()?;
        let drive = matches!(stack.front, Front::DataCache(_));
        let own = layout::grouped(case, stack).ok()?.map(|grouped| grouped.ranges);
        Some((stack.capacity().ok(), drive, own, stack.per_tenant, volume_layout(stack)))
    };
    key(a) == key(b)
}

/// How volumes are laid out: on a log, where distances mean nothing, without gaps unless asked for.
fn volume_layout(stack: &StackSpec) -> Layout {
    match (stack.machine.layout, &stack.store) {
        (Layout::Auto, Some(_)) => Layout::Dense,
        (layout, _) => layout,
    }
}

/// The number of each tenant's backing device, after the cache device.
fn backing_of(stack: &StackSpec, tenants: usize) -> Vec<usize> {
    (0..tenants).map(|tenant| 1 + if stack.per_tenant { tenant } else { 0 }).collect()
}

/// Most backing devices.
const DEVICES: usize = 4000;

/// Places the requests of `case`, which has devices; `requests` are those recorded with it.
pub fn workload<'a>(
    case: &Case,
    recorded: &'a RecordedTenants,
    mut requests: Requests,
    progress: OnProgress<'a>,
) -> Result<TimedWorkload<'a>, ExperimentError> {
    let recording = &recorded.recording;
    let spec = &case.spec;
    let refuse = |message| case.refuse(message);
    let Some(stack) = &spec.stack else {
        return Err(refuse("found no `[device.cache]` table, expected one".to_owned()));
    };
    if stack.per_tenant && spec.tenants.len() > DEVICES {
        let found = spec.tenants.len();
        let expected = format!("expected at most {DEVICES}");
        return Err(refuse(format!("`device.backing.per_tenant`: found {found}, {expected}")));
    }
    let timeless = recorded.tenants.iter().position(|tenant| !tenant.has_times);
    if let Some(tenant) = timeless.filter(|_| !spec.replay.closed()) {
        let expected = "expected times in every trace, or `replay.loop = \"closed\"`";
        let number = tenant + 1;
        return Err(refuse(format!("`tenant[{number}].trace`: found no times, {expected}")));
    }
    let named = |tenant| requests.is_empty() || requests.names_processes(tenant);
    case.check_pauses(named)?;
    let (devices, device_of) = places(case, stack).map_err(refuse)?;
    let shift = spec.cache.block.0.trailing_zeros();
    let placed = requests
        .place(recording, shift, volume_layout(stack), &devices, &device_of)
        .map_err(|error| refuse(too_small(stack, &error)))?;
    let profiles = Profiles::default();
    Ok(TimedWorkload { recording, profiles, requests, placed, progress })
}

/// The bytes of each device that tenants may use, and each tenant's device.
fn places(case: &Case, stack: &StackSpec) -> Result<(Vec<Range<u64>>, Vec<usize>), String> {
    let tenants = case.spec.tenants.len();
    if let Some(grouped) = layout::grouped(case, stack)? {
        return Ok((grouped.ranges, (0..tenants).collect()));
    }
    let device_of: Vec<usize> =
        backing_of(stack, tenants).iter().map(|number| number - 1).collect();
    let count = device_of.iter().max().map_or(0, |last| last + 1);
    // A store is as large as its volumes; its segments must fit on the device.
    let capacity = match &stack.store {
        Some(_) => u64::MAX,
        None => stack.capacity()?.0,
    };
    Ok((vec![0..capacity; count], device_of))
}

fn too_small(stack: &StackSpec, error: &cachewright_system::machines::TooSmall) -> String {
    let hint = if error.compact { "" } else { "; `machine.layout = \"compact\"` may need less" };
    let what = if error.compact { "touched by" } else { "reached by" };
    let key = match stack.front {
        Front::Device(_) => "device.backing",
        Front::DataCache(_) => "device.ssd",
    };
    format!(
        "`{key}`: found a capacity of {}, expected at least {} {what} its tenants{hint}",
        error.capacity, error.needed
    )
}

impl TimedWorkload<'_> {
    /// Replays cases that share these places, in parallel; `then` is given each case's place and
    /// what it found as soon as it is done. Returns what `then` made of them, in order of cases.
    pub fn replay<T: Send>(
        &self,
        cases: &[&Case],
        then: impl Fn(usize, Timed) -> Result<T, ExperimentError> + Sync,
    ) -> Result<Vec<T>, ExperimentError> {
        let (solos, outlooks) = (Solos::new(self, cases)?, Outlooks::new(self, cases)?);
        let sum = self.sum(solos.jobs.len() + outlooks.jobs.len() + cases.len());
        let outlook = outlooks.tables(&self.climb(&outlooks.jobs, &sum)?);
        let mut jobs = Vec::new();
        for (case, future) in cases.iter().zip(outlook) {
            let Some(stack) = &case.spec.stack else { continue };
            let capacity_blocks = self.capacity_blocks(case)?;
            let (only, clock) = (None, None);
            jobs.push(Job { case, stack, capacity_blocks, only, clock, future });
        }
        let alone = self.run_each(&solos.jobs, &sum, |_, times| Ok(Arc::new(times)))?;
        self.run_each(&jobs, &sum, |index, times| {
            let alone = solos.alone(index, &alone);
            then(index, Timed { times, alone, placed: self.placed.clone() })
        })
    }

    fn capacity_blocks(&self, case: &Case) -> Result<u32, ExperimentError> {
        case.capacity_blocks(self.recording.distinct)
    }

    /// Runs jobs in parallel; answers in their order.
    fn run(&self, jobs: &[Job<'_>]) -> Result<Vec<Times>, ExperimentError> {
        self.run_each(jobs, &self.sum(jobs.len()), |_, times| Ok(times))
    }

    /// Runs jobs with a clock in parallel; the sums of each.
    fn climb(&self, jobs: &[Job<'_>], sum: &Sum<'_>) -> Result<Vec<StepSums>, ExperimentError> {
        let found = self.run_each(jobs, sum, |_, times| Ok(times.sums))?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The progress of so many replays.
    fn sum(&self, jobs: usize) -> Sum<'_> {
        Sum::new("replaying on devices", (self.requests.len() * jobs) as u64, self.progress)
    }

    /// Runs jobs in parallel, `then` at the end of each; what it returns in order of jobs.
    fn run_each<T: Send>(
        &self,
        jobs: &[Job<'_>],
        sum: &Sum<'_>,
        then: impl Fn(usize, Times) -> Result<T, ExperimentError> + Sync,
    ) -> Result<Vec<T>, ExperimentError> {
        let columns = Columns::new(self, jobs)?;
        let replayed = jobs.par_iter().enumerate().map(|(index, job)| {
            let times = self.job(job, columns.of_job(index), &mut sum.part())?;
            then(index, times)
        });
        // Collected in order first, so that the first job at fault is named on any schedule.
        let replayed: Vec<Result<T, ExperimentError>> = replayed.collect();
        replayed.into_iter().collect()
    }

    /// What builds the cache of a case.
    pub(crate) fn plan<'c>(&'c self, case: &'c Case, capacity_blocks: u32) -> LanePlan<'c> {
        let machine = case.spec.stack.as_ref().map(|stack| Machined {
            recording: self.recording,
            requests: &self.requests,
            extents: &self.placed.tenants,
            settings: &stack.machine,
            block_shift: case.spec.cache.block.0.trailing_zeros(),
        });
        let (recording, profiles) = (self.recording, &self.profiles);
        LanePlan { case, recording, capacity_blocks, profiles, machine }
    }

    fn job(
        &self,
        job: &Job<'_>,
        futures: FutureSlice<'_>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Times, ExperimentError> {
        let case = job.case;
        let capacity_blocks = job.capacity_blocks;
        let plan = self.plan(case, capacity_blocks);
        let alone = job.only.is_some();
        let wanted = if alone { SignalNeeds::default() } else { wanted(case, capacity_blocks) };
        let replay = Replay {
            recording: self.recording,
            requests: &self.requests,
            extents: &self.placed.tenants,
            futures,
            pace: pace(case),
            only: job.only,
            interval_ns: match alone {
                true => 0,
                false => case.interval_ns(self.recording.span_ns()),
            },
            windows: if job.clock.is_some() { 0 } else { case.spec.replay.windows },
            warmup_ns: case.warmup_ns(self.recording),
            throughput_ns: if alone { 0 } else { case.spec.replay.throughput_window.0 },
            clock: job.clock,
            capacity_blocks,
        };
        let found = match &job.stack.front {
            Front::Device(cache) => {
                let (decider, machine, map) = self.tiered(job, &plan, cache)?;
                let found = run_machine(&replay, machine, decider, wanted, progress);
                found.map(|mut times| {
                    times.channels.layout = times.channels.layout.or(map);
                    times
                })
            }
            Front::DataCache(axes) => {
                let (drive, control, map) = self.drive(job, &plan, axes)?;
                let page_shift = case.spec.cache.block.0.trailing_zeros();
                let found = run_ssd(&replay, (drive, page_shift), control, wanted, progress);
                found.map(|mut times| {
                    times.channels.layout = map;
                    times
                })
            }
        };
        let times = found.map_err(|error| match error {
            RecordError::Cancelled => ExperimentError::Cancelled,
            other => other.into(),
        })?;
        match full_drive(job.stack, &times) {
            Some(message) => Err(case.refuse(message)),
            None => store::check(times),
        }
    }

    /// The control loop of a job, with what it knows of the future.
    fn control(&self, job: &Job<'_>, plan: &LanePlan<'_>) -> Result<Control, ExperimentError> {
        let mut control = plan.control()?;
        if let Some(outlook) = &job.future {
            control.set_futures(outlook.to_vec());
        }
        Ok(control)
    }

    /// The idle machine of a job.
    fn tiered(
        &self,
        job: &Job<'_>,
        plan: &LanePlan<'_>,
        cache: &DeviceSpec,
    ) -> Result<Tiered, ExperimentError> {
        let refuse = |message| job.case.refuse(message);
        let device = cache.build().map_err(refuse)?;
        let (control, quotas, slots) = match job.only {
            Some(_) => {
                let slots = layout::slots(job, &device.exposed(), None).map_err(refuse)?;
                (None, Quotas::Shared(job.capacity_blocks), slots)
            }
            None => {
                let mut control = self.control(job, plan)?;
                control.set_absent(layout::absent(job.case));
                let mut quotas = control.first();
                let divided = Some((&mut control, &mut quotas));
                let slots = layout::slots(job, &device.exposed(), divided).map_err(refuse)?;
                (Some(control), quotas, slots)
            }
        };
        let BlockLayout { slots, map, tenancy } = slots;
        let spec = &job.case.spec;
        let cache = Cache::new(plan.boxed(&quotas)?, spec.cache.block.0.trailing_zeros());
        let decider = CacheDecider::new(cache, spec.tenants.len(), control).with_tenancy(tenancy);
        Ok((Box::new(ReplayCache::new(decider)), self.machine(job, device, slots)?, map))
    }

    fn machine(
        &self,
        job: &Job<'_>,
        cache: AnyDevice,
        slots: Slots,
    ) -> Result<Machine, ExperimentError> {
        let refuse = |message| job.case.refuse(message);
        let (stack, spec) = (job.stack, &job.case.spec);
        let backing_of = backing_of(stack, spec.tenants.len());
        let found = cache.capacity();
        let mut devices = vec![cache];
        for number in 1..=backing_of.iter().max().copied().unwrap_or(0) {
            let device = stack.backing.build().map_err(refuse)?;
            devices.push(self.stored(job, (number, &backing_of), device)?);
        }
        Machine::new(MachineParts {
            settings: stack.machine.clone(),
            block_shift: spec.cache.block.0.trailing_zeros(),
            slots,
            devices,
            backing_of,
        })
        .map_err(|needed| refuse(small_cache(found, needed)))
    }
}

/// The refusal of a replay in which a drive could not carry out a write: its times are too short.
fn full_drive(stack: &StackSpec, times: &Times) -> Option<String> {
    times.devices.iter().enumerate().find_map(|(number, device)| {
        let fault = |leaf: &DeviceUse| leaf.report.flash().and_then(|flash| flash.fault.clone());
        let fault = device.leaves().into_iter().find_map(fault)?;
        let key = match &stack.front {
            Front::Device(_) if number == 0 => "device.cache",
            Front::Device(_) => "device.backing",
            Front::DataCache(_) => "device.ssd",
        };
        let hint = "raise `over_provisioning`, or lower `occupancy`";
        Some(format!("`{key}`: found a drive that writes cannot go on with ({fault}); {hint}"))
    })
}

fn small_cache(found: Bytes, needed: Bytes) -> String {
    format!(
        "`device.cache`: found a capacity of {found}, expected at least {needed} for \
         `cache.capacity` and `machine.spare_blocks`"
    )
}
