//! Blocks to dense numbers: every (space, block number) gets the next free `u32` at first sight.
//!
//! For: turning sparse disk addresses into array indices once per trace, so that policies hash
//! nothing. Must never know: policies, requests, formats. Units: block numbers of any one size.
//!
//! Each space has a map of its own. Dense addresses (at most 32 B per distinct block and 1 MiB)
//! have direct pages of 1024 blocks; others have an open-addressing hash table. A space moves
//! between the two as it grows; the numbers given never change.

mod hashed;
mod paged;

use cachewright_types::BlockId;
use hashed::Hashed;
use paged::Paged;
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
}
