//! What is remembered of blocks that were asked for, cached or not.
//!
//! For: the features of requests. Must never know: the cache, its decisions, models. The blocks
//! used last are remembered, three times as many as the cache may hold; one that has not been asked
//! for while so many others were is as new. Counts stop at 65,535. Units: accesses, blocks; 16
//! bytes per id.

use crate::links::Links;
use cachewright_types::BlockId;

/// Blocks remembered per block of the cache.
const REMEMBERED: u32 = 3;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPast {
    /// When it was used last, in accesses modulo 2^32.
    last: u32,
    /// Accesses so far.
    pub accesses: u16,
    /// Reads among them.
    pub reads: u16,
}

/// The blocks used last.
#[derive(Clone, Debug)]
pub struct Memory {
    links: Links<BlockPast, 1>,
    limit: u32,
    /// Accesses so far, modulo 2^32.
    now: u32,
}

impl Memory {
    /// Of no block yet, beside a cache of `capacity_blocks`.
    pub fn new(capacity_blocks: u32) -> Memory {
        let limit = capacity_blocks.saturating_mul(REMEMBERED);
        Memory { links: Links::new(), limit, now: 0 }
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
    }

    /// Blocks remembered at most.
    pub fn limit(&self) -> u64 {
        u64::from(self.limit)
    }

    /// Whether the block is remembered.
    #[inline(always)]
    pub fn knows(&self, block: BlockId) -> bool {
        self.links.linked(block)
    }

    /// What is known of a block, and how many accesses ago it was used last (at least 1).
    #[inline(always)]
    pub fn past(&self, block: BlockId) -> Option<(BlockPast, u32)> {
        let past = self.links.tag(block);
        self.knows(block).then(|| (past, self.now.wrapping_sub(past.last)))
    }

    /// Takes an access in.
    #[inline(always)]
    pub fn note(&mut self, block: BlockId, write: bool) {
        let mut past = BlockPast::default();
        if self.knows(block) {
            past = self.links.tag(block);
            self.links.move_to_head(0, block);
        } else {
            self.links.push_head(0, block);
        }
        if past.accesses < u16::MAX {
            past.accesses += 1;
            past.reads += u16::from(!write);
        }
        *self.links.tag_mut(block) = BlockPast { last: self.now, ..past };
        self.now = self.now.wrapping_add(1);
        self.trim();
    }

    /// Forgets a block.
    pub fn forget(&mut self, block: BlockId) {
        if self.knows(block) {
            self.links.unlink(0, block);
        }
    }

    /// Goes with a cache of another size.
    pub fn resize(&mut self, capacity_blocks: u32) {
        self.limit = capacity_blocks.saturating_mul(REMEMBERED);
        self.trim();
    }

    /// Loads a block's state.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    /// Checks the bound and the links.
    pub fn audit(&self) -> Result<(), String> {
        self.links.audit()?;
        let len = self.links.len(0);
        if len <= self.limit {
            return Ok(());
        }
        Err(format!("{len} blocks remembered, at most {} expected", self.limit))
    }

    #[inline(always)]
    fn trim(&mut self) {
        while self.links.len(0) > self.limit {
            self.links.pop_tail(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_three_per_block_of_cache_are_remembered() {
        let mut memory = Memory::new(1);
        memory.reserve_ids(8);
        for (block, write) in [(0, false), (1, true), (0, true), (2, false)] {
            memory.note(BlockId(block), write);
        }
        let known = |memory: &Memory, id| {
            memory.past(BlockId(id)).map(|(past, ago)| (past.accesses, past.reads, ago))
        };
        assert_eq!(known(&memory, 0), Some((2, 1, 2)));
        assert_eq!(known(&memory, 1), Some((1, 0, 3)));
        memory.note(BlockId(3), false);
        assert_eq!(known(&memory, 1), None, "three others were used since");
        memory.note(BlockId(1), false);
        assert_eq!(known(&memory, 1), Some((1, 1, 1)), "as new");
        assert_eq!(memory.audit(), Ok(()));
    }
}
