//! Closing in on the smallest size that meets the goals.
//!
//! For: which sizes are tried next. Must never know: how a size is tried. Units: blocks.

use super::Tried;
use std::collections::BTreeMap;

/// Sizes tried between two replays of the workload.
const SIZES: u32 = 8;

/// The largest size known not to meet the goals below the smallest that does.
pub(super) fn bracket(tried: &BTreeMap<u32, Tried>, max_blocks: u32) -> (u32, u32) {
    let high = tried.iter().find(|(_, answer)| answer.met).map_or(max_blocks, |(size, _)| *size);
    let low = tried.range(..high).next_back().map_or(0, |(size, _)| *size);
    (low, high)
}

/// Up to [`SIZES`] sizes strictly between two, in equal ratios while they are far apart.
pub(super) fn between(low: u32, high: u32) -> Vec<u32> {
    let (from, to) = (f64::from(low.max(1)), f64::from(high));
    let step = |part: u32| {
        let share = f64::from(part) / f64::from(SIZES + 1);
        if to > 2.0 * from { from * (to / from).powf(share) } else { from + (to - from) * share }
    };
    let mut sizes: Vec<u32> = (1..=SIZES).map(|part| step(part).round() as u32).collect();
    if low == 0 {
        sizes.push(1);
    }
    sizes.retain(|size| *size > low && *size < high);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_close_in_from_both_ends() {
        assert_eq!(between(0, 2), [1]);
        assert_eq!(between(10, 11), [0; 0]);
        let wide = between(0, 100_000);
        assert!(wide.len() == 9 && wide[0] == 1 && wide.windows(2).all(|w| w[0] < w[1]));
        let near = between(1000, 1090);
        assert_eq!(near, [1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080]);
    }

    #[test]
    fn the_bracket_is_the_first_size_that_meets_all() {
        let tried = |met| Tried { met, hit_ratios: Vec::new(), quota_blocks: Vec::new() };
        let sizes = [(1, false), (5, false), (9, true), (20, false), (30, true)];
        let tried: BTreeMap<u32, Tried> = sizes.map(|(size, met)| (size, tried(met))).into();
        assert_eq!(bracket(&tried, 30), (5, 9));
    }
}
