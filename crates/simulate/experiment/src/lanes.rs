//! From a case to a lane: the name of a policy becomes its type here, once per case.
//!
//! For: building engines and control loops, open or closed. Must never know: other cases.

use crate::ExperimentError;
use crate::case::Case;
use cachewright_cache::Engine;
use cachewright_curve::CurveSet;
use cachewright_curve::shards::ShardsSizeSettings;
use cachewright_curve::windows::Method;
use cachewright_policy::{PolicyVisitor, Registered};
use cachewright_system::closed::{ClosedLoop, Experience, Pace};
use cachewright_system::control::{Control, Tenant};
use cachewright_system::{EngineLane, Lane, LaneResult, RecordError, Recording};
use std::path::Path;

/// A case with all that is needed to build its lane.
pub struct Plan<'a> {
    /// The case.
    pub case: &'a Case,
    /// What it replays.
    pub recording: &'a Recording,
    /// Its capacity.
    pub capacity_blocks: u32,
    /// The stack file, for messages.
    pub origin: &'a Path,
}

impl Plan<'_> {
    fn control(&self) -> Result<Control, ExperimentError> {
        let spec = &self.case.spec;
        let partition = &spec.cache.partition;
        let tenants: Vec<Tenant> = spec
            .tenants
            .iter()
            .map(|tenant| Tenant { name: tenant.name.clone(), weight: tenant.weight })
            .collect();
        let seed = spec.seed.derive("partition");
        let partitioner =
            cachewright_partition::boxed(&partition.name, &partition.pairs, tenants.len(), seed)
                .map_err(|error| self.refuse(format!("`cache.partition`: {error}")))?;
        Ok(Control::new(partitioner, tenants, self.capacity_blocks))
    }

    fn refuse(&self, message: String) -> ExperimentError {
        ExperimentError::Spec { origin: self.origin.to_owned(), message }
    }

    fn engine<P: Registered>(
        &self,
        control: &mut Control,
        settings: &P::Settings,
    ) -> EngineLane<P> {
        let spec = &self.case.spec;
        let seed = spec.seed.derive("policy");
        let quotas = control.first();
        let make = |pool: usize, capacity| {
            P::new(capacity, settings, seed.derive(&format!("pool/{pool}")))
        };
        let engine = Engine::new(spec.tenants.len(), &quotas, spec.cache.write, make);
        EngineLane::new(engine, self.recording)
    }

    /// The lane of an open-loop case.
    pub fn lane(&self) -> Result<Box<dyn Lane>, ExperimentError> {
        struct Open<'a>(&'a Plan<'a>, Control);
        impl PolicyVisitor for Open<'_> {
            type Output = Box<dyn Lane>;
            fn visit<P: Registered>(mut self, settings: P::Settings) -> Box<dyn Lane> {
                let lane = self.0.engine::<P>(&mut self.1, &settings);
                Box::new(lane.with_control(self.1))
            }
        }
        let policy = &self.case.spec.cache.policy;
        cachewright_policy::visit(&policy.name, &policy.pairs, Open(self, self.control()?))
            .map_err(|error| self.refuse(format!("`cache.policy`: {error}")))
    }

    /// Runs a closed-loop case to its end.
    pub fn run_closed(
        &self,
        requests: &[Vec<u32>],
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(LaneResult, Vec<Experience>), ExperimentError> {
        let policy = &self.case.spec.cache.policy;
        let closed = Closed { plan: self, control: self.control()?, requests, progress };
        let run = cachewright_policy::visit(&policy.name, &policy.pairs, closed)
            .map_err(|error| self.refuse(format!("`cache.policy`: {error}")))?;
        Ok(run?)
    }

    fn pace(&self) -> Pace {
        let spec = &self.case.spec;
        let of_tenants = |value: fn(&crate::spec::TenantSpec) -> u64| {
            spec.tenants.iter().map(value).collect::<Vec<u64>>()
        };
        Pace {
            queue_depth: spec.tenants.iter().map(|tenant| tenant.queue_depth).collect(),
            think_ns: of_tenants(|tenant| tenant.think_time.0),
            start_ns: of_tenants(|tenant| tenant.start.0),
            hit_ns: spec.replay.hit_time.0,
            miss_ns: spec.replay.miss_time.0,
            interval_ns: spec.replay.interval.0,
            windows: spec.replay.windows,
        }
    }
}

struct Closed<'a> {
    plan: &'a Plan<'a>,
    control: Control,
    requests: &'a [Vec<u32>],
    progress: &'a mut dyn FnMut(u64) -> bool,
}

impl PolicyVisitor for Closed<'_> {
    type Output = Result<(LaneResult, Vec<Experience>), RecordError>;

    fn visit<P: Registered>(mut self, settings: P::Settings) -> Self::Output {
        let lane = self.plan.engine::<P>(&mut self.control, &settings);
        let pace = self.plan.pace();
        let curves = self.plan.case.needs_curves().then(|| interval_meter(self.plan.case));
        let lane = lane.with_control(self.control);
        ClosedLoop::new(self.plan.recording, self.requests, &pace, lane, curves).run(self.progress)
    }
}

/// What measures the curves that a case's partitioner reads at each interval: SHARDS of a fixed
/// number of blocks per tenant, so that memory and time do not grow with the trace.
pub fn interval_meter(case: &Case) -> CurveSet {
    let method = Method::ShardsSize(ShardsSizeSettings::default());
    CurveSet::new(case.spec.tenants.len(), &method, case.spec.seed.derive("interval curves"))
}
