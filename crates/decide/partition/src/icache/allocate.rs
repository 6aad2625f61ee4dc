//! The division of Algorithm 1: from predicted demands to blocks.
//!
//! For: the three states of the cache and what each gives to whom. Must never know: models,
//! features, how demands were found. Source: Li, Sun, Qin, iCache (TCAD 2025), section IV-F and
//! Algorithm 1. Units: granules (equal parts of the cache) in, blocks out; quotas sum to the cache.
//!
//! Within a state more demand never gets less, but for a block of rounding. Across states it may,
//! as in the paper: OAPs of 8 and 2 of 10 granules are given as asked, 9 and 2 (MBP 1 and 1) as 7.5
//! and 2.5.

use crate::share;

/// Demand of one tenant in granules: 1 <= `mbp` <= `oap` <= all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Maximum benefit point: where one more granule shortened responses most.
    pub mbp: u32,
    /// Optimal allocation point: where more is not worth it any longer.
    pub oap: u32,
}

impl Demand {
    /// Shares of the cache as a model gives them, in whole granules of `granules`: the nearest, at
    /// least one, at most all, OAP at least MBP. What is not a number is one granule, as for a
    /// tenant that no cache helps.
    pub fn rounded(mbp_share: f64, oap_share: f64, granules: u32) -> Demand {
        let all = granules.max(1);
        let round = |share: f64| (share * f64::from(all)).round().max(1.0).min(f64::from(all));
        let mbp = round(mbp_share) as u32;
        Demand { mbp, oap: mbp.max(round(oap_share) as u32) }
    }
}

/// How demands compare with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resources {
    /// All OAPs fit.
    Abundant,
    /// All MBPs fit, but not all OAPs.
    Strained,
    /// Not even all MBPs fit.
    Constrained,
}

impl Resources {
    /// The state of a cache of so many granules.
    pub fn of(demands: &[Demand], granules: u32) -> Resources {
        let sum = |part: fn(&Demand) -> u32| demands.iter().map(part).map(u64::from).sum::<u64>();
        if sum(|demand| demand.oap) <= u64::from(granules) {
            Resources::Abundant
        } else if sum(|demand| demand.mbp) <= u64::from(granules) {
            Resources::Strained
        } else {
            Resources::Constrained
        }
    }
}

/// Who gets what nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// This tenant alone.
    To(usize),
    /// Everyone, in proportion to OAP.
    Spread,
}

/// Divides `total_blocks`, cut into `granules`, by the state they are in.
pub fn allocate(
    demands: &[Demand],
    granules: u32,
    total_blocks: u32,
    remains: Remains,
) -> (Resources, Vec<u32>) {
    let state = Resources::of(demands, granules);
    let parts = |part: fn(&Demand) -> u32| -> Vec<f64> {
        demands.iter().map(|demand| f64::from(part(demand))).collect()
    };
    let (mbps, oaps) = (parts(|demand| demand.mbp), parts(|demand| demand.oap));
    let (sum_mbp, sum_oap) = (mbps.iter().sum::<f64>(), oaps.iter().sum::<f64>());
    let quotas = match (state, remains) {
        (Resources::Abundant, Remains::Spread) => share::proportional(total_blocks, &oaps),
        (Resources::Abundant, Remains::To(tenant)) => {
            let idle = f64::from(granules) - sum_oap;
            let weights: Vec<f64> = oaps.iter().copied().chain([idle]).collect();
            let mut quotas = share::proportional(total_blocks, &weights);
            let idle = quotas.pop().unwrap_or(0);
            if let Some(quota) = quotas.get_mut(tenant) {
                *quota += idle;
            }
            quotas
        }
        (Resources::Strained, _) => {
            let extra = f64::from(granules) - sum_mbp;
            let both = mbps.iter().zip(&oaps);
            let weights: Vec<f64> = both.map(|(mbp, oap)| mbp + extra * oap / sum_oap).collect();
            share::proportional(total_blocks, &weights)
        }
        (Resources::Constrained, _) => share::proportional(total_blocks, &mbps),
    };
    (state, quotas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demands(pairs: &[(u32, u32)]) -> Vec<Demand> {
        pairs.iter().map(|&(mbp, oap)| Demand { mbp, oap }).collect()
    }

    #[test]
    fn an_abundant_cache_gives_what_is_asked_and_the_rest_to_one_or_to_all() {
        // OAPs of 3 and 2 of 10 granules of 100 blocks; 5 granules remain.
        let asked = demands(&[(1, 3), (2, 2)]);
        let alone = allocate(&asked, 10, 1000, Remains::To(1));
        assert_eq!(alone, (Resources::Abundant, vec![300, 700]));
        let all = allocate(&asked, 10, 1000, Remains::Spread);
        assert_eq!(all, (Resources::Abundant, vec![600, 400]));
        let full = allocate(&demands(&[(1, 8), (1, 2)]), 10, 1000, Remains::To(1));
        assert_eq!(full, (Resources::Abundant, vec![800, 200]), "OAPs fill it exactly");
    }

    #[test]
    fn a_strained_cache_gives_mbp_and_what_is_left_by_oap() {
        // MBPs take 5 granules; the other 5 go 9 : 6, thus 3 and 2.
        let strained = allocate(&demands(&[(4, 9), (1, 6)]), 10, 1000, Remains::To(0));
        assert_eq!(strained, (Resources::Strained, vec![700, 300]));
        // 1 + 8 * 9 / 11 and 1 + 8 * 2 / 11 granules: 754.5 and 245.5 blocks.
        let unequal = allocate(&demands(&[(1, 9), (1, 2)]), 10, 1000, Remains::Spread);
        assert_eq!(unequal.1.iter().sum::<u32>(), 1000);
        assert!(unequal.1[0].abs_diff(755) <= 1, "{unequal:?}");
        let exact = allocate(&demands(&[(6, 8), (4, 4)]), 10, 1000, Remains::To(0));
        assert_eq!(exact, (Resources::Strained, vec![600, 400]), "MBPs fill it exactly");
    }

    #[test]
    fn a_constrained_cache_is_divided_by_mbp() {
        let short = allocate(&demands(&[(9, 10), (6, 6), (5, 5)]), 10, 1000, Remains::To(0));
        assert_eq!(short, (Resources::Constrained, vec![450, 300, 250]));
    }

    #[test]
    fn predictions_are_rounded_into_the_cache() {
        let rounded = |mbp, oap| Demand::rounded(mbp, oap, 10);
        assert_eq!(rounded(0.24, 0.56), Demand { mbp: 2, oap: 6 });
        assert_eq!(rounded(0.7, 0.2), Demand { mbp: 7, oap: 7 }, "OAP is not below MBP");
        assert_eq!(rounded(-3.0, 0.04), Demand { mbp: 1, oap: 1 });
        assert_eq!(rounded(0.0, f64::INFINITY), Demand { mbp: 1, oap: 10 });
        assert_eq!(rounded(f64::NAN, f64::NAN), Demand { mbp: 1, oap: 1 });
        assert_eq!(rounded(1.7, f64::NEG_INFINITY), Demand { mbp: 10, oap: 10 });
    }

    /// Granules, and demands of up to eight tenants that are within them.
    fn asked() -> impl Strategy<Value = (u32, Vec<Demand>)> {
        (1_u32..20).prop_flat_map(|granules| {
            let demand = (1..=granules, 0_u32..20)
                .prop_map(move |(mbp, more)| Demand { mbp, oap: (mbp + more).min(granules) });
            (Just(granules), prop::collection::vec(demand, 1..9))
        })
    }

    proptest! {
        #[test]
        fn quotas_sum_to_the_cache_and_keep_what_the_state_promises(
            (granules, demands) in asked(),
            total in prop_oneof![0_u32..100, 0_u32..1_000_000, Just(u32::MAX)],
            to in 0_usize..8,
        ) {
            for remains in [Remains::To(to % demands.len()), Remains::Spread] {
                let (state, quotas) = allocate(&demands, granules, total, remains);
                let sum: u64 = quotas.iter().copied().map(u64::from).sum();
                prop_assert_eq!(sum, u64::from(total));
                let blocks = |part: u32| {
                    (f64::from(total) * f64::from(part) / f64::from(granules)).floor()
                };
                for (demand, &quota) in demands.iter().zip(&quotas) {
                    match state {
                        Resources::Abundant => prop_assert!(f64::from(quota) >= blocks(demand.oap)),
                        Resources::Strained => prop_assert!(f64::from(quota) >= blocks(demand.mbp)),
                        Resources::Constrained => {
                            prop_assert!(f64::from(quota) <= blocks(demand.mbp) + 1.0);
                        }
                    }
                }
            }
        }

        #[test]
        fn who_asks_for_more_gets_no_less_while_the_state_stays(
            (granules, demands) in asked(), at in 0_usize..8, total in 0_u32..100_000,
        ) {
            let at = at % demands.len();
            let Demand { mbp, oap } = demands[at];
            let more = [(mbp + 1, oap.max(mbp + 1)), (mbp, oap + 1)];
            for (mbp, oap) in more.into_iter().filter(|(_, oap)| *oap <= granules) {
                let mut greedy = demands.clone();
                greedy[at] = Demand { mbp, oap };
                for remains in [Remains::To(at), Remains::Spread] {
                    let before = allocate(&demands, granules, total, remains);
                    let after = allocate(&greedy, granules, total, remains);
                    if before.0 == after.0 {
                        prop_assert!(after.1[at] + 1 >= before.1[at], "{before:?} {after:?}");
                    }
                }
            }
        }

        #[test]
        fn equal_demands_get_equal_blocks(
            (granules, demands) in asked(), total in 0_u32..100_000,
        ) {
            let twins: Vec<Demand> = demands.iter().flat_map(|demand| [*demand; 2]).collect();
            let (_, quotas) = allocate(&twins, granules, total, Remains::Spread);
            prop_assert!(quotas.chunks(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1), "{quotas:?}");
        }
    }
}
