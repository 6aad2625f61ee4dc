//! The least sum of costs by dynamic programming over granules, and the blocks that it gives.
//!
//! For: partitioners whose costs by size are not convex. Must never know: what a cost counts.
//! Units: blocks. Source: Hu et al., LAMA (ATC 2015), section 3.3: best divisions of the first k
//! tenants from those of the first k - 1. Cost: O(tenants granules^2). Greedy division (Stone,
//! Turek and Wolf, IEEE Trans. Computers 1992) is as good only where every curve is convex.
//!
//! Costs become integers relative to the largest, so that sums are exact and no order of tenants
//! matters but among equal divisions. Among equal costs fewer granules are given. The rest, and
//! the blocks that fill no granule, are divided equally among tenants that are open to them.

use crate::{opt, share};

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

/// The quotas with the least sum of costs. `cost` is that of a tenant with so many blocks; it must
/// be finite and at least 0. Each tenant keeps its floor; the floors together must fit. Tenants
/// that are not `open` get no more than that, unless none is.
pub fn divide(
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
    for (tenant, more) in takers.iter().zip(share::equal(spare, takers.len())) {
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
    fn granules_cover_the_blocks_but_for_less_than_one() {
        assert_eq!(Granules::of_blocks(100, 10), Granules { blocks: 10, count: 10 });
        assert_eq!(Granules::of_blocks(105, 10), Granules { blocks: 11, count: 9 });
        assert_eq!(Granules::of_blocks(7, 10), Granules { blocks: 1, count: 7 });
        assert_eq!(Granules::of_blocks(0, 10), Granules { blocks: 1, count: 0 });
    }

    #[test]
    fn what_saves_nothing_is_divided_equally() {
        let flat = |_: usize, _: u32| 5.0;
        assert_eq!(divide(flat, 101, &[10, 20], &[true; 2], 10), [46, 55]);
        assert_eq!(divide(flat, 101, &[10, 20], &[true, false], 10), [81, 20]);
        assert_eq!(divide(flat, 101, &[10, 20], &[false; 2], 10), [46, 55]);
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
            let quotas = divide(cost, blocks as u32, &floors, &vec![true; rows.len()], 1000);
            prop_assert_eq!(quotas.iter().sum::<u32>(), blocks as u32);
            let sum: f64 = quotas.iter().enumerate().map(|(t, quota)| cost(t, *quota)).sum();
            prop_assert_eq!(sum, f64::from(tried(&rows, blocks)));
        }
    }
}
