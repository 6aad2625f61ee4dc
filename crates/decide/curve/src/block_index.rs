//! The blocks of a sample, each with a dense id of its own.
//!
//! For: stacks and small caches, which keep state by id. Must never know: what is sampled. Memory:
//! that of the blocks held.

use cachewright_types::{BlockKey, VolumeKeys};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// Dense ids by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockIndex {
    ids: HashMap<BlockKey, u32, FixedState>,
}

impl BlockIndex {
    /// The id of a block that is held.
    #[inline]
    pub fn get(&self, key: BlockKey) -> Option<u32> {
        self.ids.get(&key).copied()
    }

    /// The id of a block; a new one gets the number of blocks held.
    #[inline]
    pub fn enter(&mut self, key: BlockKey) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(key).or_insert(next)
    }

    /// Holds a block under an id that is free.
    pub fn insert(&mut self, key: BlockKey, id: u32) {
        self.ids.insert(key, id);
    }

    /// Holds a block no more.
    pub fn remove(&mut self, key: BlockKey) {
        self.ids.remove(&key);
    }

    /// The ids of the blocks held of a range of a volume, by ascending number. Costs the smaller of
    /// the range and the blocks held.
    pub fn within(&self, volume: VolumeKeys, numbers: Range<u64>) -> Vec<u32> {
        if numbers.end.saturating_sub(numbers.start) <= self.ids.len() as u64 {
            return numbers.filter_map(|number| self.get(volume.key(number))).collect();
        }
        let held = self.ids.iter().map(|(key, id)| (volume.number(*key), *id));
        let mut found: Vec<(u64, u32)> =
            held.filter(|(number, _)| numbers.contains(number)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::TenantId;

    #[test]
    fn a_range_is_found_from_either_side_by_ascending_number() {
        let (volume, other) = (VolumeKeys::new(TenantId(1), 0), VolumeKeys::new(TenantId(1), 1));
        let mut index = BlockIndex::default();
        for number in [9, 2, 5, 1 << 40] {
            index.enter(volume.key(number));
        }
        index.enter(other.key(5));
        assert_eq!(index.within(volume, 2..6), [1, 2]);
        assert_eq!(index.within(volume, 2..1 << 41), [1, 2, 0, 3]);
        assert_eq!(index.within(other, 0..1 << 41), [4]);
        index.remove(volume.key(5));
        assert_eq!(index.within(volume, 0..1 << 41), [1, 0, 3]);
        assert_eq!((index.ids.len(), index.get(volume.key(5))), (4, None));
        assert!(index.within(volume, Range { start: 7, end: 3 }).is_empty());
    }
}
