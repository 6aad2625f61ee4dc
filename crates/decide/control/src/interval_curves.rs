//! The curves that partitioners divide by, of each interval or ahead, measured alike in replays and
//! in live servers.
//!
//! LRU's are sampled by SHARDS of a fixed number of blocks per tenant, so that memory and time do
//! not grow with the requests. Those of the cache's own policy are miniature simulations
//! (Waldspurger et al., ATC'17) at a rate that leaves 8,192 sampled blocks or more. The number of
//! blocks of an interval is not known before it ends, so that of the cache stands for it.

use crate::meters::SignalNeeds;
use cachewright_curve::ShardsSizeSettings;
use cachewright_curve::windows::Method;
use cachewright_curve::{CurveError, CurveSet, MiniSettings, PolicyCurves};
use cachewright_partition::{CurveKind, Need, Partitioner};
use cachewright_types::{Seed, Value};

/// Sizes at which a policy is simulated.
const POINTS: u32 = 32;

/// A policy with its settings, in a cache of so many blocks, and the root of all randomness.
#[derive(Clone, Copy, Debug)]
pub struct CachePolicy<'a> {
    /// The policy's name.
    pub name: &'a str,
    /// Its settings.
    pub pairs: &'a [(String, Value)],
    /// Blocks of the cache.
    pub capacity_blocks: u32,
    /// The root.
    pub seed: Seed,
}

/// What is measured in each interval for a partitioner of these needs; nothing if it reads no
/// curves, or those of heads of traces. Errors: the policy cannot be simulated.
pub fn interval_curves(
    needs: &[Need],
    kind: CurveKind,
    policy: CachePolicy<'_>,
    tenants: usize,
) -> Result<Option<CurveSet>, CurveError> {
    if !needs.contains(&Need::Curve) || kind.ahead {
        return Ok(None);
    }
    let seed = policy.seed.derive("interval curves");
    if kind.own_policy {
        let distinct = vec![u64::from(policy.capacity_blocks); tenants];
        return simulated_curves(policy, &distinct, seed).map(Some);
    }
    Ok(Some(CurveSet::new(tenants, &Method::ShardsSize(ShardsSizeSettings::default()), seed)))
}

impl SignalNeeds {
    /// All that a partitioner of these needs divides by, of so many tenants in a cache of `policy`.
    /// Errors: as of [`interval_curves`].
    pub fn of(
        partitioner: &dyn Partitioner,
        needs: &[Need],
        policy: CachePolicy<'_>,
        tenants: usize,
    ) -> Result<SignalNeeds, CurveError> {
        let curves = interval_curves(needs, partitioner.curves(), policy, tenants)?;
        Ok(SignalNeeds { curves, steps: partitioner.steps(), signals: Need::signals(needs) })
    }
}

/// Miniature simulations of a policy for tenants of so many distinct blocks. Errors: the policy
/// cannot be simulated.
fn simulated_curves(
    policy: CachePolicy<'_>,
    distinct_blocks: &[u64],
    seed: Seed,
) -> Result<CurveSet, CurveError> {
    let sizes = sizes(policy.capacity_blocks);
    let settings = MiniSettings::default();
    let (policy, pairs) = (policy.name, policy.pairs);
    let wanted = PolicyCurves { policy, pairs, sizes_blocks: &sizes, settings };
    CurveSet::of_policy(&wanted, distinct_blocks, seed)
}

/// What measures the curve of one tenant ahead of a run, over `used_blocks` distinct blocks: exact
/// for LRU, or a miniature simulation of the cache's own policy. Errors: it cannot be simulated.
pub fn head_curves(
    policy: CachePolicy<'_>,
    own_policy: bool,
    used_blocks: u32,
) -> Result<CurveSet, CurveError> {
    let seed = policy.seed;
    if !own_policy {
        return Ok(CurveSet::new(1, &Method::Exact, seed));
    }
    let capacity_blocks = policy.capacity_blocks.min(used_blocks);
    simulated_curves(CachePolicy { capacity_blocks, ..policy }, &[u64::from(used_blocks)], seed)
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

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::{BlockName, Provenance};
    use cachewright_types::{BlockKey, TenantId};

    #[test]
    fn sizes_ascend_to_the_largest() {
        for largest in [1, 2, 40, 5_000, 3_000_000] {
            let sizes = sizes(largest);
            assert_eq!(sizes.last(), Some(&largest));
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]) && sizes[0] > 0, "{sizes:?}");
        }
        assert_eq!(sizes(0), [1]);
    }

    const POLICY: CachePolicy<'_> =
        CachePolicy { name: "lru", pairs: &[], capacity_blocks: 5_000, seed: Seed(1) };

    #[test]
    fn sizes_are_a_thousandth_and_geometric_steps_from_there() {
        let sizes = sizes(5_000);
        assert_eq!((sizes.len(), sizes[0]), (POINTS as usize, 5));
        // Each is 1000^(1/31) = 1.2496 times the one before: 5, 6.2, 7.8, 9.8.
        assert_eq!(sizes[..4], [5, 6, 8, 10]);
    }

    #[test]
    fn curves_are_measured_in_intervals_for_those_that_read_them_there() {
        let kind = CurveKind::default();
        let found = |needs: &[Need], kind| interval_curves(needs, kind, POLICY, 2);
        assert!(found(&[], kind).is_ok_and(|curves| curves.is_none()));
        let ahead = CurveKind { ahead: true, ..kind };
        assert!(found(&[Need::Curve], ahead).is_ok_and(|curves| curves.is_none()));
        assert!(found(&[Need::Curve], kind).is_ok_and(|curves| curves.is_some()));
        let own = CurveKind { own_policy: true, ..kind };
        assert!(found(&[Need::Curve], own).is_ok_and(|curves| curves.is_some()));
        let unknown = CachePolicy { name: "nothing", ..POLICY };
        assert!(interval_curves(&[Need::Curve], own, unknown, 2).is_err());
        assert!(interval_curves(&[Need::Curve], kind, unknown, 2).is_ok(), "lru is measured");
    }

    #[test]
    fn head_curves_are_exact_for_lru_and_simulated_for_the_own_policy() {
        let curve = |own_policy, used_blocks| {
            let mut set = head_curves(POLICY, own_policy, used_blocks).expect("a known policy");
            for access in 0..20_000_u64 {
                let block = BlockName::Keyed(BlockKey(access * access % u64::from(used_blocks)));
                set.access(TenantId(0), block, false);
            }
            set.end_window().swap_remove(0).all
        };
        let exact = curve(false, 300);
        assert_eq!(*exact.provenance(), Provenance::Exact);
        let simulated = curve(true, 300);
        assert_ne!(*simulated.provenance(), Provenance::Exact);
        // The largest size simulated is that of all blocks, not of the cache.
        assert_eq!(simulated.misses(300), exact.misses(300));
        assert_eq!(simulated.sizes().last(), Some(&300));
    }
}
