//! A table of numbers of which few are set.
//!
//! For: what a drive of hundreds of gigabytes has written since it was filled. Must never know:
//! what index and number mean. Indices are taken 64 at a time. A mask says which are set; their
//! numbers stand side by side in a cell of one of six sizes. Cells of one size lie without gaps:
//! the last moves into the place of one that was outgrown, for which each names its owner. Memory
//! per 64 indices: 16 bytes once one of them is set, and a cell. A cell has four bytes per number
//! it can hold and four more.

use cachewright_memory::prefetch;

/// Indices under one mask.
const SPAN: u32 = 64;
/// Words of a cell by class: its owner, then room for numbers.
const WORDS: [usize; 6] = [4, 8, 16, 32, 48, 65];
/// The class of a cell stands above its offset.
const CLASS_SHIFT: u32 = 56;

/// A mask, and class and offset of the cell.
type PageGroup = [u64; 2];

/// Numbers by index.
#[derive(Clone, Debug)]
pub struct Sparse {
    groups: Vec<PageGroup>,
    /// Cells of each class.
    cells: [Vec<u32>; WORDS.len()],
}

/// Class and offset of a group's cell.
#[inline]
fn cell(word: u64) -> (usize, usize) {
    let class = (word >> CLASS_SHIFT) as usize;
    (class.min(WORDS.len() - 1), (word & ((1 << CLASS_SHIFT) - 1)) as usize)
}

fn word(class: usize, offset: usize) -> u64 {
    (class as u64) << CLASS_SHIFT | offset as u64
}

impl Sparse {
    /// Room for indices below `len`, none set. The memory of groups is not touched before one of
    /// their indices is set.
    pub fn new(len: u32) -> Sparse {
        let groups = vec![[0; 2]; len.div_ceil(SPAN) as usize];
        Sparse { groups, cells: std::array::from_fn(|_| Vec::new()) }
    }

    /// The number of an index, if it is set.
    #[inline]
    pub fn get(&self, index: u32) -> Option<u32> {
        let [mask, place] = *self.groups.get((index / SPAN) as usize)?;
        let bit = 1 << (index % SPAN);
        if mask & bit == 0 {
            return None;
        }
        let (class, offset) = cell(place);
        let rank = (mask & (bit - 1)).count_ones() as usize;
        self.cells[class].get(offset + 1 + rank).copied()
    }

    /// Starts to load what [`Sparse::get`] of an index reads first.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        prefetch(&self.groups, (index / SPAN) as usize);
    }

    /// Sets the number of an index below the length.
    #[inline]
    pub fn set(&mut self, index: u32, number: u32) {
        let group = (index / SPAN) as usize;
        let [mask, place] = self.groups[group];
        let bit = 1 << (index % SPAN);
        let rank = (mask & (bit - 1)).count_ones() as usize;
        if mask & bit == 0 {
            return self.insert(group, bit, rank, number);
        }
        let (class, offset) = cell(place);
        self.cells[class][offset + 1 + rank] = number;
    }

    /// Makes room for a number before the one of a rank.
    fn insert(&mut self, group: usize, bit: u64, rank: usize, number: u32) {
        let [mask, place] = self.groups[group];
        let count = mask.count_ones() as usize;
        let (mut class, mut offset) = cell(place);
        if count == 0 {
            (class, offset) = (0, self.open(0, group));
        } else if count + 1 == WORDS[class] {
            (class, offset) = self.grow(group, class, offset);
        }
        let first = offset + 1;
        let numbers = &mut self.cells[class][first..first + count + 1];
        numbers.copy_within(rank..count, rank + 1);
        numbers[rank] = number;
        self.groups[group] = [mask | bit, word(class, offset)];
    }

    /// A new cell at the end of its class.
    fn open(&mut self, class: usize, owner: usize) -> usize {
        let cells = &mut self.cells[class];
        let offset = cells.len();
        cells.resize(offset + WORDS[class], 0);
        cells[offset] = owner as u32;
        offset
    }

    /// Moves a full cell to the next class.
    fn grow(&mut self, owner: usize, class: usize, offset: usize) -> (usize, usize) {
        let words = WORDS[class];
        let new = self.open(class + 1, owner);
        let (old, next) = self.cells.split_at_mut(class + 1);
        let cells = &mut old[class];
        next[0][new + 1..new + words].copy_from_slice(&cells[offset + 1..offset + words]);
        let last = cells.len() - words;
        if offset < last {
            cells.copy_within(last.., offset);
            let moved = cells[offset] as usize;
            self.groups[moved][1] = word(class, offset);
        }
        cells.truncate(last);
        if cells.capacity() > 4 * last {
            cells.shrink_to(2 * last);
        }
        (class + 1, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    #[test]
    fn it_agrees_with_a_plain_table() {
        for (seed, len) in [(1, 1000), (2, 64), (3, 130), (4, 1)] {
            let (mut sparse, mut plain) = (Sparse::new(len), vec![None; len as usize]);
            let mut rng = Seed(seed).rng();
            for number in 0..20 * len {
                let index = rng.below(u64::from(len)) as u32;
                sparse.set(index, number);
                plain[index as usize] = Some(number);
                if number % 50 < 3 {
                    let found: Vec<Option<u32>> =
                        (0..len).map(|address| sparse.get(address)).collect();
                    assert_eq!(found, plain);
                }
            }
            assert!(plain.iter().all(Option::is_some), "every cell has grown to the last class");
            assert_eq!(sparse.get(len.next_multiple_of(SPAN)), None, "nothing beyond the end");
            let words: usize = sparse.cells.iter().map(Vec::len).sum();
            assert!(words <= sparse.groups.len() * WORDS[5], "outgrown cells are gone");
        }
    }
}
