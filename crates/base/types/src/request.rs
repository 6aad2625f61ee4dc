//! A request to a volume, and the blocks that its bytes touch.

use crate::{Bytes, Nanos, TenantId};
use cachewright_snapshot::SnapshotValue;
use std::ops::Range;

/// What a request asks of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, SnapshotValue)]
#[repr(u8)]
pub enum Op {
    /// Read bytes.
    #[default]
    Read = 0,
    /// Write bytes.
    Write = 1,
    /// Discard or write-zeroes: the bytes are no longer needed.
    Trim = 2,
    /// Make earlier writes durable; carries no bytes.
    Flush = 3,
}

impl Op {
    /// All kinds, in the order of their stored numbers.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

    /// The kind stored as `number`, or nothing for an unknown one.
    pub fn from_number(number: u8) -> Option<Op> {
        Op::ALL.get(usize::from(number)).copied()
    }

    /// The word used in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
        }
    }
}

/// One request of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SnapshotValue)]
pub struct Request {
    /// Arrival since the start of the workload.
    pub time: Nanos,
    /// First byte on the tenant's volume.
    pub offset: Bytes,
    /// Length; 0 for a flush.
    pub length: Bytes,
    /// What is asked.
    pub op: Op,
    /// The tenant that sends it.
    pub tenant: TenantId,
}

/// The numbers of the blocks of `1 << shift` bytes that a range touches; none for a range without
/// bytes. A range that ends beyond the last address ends there.
#[inline]
pub fn block_numbers(offset: u64, length: u64, shift: u32) -> Range<u64> {
    let (first, end) = (offset >> shift, offset.saturating_add(length));
    first..if end == offset { first } else { end.div_ceil(1 << shift) }
}

/// The numbers of the blocks that lie wholly inside a range.
#[inline]
pub fn whole_block_numbers(offset: u64, length: u64, shift: u32) -> Range<u64> {
    let first = offset.div_ceil(1 << shift);
    first..(offset.saturating_add(length) >> shift).max(first)
}

/// The bytes that a request covers of each block it touches; at least one.
#[inline]
pub fn block_bytes(offset: u64, length: u64, shift: u32) -> impl Iterator<Item = u32> {
    let end = offset.saturating_add(length.max(1));
    let part = move |block: u64| {
        let start = block << shift;
        (end - start).min(1 << shift) - (offset.max(start) - start)
    };
    (offset >> shift..=(end - 1) >> shift).map(move |block| part(block) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_block_borders_and_at_the_last_address() {
        assert_eq!(block_numbers(4095, 2, 12), 0..2);
        assert_eq!(block_numbers(8192, 4096, 12), 2..3);
        assert_eq!(block_numbers(8192, 0, 12), 2..2);
        assert_eq!(block_numbers(8200, 0, 12), 2..2, "nor in the middle of a block");
        assert_eq!(block_numbers(u64::MAX - 1, 10, 12), (1 << 52) - 1..1 << 52);
        assert!(block_numbers(u64::MAX, 10, 12).is_empty());
        assert_eq!(block_bytes(4095, 2, 12).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(block_bytes(100, 0, 12).collect::<Vec<_>>(), [1]);
        assert_eq!(block_bytes(512, 8192, 12).collect::<Vec<_>>(), [3584, 4096, 512]);
    }

    #[test]
    fn a_block_is_whole_when_all_its_bytes_lie_in_the_range() {
        assert_eq!(whole_block_numbers(4096, 8192, 12), 1..3);
        assert_eq!(whole_block_numbers(4095, 8193, 12), 1..3);
        assert_eq!(whole_block_numbers(4097, 8191, 12), 2..3);
        assert!(whole_block_numbers(4097, 4095, 12).is_empty());
        assert!(whole_block_numbers(4097, 100, 12).is_empty(), "inside one block");
        assert!(whole_block_numbers(8192, 0, 12).is_empty());
        let last = (1 << 52) - 1;
        assert_eq!(whole_block_numbers((last - 1) << 12, u64::MAX, 12), last - 1..last);
    }

    #[test]
    fn whole_blocks_are_those_of_which_every_byte_is_covered() {
        for (offset, length) in (0..40).flat_map(|offset| (0..40).map(move |end| (offset, end))) {
            let touched = block_numbers(offset, length, 3);
            let whole = touched
                .clone()
                .filter(|block| offset <= block << 3 && offset + length >= (block + 1) << 3);
            let expected: Vec<u64> = whole.collect();
            assert_eq!(whole_block_numbers(offset, length, 3).collect::<Vec<_>>(), expected);
            let bytes = touched.flat_map(|block| block << 3..(block + 1) << 3);
            let covered = bytes.filter(|byte| (offset..offset + length).contains(byte)).count();
            assert_eq!(covered as u64, length, "every byte lies in a block that is touched");
        }
    }
}
