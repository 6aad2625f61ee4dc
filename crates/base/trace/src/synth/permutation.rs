//! A fixed random order of `0..n` that needs no memory.
//!
//! For: scattering ranks over addresses. Must never know: what is ordered. A Feistel network of
//! four rounds over the next power of four, walked until the value falls below `n` (fewer than four
//! steps on average). Source: J. Black and P. Rogaway, "Ciphers with arbitrary finite domains",
//! CT-RSA 2002, cycle walking.

use cachewright_types::Seed;
use cachewright_types::seed::mix;

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    len: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// An order of `0..len`, the same for the same seed.
    pub(super) fn new(len: u64, seed: Seed) -> Permutation {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let mut rng = seed.rng();
        Permutation {
            len: len.max(1),
            half_bits: bits.div_ceil(2).max(1),
            keys: [(); 4].map(|()| rng.next_u64()),
        }
    }

    /// What stands at `index`, which must be below the length.
    pub(super) fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let mask = (1_u64 << self.half_bits) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> self.half_bits, value & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            value = left << self.half_bits | right;
            if value < self.len {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_stands_somewhere_once() {
        for len in [1, 2, 3, 4, 5, 17, 1000, 4096, 4097] {
            let order = Permutation::new(len, Seed(5));
            let mut seen = vec![false; len as usize];
            (0..len).for_each(|index| seen[order.apply(index) as usize] = true);
            assert!(seen.iter().all(|seen| *seen), "{len}");
        }
        let order = Permutation::new(1000, Seed(5));
        let fixed = (0..1000).filter(|index| order.apply(*index) == *index).count();
        assert!(fixed < 10, "{fixed} of 1000 stayed");
        assert!(Permutation::new(u64::MAX >> 1, Seed(1)).apply(7) < u64::MAX >> 1);
    }
}
