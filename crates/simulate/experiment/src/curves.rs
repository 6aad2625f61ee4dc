//! The curves that partitioners divide by: where they are measured, and of which policy.
//!
//! For: curves of each interval, and of each tenant's head before the run. Must never know: what is
//! done with a curve. Units: blocks. LRU's are sampled by SHARDS of a fixed number of blocks per
//! tenant while running, so that memory and time do not grow with the trace, and counted exactly of
//! a head. Those of the cache's own policy are miniature simulations (Waldspurger et al., ATC'17)
//! at a rate that leaves 8,192 sampled blocks or more. The number of blocks of an interval is not
//! known before it ends, so that of the cache stands for it.

use crate::case::Case;
use crate::spec::Spec;
use cachewright_curve::shards::ShardsSizeSettings;
use cachewright_curve::windows::Method;
use cachewright_curve::{Curve, CurveSet, MiniSettings, PolicyCurves};
use cachewright_partition::{CurveKind, Need};
use cachewright_policy::Need as PolicyNeed;
use cachewright_system::profile::Head;
use cachewright_types::Seed;

/// Sizes at which a policy is simulated.
const POINTS: u32 = 32;

/// What is measured in each interval of a case of so many blocks; nothing where no curve is asked
/// for, or those of heads.
pub fn of_intervals(case: &Case, capacity_blocks: u32) -> Option<CurveSet> {
    let kind = case.curve_kind().filter(|kind| !kind.ahead)?;
    let (seed, tenants) = (case.spec.seed.derive("interval curves"), case.spec.tenants.len());
    if kind.own_policy {
        let distinct = vec![u64::from(capacity_blocks); tenants];
        return simulated(&case.spec, capacity_blocks, &distinct, seed).ok();
    }
    Some(CurveSet::new(tenants, &Method::ShardsSize(ShardsSizeSettings::default()), seed))
}

/// The curve of a tenant's head. Errors: what the policy cannot be simulated for.
pub fn of_head(
    spec: &Spec,
    head: &Head,
    own_policy: bool,
    capacity_blocks: u32,
    seed: Seed,
) -> Result<Curve, String> {
    let used = head.used_blocks();
    let set = if own_policy {
        simulated(spec, capacity_blocks.min(used), &[u64::from(used)], seed)?
    } else {
        CurveSet::new(1, &Method::Exact, seed)
    };
    head.curve(set).ok_or_else(|| "a measurement of one tenant has a curve".to_owned())
}

/// Miniature simulations of a case's own policy for tenants of so many distinct blocks.
fn simulated(
    spec: &Spec,
    largest_blocks: u32,
    distinct_blocks: &[u64],
    seed: Seed,
) -> Result<CurveSet, String> {
    let sizes = sizes(largest_blocks);
    let policy = &spec.cache.policy;
    let settings = MiniSettings::default();
    let (policy, pairs) = (policy.name.as_str(), policy.pairs.as_slice());
    let wanted = PolicyCurves { policy, pairs, sizes_blocks: &sizes, settings };
    CurveSet::of_policy(&wanted, distinct_blocks, seed).map_err(|error| error.to_string())
}

/// Sizes in geometric steps up to the largest, from a thousandth of it.
fn sizes(largest_blocks: u32) -> Vec<u32> {
    let high = f64::from(largest_blocks.max(1));
    let low = (high / 1000.0).max(1.0);
    let size = |point: u32| {
        let share = f64::from(point) / f64::from(POINTS - 1);
        (low * (high / low).powf(share)).round() as u32
    };
    let mut sizes: Vec<u32> = (0..POINTS).map(size).collect();
    sizes.dedup();
    sizes
}

impl Case {
    /// Which curves its partitioner divides by; nothing if it reads none.
    pub fn curve_kind(&self) -> Option<CurveKind> {
        if !self.needs(Need::Curve) {
            return None;
        }
        let (named, tenants) = (&self.spec.cache.partition, self.spec.tenants.len());
        let made = cachewright_partition::boxed(&named.name, &named.pairs, tenants, self.spec.seed);
        made.ok().map(|partitioner| partitioner.curves())
    }

    /// Checks that curves of its own policy can be measured, where they are asked for. Errors: it
    /// needs more than accesses.
    pub fn check_curves(&self) -> Result<(), String> {
        let name = &self.spec.cache.policy.name;
        let own = self.curve_kind().is_some_and(|kind| kind.own_policy);
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
    fn sizes_ascend_to_the_largest() {
        for largest in [1, 2, 40, 5_000, 3_000_000] {
            let sizes = sizes(largest);
            assert_eq!(sizes.last(), Some(&largest));
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]) && sizes[0] > 0, "{sizes:?}");
        }
        assert_eq!(sizes(0), [1]);
    }
}
