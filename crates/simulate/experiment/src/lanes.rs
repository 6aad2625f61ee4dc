//! From a case to a lane: the name of a policy becomes its type here, once per case.
//!
//! For: building engines and control loops, open or closed. Must never know: other cases.

use crate::ExperimentError;
use crate::case::Case;
use crate::curves;
use crate::pace::pace;
use crate::profiles::Profiles;
use cachewright_cache::{Engine, Quotas};
use cachewright_partition::{Need, Partitioner, TenantConstants, TenantGoal};
use cachewright_policy::{FutureSlice, Policy, PolicyVisitor, Registered, Shadowed};
use cachewright_stack::Goal;
use cachewright_stack::tables::Shadow;
use cachewright_system::Control;
use cachewright_system::event_loop::{ConstantRun, Durations, Replay, run_constant};
use cachewright_system::profile::{FirstAccesses, Machined, PolicyInputs};
use cachewright_system::{
    CacheObserver, Cuts, EngineLane, Lane, Recording, SignalNeeds, Signals, interval_signals,
};
use cachewright_types::TenantId;

/// A case with all that is needed to build its lane.
pub struct LanePlan<'a> {
    /// The case.
    pub case: &'a Case,
    /// What it replays.
    pub recording: &'a Recording,
    /// Its capacity.
    pub capacity_blocks: u32,
    /// Profiles that cases of the recording have in common.
    pub profiles: &'a Profiles,
    /// Its requests on their devices, where it has some.
    pub machine: Option<Machined<'a>>,
}

impl<'a> LanePlan<'a> {
    /// What builds the cache of a case without devices. Errors: a capacity that cannot be.
    pub fn new(
        case: &'a Case,
        recording: &'a Recording,
        profiles: &'a Profiles,
    ) -> Result<LanePlan<'a>, ExperimentError> {
        let capacity_blocks = case.capacity_blocks(recording.distinct)?;
        Ok(LanePlan { case, recording, capacity_blocks, profiles, machine: None })
    }

    pub(crate) fn control(&self) -> Result<Control, ExperimentError> {
        let partitioner: Box<dyn Partitioner> = match self.case.recorded(self.capacity_blocks)? {
            Some(recorded) => Box::new(recorded),
            None => self.case.partitioner()?,
        };
        let tenants = self.tenants(&*partitioner)?;
        let control = Control::new(partitioner, tenants, self.capacity_blocks);
        Ok(if self.has_shadows() { control.with_shadows() } else { control })
    }

    /// The tenants' facts for the partitioner: goals and profiles if it declares the need, and
    /// curves of heads if it divides by those.
    fn tenants(
        &self,
        partitioner: &dyn Partitioner,
    ) -> Result<Vec<TenantConstants>, ExperimentError> {
        let goals = self.case.goals()?;
        self.case.check_curves().map_err(|error| self.case.refuse(error))?;
        let has_goals = self.case.needs.partitioner_needs(Need::Goal);
        let (reads, share) = (partitioner.reads_profiles(), self.case.spec.replay.profile_share);
        let profiled = |place| reads && (share > 0.0 || self.history(place).is_some());
        let kind = partitioner.curves();
        let curve = |place: usize| {
            let found = self.profiles.curve(self, place, kind.own_policy);
            found.map_err(|error| self.case.refuse(format!("`cache.policy`: {error}")))
        };
        let tenant = |(place, hit_ratio): (usize, Option<f64>)| {
            let spec = &self.case.spec.tenants[place];
            let (weight, sensitive) = (spec.weight, spec.sensitive);
            let profile = if profiled(place) { self.profile(place)? } else { Vec::new() };
            let response = spec.goal.and_then(Goal::response);
            let goal = has_goals.then_some(TenantGoal { hit_ratio, response, profile });
            let head_curve = kind.ahead.then(|| curve(place)).transpose()?;
            let schedule = spec.schedule.clone();
            Ok(TenantConstants { weight, schedule, sensitive, goal, head_curve })
        };
        goals.into_iter().enumerate().map(tenant).collect()
    }

    /// What a tenant did before, if that is known.
    pub(crate) fn history(&self, place: usize) -> Option<&Recording> {
        self.case.histories.get(place).and_then(Option::as_ref)
    }

    /// The first `share` of a tenant's accesses, with what the machine reads ahead of them;
    /// `wants` says what the policy must know ahead.
    pub(crate) fn head(&self, tenant: TenantId, share: f64, wants: PolicyInputs) -> FirstAccesses {
        let machine = self.machine.as_ref().zip(self.recording.totals.get(tenant.index()));
        machine
            .and_then(|(machine, totals)| {
                FirstAccesses::on_machine(machine, tenant, totals, share, wants)
            })
            .unwrap_or_else(|| FirstAccesses::recorded(self.recording, tenant, share, wants))
    }

    /// Hit ratios of a tenant's head, alone under the policy, at 1 block, half the cache and all.
    fn profile(&self, place: usize) -> Result<Vec<(u32, f64)>, ExperimentError> {
        let sizes = TenantGoal::profile_sizes(self.capacity_blocks);
        let wants = self.case.needs.inputs();
        let measured = self.profiles.measured(self, place, wants, &sizes);
        measured.map_err(|error| self.case.refuse(format!("`cache.policy`: {error}")))
    }

    /// An empty cache of the case's policy, which is not known by type.
    pub(crate) fn boxed(
        &self,
        quotas: &Quotas,
    ) -> Result<Engine<Box<dyn Policy>>, ExperimentError> {
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
        Ok(Engine::new(spec.tenants.len(), quotas, spec.cache.write, make))
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
        let lane = EngineLane::new(engine, self.recording);
        if self.case.needs.inputs().requests { lane.observing_requests() } else { lane }
    }

    /// The lane of an open-loop case; `watcher` is told what happens to the blocks it holds.
    pub fn lane(
        &self,
        watcher: Option<Box<dyn CacheObserver>>,
    ) -> Result<Box<dyn Lane>, ExperimentError> {
        struct Open<'a>(&'a LanePlan<'a>, Control, Option<Box<dyn CacheObserver>>);
        impl PolicyVisitor for Open<'_> {
            type Output = Box<dyn Lane>;
            fn visit<P: Registered>(mut self, settings: P::Settings) -> Box<dyn Lane> {
                let lane = self.0.engine::<P>(&mut self.1, &settings);
                Box::new(lane.with_control(self.1).with_observer(self.2))
            }
        }
        if self.has_shadows() {
            let mut control = self.control()?;
            let lane = EngineLane::new(self.boxed(&control.first())?, self.recording);
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
        let lane = EngineLane::new(self.boxed(&control.first())?, self.recording);
        let lane = if self.case.needs.inputs().requests { lane.observing_requests() } else { lane };
        let lane = lane.with_control(control).with_observer(watcher);
        let settings = &self.case.spec.replay;
        let replay = Replay {
            recording: self.recording,
            requests: self.recording,
            extents: &[],
            futures: FutureSlice::None,
            pace: pace(self.case),
            only: None,
            interval_ns: self.case.interval_ns(self.recording.span_ns()),
            windows: settings.windows,
            warmup_ns: self.case.warmup_ns(self.recording),
            throughput_ns: settings.throughput_window.0,
            clock: None,
            capacity_blocks: self.capacity_blocks,
        };
        let durations = Durations { hit_ns: settings.hit_time.0, miss_ns: settings.miss_time.0 };
        let wanted = wanted(self.case, self.capacity_blocks);
        Ok(run_constant(&replay, durations, lane, wanted, progress)?)
    }
}

/// What the partitioner of a case of so many blocks is told at each interval.
pub fn wanted(case: &Case, capacity_blocks: u32) -> SignalNeeds {
    SignalNeeds {
        curves: curves::of_intervals(case, capacity_blocks),
        steps: case.needs.steps,
        signals: case.needs.signals(),
    }
}

/// What is measured in each interval of an open loop, for cases that share a pass; `largest_blocks`
/// is the size of the largest of their caches.
pub fn measured(
    recording: &Recording,
    cuts: &Cuts,
    cases: &[&Case],
    largest_blocks: u32,
) -> Vec<Signals> {
    let Some(first) = cases.first() else { return Vec::new() };
    let mut all = SignalNeeds { steps: first.needs.steps, ..SignalNeeds::default() };
    for case in cases {
        let wanted = wanted(case, largest_blocks);
        all.curves = all.curves.or(wanted.curves);
        all.signals.reuse |= wanted.signals.reuse;
    }
    let meter = all.meter(first.spec.tenants.len(), first.interval_ns(recording.span_ns()));
    meter.map(|meter| interval_signals(recording, cuts, meter)).unwrap_or_default()
}
