//! Profiles measured ahead of a run: a tenant's head, replayed alone.
//!
//! For: the first points of a performance table (Patrick et al., section III-B, profiling step).
//! Must never know: who reads them. Units: blocks; hit ratios from 0 to 1. A profile reads the head
//! of the workload before the run does: results that use one say so.

use crate::lane::{EngineLane, Lane};
use crate::recording::{LAST, Recording, TRIM, TenantTotals};
use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_policy::Policy;
use cachewright_types::TenantId;

/// The first `share` (0 to 1) of a tenant's block accesses as a workload of its own, without times.
pub fn head_of(recording: &Recording, tenant: TenantId, share: f64) -> Recording {
    let Some(totals) = recording.totals.get(tenant.index()) else { return Recording::default() };
    let most = (totals.block_accesses as f64 * share).ceil() as u64;
    let ids = recording.ids_for(false);
    let (mut accesses, mut head) = (0, Recording::default());
    for at in (0..recording.len()).filter(|&at| recording.tenant_at(at) == tenant) {
        if accesses == most {
            break;
        }
        accesses += u64::from(recording.flags[at] & TRIM == 0);
        head.ids.push(ids[at]);
        head.flags.push(recording.flags[at]);
    }
    if let Some(flags) = head.flags.last_mut() {
        *flags |= LAST;
    }
    head.plain = recording.plain;
    head.distinct = totals.distinct_blocks;
    head.totals = vec![TenantTotals { block_accesses: accesses, ..*totals }];
    head
}

/// The hit ratio of a head under a policy of `capacity_blocks`; 0 when the head is empty.
pub fn hit_ratio_alone<P: Policy>(
    head: &Recording,
    capacity_blocks: u32,
    mode: WriteMode,
    mut make: impl FnMut(u32) -> P,
) -> f64 {
    let quotas = Quotas::Shared(capacity_blocks);
    let engine = Engine::new(1, &quotas, mode, |_, capacity| make(capacity));
    let mut lane = EngineLane::new(engine, head);
    lane.replay(head, 0..head.len(), &head.next_uses().unwrap_or_default());
    lane.engine().counts(TenantId(0)).hit_ratio()
}
