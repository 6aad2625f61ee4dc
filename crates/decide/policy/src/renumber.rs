//! New ids for the blocks that are kept, without gaps.
//!
//! For: caches that have shrunk, whose arrays by id would stay as long as their largest id ever.
//! Kept ids keep their order, so an array is closed up in place. Unit: ids.

use cachewright_types::BlockId;

/// The new id of one that is not kept.
const GONE: u32 = u32::MAX;

/// Which ids are kept, and what they become.
#[derive(Clone, Debug)]
pub struct Renumbering {
    new: Vec<u32>,
    kept: u32,
}

impl Renumbering {
    /// Keeps those of the ids `0..count` for which `keep` says so.
    pub fn keeping(count: usize, keep: impl Fn(BlockId) -> bool) -> Renumbering {
        let mut kept = 0;
        let number = |id: u32| {
            if !keep(BlockId(id)) {
                return GONE;
            }
            kept += 1;
            kept - 1
        };
        Renumbering { new: (0..count as u32).map(number).collect(), kept }
    }

    /// Ids kept: the new ones are below.
    pub fn kept(&self) -> usize {
        self.kept as usize
    }

    /// The new id, if the old one is kept.
    #[inline(always)]
    pub fn get(&self, old: BlockId) -> Option<BlockId> {
        self.new.get(old.index()).filter(|new| **new != GONE).map(|new| BlockId(*new))
    }

    /// The old and new ids of what is kept, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (BlockId, BlockId)> + '_ {
        let ids = self.new.iter().enumerate().filter(|(_, new)| **new != GONE);
        ids.map(|(old, new)| (BlockId(old as u32), BlockId(*new)))
    }

    /// Closes up an array by id, and gives back the memory of what is not kept. Elements before
    /// `first`, which stand for no id, stay.
    pub fn close_up<T: Copy>(&self, list: &mut Vec<T>, first: usize) {
        for (old, new) in self.pairs() {
            list[first + new.index()] = list[first + old.index()];
        }
        list.truncate(first + self.kept());
        list.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_ids_move_down_in_order() {
        let ids = Renumbering::keeping(6, |id| id.0 % 2 == 1);
        assert_eq!(ids.kept(), 3);
        assert_eq!(
            [1, 2, 5, 9].map(|id| ids.get(BlockId(id))),
            [Some(0), None, Some(2), None].map(|id| id.map(BlockId))
        );
        let mut list = vec!['-', 'a', 'b', 'c', 'd', 'e', 'f'];
        ids.close_up(&mut list, 1);
        assert_eq!(list, ['-', 'b', 'd', 'f']);
        assert_eq!(list.capacity(), 4);
    }
}
