//! Streams of block accesses by seed.

use cachewright_types::{BlockId, BlockKey, Rng, Seed, VolumeKeys};
use std::collections::HashMap;

/// The blocks of the golden synthetic trace, 200,000 accesses: three of four are drawn from a cubed
/// uniform over 20,000, one of four walks round a loop of 15,000.
pub fn golden_ids() -> Vec<u64> {
    let mut rng = Seed(42).rng();
    (0..200_000_u64)
        .map(|i| {
            let u = rng.unit();
            if i % 4 == 3 {
                1_000_000 + (i / 4) % 15_000
            } else {
                1 + (20_000.0 * (u * u * u)) as u64
            }
        })
        .collect()
}

/// Dense ids in order of first use.
pub fn dense(raw: impl IntoIterator<Item = u64>) -> Vec<BlockId> {
    let mut known: HashMap<u64, u32> = HashMap::new();
    raw.into_iter()
        .map(|id| {
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

/// Draws from Zipf(1.0) by inversion of the cumulative distribution.
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
