//! Engines that follow a division.
//!
//! For: a control loop over one engine. Must never know: partitioners, how signals are measured.

use crate::control::Control;
use crate::standing::Standing;
use cachewright_cache::{Engine, Left};
use cachewright_curve::signal::Signals;
use cachewright_policy::{Policy, ShadowSplit};
use cachewright_types::TenantId;

/// Where each of so many tenants stands in an engine.
pub fn standings<P: Policy>(engine: &Engine<P>, tenants: usize) -> Vec<Standing> {
    let standing = |tenant: usize| {
        let id = TenantId(tenant as u16);
        let (quota_blocks, held_blocks) = (engine.quota(id), engine.occupancy(id));
        Standing { counts: *engine.counts(id), quota_blocks, held_blocks }
    };
    (0..tenants).map(standing).collect()
}

/// Divides an engine anew at the end of an interval in which `signals` were measured; blocks that
/// leave are reported to `left` as in [`Engine::set_quotas`].
pub fn divide<P: Policy>(
    control: &mut Control,
    engine: &mut Engine<P>,
    signals: &Signals,
    left: Left<'_>,
) {
    let now = standings(engine, control.tenants());
    if let Some(quotas) = control.next(&now, signals) {
        let kept = engine.set_quotas(&quotas, left);
        debug_assert!(kept, "a partitioner keeps to one kind of quotas");
        for (tenant, split) in control.splits().iter().enumerate() {
            let split = ShadowSplit { share: split.share, blocks: split.blocks };
            engine.split(engine.pool_of(TenantId(tenant as u16)), split, left);
        }
    }
}
