//! The memory of a live cache: reserved ahead of need, and given back.
//!
//! For: decisions that do not pause, and pools that have shrunk. Must never know: requests. Unit:
//! ids.

use crate::Cache;
use crate::index::SparseIndex;
use cachewright_policy::Policy;
use cachewright_policy::renumber::Renumbering;
use cachewright_types::BlockId;

impl<P: Policy> Cache<P> {
    /// Reserves memory for all that the pools will remember at the capacities they have, so that no
    /// decision pauses to move what is there.
    pub fn reserve(&mut self) {
        (0..self.indexes.len()).for_each(|pool| self.reserve_pool(pool));
    }

    fn reserve_pool(&mut self, pool: usize) {
        let ids = self.needed_ids(pool);
        self.indexes[pool].reserve(ids);
        self.engine.reserve_ids(pool, ids);
    }

    /// The most ids that a pool needs at its capacity.
    fn needed_ids(&self, pool: usize) -> usize {
        SparseIndex::max_ids(self.engine.policy(pool).max_tracked())
    }

    /// Gives back the ids and the memory that pools have kept from larger capacities, where their
    /// policy can. Blocks get new ids: `renamed` is told pool, old and new id of each block that is
    /// tracked, in ascending order of both, and what its owner holds by id must follow. Memory for
    /// the present capacities is reserved again. Costs a visit per id of such a pool; to be called
    /// after quotas have changed. Returns how many ids are gone.
    pub fn compact(&mut self, renamed: &mut dyn FnMut(usize, BlockId, BlockId)) -> usize {
        let mut gone = 0;
        for pool in 0..self.indexes.len() {
            let before = self.indexes[pool].ids();
            if before <= self.needed_ids(pool) {
                continue;
            }
            let policy = self.engine.policy(pool);
            let ids = Renumbering::keeping(before, |id| policy.tracks(id));
            if self.engine.renumber(pool, &ids) {
                self.indexes[pool].renumber(&ids);
                self.reserve_pool(pool);
                ids.pairs().for_each(|(old, new)| renamed(pool, old, new));
                gone += before - ids.kept();
            }
        }
        gone
    }
}
