//! The areas of W-TinyLFU, and the keys by which its sketch knows blocks.
//!
//! For: `w-tinylfu`. Must never know: counts, limits. An id may stand for another block once it is
//! not tracked any more, so a sketch must not count ids: a block gets the next number as its key
//! when it is first tracked, and keeps it until it is forgotten. Memory: 16 bytes per id.

use crate::ghost_lists::{GhostLists, OUT};
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_types::BlockId;

/// New blocks, in order of use.
pub const WINDOW: u8 = 1;
/// The lower segment of the main area.
pub const PROBATION: u8 = 2;
/// The upper segment of the main area.
pub const PROTECTED: u8 = 3;
/// Blocks that have left and keep their key.
pub const GHOST: u8 = 4;

/// The lists of the areas.
pub type AreaLists = GhostLists<5, 3>;

/// Blocks by area, with their keys.
#[derive(Clone, Debug, Default)]
pub struct Areas {
    /// The areas; a block that enters one must have its key.
    pub lists: AreaLists,
    keys: Vec<u32>,
    next_key: u32,
}

impl Areas {
    /// Gives a block that was not tracked a key.
    #[inline(always)]
    pub fn give_key(&mut self, block: BlockId) {
        self.keys[block.index()] = self.next_key;
        self.next_key = self.next_key.wrapping_add(1);
    }

    /// The key of a block that is tracked.
    #[inline(always)]
    pub fn key(&self, block: BlockId) -> u32 {
        self.keys[block.index()]
    }
}

impl BlockStore for Areas {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.lists.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.lists.list_of(block) != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.lists.resident()
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.lists.remove(block)
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.lists.reserve_ids(count, capacity, ghosts);
        lengthen(&mut self.keys, count, 0);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        ids.close_up(&mut self.keys, 0);
        self.lists.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.keys, block.index());
        self.lists.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.lists.audit(capacity)
    }
}
