//! Whether `soft-qos` recovers from a profile that is too good, by its own rules.
//!
//! For: two tenants whose hit ratios follow known curves. Must never know: devices. Units: blocks;
//! hit ratios from 0 to 1. Result: a point of the profile is corrected only while the tenant has
//! exactly that size. A tenant that gets its demand corrects it. A tenant that gets more is stuck,
//! because its blocks beyond the demand depend on the gains of the others.

use super::tests::facts;
use super::{SoftQos, SoftQosSettings};
use crate::registry::Registered;
use crate::{CacheDivision, Partitioner, TenantView};
use cachewright_types::Seed;

const TOTAL: u32 = 120;
/// The smallest size at which the first tenant hits.
const CLIFF: u32 = 78;
const GOAL: f64 = 0.8;
const ACCESSES: u64 = 1000;
/// Profile of the first tenth of its trace, where one block meets the goal; and of the whole trace.
const FLATTERED: [(u32, f64); 3] = [(1, 0.8), (60, 0.85), (120, 0.9)];
const HONEST: [(u32, f64); 3] = [(1, 0.0), (60, 0.0), (120, 0.9)];
const OTHER: [(u32, f64); 3] = [(1, 0.01), (60, 0.6), (120, 1.0)];

/// Quotas of the first tenant, and its hit ratio over the second half.
fn settles(profile: &[(u32, f64)], other_goal: f64, cumulative: bool) -> (Vec<u32>, f64) {
    let settings = SoftQosSettings { cumulative, ..SoftQosSettings::default() };
    let mut scheme = SoftQos::new(&settings, 2, Seed(1));
    let (flattered, other) = (facts(GOAL, profile), facts(other_goal, &OTHER));
    let (mut quotas, mut given, mut hits) = (vec![0, 0], Vec::new(), 0);
    for interval in 0..400 {
        let cliff = if quotas[0] >= CLIFF { 900 } else { 0 };
        let slope = u64::from(quotas[1].min(100)) * 10;
        let view = |hits, facts| TenantView {
            facts,
            accesses: if interval == 0 { 0 } else { ACCESSES },
            hits: if interval == 0 { 0 } else { hits },
            ..TenantView::default()
        };
        let views = [view(cliff, &flattered), view(slope, &other)];
        let CacheDivision::PerTenant(next) = scheme.divide(&views, TOTAL) else {
            return (given, 0.0);
        };
        hits += if interval >= 200 { cliff } else { 0 };
        given.push(next[0]);
        quotas = next;
    }
    (given, hits as f64 / (200 * ACCESSES) as f64)
}

#[test]
fn a_tenant_that_is_given_more_than_a_flattering_demand_is_stuck() {
    for cumulative in [true, false] {
        // 78 and 40 blocks meet both goals. The profile's one block is never tried again.
        let (quotas, ratio) = settles(&FLATTERED, 0.4, cumulative);
        assert!(quotas[399].abs_diff(quotas[300]) <= 1, "nothing moves any more");
        assert!(quotas[10..].iter().all(|quota| (2..CLIFF).contains(quota)), "{quotas:?}");
        assert!(ratio < GOAL, "{ratio}");
    }
}

#[test]
fn a_tenant_held_at_its_demand_corrects_its_profile() {
    for cumulative in [true, false] {
        // The other's goal cannot be met beside it, so that nothing is left to give.
        let (quotas, ratio) = settles(&FLATTERED, 0.99, cumulative);
        assert_eq!(quotas[0], 1, "the flattering demand");
        assert!(ratio >= GOAL, "{ratio} {quotas:?}");
    }
}

#[test]
fn a_profile_of_the_whole_application_is_enough() {
    for cumulative in [true, false] {
        let (quotas, ratio) = settles(&HONEST, 0.4, cumulative);
        assert!(ratio >= GOAL, "{ratio} {quotas:?}");
    }
}

/// A tenant with a flat curve and a cold cache in the first interval, beside a tenant that needs
/// all. The ratio recorded then stays for that size, and the demand never falls below it.
#[test]
fn a_cold_start_is_a_wall_that_the_demand_never_passes() {
    for cumulative in [true, false] {
        let settings = SoftQosSettings { cumulative, ..SoftQosSettings::default() };
        let mut scheme = SoftQos::new(&settings, 2, Seed(1));
        let flat = facts(0.9, &[(1, 0.0), (500, 0.99), (1000, 0.99)]);
        let wanting = facts(0.9, &[(1, 0.0), (500, 0.5), (1000, 0.9)]);
        let mut given = Vec::new();
        for interval in 0..300 {
            let hits = if interval == 1 { 500 } else { 990 };
            let view = |hits, facts| TenantView {
                facts,
                accesses: if interval == 0 { 0 } else { ACCESSES },
                hits: if interval == 0 { 0 } else { hits },
                ..TenantView::default()
            };
            let views = [view(hits, &flat), view(300, &wanting)];
            let CacheDivision::PerTenant(next) = scheme.divide(&views, 1000) else { return };
            given.push(next[0]);
        }
        let cold = given[0];
        assert!(cold > 400, "nine tenths of half the cache: {cold}");
        assert!(given[1..].iter().all(|quota| *quota > cold), "{given:?}");
    }
}
