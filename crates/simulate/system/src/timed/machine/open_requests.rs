//! Requests under way, and the answers to those that are done.
//!
//! For: when a request is answered: when the steps that it requires are done and all of them are
//! known. Must never know: what its steps do. Units: nanoseconds.

use super::super::latency_breakdown::LatencyBreakdown;
use super::ids::RequestId;
use cachewright_types::TenantId;

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    tag: u64,
    arrival_ns: u64,
    tenant: TenantId,
    /// Required steps not done, and one more until all are known.
    missing: u32,
    latency: LatencyBreakdown,
}

/// A request answered.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
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

/// Requests under way, and answers not yet taken.
#[derive(Clone, Debug, Default)]
pub struct OpenRequests {
    open: Vec<Open>,
    free: Vec<RequestId>,
    answers: Vec<Answer>,
}

impl OpenRequests {
    /// A request arrives.
    pub fn open(&mut self, tag: u64, tenant: TenantId, arrival_ns: u64) -> RequestId {
        let latency = LatencyBreakdown::default();
        let open = Open { tag, arrival_ns, tenant, missing: 1, latency };
        match self.free.pop() {
            Some(id) => {
                self.open[id.index()] = open;
                id
            }
            None => {
                self.open.push(open);
                RequestId::new(self.open.len() - 1)
            }
        }
    }

    /// A request requires one more step.
    pub fn require_step(&mut self, id: RequestId) {
        self.open[id.index()].missing += 1;
    }

    /// A required step is done, up to which the request's time went as said.
    pub fn end_step(&mut self, id: RequestId, latency: &LatencyBreakdown, now_ns: u64) {
        self.open[id.index()].latency = *latency;
        self.settle(id, now_ns);
    }

    /// All steps of a request are known.
    pub fn close(&mut self, id: RequestId, now_ns: u64) {
        self.settle(id, now_ns);
    }

    fn settle(&mut self, id: RequestId, now_ns: u64) {
        let open = &mut self.open[id.index()];
        open.missing -= 1;
        if open.missing > 0 {
            return;
        }
        let Open { tag, arrival_ns, tenant, latency, .. } = *open;
        debug_assert_eq!(latency.total_ns(), now_ns - arrival_ns, "every nanosecond has a part");
        self.answers.push(Answer { tag, tenant, arrival_ns, finish_ns: now_ns, latency });
        self.free.push(id);
    }

    /// When a request arrived.
    pub fn arrival_ns(&self, id: RequestId) -> u64 {
        self.open[id.index()].arrival_ns
    }

    /// Replaces `answers` by those given since the last call, in order.
    pub fn take_answers(&mut self, answers: &mut Vec<Answer>) {
        answers.clear();
        answers.append(&mut self.answers);
    }

    /// Requests under way.
    pub fn count(&self) -> usize {
        self.open.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::latency_breakdown::Wait;
    use super::*;

    #[test]
    fn a_request_is_answered_when_all_its_steps_are_known_and_done() {
        let mut requests = OpenRequests::default();
        let [a, b] = [7, 8].map(|tag| requests.open(tag, TenantId(1), 100));
        let mut latency = LatencyBreakdown::default();
        latency.wait(Wait::Block, 50);
        requests.require_step(a);
        requests.require_step(b);
        requests.end_step(a, &latency, 150);
        let mut answers = Vec::new();
        requests.take_answers(&mut answers);
        assert!(answers.is_empty(), "more steps may come");
        requests.close(b, 120);
        requests.close(a, 150);
        assert_eq!((requests.arrival_ns(b), requests.count()), (100, 1));
        requests.take_answers(&mut answers);
        assert_eq!((answers.len(), answers[0].tag, answers[0].finish_ns), (1, 7, 150));
        assert_eq!(requests.open(9, TenantId(0), 160), a, "the number is free again");
        requests.end_step(b, &latency, 150);
        requests.take_answers(&mut answers);
        assert_eq!((answers.len(), answers[0].tag, requests.count()), (1, 8, 1));
    }
}
