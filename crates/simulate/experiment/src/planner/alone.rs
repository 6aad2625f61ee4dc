//! What each tenant needs in a cache of its own.
//!
//! For: the perfect split, and the best hit ratio there is. Must never know: partitioners. Units:
//! blocks; hit ratios from 0 to 1.

use super::Planner;
use crate::case::ResolvedCase;
use crate::job::Job;
use crate::models::Caching;
use crate::progress::Progress;
use crate::{ExperimentError, Spec};
use cachewright_policy::{PolicyVisitor, Registered};
use cachewright_system::profile::FirstAccesses;
use cachewright_types::TenantId;
use rayon::prelude::*;

impl Planner<'_> {
    /// Each tenant's smallest cache of its own, if it has a goal and any size meets it, and the hit
    /// ratio of one that holds all it touches.
    pub(super) fn alone(
        &self,
        case: &ResolvedCase<'_>,
    ) -> Result<Vec<(Option<u32>, f64)>, ExperimentError> {
        let stage = "sizing each tenant alone";
        if !(self.progress)(Progress { stage, done: 0, total: None }) {
            return Err(ExperimentError::Cancelled);
        }
        let need = |(place, &goal): (usize, &Option<f64>)| {
            let head = Job::new(self.workload, case).head(
                TenantId(place as u16),
                1.0,
                case.needs.inputs(),
            );
            let spec = &case.spec;
            let caching = &case.caching;
            let visitor = AloneSearch { head: &head, spec, caching, goal };
            let policy = &spec.cache.policy;
            cachewright_policy::visit(&policy.name, &policy.pairs, visitor)
                .map_err(|error| case.refuse(format!("`cache.policy`: {error}")))
        };
        self.goals.par_iter().enumerate().map(need).collect()
    }
}

/// The search for one tenant's own cache, by halving.
struct AloneSearch<'a> {
    head: &'a FirstAccesses,
    spec: &'a Spec,
    caching: &'a Caching,
    /// Nothing for a tenant without a goal, of which only the best is found.
    goal: Option<f64>,
}

impl PolicyVisitor for AloneSearch<'_> {
    type Output = (Option<u32>, f64);

    fn visit<P: Registered>(self, settings: P::Settings) -> (Option<u32>, f64) {
        let (seed, mode) = (self.spec.seed.derive("policy"), self.spec.cache.write);
        let make = |capacity| self.caching.with_models(P::new(capacity, &settings, seed));
        let ratio = |size: u32| self.head.hit_ratio(size, mode, make);
        let max_blocks = self.head.distinct_blocks().max(1);
        let best = ratio(max_blocks);
        let Some(goal) = self.goal.filter(|goal| best >= *goal) else { return (None, best) };
        let (mut low, mut high) = (0, max_blocks);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if ratio(middle) >= goal { high = middle } else { low = middle }
        }
        (Some(high), best)
    }
}
