//! Divisions of whole blocks: in proportion to shares, where curves fall most, or by the least sum
//! of costs. The sum is always exact.

use crate::opt;
use cachewright_curve::Curve;
use cachewright_curve::hull::{Hull, divide};

/// `total_blocks` in proportion to `weights`, by largest remainder (Hamilton's method). Each tenant
/// gets the floor of its share; then the largest fractions get one block each, the earlier tenant
/// first among equals. Weights that are negative or not finite count as 0; if all are 0, the shares
/// are equal.
pub fn proportional(total_blocks: u32, weights: &[f64]) -> Vec<u32> {
    let clean = |weight: &f64| if weight.is_finite() { weight.max(0.0) } else { 0.0 };
    let largest = weights.iter().map(clean).fold(0.0, f64::max);
    if largest <= 0.0 {
        return equal(total_blocks, weights.len());
    }
    let weights: Vec<f64> = weights.iter().map(|weight| clean(weight) / largest).collect();
    let sum: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|w| f64::from(total_blocks) * w / sum).collect();
    let mut quotas: Vec<u32> = exact.iter().map(|share| share.floor() as u32).collect();
    let granted: u64 = quotas.iter().copied().map(u64::from).sum();
    let remaining = u64::from(total_blocks).saturating_sub(granted) as usize;
    let mut order: Vec<usize> = (0..quotas.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    for &tenant in order.iter().cycle().take(remaining) {
        quotas[tenant] += 1;
    }
    quotas
}

/// As [`proportional`], with at least `floor_blocks` for each tenant. Tenants with a smaller share
/// get the floor; the others divide the rest.
pub fn proportional_above(total_blocks: u32, weights: &[f64], floor_blocks: u32) -> Vec<u32> {
    let floor = feasible_floor(floor_blocks, weights.len(), total_blocks);
    let mut low = vec![false; weights.len()];
    loop {
        let held = low.iter().filter(|&&is_low| is_low).count() as u32 * floor;
        let open: Vec<usize> = (0..weights.len()).filter(|&tenant| !low[tenant]).collect();
        let open_weights: Vec<f64> = open.iter().map(|&tenant| weights[tenant]).collect();
        let shares = proportional(total_blocks - held, &open_weights);
        let below: Vec<usize> =
            open.iter().zip(&shares).filter(|(_, s)| **s < floor).map(|(&t, _)| t).collect();
        if below.is_empty() {
            let mut quotas = vec![floor; weights.len()];
            for (&tenant, &blocks) in open.iter().zip(&shares) {
                quotas[tenant] = blocks;
            }
            return quotas;
        }
        for tenant in below {
            low[tenant] = true;
        }
    }
}

/// `total_blocks` in equal shares; the first tenants get the remainder, one block each.
pub fn equal(total_blocks: u32, tenants: usize) -> Vec<u32> {
    let count = tenants.max(1) as u32;
    let (each, remaining) = (total_blocks / count, total_blocks % count);
    (0..tenants as u32).map(|tenant| each + u32::from(tenant < remaining)).collect()
}

/// The feasible floor: the floor wanted, or an equal share if that is less.
pub fn feasible_floor(wanted_blocks: u32, tenants: usize, total_blocks: u32) -> u32 {
    wanted_blocks.min(total_blocks / tenants.max(1) as u32)
}

/// Blocks of `count` of the `granules` of a cache, rounded to the nearest.
pub fn granules_blocks(total_blocks: u32, granules: u32, count: u32) -> u32 {
    let (total, parts) = (u64::from(total_blocks), u64::from(granules.max(1)));
    ((total * u64::from(count.min(granules)) + parts / 2) / parts) as u32
}

/// The tenant that holds most blocks, the earlier among equals.
pub fn largest_holder(held: &[u32]) -> Option<usize> {
    (0..held.len()).max_by_key(|tenant| (held[*tenant], std::cmp::Reverse(*tenant)))
}

/// Quotas cut to limits. The blocks cut go to tenants below their limits, in proportion to their
/// quotas, as far as the limits allow.
pub fn within(quotas: &[u32], limits: &[u32]) -> Vec<u32> {
    let mut bounded: Vec<u32> = quotas.iter().zip(limits).map(|(q, limit)| *q.min(limit)).collect();
    let sum = |blocks: &[u32]| blocks.iter().copied().map(u64::from).sum::<u64>();
    let mut remaining = (sum(quotas) - sum(&bounded)) as u32;
    while remaining > 0 {
        let open: Vec<usize> =
            (0..bounded.len()).filter(|&tenant| bounded[tenant] < limits[tenant]).collect();
        if open.is_empty() {
            break;
        }
        let weights: Vec<f64> =
            open.iter().map(|&tenant| f64::from(quotas[tenant].max(1))).collect();
        for (&tenant, share) in open.iter().zip(proportional(remaining, &weights)) {
            let more = share.min(limits[tenant] - bounded[tenant]);
            bounded[tenant] += more;
            remaining -= more;
        }
    }
    bounded
}

/// Quotas on the way from `old` to `new`: at most `share` (0 to 1) of all blocks move. The sum is
/// that of `new`.
pub fn towards(old: &[u32], new: &[u32], share: f64) -> Vec<u32> {
    let sum = |blocks: &[u32]| blocks.iter().copied().map(u64::from).sum::<u64>();
    let max_moved = (share * sum(new) as f64).ceil() as u64;
    let gains: Vec<u32> = old.iter().zip(new).map(|(was, is)| is.saturating_sub(*was)).collect();
    if sum(old) != sum(new) || sum(&gains) <= max_moved {
        return new.to_vec();
    }
    let losses: Vec<u32> = old.iter().zip(new).map(|(was, is)| was.saturating_sub(*is)).collect();
    let part = |changes: &[u32]| {
        let weights: Vec<f64> = changes.iter().copied().map(f64::from).collect();
        proportional(max_moved as u32, &weights)
    };
    let (gained, lost) = (part(&gains), part(&losses));
    old.iter().zip(gained).zip(lost).map(|((was, gain), loss)| was + gain - loss).collect()
}

/// Raises each tenant to its `minimum`. Tenants above their minimum give the blocks, in proportion
/// to their excess. The sum stays; it must be at least that of `minimum`.
pub fn raise(quotas: &mut [u32], minimum: &[u32]) {
    let pairs = || quotas.iter().zip(minimum);
    let missing: Vec<u32> =
        pairs().map(|(quota, minimum)| minimum.saturating_sub(*quota)).collect();
    let beyond = pairs().map(|(quota, minimum)| f64::from(quota.saturating_sub(*minimum)));
    let taken = proportional(missing.iter().sum(), &beyond.collect::<Vec<f64>>());
    for ((quota, more), less) in quotas.iter_mut().zip(missing).zip(taken) {
        *quota = (*quota + more).saturating_sub(less);
    }
}

/// Takes `blocks` (fewer if there are not as many) from what tenants hold beyond `minimum`, in
/// proportion to that, and gives them in proportion to `claims`. Without a claim nothing moves.
pub fn redistribute(quotas: &mut [u32], minimum: &[u32], blocks: u32, claims: &[f64]) {
    if claims.iter().all(|claim| !claim.is_finite() || *claim <= 0.0) {
        return;
    }
    let pairs = || quotas.iter().zip(minimum);
    let beyond: Vec<u32> = pairs().map(|(quota, minimum)| quota.saturating_sub(*minimum)).collect();
    let blocks = blocks.min(beyond.iter().sum());
    let weights: Vec<f64> = beyond.iter().copied().map(f64::from).collect();
    let taken = proportional(blocks, &weights);
    for ((quota, less), more) in quotas.iter_mut().zip(taken).zip(proportional(blocks, claims)) {
        *quota = *quota - less + more;
    }
}

/// The grants, which together must fit, and the spare blocks where the convex minorants of the
/// curves beyond the grants fall most. Blocks that save nothing are divided equally. A tenant whose
/// blocks are lent gets only its grant, unless all are lent.
pub(crate) fn steepest(
    curves: &[&Curve],
    total_blocks: u32,
    grants: &[u32],
    lent: &[bool],
) -> Vec<u32> {
    let parts = curves.iter().zip(grants);
    let hulls: Vec<Hull> = parts.map(|(curve, grant)| Hull::beyond(curve, *grant)).collect();
    let weights: Vec<f64> = lent.iter().map(|lent| if *lent { 0.0 } else { 1.0 }).collect();
    let mut quotas = divide(&hulls, &weights, total_blocks, grants);
    let remaining = total_blocks - quotas.iter().sum::<u32>();
    let spare = proportional(remaining, &weights);
    quotas.iter_mut().zip(spare).for_each(|(quota, more)| *quota += more);
    quotas
}

/// A whole cost as an integer; sums of as many tenants as there can be fit.
const UNIT: f64 = (1_u64 << 40) as f64;

/// How blocks beyond floors are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Granules {
    /// Blocks of a granule; at least 1.
    blocks: u32,
    /// Granules.
    count: u32,
}

impl Granules {
    /// At most `max_count` granules of `blocks` in all.
    fn of_blocks(blocks: u32, max_count: u32) -> Granules {
        let each = blocks.div_ceil(max_count.max(1)).max(1);
        Granules { blocks: each, count: blocks / each }
    }
}

/// The quotas with the least sum of costs, by dynamic programming over granules. Source: Hu et al.,
/// LAMA (ATC 2015), section 3.3: best divisions of the first k tenants from those of the first k -
/// 1. Cost: O(tenants granules^2). Greedy division (Stone, Turek and Wolf, IEEE Trans. Computers
/// 1992) is as good only where every curve is convex.
///
/// Costs become integers relative to the largest, so that sums are exact and no order of tenants
/// matters but among equal divisions. Among equal costs fewer granules are given. The rest, and the
/// blocks that fill no granule, are divided equally among tenants that are open to them.
/// `cost` is that of a tenant with so many blocks; it must
/// be finite and at least 0. Each tenant keeps its floor; the floors together must fit. Tenants
/// that are not `open` get no more than that, unless none is.
pub(crate) fn by_least_cost(
    cost: impl Fn(usize, u32) -> f64,
    total_blocks: u32,
    floors: &[u32],
    open: &[bool],
    max_granules: u32,
) -> Vec<u32> {
    let rest = total_blocks - floors.iter().sum::<u32>();
    let granules = Granules::of_blocks(rest, max_granules);
    let costs = |tenant: usize| -> Vec<f64> {
        let size = |count: u32| floors[tenant] + count * granules.blocks;
        (0..=granules.count).map(|count| cost(tenant, size(count))).collect()
    };
    let rows: Vec<Vec<f64>> = (0..floors.len()).map(costs).collect();
    let counts = fewest(&rows, open, granules.count as usize);
    let mut quotas: Vec<u32> = floors
        .iter()
        .zip(&counts)
        .map(|(floor, count)| floor + *count as u32 * granules.blocks)
        .collect();
    let spare = total_blocks - quotas.iter().sum::<u32>();
    let none_open = open.iter().all(|open| !open);
    let takers: Vec<usize> = (0..floors.len()).filter(|t| none_open || open[*t]).collect();
    for (tenant, more) in takers.iter().zip(equal(spare, takers.len())) {
        quotas[*tenant] += more;
    }
    quotas
}

/// The granules of each tenant with the least sum of costs, and among those the fewest; together
/// at most `granules`.
fn fewest(rows: &[Vec<f64>], open: &[bool], granules: usize) -> Vec<usize> {
    let largest = rows.iter().flatten().copied().fold(0.0, f64::max);
    let scale = if largest > 0.0 { UNIT / largest } else { 0.0 };
    let mut costs: Vec<Vec<(u64, u64)>> = rows
        .iter()
        .zip(open)
        .map(|(row, open)| {
            let count = if *open { row.len() } else { 1 };
            let costs = row.iter().take(count).enumerate();
            costs.map(|(count, cost)| ((cost * scale) as u64, count as u64)).collect()
        })
        .collect();
    // Granules that no tenant takes cost nothing.
    costs.push(vec![(0, 0); granules + 1]);
    let mut counts = opt::cheapest(&costs, granules);
    counts.pop();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_fractions_get_the_remainder() {
        assert_eq!(proportional(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(proportional(10, &[5.0, 3.0, 1.0]), [6, 3, 1]);
        assert_eq!(proportional(7, &[0.0, 0.0]), [4, 3]);
        assert_eq!(proportional(3, &[f64::NAN, 1.0, -1.0]), [0, 3, 0]);
        assert_eq!(proportional_above(100, &[98.0, 1.0, 1.0], 10), [80, 10, 10]);
        assert_eq!(proportional_above(2, &[98.0, 1.0, 1.0], 10), [2, 0, 0]);
        assert_eq!(within(&[50, 30, 20], &[100, 100, 100]), [50, 30, 20]);
        assert_eq!(within(&[50, 30, 20], &[20, 100, 30]), [20, 50, 30], "the third is full first");
        assert_eq!(within(&[50, 0], &[10, 20]), [10, 20], "no tenant is below its limit");
        assert_eq!(proportional(u32::MAX, &[1e300, 1e300]), [1 << 31, (1 << 31) - 1]);
    }

    #[test]
    fn no_more_than_allowed_changes_hands() {
        assert_eq!(towards(&[50, 30, 20], &[20, 30, 50], 0.1), [40, 30, 30]);
        assert_eq!(towards(&[50, 30, 20], &[45, 30, 25], 0.1), [45, 30, 25]);
        assert_eq!(towards(&[50, 30, 20], &[0, 100, 0], 0.07).iter().sum::<u32>(), 100);
        assert_eq!(towards(&[50, 30], &[20, 80], 0.1), [20, 80], "another cache");
    }

    #[test]
    fn tenants_above_their_minimum_give() {
        let mut quotas = [10, 50, 40];
        raise(&mut quotas, &[30, 20, 30]);
        assert_eq!(quotas, [30, 35, 35]);
        raise(&mut quotas, &[0; 3]);
        assert_eq!(quotas, [30, 35, 35]);
    }

    #[test]
    fn blocks_beyond_a_minimum_go_where_claims_are() {
        let mut quotas = [60, 30, 10];
        redistribute(&mut quotas, &[20, 10, 10], 12, &[0.0, 3.0, 1.0]);
        assert_eq!(quotas, [52, 35, 13], "8 and 4 taken, 9 and 3 given");
        redistribute(&mut quotas, &[20, 10, 10], 12, &[0.0, f64::NAN, 0.0]);
        assert_eq!(quotas, [52, 35, 13]);
        redistribute(&mut quotas, &[50, 35, 10], 100, &[0.0, 0.0, 1.0]);
        assert_eq!(quotas, [50, 35, 15], "no more than there is");
    }

    #[test]
    fn granules_cover_the_blocks_but_for_less_than_one() {
        assert_eq!(Granules::of_blocks(100, 10), Granules { blocks: 10, count: 10 });
        assert_eq!(Granules::of_blocks(105, 10), Granules { blocks: 11, count: 9 });
        assert_eq!(Granules::of_blocks(7, 10), Granules { blocks: 1, count: 7 });
        assert_eq!(Granules::of_blocks(0, 10), Granules { blocks: 1, count: 0 });
    }

    #[test]
    fn what_saves_nothing_is_divided_equally() {
        let flat = |_: usize, _: u32| 5.0;
        assert_eq!(by_least_cost(flat, 101, &[10, 20], &[true; 2], 10), [46, 55]);
        assert_eq!(by_least_cost(flat, 101, &[10, 20], &[true, false], 10), [81, 20]);
        assert_eq!(by_least_cost(flat, 101, &[10, 20], &[false; 2], 10), [46, 55]);
    }

    /// The least cost of all divisions of so many granules, by trying every one.
    fn tried(rows: &[Vec<u32>], granules: usize) -> u32 {
        let Some((own, rest)) = rows.split_first() else { return 0 };
        let with = |count: usize| own[count] + tried(rest, granules - count);
        (0..=granules).map(with).min().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn no_division_costs_less(
            (blocks, rows) in (1..9_usize, 1..5_usize).prop_flat_map(|(blocks, tenants)| {
                let own = prop::collection::vec(0..50_u32, blocks + 1);
                (Just(blocks), prop::collection::vec(own, tenants))
            }),
        ) {
            // Costs that rise with blocks are cut: spare blocks never harm a real tenant.
            let falling = |row: &Vec<u32>| row.iter().scan(u32::MAX, |least, cost| {
                *least = (*least).min(*cost);
                Some(*least)
            }).collect();
            let rows: Vec<Vec<u32>> = rows.iter().map(falling).collect();
            let cost = |tenant: usize, size: u32| f64::from(rows[tenant][size as usize]);
            let floors = vec![0; rows.len()];
            let quotas = by_least_cost(cost, blocks as u32, &floors, &vec![true; rows.len()], 1000);
            prop_assert_eq!(quotas.iter().sum::<u32>(), blocks as u32);
            let sum: f64 = quotas.iter().enumerate().map(|(t, quota)| cost(t, *quota)).sum();
            prop_assert_eq!(sum, f64::from(tried(&rows, blocks)));
        }
    }
}
