//! Requests under way, and the answers to those that are done.
//!
//! For: when a request is answered: when the steps that it requires are done and all of them are
//! known. Must never know: what its steps do, time.

use crate::ids::RequestId;
use cachewright_types::TenantId;

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct UnansweredRequest<N> {
    tag: u64,
    tenant: TenantId,
    /// Required steps not done, and one more until all are known.
    missing: u32,
    failed: bool,
    /// All steps are known.
    closed: bool,
    note: N,
}

/// A request answered.
#[derive(Clone, Copy, Debug)]
pub struct RequestAnswer<N> {
    /// As submitted.
    pub tag: u64,
    /// The tenant that sent it.
    pub tenant: TenantId,
    /// Whether a step that it required has failed.
    pub failed: bool,
    /// The note of the required step that ended last.
    pub note: N,
}

/// Requests under way, and answers not yet taken.
#[derive(Clone, Debug)]
pub struct OpenRequests<N> {
    open: Vec<UnansweredRequest<N>>,
    free: Vec<RequestId>,
    answers: Vec<RequestAnswer<N>>,
}

impl<N> Default for OpenRequests<N> {
    fn default() -> Self {
        OpenRequests { open: Vec::new(), free: Vec::new(), answers: Vec::new() }
    }
}

impl<N: Copy> OpenRequests<N> {
    /// A request arrives.
    pub fn open(&mut self, tag: u64, tenant: TenantId, note: N) -> RequestId {
        let open =
            UnansweredRequest { tag, tenant, missing: 1, failed: false, closed: false, note };
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

    /// The note of a request not all of whose steps are known: that of the required step that
    /// ended last, at first the one it came with.
    pub fn note(&self, id: RequestId) -> &N {
        let open = &self.open[id.index()];
        debug_assert!(!open.closed, "the note of a closed request lies in its steps");
        &open.note
    }

    /// A request requires one more step.
    pub fn require_step(&mut self, id: RequestId) {
        self.open[id.index()].missing += 1;
    }

    /// A required step is done.
    pub fn end_step(&mut self, id: RequestId, note: &N, failed: bool) {
        let open = &mut self.open[id.index()];
        open.failed |= failed;
        open.missing -= 1;
        if open.missing == 0 {
            self.answer(id, *note);
        } else if !open.closed {
            // Once all steps are known, another one ends behind this one.
            open.note = *note;
        }
    }

    /// All steps of a request are known.
    pub fn close(&mut self, id: RequestId) {
        let open = &mut self.open[id.index()];
        open.closed = true;
        open.missing -= 1;
        if open.missing == 0 {
            let note = open.note;
            self.answer(id, note);
        }
    }

    fn answer(&mut self, id: RequestId, note: N) {
        let UnansweredRequest { tag, tenant, failed, .. } = self.open[id.index()];
        self.answers.push(RequestAnswer { tag, tenant, failed, note });
        self.free.push(id);
    }

    /// The answers since the last call, in order.
    pub fn drain_answers(&mut self) -> impl Iterator<Item = RequestAnswer<N>> + use<'_, N> {
        self.answers.drain(..)
    }

    /// Requests under way.
    pub fn count(&self) -> usize {
        self.open.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(requests: &mut OpenRequests<u64>) -> Vec<(u64, u64, bool)> {
        let answer = |answer: RequestAnswer<u64>| (answer.tag, answer.note, answer.failed);
        requests.drain_answers().map(answer).collect()
    }

    #[test]
    fn a_request_is_answered_when_all_its_steps_are_known_and_done() {
        let mut requests = OpenRequests::default();
        let [a, b] = [7, 8].map(|tag| requests.open(tag, TenantId(1), 100));
        requests.require_step(a);
        requests.require_step(b);
        assert_eq!(*requests.note(a), 100);
        requests.end_step(a, &150, false);
        assert_eq!((*requests.note(a), *requests.note(b)), (150, 100));
        assert_eq!(tags(&mut requests), [], "more steps may come");
        requests.close(b);
        requests.close(a);
        assert_eq!((tags(&mut requests), requests.count()), (vec![(7, 150, false)], 1));
        assert_eq!(requests.open(9, TenantId(0), 160), a, "the number is free again");
        requests.end_step(b, &170, true);
        assert_eq!((tags(&mut requests), requests.count()), (vec![(8, 170, true)], 1));
    }
}
