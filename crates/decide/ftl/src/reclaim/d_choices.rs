//! d-choices: the most invalid pages among d superblocks drawn at random.
//!
//! For: victims at constant cost that come near greedy at d = 10, with a mean-field theory. Must
//! never know: ages. Source: Van Houdt, SIGMETRICS'13; Li, Lee and Lui, SIGMETRICS'13. d = 1 is
//! random selection. Superblocks are drawn with replacement.

use super::{Reclaim, Registered, Round, best};
use crate::{Block, Entry, Geometry};
use cachewright_types::{Rng, Seed};

/// Draws per wanted candidate before all superblocks are looked at.
const PATIENCE: u32 = 64;

cachewright_types::declare! {
    /// The number of choices.
    pub struct DChoicesSettings {
        /// superblocks drawn for each victim
        d: u32 = 10, "superblocks", 1 ..= 65536;
    }
}

/// Greedy among a few.
#[derive(Clone, Debug)]
pub struct DChoices {
    d: u32,
    rng: Rng,
}

impl Registered for DChoices {
    type Settings = DChoicesSettings;
    const ENTRY: Entry = Entry {
        name: "d-choices",
        doc: "the most invalid pages among d superblocks drawn at random",
        source: "Van Houdt, SIGMETRICS'13; Li, Lee and Lui, SIGMETRICS'13",
        needs: &[],
    };

    fn new(_: &Geometry, settings: &DChoicesSettings, seed: Seed) -> Self {
        DChoices { d: settings.d, rng: seed.derive("d-choices").rng() }
    }
}

impl Reclaim for DChoices {
    fn score(&self, block: &Block, _: &Round<'_>) -> f64 {
        block.invalid_share()
    }

    fn choose(&mut self, round: &Round<'_>) -> Option<u32> {
        let (mut drawn, mut victim) = (0, None);
        for _ in 0..self.d.saturating_mul(PATIENCE) {
            let id = self.rng.below(u64::from(round.blocks.len())) as u32;
            if !round.blocks.is_sealed(id) {
                continue;
            }
            let block = round.blocks.get(id);
            if !round.admits(&block) {
                continue;
            }
            victim = victim.max(Some((block.invalid, id)));
            drawn += 1;
            if drawn == self.d {
                break;
            }
        }
        victim.map(|(_, id)| id).or_else(|| best(self, round))
    }
}
