//! The curves that partitioners divide by: where they are measured, and of which policy.
//!
//! For: curves of each interval, and of each tenant's head before the run. Must never know: what is
//! done with a curve. Units: blocks. Curves of intervals are measured as by a live server
//! (`decide/control`). Those of heads are counted exactly for LRU.

use crate::case::Case;
use crate::spec::Spec;
use cachewright_control::{CachePolicy, head_curves, interval_curves};
use cachewright_curve::{Curve, CurveSet};
use cachewright_partition::Need;
use cachewright_policy::Need as PolicyNeed;
use cachewright_system::profile::FirstAccesses;
use cachewright_types::Seed;

/// What is measured in each interval of a case of so many blocks; nothing where no curve is asked
/// for, or those of heads.
pub fn of_intervals(case: &Case, capacity_blocks: u32) -> Option<CurveSet> {
    let kind = case.needs.curves?;
    let (spec, tenants) = (&case.spec, case.spec.tenants.len());
    interval_curves(&[Need::Curve], kind, policy_of(spec, capacity_blocks), tenants).ok().flatten()
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
