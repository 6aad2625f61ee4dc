//! Tenants that came and went, as the result file has them.
//!
//! For: `timing.channels.tenancy` under layouts that follow tenants. Must never know: how channels
//! were decided. Units: bytes, nanoseconds; `space_utilisation` is the paper's (Wang et al., V-B):
//! what those who had channels made use of, over what these channels hold, both summed over time.

use crate::case::Case;
use cachewright_system::timed::Times;
use cachewright_system::timed::tenancy::{Change, Event};
use serde_json::{Value, json};

/// Every change, and how well space was used; nothing where no layout follows tenants.
pub fn tenancy_json(case: &Case, times: &Times) -> Option<Value> {
    if times.tenancy.is_empty() {
        return None;
    }
    let block = case.spec.cache.block.0;
    let event = |event: &Event| {
        let mut found = json!({
            "time_ns": event.time_ns,
            "tenant": case.spec.tenants[event.tenant].name,
            "required_bytes": u64::from(event.required.blocks) * block,
            "required_miss_ratio": event.required.miss_ratio,
            "requested_bytes": event.requested_blocks * block,
            "allocated_bytes": event.allocated_blocks * block,
        });
        match &event.change {
            Change::Granted { channels, bucket_blocks, shared_blocks } => {
                found["change"] = "granted".into();
                found["groups"] = channels.clone().into();
                found["bucket_bytes"] = (u64::from(*bucket_blocks) * block).into();
                found["shared_bytes"] = (u64::from(*shared_blocks) * block).into();
            }
            Change::Refused(missing) => {
                found["change"] = "refused".into();
                found["missing_channels"] = (*missing).into();
            }
            Change::Left => found["change"] = "left".into(),
        }
        found
    };
    Some(json!({
        "changes": times.tenancy.iter().map(event).collect::<Vec<Value>>(),
        "space_utilisation": utilisation(&times.tenancy, times.end_ns),
    }))
}

/// Requested over allocated space, both over time; 0 where nothing ever was allocated.
fn utilisation(events: &[Event], end_ns: u64) -> f64 {
    let (mut requested, mut allocated) = (0.0, 0.0);
    for (at, event) in events.iter().enumerate() {
        let until = events.get(at + 1).map_or(end_ns, |next| next.time_ns);
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
        assert_eq!(utilisation(&events, 30), (500.0 + 600.0) / 2000.0);
        assert_eq!(utilisation(&[], 30), 0.0);
    }
}
