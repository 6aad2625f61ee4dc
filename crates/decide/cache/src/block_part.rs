//! The blocks of a request, and how much of each it covers.
//!
//! For: requests in bytes. Must never know: caches, policies. Units: bytes at the border, blocks.

use cachewright_types::{Request, block_numbers};

/// One block of a request and how much of it the request covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPart {
    /// The block's number.
    pub(crate) number: u64,
    /// The request covers all of it.
    pub(crate) whole: bool,
    /// Bytes of it that the request covers.
    pub(crate) bytes: u64,
}

impl BlockPart {
    /// The blocks of a request, each of `1 << shift` bytes, in order.
    #[inline(always)]
    pub(crate) fn all_of(request: &Request, shift: u32) -> impl Iterator<Item = BlockPart> + use<> {
        let start = request.offset.0;
        let end = start.saturating_add(request.length.0);
        let size = 1_u64 << shift;
        block_numbers(start, request.length.0, shift).map(move |number| {
            let first = number << shift;
            let bytes = end.min(first.saturating_add(size)) - start.max(first);
            BlockPart { number, whole: bytes == size, bytes }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::{Bytes, Nanos, Op, TenantId};

    #[test]
    fn the_first_and_the_last_block_may_be_covered_in_part() {
        let parts = |offset, length| {
            let (offset, length, tenant) = (Bytes(offset), Bytes(length), TenantId(0));
            let request = Request { time: Nanos(0), offset, length, op: Op::Read, tenant };
            BlockPart::all_of(&request, 12)
                .map(|part| (part.number, part.whole, part.bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts(4096, 8192), [(1, true, 4096), (2, true, 4096)]);
        assert_eq!(parts(4097, 8191), [(1, false, 4095), (2, true, 4096)]);
        assert_eq!(parts(0, 4097), [(0, true, 4096), (1, false, 1)]);
        assert_eq!(parts(512, 512), [(0, false, 512)]);
    }
}
