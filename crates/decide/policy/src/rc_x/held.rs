//! The blocks in the cache of `rc-x`, each at a place.
//!
//! For: what a draw reads, side by side, and blocks in a row. Must never know: ghosts, what room is
//! worth, which block leaves. Units: places, accesses. Memory: 12 bytes per block.

use super::trail::Trail;
use crate::renumber::Renumbering;
use cachewright_memory::prefetch;
use cachewright_types::BlockId;

/// A block in the cache: a copy of what a draw reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawnBlock {
    pub block: BlockId,
    /// Its last access, which is no other's.
    pub last: u32,
    pub class: u16,
}

/// Blocks at places from 0 on, without gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldBlocks {
    blocks: Vec<DrawnBlock>,
}

impl HeldBlocks {
    /// Blocks in the cache, and the first place that is free.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The block at a place.
    #[inline(always)]
    pub fn at_place(&self, place: u32) -> DrawnBlock {
        self.blocks[place as usize]
    }

    /// Loads the block at a place ahead.
    #[inline(always)]
    pub fn prefetch(&self, place: u32) {
        prefetch(&self.blocks, place as usize);
    }

    /// All blocks in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &DrawnBlock> {
        self.blocks.iter()
    }

    /// Puts a block at the first free place.
    #[inline(always)]
    pub fn push(&mut self, held: DrawnBlock) {
        self.blocks.push(held);
    }

    /// Puts a block at a place where one lies.
    #[inline(always)]
    pub fn put(&mut self, place: u32, held: DrawnBlock) {
        self.blocks[place as usize] = held;
    }

    /// Takes out the block at a place; the last one comes to lie there. Returns both; the second is
    /// none if the block taken out was the last.
    pub fn take_out(&mut self, place: u32) -> (BlockId, Option<BlockId>) {
        let gone = self.blocks.swap_remove(place as usize).block;
        (gone, self.blocks.get(place as usize).map(|moved| moved.block))
    }

    /// Whether the block of a trail is where it was and was not used since.
    pub fn has(&self, trail: &Trail) -> bool {
        self.blocks.get(trail.place as usize).is_some_and(|held| held.last == trail.last)
    }

    /// Whether blocks lie at a place and at the one before it, and were used one after the other.
    pub fn is_in_row(&self, place: u32) -> bool {
        let pair = self.blocks.get(place as usize - 1..=place as usize);
        pair.is_some_and(|pair| pair[0].last.wrapping_add(1) == pair[1].last)
    }

    /// Ids have changed; a block without a new one keeps its id.
    pub fn renumber(&mut self, ids: &Renumbering) {
        for held in &mut self.blocks {
            held.block = ids.get(held.block).unwrap_or(held.block);
        }
        self.blocks.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks 10, 11 and so on, by their last accesses.
    fn held(accesses: &[u32]) -> HeldBlocks {
        let mut held = HeldBlocks::default();
        for (last, block) in accesses.iter().zip(10..) {
            held.push(DrawnBlock { block: BlockId(block), last: *last, class: 0 });
        }
        held
    }

    #[test]
    fn the_last_block_takes_the_place_of_one_that_goes() {
        let mut held = held(&[1, 2, 3]);
        assert_eq!(held.take_out(0), (BlockId(10), Some(BlockId(12))));
        assert_eq!(held.take_out(1), (BlockId(11), None));
        assert_eq!((held.len(), held.at_place(0).block), (1, BlockId(12)));
    }

    #[test]
    fn a_row_is_used_in_the_order_of_its_places_and_access_numbers_wrap() {
        let held = held(&[7, 8, 8, u32::MAX, 0]);
        assert_eq!(
            [1, 2, 3, 4, 5].map(|place| held.is_in_row(place)),
            [true, false, false, true, false]
        );
    }

    #[test]
    fn a_trail_is_lost_where_its_block_was_used_or_has_gone() {
        let mut held = held(&[7, 8]);
        let trail = Trail { place: 1, last: 8, left: 1 };
        assert!(held.has(&trail));
        held.put(1, DrawnBlock { last: 9, ..held.at_place(1) });
        assert!(!held.has(&trail));
        held.take_out(0);
        assert!(!held.has(&trail));
    }
}
