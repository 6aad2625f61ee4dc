//! The sizes at which curves are measured: one grid for all tenants and policies of a call.
//!
//! For: curves that can be compared point by point. Must never know: policies, how a curve is
//! measured. Sizes are in blocks; shares of the working set are of all tenants together, as in
//! `cache.capacity`.

use super::options::CurveOptions;
use crate::Spec;
use cachewright_types::Size;

/// Sizes when none are given and each is a simulation of its own.
pub(super) const SIMULATED_POINTS: usize = 24;
/// Sizes when none are given and all curves are read off one LRU stack.
pub(super) const STACK_POINTS: usize = 200;
/// The smallest size when none are given, as a share of the working set.
const SMALLEST_SHARE: f64 = 0.001;
/// Sizes are below this: policies count twice as many blocks, cached and remembered, in 32 bits.
const LIMIT_BLOCKS: u64 = 1 << 31;
/// Points of all curves and windows together at most.
const MAX_VALUES: u64 = 1_000_000;

/// The sizes asked for, or `points` sizes in geometric steps up to the working set of `distinct`
/// blocks; ascending, each once. Errors: a size below a block, or too large.
pub(super) fn sizes(
    options: &CurveOptions,
    spec: &Spec,
    distinct: u32,
    points: usize,
) -> Result<Vec<u32>, String> {
    let mut sizes = if options.sizes.is_empty() {
        spread(distinct, points)
    } else {
        let requested = options.sizes.iter().map(|requested| size(requested, spec, distinct));
        requested.collect::<Result<Vec<u32>, String>>()?
    };
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// Refuses more points than a result can hold.
pub(super) fn check_values(sizes: usize, curves: usize, windows: usize) -> Result<(), String> {
    let windows = windows.max(1);
    let values = sizes as u64 * curves as u64 * windows as u64;
    if values <= MAX_VALUES {
        return Ok(());
    }
    Err(format!(
        "`points`: found {sizes} sizes of {curves} curves in {windows} windows, which are {values} \
         points; expected at most {MAX_VALUES}"
    ))
}

fn size(requested: &Size, spec: &Spec, distinct: u32) -> Result<u32, String> {
    let blocks = match requested {
        Size::Blocks(blocks) => *blocks,
        Size::Bytes(bytes) => bytes.0 / spec.cache.block.0,
        Size::WorkingSetPercent(percent) => {
            ((f64::from(distinct) * percent / 100.0).round() as u64).max(1)
        }
    };
    let expected = match blocks {
        0 => format!("at least one block ({})", spec.cache.block),
        _ if blocks >= LIMIT_BLOCKS => "fewer than 2^31 blocks".to_owned(),
        _ => return Ok(blocks as u32),
    };
    Err(format!("`sizes`: found `{}`, expected {expected}", requested.exact()))
}

fn spread(distinct: u32, points: usize) -> Vec<u32> {
    let high = f64::from(distinct.max(1));
    let low = (high * SMALLEST_SHARE).max(1.0);
    let at_point = |point: usize| {
        let share = if points == 1 { 1.0 } else { point as f64 / (points - 1) as f64 };
        (low * (high / low).powf(share)).round() as u32
    };
    (0..points).map(at_point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_spread_from_a_thousandth_to_the_working_set() {
        let found = spread(1_000_000, 4);
        assert_eq!(found, [1_000, 10_000, 100_000, 1_000_000]);
        assert_eq!(spread(50, 1), [50]);
        assert_eq!(spread(0, 3), [1, 1, 1]);
    }

    #[test]
    fn points_are_bounded_over_curves_and_windows() {
        assert!(check_values(24, 48, 0).is_ok());
        let error = check_values(10_000, 3, 10_000).unwrap_err();
        assert!(error.contains("found 10000 sizes of 3 curves in 10000 windows"), "{error}");
        assert!(error.contains("expected at most 1000000"), "{error}");
    }
}
