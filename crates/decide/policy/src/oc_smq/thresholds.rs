//! The promote level and the hot level of `oc-smq`.
//!
//! For: admission and the choice of a region. Must never know: blocks, regions. Source:
//! Wang et al. (oc-cache), section II, which says only that both follow the workload; the rules are
//! ours. The promote level rises by one when the promotions of a tick exceed the write budget;
//! otherwise it falls by one when the tick had fewer hits than the one before. Ticks are equally
//! long, so hits compare as hit ratios do. The hot level is the lowest at which no more blocks
//! stand, there and above, than the tenant's private region holds. Units: levels, blocks.

use super::level_lists::LevelLists;
use crate::levels::LEVELS;

/// Both levels and the counts that move them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thresholds {
    /// A missed block at this level or above enters the cache.
    pub promote: u8,
    /// A block at this level or above is hot.
    pub hot: u8,
    hits: u32,
    last_hits: u32,
    promotions: u32,
}

impl Thresholds {
    #[inline(always)]
    pub fn hit(&mut self) {
        self.hits += 1;
    }

    pub fn promoted(&mut self) {
        self.promotions += 1;
    }

    /// A tick has ended.
    pub fn end_tick(&mut self, budget_blocks: u32) {
        if self.promotions > budget_blocks {
            self.promote = (self.promote + 1).min(LEVELS as u8 - 1);
        } else if self.hits < self.last_hits {
            self.promote = self.promote.saturating_sub(1);
        }
        self.last_hits = self.hits;
        (self.hits, self.promotions) = (0, 0);
    }

    /// The populations of the levels, or the regions, have changed.
    pub fn follow(&mut self, level_lists: &LevelLists, private_blocks: u32) {
        let fits = |level: &usize| level_lists.held_from(*level) <= private_blocks;
        self.hot = (0..LEVELS).find(fits).unwrap_or(LEVELS) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promote_level_keeps_to_the_budget_and_else_follows_hits() {
        let mut levels = Thresholds::default();
        let mut tick = |promotions, hits| {
            (0..promotions).for_each(|_| levels.promoted());
            (0..hits).for_each(|_| levels.hit());
            levels.end_tick(5);
            levels.promote
        };
        // Within the budget, over it twice (hits fall, but the budget comes first), then falling
        // and rising hits.
        let seen = [(5, 9), (6, 9), (7, 3), (5, 2), (0, 8), (0, 8), (0, 7), (0, 6)];
        assert_eq!(seen.map(|(promotions, hits)| tick(promotions, hits)), [0, 1, 2, 1, 1, 1, 0, 0]);
        for _ in 0..100 {
            tick(6, 0);
        }
        assert_eq!(tick(6, 0), 63);
    }
}
