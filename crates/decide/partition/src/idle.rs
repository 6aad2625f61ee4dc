//! Tenants without requests, and for how many intervals.
//!
//! For: partitioners that lend the blocks of an idle tenant. Must never know: shares, goals. Units:
//! intervals.

use crate::TenantView;

/// Latest intervals without an access, by tenant.
#[derive(Clone, Debug, Default)]
pub struct Idle {
    intervals: Vec<u32>,
    begun: bool,
}

impl Idle {
    /// Counts the interval that ended; the first call is the start of the run, before any interval.
    pub fn learn(&mut self, tenants: &[TenantView]) {
        self.intervals.resize(tenants.len(), 0);
        for (idle, tenant) in self.intervals.iter_mut().zip(tenants).filter(|_| self.begun) {
            *idle = if tenant.accesses > 0 { 0 } else { idle.saturating_add(1) };
        }
        self.begun = true;
    }

    /// Whether the tenant has been idle for `limit` intervals or more; a limit of 0 is none.
    pub fn beyond(&self, tenant: usize, limit: u32) -> bool {
        limit > 0 && self.intervals.get(tenant).is_some_and(|idle| *idle >= limit)
    }
}
