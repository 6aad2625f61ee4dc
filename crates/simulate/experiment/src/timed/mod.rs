//! Cases on devices: placing their requests, replaying them timed, alone too if asked for.
//!
//! Every replay is a job with a machine of its own, so that the answer does not depend on the
//! number of threads. A tenant alone has the whole cache to itself, so that it depends neither on
//! the partitioner nor on goals, intervals and windows; cases that differ in nothing else have
//! their replays alone in common.

mod answer;
mod curves;
mod machine;

use crate::ExperimentError;
use crate::case::{Case, ResolvedCase};
use crate::job::Job;
use crate::progress::{OnProgress, Progress, Sum};
use crate::record::{RecordedTenants, column};
use crate::spec::{DeviceSpec, Front, StackSpec};
use crate::workload::{Found, PlacedRequests, Replayed, Workload, in_parallel};
pub use answer::{add_costs, add_responses, timing, write_rooms};
use cachewright_cache::{Cache, Quotas};
use cachewright_device::{AnyDevice, DeviceUse};
use cachewright_partition::layout::ChannelMap;
use cachewright_policy::{FutureColumn, FutureSlice};
use cachewright_stack::Shared;
use cachewright_system::event_loop::{StepSums, Times, run_ssd};
use cachewright_system::futures::{service_ratios, service_times};
use cachewright_system::machines::{
    CacheDecider, Layout, Machine, MachineParts, ReplayCache, ReplayDecider, Requests, Slots,
    run_machine,
};
use cachewright_system::{FutureKind, RecordError};
use cachewright_types::Bytes;
use curves::Outlooks;
pub use curves::{Ladder, ResponseOutlook, latency_curves};
use machine::BlockLayout;
use std::ops::Range;
use std::sync::Arc;

/// What one case found on its devices.
pub struct Timed {
    /// All tenants together.
    pub times: Times,
    /// Each tenant alone with the whole cache, if asked for.
    pub alone: Vec<Arc<Times>>,
    /// How the volumes lay on their devices, in a word.
    pub layout: &'static str,
}

/// What decides and what carries out, with the map of the cache device's channels.
type Tiered = (Box<dyn ReplayDecider>, Machine, Option<ChannelMap>);

/// Whether two timed cases find the same requests at the same places.
pub fn shares_places(a: &Case, b: &Case) -> bool {
    let key = |case: &Case| {
        let stack = case.spec.stack.as_ref()?;
        let drive = matches!(stack.front, Front::DataCache(_));
        let own = machine::grouped(case, stack).ok()?.map(|grouped| grouped.ranges);
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

impl<'a> Workload<'a> {
    /// The workload of `case`, which has devices, and of cases that share its places; `requests`
    /// are those recorded with it.
    pub fn on_devices(
        case: &Case,
        recorded: &'a RecordedTenants,
        mut requests: Requests,
        progress: OnProgress<'a>,
    ) -> Result<Workload<'a>, ExperimentError> {
        let recording = &recorded.recording;
        let spec = &case.spec;
        let refuse = |message| case.refuse(message);
        let stack = stack_of(case)?;
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
        let volumes = requests
            .place(recording, shift, volume_layout(stack), &devices, &device_of)
            .map_err(|error| refuse(too_small(stack, &error)))?;
        let mut workload = Workload::new(recording, progress);
        workload.placed = Some(PlacedRequests { requests, volumes });
        Ok(workload)
    }
}

/// The devices of a case. Errors: it has none.
fn stack_of(case: &Case) -> Result<&StackSpec, ExperimentError> {
    let stack = case.spec.stack.as_ref();
    stack.ok_or_else(|| case.refuse("found no `[device.cache]` table, expected one"))
}

/// The bytes of each device that tenants may use, and each tenant's device.
fn places(case: &Case, stack: &StackSpec) -> Result<(Vec<Range<u64>>, Vec<usize>), String> {
    let tenants = case.spec.tenants.len();
    if let Some(grouped) = machine::grouped(case, stack)? {
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

impl Workload<'_> {
    /// Replays cases on devices that share these places.
    pub(crate) fn replay_timed<T: Send>(
        &self,
        cases: &[&ResolvedCase<'_>],
        then: impl Fn(usize, Found) -> Result<T, ExperimentError> + Sync,
    ) -> Result<Vec<T>, ExperimentError> {
        let (solos, outlooks) = (Solos::new(self, cases), Outlooks::new(self, cases)?);
        let sum = self.sum_of_jobs(solos.jobs.len() + outlooks.jobs.len() + cases.len());
        let outlook = outlooks.tables(&self.climb(&outlooks.jobs, &sum)?);
        let whole = cases.iter().zip(outlook);
        let jobs: Vec<Job<'_>> =
            whole.map(|(case, future)| Job { future, ..Job::new(self, case) }).collect();
        let alone = self.run_each(&solos.jobs, &sum, |_, times| Ok(Arc::new(times)))?;
        self.run_each(&jobs, &sum, |index, times| {
            let alone = solos.alone(index, &alone);
            let layout = self.placed()?.volumes.layout.word();
            let replayed = Replayed::Timed(Box::new(Timed { times, alone, layout }));
            then(index, Found { replayed, drive: None })
        })
    }

    /// The requests on their devices. Errors: there are none.
    pub(crate) fn placed(&self) -> Result<&PlacedRequests, ExperimentError> {
        let none = || ExperimentError::Option("found no devices, expected some".to_owned());
        self.placed.as_ref().ok_or_else(none)
    }

    /// Runs jobs in parallel; answers in their order.
    fn run(&self, jobs: &[Job<'_>]) -> Result<Vec<Times>, ExperimentError> {
        self.run_each(jobs, &self.sum_of_jobs(jobs.len()), |_, times| Ok(times))
    }

    /// Runs jobs with a clock in parallel; the sums of each.
    fn climb(&self, jobs: &[Job<'_>], sum: &Sum<'_>) -> Result<Vec<StepSums>, ExperimentError> {
        let found = self.run_each(jobs, sum, |_, times| Ok(times.sums))?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The progress of so many replays.
    fn sum_of_jobs(&self, jobs: usize) -> Sum<'_> {
        let requests = self.placed.as_ref().map_or(0, |placed| placed.requests.len());
        self.sum("replaying on devices", requests * jobs)
    }

    /// Runs jobs in parallel, `then` at the end of each; what it returns in order of jobs.
    fn run_each<T: Send>(
        &self,
        jobs: &[Job<'_>],
        sum: &Sum<'_>,
        then: impl Fn(usize, Times) -> Result<T, ExperimentError> + Sync,
    ) -> Result<Vec<T>, ExperimentError> {
        let columns = Columns::new(self, jobs)?;
        in_parallel(jobs, |index, job| {
            let times = job.run_timed(columns.of_job(index), &mut sum.begun_part()?)?;
            then(index, times)
        })
    }
}

impl Job<'_> {
    /// The hit ratio of a tenant in this replay on its devices.
    pub(crate) fn hit_ratio_on_devices(&self, place: usize) -> Result<f64, ExperimentError> {
        let columns = Columns::new(self.workload, std::slice::from_ref(self))?;
        let times = self.run_timed(columns.of_job(0), &mut |_| true)?;
        Ok(times.cache.counts[place].hit_ratio())
    }

    /// Runs the job on its devices.
    fn run_timed(
        &self,
        futures: FutureSlice<'_>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Times, ExperimentError> {
        let (case, stack) = (self.case, stack_of(self.case)?);
        let placed = self.workload.placed()?;
        let replay = self.replay(&placed.requests, &placed.volumes.tenants, futures);
        let wanted = self.wanted();
        let found = match &stack.front {
            Front::Device(cache) => {
                let (decider, machine, map) = self.tiered(stack, cache)?;
                let found = run_machine(&replay, machine, decider, wanted, progress);
                found.map(|mut times| {
                    times.channels.layout = times.channels.layout.or(map);
                    times
                })
            }
            Front::DataCache(axes) => {
                let (drive, control, map) = self.drive(stack, axes)?;
                let page_shift = case.spec.cache.block.0.trailing_zeros();
                let found = run_ssd(&replay, drive, page_shift, control, wanted, progress);
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
        match full_drive(stack, &times) {
            Some(message) => Err(case.refuse(message)),
            None => machine::check(times),
        }
    }

    /// The idle machine of the job.
    fn tiered(&self, stack: &StackSpec, cache: &DeviceSpec) -> Result<Tiered, ExperimentError> {
        let refuse = |message| self.case.refuse(message);
        let device = cache.build().map_err(refuse)?;
        let (control, quotas, slots) = match self.only {
            Some(_) => {
                let slots = machine::slots(self, stack, &device.exposed(), None).map_err(refuse)?;
                (None, Quotas::Shared(self.capacity_blocks), slots)
            }
            None => {
                let mut control = self.control()?;
                control.set_absent(machine::absent(self.case));
                let mut quotas = control.first();
                let divided = Some((&mut control, &mut quotas));
                let slots = machine::slots(self, stack, &device.exposed(), divided);
                (Some(control), quotas, slots.map_err(refuse)?)
            }
        };
        let BlockLayout { slots, map, tenancy } = slots;
        let spec = &self.case.spec;
        let cache = Cache::new(self.boxed(&quotas)?, spec.cache.block.0.trailing_zeros());
        let decider = CacheDecider::new(cache, spec.tenants.len(), control).with_tenancy(tenancy);
        Ok((Box::new(ReplayCache::new(decider)), self.tiered_machine(stack, device, slots)?, map))
    }

    fn tiered_machine(
        &self,
        stack: &StackSpec,
        cache: AnyDevice,
        slots: Slots,
    ) -> Result<Machine, ExperimentError> {
        let refuse = |message| self.case.refuse(message);
        let spec = &self.case.spec;
        let backing_of = backing_of(stack, spec.tenants.len());
        let found = cache.capacity();
        let mut devices = vec![cache];
        for number in 1..=backing_of.iter().max().copied().unwrap_or(0) {
            let device = stack.backing.build().map_err(refuse)?;
            devices.push(self.stored(stack, number, &backing_of, device)?);
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

/// The replays alone of some cases.
struct Solos<'c> {
    /// Every tenant on every distinct machine of the cases that ask for it.
    jobs: Vec<Job<'c>>,
    /// The jobs of each case; none if it does not ask.
    of_case: Vec<Range<usize>>,
}

impl<'c> Solos<'c> {
    /// What is to be replayed for `cases`.
    fn new(workload: &'c Workload<'c>, cases: &[&'c ResolvedCase<'c>]) -> Solos<'c> {
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
    fn alone(&self, case: usize, times: &[Arc<Times>]) -> Vec<Arc<Times>> {
        let range = self.of_case.get(case).cloned().unwrap_or_default();
        times.get(range).unwrap_or_default().to_vec()
    }
}

/// What goes with each access of some jobs, in 4 bytes; each distinct column is found once.
struct Columns {
    found: Vec<FutureColumn>,
    /// The column of each job.
    of_job: Vec<usize>,
}

impl Columns {
    /// What is told in each job. Errors: a future that the replay does not have, too many accesses.
    fn new(workload: &Workload<'_>, jobs: &[Job<'_>]) -> Result<Columns, ExperimentError> {
        let mut keys: Vec<(FutureKind, Option<&StackSpec>)> = Vec::new();
        let mut columns = Columns { found: Vec::new(), of_job: Vec::new() };
        for job in jobs {
            let foresight = job.case.needs.future;
            let weighs = foresight == FutureKind::Benefit;
            let key = (foresight, job.case.spec.stack.as_ref().filter(|_| weighs));
            let known = keys.iter().position(|known| *known == key);
            columns.of_job.push(known.unwrap_or(keys.len()));
            if known.is_none() {
                keys.push(key);
                let ratios = if weighs { workload.ratios(job.case)? } else { Vec::new() };
                let found = column(job.case, foresight, workload.recording, &ratios)?;
                columns.found.push(found);
            }
        }
        Ok(columns)
    }

    /// What goes with each access of a job's workload.
    fn of_job(&self, job: usize) -> FutureSlice<'_> {
        self.found[self.of_job[job]].as_slice()
    }
}

impl Workload<'_> {
    /// How often longer each request of the recording takes on its backing device than on the
    /// cache device (RC-RNN, equation 3). Both devices serve the whole trace alone, one request at
    /// a time; the log of a `flash-store` is left out, its requests go to the device below. Errors:
    /// a device that cannot be built, cancelled.
    pub(crate) fn ratios(&self, case: &Case) -> Result<Vec<f32>, ExperimentError> {
        let Some(stack) = &case.spec.stack else { return Ok(Vec::new()) };
        let Front::Device(cache) = &stack.front else { return Ok(Vec::new()) };
        let refuse = |message| case.refuse(message);
        let tenants = self.recording.totals.len();
        let backing = backing_of(stack, tenants).into_iter().map(|number| number - 1);
        let backing: Vec<usize> = backing.collect();
        let count = backing.iter().max().map_or(0, |last| last + 1);
        let disks: Result<Vec<AnyDevice>, String> =
            (0..count).map(|_| stack.backing.build()).collect();
        let slow = self.served(disks.map_err(refuse)?, &backing)?;
        let fast = self.served(vec![cache.build().map_err(refuse)?], &vec![0; tenants])?;
        Ok(service_ratios(&self.placed()?.requests, &slow, &fast))
    }

    fn served(
        &self,
        devices: Vec<AnyDevice>,
        device_of: &[usize],
    ) -> Result<Vec<u64>, ExperimentError> {
        let requests = &self.placed()?.requests;
        let total = Some(requests.len() as u64);
        let mut tell =
            |done| (self.progress)(Progress { stage: "measuring service times", done, total });
        service_times(requests, devices, device_of, &mut tell).map_err(|error| match error {
            RecordError::Cancelled => ExperimentError::Cancelled,
            other => other.into(),
        })
    }
}
