//! Which devices hold the content of which tenants.
//!
//! For: the decision of a layout, in which a device is a channel. Must never know: how a layout
//! decides, segments. Units: devices in the order of the set, tenants.

use super::restart::RestoreError;
use crate::log::DeviceSet;
use cachewright_cache::Engine;
use cachewright_policy::Policy;
use cachewright_types::TenantId;

/// The devices of each tenant. A pool of devices is filled and cleaned by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceLayout {
    /// The pool of each device; all are in pool 0 if there are none.
    pub devices: Vec<usize>,
    /// The pool of each tenant; all have pool 0 if there are none.
    pub tenants: Vec<usize>,
}

impl DeviceLayout {
    /// The pool of a tenant.
    pub fn pool(&self, tenant: TenantId) -> usize {
        self.tenants.get(tenant.index()).copied().unwrap_or_default()
    }

    /// A set whose devices are in the pools. Errors: other numbers of devices or tenants, a tenant
    /// without devices.
    pub(super) fn applied(
        &self,
        set: DeviceSet,
        tenants: usize,
    ) -> Result<DeviceSet, RestoreError> {
        let wrong = |name, found: usize, expected| {
            Err(RestoreError::Parts { name, found: found as u64, expected })
        };
        let DeviceLayout { devices, tenants: pools } = self;
        if !devices.is_empty() && devices.len() != set.files().len() {
            return wrong("layout.devices", devices.len(), "a pool for each device of the set");
        }
        if !pools.is_empty() && pools.len() != tenants {
            return wrong("layout.tenants", pools.len(), "a pool for each volume");
        }
        let known = |pool: &usize| devices.contains(pool) || (devices.is_empty() && *pool == 0);
        if let Some(pool) = pools.iter().find(|pool| !known(pool)) {
            return wrong("layout.tenants", *pool, "a pool that has devices");
        }
        if devices.iter().any(|pool| *pool >= devices.len()) {
            return wrong("layout.devices", devices.len(), "at most as many pools as devices");
        }
        Ok(if devices.is_empty() { set } else { set.in_pools(devices.clone()) })
    }

    /// Blocks that the tenants of a pool of devices may hold together.
    pub(super) fn quota<P: Policy>(&self, engine: &Engine<P>, tenants: usize, pool: usize) -> u64 {
        let own = (0..tenants).map(|tenant| TenantId(tenant as u16));
        let own = own.filter(|tenant| self.pool(*tenant) == pool);
        let mut parts: Vec<usize> = own.map(|tenant| engine.pool_of(tenant)).collect();
        parts.sort_unstable();
        parts.dedup();
        parts.into_iter().map(|part| u64::from(engine.policy(part).capacity())).sum()
    }
}
