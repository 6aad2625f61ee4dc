//! One replay: of a whole case, of one tenant alone, or with another size of the cache.
//!
//! Runs in open and closed loops and on devices, tenants alone, curves of response times and
//! ladders of sizes are all made of jobs. Here a job builds its cache and its control loop: the
//! name of a policy becomes its type once per job.

use crate::case::{Case, ResolvedCase};
use crate::spec::TenantSpec;
use crate::timed::ResponseOutlook;
use crate::workload::Workload;
use crate::{ExperimentError, profiles};
use cachewright_cache::{Engine, Quotas};
use cachewright_partition::{Need, Partitioner, TenantConstants, TenantGoal};
use cachewright_policy::{FutureSlice, Policy, PolicyVisitor, Registered, Shadowed};
use cachewright_stack::Goal;
use cachewright_stack::tables::{ExplainedMisses, Lengths, Shadow};
use cachewright_system::event_loop::{
    ConstantRun, Durations, Loop, NEVER_NS, Noise, Replay, StepClock, run_constant,
};
use cachewright_system::profile::{FirstAccesses, Machined, PolicyInputs};
use cachewright_system::{CacheObserver, Control, EngineLane, Lane, Recording, SignalNeeds};
use cachewright_types::TenantId;
use cachewright_types::declare::Nested;
use std::ops::Range;
use std::sync::Arc;

/// One replay of a case.
#[derive(Clone)]
pub struct Job<'a> {
    /// What is replayed.
    pub workload: &'a Workload<'a>,
    /// The case.
    pub case: &'a ResolvedCase<'a>,
    /// The cache: the case's own, but in curves and ladders of sizes.
    pub capacity_blocks: u32,
    /// This tenant alone, with the whole cache.
    pub only: Option<TenantId>,
    /// Sums responses and hits by step.
    pub clock: Option<StepClock>,
    /// What its partitioner knows of the future.
    pub future: Option<Arc<ResponseOutlook>>,
}

impl<'a> Job<'a> {
    /// The replay of a whole case.
    pub fn new(workload: &'a Workload<'a>, case: &'a ResolvedCase<'a>) -> Job<'a> {
        let capacity_blocks = case.capacity_blocks;
        Job { workload, case, capacity_blocks, only: None, clock: None, future: None }
    }

    /// The replay of one tenant of a case alone.
    pub fn alone(workload: &'a Workload<'a>, case: &'a ResolvedCase<'a>, tenant: usize) -> Job<'a> {
        Job { only: Some(TenantId(tenant as u16)), ..Job::new(workload, case) }
    }

    /// Its requests on their devices, where it has some.
    pub fn machine(&self) -> Option<Machined<'_>> {
        let (stack, placed) = (self.case.spec.stack.as_ref()?, self.workload.placed.as_ref()?);
        Some(Machined {
            recording: self.workload.recording,
            requests: &placed.requests,
            extents: &placed.volumes.tenants,
            settings: &stack.machine,
            block_shift: self.case.spec.cache.block.0.trailing_zeros(),
        })
    }

    /// The control loop of the whole case.
    pub fn control(&self) -> Result<Control, ExperimentError> {
        let partitioner: Box<dyn Partitioner> = match self.case.recorded(self.capacity_blocks)? {
            Some(recorded) => Box::new(recorded),
            None => self.case.partitioner()?,
        };
        let tenants = self.tenants(&*partitioner)?;
        let control = Control::new(partitioner, tenants, self.capacity_blocks);
        let mut control = if self.has_shadows() { control.with_shadows() } else { control };
        if let Some(outlook) = &self.future {
            control.set_futures(outlook.to_vec());
        }
        Ok(control)
    }

    /// The tenants' facts for the partitioner: goals and profiles if it declares the need, and
    /// curves of heads if it divides by those.
    fn tenants(
        &self,
        partitioner: &dyn Partitioner,
    ) -> Result<Vec<TenantConstants>, ExperimentError> {
        self.case.check_curves().map_err(|error| self.case.refuse(error))?;
        let has_goals = self.case.needs.partitioner_needs(Need::Goal);
        let (reads, share) = (partitioner.reads_profiles(), self.case.spec.replay.profile_share);
        let profiled = |place| reads && (share > 0.0 || self.history(place).is_some());
        let kind = partitioner.curves();
        let curve = |place: usize| {
            let found = self.workload.profiles.curve(self, place, kind.own_policy);
            found.map_err(|error| self.case.refuse(format!("`cache.policy`: {error}")))
        };
        let tenant = |(place, &hit_ratio): (usize, &Option<f64>)| {
            let spec = &self.case.spec.tenants[place];
            let (weight, sensitive) = (spec.weight, spec.sensitive);
            let on_devices = reads && partitioner.profiles_on_devices();
            let profile = match profiled(place) || on_devices {
                true => self.profile(place, on_devices)?,
                false => Vec::new(),
            };
            let response = spec.goal.and_then(Goal::response);
            let goal = has_goals.then_some(TenantGoal { hit_ratio, response, profile });
            let head_curve = kind.ahead.then(|| curve(place)).transpose()?;
            let schedule = spec.schedule.clone();
            Ok(TenantConstants { weight, schedule, sensitive, goal, head_curve })
        };
        self.case.goals.iter().enumerate().map(tenant).collect()
    }

    /// What a tenant did before, if that is known.
    pub fn history(&self, place: usize) -> Option<&Recording> {
        self.case.histories.get(place).and_then(Option::as_ref)
    }

    /// The first `share` of a tenant's accesses, with what the machine reads ahead of them;
    /// `wants` says what the policy must know ahead.
    pub fn head(&self, tenant: TenantId, share: f64, wants: PolicyInputs) -> FirstAccesses {
        let recording = self.workload.recording;
        let machine = self.machine().zip(recording.totals.get(tenant.index()));
        machine
            .and_then(|(machine, totals)| {
                FirstAccesses::on_machine(&machine, tenant, totals, share, wants)
            })
            .unwrap_or_else(|| FirstAccesses::recorded(recording, tenant, share, wants))
    }

    /// Hit ratios of a tenant's head, alone under the policy, at 1 block, half the cache and all;
    /// those of the whole tenant if its devices count.
    fn profile(&self, place: usize, on_devices: bool) -> Result<Vec<(u32, f64)>, ExperimentError> {
        let sizes = TenantGoal::profile_sizes(self.capacity_blocks);
        if on_devices {
            return self.workload.profiles.on_devices(self, place, &sizes);
        }
        let wants = self.case.needs.inputs();
        self.workload.profiles.measured(self, place, wants, &sizes)
    }

    /// An empty cache of the case's policy, which is not known by type.
    pub fn boxed(&self, quotas: &Quotas) -> Result<Engine<Box<dyn Policy>>, ExperimentError> {
        let spec = &self.case.spec;
        let new = spec.policy_maker().map_err(|error| self.case.refuse(error))?;
        let make = |pool: usize, capacity| {
            let seed = spec.pool_seed(pool);
            let policy = self.case.caching.with_models(new(capacity, seed));
            if !self.has_shadows() {
                return policy;
            }
            let other = self.case.caching.with_models(new(0, seed.derive("shadow")));
            Box::new(Shadowed::new(other, policy))
        };
        let engine = Engine::new(spec.tenants.len(), quotas, spec.cache.write, make);
        Ok(self.explained(engine.shrinking(spec.cache.shrink)))
    }

    /// The same engine, which finds the causes of its misses if that is asked for.
    fn explained<P: Policy>(&self, mut engine: Engine<P>) -> Engine<P> {
        let causes = self.case.spec.replay.causes;
        if causes != ExplainedMisses::None && self.only.is_none() {
            let sampled = causes == ExplainedMisses::Sampled;
            engine.explain_misses(self.capacity_blocks, sampled, self.case.needs.bounds);
        }
        engine
    }

    /// Whether quotas are split in shadow partitions.
    fn has_shadows(&self) -> bool {
        self.case.spec.cache.shadow == Shadow::Talus
    }

    fn engine<P: Registered>(
        &self,
        control: &mut Control,
        settings: &P::Settings,
    ) -> EngineLane<P> {
        let spec = &self.case.spec;
        let make = |pool: usize, capacity| {
            self.case.caching.with_models(P::new(capacity, settings, spec.pool_seed(pool)))
        };
        let engine = Engine::new(spec.tenants.len(), &control.first(), spec.cache.write, make);
        let engine = self.explained(engine.shrinking(spec.cache.shrink));
        let lane = EngineLane::new(engine, self.workload.recording);
        if self.case.needs.inputs().requests { lane.observing_requests() } else { lane }
    }

    /// The lane of an open-loop case; `watcher` is told what happens to the blocks it holds.
    pub fn lane(
        &self,
        watcher: Option<Box<dyn CacheObserver>>,
    ) -> Result<Box<dyn Lane>, ExperimentError> {
        struct Open<'a>(&'a Job<'a>, Control, Option<Box<dyn CacheObserver>>);
        impl PolicyVisitor for Open<'_> {
            type Output = Box<dyn Lane>;
            fn visit<P: Registered>(mut self, settings: P::Settings) -> Box<dyn Lane> {
                let lane = self.0.engine::<P>(&mut self.1, &settings);
                Box::new(lane.with_control(self.1).with_observer(self.2))
            }
        }
        if self.has_shadows() {
            let mut control = self.control()?;
            let lane = EngineLane::new(self.boxed(&control.first())?, self.workload.recording);
            return Ok(Box::new(lane.with_control(control).with_observer(watcher)));
        }
        let policy = &self.case.spec.cache.policy;
        cachewright_policy::visit(&policy.name, &policy.pairs, Open(self, self.control()?, watcher))
            .map_err(|error| self.case.refuse(format!("`cache.policy`: {error}")))
    }

    /// Runs a closed-loop case to its end.
    pub fn run_closed(
        &self,
        watcher: Option<Box<dyn CacheObserver>>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<ConstantRun, ExperimentError> {
        let mut control = self.control()?;
        let lane = EngineLane::new(self.boxed(&control.first())?, self.workload.recording);
        let lane = if self.case.needs.inputs().requests { lane.observing_requests() } else { lane };
        let lane = lane.with_control(control).with_observer(watcher);
        let settings = &self.case.spec.replay;
        let replay = self.replay(self.workload.recording, &[], FutureSlice::None);
        let durations = Durations { hit_ns: settings.hit_time.0, miss_ns: settings.miss_time.0 };
        Ok(run_constant(&replay, durations, lane, self.wanted(), progress)?)
    }

    /// The replay of these requests, which lie in `extents` of their devices where there are some.
    /// A tenant alone is not divided, so that it has no intervals; sums by step need no windows.
    pub fn replay<'r, W>(
        &'r self,
        requests: &'r W,
        extents: &'r [Range<u64>],
        futures: FutureSlice<'r>,
    ) -> Replay<'r, W> {
        let (settings, alone) = (&self.case.spec.replay, self.only.is_some());
        Replay {
            recording: self.workload.recording,
            requests,
            extents,
            futures,
            pace: pace(self.case),
            only: self.only,
            interval_ns: if alone { 0 } else { self.case.interval_ns },
            windows: if self.clock.is_some() { 0 } else { settings.windows },
            warmup_ns: self.case.warmup_ns,
            throughput_ns: if alone { 0 } else { settings.throughput_window.0 },
            clock: self.clock,
            capacity_blocks: self.capacity_blocks,
        }
    }

    /// What its partitioner is told at each interval.
    pub fn wanted(&self) -> SignalNeeds {
        match self.only {
            Some(_) => SignalNeeds::default(),
            None => wanted(self.case, self.capacity_blocks, self.case.spec.tenants.len()),
        }
    }
}

/// What the partitioner of a case of so many blocks is told at each interval about so many tenants.
pub fn wanted(case: &ResolvedCase<'_>, capacity_blocks: u32, tenants: usize) -> SignalNeeds {
    SignalNeeds {
        curves: profiles::of_intervals(case, capacity_blocks, tenants),
        steps: case.needs.steps,
        signals: case.needs.signals(),
    }
}

/// The loop that a case asks for.
pub fn pace(case: &Case) -> Loop {
    if !case.spec.replay.closed() {
        return Loop::Open;
    }
    let tenants = || case.spec.tenants.iter();
    Loop::Closed {
        queue_depth: tenants().map(|tenant| tenant.queue_depth).collect(),
        think_ns: tenants().map(|tenant| tenant.think_time.0).collect(),
        recorded: tenants().map(|tenant| tenant.recorded_pauses()).collect(),
        start_ns: tenants().map(|tenant| tenant.start.0).collect(),
        stop_ns: tenants().map(|tenant| tenant.until.map_or(NEVER_NS, |time| time.0)).collect(),
        noise: tenants().map(|tenant| noise(case, tenant)).collect(),
        repeat: tenants().map(|tenant| tenant.repeat).collect(),
    }
}

/// A tenant's periods, by the seed of the case and its name: other tenants change nothing.
fn noise(case: &Case, tenant: &TenantSpec) -> Option<Noise> {
    let seed = case.spec.seed.derive("noise").derive(&tenant.name);
    tenant.noise.as_ref().map(|Nested(found)| Noise {
        on_ns: found.on.map_or(0, |mean| mean.0),
        off_ns: found.off.map_or(0, |mean| mean.0),
        off_depth: found.off_depth,
        exponential: found.lengths == Lengths::Exponential,
        seed,
    })
}
