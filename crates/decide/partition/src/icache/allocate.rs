//! The division of Algorithm 1: from predicted demands to blocks.
//!
//! For: the three states of the cache, and the division in each. Must never know: models, features,
//! the source of demands. Source: Li, Sun, Qin, iCache (TCAD 2025), section IV-F and Algorithm 1.
//! Units: granules (equal parts of the cache) in, blocks out; quotas sum to the cache.
//!
//! Within a state a larger demand never gets fewer blocks, except for one block of rounding. Across
//! states it may, as in the paper. Of 10 granules, OAPs of 8 and 2 get 8 and 2; OAPs of 9 and 2
//! (MBPs 1 and 1) get 7.5 and 2.5.

use crate::share;

/// Demand of one tenant in granules: 1 <= `mbp` <= `oap` <= all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GranuleDemand {
    /// Maximum benefit point: the size whose last granule shortened responses most.
    pub mbp: u32,
    /// Optimal allocation point: the size from which more granules gain too little.
    pub oap: u32,
}

impl GranuleDemand {
    /// Rounds shares of the cache to whole granules: at least one, at most `granules`, OAP at least
    /// MBP. NaN becomes one granule, as for a tenant that no cache helps.
    pub fn rounded(mbp_share: f64, oap_share: f64, granules: u32) -> GranuleDemand {
        let all = granules.max(1);
        let round = |share: f64| (share * f64::from(all)).round().max(1.0).min(f64::from(all));
        let mbp = round(mbp_share) as u32;
        GranuleDemand { mbp, oap: mbp.max(round(oap_share) as u32) }
    }
}

/// How demands compare with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceState {
    /// All OAPs fit.
    Abundant,
    /// All MBPs fit, but not all OAPs.
    Strained,
    /// Not even all MBPs fit.
    Constrained,
}

impl ResourceState {
    /// The state of a cache of `granules`.
    pub fn classify(demands: &[GranuleDemand], granules: u32) -> ResourceState {
        let sum =
            |part: fn(&GranuleDemand) -> u32| demands.iter().map(part).map(u64::from).sum::<u64>();
        if sum(|demand| demand.oap) <= u64::from(granules) {
            ResourceState::Abundant
        } else if sum(|demand| demand.mbp) <= u64::from(granules) {
            ResourceState::Strained
        } else {
            ResourceState::Constrained
        }
    }
}

/// The division of granules beyond all demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurplusRule {
    /// All to this tenant.
    To(usize),
    /// To all tenants, in proportion to OAP.
    Spread,
}

/// Divides `total_blocks` of `granules` granules by the state of the cache.
pub fn allocate(
    demands: &[GranuleDemand],
    granules: u32,
    total_blocks: u32,
    remains: SurplusRule,
) -> (ResourceState, Vec<u32>) {
    let state = ResourceState::classify(demands, granules);
    let parts = |part: fn(&GranuleDemand) -> u32| -> Vec<f64> {
        demands.iter().map(|demand| f64::from(part(demand))).collect()
    };
    let (mbps, oaps) = (parts(|demand| demand.mbp), parts(|demand| demand.oap));
    let (sum_mbp, sum_oap) = (mbps.iter().sum::<f64>(), oaps.iter().sum::<f64>());
    let quotas = match (state, remains) {
        (ResourceState::Abundant, SurplusRule::Spread) => share::proportional(total_blocks, &oaps),
        (ResourceState::Abundant, SurplusRule::To(tenant)) => {
            let idle = f64::from(granules) - sum_oap;
            let weights: Vec<f64> = oaps.iter().copied().chain([idle]).collect();
            let mut quotas = share::proportional(total_blocks, &weights);
            let idle = quotas.pop().unwrap_or(0);
            if let Some(quota) = quotas.get_mut(tenant) {
                *quota += idle;
            }
            quotas
        }
        (ResourceState::Strained, _) => {
            let extra = f64::from(granules) - sum_mbp;
            let both = mbps.iter().zip(&oaps);
            let weights: Vec<f64> = both.map(|(mbp, oap)| mbp + extra * oap / sum_oap).collect();
            share::proportional(total_blocks, &weights)
        }
        (ResourceState::Constrained, _) => share::proportional(total_blocks, &mbps),
    };
    (state, quotas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demands(pairs: &[(u32, u32)]) -> Vec<GranuleDemand> {
        pairs.iter().map(|&(mbp, oap)| GranuleDemand { mbp, oap }).collect()
    }

    #[test]
    fn an_abundant_cache_gives_what_is_asked_and_the_rest_to_one_or_to_all() {
        // OAPs of 3 and 2 of 10 granules of 100 blocks; 5 granules remain.
        let demand_cases = demands(&[(1, 3), (2, 2)]);
        let alone = allocate(&demand_cases, 10, 1000, SurplusRule::To(1));
        assert_eq!(alone, (ResourceState::Abundant, vec![300, 700]));
        let all = allocate(&demand_cases, 10, 1000, SurplusRule::Spread);
        assert_eq!(all, (ResourceState::Abundant, vec![600, 400]));
        let full = allocate(&demands(&[(1, 8), (1, 2)]), 10, 1000, SurplusRule::To(1));
        assert_eq!(full, (ResourceState::Abundant, vec![800, 200]), "OAPs fill it exactly");
    }

    #[test]
    fn a_strained_cache_gives_mbp_and_what_is_left_by_oap() {
        // MBPs take 5 granules; the other 5 go 9 : 6, thus 3 and 2.
        let strained = allocate(&demands(&[(4, 9), (1, 6)]), 10, 1000, SurplusRule::To(0));
        assert_eq!(strained, (ResourceState::Strained, vec![700, 300]));
        // 1 + 8 * 9 / 11 and 1 + 8 * 2 / 11 granules: 754.5 and 245.5 blocks.
        let unequal = allocate(&demands(&[(1, 9), (1, 2)]), 10, 1000, SurplusRule::Spread);
        assert_eq!(unequal.1.iter().sum::<u32>(), 1000);
        assert!(unequal.1[0].abs_diff(755) <= 1, "{unequal:?}");
        let exact = allocate(&demands(&[(6, 8), (4, 4)]), 10, 1000, SurplusRule::To(0));
        assert_eq!(exact, (ResourceState::Strained, vec![600, 400]), "MBPs fill it exactly");
    }

    #[test]
    fn a_constrained_cache_is_divided_by_mbp() {
        let short = allocate(&demands(&[(9, 10), (6, 6), (5, 5)]), 10, 1000, SurplusRule::To(0));
        assert_eq!(short, (ResourceState::Constrained, vec![450, 300, 250]));
    }

    #[test]
    fn predictions_are_rounded_into_the_cache() {
        let rounded = |mbp, oap| GranuleDemand::rounded(mbp, oap, 10);
        assert_eq!(rounded(0.24, 0.56), GranuleDemand { mbp: 2, oap: 6 });
        assert_eq!(rounded(0.7, 0.2), GranuleDemand { mbp: 7, oap: 7 }, "OAP is not below MBP");
        assert_eq!(rounded(-3.0, 0.04), GranuleDemand { mbp: 1, oap: 1 });
        assert_eq!(rounded(0.0, f64::INFINITY), GranuleDemand { mbp: 1, oap: 10 });
        assert_eq!(rounded(f64::NAN, f64::NAN), GranuleDemand { mbp: 1, oap: 1 });
        assert_eq!(rounded(1.7, f64::NEG_INFINITY), GranuleDemand { mbp: 10, oap: 10 });
    }

    /// Granules, and demands of up to eight tenants within them.
    fn demand_cases() -> impl Strategy<Value = (u32, Vec<GranuleDemand>)> {
        (1_u32..20).prop_flat_map(|granules| {
            let demand = (1..=granules, 0_u32..20).prop_map(move |(mbp, more)| GranuleDemand {
                mbp,
                oap: (mbp + more).min(granules),
            });
            (Just(granules), prop::collection::vec(demand, 1..9))
        })
    }

    proptest! {
        #[test]
        fn quotas_sum_to_the_cache_and_keep_what_the_state_promises(
            (granules, demands) in demand_cases(),
            total in prop_oneof![0_u32..100, 0_u32..1_000_000, Just(u32::MAX)],
            to in 0_usize..8,
        ) {
            for remains in [SurplusRule::To(to % demands.len()), SurplusRule::Spread] {
                let (state, quotas) = allocate(&demands, granules, total, remains);
                let sum: u64 = quotas.iter().copied().map(u64::from).sum();
                prop_assert_eq!(sum, u64::from(total));
                let blocks = |part: u32| {
                    (f64::from(total) * f64::from(part) / f64::from(granules)).floor()
                };
                for (demand, &quota) in demands.iter().zip(&quotas) {
                    match state {
                        ResourceState::Abundant => {
                            prop_assert!(f64::from(quota) >= blocks(demand.oap));
                        }
                        ResourceState::Strained => {
                            prop_assert!(f64::from(quota) >= blocks(demand.mbp));
                        }
                        ResourceState::Constrained => {
                            prop_assert!(f64::from(quota) <= blocks(demand.mbp) + 1.0);
                        }
                    }
                }
            }
        }

        #[test]
        fn a_larger_demand_gets_no_fewer_blocks_in_the_same_state(
            (granules, demands) in demand_cases(), tenant in 0_usize..8, total in 0_u32..100_000,
        ) {
            let tenant = tenant % demands.len();
            let GranuleDemand { mbp, oap } = demands[tenant];
            let more = [(mbp + 1, oap.max(mbp + 1)), (mbp, oap + 1)];
            for (mbp, oap) in more.into_iter().filter(|(_, oap)| *oap <= granules) {
                let mut greedy = demands.clone();
                greedy[tenant] = GranuleDemand { mbp, oap };
                for remains in [SurplusRule::To(tenant), SurplusRule::Spread] {
                    let before = allocate(&demands, granules, total, remains);
                    let after = allocate(&greedy, granules, total, remains);
                    if before.0 == after.0 {
                        let no_fewer = after.1[tenant] + 1 >= before.1[tenant];
                        prop_assert!(no_fewer, "{before:?} {after:?}");
                    }
                }
            }
        }

        #[test]
        fn equal_demands_get_equal_blocks(
            (granules, demands) in demand_cases(), total in 0_u32..100_000,
        ) {
            let twins = demands.iter().flat_map(|demand| [*demand; 2]);
            let twins: Vec<GranuleDemand> = twins.collect();
            let (_, quotas) = allocate(&twins, granules, total, SurplusRule::Spread);
            prop_assert!(quotas.chunks(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1), "{quotas:?}");
        }
    }
}
