//! Doubly linked lists over dense block ids.
//!
//! For: the recency and insertion queues of the policies: `LISTS` circular lists share one array of
//! nodes, each block is in at most one of them. Nodes `0..LISTS` are the sentinels; block `b` is
//! node `b + LISTS`. A node carries a tag of the policy's choosing beside its links, so that one
//! cache line holds all that an access needs. O(1) everything.

use crate::renumber::Renumbering;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The link of a block that is in no list.
const OUT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, SnapshotValue)]
struct LinkNode<T> {
    newer: u32,
    older: u32,
    tag: T,
}

/// `LISTS` lists over one array; the newest end is the head.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Links<T, const LISTS: usize> {
    nodes: Vec<LinkNode<T>>,
    lens: [u32; LISTS],
}

impl<T: Copy + Default, const LISTS: usize> Default for Links<T, LISTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + Default, const LISTS: usize> Links<T, LISTS> {
    /// Empty lists over no ids.
    pub fn new() -> Self {
        let sentinel = |list: u32| LinkNode { newer: list, older: list, tag: T::default() };
        Links { nodes: (0..LISTS as u32).map(sentinel).collect(), lens: [0; LISTS] }
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        let out = LinkNode { newer: OUT, older: OUT, tag: T::default() };
        lengthen(&mut self.nodes, count + LISTS, out);
    }

    /// Gives the ids that are kept, all blocks in lists among them, new numbers.
    pub fn renumber(&mut self, ids: &Renumbering) {
        let link = |node: u32| match Self::block(node) {
            Some(block) if node != OUT => {
                ids.get(block).map_or(OUT, |block| block.0 + LISTS as u32)
            }
            _ => node,
        };
        for node in &mut self.nodes {
            (node.newer, node.older) = (link(node.newer), link(node.older));
        }
        ids.close_up(&mut self.nodes, LISTS);
    }

    /// Blocks in `list`.
    #[inline(always)]
    pub fn len(&self, list: usize) -> u32 {
        self.lens[list]
    }

    /// Whether the block is in some list.
    #[inline(always)]
    pub fn linked(&self, block: BlockId) -> bool {
        self.nodes[block.index() + LISTS].newer != OUT
    }

    /// The block's tag.
    #[inline(always)]
    pub fn tag(&self, block: BlockId) -> T {
        self.nodes[block.index() + LISTS].tag
    }

    /// The block's tag, to change.
    #[inline(always)]
    pub fn tag_mut(&mut self, block: BlockId) -> &mut T {
        &mut self.nodes[block.index() + LISTS].tag
    }

    /// A value that depends on the block's node: loads it ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        prefetch(&self.nodes, block.index() + LISTS);
    }

    /// Puts a block that is in no list at the head of `list`.
    #[inline(always)]
    pub fn push_head(&mut self, list: usize, block: BlockId) {
        let node = block.0 + LISTS as u32;
        debug_assert!(!self.linked(block), "a block is in at most one list");
        let first = self.nodes[list].older;
        self.nodes[list].older = node;
        self.nodes[first as usize].newer = node;
        let entry = &mut self.nodes[node as usize];
        entry.newer = list as u32;
        entry.older = first;
        self.lens[list] += 1;
    }

    /// Puts a block that is in no list at the tail of `list`.
    #[inline(always)]
    pub fn push_tail(&mut self, list: usize, block: BlockId) {
        let node = block.0 + LISTS as u32;
        debug_assert!(!self.linked(block), "a block is in at most one list");
        let last = self.nodes[list].newer;
        self.nodes[list].newer = node;
        self.nodes[last as usize].older = node;
        let entry = &mut self.nodes[node as usize];
        entry.newer = last;
        entry.older = list as u32;
        self.lens[list] += 1;
    }

    /// Takes a block out of `list`, in which it must be.
    #[inline(always)]
    pub fn unlink(&mut self, list: usize, block: BlockId) {
        let entry = &mut self.nodes[block.index() + LISTS];
        debug_assert!(entry.newer != OUT, "only a linked block can be unlinked");
        let (newer, older) = (entry.newer, entry.older);
        entry.newer = OUT;
        entry.older = OUT;
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
        self.lens[list] -= 1;
    }

    /// Moves a block of `list` to its head.
    #[inline(always)]
    pub fn move_to_head(&mut self, list: usize, block: BlockId) {
        let node = block.0 + LISTS as u32;
        let entry = self.nodes[node as usize];
        debug_assert!(entry.newer != OUT, "only a linked block can be moved");
        if entry.newer == list as u32 {
            return;
        }
        self.nodes[entry.newer as usize].older = entry.older;
        self.nodes[entry.older as usize].newer = entry.newer;
        let first = self.nodes[list].older;
        self.nodes[list].older = node;
        self.nodes[first as usize].newer = node;
        let moved = &mut self.nodes[node as usize];
        moved.newer = list as u32;
        moved.older = first;
    }

    /// Moves all blocks of `from` to the head of `to`, in their order. O(1).
    pub fn append(&mut self, from: usize, to: usize) {
        let (newest, oldest) = (self.nodes[from].older, self.nodes[from].newer);
        if newest as usize == from {
            return;
        }
        let head = std::mem::replace(&mut self.nodes[to].older, newest);
        self.nodes[newest as usize].newer = to as u32;
        self.nodes[oldest as usize].older = head;
        self.nodes[head as usize].newer = oldest;
        (self.nodes[from].older, self.nodes[from].newer) = (from as u32, from as u32);
        self.lens[to] += std::mem::take(&mut self.lens[from]);
    }

    /// The oldest block of `list`.
    #[inline(always)]
    pub fn tail(&self, list: usize) -> Option<BlockId> {
        Self::block(self.nodes[list].newer)
    }

    /// The block that is next to the tail after so many others. O(`later`).
    #[inline(always)]
    pub fn near_tail(&self, list: usize, later: u32) -> Option<BlockId> {
        let mut node = self.nodes[list].newer;
        for _ in 0..later {
            node = self.nodes[node as usize].newer;
        }
        Self::block(node)
    }

    /// The newest block of `list`.
    #[inline(always)]
    pub fn head(&self, list: usize) -> Option<BlockId> {
        Self::block(self.nodes[list].older)
    }

    /// The neighbour towards the head, or nothing at the head.
    #[inline(always)]
    pub fn newer(&self, block: BlockId) -> Option<BlockId> {
        Self::block(self.nodes[block.index() + LISTS].newer)
    }

    /// The neighbour towards the tail, or nothing at the tail.
    #[inline(always)]
    pub fn older(&self, block: BlockId) -> Option<BlockId> {
        Self::block(self.nodes[block.index() + LISTS].older)
    }

    /// Takes out and returns the oldest block of `list`.
    #[inline(always)]
    pub fn pop_tail(&mut self, list: usize) -> Option<BlockId> {
        let tail = self.tail(list)?;
        self.unlink(list, tail);
        Some(tail)
    }

    /// The blocks of `list` from newest to oldest.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(self.head(list), |block| self.older(*block))
    }

    /// Checks that every list is well linked and as long as counted.
    pub fn audit(&self) -> Result<(), String> {
        for list in 0..LISTS {
            let mut count = 0;
            let mut previous = list as u32;
            for block in self.iter(list) {
                let node = self.nodes[block.index() + LISTS];
                if node.newer != previous {
                    return Err(format!("list {list}: block {} has a wrong link", block.0));
                }
                previous = block.0 + LISTS as u32;
                count += 1;
                if count > self.lens[list] {
                    return Err(format!("list {list}: more blocks than the {count} counted"));
                }
            }
            if count != self.lens[list] {
                return Err(format!("list {list}: {count} blocks, {} counted", self.lens[list]));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn block(node: u32) -> Option<BlockId> {
        if (node as usize) < LISTS { None } else { Some(BlockId(node - LISTS as u32)) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn order(links: &Links<(), 2>, list: usize) -> Vec<u32> {
        links.iter(list).map(|b| b.0).collect()
    }

    #[test]
    fn blocks_move_between_lists_in_order() {
        let mut links: Links<(), 2> = Links::new();
        links.reserve_ids(4);
        for id in 0..4 {
            links.push_head(0, BlockId(id));
        }
        links.move_to_head(0, BlockId(1));
        assert_eq!(order(&links, 0), [1, 3, 2, 0]);
        links.unlink(0, BlockId(3));
        links.push_tail(1, BlockId(3));
        assert_eq!((order(&links, 0), order(&links, 1)), (vec![1, 2, 0], vec![3]));
        assert_eq!(links.pop_tail(0), Some(BlockId(0)));
        assert!(!links.linked(BlockId(0)) && links.linked(BlockId(3)));
        assert_eq!(links.audit(), Ok(()));
    }
}
