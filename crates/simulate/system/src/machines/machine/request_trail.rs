//! Where the time of a request goes while its steps are under way.
//!
//! For: the note along the steps of a request, and its answer. Must never know: what steps do.
//! Units: nanoseconds.

use super::super::latency_breakdown::{LatencyBreakdown, Role, Wait};
use cachewright_device::Spent;
use cachewright_steps as steps;
use cachewright_types::TenantId;

/// When a request arrived, and where its time has gone until now.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTrail {
    arrival_ns: u64,
    /// Until when the time has parts.
    until_ns: u64,
    latency: LatencyBreakdown,
}

/// A request answered.
#[derive(Clone, Copy, Debug)]
pub struct TimedAnswer {
    /// As submitted.
    pub tag: u64,
    /// The tenant that sent it.
    pub tenant: TenantId,
    /// When it was submitted.
    pub arrival_ns: u64,
    /// When it was answered.
    pub finish_ns: u64,
    /// Where the time between went.
    pub latency: LatencyBreakdown,
}

impl RequestTrail {
    /// A request arrives.
    pub fn new(arrival_ns: u64) -> RequestTrail {
        let (until_ns, latency) = (arrival_ns, LatencyBreakdown::default());
        RequestTrail { arrival_ns, until_ns, latency }
    }

    /// Puts the time that has no part yet under `wait`.
    pub fn account(&mut self, wait: Wait, now_ns: u64) {
        self.latency.wait(wait, now_ns - self.until_ns);
        self.until_ns = now_ns;
    }

    /// A device has spent all the time that has no part yet.
    pub fn spend(&mut self, role: Role, spent: &Spent, now_ns: u64) {
        self.latency.spend(role, spent);
        self.until_ns = now_ns;
    }
}

impl TimedAnswer {
    /// The answer to a request, given now.
    pub fn new(answer: &steps::RequestAnswer<RequestTrail>, now_ns: u64) -> TimedAnswer {
        let steps::RequestAnswer { tag, tenant, note, .. } = *answer;
        let RequestTrail { arrival_ns, latency, .. } = note;
        debug_assert!(!answer.failed, "no device of a simulation fails");
        debug_assert_eq!(latency.total_ns(), now_ns - arrival_ns, "every nanosecond has a part");
        TimedAnswer { tag, tenant, arrival_ns, finish_ns: now_ns, latency }
    }
}
