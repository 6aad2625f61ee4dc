//! The work of `oc-smq` beside requests: demotion, cleaning and migration.
//!
//! For: deciding the next background operation. Must never know: requests, verdicts. Source: Wang et al.
//! (oc-cache), section IV. A round is all that is asked for after one request; it ends when there
//! is nothing more to do or when it has done as much as one round may. Unit: blocks.

use super::OcSmq;
use super::shelves::Shelf;
use crate::BackgroundOp;
use crate::levels::LEVELS;
use cachewright_types::BlockId;

/// Levels below this one are low: their blocks leave first.
pub(super) const SAFE_LEVEL: usize = LEVELS / 2;

/// What is due, and what has been done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Background {
    /// Blocks demoted or cleaned in this round.
    moved: u32,
    /// Pairs swapped in this round.
    swapped: u32,
    /// Blocks to be cleaned before the tick ends.
    uncleaned: u32,
    /// More blocks of the common room were hot than may be.
    migrating: bool,
    /// Since the beginning.
    pub demotions: u64,
    pub cleanings: u64,
    pub swaps: u64,
}

impl OcSmq {
    /// A tick has ended: how many low blocks are too few among the clean ones.
    pub(super) fn plan_cleaning(&mut self) {
        let wanted = self.part(self.settings.clean);
        if wanted > 0 {
            self.background.uncleaned = wanted.saturating_sub(self.shelves.clean_below(SAFE_LEVEL));
        }
    }

    /// A period has ended: whether the hot blocks of the common room are too many.
    pub(super) fn plan_migration(&mut self) {
        self.background.migrating = self.sizes.both() && self.too_hot();
    }

    /// Whether a larger share of the common room is hot than may be.
    fn too_hot(&self) -> bool {
        let hot = self.shelves.held_in_from(true, self.thresholds.hot.into());
        f64::from(hot) > self.settings.hot_share * f64::from(self.shelves.held_in(true))
    }

    /// The next operation of this round.
    #[inline(always)]
    pub(super) fn next_background_op(&mut self) -> Option<BackgroundOp> {
        let work = self.background;
        let short = self.free() < self.reserve;
        if !short && work.uncleaned == 0 && !work.migrating && work.moved + work.swapped == 0 {
            return None;
        }
        let mut op = None;
        if work.moved < self.settings.demotions {
            op = if short { self.demote() } else { self.clean() };
        }
        if op.is_none() && work.migrating && work.swapped < self.settings.swaps {
            op = self.swap();
        }
        if op.is_none() {
            (self.background.moved, self.background.swapped) = (0, 0);
        }
        op
    }

    /// The coldest low block leaves ahead of need.
    fn demote(&mut self) -> Option<BackgroundOp> {
        let [own, common] = [false, true].map(|room| self.shelves.coldest(room, SAFE_LEVEL));
        let block = self.shelves.colder(common, own)?;
        self.leave(block);
        self.background.moved += 1;
        self.background.demotions += 1;
        Some(BackgroundOp::Demote(block))
    }

    /// The coldest low dirty block is written back ahead of need.
    fn clean(&mut self) -> Option<BackgroundOp> {
        if self.background.uncleaned == 0 {
            return None;
        }
        self.background.uncleaned -= 1;
        let dirty = |common| self.shelves.oldest(Shelf { common, dirty: true }, SAFE_LEVEL);
        let Some(block) = self.shelves.colder(dirty(true), dirty(false)) else {
            self.background.uncleaned = 0;
            return None;
        };
        let common = self.shelves.tag(block).shelf.is_some_and(|shelf| shelf.common);
        self.shelves.shift(block, Shelf { common, dirty: false });
        self.background.moved += 1;
        self.background.cleanings += 1;
        Some(BackgroundOp::Clean(block))
    }

    /// The hottest block of the common room and the coldest of the own one change places, until
    /// no more of the common room is hot than may be or nothing cold is left to take its place.
    fn swap(&mut self) -> Option<BackgroundOp> {
        let hot_level = usize::from(self.thresholds.hot);
        let pair = self.shelves.hottest(true, hot_level).filter(|_| self.too_hot());
        let Some((hot, cold)) = pair.zip(self.shelves.coldest(false, hot_level)) else {
            self.background.migrating = false;
            return None;
        };
        self.change_room(hot);
        self.change_room(cold);
        self.background.swapped += 1;
        self.background.swaps += 1;
        Some(BackgroundOp::Swap(hot, cold))
    }

    fn change_room(&mut self, block: BlockId) {
        if let Some(shelf) = self.shelves.tag(block).shelf {
            self.shelves.shift(block, Shelf { common: !shelf.common, ..shelf });
        }
    }
}
