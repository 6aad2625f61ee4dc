//! Streams the tests of this room share.
//!
//! For: the golden synthetic stream, Zipf streams, and the slow model of a stack. Must never know:
//! the code under test, except the noun of a block.

#![allow(dead_code, reason = "each test uses its own part")]

use cachewright_types::{BlockId, Rng, Seed};
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
