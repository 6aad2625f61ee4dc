//! One pool of the engine: a policy, which of its blocks are dirty, and whose they are.
//!
//! For: one bit per id, and how many are set; the owner of each id where tenants share the pool.
//! Must never know: quotas, write modes, counters. Units: blocks. Ids stay below the length that
//! the engine reserved.

use cachewright_policy::Policy;
use cachewright_policy::renumber::Renumbering;
use cachewright_types::{BlockId, TenantId};

#[derive(Clone, Debug)]
pub(crate) struct PolicyPool<P> {
    pub(crate) policy: P,
    /// One bit per id.
    dirty: Vec<u64>,
    dirty_blocks: u32,
    /// The tenant of each id; empty in a pool of one tenant.
    owner: Vec<u16>,
    /// Its only tenant, or one of several.
    tenant: u16,
    /// Whether several tenants share it.
    common: bool,
}

impl<P: Policy> PolicyPool<P> {
    /// An empty pool of one tenant, or of several, of which `tenant` is one.
    pub(crate) fn new(policy: P, tenant: u16, common: bool) -> PolicyPool<P> {
        let (dirty, owner) = (Vec::new(), Vec::new());
        PolicyPool { policy, dirty, dirty_blocks: 0, owner, tenant, common }
    }

    /// Makes room for ids `0..count`.
    pub(crate) fn reserve_ids(&mut self, count: usize) {
        self.policy.reserve_ids(count);
        if count.div_ceil(64) > self.dirty.len() {
            self.dirty.resize(count.div_ceil(64), 0);
        }
        if self.common && count > self.owner.len() {
            self.owner.resize(count, self.tenant);
        }
    }

    /// Gives the blocks that are kept, all that the policy tracks among them, new ids; returns
    /// whether the policy can.
    pub(crate) fn renumber(&mut self, ids: &Renumbering) -> bool {
        if !self.policy.renumber(ids) {
            return false;
        }
        for (old, new) in ids.pairs() {
            if self.take_dirty(old) {
                self.dirty[new.index() / 64] |= 1 << (new.index() % 64);
                self.dirty_blocks += 1;
            }
        }
        self.dirty.truncate(ids.kept().div_ceil(64));
        self.dirty.shrink_to_fit();
        if self.common {
            ids.close_up(&mut self.owner, 0);
        }
        true
    }

    /// Tenants share the pool from now on.
    pub(crate) fn share(&mut self) {
        if !self.common {
            self.common = true;
            self.owner = vec![self.tenant; self.dirty.len() * 64];
        }
    }

    /// The tenant of a block in the cache.
    #[inline(always)]
    pub(crate) fn owner_of(&self, block: BlockId) -> u16 {
        self.owner.get(block.index()).copied().unwrap_or(self.tenant)
    }

    /// Notes whose block it is that came in.
    #[inline(always)]
    pub(crate) fn set_owner(&mut self, block: BlockId, tenant: TenantId) {
        if let Some(owner) = self.owner.get_mut(block.index()) {
            *owner = tenant.0;
        }
    }

    /// Dirty blocks.
    pub(crate) fn dirty_blocks(&self) -> u32 {
        self.dirty_blocks
    }

    #[inline(always)]
    pub(crate) fn is_dirty(&self, block: BlockId) -> bool {
        self.dirty[block.index() / 64] >> (block.index() % 64) & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn set_dirty(&mut self, block: BlockId) {
        debug_assert!(self.policy.contains(block), "a dirty block is resident");
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        self.dirty_blocks += u32::from(*word & bit == 0);
        *word |= bit;
    }

    /// Clears the dirty bit and returns what it was.
    #[inline(always)]
    pub(crate) fn take_dirty(&mut self, block: BlockId) -> bool {
        if self.dirty_blocks == 0 {
            return false;
        }
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        self.dirty_blocks -= u32::from(was);
        was
    }

    /// The first dirty block from `from` on.
    pub(crate) fn next_dirty(&self, from: BlockId) -> Option<BlockId> {
        let mut word = from.index() / 64;
        let mut bits = self.dirty.get(word)? & (u64::MAX << (from.index() % 64));
        while bits == 0 {
            word += 1;
            bits = *self.dirty.get(word)?;
        }
        Some(BlockId(word as u32 * 64 + bits.trailing_zeros()))
    }

    /// Checks that dirty blocks are resident and counted. Errors: the rule broken, in words.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut dirty = 0;
        for id in (0..self.dirty.len() as u32 * 64).map(BlockId) {
            if self.is_dirty(id) {
                dirty += 1;
                if !self.policy.contains(id) {
                    return Err(format!("block {} is dirty, not cached", id.0));
                }
            }
        }
        if dirty == self.dirty_blocks {
            Ok(())
        } else {
            Err(format!("{dirty} dirty, {} counted", self.dirty_blocks))
        }
    }
}
