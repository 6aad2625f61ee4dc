//! Lists of resident blocks and of ghosts, in which each block knows its list.
//!
//! For: policies that remember evicted blocks in lists (ARC, LARC, 2Q). Lists are numbered from 1;
//! the first `RESIDENT` hold resident blocks, the others ghosts. The newest end is the head. Unit:
//! blocks. O(1) everything but audits.

use crate::links::Links;
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The list of a block that is in none.
pub const OUT: u8 = 0;

/// Lists `1..SLOTS`, of which `1..=RESIDENT` hold resident blocks.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct GhostLists<const SLOTS: usize, const RESIDENT: u8> {
    links: Links<u8, SLOTS>,
}

impl<const SLOTS: usize, const RESIDENT: u8> GhostLists<SLOTS, RESIDENT> {
    /// The list of a block, or [`OUT`].
    #[inline(always)]
    pub fn list_of(&self, block: BlockId) -> u8 {
        self.links.tag(block)
    }

    /// Blocks of a list.
    #[inline(always)]
    pub fn len(&self, list: u8) -> u32 {
        self.links.len(usize::from(list))
    }

    /// The block that is next to the oldest end of `list` after so many others. O(`later`).
    #[inline(always)]
    pub fn near_tail(&self, list: u8, later: u32) -> Option<BlockId> {
        self.links.near_tail(usize::from(list), later)
    }

    /// Adds a block that is in no list as the newest of `list`.
    #[inline(always)]
    pub fn push(&mut self, list: u8, block: BlockId) {
        self.links.push_head(usize::from(list), block);
        *self.links.tag_mut(block) = list;
    }

    /// Makes a block of `list` its newest.
    #[inline(always)]
    pub fn refresh(&mut self, list: u8, block: BlockId) {
        self.links.move_to_head(usize::from(list), block);
    }

    /// Moves a block of list `from` to the newest end of list `to`.
    #[inline(always)]
    pub fn transfer(&mut self, from: u8, to: u8, block: BlockId) {
        self.links.unlink(usize::from(from), block);
        self.push(to, block);
    }

    /// Moves the oldest block of list `from` to the newest end of list `to`.
    #[inline(always)]
    pub fn demote(&mut self, from: u8, to: u8) -> Option<BlockId> {
        let block = self.links.pop_tail(usize::from(from))?;
        self.push(to, block);
        Some(block)
    }

    /// Takes out the oldest block of a list.
    #[inline(always)]
    pub fn pop(&mut self, list: u8) -> Option<BlockId> {
        let block = self.links.pop_tail(usize::from(list))?;
        *self.links.tag_mut(block) = OUT;
        Some(block)
    }

    /// Takes out the oldest blocks of a list until at most `limit` are left.
    #[inline(always)]
    pub fn trim(&mut self, list: u8, limit: u32) {
        while self.len(list) > limit {
            self.pop(list);
        }
    }

    /// Takes a block out of `list`, in which it must be.
    #[inline(always)]
    pub fn take(&mut self, list: u8, block: BlockId) {
        self.links.unlink(usize::from(list), block);
        *self.links.tag_mut(block) = OUT;
    }

    /// The blocks of a list from newest to oldest.
    pub fn iter(&self, list: u8) -> impl Iterator<Item = BlockId> + '_ {
        self.links.iter(usize::from(list))
    }
}

impl<const SLOTS: usize, const RESIDENT: u8> BlockStore for GhostLists<SLOTS, RESIDENT> {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.list_of(block).wrapping_sub(1) < RESIDENT
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.list_of(block) != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        // A plain loop: the sum of an iterator is not always unrolled.
        let (mut blocks, mut list) = (0, 0);
        while list < RESIDENT {
            list += 1;
            blocks += self.len(list);
        }
        blocks
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        if self.tracks(block) {
            self.take(self.list_of(block), block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        self.links.reserve_ids(count);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.links.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.links.audit()?;
        for list in 0..SLOTS as u8 {
            if let Some(block) = self.iter(list).find(|block| self.list_of(*block) != list) {
                return Err(format!("block {} of list {list} is tagged otherwise", block.0));
            }
        }
        if self.len(OUT) > 0 {
            return Err(format!("{} blocks in a list that is none", self.len(OUT)));
        }
        if self.resident() > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.resident()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_ghosts_and_are_forgotten_in_order() {
        let (cached, ghosts) = (1, 2);
        let mut lists: GhostLists<3, 1> = GhostLists::default();
        lists.reserve_ids(5, 4, 4);
        (0..4).for_each(|id| lists.push(cached, BlockId(id)));
        lists.refresh(cached, BlockId(0));
        assert_eq!(lists.demote(cached, ghosts), Some(BlockId(1)));
        assert_eq!(lists.demote(cached, ghosts), Some(BlockId(2)));
        assert!(!lists.contains(BlockId(1)) && lists.tracks(BlockId(1)));
        assert!(!lists.contains(BlockId(4)) && !lists.tracks(BlockId(4)));
        lists.transfer(ghosts, cached, BlockId(1));
        assert_eq!((lists.resident(), lists.len(ghosts)), (3, 1));
        assert_eq!(lists.audit(3), Ok(()));
        assert!(lists.audit(2).is_err());
        lists.trim(ghosts, 0);
        assert!(!lists.tracks(BlockId(2)) && lists.remove(BlockId(1)) && !lists.remove(BlockId(1)));
        assert_eq!(lists.iter(cached).collect::<Vec<_>>(), [0, 3].map(BlockId));
        assert_eq!(lists.audit(2), Ok(()));
    }
}
