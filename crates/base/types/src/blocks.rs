//! The blocks that a range of bytes touches.
//!
//! For: one way to split requests at block borders. Must never know: whose blocks they are. Units:
//! bytes, blocks of `1 << shift` bytes. A range that ends beyond the last address ends there.

use std::ops::Range;

/// The numbers of the blocks that a range touches.
#[inline]
pub fn block_numbers(offset: u64, length: u64, shift: u32) -> Range<u64> {
    offset >> shift..offset.saturating_add(length).div_ceil(1 << shift)
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
        assert_eq!(block_numbers(u64::MAX - 1, 10, 12), (1 << 52) - 1..1 << 52);
        assert_eq!(block_bytes(4095, 2, 12).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(block_bytes(100, 0, 12).collect::<Vec<_>>(), [1]);
        assert_eq!(block_bytes(512, 8192, 12).collect::<Vec<_>>(), [3584, 4096, 512]);
    }
}
