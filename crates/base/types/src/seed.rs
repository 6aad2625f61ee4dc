//! Seeds derived by name from one root seed, and the small generator they feed: the same root and
//! name give the same stream on every machine and with any number of threads.
//!
//! Source: splitmix64 (Steele, Lea, Flood, OOPSLA'14).

use cachewright_snapshot::SnapshotValue;

/// A root or derived seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, SnapshotValue)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of the part called `name`; different names give unrelated streams.
    pub fn derive(self, name: &str) -> Seed {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ mix(self.0);
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Seed(mix(hash))
    }

    /// A generator that starts from this seed.
    pub fn rng(self) -> Rng {
        Rng { state: self.0 }
    }
}

/// splitmix64: 64-bit state, passes BigCrush, one multiply chain per draw.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The next 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix_output(self.state)
    }

    /// Uniform in `[0, 1)` with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// Uniform in `0..bound` (0 when `bound` is 0), by multiply-shift; bias below 2^-32 for
    /// bounds below 2^32.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// One finalisation of splitmix64 applied to `x`: a good 64-bit mixing function.
#[inline]
pub fn mix(x: u64) -> u64 {
    mix_output(x.wrapping_add(0x9E37_79B9_7F4A_7C15))
}

#[inline]
fn mix_output(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_unrelated_reproducible_streams() {
        let a = Seed(7).derive("tenant/0");
        assert_eq!(a, Seed(7).derive("tenant/0"));
        assert_ne!(a, Seed(7).derive("tenant/1"));
        assert_ne!(a, Seed(8).derive("tenant/0"));
    }

    #[test]
    fn the_generator_is_splitmix64() {
        let mut rng = Seed(42).rng();
        let first = 1 + (20_000.0 * rng.unit().powi(3)) as u64;
        assert_eq!(first, 8157, "first id of the golden synthetic trace");
    }
}
