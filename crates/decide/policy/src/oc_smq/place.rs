//! Which region a newcomer of `oc-smq` goes to, and which blocks leave.
//!
//! For: placement and victims. Must never know: why a block enters. A newcomer has the shared bit
//! unless it is hot. Cold blocks are those below the hot level. Unit: blocks.

use super::OcSmq;
use super::held_order::LevelList;
use super::round::SAFE_LEVEL;
use crate::levels::LEVELS;
use cachewright_types::BlockId;

impl OcSmq {
    /// The region of a newcomer, and the block that leaves for it if both are full.
    ///
    /// A region with space is taken first, the fitting one before the other; but a hot newcomer
    /// leaves the shared region's last free blocks, those of the reserve, to others, as long as the
    /// private region has a cold block to give.
    pub(super) fn place(&mut self, hot: bool) -> (bool, Option<BlockId>) {
        let shared = if self.sizes.both() { !hot } else { self.sizes.of(true) > 0 };
        let has_space = |shared| self.level_lists.held_in(shared) < self.sizes.of(shared);
        if has_space(shared) {
            return (shared, None);
        }
        let spill = has_space(!shared) && (shared || self.free() > self.reserve);
        if spill {
            return (!shared, None);
        }
        let shared_has_space = has_space(true);
        let [private, other] = [false, true].map(|region| self.cold_victim(region));
        let victim = match (self.sizes.both(), hot) {
            (false, _) => None,
            (true, true) if private.is_some() => private,
            (true, true) if shared_has_space => return (true, None),
            (true, true) => other,
            (true, false) => self.level_lists.colder(other, private),
        };
        let victim =
            victim.or_else(|| self.any_victim(shared)).or_else(|| self.any_victim(!shared));
        let region = victim.and_then(|block| self.level_lists.tag(block).level_list);
        (region.map_or(shared, |level_list| level_list.shared), victim)
    }

    /// The oldest clean cold block of the region's lower levels, else the oldest dirty cold one.
    fn cold_victim(&mut self, shared: bool) -> Option<BlockId> {
        let hot = usize::from(self.thresholds.hot);
        let clean =
            self.level_lists.oldest(LevelList { shared, dirty: false }, hot.min(SAFE_LEVEL));
        clean.or_else(|| self.level_lists.oldest(LevelList { shared, dirty: true }, hot))
    }

    /// The oldest clean block of the region's lower levels, else the oldest dirty one, else
    /// whatever is coldest.
    fn any_victim(&mut self, shared: bool) -> Option<BlockId> {
        let clean = self.level_lists.oldest(LevelList { shared, dirty: false }, SAFE_LEVEL);
        let dirty = || self.level_lists.oldest(LevelList { shared, dirty: true }, LEVELS);
        clean.or_else(dirty).or_else(|| self.level_lists.coldest(shared, LEVELS))
    }

    /// Blocks leave until `capacity_blocks` are enough, out of regions that hold more than their
    /// part of it, the coldest first.
    pub(super) fn shrink(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        let regions = self.sizes.at(capacity_blocks);
        while self.level_lists.held() > capacity_blocks {
            let sizes = [(false, regions.private_blocks), (true, regions.shared_blocks)];
            let [private, shared] = sizes.map(|(shared, region)| {
                let over = self.level_lists.held_in(shared) > region;
                self.level_lists.coldest(shared, LEVELS).filter(|_| over)
            });
            let Some(victim) = self.level_lists.colder(shared, private) else { return };
            self.leave(victim);
            evicted.push(victim);
        }
    }

    /// The coldest blocks leave regions that have become too small.
    pub(super) fn clear_out(&mut self, evicted: &mut Vec<BlockId>) {
        for shared in [false, true] {
            while self.level_lists.held_in(shared) > self.sizes.of(shared)
                && let Some(victim) = self.level_lists.coldest(shared, LEVELS)
            {
                self.leave(victim);
                evicted.push(victim);
            }
        }
    }
}
