//! The requests of a workload as the loop sees them.
//!
//! For: one source of requests for workloads placed on devices and for recordings. Must never
//! know: addresses. Units: nanoseconds.

use crate::recording::Recording;
use crate::timed::Requests;
use cachewright_trace::Call;
use cachewright_types::TenantId;

/// Requests in order of time, by number.
pub trait Workload {
    /// How many there are.
    fn count(&self) -> usize;
    /// When a request arrives.
    fn time_ns(&self, at: usize) -> u64;
    /// Whose request it is.
    fn tenant(&self, at: usize) -> TenantId;
    /// The process of a request, and its pause.
    fn call(&self, at: usize) -> Call;

    /// The requests of each tenant in order.
    fn by_tenant(&self, tenants: usize) -> Vec<Vec<u32>> {
        let mut each = vec![Vec::new(); tenants];
        for at in 0..self.count() {
            each[self.tenant(at).index()].push(at as u32);
        }
        each
    }
}

impl Workload for Requests {
    fn count(&self) -> usize {
        self.len()
    }

    fn time_ns(&self, at: usize) -> u64 {
        self.time_ns(at)
    }

    fn tenant(&self, at: usize) -> TenantId {
        self.tenant(at)
    }

    fn call(&self, at: usize) -> Call {
        self.call(at)
    }
}

impl Workload for Recording {
    fn count(&self) -> usize {
        self.times_ns.len()
    }

    fn time_ns(&self, at: usize) -> u64 {
        self.times_ns[at]
    }

    fn tenant(&self, at: usize) -> TenantId {
        self.tenant_at(self.start_of(at))
    }

    fn call(&self, at: usize) -> Call {
        self.calls.get(at).copied().unwrap_or_default()
    }
}
