//! One id of an index: the number of its block, and the next id in its chain.
//!
//! For: eleven bytes per id. Must never know: buckets, tenants, which ids are free.

use super::MAX_NUMBER;

/// An id: 7 bytes of its block's number and 4 of the next id in its chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdNode([u8; 11]);

impl IdNode {
    /// An id of the block of this number, with the next id in its chain.
    #[inline(always)]
    pub(super) fn new(number: u64, next: u32) -> IdNode {
        let mut bytes = [0; 11];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[7..].copy_from_slice(&next.to_le_bytes());
        IdNode(bytes)
    }

    /// The block's number.
    #[inline(always)]
    pub(super) fn number(self) -> u64 {
        // One load of eight bytes, of which the last belongs to the next id.
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h]) & MAX_NUMBER
    }

    /// The next id in its chain.
    #[inline(always)]
    pub(super) fn next(self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_both_numbers() {
        for number in [0, 1, MAX_NUMBER - 1, MAX_NUMBER] {
            for next in [0, 0x0102_0304, u32::MAX] {
                let node = IdNode::new(number, next);
                assert_eq!((node.number(), node.next()), (number, next));
            }
        }
        assert_eq!(size_of::<IdNode>(), 11);
    }
}
