//! What coming decisions will read, loaded ahead.
//!
//! For: waits for memory that overlap. A decision reads about eight places in memory that nothing
//! else is near to; loaded ahead they come at the same time. What the block reads that leaves next
//! is loaded in every decision; what the next request's block reads, where a daemon has several
//! requests at a time. Must never know: what is decided. Unit: requests, blocks.

use crate::Cache;
use crate::index::{BlockAddress, MIN_LOADED_IDS};
use cachewright_policy::Policy;
use cachewright_types::{BlockId, Request, TenantId};

/// How many requests ahead of a decision each stage of what it reads is loaded:
/// heads of chains, first and second ids of chains, states of the policy.
const AHEAD: [usize; 4] = [16, 12, 8, 4];

impl<P: Policy> Cache<P> {
    /// Loads what decisions about coming requests will read, so that the waits for memory overlap:
    /// to be called before the decision about `requests[next]`, for each of a batch that is there.
    /// Of later requests it loads the head of the first block's chain, then the chain, then the
    /// policy's state.
    #[inline]
    pub fn look_ahead(&self, requests: &[Request], next: usize) {
        for (stage, distance) in AHEAD.into_iter().enumerate() {
            if let Some(request) = requests.get(next + distance) {
                let number = request.offset.0 >> self.block_shift;
                self.load_stage(request.tenant, number, stage);
            }
        }
    }

    /// Loads what the decision about one coming request will read first, in one go: for a caller
    /// that knows the next request of each process only.
    #[inline]
    pub fn touch(&self, request: &Request) {
        let number = request.offset.0 >> self.block_shift;
        let pool = self.engine.pool_of(request.tenant);
        let index = &self.indexes[pool];
        if let Some(id) = index.likely_id(BlockAddress { tenant: request.tenant, number }) {
            index.load_id(id);
            self.engine.policy(pool).touch(id);
        }
    }

    /// Loads what the next blocks that leave a pool will need; called as one has left. The
    /// later a block leaves, the less of it is known: its id and state first, then the head of its
    /// chain, then the chain.
    #[inline(always)]
    pub(crate) fn load_leaving(&self, pool: usize) {
        let (index, policy) = (&self.indexes[pool], self.engine.policy(pool));
        if index.ids() < MIN_LOADED_IDS {
            return;
        }
        if let Some(id) = policy.leaves_after(3) {
            index.load_id(id);
            policy.touch(id);
        }
        let address = |later| index.address_of(policy.leaves_after(later)?);
        if let Some(address) = address(2) {
            index.load_head(address);
        }
        if let Some(address) = address(1) {
            index.load_first(address);
        }
        if let Some(address) = address(0) {
            index.load_second(address);
        }
    }

    /// One stage of what [`Cache::look_ahead`] loads, for one block.
    #[inline(always)]
    fn load_stage(&self, tenant: TenantId, number: u64, stage: usize) {
        let pool = self.engine.pool_of(tenant);
        let (index, address) = (&self.indexes[pool], BlockAddress { tenant, number });
        match stage {
            0 => index.load_head(address),
            1 => index.load_first(address),
            2 => index.load_second(address),
            _ => self.load_state(pool, index.get(address)),
        }
    }

    #[inline(always)]
    fn load_state(&self, pool: usize, id: Option<BlockId>) {
        if let Some(id) = id {
            self.engine.policy(pool).touch(id);
        }
    }
}
