//! Logical page to physical page and back.
//!
//! A physical page is valid if and only if its logical page maps back to it, so no bitmap is kept.
//! Units: pages; an address is `superblock << bits | offset`. Memory: 4 bytes per logical and per
//! physical page; `lazy` keeps a drive that was filled at once in less.
//!
//! A mapping that begins filled by a rule and keeps only what was written since. The rule
//! ([`FillRule`]) puts the first `pages` logical pages into the first superblocks, in an order that
//! an affine map shuffles. Each superblock has a set number of valid pages, spread evenly. Both
//! directions are computed, not stored. A logical page is stored once it is placed, and so are the
//! pages of a superblock.
//!
//! A table of numbers of which few are set. Indices are taken 64 at a time. A mask says which are
//! set; their numbers stand side by side in a cell of one of six sizes. Cells of one size lie
//! without gaps: the last moves into the place of one that was outgrown, for which each names its
//! owner. Memory per 64 indices: 16 bytes once one of them is set, and a cell. A cell has four
//! bytes per number it can hold and four more.

use crate::FtlError;
use crate::layer::Address;
use cachewright_memory::prefetch;
use std::sync::Arc;

/// The address of a page that is not mapped.
pub const UNMAPPED: u32 = u32::MAX;

/// Both directions of a mapping. Only [`Table::address_of`] may be asked for a page beyond the end.
pub trait Table: Send {
    /// Nothing is mapped, no superblocks.
    fn new(logical_pages: u32, bits: u32) -> Self;
    /// Adds one superblock of physical pages.
    fn grow(&mut self);
    /// Logical pages.
    fn pages(&self) -> u32;
    /// Bits of an address that count pages within a superblock.
    fn bits(&self) -> u32;
    /// The address of a logical page, or [`UNMAPPED`]; that also beyond the end.
    fn touch(&self, page: u32) -> u32;
    /// Starts to load what [`Table::touch`] of a page reads first.
    fn prefetch(&self, page: u32);
    /// The page last written to an address, or [`UNMAPPED`].
    fn page_at(&self, address: u32) -> u32;
    /// Maps a page to an address.
    fn place(&mut self, page: u32, address: u32);
    /// Unmaps a page.
    fn unmap(&mut self, page: u32);

    /// The address of a logical page, or [`UNMAPPED`]. Errors: a page beyond the end.
    #[inline(always)]
    fn address_of(&self, page: u32) -> Result<u32, FtlError> {
        if page < self.pages() { Ok(self.touch(page)) } else { Err(self.beyond_end(page.into())) }
    }

    /// The refusal of a page that the drive does not have.
    #[cold]
    fn beyond_end(&self, page: u64) -> FtlError {
        FtlError::BeyondEnd { page, pages: self.pages() }
    }

    /// Superblock and offset of an address.
    #[inline(always)]
    fn split(&self, address: u32) -> Address {
        Address { block: address >> self.bits(), offset: address & ((1 << self.bits()) - 1) }
    }

    /// The first address of a superblock.
    #[inline(always)]
    fn first(&self, block: u32) -> u32 {
        block << self.bits()
    }

    /// Valid pages among the first `pages` of a superblock.
    fn valid_in(&self, block: u32, pages: u32) -> u32 {
        let first = self.first(block);
        let addresses = first..first + pages;
        addresses.filter(|address| self.touch(self.page_at(*address)) == *address).count() as u32
    }

    /// Writes the valid pages among the first `pages` of a superblock to `valid`, with their
    /// offsets, in the order of offsets.
    fn gather(&self, block: u32, pages: u32, valid: &mut Vec<(u32, u32)>) {
        let first = self.first(block);
        valid.clear();
        for offset in 0..pages {
            let page = self.page_at(first + offset);
            if self.touch(page) == first + offset {
                valid.push((page, offset));
            }
        }
    }
}

/// Two arrays.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Physical address of each logical page.
    forward: Vec<u32>,
    /// Logical page last written to each physical page.
    back: Vec<u32>,
    bits: u32,
}

impl Mapping {
    /// Bytes of both arrays.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(self.forward.as_slice()) + size_of_val(self.back.as_slice())
    }
}

impl Table for Mapping {
    fn new(logical_pages: u32, bits: u32) -> Mapping {
        Mapping { forward: vec![UNMAPPED; logical_pages as usize], back: Vec::new(), bits }
    }

    fn grow(&mut self) {
        self.back.resize(self.back.len() + (1 << self.bits), UNMAPPED);
    }

    #[inline(always)]
    fn pages(&self) -> u32 {
        self.forward.len() as u32
    }

    #[inline(always)]
    fn bits(&self) -> u32 {
        self.bits
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.forward.get(page as usize).copied().unwrap_or(UNMAPPED)
    }

    #[inline(always)]
    fn prefetch(&self, page: u32) {
        prefetch(&self.forward, page as usize);
    }

    #[inline(always)]
    fn page_at(&self, address: u32) -> u32 {
        self.back.get(address as usize).copied().unwrap_or(UNMAPPED)
    }

    #[inline(always)]
    fn place(&mut self, page: u32, address: u32) {
        self.back[address as usize] = page;
        self.forward[page as usize] = address;
    }

    #[inline(always)]
    fn unmap(&mut self, page: u32) {
        self.forward[page as usize] = UNMAPPED;
    }

    #[inline(always)]
    fn address_of(&self, page: u32) -> Result<u32, FtlError> {
        match self.forward.get(page as usize) {
            Some(address) => Ok(*address),
            None => Err(self.beyond_end(u64::from(page))),
        }
    }

    /// The loads do not wait for each other, and nothing branches on what they find.
    fn gather(&self, block: u32, pages: u32, valid: &mut Vec<(u32, u32)>) {
        let first = self.first(block);
        valid.resize(pages as usize, (0, 0));
        let mut count = 0;
        let written = &self.back[first as usize..(first + pages) as usize];
        for (offset, page) in (0..).zip(written) {
            valid[count] = (*page, offset);
            count += usize::from(self.touch(*page) == first + offset);
        }
        valid.truncate(count);
    }
}

/// Logical pages per bit that says whether any among them is stored. A drive that was only read
/// answers from the bits, which stay in the first-level cache.
const SPAN: usize = 1024;
/// Ranks per entry of the guide to superblocks.
const GUIDE: u32 = 64;

/// What the rule puts where. Many drives may share one.
#[derive(Clone, Debug)]
pub struct FillRule {
    /// Valid pages before each superblock, and all of them at the end.
    before: Vec<u32>,
    /// The superblock that holds rank `64 i`.
    guide: Vec<u32>,
    block_pages: u32,
    factor: u64,
    inverse: u64,
    /// The whole part of `2^64 - 1` over the logical pages, to divide by them without dividing.
    reciprocal: u64,
}

impl FillRule {
    /// Superblocks of `block_pages` with so many valid pages each (at most `block_pages`), first
    /// sealed first. There are as many logical pages as valid ones.
    pub fn new(block_pages: u32, valid: &[u32]) -> FillRule {
        let mut before = Vec::with_capacity(valid.len() + 1);
        let mut sum = 0;
        for count in valid {
            before.push(sum);
            sum += (*count).min(block_pages);
        }
        before.push(sum);
        let mut guide = Vec::new();
        let mut block = 0;
        for rank in (0..sum).step_by(GUIDE as usize) {
            while before[block as usize + 1] <= rank {
                block += 1;
            }
            guide.push(block);
        }
        let (factor, inverse) = shuffle(u64::from(sum.max(1)));
        let reciprocal = u64::MAX / u64::from(sum.max(1));
        FillRule { before, guide, block_pages, factor, inverse, reciprocal }
    }

    /// A drive in the steady state of uniform writes under FIFO, or under greedy in the limit of
    /// large superblocks. Valid shares fall from 1 to p with the age of the superblock: `v(x) =
    /// p^x`. `(p - 1) / ln p` is the share of valid pages in all `blocks`. Source: Menon and
    /// Stockmeyer'95; Desnoyers, SYSTOR'12. `pages` beyond the room of the blocks are left out.
    pub fn steady(block_pages: u32, blocks: u32, pages: u32) -> FillRule {
        let space = u64::from(block_pages) * u64::from(blocks);
        let pages = u64::from(pages).min(space) as f64;
        let share = pages / (space.max(1)) as f64;
        let p = victim_share(share);
        // Valid pages in the newest x of all superblocks, as a share of all of them.
        let newest = |x: f64| if p > 0.999_999 { x } else { (p.powf(x) - 1.0) / (p - 1.0) };
        let up_to = |block: u32| (pages * newest(f64::from(block) / f64::from(blocks))).round();
        let mut valid: Vec<u32> =
            (0..blocks).map(|block| (up_to(block + 1) - up_to(block)) as u32).collect();
        valid.reverse();
        FillRule::new(block_pages, &valid)
    }

    /// Superblocks that hold pages by the rule.
    pub fn blocks(&self) -> u32 {
        self.before.len() as u32 - 1
    }

    /// Data pages of a superblock.
    pub fn block_pages(&self) -> u32 {
        self.block_pages
    }

    /// Logical pages that hold data by the rule.
    pub fn pages(&self) -> u32 {
        self.before[self.before.len() - 1]
    }

    /// Valid pages of a superblock; 0 for one beyond the rule.
    pub fn valid(&self, block: u32) -> u32 {
        let block = block as usize;
        if block + 1 < self.before.len() { self.before[block + 1] - self.before[block] } else { 0 }
    }

    /// Superblock and offset of a logical page below [`FillRule::pages`].
    #[inline]
    fn place_of(&self, page: u32) -> (u32, u32) {
        let rank = self.modulo(u64::from(page) * self.factor);
        let mut block = self.guide[(rank / GUIDE) as usize] as usize;
        while self.before[block + 1] <= rank {
            block += 1;
        }
        let valid = self.before[block + 1] - self.before[block];
        let nth = u64::from(rank - self.before[block]);
        (block as u32, (nth * u64::from(self.block_pages) / u64::from(valid)) as u32)
    }

    /// The rest of a division by [`FillRule::pages`], which are not 0. The quotient by the
    /// reciprocal is short by at most 2.
    #[inline]
    fn modulo(&self, value: u64) -> u32 {
        let pages = u64::from(self.pages());
        let quotient = ((u128::from(value) * u128::from(self.reciprocal)) >> 64) as u64;
        let mut rest = value - quotient * pages;
        while rest >= pages {
            rest -= pages;
        }
        rest as u32
    }

    /// The logical page at an offset of a superblock, if one is.
    fn page_at(&self, block: u32, offset: u32) -> Option<u32> {
        let valid = u64::from(self.valid(block));
        let size = u64::from(self.block_pages);
        let nth = (u64::from(offset) * valid).div_ceil(size);
        if nth >= valid || nth * size / valid != u64::from(offset) {
            return None;
        }
        let rank = u64::from(self.before[block as usize]) + nth;
        Some(self.modulo(rank * self.inverse))
    }
}

/// The valid share of a victim under FIFO when so much of the space is valid.
fn victim_share(valid: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..100 {
        let p = 0.5 * (low + high);
        if (p - 1.0) / p.ln() < valid { low = p } else { high = p }
    }
    low
}

/// A factor near the golden section of `count` without a common divisor, and its inverse.
fn shuffle(count: u64) -> (u64, u64) {
    let mut factor = ((count as f64 * 0.618_033_988_749_895) as u64).max(1);
    loop {
        if let Some(inverse) = inverse(factor, count) {
            return (factor, inverse);
        }
        factor = factor % count + 1;
    }
}

/// The inverse of `factor` modulo `count`, if there is one; 0 modulo 1.
fn inverse(factor: u64, count: u64) -> Option<u64> {
    let (mut a, mut b) = (factor as i64, count as i64);
    let (mut x, mut y) = (1_i64, 0_i64);
    while b != 0 {
        let quotient = a / b;
        (a, b) = (b, a - quotient * b);
        (x, y) = (y, x - quotient * y);
    }
    (a == 1).then(|| x.rem_euclid(count as i64) as u64)
}

/// A table that stores what differs from a rule.
#[derive(Clone, Debug)]
pub struct Lazy {
    fill: Option<Arc<FillRule>>,
    pages: u32,
    bits: u32,
    /// A bit per [`SPAN`] pages: one of them is stored.
    spans: Vec<u64>,
    /// Addresses of logical pages placed or unmapped since.
    stored: Sparse,
    /// Index of each superblock in `written`.
    blocks: Vec<u32>,
    /// Pages written to stored superblocks, one superblock after another.
    written: Vec<u32>,
}

impl Lazy {
    /// Fills an untouched table by a rule.
    pub(crate) fn fill(&mut self, fill: Arc<FillRule>) {
        self.fill = Some(fill);
    }

    fn by_rule(&self, page: u32) -> u32 {
        match &self.fill {
            Some(fill) if page < fill.pages() => {
                let (block, offset) = fill.place_of(page);
                block << self.bits | offset
            }
            _ => UNMAPPED,
        }
    }

    /// Stores the address of a page.
    #[inline]
    fn store(&mut self, page: u32, address: u32) {
        let span = page as usize / SPAN;
        self.spans[span / 64] |= 1 << (span % 64);
        self.stored.set(page, address);
    }
}

impl Table for Lazy {
    fn new(logical_pages: u32, bits: u32) -> Lazy {
        let spans = vec![0; (logical_pages as usize).div_ceil(64 * SPAN)];
        let (blocks, written) = (Vec::new(), Vec::new());
        let stored = Sparse::new(logical_pages);
        Lazy { fill: None, pages: logical_pages, bits, spans, stored, blocks, written }
    }

    fn grow(&mut self) {
        self.blocks.push(UNMAPPED);
    }

    #[inline(always)]
    fn pages(&self) -> u32 {
        self.pages
    }

    #[inline(always)]
    fn bits(&self) -> u32 {
        self.bits
    }

    #[inline]
    fn touch(&self, page: u32) -> u32 {
        let span = page as usize / SPAN;
        match self.spans.get(span / 64) {
            Some(bits) if bits >> (span % 64) & 1 == 1 => {}
            _ => return self.by_rule(page),
        }
        self.stored.get(page).unwrap_or_else(|| self.by_rule(page))
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        self.stored.prefetch(page);
    }

    fn page_at(&self, address: u32) -> u32 {
        let (block, offset) = (address >> self.bits, address & ((1 << self.bits) - 1));
        match self.blocks.get(block as usize) {
            Some(stored) if *stored != UNMAPPED => {
                self.written[(*stored as usize) << self.bits | offset as usize]
            }
            _ => {
                let fill = self.fill.as_ref();
                fill.and_then(|fill| fill.page_at(block, offset)).unwrap_or(UNMAPPED)
            }
        }
    }

    #[inline]
    fn place(&mut self, page: u32, address: u32) {
        let (block, offset) = (address >> self.bits, address & ((1 << self.bits) - 1));
        if self.blocks[block as usize] == UNMAPPED {
            self.blocks[block as usize] = (self.written.len() >> self.bits) as u32;
            self.written.resize(self.written.len() + (1 << self.bits), UNMAPPED);
        }
        let stored = self.blocks[block as usize] as usize;
        self.written[stored << self.bits | offset as usize] = page;
        self.store(page, address);
    }

    fn unmap(&mut self, page: u32) {
        self.store(page, UNMAPPED);
    }
}

/// Indices under one mask.
const GROUP: u32 = 64;
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
        let groups = vec![[0; 2]; len.div_ceil(GROUP) as usize];
        Sparse { groups, cells: std::array::from_fn(|_| Vec::new()) }
    }

    /// The number of an index, if it is set.
    #[inline]
    pub fn get(&self, index: u32) -> Option<u32> {
        let [mask, place] = *self.groups.get((index / GROUP) as usize)?;
        let bit = 1 << (index % GROUP);
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
        prefetch(&self.groups, (index / GROUP) as usize);
    }

    /// Sets the number of an index below the length.
    #[inline]
    pub fn set(&mut self, index: u32, number: u32) {
        let group = (index / GROUP) as usize;
        let [mask, place] = self.groups[group];
        let bit = 1 << (index % GROUP);
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
    fn both_directions_of_a_rule_agree() {
        for (block_pages, blocks, pages) in
            [(256, 484, 97_000), (7, 3, 20), (64, 10, 1), (64, 4, 0)]
        {
            let fill = FillRule::steady(block_pages, blocks, pages);
            assert_eq!(fill.pages(), pages);
            for page in 0..pages {
                let (block, offset) = fill.place_of(page);
                assert_eq!(fill.page_at(block, offset), Some(page));
            }
            let found = (0..blocks).flat_map(|b| (0..block_pages).map(move |o| (b, o)));
            assert_eq!(found.filter(|(b, o)| fill.page_at(*b, *o).is_some()).count() as u32, pages);
        }
    }

    /// Valid shares fall with age from 1 to p = 0.6067 where 0.787 of the space is valid.
    #[test]
    fn a_steady_drive_has_the_shares_of_the_mean_field() {
        let fill = FillRule::steady(256, 484, (0.787 * 256.0 * 484.0) as u32);
        assert_eq!(fill.valid(483), 256);
        assert!((154..=157).contains(&fill.valid(0)), "{}", fill.valid(0));
        assert!((0..483).all(|block| fill.valid(block) <= fill.valid(block + 1) + 1));
    }

    #[test]
    fn a_page_placed_leaves_its_neighbours_where_they_were() {
        let mut table = Lazy::new(1000, 4);
        (0..80).for_each(|_| table.grow());
        table.fill(Arc::new(FillRule::steady(16, 70, 900)));
        let before: Vec<u32> = (0..1000).map(|page| table.touch(page)).collect();
        table.place(33, 75 << 4);
        table.unmap(34);
        for page in 0..1000 {
            match page {
                33 => assert_eq!(table.touch(33), 75 << 4),
                34 => assert_eq!(table.touch(34), UNMAPPED),
                _ => assert_eq!(table.touch(page), before[page as usize]),
            }
        }
        assert_eq!(table.page_at(75 << 4), 33);
        assert_eq!(table.page_at(before[33]), 33, "the old copy names it still");
    }

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
            assert_eq!(sparse.get(len.next_multiple_of(GROUP)), None, "nothing beyond the end");
            let words: usize = sparse.cells.iter().map(Vec::len).sum();
            assert!(words <= sparse.groups.len() * WORDS[5], "outgrown cells are gone");
        }
    }
}
