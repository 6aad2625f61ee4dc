//! The work of `oc-smq` beside requests: demotion, cleaning and migration.
//!
//! For: deciding the next background operation. Must never know: requests, verdicts. Source: Wang
//! et al. (oc-cache), section IV. A round is all that is asked for after one request; it ends when
//! there is nothing more to do or when it has done as much as one round may. Unit: blocks.

use super::OcSmq;
use super::held_order::LevelList;
use super::round::SAFE_LEVEL;
use crate::BackgroundOp;
use cachewright_types::BlockId;

impl OcSmq {
    /// A tick has ended: how many low blocks are too few among the clean ones.
    pub(super) fn plan_cleaning(&mut self) {
        let wanted = self.part(self.settings.clean);
        if wanted > 0 {
            self.background.uncleaned =
                wanted.saturating_sub(self.level_lists.clean_below(SAFE_LEVEL));
        }
    }

    /// A period has ended: whether the hot blocks of the shared region are too many.
    pub(super) fn plan_migration(&mut self) {
        self.background.migrating = self.sizes.both() && self.too_hot();
    }

    /// Whether a larger share of the shared region is hot than may be.
    fn too_hot(&self) -> bool {
        let hot = self.level_lists.held_in_from(true, self.thresholds.hot.into());
        f64::from(hot) > self.settings.hot_share * f64::from(self.level_lists.held_in(true))
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
        let [private, shared] =
            [false, true].map(|region| self.level_lists.coldest(region, SAFE_LEVEL));
        let block = self.level_lists.colder(shared, private)?;
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
        let [private, shared] = [false, true]
            .map(|shared| self.level_lists.oldest(LevelList { shared, dirty: true }, SAFE_LEVEL));
        let Some(block) = self.level_lists.colder(shared, private) else {
            self.background.uncleaned = 0;
            return None;
        };
        let shared =
            self.level_lists.tag(block).level_list.is_some_and(|level_list| level_list.shared);
        self.level_lists.shift(block, LevelList { shared, dirty: false });
        self.background.moved += 1;
        self.background.cleanings += 1;
        Some(BackgroundOp::Clean(block))
    }

    /// The hottest block of the shared region and the coldest of the private one change places,
    /// until no more of the shared region is hot than may be or nothing cold is left to take its
    /// place.
    fn swap(&mut self) -> Option<BackgroundOp> {
        let hot_level = usize::from(self.thresholds.hot);
        let pair = self.level_lists.hottest(true, hot_level).filter(|_| self.too_hot());
        let Some((hot, cold)) = pair.zip(self.level_lists.coldest(false, hot_level)) else {
            self.background.migrating = false;
            return None;
        };
        self.change_region(hot);
        self.change_region(cold);
        self.background.swapped += 1;
        self.background.swaps += 1;
        Some(BackgroundOp::Swap(hot, cold))
    }

    fn change_region(&mut self, block: BlockId) {
        if let Some(level_list) = self.level_lists.tag(block).level_list {
            self.level_lists.shift(block, LevelList { shared: !level_list.shared, ..level_list });
        }
    }
}
