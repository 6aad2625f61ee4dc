//! Blocks by a key, the least first; any of them may be moved or taken out.
//!
//! For: policies whose next victim is the block of least worth. A binary heap in one array with
//! each block's place beside it: 16 bytes per block held and 4 per id; O(log n) per change, O(1) to
//! look at the least.

use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The place of a block that is not held.
const OUT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, SnapshotValue)]
struct KeyedBlock {
    key: u64,
    block: BlockId,
}

/// The order; see the top of the file.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct LeastFirst {
    heap: Vec<KeyedBlock>,
    /// The place of each block in `heap`, or [`OUT`].
    places: Vec<u32>,
}

impl LeastFirst {
    /// The block with the least key, and the key.
    #[inline(always)]
    pub fn lowest(&self) -> Option<(u64, BlockId)> {
        self.heap.first().map(|held| (held.key, held.block))
    }

    /// Adds a block, or gives one that is held another key.
    pub fn set(&mut self, block: BlockId, key: u64) {
        let held = KeyedBlock { key, block };
        let place = match self.places[block.index()] {
            OUT => {
                self.heap.push(held);
                self.heap.len() - 1
            }
            place => place as usize,
        };
        self.settle(place, held);
    }

    /// Takes out the block with the least key.
    pub fn pop(&mut self) -> Option<BlockId> {
        let (_, block) = self.lowest()?;
        self.remove(block);
        Some(block)
    }

    /// Puts `held` where it belongs, starting from the free place `place`.
    fn settle(&mut self, mut place: usize, held: KeyedBlock) {
        while place > 0 && self.heap[(place - 1) / 2].key > held.key {
            let parent = (place - 1) / 2;
            self.put(place, self.heap[parent]);
            place = parent;
        }
        loop {
            let first = 2 * place + 1;
            let children = first..(first + 2).min(self.heap.len());
            let lesser = children.min_by_key(|child| self.heap[*child].key);
            let Some(child) = lesser.filter(|child| self.heap[*child].key < held.key) else {
                break;
            };
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, held);
    }

    #[inline(always)]
    fn put(&mut self, place: usize, held: KeyedBlock) {
        self.heap[place] = held;
        self.places[held.block.index()] = place as u32;
    }
}

impl BlockStore for LeastFirst {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.places[block.index()] != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.heap.len() as u32
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let place = std::mem::replace(&mut self.places[block.index()], OUT);
        if place == OUT {
            return false;
        }
        if let Some(last) = self.heap.pop()
            && last.block != block
        {
            self.settle(place as usize, last);
        }
        true
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        lengthen(&mut self.places, count, OUT);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        for held in &mut self.heap {
            held.block = ids.get(held.block).unwrap_or(held.block);
        }
        ids.close_up(&mut self.places, 0);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.places, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        for (place, held) in self.heap.iter().enumerate() {
            let parent = self.heap[place.saturating_sub(1) / 2];
            if parent.key > held.key {
                return Err(format!("block {} lies behind one of a greater key", held.block.0));
            }
            if self.places[held.block.index()] as usize != place {
                return Err(format!("block {} has a wrong place", held.block.0));
            }
        }
        if self.resident() > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.resident()));
        }
        let placed = self.places.iter().filter(|place| **place != OUT).count();
        if placed != self.heap.len() {
            return Err(format!("{placed} blocks have a place, {} are held", self.heap.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;
    use std::collections::{BTreeSet, HashMap};

    /// Against a search tree of (key, block) with unique keys.
    #[test]
    fn it_is_a_search_tree() {
        const IDS: u64 = 60;
        let mut rng = Seed(4).derive("least first").rng();
        let mut order = LeastFirst::default();
        order.reserve_ids(IDS as usize, IDS as u32, 0);
        let mut tree: BTreeSet<(u64, u32)> = BTreeSet::new();
        let mut keys: HashMap<u32, u64> = HashMap::new();
        for step in 0..20_000_u64 {
            let id = rng.below(IDS) as u32;
            match rng.below(8) {
                0 => {
                    let known = keys.remove(&id);
                    assert_eq!(order.remove(BlockId(id)), known.is_some());
                    known.map(|key| tree.remove(&(key, id)));
                }
                1 => {
                    let first = tree.pop_first();
                    assert_eq!(order.pop().map(|block| block.0), first.map(|(_, id)| id));
                    first.map(|(_, id)| keys.remove(&id));
                }
                _ => {
                    let key = rng.below(1 << 20) << 20 | step;
                    order.set(BlockId(id), key);
                    keys.insert(id, key).map(|old| tree.remove(&(old, id)));
                    tree.insert((key, id));
                }
            }
            assert_eq!(order.lowest().map(|(key, block)| (key, block.0)), tree.first().copied());
            assert_eq!(order.resident() as usize, tree.len());
            assert_eq!(order.audit(IDS as u32), Ok(()), "step {step}");
        }
    }
}
