//! What a plan is carried out for: a request, and the bytes that it is about.
//!
//! For: commands that touch parts of blocks. Must never know: moves of plans, steps. Units: bytes,
//! blocks of `1 << shift` bytes.

use crate::ids::RequestId;
use cachewright_types::{Op, TenantId};
use std::ops::Range;

/// What a plan is carried out for.
#[derive(Clone, Debug)]
pub struct Purpose {
    /// The request that is answered by it, if one is.
    pub request: Option<RequestId>,
    /// The tenant of its commands.
    pub tenant: TenantId,
    /// The request's operation; a read where there is no request.
    pub op: Op,
    /// The request's bytes; whole blocks where there is no request.
    pub bytes: Range<u64>,
}

impl Purpose {
    /// The request's bytes of a run of blocks: where they begin in the first, and how many.
    pub fn clip(&self, blocks: Range<u64>, shift: u32) -> (u64, u64) {
        let (start, end) = (first_byte(blocks.start, shift), first_byte(blocks.end, shift));
        let from = self.bytes.start.clamp(start, end);
        (from - start, self.bytes.end.clamp(from, end) - from)
    }

    /// Whether the request covers a whole block.
    pub fn covers(&self, number: u64, shift: u32) -> bool {
        let (start, end) = (first_byte(number, shift), first_byte(number + 1, shift));
        self.bytes.start <= start && end <= self.bytes.end
    }
}

/// The first byte of a block; the last address for blocks beyond it.
fn first_byte(number: u64, shift: u32) -> u64 {
    number.saturating_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_covers_whole_blocks_and_parts_of_its_first_and_last() {
        let purpose = |bytes| Purpose { request: None, tenant: TenantId(0), op: Op::Write, bytes };
        let some = purpose(5000..13000);
        assert_eq!([1, 2, 3].map(|number| some.covers(number, 12)), [false, true, false]);
        assert_eq!(some.clip(1..4, 12), (904, 8000));
        assert_eq!((some.clip(2..3, 12), some.clip(3..4, 12)), ((0, 4096), (0, 712)));
        assert_eq!(some.clip(5..6, 12), (0, 0));
        let all = purpose(0..u64::MAX);
        assert!(all.covers(u64::MAX >> 12, 12), "beyond the last address");
    }
}
