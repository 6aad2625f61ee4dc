//! Classes: what blocks have in common that wait for their next use.
//!
//! For: `rc-x`. Must never know: life tables, addresses of blocks. Units: bytes, accesses.
//!
//! A class is the last interval between two uses of the block (no use before, below 64 accesses,
//! then by doublings), whether it was read or written last, the shape of the request that did so
//! (at most 8 KiB, at most 64 KiB, longer, or one that goes on where another has ended), and how
//! often it was used (once, twice, up to 5 times, more).
//!
//! Requests are given in bytes, so that what a block holds is the most bytes per access that any
//! request had so far: of one that begins and ends with a block it is just that.

use crate::RequestInfo;

/// Number of classes.
pub const CLASSES: usize = 512;
/// Classes without how often the block was used.
pub const KINDS: usize = 128;
/// Kinds without the shape of the request.
pub const FAMILIES: usize = 32;

/// Ends of requests remembered.
const ENDS: usize = 32;
/// Bytes of a block, at least.
const MIN_BLOCK_BYTES: u64 = 512;
/// Bytes of a short request, at most.
const SHORT: u64 = 8 << 10;
/// Bytes of a request that is not long, at most.
const MIDDLE: u64 = 64 << 10;

/// The shape of requests as they come; short until the first one.
#[derive(Clone, Debug)]
pub struct Shapes {
    ends: [u64; ENDS],
    oldest: usize,
    shape: u16,
    /// Bytes of the present request, and accesses to blocks of it so far.
    length: u64,
    accesses: u64,
    /// Bytes of a block, as far as is known.
    block: u64,
    /// The present request by one of its blocks.
    share: f32,
}

impl Default for Shapes {
    fn default() -> Self {
        Shapes {
            ends: [u64::MAX; ENDS],
            oldest: 0,
            shape: 0,
            length: 0,
            accesses: 0,
            block: MIN_BLOCK_BYTES,
            share: 1.0,
        }
    }
}

impl Shapes {
    /// Takes the next request.
    pub fn next(&mut self, request: &RequestInfo) {
        let held = self.length.checked_div(self.accesses);
        self.block = self.block.max(held.unwrap_or(0));
        (self.length, self.accesses) = (request.length, 0);
        self.share = (self.block as f32 / request.length as f32).min(1.0);
        let goes_on = self.ends.contains(&request.offset);
        self.ends[self.oldest] = request.offset.saturating_add(request.length);
        self.oldest = (self.oldest + 1) % ENDS;
        self.shape = if goes_on {
            3
        } else {
            u16::from(request.length > SHORT) + u16::from(request.length > MIDDLE)
        };
    }

    /// A block of the present request is used.
    #[inline(always)]
    pub fn uses(&mut self) {
        self.accesses += 1;
    }

    /// The share of the present request that one of its blocks is.
    #[inline(always)]
    pub fn share(&self) -> f32 {
        self.share
    }

    /// The class of a block used now: `interval` after its use before, if one is known, and
    /// `uses` times in all.
    #[inline(always)]
    pub fn class(&self, interval: Option<u32>, write: bool, uses: u8) -> u16 {
        let interval =
            interval.map_or(0, |age| (27_u32.saturating_sub(age.leading_zeros())).clamp(1, 15));
        let often = match uses {
            ..=1 => 0,
            2 => 1,
            3..=5 => 2,
            _ => 3,
        };
        interval as u16 | u16::from(write) << 4 | self.shape << 5 | often << 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_hand() {
        let mut shapes = Shapes::default();
        assert_eq!(shapes.class(None, false, 1), 0);
        assert_eq!(shapes.class(Some(63), false, 2), 1 | 1 << 7);
        assert_eq!(shapes.class(Some(64), true, 5), 2 | 1 << 4 | 2 << 7);
        assert_eq!(shapes.class(Some(u32::MAX), true, 255), CLASSES as u16 - 1 - (3 << 5));
        let mut shape = |offset, length| {
            shapes.next(&RequestInfo { offset, length, ..RequestInfo::default() });
            shapes.class(None, false, 1) >> 5
        };
        assert_eq!([shape(0, 8 << 10), shape(1 << 30, 64 << 10)], [0, 1]);
        assert_eq!(
            [shape(1 << 40, 65 << 10), shape(8 << 10, 512)],
            [2, 3],
            "goes on with the first"
        );
        // Of 33 requests the first one's end is forgotten.
        (0..29).for_each(|at| assert_eq!(shape(at << 50 | 1, 1), 0));
        assert_eq!(shape((1 << 30) + (64 << 10), 1), 3);
        assert_eq!(shape(8 << 10, 1), 0);
    }

    /// 64 KiB in 17 blocks (begun in the middle of one), then in 16; from there on 4 KiB are one.
    #[test]
    fn shares_by_hand() {
        let mut shapes = Shapes::default();
        let mut share = |length, blocks| {
            shapes.next(&RequestInfo { length, ..RequestInfo::default() });
            (0..blocks).for_each(|_| shapes.uses());
            shapes.share()
        };
        assert_eq!(share(1 << 16, 17), 512.0 / 65_536.0);
        assert_eq!(share(1 << 16, 16), 3_855.0 / 65_536.0);
        assert_eq!([share(1 << 16, 16), share(1 << 14, 4), share(512, 1)], [1.0 / 16.0, 0.25, 1.0]);
        assert_eq!(share(0, 0), 1.0);
    }
}
