//! What a chunk counts of the kinds of its entries.
//!
//! For: lists in which the first entry of a kind is looked for; lists without kinds pay nothing.
//! Must never know: links, places. Unit: entries.

use super::CHUNK;

/// Kinds of entries that a chunk counts.
pub const KINDS: usize = 4;
const KIND_BITS: u32 = KINDS.ilog2();

/// The kinds of a chunk's entries, as far as they are counted.
pub trait ChunkTally: Copy + Default {
    /// Whether kinds are counted at all.
    const COUNTED: bool;
    /// The kind of the entry in a slot; 0 where none are counted.
    fn kind(&self, slot: u32) -> usize;
    /// Notes an entry in a slot that was free.
    fn set(&mut self, slot: u32, kind: usize);
    /// Notes that an entry has left its slot; returns its kind.
    fn clear(&mut self, slot: u32) -> usize;
    /// Entries of each kind; zeroes where none are counted.
    fn lens(&self) -> [u8; KINDS];
}

/// All entries are of one kind.
impl ChunkTally for () {
    const COUNTED: bool = false;
    #[inline(always)]
    fn kind(&self, _: u32) -> usize {
        0
    }
    #[inline(always)]
    fn set(&mut self, _: u32, _: usize) {}
    #[inline(always)]
    fn clear(&mut self, _: u32) -> usize {
        0
    }
    #[inline(always)]
    fn lens(&self) -> [u8; KINDS] {
        [0; KINDS]
    }
}

/// Entries of [`KINDS`] kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct KindTally {
    /// The kind of each slot's entry.
    kinds: u64,
    lens: [u8; KINDS],
}

const _: () = assert!(CHUNK * KIND_BITS <= u64::BITS, "a chunk's kinds stand in one word");

impl ChunkTally for KindTally {
    const COUNTED: bool = true;
    #[inline(always)]
    fn kind(&self, slot: u32) -> usize {
        (self.kinds >> (KIND_BITS * slot)) as usize % KINDS
    }
    #[inline(always)]
    fn set(&mut self, slot: u32, kind: usize) {
        self.lens[kind % KINDS] += 1;
        let shift = KIND_BITS * slot;
        self.kinds = self.kinds & !((KINDS as u64 - 1) << shift) | (kind as u64) << shift;
    }
    #[inline(always)]
    fn clear(&mut self, slot: u32) -> usize {
        let kind = self.kind(slot);
        self.lens[kind] -= 1;
        kind
    }
    #[inline(always)]
    fn lens(&self) -> [u8; KINDS] {
        self.lens
    }
}
