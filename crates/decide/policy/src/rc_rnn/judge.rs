//! When a characterizer finds the kind of workload.
//!
//! For: the switch between models. Must never know: models of caching, queues. Source: Ebrahimi et
//! al., RC-RNN, section 4.2: once a minute, on the last requests. Unit: nanoseconds.

use crate::RequestInfo;
use crate::characterize::Characterizer;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};

/// A characterizer and when it answers next.
pub struct Judge {
    characterizer: Box<dyn Characterizer>,
    every_ns: u64,
    next_ns: u64,
}

impl Judge {
    /// One that answers for the first time when `every_ns` have gone by.
    pub fn new(characterizer: Box<dyn Characterizer>, every_ns: u64) -> Judge {
        Judge { characterizer, every_ns, next_ns: every_ns }
    }

    /// Takes in a request. The kind of workload, when it is time and the characterizer knows: of
    /// the requests before this one.
    pub fn observe(&mut self, request: &RequestInfo) -> Option<String> {
        let mut kind = None;
        if request.time_ns >= self.next_ns {
            let periods = request.time_ns / self.every_ns.max(1);
            self.next_ns = periods.saturating_add(1).saturating_mul(self.every_ns);
            let judged = self.characterizer.classify();
            kind = judged.and_then(|found| self.characterizer.kinds().get(found.kind).cloned());
        }
        self.characterizer.observe(&Request {
            time: Nanos(request.time_ns),
            tenant: TenantId(0),
            op: if request.write { Op::Write } else { Op::Read },
            offset: Bytes(request.offset),
            length: Bytes(request.length),
        });
        kind
    }
}
