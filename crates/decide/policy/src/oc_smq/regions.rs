//! The sizes of the two regions of `oc-smq`, and what becomes of them when the cache is resized.
//!
//! For: keeping `own + common = capacity` whatever order resizes and divisions come in. Must never
//! know: blocks, levels. A division is wanted until the next one: a resize keeps its proportions as
//! far as what is held allows, and comes back to them as soon as it can. Unit: blocks.

use crate::RegionSizes;

/// The regions as they are, and as they were last wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionDivision {
    wanted: RegionSizes,
    now: RegionSizes,
}

impl RegionDivision {
    /// One region of `capacity_blocks`, the tenant's own.
    pub fn new(capacity_blocks: u32) -> Self {
        let all_private = RegionSizes { private_blocks: capacity_blocks, shared_blocks: 0 };
        RegionDivision { wanted: all_private, now: all_private }
    }

    /// Both together.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.now.private_blocks + self.now.shared_blocks
    }

    /// One of them.
    #[inline(always)]
    pub fn of(&self, shared: bool) -> u32 {
        if shared { self.now.shared_blocks } else { self.now.private_blocks }
    }

    /// Whether both are there.
    pub fn both(&self) -> bool {
        self.now.private_blocks > 0 && self.now.shared_blocks > 0
    }

    /// Takes a division; the shared region gives way where both are more than can be counted.
    pub fn divide(&mut self, regions: RegionSizes) {
        let shared_blocks = regions.shared_blocks.min(u32::MAX - regions.private_blocks);
        self.wanted = RegionSizes { shared_blocks, ..regions };
        self.now = self.wanted;
    }

    /// The wanted proportions at another capacity.
    pub fn at(&self, capacity_blocks: u32) -> RegionSizes {
        let private = u64::from(self.wanted.private_blocks);
        let all = private + u64::from(self.wanted.shared_blocks);
        let part = (u64::from(capacity_blocks) * private + all / 2).checked_div(all);
        let private_blocks = part.map_or(capacity_blocks, |part| part as u32);
        RegionSizes { private_blocks, shared_blocks: capacity_blocks - private_blocks }
    }

    /// Resizes to the wanted proportions, or as near as lets what is held stay where it is.
    /// `capacity_blocks` holds it all.
    pub fn resize(&mut self, capacity_blocks: u32, private_held: u32, shared_held: u32) {
        let max_private = capacity_blocks - shared_held;
        let private_blocks =
            self.at(capacity_blocks).private_blocks.clamp(private_held, max_private);
        self.now = RegionSizes { private_blocks, shared_blocks: capacity_blocks - private_blocks };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resize_keeps_proportions_where_what_is_held_allows() {
        let mut sizes = RegionDivision::new(10);
        sizes.divide(RegionSizes { private_blocks: 6, shared_blocks: 2 });
        assert_eq!(sizes.capacity(), 8);
        sizes.resize(20, 6, 2);
        assert_eq!((sizes.of(false), sizes.of(true)), (15, 5));
        // Four blocks of the shared region stay; only one in three of the wanted would be there.
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
