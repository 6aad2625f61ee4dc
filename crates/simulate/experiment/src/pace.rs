//! When the requests of a case are sent.
//!
//! For: one pace for replays with and without devices. Must never know: what serves requests.

use crate::case::Case;
use crate::spec::TenantSpec;
use cachewright_stack::tables::Lengths;
use cachewright_system::event_loop::{Loop, NEVER_NS, Noise};
use cachewright_types::declare::Nested;

/// The loop that a case asks for.
pub fn pace(case: &Case) -> Loop {
    if !case.spec.replay.closed() {
        return Loop::Open;
    }
    let tenants = || case.spec.tenants.iter();
    Loop::Closed {
        queue_depth: tenants().map(|tenant| tenant.queue_depth).collect(),
        think_ns: tenants().map(|tenant| tenant.think_time.0).collect(),
        recorded: tenants().map(|tenant| tenant.recorded_pauses()).collect(),
        start_ns: tenants().map(|tenant| tenant.start.0).collect(),
        stop_ns: tenants().map(|tenant| tenant.until.map_or(NEVER_NS, |time| time.0)).collect(),
        noise: tenants().map(|tenant| noise(case, tenant)).collect(),
        repeat: tenants().map(|tenant| tenant.repeat).collect(),
    }
}

/// A tenant's periods, by the seed of the case and its name: other tenants change nothing.
fn noise(case: &Case, tenant: &TenantSpec) -> Option<Noise> {
    let seed = case.spec.seed.derive("noise").derive(&tenant.name);
    tenant.noise.as_ref().map(|Nested(found)| Noise {
        on_ns: found.on.map_or(0, |mean| mean.0),
        off_ns: found.off.map_or(0, |mean| mean.0),
        off_depth: found.off_depth,
        exponential: found.lengths == Lengths::Exponential,
        seed,
    })
}
