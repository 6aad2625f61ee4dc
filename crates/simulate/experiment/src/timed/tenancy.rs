//! Tenants that came and went, as the result file has them.
//!
//! For: `timing.channels.tenancy` under layouts that follow tenants. Must never know: how channels
//! were decided. Units: bytes, nanoseconds.

use crate::case::Case;
use cachewright_result::channels::{Tenancy, TenancyChange};
use cachewright_system::event_loop::Times;
use cachewright_system::machines::tenancy::{Change, Event};

/// Every change; nothing where no layout follows tenants.
pub fn tenancy(case: &Case, times: &Times) -> Option<Tenancy> {
    if times.channels.tenancy.is_empty() {
        return None;
    }
    Some(Tenancy {
        changes: times.channels.tenancy.iter().map(|event| change(case, event)).collect(),
    })
}

fn change(case: &Case, event: &Event) -> TenancyChange {
    let block = case.spec.cache.block.0;
    let bytes = |blocks: u32| u64::from(blocks) * block;
    let mut found = TenancyChange {
        time_ns: event.time_ns,
        tenant: case.spec.tenants[event.tenant].name.clone(),
        required_bytes: bytes(event.required.blocks),
        required_miss_ratio: event.required.miss_ratio,
        requested_bytes: event.requested_blocks * block,
        allocated_bytes: event.allocated_blocks * block,
        change: "left".to_owned(),
        groups: None,
        bucket_bytes: None,
        shared_bytes: None,
        missing_channels: None,
    };
    match &event.change {
        Change::Granted { channels, bucket_blocks, shared_blocks } => {
            found.change = "granted".to_owned();
            found.groups = Some(channels.clone());
            found.bucket_bytes = Some(bytes(*bucket_blocks));
            found.shared_bytes = Some(bytes(*shared_blocks));
        }
        Change::Refused(missing) => {
            found.change = "refused".to_owned();
            found.missing_channels = Some(*missing);
        }
        Change::Left => {}
    }
    found
}
