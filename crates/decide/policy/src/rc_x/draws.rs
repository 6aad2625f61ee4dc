//! Places that `rc-x` draws from its cache at random.
//!
//! For: the draws, and the block that one leaves for the next. Must never know: what a block is
//! worth. Units: places.

use crate::renumber::Renumbering;
use cachewright_types::{BlockId, Rng, Seed};

/// Draws of blocks from the cache.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    rng: Rng,
    /// The runner-up of the last draw, or its loser if that has stayed.
    spare: Option<BlockId>,
}

impl Draws {
    /// No draw yet.
    pub fn new(seed: Seed) -> Draws {
        Draws { rng: seed.derive("draws").rng(), spare: None }
    }

    /// A place below `places`.
    #[inline(always)]
    pub fn place(&mut self, places: u32) -> u32 {
        self.rng.below(u64::from(places)) as u32
    }

    /// Keeps a block for the next draw, or none.
    #[inline(always)]
    pub fn keep(&mut self, block: Option<BlockId>) {
        self.spare = block;
    }

    /// The block that was kept, for one draw.
    #[inline(always)]
    pub fn take_kept(&mut self) -> Option<BlockId> {
        self.spare.take()
    }

    /// A block is not known any more.
    #[inline(always)]
    pub fn forget(&mut self, block: BlockId) {
        self.spare = self.spare.filter(|spare| *spare != block);
    }

    /// Ids have changed.
    pub fn renumber(&mut self, ids: &Renumbering) {
        self.spare = self.spare.and_then(|block| ids.get(block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_kept_for_one_draw_unless_it_is_forgotten() {
        let mut draws = Draws::new(Seed(1));
        draws.keep(Some(BlockId(3)));
        draws.forget(BlockId(4));
        assert_eq!((draws.take_kept(), draws.take_kept()), (Some(BlockId(3)), None));
        draws.keep(Some(BlockId(3)));
        draws.forget(BlockId(3));
        assert_eq!(draws.take_kept(), None);
        draws.keep(Some(BlockId(3)));
        draws.renumber(&Renumbering::keeping(5, |block| block.0 != 1));
        assert_eq!(draws.take_kept(), Some(BlockId(2)));
    }
}
