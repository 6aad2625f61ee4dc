//! `soft-qos` by the paper's examples, and tenants that fall silent.
//!
//! For: grants and divisions. Must never know: devices. Units: blocks; hit ratios from 0 to 1.

use super::*;
use crate::{TenantConstants, TenantGoal};

/// Facts of a tenant with a goal.
pub(super) fn facts(hit_ratio: f64, profile: &[(u32, f64)]) -> TenantConstants {
    let goal = TenantGoal { hit_ratio: Some(hit_ratio), profile: profile.to_vec(), response: None };
    TenantConstants { goal: Some(goal), ..TenantConstants::default() }
}

fn claims(demands: [u32; 3], gains: [f64; 3]) -> Vec<Claim> {
    let claim = |(demand, gain)| Claim { demand_blocks: Some(demand), gain };
    demands.into_iter().zip(gains).map(claim).collect()
}

#[test]
fn the_papers_first_example() {
    let (now, best) = ([0.70, 0.90, 0.90], [0.85, 0.92, 0.95]);
    let gains = [0, 1, 2].map(|tenant| best[tenant] - now[tenant]);
    let quotas = grant(&claims([15, 30, 30], gains), 100);
    assert_eq!(quotas, [15 + 17, 30 + 2, 30 + 6]);
}

#[test]
fn the_papers_second_example() {
    assert_eq!(grant(&claims([80, 70, 40], [0.1; 3]), 100), [30, 30, 40]);
}

#[test]
fn a_goal_out_of_reach_is_flagged_and_shares_what_is_left() {
    let mut claims = claims([10, 20, 30], [0.0; 3]);
    claims[1].demand_blocks = None;
    assert_eq!(grant(&claims, 100), [10, 60, 30]);
    assert_eq!(grant(&claims, 35), [10, 13, 12]);
}

#[test]
fn every_tenant_keeps_a_block() {
    let mut quotas = vec![0, 100, 0];
    share::raise(&mut quotas, &[1; 3]);
    assert_eq!(quotas, [1, 98, 1]);
    let mut none = vec![0, 0];
    share::raise(&mut none, &[1; 2]);
    assert_eq!(none, [0, 0]);
}

#[test]
fn unequal_demands_are_met_in_ascending_order_whatever_the_order_of_tenants() {
    let demands = [400_u32, 90, 250, 10];
    let claim = |demand| Claim { demand_blocks: Some(demand), gain: f64::from(demand) / 1e3 };
    for total in [0, 9, 10, 99, 100, 349, 350, 500, 749, 750, 2000] {
        let quotas = grant(&demands.map(claim), total);
        let turned = grant(&[2, 0, 3, 1].map(|index| claim(demands[index])), total);
        for (place, tenant) in [2, 0, 3, 1].into_iter().enumerate() {
            assert!(turned[place].abs_diff(quotas[tenant]) <= 1, "{total}: {quotas:?}");
        }
        let (mut ascending, mut free) = (demands, total);
        ascending.sort_unstable();
        let met = ascending.iter().take_while(|&&demand| {
            let fits = demand <= free;
            free -= if fits { demand } else { 0 };
            fits
        });
        let met = met.count();
        let got = demands.iter().zip(&quotas).filter(|(demand, quota)| quota >= demand);
        assert!(got.count() >= met, "{total}: {quotas:?}");
        assert_eq!(quotas.iter().sum::<u32>(), total);
    }
}

#[test]
fn what_was_measured_moves_the_demand() {
    let mut soft = SoftQos::new(&SoftQosSettings::default(), 2, Seed(1));
    let profiles = [[(1, 0.0), (50, 0.4), (100, 0.9)], [(1, 0.2), (50, 0.3), (100, 0.3)]];
    let facts = [facts(0.4, &profiles[0]), facts(0.25, &profiles[1])];
    let view = |tenant: usize, accesses, hits| TenantView {
        facts: &facts[tenant],
        accesses,
        hits,
        ..TenantView::default()
    };
    let first = soft.divide(&[view(0, 0, 0), view(1, 0, 0)], 100);
    // Demands 50 and 26; 24 blocks by the gains 0.5 and 0.05.
    assert_eq!(first, CacheDivision::PerTenant(vec![72, 28]));
    // The first meets its goal with ease, the second measures what it had known.
    let second = soft.divide(&[view(0, 100, 90), view(1, 100, 25)], 100);
    assert_eq!(soft.table(0).map(|table| table.hit_ratio_at(72)), Some(0.9));
    let CacheDivision::PerTenant(second) = second else { panic!("quotas of its own for each") };
    assert!(second[1] > 28 && second.iter().sum::<u32>() == 100, "{second:?}");
}

#[test]
fn a_tenant_that_sleeps_keeps_its_table_and_lends_its_blocks_if_allowed() {
    const SILENT: (u64, u64) = (0, 0);
    let facts = facts(0.4, &[(1, 0.0), (50, 0.5), (100, 0.6)]);
    let view =
        |(accesses, hits)| TenantView { facts: &facts, accesses, hits, ..TenantView::default() };
    let quotas =
        |soft: &mut SoftQos, counts: [(u64, u64); 2]| match soft.divide(&counts.map(view), 100) {
            CacheDivision::PerTenant(quotas) => quotas,
            other => panic!("quotas of its own for each, not {other:?}"),
        };
    for lend_after in [0, 3] {
        let settings = SoftQosSettings { lend_after, ..SoftQosSettings::default() };
        let mut soft = SoftQos::new(&settings, 2, Seed(1));
        quotas(&mut soft, [SILENT; 2]);
        let awake = quotas(&mut soft, [(100, 50); 2]);
        assert_eq!(quotas(&mut soft, [SILENT; 2]), awake, "nothing was learned");
        let table = soft.table(1).cloned();
        let asleep: Vec<u32> = (0..6).map(|_| quotas(&mut soft, [(100, 50), SILENT])[1]).collect();
        assert_eq!(soft.table(1).cloned(), table);
        let demand = table.and_then(|table| table.demand(0.4)).unwrap_or(0);
        // The silent interval was the first of the three.
        let kept = if lend_after == 0 { 6 } else { 1 };
        assert!(asleep[..kept].iter().all(|&quota| quota >= demand), "{asleep:?}");
        assert!(asleep[kept..].iter().all(|&quota| quota == 1), "{asleep:?}");
        let hits = if lend_after == 0 { 50 } else { 0 };
        assert!(quotas(&mut soft, [(100, 50), (100, hits)])[1] >= demand, "it is back");
    }
}
