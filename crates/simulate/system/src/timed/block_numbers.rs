//! The blocks that a range of bytes touches.
//!
//! For: one way to count them. Must never know: whose blocks they are. Units: bytes, blocks.

use std::ops::Range;

/// The numbers of the blocks of `1 << shift` bytes that a range touches.
pub(crate) fn block_numbers(offset: u64, length: u64, shift: u32) -> Range<u64> {
    offset >> shift..(offset + length).div_ceil(1 << shift)
}
