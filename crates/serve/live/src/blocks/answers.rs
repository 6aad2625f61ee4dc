//! Answers of a server of blocks that were not taken yet, and the times of those just given.
//!
//! For: answers in the order in which requests end. Must never know: why a request ends, what is
//! measured by its times. Units: nanoseconds.

use super::request::{BlockAnswer, BlockRequest};
use super::response_times::RequestTiming;
use crate::io::IoError;

/// Answers; see the top of the file.
#[derive(Debug, Default)]
pub struct BlockAnswers {
    ready: Vec<BlockAnswer>,
    /// Of answers whose times are to be measured.
    timings: Vec<RequestTiming>,
}

impl BlockAnswers {
    /// A request ends.
    pub fn push(&mut self, answer: BlockAnswer) {
        self.ready.push(answer);
    }

    /// A request ends with an error, and nothing was done for it.
    pub fn refuse(&mut self, request: &BlockRequest, error: IoError) {
        let answer = BlockAnswer { tag: request.tag, result: Err(error), data: Default::default() };
        self.push(answer);
    }

    /// The times of an answer are to be measured.
    pub fn note(&mut self, timing: RequestTiming) {
        self.timings.push(timing);
    }

    /// The answers since the last call.
    pub fn take(&mut self) -> Vec<BlockAnswer> {
        std::mem::take(&mut self.ready)
    }

    /// Whether times are to be measured.
    pub fn has_timings(&self) -> bool {
        !self.timings.is_empty()
    }

    /// The times noted since the last call.
    pub fn drain_timings(&mut self) -> impl Iterator<Item = RequestTiming> + '_ {
        self.timings.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::BlockOp;
    use super::*;
    use cachewright_types::{Op, TenantId};

    #[test]
    fn answers_and_times_are_taken_once() {
        let mut answers = BlockAnswers::default();
        let (tag, tenant, op) = (7, TenantId(1), BlockOp::Flush);
        let (offset, length, durable, data) = (0, 0, false, Default::default());
        let request = BlockRequest { tag, tenant, op, offset, length, durable, data };
        answers.refuse(&request, IoError::NO_SPACE);
        answers.note(RequestTiming { tenant, op: Op::Read, decided_ns: 3, behind_ns: 0 });
        assert!(answers.has_timings());
        let taken = answers.take();
        assert_eq!((taken.len(), taken[0].tag, taken[0].result), (1, 7, Err(IoError::NO_SPACE)));
        assert!(answers.take().is_empty() && answers.has_timings());
        assert_eq!(answers.drain_timings().map(|timing| timing.decided_ns).sum::<u64>(), 3);
        assert!(!answers.has_timings());
    }
}
