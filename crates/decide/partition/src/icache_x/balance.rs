//! The division with the smallest worst slowdown.
//!
//! For: a level of slowdown that the cache can hold for all tenants, then lower levels for tenants
//! that can do better. Must never know: how slowdowns were predicted. Units: blocks.

use super::slowdown::Slowdown;

/// Bisections of a level; each halves its range.
const HALVINGS: u32 = 48;
/// Width of a range, relative to the level, at which bisection stops.
const CLOSE: f64 = 1e-9;

/// A range around the lowest level of slowdown that a budget can hold for all tenants.
struct LevelRange {
    /// A level that does not hold.
    low: f64,
    /// A level that holds.
    high: f64,
}

/// The fewest blocks of each tenant that minimise the worst slowdown, then the second worst, and so
/// on. `floors` together must fit in `total_blocks`; tenants that are not in `open` get their
/// floor. The sum is below the total if spare blocks would improve no single tenant.
pub fn minimize_worst(
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
            let at_floor =
                open.iter().map(|&tenant| slowdowns[tenant].value_at(floors[tenant], grid));
            Some(lowest_level(at_floor.fold(1.0, f64::max), |level| needs(level) <= budget))
        };
        let level = levels.as_ref().map_or(1.0, |levels| levels.high);
        open.iter().for_each(|&tenant| quotas[tenant] = need(tenant, level));
        let Some(levels) = levels.filter(|_| needs(level) < budget) else { break };
        // Who would need most to get below the level stays there; the others may do better.
        let more = |&position: &usize| need(open[position], levels.low) - quotas[open[position]];
        let stuck =
            (0..open.len()).max_by_key(|position| (more(position), std::cmp::Reverse(*position)));
        stuck.map(|position| open.remove(position));
    }
    quotas
}

/// The lowest level that holds, between 1, which does not, and `high`, which does.
fn lowest_level(high: f64, holds: impl Fn(f64) -> bool) -> LevelRange {
    let mut levels = LevelRange { low: 1.0, high };
    for _ in 0..HALVINGS {
        if levels.high - levels.low <= CLOSE * levels.high {
            break;
        }
        let middle = levels.low + (levels.high - levels.low) / 2.0;
        if holds(middle) { levels.high = middle } else { levels.low = middle }
    }
    levels
}
