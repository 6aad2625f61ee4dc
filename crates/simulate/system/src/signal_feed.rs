//! Feeds signal meters from recordings.
//!
//! For: accesses and trims of a recording, as the control loop measures them. Must never know: what
//! is measured.

use crate::recording::{Recording, TRIM, WRITE};
use cachewright_control::{BlockUse, SignalMeter};
use cachewright_types::TenantId;
use std::ops::Range;

/// Feeds a meter a tenant's accesses and trims in `range`.
pub(crate) fn feed_tenant(
    recording: &Recording,
    range: Range<usize>,
    tenant: TenantId,
    meter: &mut SignalMeter,
) {
    for position in range {
        let (block, flags) = (recording.block_at(position, false), recording.flags[position]);
        if flags & TRIM != 0 {
            meter.trim(tenant, block);
        } else {
            let bytes = recording.bytes.get(position).copied().unwrap_or_default();
            meter.access(BlockUse { tenant, block, write: flags & WRITE != 0, bytes });
        }
    }
}

/// Feeds a meter all tenants' accesses and trims in `range`.
pub(crate) fn feed_all(recording: &Recording, range: Range<usize>, meter: &mut SignalMeter) {
    for position in range {
        feed_tenant(recording, position..position + 1, recording.tenant_at(position), meter);
    }
}
