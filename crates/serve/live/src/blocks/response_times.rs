//! Response times of requests, and the part of them behind the cache.
//!
//! For: partitioners that weigh hits by time. Must never know: what divides. Units: nanoseconds of
//! the I/O's clock. A response begins with its decision. What is behind the cache is the time in
//! which steps of the request are carried out on its backing device, side by side or one by one. A
//! request without such a step is a hit. A replay measures nothing of it: divisions are recorded.

use super::request::BlockOp;
use super::server::BlockServer;
use super::under_way::{OpenId, OpenRequest};
use crate::io::Io;
use cachewright_types::{Op, TenantId};

/// The times of a request under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTimes {
    decided_ns: u64,
    /// Steps on the backing device that are under way, and since when there is one.
    steps: u32,
    since_ns: u64,
    behind_ns: u64,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTiming {
    /// Whose it was.
    pub tenant: TenantId,
    /// A read or a write.
    pub op: Op,
    /// When it was decided.
    pub decided_ns: u64,
    /// Time behind the cache: at least 1 if there was a step.
    pub behind_ns: u64,
}

impl RequestTimes {
    /// A request is decided.
    pub fn new(decided_ns: u64) -> RequestTimes {
        RequestTimes { decided_ns, ..RequestTimes::default() }
    }

    fn begin(&mut self, now_ns: u64) {
        if self.steps == 0 {
            self.since_ns = now_ns;
        }
        self.steps += 1;
    }

    fn end(&mut self, now_ns: u64) {
        if self.steps == 1 {
            self.behind_ns += now_ns.saturating_sub(self.since_ns).max(1);
        }
        self.steps = self.steps.saturating_sub(1);
    }
}

impl BlockServer {
    /// A step on the backing device of a request's volume begins.
    pub(super) fn begin_behind(&mut self, io: &mut impl Io, open: Option<OpenId>) {
        if let Some(request) = open.and_then(|open| self.under_way.request(open)) {
            request.times.begin(io.now_ns());
        }
    }

    /// The same step has ended.
    pub(super) fn end_behind(&mut self, io: &mut impl Io, open: OpenId) {
        if let Some(request) = self.under_way.request(open) {
            request.times.end(io.now_ns());
        }
    }

    /// A request is answered; errors have no price.
    pub(super) fn note_answer(&mut self, request: &OpenRequest) {
        let division = self.decisions.division.as_ref();
        let op = match request.request.op {
            BlockOp::Read => Op::Read,
            BlockOp::Write => Op::Write,
            BlockOp::Flush | BlockOp::Trim | BlockOp::Zero | BlockOp::Provision => return,
        };
        if request.error.is_none() && division.is_some_and(|division| division.is_priced()) {
            let (tenant, times) = (request.request.tenant, request.times);
            let RequestTimes { decided_ns, behind_ns, .. } = times;
            self.answers.note(RequestTiming { tenant, op, decided_ns, behind_ns });
        }
    }

    /// Measures what was answered just now.
    pub(super) fn measure_answers(&mut self, io: &mut impl Io) {
        if !self.answers.has_timings() {
            return;
        }
        let now_ns = io.now_ns();
        for timing in self.answers.drain_timings() {
            self.decisions.answered(now_ns, &timing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_side_by_side_count_once_and_steps_one_by_one_add_up() {
        let mut times = RequestTimes::new(5);
        times.begin(10);
        times.begin(12);
        times.end(15);
        assert_eq!(times.behind_ns, 0);
        times.end(20);
        times.begin(30);
        times.end(30);
        assert_eq!((times.decided_ns, times.behind_ns), (5, 11));
    }
}
