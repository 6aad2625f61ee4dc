//! The division of spare blocks where curves fall most.
//!
//! For: partitioners that first grant blocks to each tenant. Must never know: what a curve counts,
//! the reasons for grants. Units: blocks.

use crate::share;
use cachewright_curve::Curve;
use cachewright_curve::hull::{Hull, divide};

/// The grants, which together must fit, and the spare blocks where the convex minorants of the
/// curves beyond the grants fall most. Blocks that save nothing are divided equally. A tenant whose
/// blocks are lent gets only its grant, unless all are lent.
pub fn steepest(curves: &[&Curve], total_blocks: u32, grants: &[u32], lent: &[bool]) -> Vec<u32> {
    let parts = curves.iter().zip(grants);
    let hulls: Vec<Hull> = parts.map(|(curve, grant)| Hull::beyond(curve, *grant)).collect();
    let weights: Vec<f64> = lent.iter().map(|lent| if *lent { 0.0 } else { 1.0 }).collect();
    let mut quotas = divide(&hulls, &weights, total_blocks, grants);
    let remaining = total_blocks - quotas.iter().sum::<u32>();
    let spare = share::proportional(remaining, &weights);
    quotas.iter_mut().zip(spare).for_each(|(quota, more)| *quota += more);
    quotas
}
