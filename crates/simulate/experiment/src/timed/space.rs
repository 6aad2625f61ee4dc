//! How much of what a layout keeps for tenants they make use of.
//!
//! For: `timing.channels.space_utilisation`. Must never know: how channels were decided. Units:
//! blocks, nanoseconds. Source: Wang et al. (oc-cache), V-B: what tenants make use of, by the word
//! of the division, over what is allocated to them. Left open there: channels are allocated whole;
//! where all are common it is the capacity of the cache; those lent to a pool are no tenant's.
//! Where a layout follows tenants both are summed over time, else they are those of the last
//! division.

use crate::case::ResolvedCase;
use cachewright_partition::Need;
use cachewright_system::event_loop::Times;
use cachewright_system::machines::blocks_of;
use cachewright_system::machines::tenancy::Event;

/// Used over allocated; nothing where the division does not say what tenants make use of, nor in a
/// drive that is the machine, whose channels hold more than its cache.
pub fn space_utilisation(case: &ResolvedCase<'_>, times: &Times) -> Option<f64> {
    if !times.channels.tenancy.is_empty() {
        return Some(over_time(&times.channels.tenancy, times.end_ns));
    }
    let required = &times.cache.required;
    if required.is_empty() || !case.needs.partitioner_needs(Need::Curve) || times.drive.is_some() {
        return None;
    }
    let used: u64 = required.iter().map(|need| u64::from(need.blocks)).sum();
    let allocated = match &times.channels.layout {
        None => u64::from(case.capacity_blocks),
        Some(map) => {
            let shift = case.spec.cache.block.0.trailing_zeros();
            let held = |group: &u32| {
                let group = times.channels.groups.get(*group as usize);
                group.map_or(0, |group| blocks_of(&group.range, shift).len() as u64)
            };
            let had = map.pools.iter().flatten().filter(|group| !map.lent.contains(group));
            had.map(held).sum()
        }
    };
    (allocated > 0).then(|| used as f64 / allocated as f64)
}

/// Requested over allocated space, both over time; 0 where nothing ever was allocated.
fn over_time(events: &[Event], end_ns: u64) -> f64 {
    let (mut requested, mut allocated) = (0.0, 0.0);
    for (index, event) in events.iter().enumerate() {
        let until = events.get(index + 1).map_or(end_ns, |next| next.time_ns);
        let span = until.saturating_sub(event.time_ns) as f64;
        requested += event.requested_blocks as f64 * span;
        allocated += event.allocated_blocks as f64 * span;
    }
    if allocated > 0.0 { requested / allocated } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_partition::Requirement;
    use cachewright_system::machines::tenancy::Change;

    #[test]
    fn space_is_weighed_by_time() {
        let event = |time_ns, requested_blocks, allocated_blocks| Event {
            time_ns,
            tenant: 0,
            required: Requirement::default(),
            change: Change::Left,
            requested_blocks,
            allocated_blocks,
        };
        let events = [event(0, 30, 100), event(0, 50, 100), event(10, 0, 0), event(20, 60, 100)];
        assert_eq!(over_time(&events, 30), (500.0 + 600.0) / 2000.0);
        assert_eq!(over_time(&[], 30), 0.0);
    }
}
