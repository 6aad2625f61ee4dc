//! The requests of a workload as the loop sees them.
//!
//! For: one source of requests for workloads placed on devices and for recordings. Must never
//! know: addresses. Units: nanoseconds.

use crate::machines::Requests;
use crate::recording::Recording;
use cachewright_trace::Call;
use cachewright_types::TenantId;

/// Requests in order of time, by number.
pub trait TimedRequests {
    /// How many there are.
    fn count(&self) -> usize;
    /// When a request arrives.
    fn time_ns(&self, index: usize) -> u64;
    /// Whose request it is.
    fn tenant(&self, index: usize) -> TenantId;
    /// The process of a request, and its pause.
    fn call(&self, index: usize) -> Call;

    /// The requests of each tenant in order.
    fn by_tenant(&self, tenants: usize) -> Vec<Vec<u32>> {
        let mut each = vec![Vec::new(); tenants];
        for index in 0..self.count() {
            each[self.tenant(index).index()].push(index as u32);
        }
        each
    }
}

impl TimedRequests for Requests {
    fn count(&self) -> usize {
        self.len()
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.time_ns(index)
    }

    fn tenant(&self, index: usize) -> TenantId {
        self.tenant(index)
    }

    fn call(&self, index: usize) -> Call {
        self.call(index)
    }
}

impl TimedRequests for Recording {
    fn count(&self) -> usize {
        self.times_ns().len()
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.times_ns()[index]
    }

    fn tenant(&self, index: usize) -> TenantId {
        self.tenant_at(self.start_of(index))
    }

    fn call(&self, index: usize) -> Call {
        self.calls.get(index).copied().unwrap_or_default()
    }
}
