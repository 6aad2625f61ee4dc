//! What is measured of tenants ahead of a run, once for all cases of a workload: hit ratios of
//! their heads, and the curves that partitioners divide by.
//!
//! Units: blocks; hit ratios from 0 to 1. A ratio depends on the recording and where its requests
//! lie, the machine's settings, the tenant, the length of its head, the policy with its settings
//! and models, the seed, the write mode and the size, and on nothing else of a case; so does the
//! key it is kept under. Where a tenant has a history, that stands for its head. Curves of
//! intervals are measured as by a live server (`decide/control`); those of heads are counted
//! exactly for LRU. Ratios on devices are of the whole tenant, which waits and reads ahead as in
//! the run itself.

use crate::ExperimentError;
use crate::case::Case;
use crate::job::Job;
use crate::models::Caching;
use crate::progress::{OnProgress, Sum};
use crate::spec::Spec;
use cachewright_control::{CachePolicy, head_curves, interval_curves};
use cachewright_curve::{Curve, CurveSet};
use cachewright_partition::Need;
use cachewright_policy::{Need as PolicyNeed, PolicyVisitor, Registered};
use cachewright_system::profile::{FirstAccesses, PolicyInputs};
use cachewright_types::{Seed, TenantId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What is computed once per key, by the first case that needs it.
struct Once<K, V>(Mutex<HashMap<K, Arc<OnceLock<V>>>>);

/// The profiles of one recording, placed on devices in one way.
pub struct Profiles {
    /// By tenant, bits of the share, what the policy wants, and the machine's settings.
    heads: Once<(usize, u64, PolicyInputs, String), Arc<FirstAccesses>>,
    /// By all but the size in words, and the size.
    ratios: Once<(String, u32), Option<f64>>,
    /// Of whole tenants on devices: by all but the size in words, and the size.
    alone: Once<(String, u32), Result<f64, String>>,
    /// By all in words.
    curves: Once<String, Result<Arc<Curve>, String>>,
}

/// A head under one policy.
struct HeadUnderPolicy<'a> {
    head: &'a FirstAccesses,
    spec: &'a Spec,
    caching: &'a Caching,
    size: u32,
    progress: OnProgress<'a>,
}

impl PolicyVisitor for HeadUnderPolicy<'_> {
    /// Nothing where it was stopped.
    type Output = Option<f64>;

    fn visit<P: Registered>(self, settings: P::Settings) -> Option<f64> {
        let seed = self.spec.profile_seed();
        let make = |capacity| self.caching.with_models(P::new(capacity, &settings, seed));
        let sum = Sum::new("measuring each tenant alone", None, self.progress);
        self.head.hit_ratio(self.size, self.spec.cache.write, make, sum.part())
    }
}

impl<K: Eq + Hash, V: Clone> Once<K, V> {
    fn new() -> Once<K, V> {
        Once(Mutex::new(HashMap::new()))
    }

    /// The value of `key`; others who ask for it meanwhile wait.
    fn get(&self, key: K, compute: impl FnOnce() -> V) -> V {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::clone(kept.entry(key).or_default());
        drop(kept);
        place.get_or_init(compute).clone()
    }
}

impl Default for Profiles {
    fn default() -> Self {
        Profiles {
            heads: Once::new(),
            ratios: Once::new(),
            alone: Once::new(),
            curves: Once::new(),
        }
    }
}

impl Profiles {
    /// Hit ratios of a tenant's head, alone under the policy of `job`, at `sizes`; `wants` says
    /// what it must know ahead. Errors: no such policy, stopped.
    pub fn measured(
        &self,
        job: &Job<'_>,
        place: usize,
        wants: PolicyInputs,
        sizes: &[u32],
    ) -> Result<Vec<(u32, f64)>, ExperimentError> {
        let spec = &job.case.spec;
        let (policy, share) = (&spec.cache.policy, spec.replay.profile_share);
        let (head, machine) = self.head(job, place, wants);
        cachewright_policy::registry::boxed(&policy.name, &policy.pairs, 0, spec.seed)
            .map_err(|error| job.case.refuse(format!("`cache.policy`: {error}")))?;
        let (seed, write) = (spec.seed, spec.cache.write);
        let kinds = &spec.cache.kinds;
        let words = format!("{place} {share} {policy:?} {kinds:?} {seed:?} {write:?} {machine}");
        let ratio = |&size: &u32| {
            let ratio = self.ratios.get((words.clone(), size), || {
                let (caching, progress) = (&job.case.caching, job.workload.progress);
                let alone = HeadUnderPolicy { head: &head, spec, caching, size, progress };
                cachewright_policy::visit(&policy.name, &policy.pairs, alone).unwrap_or_default()
            });
            Ok((size, ratio.ok_or(ExperimentError::Cancelled)?))
        };
        sizes.iter().map(ratio).collect()
    }

    /// Hit ratios of a whole tenant, alone on the devices of `job`, at `sizes`. Errors: no devices,
    /// or what a replay on them fails with.
    pub fn on_devices(
        &self,
        job: &Job<'_>,
        place: usize,
        sizes: &[u32],
    ) -> Result<Vec<(u32, f64)>, ExperimentError> {
        let spec = &job.case.spec;
        let tenant = &spec.tenants[place];
        let words = format!("{place} {:?} {:?} {:?}", spec.cache, spec.stack, spec.seed);
        let words = format!("{words} {tenant:?} {:?}", spec.replay);
        let ratio = |&size: &u32| {
            let found = self.alone.get((words.clone(), size), || {
                let whole = Job::alone(job.workload, job.case, place);
                let alone = Job { capacity_blocks: size, ..whole };
                alone.hit_ratio_on_devices(place).map_err(|error| error.to_string())
            });
            found.map(|ratio| (size, ratio)).map_err(|error| job.case.refuse(error))
        };
        sizes.iter().map(ratio).collect()
    }

    /// The misses of a tenant's head by cache size, alone, of the policy of `job` or of LRU.
    /// Errors: the policy cannot be simulated.
    pub fn curve(
        &self,
        job: &Job<'_>,
        place: usize,
        own_policy: bool,
    ) -> Result<Arc<Curve>, String> {
        let spec = &job.case.spec;
        let (head, machine) = self.head(job, place, PolicyInputs::default());
        let (seed, share) = (spec.seed, spec.replay.profile_share);
        let own = own_policy.then_some((&spec.cache.policy, job.capacity_blocks));
        let words = format!("{place} {share} {own:?} {seed:?} {machine}");
        self.curves.get(words, || {
            let seed = spec.head_curve_seed(place);
            of_head(spec, &head, own_policy, job.capacity_blocks, seed).map(Arc::new)
        })
    }

    /// The head of a tenant or its history, and the machine's settings and the history in words.
    fn head(
        &self,
        job: &Job<'_>,
        place: usize,
        wants: PolicyInputs,
    ) -> (Arc<FirstAccesses>, String) {
        let share = job.case.spec.replay.profile_share;
        let machine = job.machine().map(|machine| machine.settings);
        let words = format!("{machine:?} {:?}", job.case.spec.tenants[place].history);
        let head = self.heads.get((place, share.to_bits(), wants, words.clone()), || {
            Arc::new(match job.history(place) {
                Some(history) => FirstAccesses::recorded(history, TenantId(0), 1.0, wants),
                None => job.head(TenantId(place as u16), share, wants),
            })
        });
        (head, words)
    }
}

/// What is measured in each interval of a case of so many blocks about so many tenants; nothing
/// where no curve is asked for, or those of heads.
pub fn of_intervals(case: &Case, capacity_blocks: u32, tenants: usize) -> Option<CurveSet> {
    let kind = case.needs.curves?;
    let policy = policy_of(&case.spec, capacity_blocks);
    interval_curves(&[Need::Curve], kind, policy, tenants).ok().flatten()
}

/// The policy of a case, in a cache of so many blocks.
fn policy_of(spec: &Spec, capacity_blocks: u32) -> CachePolicy<'_> {
    let policy = &spec.cache.policy;
    CachePolicy { name: &policy.name, pairs: &policy.pairs, capacity_blocks, seed: spec.seed }
}

/// The curve of a tenant's head. Errors: what the policy cannot be simulated for.
pub fn of_head(
    spec: &Spec,
    head: &FirstAccesses,
    own_policy: bool,
    capacity_blocks: u32,
    seed: Seed,
) -> Result<Curve, String> {
    let policy = CachePolicy { seed, ..policy_of(spec, capacity_blocks) };
    let set = head_curves(policy, own_policy, head.used_blocks());
    let set = set.map_err(|error| error.to_string())?;
    head.curve(set).ok_or_else(|| "a measurement of one tenant has a curve".to_owned())
}

impl Case {
    /// Checks that curves of its own policy can be measured, where they are asked for. Errors: it
    /// needs more than accesses.
    pub fn check_curves(&self) -> Result<(), String> {
        let name = &self.spec.cache.policy.name;
        let own = self.needs.curves.is_some_and(|kind| kind.own_policy);
        let needs = cachewright_policy::entry(name).map_or(&[][..], |entry| entry.needs);
        if own && needs.iter().any(|need| *need != PolicyNeed::Future) {
            return Err(format!(
                "`cache.partition`: found `own_policy = true` with the policy `{name}`, which \
                 needs more than accesses to decide; expected another policy, or `own_policy = \
                 false`"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_computed_once_per_key() {
        let once: Once<u32, u32> = Once::new();
        assert_eq!((once.get(1, || 10), once.get(1, || 11), once.get(2, || 12)), (10, 10, 12));
    }
}
