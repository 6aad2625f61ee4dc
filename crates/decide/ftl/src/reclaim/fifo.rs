//! FIFO: the superblock that was sealed first.
//!
//! For: a policy without any look at validity, whose write amplification under uniform writes has a
//! closed form. Must never know: invalid pages. Source: Robinson, 1996; Menon and Stockmeyer, IBM,
//! 1995 (LRU). A superblock whose pages are all valid is moved as well. Constant time per stream.

use super::{Reclaim, Registered, Round};
use crate::geometry::STREAM_LIMIT;
use crate::layer::Stream;
use crate::{Block, Entry, Geometry};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// First sealed first.
#[derive(Clone, Copy, Debug, Default)]
pub struct FifoReclaim;

impl Registered for FifoReclaim {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "fifo",
        doc: "the superblock that was filled first (first in, first out)",
        source: "Menon and Stockmeyer, IBM research report, 1995 (LRU)",
        needs: &[],
    };

    fn new(_: &Geometry, _: &NoSettings, _: Seed) -> Self {
        FifoReclaim
    }
}

impl Reclaim for FifoReclaim {
    fn score(&self, block: &Block, round: &Round<'_>) -> f64 {
        (round.clock - block.sealed_at) as f64 + 1.0
    }

    fn choose(&mut self, round: &Round<'_>) -> Option<u32> {
        let oldest = |stream| {
            let blocks = round.blocks.in_seal_order(Stream(stream));
            let block = blocks.map(|id| round.blocks.get(id)).find(|block| round.admits(block))?;
            Some((block.sealed_at, block.number, block.id))
        };
        (0..STREAM_LIMIT as u8).filter_map(oldest).min().map(|(_, _, id)| id)
    }
}
