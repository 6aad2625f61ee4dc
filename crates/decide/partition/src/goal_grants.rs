//! What goals claim of a cache, and which claims are granted.
//!
//! For: partitioners that keep goals by curves. Must never know: what a goal is beside a hit ratio,
//! how curves were measured. Units: blocks; hit ratios from 0 to 1.
//!
//! Curves hold first accesses, which no size saves, and most of them come early. So a goal that no
//! size keeps by the curves so far is a forecast and no verdict, as long as the whole cache would
//! keep it without first accesses. Each claim is therefore granted up to an equal share first,
//! which always fits. Then come claims beyond the share whose goals are in reach, in ascending
//! order as in Patrick et al., and last what is claimed for goals out of reach for good.

use cachewright_curve::Curve;

/// Part of the hits that a tenant can have at all, without which a size is nearly all that helps.
const NEARLY: f64 = 0.01;

/// What curves say of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Some size keeps it.
    InReach,
    /// The cache would keep it without first accesses.
    Open,
    /// The cache would not.
    OutOfReach,
}

/// Hit ratios of a tenant, by its goal and what it had so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// The goal.
    pub goal: f64,
    /// What keeps it from now on, with something to spare; 1 as long as nothing is spared.
    pub safe: f64,
    /// What makes up for the past for as long again, or what is left of it is enough.
    pub corrected: f64,
}

/// What a tenant claims for its goal, in blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalClaim {
    /// What keeps the goal safely, nearly all that helps as long as it is not safe; at least an
    /// equal share where no size keeps the goal.
    pub safe: u32,
    /// What is enough for the goal from now on.
    pub enough: u32,
    /// What also makes up for the past.
    pub corrected: u32,
    /// What curves say of the goal.
    pub outlook: Outlook,
    /// Hits that the whole cache would give, by the first curve. Of equal claims the one with more
    /// is granted first.
    pub hits: f64,
}

impl GoalClaim {
    /// The claim of a tenant by several curves, by the one that asks for most.
    pub fn new(curves: &[&Curve], ratios: Ratios, (share, total_blocks): (u32, u32)) -> GoalClaim {
        let reached = |curve: &&Curve| smallest(curve, ratios.goal, total_blocks).is_some();
        let open = |curve: &&Curve| {
            let again = curve.accesses() as f64 - curve.misses(u32::MAX);
            curve.accesses() as f64 - curve.misses(total_blocks) >= ratios.goal * again
        };
        let outlook = match () {
            () if curves.iter().any(reached) => Outlook::InReach,
            () if curves.iter().any(open) => Outlook::Open,
            () => Outlook::OutOfReach,
        };
        let blocks_for = |ratio: f64| {
            let blocks = |curve: &&Curve| {
                let enough = smallest(curve, ratio, total_blocks);
                enough.unwrap_or_else(|| nearly_all(curve, total_blocks))
            };
            curves.iter().map(blocks).max().unwrap_or(0)
        };
        let minimum = if outlook == Outlook::InReach { 0 } else { share };
        let Ratios { goal, safe, corrected } = ratios;
        GoalClaim {
            safe: blocks_for(safe).max(minimum),
            enough: blocks_for(goal.min(corrected)),
            corrected: blocks_for(corrected),
            outlook,
            hits: curves
                .first()
                .map_or(0.0, |curve| curve.accesses() as f64 - curve.misses(total_blocks)),
        }
    }
}

/// The smallest size with a hit ratio of `target`, if it is at most `max_blocks`.
pub fn smallest(curve: &Curve, target: f64, max_blocks: u32) -> Option<u32> {
    fewest(curve, (1.0 - target) * curve.accesses() as f64, max_blocks)
}

/// The smallest size with nearly all hits that `max_blocks` give.
fn nearly_all(curve: &Curve, max_blocks: u32) -> u32 {
    let fewest_misses = curve.misses(max_blocks);
    let misses = fewest_misses + NEARLY * (curve.accesses() as f64 - fewest_misses);
    fewest(curve, misses, max_blocks).unwrap_or(max_blocks)
}

/// The smallest size with at most so many misses, if it is at most `max_blocks`.
fn fewest(curve: &Curve, misses: f64, max_blocks: u32) -> Option<u32> {
    let (mut low, mut high) = (0, max_blocks.min(curve.largest_blocks()));
    if curve.misses(high) > misses {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if curve.misses(middle) <= misses { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// What is guaranteed and what is granted of the claims, at least the floor to each tenant. `share`
/// is an equal share or less, and at least the floor. A guarantee is part of a grant: the share,
/// and what is enough for goals in reach.
pub fn grants(
    claims: &[Option<GoalClaim>],
    (share, floor): (u32, u32),
    total_blocks: u32,
) -> (Vec<u32>, Vec<u32>) {
    let claimed = |outlook: Outlook, blocks: fn(GoalClaim) -> u32, cut: u32| {
        let own = move |claim: &Option<GoalClaim>| claim.filter(|claim| claim.outlook == outlook);
        claims.iter().map(move |claim| own(claim).map_or(0, |claim| blocks(claim).min(cut)))
    };
    let hits = |tenant: usize| claims[tenant].map_or(0.0, |claim| claim.hits);
    let mut grants = vec![floor; claims.len()];
    let mut free = total_blocks - floor * claims.len() as u32;
    let mut grant = |grants: &mut [u32], claimed: &mut dyn Iterator<Item = u32>| {
        let mut wanted: Vec<(u32, usize)> = claimed.zip(0..).collect();
        wanted.sort_unstable_by(|(blocks, tenant), (others, other)| {
            let more = hits(*other).total_cmp(&hits(*tenant));
            blocks.cmp(others).then(more).then(tenant.cmp(other))
        });
        for (blocks, tenant) in wanted {
            let more = blocks.saturating_sub(grants[tenant]);
            if more <= free {
                grants[tenant] += more;
                free -= more;
            }
        }
    };
    let safe = |claim: GoalClaim| claim.safe;
    grant(&mut grants, &mut claimed(Outlook::InReach, safe, share));
    grant(&mut grants, &mut claimed(Outlook::Open, safe, share));
    grant(&mut grants, &mut claimed(Outlook::InReach, |claim| claim.enough, u32::MAX));
    let guarantees = grants.clone();
    grant(&mut grants, &mut claimed(Outlook::OutOfReach, safe, share));
    grant(&mut grants, &mut claimed(Outlook::InReach, |claim| claim.corrected, u32::MAX));
    grant(&mut grants, &mut claimed(Outlook::Open, safe, u32::MAX));
    (guarantees, grants)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::Provenance;

    fn curve(knots: &[(u32, f64)]) -> Curve {
        Curve::from_knots(knots.iter().copied(), 100, Provenance::Exact)
    }

    fn claim(blocks: u32, outlook: Outlook) -> Option<GoalClaim> {
        Some(GoalClaim { safe: blocks, enough: blocks, corrected: blocks, outlook, hits: 0.0 })
    }

    #[test]
    fn first_accesses_make_a_goal_a_forecast_and_no_verdict() {
        // 60 of 100 are first accesses. No size has 50 hits, but a repeat finds 40 of 40 in 80.
        let early = curve(&[(0, 100.0), (80, 60.0)]);
        let behind = Ratios { goal: 0.5, safe: 1.0, corrected: 0.6 };
        // All 40 hits but 1 % of them: 39.6 of 40 hits are 79.2 of 80 blocks.
        let outlook = Outlook::Open;
        let all = GoalClaim { safe: 80, enough: 80, corrected: 80, outlook, hits: 40.0 };
        assert_eq!(GoalClaim::new(&[&early], behind, (50, 200)), all);
        let claim = GoalClaim::new(&[&early], behind, (90, 200));
        assert_eq!(claim, GoalClaim { safe: 90, ..all }, "at least a share");
        // In 30 blocks 15 of 40 repeats hit: less than a half.
        let claim = GoalClaim::new(&[&early], behind, (15, 30));
        assert_eq!((claim.safe, claim.outlook), (30, Outlook::OutOfReach));
        // Nothing was used twice so far, which says nothing.
        let claim = GoalClaim::new(&[&curve(&[])], behind, (15, 30));
        assert_eq!((claim.safe, claim.outlook), (15, Outlook::Open));
    }

    #[test]
    fn the_curve_that_asks_for_most_counts_and_one_in_reach_is_enough() {
        let (whole, late) = (curve(&[(0, 100.0), (50, 0.0)]), curve(&[(0, 100.0), (40, 80.0)]));
        let ahead = Ratios { goal: 0.6, safe: 0.6, corrected: 0.5 };
        // 30 blocks by the mean. Lately no size has 60 hits; 40 blocks are all that helps.
        let found = GoalClaim::new(&[&whole, &late], ahead, (70, 100));
        let outlook = Outlook::InReach;
        let all = GoalClaim { safe: 40, enough: 40, corrected: 40, outlook, hits: 100.0 };
        assert_eq!(found, all);
        let found = GoalClaim::new(&[&whole], ahead, (70, 100));
        assert_eq!((found.safe, found.enough, found.corrected), (30, 25, 25));
        let behind = Ratios { goal: 0.6, safe: 1.0, corrected: 0.7 };
        let found = GoalClaim::new(&[&whole], behind, (70, 100));
        // 100 hits are 50 blocks, which is all that helps: a size has them all.
        assert_eq!((found.safe, found.enough, found.corrected), (50, 30, 35));
    }

    #[test]
    fn claims_up_to_an_equal_share_are_granted_to_all_then_larger_ones_in_reach() {
        let claims = [
            claim(80, Outlook::InReach),
            claim(50, Outlook::Open),
            claim(20, Outlook::InReach),
            None,
        ];
        // 30 + 30 + 20 + 1 leave 39 of 120: too little for 80, and the second asks for 50.
        let found = grants(&claims, (30, 1), 120);
        assert_eq!(found, (vec![30, 30, 20, 1], vec![30, 50, 20, 1]));
        // In 140 the first has its 80, and nothing beyond the share is left for a forecast.
        assert_eq!(grants(&claims, (35, 1), 140).1, [80, 35, 20, 1]);
        // Smaller demands come first beyond the share.
        let claims = [claim(70, Outlook::InReach), claim(60, Outlook::InReach), None];
        assert_eq!(grants(&claims, (33, 1), 100).1, [33, 60, 1]);
        // Of equal ones that with more hits, whichever place it has.
        let more = claim(60, Outlook::InReach).map(|claim| GoalClaim { hits: 9.0, ..claim });
        let claims = [claim(60, Outlook::InReach), more, None];
        assert_eq!(grants(&claims, (33, 1), 100).1, [33, 60, 1]);
    }

    #[test]
    fn a_goal_from_now_on_comes_first_then_one_out_of_reach_then_the_past() {
        let outlook = Outlook::InReach;
        let behind = Some(GoalClaim { safe: 30, enough: 40, corrected: 70, outlook, hits: 0.0 });
        let claims = [behind, claim(30, Outlook::OutOfReach), None];
        assert_eq!(grants(&claims, (30, 1), 90).1, [40, 30, 1]);
        assert_eq!(grants(&claims, (40, 1), 120).1, [70, 30, 1]);
    }

    #[test]
    fn a_goal_out_of_reach_for_good_has_what_others_leave() {
        let claims = [claim(90, Outlook::OutOfReach), claim(60, Outlook::InReach)];
        let found = grants(&claims, (50, 1), 100);
        assert_eq!(found, (vec![1, 60], vec![1, 60]), "40 are less than its share");
        assert_eq!(grants(&claims, (60, 1), 120).1, [60, 60]);
        assert_eq!(grants(&[], (0, 0), 10).1, [0; 0]);
    }
}
