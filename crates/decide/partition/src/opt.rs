//! `opt`: the best division of the next interval by its true response times.
//!
//! For: a bound for schemes without knowledge of the future. Must never know: how response times
//! were measured. Dynamic programming over granules minimises the mean slowdown over tenants with
//! requests: response with the granules given over response with the whole cache. Source: ours;
//! iCache (Li, Sun, Qin, TCAD 2025) has no bound. Units: granules, then blocks.
//!
//! All granules are assigned; idle tenants get those that the others do not need. Among equal
//! divisions the one nearest to the current quotas is taken. Without any knowledge quotas stay,
//! equal at first. Quotas differ from granules by rounding and by floors.
//!
//! The division is the best by each tenant's times alone, not by the times of tenants that share
//! the machine. It ignores that an interval leaves a warm cache to the next. A scheme may therefore
//! be faster in the end, but not by this measure.

use crate::registry::{Entry, Need, Registered};
use crate::{CacheDivision, Partitioner, TenantView, share};
use cachewright_snapshot::Snapshot;
use cachewright_types::{Seed, declare};

declare! {
    /// Settings of `opt`.
    pub struct OptSettings {
        /// granules of the cache
        granules: u32 = 10, "granules", 1 ..= 1000;
        /// blocks that every tenant keeps; less if the cache is too small
        floor_blocks: u32 = 1, "blocks", 0 ..= 4294967295;
    }
}

/// Best division by the response times of the next interval.
#[derive(Clone, Debug, Snapshot)]
pub struct Opt {
    #[snapshot(settings)]
    settings: OptSettings,
}

/// A slowdown of 1 as an integer, so that sums are exact.
const SLOWDOWN_ONE: f64 = (1_u64 << 32) as f64;
/// The largest slowdown that is counted.
const WORST: f64 = 1e6;

/// Cost of a division: slowdowns, then blocks that move.
type DivisionCost = (u64, u64);

impl Registered for Opt {
    type Settings = OptSettings;
    const ENTRY: Entry = Entry {
        name: "opt",
        doc: "smallest mean slowdown, by the true response times of the next interval",
        source: "ours: a bound with knowledge of the future",
        needs: &[Need::Interval, Need::Future],
    };

    fn new(settings: &OptSettings, _: usize, _: Seed) -> Self {
        Opt { settings: settings.clone() }
    }
}

/// A tenant's slowdown with each number of granules, in units of [`SLOWDOWN_ONE`]; nothing for an
/// idle tenant.
fn slowdowns(future: &[f64], granules: u32) -> Option<Vec<u64>> {
    let whole = *future.get(granules as usize)?;
    let counts = |latency: &f64| ((latency / whole).clamp(0.0, WORST) * SLOWDOWN_ONE) as u64;
    (whole > 0.0).then(|| future[..=granules as usize].iter().map(counts).collect())
}

/// The granules of each tenant with the smallest sum of costs; together they are all `granules`.
/// Among equal costs later tenants get fewer. `costs` is by tenant and granules.
pub fn cheapest(costs: &[Vec<DivisionCost>], granules: usize) -> Vec<usize> {
    let never = (u64::MAX, u64::MAX);
    let mut best = vec![never; granules + 1];
    best[0] = (0, 0);
    let mut chosen: Vec<Vec<usize>> = Vec::with_capacity(costs.len());
    for own in costs {
        let mut next = vec![(never, 0); granules + 1];
        for given in 0..=granules {
            for (count, cost) in own.iter().enumerate().take(given + 1) {
                let before = best[given - count];
                let sum = (before.0.saturating_add(cost.0), before.1.saturating_add(cost.1));
                if before != never && sum < next[given].0 {
                    next[given] = (sum, count);
                }
            }
        }
        best = next.iter().map(|(cost, _)| *cost).collect();
        chosen.push(next.into_iter().map(|(_, count)| count).collect());
    }
    let (mut remaining, mut counts) = (granules, vec![0; costs.len()]);
    for (count, chosen) in counts.iter_mut().zip(&chosen).rev() {
        *count = chosen[remaining];
        remaining -= *count;
    }
    counts
}

impl Partitioner for Opt {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let granules = self.settings.granules;
        let size = |count: u32| share::granules_blocks(total_blocks, granules, count);
        let fresh = tenants.iter().all(|tenant| tenant.quota_blocks == 0);
        let equal = share::equal(total_blocks, tenants.len());
        let now = |(tenant, equal): (&TenantView, u32)| {
            if fresh { equal } else { tenant.quota_blocks }
        };
        let now: Vec<u32> = tenants.iter().zip(equal.iter().copied()).map(now).collect();
        let slowdowns =
            tenants.iter().map(|tenant| slowdowns(tenant.future_ns.unwrap_or_default(), granules));
        let slowdowns: Vec<Option<Vec<u64>>> = slowdowns.collect();
        if slowdowns.iter().all(Option::is_none) {
            let kept = CacheDivision::PerTenant(now);
            let floor = self.floor_blocks(tenants.len(), total_blocks);
            let fits = kept.audit(tenants.len(), total_blocks, floor).is_ok();
            return if fits { kept } else { CacheDivision::PerTenant(equal) };
        }
        let costs = now.into_iter().zip(&slowdowns).map(|(now, slowdowns)| {
            let cost = |count: u32| {
                let slowdown = slowdowns.as_ref().map_or(0, |known| known[count as usize]);
                (slowdown, u64::from(size(count).abs_diff(now)))
            };
            (0..=granules).map(cost).collect()
        });
        let counts = cheapest(&costs.collect::<Vec<_>>(), granules as usize);
        let weights: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
        CacheDivision::PerTenant(share::proportional_above(
            total_blocks,
            &weights,
            self.settings.floor_blocks,
        ))
    }

    fn floor_blocks(&self, tenants: usize, total_blocks: u32) -> u32 {
        share::feasible_floor(self.settings.floor_blocks, tenants, total_blocks)
    }

    fn granules(&self) -> u32 {
        self.settings.granules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn opt(granules: u32) -> Opt {
        let settings = OptSettings { granules, ..OptSettings::default() };
        Opt::new(&settings, 2, Seed(1))
    }

    fn divided(futures: &[&[f64]], quotas: &[u32], total_blocks: u32) -> Vec<u32> {
        let granules = futures.iter().map(|future| future.len()).max().unwrap_or(1) as u32 - 1;
        let views: Vec<TenantView> = futures
            .iter()
            .zip(quotas)
            .map(|(future, quota_blocks)| TenantView {
                future_ns: Some(future),
                quota_blocks: *quota_blocks,
                ..TenantView::default()
            })
            .collect();
        let quotas = opt(granules).divide(&views, total_blocks);
        assert!(matches!(quotas, CacheDivision::PerTenant(_)));
        let CacheDivision::PerTenant(each) = quotas else { return Vec::new() };
        each
    }

    #[test]
    fn the_least_mean_slowdown_by_hand() {
        // 0 to 4 granules: slowdowns 9, 8, 2, 1, 1 and 3, 2, 1.5, 1.2, 1. Sums with 4 granules in
        // all: 9 + 1, 8 + 1.2, 2 + 1.5, 1 + 2, 1 + 3.
        let cliff = [90.0, 80.0, 20.0, 10.0, 10.0];
        let slope = [300.0, 200.0, 150.0, 120.0, 100.0];
        assert_eq!(divided(&[&cliff, &slope], &[0, 0], 400), [300, 100]);
        assert_eq!(divided(&[&slope, &cliff], &[200, 200], 400), [100, 300]);
        // An idle tenant keeps the granules that no tenant needs: the cliff is flat from 3 granules
        // on.
        assert_eq!(divided(&[&cliff, &[]], &[200, 200], 400), [300, 100]);
        assert_eq!(divided(&[&cliff, &[0.0; 5]], &[399, 1], 400), [399, 1], "a floor of a block");
    }

    #[test]
    fn without_knowledge_nothing_moves() {
        assert_eq!(divided(&[&[], &[], &[0.0; 11]], &[0, 0, 0], 1000), [334, 333, 333]);
        assert_eq!(divided(&[&[], &[0.0; 11]], &[703, 297], 1000), [703, 297]);
        assert_eq!(divided(&[&[], &[0.0; 11]], &[703, 200], 1000), [500, 500], "another cache");
    }

    /// The smallest cost by exhaustive search.
    fn slow(costs: &[Vec<DivisionCost>], granules: usize) -> DivisionCost {
        let Some((own, rest)) = costs.split_first() else {
            return if granules == 0 { (0, 0) } else { (u64::MAX, u64::MAX) };
        };
        let sum = |count: usize| {
            let (more, moved) = slow(rest, granules - count);
            (more.saturating_add(own[count].0), moved.saturating_add(own[count].1))
        };
        (0..=granules).map(sum).min().unwrap_or((u64::MAX, u64::MAX))
    }

    proptest! {
        #[test]
        fn it_is_as_good_as_trying_everything(
            (granules, costs) in (1..8_usize, 1..5_usize).prop_flat_map(|(granules, tenants)| {
                let own = prop::collection::vec((0..6_u64, 0..4_u64), granules + 1);
                (Just(granules), prop::collection::vec(own, tenants))
            }),
        ) {
            let counts = cheapest(&costs, granules);
            prop_assert_eq!(counts.iter().sum::<usize>(), granules);
            let cost = |part: fn(&DivisionCost) -> u64| -> u64 {
                costs.iter().zip(&counts).map(|(own, count)| part(&own[*count])).sum()
            };
            prop_assert_eq!((cost(|cost| cost.0), cost(|cost| cost.1)), slow(&costs, granules));
        }

        #[test]
        fn quotas_keep_the_rules(
            futures in prop::collection::vec(prop::collection::vec(0.0..1e9_f64, 11), 1..5),
            quotas in prop::collection::vec(0..1000_u32, 5),
            total_blocks in 1..5000_u32,
        ) {
            let futures: Vec<&[f64]> = futures.iter().map(Vec::as_slice).collect();
            let each = divided(&futures, &quotas, total_blocks);
            let floor = opt(10).floor_blocks(futures.len(), total_blocks);
            prop_assert_eq!(
                CacheDivision::PerTenant(each).audit(futures.len(), total_blocks, floor), Ok(())
            );
        }
    }
}
