//! How a stream names its blocks, which of them no sample holds, and which samples keep for good.
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

/// Numbers of recorded blocks that samples hold for good, so that neither the key nor a table of
/// keys is read again. Recordings give ids in the order of first uses. Members therefore come by
/// ascending id, and a number is the count of members before; a block that comes later gets none.
/// Memory: 16 bytes per 64 recorded blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    pages: Vec<MemberPage>,
    /// Members so far.
    count: u32,
}

/// 64 recorded blocks.
#[derive(Clone, Copy, Debug, Default)]
struct MemberPage {
    /// Which of them are members.
    mask: u64,
    /// Members of the pages before.
    before: u32,
}

impl Members {
    /// The number of a member.
    #[inline(always)]
    pub fn number(&self, block: &BlockName<'_>) -> Option<u32> {
        let id = block.id()?;
        let page = self.pages.get(id.index() / 64)?;
        let bit = 1_u64 << (id.0 % 64);
        (page.mask & bit != 0).then(|| page.before + (page.mask & (bit - 1)).count_ones())
    }

    /// Whether the block can become a member: it is recorded, and its id is above all others.
    pub fn takes(&self, block: &BlockName<'_>) -> bool {
        let Some(id) = block.id() else { return false };
        let last = self.pages.len().saturating_sub(1);
        let above = self.pages.last().map_or(0, |page| page.mask >> (id.0 % 64));
        id.index() / 64 > last || (id.index() / 64 == last && above == 0)
    }

    /// Takes in a block that [`Members::takes`] allows; its number is the count of members before.
    pub fn insert(&mut self, block: &BlockName<'_>) {
        let Some(id) = block.id() else { return };
        let next = MemberPage { mask: 0, before: self.count };
        if id.index() / 64 >= self.pages.len() {
            self.pages.resize(id.index() / 64 + 1, next);
        }
        self.pages[id.index() / 64].mask |= 1 << (id.0 % 64);
        self.count += 1;
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

    #[test]
    fn members_are_numbered_by_ascending_id_and_late_ones_get_no_number() {
        let (keys, mut members) = (vec![BlockKey(7); 500], Members::default());
        let name = |id| BlockName::Recorded { id: BlockId(id), keys: &keys, index: id };
        let mut numbered = Vec::new();
        for id in [3, 5, 4, 63, 64, 62, 200, 199, 263, 320] {
            if members.takes(&name(id)) {
                members.insert(&name(id));
                numbered.push(id);
            }
        }
        assert_eq!(numbered, [3, 5, 63, 64, 200, 263, 320]);
        for id in 0..500 {
            let place = numbered.iter().position(|member| *member == id);
            assert_eq!(members.number(&name(id)), place.map(|place| place as u32), "{id}");
        }
        assert!(!members.takes(&name(320)) && members.takes(&name(321)));
        assert!(!members.takes(&BlockName::Keyed(BlockKey(1))), "a key alone has no number");
    }
}
