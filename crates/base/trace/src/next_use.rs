//! When each access's block is asked for next: the future that Belady's policy reads.
//!
//! Units: positions in the access sequence, from 0. Source: L. A. Belady, "A study of replacement
//! algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966.

use cachewright_memory::lengthen;

/// The next use of a block that is never asked for again.
pub const NEVER: u32 = u32::MAX;

/// For each position of `ids` the next position of the same id, or [`NEVER`]; nothing when there
/// are more accesses than positions (2^32 - 1). `distinct` is one more than the largest id.
///
/// Memory: 4 B per access for the result and 4 B per distinct block meanwhile. Panics on an id of
/// `distinct` or more, as indexing does.
pub fn next_uses(ids: &[u32], distinct: u32) -> Option<Vec<u32>> {
    if ids.len() >= NEVER as usize {
        return None;
    }
    let mut upcoming = Vec::new();
    lengthen(&mut upcoming, distinct as usize, NEVER);
    let mut next = vec![NEVER; ids.len()];
    for (position, (id, next)) in ids.iter().zip(&mut next).enumerate().rev() {
        *next = std::mem::replace(&mut upcoming[*id as usize], position as u32);
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_hand_worked_case() {
        let next = next_uses(&[0, 1, 0, 2, 1, 0], 3);
        assert_eq!(next, Some(vec![2, 4, 5, NEVER, NEVER, NEVER]));
        assert_eq!(next_uses(&[], 0), Some(vec![]));
    }

    proptest! {
        #[test]
        fn agrees_with_searching_ahead(ids in prop::collection::vec(0_u32..20, 0..200)) {
            let expected: Vec<u32> = (0..ids.len())
                .map(|at| {
                    let later = ids[at + 1..].iter().position(|id| *id == ids[at]);
                    later.map_or(NEVER, |ahead| (at + 1 + ahead) as u32)
                })
                .collect();
            prop_assert_eq!(next_uses(&ids, 20), Some(expected));
        }
    }
}
