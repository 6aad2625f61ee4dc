//! A direct map from block number to interned number, by pages of 1024 blocks.
//!
//! For: dense address spaces: two array reads per look-up. Must never know: which space it serves.
//! Invariant: page 0 is shared, all absent and never written. A directory entry of 0 therefore
//! means "no page", and a look-up needs no branch for it.

use super::NONE;
use super::hashed::Hashed;

const PAGE_BITS: u32 = 10;
const PAGE: usize = 1 << PAGE_BITS;
const LOW: u64 = PAGE as u64 - 1;
/// Bytes of pages and directory allowed per distinct block ...
const BYTES_PER_BLOCK: u64 = 32;
/// ... and on top of that, so that small spaces start direct.
const BYTES_FREE: u64 = 1 << 20;
/// Fewer blocks than this are not worth moving from a hash table to pages.
const WORTH_MOVING: usize = 1 << 14;

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub(super) struct Paged {
    /// Page of each run of 1024 blocks; 0 for none.
    directory: Vec<u32>,
    /// Pages one after another; [`NONE`] where no block was seen.
    numbers: Vec<u32>,
    len: usize,
}

fn cost_bytes(directory_entries: u64, pages: u64) -> u64 {
    directory_entries.saturating_mul(4).saturating_add(pages.saturating_mul(4 * PAGE as u64))
}

impl Paged {
    /// The pages of a hash table's blocks, if they are dense enough to be worth it.
    pub(super) fn from_dense(table: &Hashed) -> Option<Paged> {
        if table.len() < WORTH_MOVING {
            return None;
        }
        let mut last = 0;
        table.for_each(|block, _| last = last.max(block >> PAGE_BITS));
        let entries = last + 1;
        // Below the allowance of `insert` by the free part, so that spaces do not move to and fro.
        let allowed = BYTES_PER_BLOCK * table.len() as u64;
        if cost_bytes(entries, 0) > allowed {
            return None;
        }
        let mut paged = Paged::default();
        paged.directory.resize(entries as usize, 0);
        table.for_each(|block, _| paged.directory[(block >> PAGE_BITS) as usize] = 1);
        let mut pages = 0;
        for page in paged.directory.iter_mut().filter(|page| **page > 0) {
            pages += 1;
            *page = pages;
        }
        if cost_bytes(entries, u64::from(pages) + 1) > allowed {
            return None;
        }
        paged.numbers.resize((pages as usize + 1) * PAGE, NONE);
        table.for_each(|block, id| {
            let slot = paged.slot(block);
            paged.numbers[slot] = id;
        });
        paged.len = table.len();
        Some(paged)
    }

    /// Distinct blocks held.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        (self.directory.capacity() + self.numbers.capacity()) * 4
    }

    /// Index of a block whose page is in the directory; in page 0 when it has no page.
    #[inline(always)]
    fn slot(&self, block: u64) -> usize {
        let page = self.directory[(block >> PAGE_BITS) as usize] as usize;
        (page << PAGE_BITS) | (block & LOW) as usize
    }

    /// The number of a block, or [`NONE`].
    #[inline(always)]
    pub(super) fn get(&self, block: u64) -> u32 {
        if block >> PAGE_BITS < self.directory.len() as u64 {
            self.numbers[self.slot(block)]
        } else {
            NONE
        }
    }

    /// Stores a new block; false when its page would cost too much for the blocks held.
    pub(super) fn insert(&mut self, block: u64, id: u32) -> bool {
        let page = block >> PAGE_BITS;
        let known = page < self.directory.len() as u64 && self.directory[page as usize] != 0;
        if !known {
            let entries = (self.directory.len() as u64).max(page.saturating_add(1));
            let pages = (self.numbers.len() / PAGE).max(1) as u64 + 1;
            let allowed = BYTES_PER_BLOCK * (self.len as u64 + 1) + BYTES_FREE;
            if cost_bytes(entries, pages) > allowed {
                return false;
            }
            self.directory.resize(entries as usize, 0);
            self.numbers.resize(pages as usize * PAGE, NONE);
            self.directory[page as usize] = pages as u32 - 1;
        }
        let slot = self.slot(block);
        self.numbers[slot] = id;
        self.len += 1;
        true
    }

    /// Calls `visit` with every block and its number, by ascending block.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u64, u32)) {
        for (index, page) in self.directory.iter().enumerate() {
            if *page != 0 {
                let start = *page as usize * PAGE;
                for (low, id) in self.numbers[start..start + PAGE].iter().enumerate() {
                    if *id != NONE {
                        visit(((index as u64) << PAGE_BITS) | low as u64, *id);
                    }
                }
            }
        }
    }

    /// Appends the numbers of the blocks in `first..end`, by ascending block.
    pub(super) fn get_range(&self, first: u64, end: u64, ids: &mut Vec<u32>) {
        let end = end.min((self.directory.len() as u64) << PAGE_BITS);
        let mut block = first;
        while block < end {
            let stop = ((block | LOW) + 1).min(end);
            if self.directory[(block >> PAGE_BITS) as usize] != 0 {
                let start = self.slot(block);
                let run = &self.numbers[start..start + (stop - block) as usize];
                ids.extend(run.iter().filter(|id| **id != NONE));
            }
            block = stop;
        }
    }
}
