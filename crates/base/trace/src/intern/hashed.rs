//! An open-addressing hash table from block number to interned number.
//!
//! For: sparse address spaces. Must never know: which space it serves. Own code rather than a
//! library's, because the cache misses of a batch's look-ups must overlap: the first probe of each
//! is read before any is compared. 12 B per slot, at most three quarters full, linear probing,
//! nothing is ever removed.

use super::{AHEAD, NONE};
use cachewright_memory::prefetch;

/// One slot; 12 bytes, so the block number is kept in halves. Empty when `id` is [`NONE`].
#[derive(Clone, Copy, Debug)]
struct HashSlot {
    high: u32,
    low: u32,
    id: u32,
}

const EMPTY: HashSlot = HashSlot { high: 0, low: 0, id: NONE };
const SLOTS_LEAST: usize = 1 << 8;
/// Fewer look-ups than this are done one by one.
const FEW: usize = 4;

impl HashSlot {
    fn new(block: u64, id: u32) -> HashSlot {
        HashSlot { high: (block >> 32) as u32, low: block as u32, id }
    }

    #[inline(always)]
    fn block(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    /// Whether a probe for `block` ends here.
    #[inline(always)]
    fn ends(self, block: u64) -> bool {
        self.id == NONE || self.block() == block
    }
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub(super) struct Hashed {
    /// A power of two.
    slots: Vec<HashSlot>,
    len: usize,
}

impl Hashed {
    /// An empty table that takes half as many again as `len` blocks before it is full.
    pub(super) fn with_capacity_for(len: usize) -> Hashed {
        let slots = (len * 2).next_power_of_two().max(SLOTS_LEAST);
        Hashed { slots: vec![EMPTY; slots], len: 0 }
    }

    /// Distinct blocks held.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether the next insertion must be preceded by [`grow`](Self::grow).
    pub(super) fn is_full(&self) -> bool {
        (self.len + 1) * 4 > self.slots.len() * 3
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<HashSlot>()
    }

    /// Where the probe for a block starts: a folded multiplication, which mixes all 64 bits.
    #[inline(always)]
    fn home(&self, block: u64) -> usize {
        let product = u128::from(block ^ 0x243F_6A88_85A3_08D3) * 0x9E37_79B9_7F4A_7C15_u128;
        ((product >> 64) as u64 ^ product as u64) as usize & (self.slots.len() - 1)
    }

    /// The slot that holds `block` or would take it, from `index` on.
    #[inline(always)]
    fn probe(&self, mut index: usize, block: u64) -> usize {
        while !self.slots[index].ends(block) {
            index = (index + 1) & (self.slots.len() - 1);
        }
        index
    }

    /// The number of a block, or [`NONE`].
    #[inline(always)]
    pub(super) fn get(&self, block: u64) -> u32 {
        self.slots[self.probe(self.home(block), block)].id
    }

    /// Starts to load the first slot that the probe for a block reads.
    #[inline]
    pub(super) fn prefetch(&self, block: u64) {
        prefetch(&self.slots, self.home(block));
    }

    /// Appends the number of each block, [`NONE`] for unknown ones; at most [`AHEAD`] blocks.
    pub(super) fn get_all(&self, blocks: &[u64], ids: &mut Vec<u32>) {
        if blocks.len() < FEW {
            return ids.extend(blocks.iter().map(|block| self.get(*block)));
        }
        let mut first = [EMPTY; AHEAD];
        for (slot, block) in first.iter_mut().zip(blocks) {
            *slot = self.slots[self.home(*block)];
        }
        ids.extend(
            first
                .iter()
                .zip(blocks)
                .map(|(slot, block)| if slot.ends(*block) { slot.id } else { self.get(*block) }),
        );
    }

    /// Stores a block that is not there yet; the table must not be full.
    pub(super) fn insert(&mut self, block: u64, id: u32) {
        debug_assert!(!self.is_full());
        let index = self.probe(self.home(block), block);
        self.slots[index] = HashSlot::new(block, id);
        self.len += 1;
    }

    /// Doubles the table.
    pub(super) fn grow(&mut self) {
        let slots = self.slots.len() * 2;
        let mut larger = Hashed { slots: vec![EMPTY; slots], len: 0 };
        self.for_each(|block, id| larger.insert(block, id));
        *self = larger;
    }

    /// Calls `visit` with every block and its number, in no useful order.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u64, u32)) {
        for slot in &self.slots {
            if slot.id != NONE {
                visit(slot.block(), slot.id);
            }
        }
    }

    /// Appends the numbers of the blocks in `first..end`, by ascending block.
    pub(super) fn get_range(&self, first: u64, end: u64, ids: &mut Vec<u32>) {
        if end.saturating_sub(first) <= self.slots.len() as u64 {
            ids.extend((first..end).map(|block| self.get(block)).filter(|id| *id != NONE));
            return;
        }
        let mut found: Vec<(u64, u32)> = Vec::new();
        self.for_each(|block, id| {
            if (first..end).contains(&block) {
                found.push((block, id));
            }
        });
        found.sort_unstable();
        ids.extend(found.into_iter().map(|(_, id)| id));
    }
}
