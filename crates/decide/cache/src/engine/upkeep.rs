//! What a daemon asks of the engine beside accesses: divisions in pieces, other write modes.
//!
//! For: bounded work between requests. Must never know: why quotas or modes change. Units: blocks.

use super::Engine;
use crate::{Quotas, WriteMode};
use cachewright_policy::{Policy, ShadowSplit};
use cachewright_types::{BlockId, TenantId};

impl<P: Policy> Engine<P> {
    /// Goes towards other quotas: pools that are to shrink lose at most `max_blocks` blocks in all,
    /// given to `left` as by [`Engine::resize`]; pools grow once all have shrunk. Returns whether
    /// the quotas are reached; other quotas than [`Engine::fits`] allows never are.
    pub fn resize_towards(
        &mut self,
        quotas: &Quotas,
        max_blocks: u32,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) -> bool {
        if !self.fits(quotas) {
            return false;
        }
        let mut rest = max_blocks;
        for (index, target) in quotas.blocks().iter().enumerate() {
            let policy = &self.pools[index].policy;
            let (capacity, held) = (policy.capacity(), policy.len());
            if capacity > *target {
                // Space that is not used is given at once.
                let next = held.saturating_sub(rest).max(*target);
                rest -= held.saturating_sub(next);
                self.resize(index, next, left);
                if next > *target {
                    return false;
                }
            }
        }
        self.set_quotas(quotas, left)
    }

    /// Splits the shadow partitions of a pool's policy anew; blocks that leave for it are given to
    /// `left` as by [`Engine::resize`].
    pub fn split(
        &mut self,
        pool: usize,
        split: ShadowSplit,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let mut evicted = Vec::new();
        self.pools[pool].policy.split(split, &mut evicted);
        self.pools.leave(pool, evicted, left);
    }

    /// Changes where writes go from now on. A block that is dirty stays so until it is cleaned or
    /// leaves. Errors: the number of dirty blocks, for modes in which a write does not reach them:
    /// write-through first, then [`Engine::next_dirty`] and [`Engine::clean`] until none is left.
    pub fn set_mode(&mut self, mode: WriteMode) -> Result<(), u64> {
        let dirty = self.dirty_blocks();
        if dirty > 0 && !matches!(mode, WriteMode::WriteBack | WriteMode::WriteThrough) {
            return Err(dirty);
        }
        self.mode = mode;
        Ok(())
    }

    /// Gives a pool's policy other trained models, each with its name. Blocks stay in the cache.
    /// Errors: those of [`PolicyHooks::load_models`](cachewright_policy::PolicyHooks::load_models);
    /// the models before stay in use.
    pub fn load_models(&mut self, pool: usize, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        self.pools[pool].policy.load_models(models)
    }

    /// The first dirty block of a pool from `from` on, and its tenant.
    pub fn next_dirty(&self, pool: usize, from: BlockId) -> Option<(TenantId, BlockId)> {
        let pool = &self.pools[pool];
        let block = pool.next_dirty(from)?;
        Some((TenantId(pool.owner_of(block)), block))
    }
}
