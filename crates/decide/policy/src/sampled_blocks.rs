//! Resident blocks in no order, each with a state; any of them can be drawn.
//!
//! For: policies that compare a few blocks drawn at random. Blocks lie in one array without gaps:
//! the last one fills the place of one that leaves. The order depends on what came and left, never
//! on ids. Memory: 4 bytes per id, a state and 4 bytes per block. O(1) everything but audits.

use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The place of a block that is not resident.
const OUT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, SnapshotValue)]
struct SampledBlock<T> {
    block: BlockId,
    state: T,
}

/// The blocks; see the top of the file.
#[derive(Clone, Debug, SnapshotValue)]
pub struct SampledBlocks<T> {
    blocks: Vec<SampledBlock<T>>,
    /// The place of each id in `blocks`, or [`OUT`].
    places: Vec<u32>,
}

impl<T> Default for SampledBlocks<T> {
    fn default() -> Self {
        SampledBlocks { blocks: Vec::new(), places: Vec::new() }
    }
}

impl<T: Copy> SampledBlocks<T> {
    /// The state of a block, if it is resident, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, block: BlockId) -> Option<&mut T> {
        let place = self.places[block.index()];
        self.blocks.get_mut(place as usize).map(|sampled| &mut sampled.state)
    }

    /// The state of a block, if it is resident.
    #[inline(always)]
    pub fn get(&self, block: BlockId) -> Option<T> {
        let place = self.places[block.index()];
        self.blocks.get(place as usize).map(|sampled| sampled.state)
    }

    /// The block at a place below [`BlockStore::resident`], and its state.
    #[inline(always)]
    pub fn by_place(&self, place: usize) -> (BlockId, T) {
        let sampled = self.blocks[place];
        (sampled.block, sampled.state)
    }

    /// Starts to load what is at a place.
    #[inline(always)]
    pub fn load_place(&self, place: usize) {
        prefetch(&self.blocks, place);
    }

    /// Adds a block that is not resident.
    #[inline(always)]
    pub fn push(&mut self, block: BlockId, state: T) {
        self.places[block.index()] = self.blocks.len() as u32;
        self.blocks.push(SampledBlock { block, state });
    }

    /// Takes a block out, if it is resident, and returns its state.
    #[inline(always)]
    pub fn take(&mut self, block: BlockId) -> Option<T> {
        let place = std::mem::replace(&mut self.places[block.index()], OUT);
        if place == OUT {
            return None;
        }
        let taken = self.blocks.swap_remove(place as usize);
        if let Some(moved) = self.blocks.get(place as usize) {
            self.places[moved.block.index()] = place;
        }
        Some(taken.state)
    }
}

impl<T: Copy + Send> BlockStore for SampledBlocks<T> {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.places[block.index()] != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.blocks.len() as u32
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.take(block).is_some()
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, _: u32) {
        lengthen(&mut self.places, count, OUT);
        let more = (capacity as usize).min(count).saturating_sub(self.blocks.len());
        self.blocks.reserve(more);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        for sampled in &mut self.blocks {
            sampled.block = ids.get(sampled.block).unwrap_or(sampled.block);
        }
        ids.close_up(&mut self.places, 0);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.places, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        for (place, sampled) in self.blocks.iter().enumerate() {
            if self.places[sampled.block.index()] as usize != place {
                return Err(format!("block {} has a wrong place", sampled.block.0));
            }
        }
        let placed = self.places.iter().filter(|place| **place != OUT).count();
        if placed != self.blocks.len() || self.resident() > capacity {
            return Err(format!(
                "{placed} blocks have a place, {} are resident, of {capacity}",
                self.blocks.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_fills_a_gap() {
        let mut blocks: SampledBlocks<char> = SampledBlocks::default();
        blocks.reserve_ids(6, 4, 0);
        for (id, state) in [(0, 'a'), (3, 'b'), (5, 'c')] {
            blocks.push(BlockId(id), state);
        }
        assert_eq!(blocks.take(BlockId(0)), Some('a'));
        assert_eq!(
            (blocks.by_place(0), blocks.by_place(1)),
            ((BlockId(5), 'c'), (BlockId(3), 'b'))
        );
        assert_eq!((blocks.take(BlockId(0)), blocks.get(BlockId(3))), (None, Some('b')));
        assert!(blocks.renumber(&Renumbering::keeping(6, |id| id.0 > 2)));
        assert_eq!(
            (blocks.by_place(0), blocks.by_place(1)),
            ((BlockId(2), 'c'), (BlockId(0), 'b'))
        );
        assert_eq!((blocks.audit(2), blocks.audit(1).is_err()), (Ok(()), true));
    }
}
