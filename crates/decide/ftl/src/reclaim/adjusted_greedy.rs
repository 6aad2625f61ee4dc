//! Adjusted greedy: greedy with a discount on superblocks that are about to die by themselves.
//!
//! For: Shiro's victims. Must never know: how the short-lived class was found. Source: Shiro,
//! equation 1: Score: I / (1 + V T / C) for superblocks of the short-lived class, I for others. I
//! and V are the shares of invalid and valid pages, T the lifetime threshold. C counts host page
//! writes since it was sealed (at least 1). Under a separation without such a class it is greedy.

use super::{Reclaim, Registered, Round, best_by_invalid};
use crate::{Block, CleaningOrder, Entry, Geometry};
use cachewright_types::Seed;
use cachewright_types::declare::NoSettings;

/// Equation 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdjustedGreedy;

impl Registered for AdjustedGreedy {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "adjusted-greedy",
        doc: "greedy, with a discount on recently filled superblocks of short-lived pages",
        source: "Sun et al., Shiro, equation 1",
        needs: &[],
    };

    fn new(_: &Geometry, _: &NoSettings, _: Seed) -> Self {
        AdjustedGreedy
    }
}

impl Reclaim for AdjustedGreedy {
    #[inline(always)]
    fn score(&self, block: &Block, round: &Round<'_>) -> f64 {
        let invalid = block.invalid_share();
        if round.short_lived.streams & block.stream.mask() == 0 {
            return invalid;
        }
        let since = (round.clock - block.sealed_at).max(1);
        let wait = round.short_lived.threshold as f64 / since as f64;
        invalid / (1.0 + block.valid_share() * wait)
    }

    fn order(&self, _: u32) -> CleaningOrder {
        CleaningOrder::ByInvalid
    }

    fn choose(&mut self, round: &Round<'_>) -> Option<u32> {
        best_by_invalid(self, round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{ShortLived, Stream};

    /// I = 0.5, V = 0.5, T = 40: sealed 20 pages ago 0.5 / (1 + 0.5 * 2) = 0.25, sealed just now
    /// 0.5 / (1 + 0.5 * 40); long-lived 0.5.
    #[test]
    fn equation_1() {
        let blocks = crate::Superblocks::new(10, crate::CleaningOrder::None);
        let short_lived = ShortLived { streams: Stream(1).mask(), threshold: 40 };
        let round = Round { short_lived, ..Round::over(&blocks, 120) };
        let long = Block { pages: 10, invalid: 5, sealed_at: 100, ..Block::default() };
        let short = Block { stream: Stream(1), ..long };
        let score = |block: Block| AdjustedGreedy.score(&block, &round);
        assert_eq!(score(long), 0.5);
        assert_eq!(score(short), 0.25);
        assert_eq!(score(Block { sealed_at: 120, ..short }), 0.5 / 21.0);
    }

    /// Against a look at every superblock, with short- and long-lived ones, many equals, conditions
    /// on streams and on invalid pages.
    #[test]
    fn the_victim_is_that_of_a_plain_search() {
        let mut rng = Seed(6).rng();
        let mut found = [0; 2];
        for _ in 0..400 {
            let mut blocks = crate::Superblocks::new(8, CleaningOrder::ByInvalid);
            for clock in 0..1 + rng.below(40) {
                let id = blocks.grow();
                blocks.open(id, Stream(rng.below(4) as u8), clock);
                blocks.seal(id, clock);
                (0..rng.below(9)).for_each(|_| {
                    blocks.invalidate(id);
                });
            }
            let threshold = rng.below(60);
            let short_lived = ShortLived { streams: 0b0101, threshold };
            let (streams, min_invalid) = ([u64::MAX, 0b0111, 0b0001][rng.below(3) as usize], 2);
            let over = Round::over(&blocks, 40);
            let round = Round { short_lived, streams, min_invalid, ..over };
            let victim = AdjustedGreedy.choose(&round);
            assert_eq!(victim, super::super::best(&AdjustedGreedy, &round));
            found[usize::from(victim.is_some())] += 1;
        }
        assert!(found.iter().all(|count| *count > 5), "{found:?}");
    }
}
