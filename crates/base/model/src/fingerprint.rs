//! A number that tells model files apart.
//!
//! For: owners of a model that take its file again. Must never know: what a file holds.

use cachewright_types::seed::mix;

/// A number of 64 bits that differs between files, but for accidents; 0 for no bytes.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(bytes.len() as u64, |hash, word| mix(hash ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_in_a_bit_or_in_length_are_told_apart() {
        let file: Vec<u8> = (0..29).collect();
        let known = fingerprint(&file);
        assert_eq!((known, fingerprint(&[])), (fingerprint(&file.clone()), 0));
        for bit in 0..file.len() * 8 {
            let mut other = file.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(fingerprint(&other), known, "bit {bit}");
        }
        assert_ne!(fingerprint(&[file.as_slice(), &[0]].concat()), known);
    }
}
