//! Tenants that came and went, as the result file has them.
//!
//! For: `timing.channels.tenancy` under layouts that follow tenants. Must never know: how channels
//! were decided. Units: bytes, nanoseconds.

use crate::case::Case;
use cachewright_system::timed::Times;
use cachewright_system::timed::tenancy::{Change, Event};
use serde_json::{Value, json};

/// Every change; nothing where no layout follows tenants.
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
    Some(json!({ "changes": times.tenancy.iter().map(event).collect::<Vec<Value>>() }))
}
