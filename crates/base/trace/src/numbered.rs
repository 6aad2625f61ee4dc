//! Names to numbers: each distinct name gets the next number at first sight.
//!
//! For: ids that are no addresses: keys, paths, hashes. Must never know: formats. Units: numbers
//! from 0. Names are not kept, only 128 bits of hash of each: two of 2^28 names share them with a
//! probability below 2^-72. Memory: 25 to 57 bytes per distinct name.

use foldhash::quality::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

/// What is refused.
pub(crate) const NAME: &str = "fewer than 2^28 distinct ids of 1 to 4096 bytes";
/// Distinct names.
const NAMES_LIMIT: u32 = 1 << 28;
/// The longest known are the keys of Twitter's caches and paths.
const NAME_LIMIT_BYTES: usize = 4096;
/// Any two that differ: two independent halves of a hash.
const SEEDS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

/// Numbers of the names met so far.
#[derive(Clone)]
pub(crate) struct Numbered {
    hashes: [FixedState; 2],
    numbers: HashMap<[u64; 2], u32, foldhash::fast::FixedState>,
}

impl Default for Numbered {
    fn default() -> Numbered {
        Numbered { hashes: SEEDS.map(FixedState::with_seed), numbers: HashMap::default() }
    }
}

impl Numbered {
    /// The number of `name`. Errors: no name, one that is too long, or too many of them.
    #[inline]
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<u64, &'static str> {
        if name.is_empty() || name.len() > NAME_LIMIT_BYTES {
            return Err(NAME);
        }
        let hash = [self.hashes[0].hash_one(name), self.hashes[1].hash_one(name)];
        let next = u32::try_from(self.numbers.len()).unwrap_or(NAMES_LIMIT);
        match self.numbers.get(&hash) {
            Some(number) => Ok(u64::from(*number)),
            None if next >= NAMES_LIMIT => Err(NAME),
            None => {
                self.numbers.insert(hash, next);
                Ok(u64::from(next))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn numbers_are_those_of_a_map_that_keeps_names() {
        let (mut numbered, mut kept) = (Numbered::default(), HashMap::new());
        for step in 0_u64..50_000 {
            let name = format!("key:{}", step * step % 7_919).into_bytes();
            let next = kept.len() as u64;
            let expected = *kept.entry(name.clone()).or_insert(next);
            assert_eq!(numbered.number(&name), Ok(expected));
        }
        assert_eq!(numbered.number(b""), Err(NAME));
        assert_eq!(numbered.number(&[b'x'; 4097]), Err(NAME));
    }
}
