//! Convex minorants lie under their curves, and greedy division over them is the optimum.

use cachewright_curve::hull::{Hull, divide};
use cachewright_curve::{Curve, Provenance};
use proptest::prelude::*;

fn curve(misses: &[u32]) -> Curve {
    let accesses = u64::from(misses[0]);
    let knots = (0..).zip(misses).map(|(size, &m)| (size, f64::from(m)));
    Curve::from_knots(knots, accesses, Provenance::Exact)
}

/// Curves of up to 12 blocks that start at their maximum; they may rise in between.
fn curves() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let misses = prop::collection::vec(0_u32..=1_000, 1..12).prop_map(|mut rest| {
        rest.insert(0, 1_000);
        rest
    });
    prop::collection::vec(misses, 1..4)
}

/// The least sum over all divisions that give at least `floor` each, by trying them all.
fn fewest_misses(hulls: &[Hull], weights: &[f64], total: u32, floor: u32) -> f64 {
    let Some((first, rest)) = hulls.split_first() else { return 0.0 };
    let needed = floor * rest.len() as u32;
    (floor..=total.saturating_sub(needed).max(floor))
        .map(|size| {
            let remaining = total.saturating_sub(size);
            weights[0] * first.misses(size) + fewest_misses(rest, &weights[1..], remaining, floor)
        })
        .fold(f64::INFINITY, f64::min)
}

proptest! {
    #[test]
    fn minorants_are_convex_below_and_touch_the_curve(misses in curves()) {
        for misses in misses {
            let (curve, mut lowest) = (curve(&misses), f64::INFINITY);
            let hull = Hull::minorant(&curve);
            let value = |size: usize| hull.misses(size as u32);
            for size in 0..misses.len() + 3 {
                lowest = lowest.min(curve.misses(size as u32));
                prop_assert!(value(size) <= lowest + 1e-9, "above the curve at {size}");
                prop_assert!(value(size + 1) <= value(size) + 1e-9, "rises at {size}");
                let bend = value(size + 2) - 2.0 * value(size + 1) + value(size);
                prop_assert!(bend >= -1e-9, "not convex at {size}");
            }
            for &corner in hull.sizes() {
                prop_assert_eq!(hull.misses(corner), curve.misses(corner), "greatest");
            }
        }
    }

    #[test]
    fn greedy_division_is_the_best_of_all(
        misses in curves(),
        total in 0_u32..20,
        floor in 0_u32..3,
        heavy in 1_u32..5,
    ) {
        let hulls: Vec<Hull> = misses.iter().map(|m| Hull::minorant(&curve(m))).collect();
        let weights: Vec<f64> =
            (0..hulls.len()).map(|i| if i == 0 { f64::from(heavy) } else { 1.0 }).collect();
        let floor = floor.min(total / hulls.len() as u32);
        let given = divide(&hulls, &weights, total, &vec![floor; hulls.len()]);
        prop_assert!(given.iter().sum::<u32>() <= total);
        prop_assert!(given.iter().all(|&blocks| blocks >= floor));
        let cost: f64 = hulls
            .iter()
            .zip(&given)
            .zip(&weights)
            .map(|((hull, &size), weight)| weight * hull.misses(size))
            .sum();
        let best = fewest_misses(&hulls, &weights, total, floor);
        prop_assert!((cost - best).abs() < 1e-6, "{given:?} costs {cost}, best is {best}");
    }
}

#[test]
fn a_worked_example() {
    // A loop of 10 blocks saves nothing until it fits; its minorant is the straight line.
    let mut cliff = vec![100_u32; 10];
    cliff.push(0);
    let gentle: Vec<u32> = (0..=10_u32).map(|size| 100 - 8 * size).collect();
    let hulls = [Hull::minorant(&curve(&gentle)), Hull::minorant(&curve(&cliff))];
    assert_eq!(hulls[1].sizes(), [0, 10]);
    assert_eq!(divide(&hulls, &[1.0, 1.0], 15, &[0, 0]), [5, 10]);
    assert_eq!(divide(&hulls, &[1.0, 1.0], 15, &[2, 2]), [5, 10]);
    assert_eq!(divide(&hulls, &[2.0, 1.0], 15, &[0, 0]), [10, 5]);
    assert_eq!(divide(&hulls, &[1.0, 1.0], 50, &[1, 1]), [10, 10], "nothing more to save");
    // With 6 of its 10 blocks the loop is worth 25 misses a block, with none only 10.
    let curve = curve(&cliff);
    let beyond = [hulls[0].clone(), Hull::beyond(&curve, 6)];
    assert_eq!((beyond[1].sizes(), beyond[1].misses(8)), (&[6, 10][..], 50.0));
    assert_eq!(divide(&beyond, &[3.1, 1.0], 11, &[0, 6]), [1, 10]);
}

/// It falls by 8, 4 and 1 misses a block.
#[test]
fn what_hardly_falls_can_be_left_out() {
    let hull = Hull::minorant(&curve(&[100, 92, 84, 80, 76, 75, 74]));
    assert_eq!(hull.clone().falling(0.0), hull);
    assert_eq!(hull.clone().falling(1.0).sizes(), [0, 2, 4]);
    assert_eq!(hull.clone().falling(4.0).sizes(), [0, 2]);
    let none = hull.falling(8.0);
    assert_eq!((none.sizes(), none.misses(5)), (&[0][..], 100.0));
    assert_eq!(divide(&[none], &[1.0], 9, &[0]), [0]);
}

/// 1,000 tenants whose curves have 200 knots, a million blocks. In release it takes milliseconds;
/// a division block by block takes a thousand million steps.
#[test]
fn a_thousand_tenants_and_a_million_blocks_take_no_time() {
    let line = |tenant: u32| {
        let half = f64::from(50 + 13 * (tenant % 97));
        let knots =
            (1..=200_u32).map(|index| (index * 20, 1e6 * half / (half + f64::from(index * 20))));
        Curve::from_knots(knots, 1_000_000, Provenance::Exact)
    };
    let curves: Vec<Curve> = (0..1_000).map(line).collect();
    let start = std::time::Instant::now();
    let hulls: Vec<Hull> = curves.iter().map(Hull::minorant).collect();
    let given = divide(&hulls, &vec![1.0; 1_000], 1_000_000, &[]);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(given.iter().sum::<u32>(), 1_000_000);
    assert!(seconds < 10.0, "{seconds} s, unoptimised");
}
