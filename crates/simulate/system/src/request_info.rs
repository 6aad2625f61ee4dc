//! Whole requests beside block accesses, for policies that observe them.
//!
//! For: what a replay without devices passes to a policy that declares `Need::Requests`. Must never
//! know: caches. Units: bytes.

use crate::recording::{Recording, TRIM, WRITE};
use cachewright_policy::RequestInfo;
use cachewright_trace::Call;
use cachewright_types::TenantId;

/// Accesses, or times, read before their memory is given back.
const PIECE: usize = 1 << 20;

impl Recording {
    /// Whether it holds the requests that policies observe.
    pub fn has_requests(&self) -> bool {
        let requests = self.times_ns().len();
        self.extents.offset.len() == requests && (requests > 0 || self.is_empty())
    }

    /// A request that arrives at `time_ns`, as its policy sees it; nothing for a trim, and unless
    /// recorded.
    pub fn request_info(&self, request: usize, time_ns: u64) -> Option<RequestInfo> {
        let offset = *self.extents.offset.get(request)?;
        let length = *self.extents.length.get(request)?;
        let flags = *self.flags.get(self.accesses_of(request).start)?;
        let write = flags & WRITE != 0;
        (flags & TRIM == 0).then_some(RequestInfo { time_ns, offset, length, write })
    }

    /// Whether a tenant's trace names processes, where they are recorded.
    pub fn names_processes(&self, tenant: TenantId) -> bool {
        let named = |request: &usize| self.calls[*request] != Call::default();
        let own = |request: usize| self.tenant_at(self.start_of(request)) == tenant;
        (0..self.calls.len()).filter(named).any(own)
    }

    /// A number that differs for different accesses, times or extents, but for accidents of one in
    /// 2^64.
    pub fn fingerprint(&self) -> u64 {
        let fold =
            |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        let mut hash = 1;
        for from in (0..self.len()).step_by(PIECE) {
            let range = from..(from + PIECE).min(self.len());
            let accesses = self.ids[range.clone()].iter().zip(&self.flags[range.clone()]);
            hash = accesses.fold(hash, |hash, (id, flags)| {
                fold(hash, u64::from(*id) << 8 | u64::from(*flags))
            });
            self.release(range);
        }
        hash = self.keys.iter().fold(hash, |hash, key| fold(hash, key.0));
        for from in (0..self.times_ns().len()).step_by(PIECE) {
            let range = from..(from + PIECE).min(self.times_ns().len());
            hash = self.times_ns()[range.clone()].iter().fold(hash, |hash, word| fold(hash, *word));
            self.arrivals.release(range);
        }
        let words = self.extents.offset.iter().chain(&self.extents.length);
        words.fold(hash, |hash, word| fold(hash, *word))
    }
}
