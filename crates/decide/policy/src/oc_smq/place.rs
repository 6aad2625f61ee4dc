//! Which room a newcomer of `oc-smq` goes to, and which blocks leave.
//!
//! For: placement and victims. Must never know: why a block enters. A newcomer has the shared bit
//! unless it is hot. Cold blocks are those below the hot level. Unit: blocks.

use super::OcSmq;
use super::background::SAFE_LEVEL;
use super::shelves::Shelf;
use crate::levels::LEVELS;
use cachewright_types::BlockId;

impl OcSmq {
    /// The room of a newcomer, and the block that leaves for it if both are full.
    ///
    /// A room with space is taken first, the fitting one before the other; but a hot newcomer
    /// leaves the common room's last free blocks, those of the reserve, to others, as long as the
    /// own room has a cold block to give.
    pub(super) fn place(&self, hot: bool) -> (bool, Option<BlockId>) {
        let common = if self.sizes.both() { !hot } else { self.sizes.of(true) > 0 };
        let has_space = |common| self.shelves.held_in(common) < self.sizes.of(common);
        if has_space(common) {
            return (common, None);
        }
        let spill = has_space(!common) && (common || self.free() > self.reserve);
        if spill {
            return (!common, None);
        }
        let [own, other] = [false, true].map(|room| self.cold_victim(room));
        let victim = match (self.sizes.both(), hot) {
            (false, _) => None,
            (true, true) if own.is_some() => own,
            (true, true) if has_space(true) => return (true, None),
            (true, true) => other,
            (true, false) => self.shelves.colder(other, own),
        };
        let victim =
            victim.or_else(|| self.any_victim(common)).or_else(|| self.any_victim(!common));
        let room = victim.and_then(|block| self.shelves.tag(block).shelf);
        (room.map_or(common, |shelf| shelf.common), victim)
    }

    /// The oldest clean cold block of the room's lower levels, else the oldest dirty cold one.
    fn cold_victim(&self, common: bool) -> Option<BlockId> {
        let hot = usize::from(self.thresholds.hot);
        let clean = self.shelves.oldest(Shelf { common, dirty: false }, hot.min(SAFE_LEVEL));
        clean.or_else(|| self.shelves.oldest(Shelf { common, dirty: true }, hot))
    }

    /// The oldest clean block of the room's lower levels, else the oldest dirty one, else whatever
    /// is coldest.
    fn any_victim(&self, common: bool) -> Option<BlockId> {
        let clean = self.shelves.oldest(Shelf { common, dirty: false }, SAFE_LEVEL);
        let dirty = || self.shelves.oldest(Shelf { common, dirty: true }, LEVELS);
        clean.or_else(dirty).or_else(|| self.shelves.coldest(common, LEVELS))
    }

    /// Blocks leave until `capacity_blocks` are enough, out of rooms that hold more than their part
    /// of it, the coldest first.
    pub(super) fn shrink(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        let rooms = self.sizes.at(capacity_blocks);
        while self.shelves.held() > capacity_blocks {
            let coldest = |common, room| {
                let over = self.shelves.held_in(common) > room;
                self.shelves.coldest(common, LEVELS).filter(|_| over)
            };
            let own = coldest(false, rooms.private_blocks);
            let common = coldest(true, rooms.shared_blocks);
            let Some(victim) = self.shelves.colder(common, own) else { return };
            self.leave(victim);
            evicted.push(victim);
        }
    }

    /// The coldest blocks leave rooms that have become too small.
    pub(super) fn clear_out(&mut self, evicted: &mut Vec<BlockId>) {
        for common in [false, true] {
            while self.shelves.held_in(common) > self.sizes.of(common)
                && let Some(victim) = self.shelves.coldest(common, LEVELS)
            {
                self.leave(victim);
                evicted.push(victim);
            }
        }
    }
}
