//! Streams the tests of this room share.
//!
//! For: the golden synthetic stream, Zipf streams, and the slow model of a stack. Must never know:
//! the code under test, except how a block is named.

#![allow(dead_code, reason = "each test uses its own part")]

use cachewright_curve::BlockName;
use cachewright_types::{BlockId, BlockKey, Rng, Seed, VolumeKeys};
use std::collections::HashMap;

/// The golden synthetic stream, ids made dense in order of first use: 200,000 accesses.
pub fn golden_stream() -> Vec<BlockId> {
    let mut rng = Seed(42).rng();
    let raw = (0..200_000_u64).map(|i| {
        let u = rng.unit();
        if i % 4 == 3 { 1_000_000 + (i / 4) % 15_000 } else { 1 + (20_000.0 * (u * u * u)) as u64 }
    });
    dense(raw)
}

/// Dense ids in order of first use.
pub fn dense(raw: impl Iterator<Item = u64>) -> Vec<BlockId> {
    let mut known: HashMap<u64, u32> = HashMap::new();
    raw.map(|id| {
        let next = known.len() as u32;
        BlockId(*known.entry(id).or_insert(next))
    })
    .collect()
}

/// The keys of the blocks that [`dense`] names, in the order of their ids.
pub fn keys_of(raw: &[BlockId], volume: VolumeKeys) -> Vec<BlockKey> {
    let mut keys = Vec::new();
    for (block, id) in raw.iter().zip(dense(raw.iter().map(|block| u64::from(block.0)))) {
        if id.index() == keys.len() {
            keys.push(volume.key(u64::from(block.0)));
        }
    }
    keys
}

/// The key of a block in a volume whose numbers are its ids.
pub fn key(block: BlockId) -> BlockKey {
    BlockKey(u64::from(block.0))
}

/// A block known by that key alone.
pub fn keyed(block: BlockId) -> BlockName<'static> {
    BlockName::Keyed(key(block))
}

/// Draws from Zipf(1.0) over `blocks` ids by inversion of the cumulative distribution.
pub struct ZipfBlocks {
    cumulative: Vec<f64>,
    rng: Rng,
}

impl ZipfBlocks {
    /// A distribution over `0..blocks`.
    pub fn new(blocks: u32, seed: Seed) -> ZipfBlocks {
        let mut sum = 0.0;
        let weights = (1..=blocks).map(|rank| 1.0 / f64::from(rank));
        let cumulative = weights.map(|w| {
            sum += w;
            sum
        });
        ZipfBlocks { cumulative: cumulative.collect(), rng: seed.rng() }
    }

    /// The next id; low ids are popular.
    pub fn draw(&mut self) -> BlockId {
        let index = self.rng.unit() * self.cumulative[self.cumulative.len() - 1];
        BlockId(self.cumulative.partition_point(|&c| c <= index) as u32)
    }
}

/// An LRU stack as in the definition: a list, newest first. `None` is a freed frame.
#[derive(Default)]
pub struct ListStack(Vec<Option<BlockId>>);

impl ListStack {
    /// The distance of an access, nothing if the block is not in the list.
    pub fn access(&mut self, block: BlockId) -> Option<usize> {
        let found = self.0.iter().position(|entry| *entry == Some(block));
        let hole = self.0.iter().position(Option::is_none);
        if let Some(index) = found {
            self.0[index] = None;
        }
        // Whatever lies above the first free frame moves down into it.
        match (hole, found) {
            (Some(hole), Some(index)) if hole > index => self.0.remove(index),
            (Some(hole), _) => self.0.remove(hole),
            (None, Some(index)) => self.0.remove(index),
            (None, None) => None,
        };
        self.0.insert(0, Some(block));
        found.map(|index| index + 1)
    }

    /// Frees the block's frame.
    pub fn remove(&mut self, block: BlockId) {
        if let Some(index) = self.0.iter().position(|entry| *entry == Some(block)) {
            self.0[index] = None;
        }
    }

    /// Takes the block out and closes the gap.
    pub fn forget(&mut self, block: BlockId) {
        self.0.retain(|entry| *entry != Some(block));
    }
}
