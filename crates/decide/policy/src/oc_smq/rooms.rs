//! The sizes of the two rooms of `oc-smq`, and what becomes of them when the cache is resized.
//!
//! For: keeping `own + common = capacity` whatever order resizes and divisions come in. Must never
//! know: blocks, levels. A division is wanted until the next one: a resize keeps its proportions as
//! far as what is held allows, and comes back to them as soon as it can. Unit: blocks.

use crate::Rooms;

/// The rooms as they are, and as they were last wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    wanted: Rooms,
    now: Rooms,
}

impl Sizes {
    /// One room of `capacity_blocks`, the tenant's own.
    pub fn new(capacity_blocks: u32) -> Self {
        let all_own = Rooms { own_blocks: capacity_blocks, common_blocks: 0 };
        Sizes { wanted: all_own, now: all_own }
    }

    /// Both together.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.now.own_blocks + self.now.common_blocks
    }

    /// One of them.
    #[inline(always)]
    pub fn of(&self, common: bool) -> u32 {
        if common { self.now.common_blocks } else { self.now.own_blocks }
    }

    /// Whether both are there.
    pub fn both(&self) -> bool {
        self.now.own_blocks > 0 && self.now.common_blocks > 0
    }

    /// Takes a division; the common room gives way where both are more than can be counted.
    pub fn divide(&mut self, rooms: Rooms) {
        let common_blocks = rooms.common_blocks.min(u32::MAX - rooms.own_blocks);
        self.wanted = Rooms { common_blocks, ..rooms };
        self.now = self.wanted;
    }

    /// The wanted proportions at another capacity.
    pub fn at(&self, capacity_blocks: u32) -> Rooms {
        let own = u64::from(self.wanted.own_blocks);
        let all = own + u64::from(self.wanted.common_blocks);
        let part = (u64::from(capacity_blocks) * own + all / 2).checked_div(all);
        let own_blocks = part.map_or(capacity_blocks, |part| part as u32);
        Rooms { own_blocks, common_blocks: capacity_blocks - own_blocks }
    }

    /// Resizes to the wanted proportions, or as near as lets what is held stay where it is.
    /// `capacity_blocks` holds it all.
    pub fn resize(&mut self, capacity_blocks: u32, own_held: u32, common_held: u32) {
        let most = capacity_blocks - common_held;
        let own_blocks = self.at(capacity_blocks).own_blocks.clamp(own_held, most);
        self.now = Rooms { own_blocks, common_blocks: capacity_blocks - own_blocks };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resize_keeps_proportions_where_what_is_held_allows() {
        let mut sizes = Sizes::new(10);
        sizes.divide(Rooms { own_blocks: 6, common_blocks: 2 });
        assert_eq!(sizes.capacity(), 8);
        sizes.resize(20, 6, 2);
        assert_eq!((sizes.of(false), sizes.of(true)), (15, 5));
        // Four blocks of the common room stay; only one in three of the wanted would be there.
        sizes.resize(6, 1, 4);
        assert_eq!((sizes.of(false), sizes.of(true)), (2, 4));
        sizes.resize(8, 1, 2);
        assert_eq!((sizes.of(false), sizes.of(true)), (6, 2));
        sizes.resize(0, 0, 0);
        assert!(!sizes.both());
        sizes.resize(4, 0, 0);
        assert_eq!((sizes.of(false), sizes.of(true)), (3, 1));
    }
}
