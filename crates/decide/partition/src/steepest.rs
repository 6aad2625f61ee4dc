//! What is left, where curves fall most.
//!
//! For: partitioners that grant something to everyone first. Must never know: what a curve counts,
//! why grants are as they are. Units: blocks.

use crate::share;
use cachewright_curve::Curve;
use cachewright_curve::hull::{Hull, divide};

/// The grants (which together must fit), and what is left where the convex minorants of the curves
/// beyond them fall most; what saves nothing to anyone in equal shares. Nothing more to those whose
/// blocks are lent, unless all are.
pub fn steepest(curves: &[&Curve], total_blocks: u32, grants: &[u32], lent: &[bool]) -> Vec<u32> {
    let parts = curves.iter().zip(grants);
    let hulls: Vec<Hull> = parts.map(|(curve, grant)| Hull::beyond(curve, *grant)).collect();
    let weights: Vec<f64> = lent.iter().map(|lent| if *lent { 0.0 } else { 1.0 }).collect();
    let mut quotas = divide(&hulls, &weights, total_blocks, grants);
    let left = total_blocks - quotas.iter().sum::<u32>();
    let spare = share::proportional(left, &weights);
    quotas.iter_mut().zip(spare).for_each(|(quota, more)| *quota += more);
    quotas
}
