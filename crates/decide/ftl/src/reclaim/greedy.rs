//! Greedy: the superblock with the most invalid pages.
//!
//! For: the least work now. Must never know: ages. Source: Rosenblum and Ousterhout, SOSP'91,
//! section 3.4; its write amplification under uniform writes is known in closed form. Constant time
//! per victim and per overwrite: superblocks stand in lists by their number of invalid pages. Among
//! equals the one that has been equal for longest.

use super::{Reclaim, Registered, Round};
use crate::{Block, CleaningOrder, Entry, Geometry};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// Most invalid pages first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl Registered for Greedy {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "greedy",
        doc: "the superblock with the most invalid pages",
        source: "Rosenblum and Ousterhout, SOSP'91, section 3.4",
        needs: &[],
    };

    fn new(_: &Geometry, _: &NoSettings, _: Seed) -> Self {
        Greedy
    }
}

impl Reclaim for Greedy {
    fn score(&self, block: &Block, _: &Round<'_>) -> f64 {
        block.invalid_share()
    }

    fn order(&self, _: u32) -> CleaningOrder {
        CleaningOrder::ByInvalid
    }

    fn choose(&mut self, round: &Round<'_>) -> Option<u32> {
        let mut ordered = round.blocks.by_invalid(round.min_invalid.max(1));
        ordered.find(|id| round.admits(&round.blocks.get(*id)))
    }
}
