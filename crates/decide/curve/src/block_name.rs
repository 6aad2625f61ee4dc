//! How a stream names its blocks, and which of them no sample holds.
//!
//! For: one meter for recordings, which have dense ids, and for requests, which have not. Must
//! never know: what is measured. A sample knows a block by its key alone, so that both ways measure
//! the same.

use cachewright_types::{BlockId, BlockKey};

/// A block as a meter is told of it. One meter is told in one of the two ways.
#[derive(Clone, Copy, Debug)]
pub enum BlockName<'a> {
    /// A block of a recording.
    Recorded {
        /// Dense in the stream.
        id: BlockId,
        /// The keys of the recording, read only for blocks that may be in a sample.
        keys: &'a [BlockKey],
        /// Where the key stands.
        index: u32,
    },
    /// A block by its key.
    Keyed(BlockKey),
}

impl BlockName<'_> {
    /// The block's key.
    #[inline(always)]
    pub fn key(&self) -> BlockKey {
        match self {
            BlockName::Recorded { keys, index, .. } => {
                debug_assert!((*index as usize) < keys.len(), "the recording keeps keys");
                keys.get(*index as usize).copied().unwrap_or_default()
            }
            BlockName::Keyed(key) => *key,
        }
    }

    /// The block's id in the recording.
    #[inline(always)]
    pub fn id(&self) -> Option<BlockId> {
        match self {
            BlockName::Recorded { id, .. } => Some(*id),
            BlockName::Keyed(_) => None,
        }
    }
}

/// Ids of recorded blocks that no sample holds from now on: thresholds only fall. Most accesses
/// then cost one bit of a small table, and neither the key nor its hash. Memory: one bit per
/// recorded block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside {
    words: Vec<u64>,
}

impl Outside {
    /// Whether the block is known to be in no sample.
    #[inline(always)]
    pub fn holds(&self, block: &BlockName<'_>) -> bool {
        let Some(id) = block.id() else { return false };
        self.words.get(id.index() / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }

    /// Notes that a block is in no sample.
    #[inline]
    pub fn insert(&mut self, block: &BlockName<'_>) {
        let Some(id) = block.id() else { return };
        if id.index() / 64 >= self.words.len() {
            self.words.resize(id.index() / 64 + 1, 0);
        }
        self.words[id.index() / 64] |= 1 << (id.0 % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_outside_are_those_noted() {
        let (keys, mut outside) = (vec![BlockKey(7); 200], Outside::default());
        let name = |id| BlockName::Recorded { id: BlockId(id), keys: &keys, index: id };
        [0, 63, 64, 130].iter().for_each(|id| outside.insert(&name(*id)));
        outside.insert(&BlockName::Keyed(BlockKey(1)));
        let held: Vec<u32> = (0..200).filter(|id| outside.holds(&name(*id))).collect();
        assert_eq!(held, [0, 63, 64, 130]);
        assert!(!outside.holds(&BlockName::Keyed(BlockKey(1))), "a key alone is always looked at");
    }
}
