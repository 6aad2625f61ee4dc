//! What coming decisions will read, loaded ahead.
//!
//! For: daemons that have several requests at a time. A decision reads about eight places in memory
//! that nothing else is near to, one after the other; loaded ahead they come at the same time. Must
//! never know: what is decided. Unit: requests.

use crate::Cache;
use crate::index::BlockAddress;
use cachewright_policy::Policy;
use cachewright_types::{Request, TenantId};

/// How many requests ahead of a decision each stage of what it reads is loaded:
/// heads of chains, first and second ids of chains, states of the policy.
const AHEAD: [usize; 4] = [16, 12, 8, 4];

impl<P: Policy> Cache<P> {
    /// Loads what decisions about coming requests will read, so that the waits for memory overlap:
    /// to be called before the decision about `requests[next]`, for each of a batch that is there.
    /// Of later requests it loads the head of the first block's chain, then the chain, then the
    /// policy's state. The value means nothing and is returned so that loads cannot be dropped.
    #[inline]
    pub fn look_ahead(&self, requests: &[Request], next: usize) -> u32 {
        let mut loaded = 0;
        for (stage, distance) in AHEAD.into_iter().enumerate() {
            if let Some(request) = requests.get(next + distance) {
                let number = request.offset.0 >> self.block_shift;
                loaded ^= self.touch_stage(request.tenant, number, stage);
            }
        }
        if let Some(request) = requests.get(next) {
            loaded ^= self.touch_leaving(self.engine.pool_of(request.tenant));
        }
        loaded
    }

    /// Loads what the decision about one coming request will read first, in one go: for a caller
    /// that knows the next request of each process only. The value means nothing.
    #[inline]
    pub fn touch(&self, request: &Request) -> u32 {
        let number = request.offset.0 >> self.block_shift;
        let pool = self.engine.pool_of(request.tenant);
        let index = &self.indexes[pool];
        match index.likely_id(BlockAddress { tenant: request.tenant, number }) {
            Some(id) => index.touch_id(id) ^ self.engine.policy(pool).touch(id),
            None => 0,
        }
    }

    /// What the next blocks that leave a pool will need.
    #[inline(always)]
    fn touch_leaving(&self, pool: usize) -> u32 {
        let (index, policy) = (&self.indexes[pool], self.engine.policy(pool));
        if policy.len() < policy.capacity() {
            return 0;
        }
        let address = |later| index.address_of(policy.leaves_after(later)?);
        let id = policy.leaves_after(5).map_or(0, |id| index.touch_id(id) ^ policy.touch(id));
        let head = address(3).map_or(0, |address| index.touch_head(address));
        id ^ head ^ address(1).map_or(0, |address| index.touch_first(address))
    }

    /// One stage of what [`Cache::look_ahead`] loads, for one block.
    #[inline(always)]
    fn touch_stage(&self, tenant: TenantId, number: u64, stage: usize) -> u32 {
        let pool = self.engine.pool_of(tenant);
        let (index, address) = (&self.indexes[pool], BlockAddress { tenant, number });
        match stage {
            0 => index.touch_head(address),
            1 => index.touch_first(address),
            2 => index.touch_second(address),
            _ => index.get(address).map_or(0, |id| self.engine.policy(pool).touch(id)),
        }
    }
}
