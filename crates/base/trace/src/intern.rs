//! Blocks and names to dense numbers: each gets the next free one at first sight, once per trace,
//! so that policies hash nothing.
//!
//! Each space of blocks has a map of its own. Dense addresses (at most 32 B per distinct block and
//! 1 MiB) have direct pages of 1024 blocks; others have an open-addressing hash table. A space
//! moves between the two as it grows; the numbers given never change.

use cachewright_memory::prefetch;
use cachewright_types::BlockId;
use foldhash::quality::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;
use thiserror::Error;

/// Marks an absent number in pages and hash slots; above [`BlockId::LIMIT`], so never given out.
const NONE: u32 = u32::MAX;
/// Blocks looked up before the first is acted upon, so that their cache misses overlap.
const AHEAD: usize = 64;

/// Why a block got no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InternError {
    /// More distinct blocks than [`BlockId`] tells apart.
    #[error(
        "found more than {} distinct blocks, expected at most that many; use a larger block size",
        BlockId::LIMIT
    )]
    TooManyBlocks,
    /// A space number outside the dense range.
    #[error("found {0} volumes, expected below {limit}", limit = Interner::SPACES_LIMIT)]
    TooManySpaces(u32),
}

/// The map of one space.
#[derive(Clone, Debug)]
enum Map {
    Paged(Paged),
    Hashed(Hashed),
}

/// What is kept to answer [`Interner::address_of`].
#[derive(Clone, Debug, Default)]
struct Addresses {
    space: Vec<u32>,
    block: Vec<u64>,
}

/// Gives (space, block number) pairs dense numbers in first-seen order.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    spaces: Vec<Map>,
    distinct: u32,
    addresses: Option<Addresses>,
}

impl Interner {
    /// Spaces that can be told apart; they are dense numbers too.
    pub const SPACES_LIMIT: u32 = 1 << 20;

    /// An empty interner that forgets addresses: 4 to 32 B per distinct block.
    pub fn new() -> Interner {
        Interner::default()
    }

    /// An empty interner that can name the address of a number: 12 B more per distinct block.
    pub fn with_addresses() -> Interner {
        Interner { addresses: Some(Addresses::default()), ..Interner::default() }
    }

    /// Numbers given so far; they are `0..distinct()`.
    pub fn distinct(&self) -> u32 {
        self.distinct
    }

    /// The number of a block seen before.
    #[inline]
    pub fn get(&self, space: u32, block: u64) -> Option<u32> {
        let id = match self.spaces.get(space as usize)? {
            Map::Paged(map) => map.get(block),
            Map::Hashed(map) => map.get(block),
        };
        (id != NONE).then_some(id)
    }

    /// Starts to load what the look-up of a block reads first. For interleaved spaces, of which
    /// [`intern_batch`](Self::intern_batch) sees few blocks at a time.
    #[inline]
    pub fn prefetch(&self, space: u32, block: u64) {
        if let Some(Map::Hashed(map)) = self.spaces.get(space as usize) {
            map.prefetch(block);
        }
    }

    /// The number of a block, the next free one when it is new.
    #[inline]
    pub fn intern(&mut self, space: u32, block: u64) -> Result<u32, InternError> {
        match self.get(space, block) {
            Some(id) => Ok(id),
            None => self.insert(space, block),
        }
    }

    /// Appends the numbers of `blocks` in order. On error `ids` is as before, though blocks seen
    /// before the failing one keep the numbers they got.
    pub fn intern_batch(
        &mut self,
        space: u32,
        blocks: &[u64],
        ids: &mut Vec<u32>,
    ) -> Result<(), InternError> {
        self.open(space)?;
        let before = ids.len();
        ids.reserve(blocks.len());
        for chunk in blocks.chunks(AHEAD) {
            let start = ids.len();
            match &self.spaces[space as usize] {
                Map::Paged(map) => ids.extend(chunk.iter().map(|block| map.get(*block))),
                Map::Hashed(map) => map.get_all(chunk, ids),
            }
            for (index, block) in chunk.iter().enumerate() {
                if ids[start + index] == NONE {
                    match self.intern(space, *block) {
                        Ok(id) => ids[start + index] = id,
                        Err(error) => {
                            ids.truncate(before);
                            return Err(error);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends the numbers of the `count` blocks from `first` on, as one request covers them.
    /// Block numbers stop at `u64::MAX`. Errors as [`intern_batch`](Self::intern_batch).
    #[inline]
    pub fn intern_range(
        &mut self,
        space: u32,
        first: u64,
        count: u64,
        ids: &mut Vec<u32>,
    ) -> Result<(), InternError> {
        let before = ids.len();
        for block in first..first.saturating_add(count) {
            match self.intern(space, block) {
                Ok(id) => ids.push(id),
                Err(error) => {
                    ids.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Appends the numbers of those of the `count` blocks from `first` on that were seen before, by
    /// ascending block. The cost is that of the blocks present or those requested, whichever are
    /// fewer (up to a page). A trim of a whole volume is therefore cheap.
    pub fn get_range(&self, space: u32, first: u64, count: u64, ids: &mut Vec<u32>) {
        let end = first.saturating_add(count);
        match self.spaces.get(space as usize) {
            Some(Map::Paged(map)) => map.get_range(first, end, ids),
            Some(Map::Hashed(map)) => map.get_range(first, end, ids),
            None => {}
        }
    }

    /// The (space, block number) behind a number; nothing for a number not given or when the
    /// interner was made to forget addresses.
    pub fn address_of(&self, id: u32) -> Option<(u32, u64)> {
        let addresses = self.addresses.as_ref()?;
        let index = id as usize;
        Some((*addresses.space.get(index)?, *addresses.block.get(index)?))
    }

    /// Each number's space and block, of an interner that can name addresses.
    pub fn into_addresses(self) -> Option<(Vec<u32>, Vec<u64>)> {
        self.addresses.map(|addresses| (addresses.space, addresses.block))
    }

    /// Bytes held by maps and addresses.
    pub fn memory_bytes(&self) -> u64 {
        let maps: usize = self
            .spaces
            .iter()
            .map(|map| match map {
                Map::Paged(map) => map.memory_bytes(),
                Map::Hashed(map) => map.memory_bytes(),
            })
            .sum();
        let addresses = self.addresses.as_ref().map_or(0, |a| a.block.capacity() * 12);
        (maps + addresses) as u64
    }

    /// Makes sure that the space exists.
    fn open(&mut self, space: u32) -> Result<(), InternError> {
        if space >= Self::SPACES_LIMIT {
            return Err(InternError::TooManySpaces(space));
        }
        if space as usize >= self.spaces.len() {
            self.spaces.resize_with(space as usize + 1, || Map::Paged(Paged::default()));
        }
        Ok(())
    }

    /// Numbers a block that has none yet.
    #[cold]
    fn insert(&mut self, space: u32, block: u64) -> Result<u32, InternError> {
        self.open(space)?;
        if self.distinct >= BlockId::LIMIT {
            return Err(InternError::TooManyBlocks);
        }
        let id = self.distinct;
        let map = &mut self.spaces[space as usize];
        match map {
            Map::Paged(pages) => {
                if !pages.insert(block, id) {
                    let mut table = Hashed::with_capacity_for(pages.len() + 1);
                    pages.for_each(|block, id| table.insert(block, id));
                    table.insert(block, id);
                    *map = Map::Hashed(table);
                }
            }
            Map::Hashed(table) => {
                if table.is_full() {
                    match Paged::from_dense(table) {
                        Some(pages) => {
                            *map = Map::Paged(pages);
                            return self.insert(space, block);
                        }
                        None => table.grow(),
                    }
                }
                table.insert(block, id);
            }
        }
        self.distinct += 1;
        if let Some(addresses) = &mut self.addresses {
            addresses.space.push(space);
            addresses.block.push(block);
        }
        Ok(id)
    }
}

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

/// An open-addressing hash table from block number to interned number. Own code rather than a
/// library's, because the cache misses of a batch's look-ups must overlap: the first probe of each
/// is read before any is compared. 12 B per slot, at most three quarters full, linear probing,
/// nothing is ever removed.
#[derive(Clone, Debug)]
struct Hashed {
    /// A power of two.
    slots: Vec<HashSlot>,
    len: usize,
}

impl Hashed {
    /// An empty table that takes half as many again as `len` blocks before it is full.
    fn with_capacity_for(len: usize) -> Hashed {
        let slots = (len * 2).next_power_of_two().max(SLOTS_LEAST);
        Hashed { slots: vec![EMPTY; slots], len: 0 }
    }

    /// Distinct blocks held.
    fn len(&self) -> usize {
        self.len
    }

    /// Whether the next insertion must be preceded by [`grow`](Self::grow).
    fn is_full(&self) -> bool {
        (self.len + 1) * 4 > self.slots.len() * 3
    }

    /// Bytes allocated.
    fn memory_bytes(&self) -> usize {
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
    fn get(&self, block: u64) -> u32 {
        self.slots[self.probe(self.home(block), block)].id
    }

    /// Starts to load the first slot that the probe for a block reads.
    #[inline]
    fn prefetch(&self, block: u64) {
        prefetch(&self.slots, self.home(block));
    }

    /// Appends the number of each block, [`NONE`] for unknown ones; at most [`AHEAD`] blocks.
    fn get_all(&self, blocks: &[u64], ids: &mut Vec<u32>) {
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
    fn insert(&mut self, block: u64, id: u32) {
        debug_assert!(!self.is_full());
        let index = self.probe(self.home(block), block);
        self.slots[index] = HashSlot::new(block, id);
        self.len += 1;
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let slots = self.slots.len() * 2;
        let mut larger = Hashed { slots: vec![EMPTY; slots], len: 0 };
        self.for_each(|block, id| larger.insert(block, id));
        *self = larger;
    }

    /// Calls `visit` with every block and its number, in no useful order.
    fn for_each(&self, mut visit: impl FnMut(u64, u32)) {
        for slot in &self.slots {
            if slot.id != NONE {
                visit(slot.block(), slot.id);
            }
        }
    }

    /// Appends the numbers of the blocks in `first..end`, by ascending block.
    fn get_range(&self, first: u64, end: u64, ids: &mut Vec<u32>) {
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

const PAGE_BITS: u32 = 10;
const PAGE: usize = 1 << PAGE_BITS;
const LOW: u64 = PAGE as u64 - 1;
/// Bytes of pages and directory allowed per distinct block ...
const BYTES_PER_BLOCK: u64 = 32;
/// ... and on top of that, so that small spaces start direct.
const BYTES_FREE: u64 = 1 << 20;
/// Fewer blocks than this are not worth moving from a hash table to pages.
const WORTH_MOVING: usize = 1 << 14;

/// A direct map from block number to interned number, by pages of 1024 blocks: two array reads per
/// look-up. Page 0 is shared, all absent and never written; a directory entry of 0 therefore means
/// "no page", and a look-up needs no branch for it.
#[derive(Clone, Debug, Default)]
struct Paged {
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
    fn from_dense(table: &Hashed) -> Option<Paged> {
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
    fn len(&self) -> usize {
        self.len
    }

    /// Bytes allocated.
    fn memory_bytes(&self) -> usize {
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
    fn get(&self, block: u64) -> u32 {
        if block >> PAGE_BITS < self.directory.len() as u64 {
            self.numbers[self.slot(block)]
        } else {
            NONE
        }
    }

    /// Stores a new block; false when its page would cost too much for the blocks held.
    fn insert(&mut self, block: u64, id: u32) -> bool {
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
    fn for_each(&self, mut visit: impl FnMut(u64, u32)) {
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
    fn get_range(&self, first: u64, end: u64, ids: &mut Vec<u32>) {
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

/// What is refused.
pub(crate) const NAME: &str = "fewer than 2^28 distinct ids of 1 to 4096 bytes";
/// Distinct names.
const NAMES_LIMIT: u32 = 1 << 28;
/// The longest known are the keys of Twitter's caches and paths.
const NAME_LIMIT_BYTES: usize = 4096;
/// Any two that differ: two independent halves of a hash.
const SEEDS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

/// Names that are no addresses (keys, paths, hashes) to numbers from 0. Names are not kept, only
/// 128 bits of hash of each: two of 2^28 names share them with a probability below 2^-72. 25 to 57
/// bytes per distinct name.
#[derive(Clone)]
pub(crate) struct Numbered {
    hashes: [FixedState; 2],
    numbers: HashMap<[u64; 2], u32, foldhash::fast::FixedState>,
}

impl Default for Numbered {
    fn default() -> Numbered {
        Numbered { hashes: SEEDS.map(FixedState::with_seed), numbers: HashMap::default() }
    }
}

impl Numbered {
    /// The number of `name`. Errors: no name, one that is too long, or too many of them.
    #[inline]
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<u64, &'static str> {
        if name.is_empty() || name.len() > NAME_LIMIT_BYTES {
            return Err(NAME);
        }
        let hash = [self.hashes[0].hash_one(name), self.hashes[1].hash_one(name)];
        let next = u32::try_from(self.numbers.len()).unwrap_or(NAMES_LIMIT);
        match self.numbers.get(&hash) {
            Some(number) => Ok(u64::from(*number)),
            None if next >= NAMES_LIMIT => Err(NAME),
            None => {
                self.numbers.insert(hash, next);
                Ok(u64::from(next))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Sparse, dense and huge addresses, so that both maps and both moves between them occur.
    fn block() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => 0_u64..5_000,
            2 => (0_u64..3_000).prop_map(|n| n * 1_000_003),
            1 => any::<u64>(),
            1 => Just(u64::MAX),
        ]
    }

    fn agrees(accesses: &[(u32, u64)]) -> Interner {
        let mut interner = Interner::with_addresses();
        let mut model: HashMap<(u32, u64), u32> = HashMap::new();
        for &(space, block) in accesses {
            let next = model.len() as u32;
            assert_eq!(interner.get(space, block), model.get(&(space, block)).copied());
            let expected = *model.entry((space, block)).or_insert(next);
            assert_eq!(interner.intern(space, block), Ok(expected));
        }
        assert_eq!(interner.distinct() as usize, model.len());
        for (&address, &id) in &model {
            assert_eq!(interner.address_of(id), Some(address));
            assert_eq!(interner.get(address.0, address.1), Some(id));
        }
        let (spaces, blocks) = interner.clone().into_addresses().unwrap();
        let addresses: Vec<(u32, u64)> = spaces.into_iter().zip(blocks).collect();
        assert_eq!(addresses.len(), model.len());
        assert!(model.iter().all(|(address, id)| addresses[*id as usize] == *address));
        interner
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_a_hash_map(
            accesses in prop::collection::vec((0_u32..3, block()), 0..2_000)
        ) {
            agrees(&accesses);
        }

        #[test]
        fn a_batch_is_its_blocks_one_by_one(
            blocks in prop::collection::vec(block(), 0..600),
            first in block(),
            count in 0_u64..9_000
        ) {
            let (mut whole, mut single) = (Interner::new(), Interner::new());
            let mut ids = vec![7];
            whole.intern_batch(2, &blocks, &mut ids).unwrap();
            prop_assert_eq!(ids[0], 7);
            for (block, id) in blocks.iter().zip(&ids[1..]) {
                prop_assert_eq!(single.intern(2, *block), Ok(*id));
            }
            let mut found = Vec::new();
            whole.get_range(2, first, count, &mut found);
            let end = first.saturating_add(count);
            let expected: Vec<u32> =
                (first..end).filter_map(|block| single.get(2, block)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn sparse_spaces_fall_back_to_hashing_and_dense_ones_return() {
        let mut rng = Seed(3).rng();
        let sparse: Vec<(u32, u64)> = (0..20_000).map(|_| (0, rng.next_u64() >> 20)).collect();
        let interner = agrees(&sparse);
        assert!(matches!(interner.spaces[0], Map::Hashed(_)));
        assert!(interner.memory_bytes() < 20_000 * (32 + 12 + 16));

        let scattered: Vec<(u32, u64)> = (0..600_000).map(|_| (0, rng.below(1 << 20))).collect();
        let early = agrees(&scattered[..20_000]);
        assert!(matches!(early.spaces[0], Map::Hashed(_)), "1024 pages for few blocks");
        let late = agrees(&scattered);
        assert!(matches!(late.spaces[0], Map::Paged(_)), "1024 pages for many blocks");
    }

    #[test]
    fn sequential_blocks_cost_a_page_each_thousand() {
        let mut interner = Interner::new();
        let mut ids = Vec::new();
        interner.intern_range(0, 0, 1 << 20, &mut ids).unwrap();
        assert!(ids.iter().enumerate().all(|(index, id)| index as u32 == *id));
        assert!(interner.memory_bytes() <= 9 << 20, "{}", interner.memory_bytes());
    }

    #[test]
    fn a_space_out_of_range_is_refused_without_memory() {
        let mut interner = Interner::new();
        let refused = interner.intern(u32::MAX, 0);
        assert_eq!(refused, Err(InternError::TooManySpaces(u32::MAX)));
        assert_eq!(interner.memory_bytes(), 0);
        assert_eq!(interner.address_of(0), None);
    }

    #[test]
    fn numbers_are_those_of_a_map_that_keeps_names() {
        let (mut numbered, mut kept) = (Numbered::default(), HashMap::new());
        for step in 0_u64..50_000 {
            let name = format!("key:{}", step * step % 7_919).into_bytes();
            let next = kept.len() as u64;
            let expected = *kept.entry(name.clone()).or_insert(next);
            assert_eq!(numbered.number(&name), Ok(expected));
        }
        assert_eq!(numbered.number(b""), Err(NAME));
        assert_eq!(numbered.number(&[b'x'; 4097]), Err(NAME));
    }
}
