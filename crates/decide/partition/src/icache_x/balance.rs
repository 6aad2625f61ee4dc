//! The division whose worst slowdown is least.
//!
//! For: a common level of slowdown that all can be held to with what there is; then lower levels
//! for those who can do better. Must never know: how slowdowns were predicted. Units: blocks.

use super::slowdown::Slowdown;

/// Bisections of a level; each halves the range it may lie in.
const HALVINGS: u32 = 48;
/// A range of levels that is as good as one level, relative to it.
const CLOSE: f64 = 1e-9;

/// Levels of slowdown around the least that a budget can hold everyone to.
struct Levels {
    /// Too low.
    low: f64,
    /// Can be held.
    high: f64,
}

/// The fewest blocks for everyone by which the worst slowdown is as low as it can be; given that,
/// the second worst, and so on. `floors` together must fit in `total_blocks`; tenants that are not
/// in `open` get theirs. The sum is below the total where no single tenant can get better with what
/// is left, or nobody needs it.
pub fn least_worst(
    slowdowns: &[Slowdown],
    grid: &[u32],
    total_blocks: u32,
    floors: &[u32],
    mut open: Vec<usize>,
) -> Vec<u32> {
    let mut quotas = floors.to_vec();
    let need = |tenant: usize, level: f64| slowdowns[tenant].need(level, floors[tenant], grid);
    while !open.is_empty() {
        let held = (0..quotas.len()).filter(|tenant| !open.contains(tenant));
        let held: u64 = held.map(|tenant| u64::from(quotas[tenant])).sum();
        let budget = u64::from(total_blocks).saturating_sub(held);
        let needs = |level| open.iter().map(|&tenant| u64::from(need(tenant, level))).sum::<u64>();
        let levels = if needs(1.0) <= budget {
            None
        } else {
            let at_floor = open.iter().map(|&tenant| slowdowns[tenant].at(floors[tenant], grid));
            Some(least_level(at_floor.fold(1.0, f64::max), |level| needs(level) <= budget))
        };
        let level = levels.as_ref().map_or(1.0, |levels| levels.high);
        open.iter().for_each(|&tenant| quotas[tenant] = need(tenant, level));
        let Some(levels) = levels.filter(|_| needs(level) < budget) else { break };
        // Who would need most to get below the level stays there; the others may do better.
        let more = |&at: &usize| need(open[at], levels.low) - quotas[open[at]];
        let stuck = (0..open.len()).max_by_key(|at| (more(at), std::cmp::Reverse(*at)));
        stuck.map(|at| open.remove(at));
    }
    quotas
}

/// The least level between 1, which does not hold, and `high`, which does.
fn least_level(high: f64, holds: impl Fn(f64) -> bool) -> Levels {
    let mut levels = Levels { low: 1.0, high };
    for _ in 0..HALVINGS {
        if levels.high - levels.low <= CLOSE * levels.high {
            break;
        }
        let middle = levels.low + (levels.high - levels.low) / 2.0;
        if holds(middle) { levels.high = middle } else { levels.low = middle }
    }
    levels
}
