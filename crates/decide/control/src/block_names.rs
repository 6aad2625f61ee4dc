//! Ids for blocks by tenant and number.
//!
//! For: signals of blocks that no recording and no index has named. Must never know: caches. Units:
//! blocks of `1 << shift` bytes.

use cachewright_types::{BlockId, Request, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Ids of blocks in the order of their first use.
#[derive(Clone, Debug, Default)]
pub struct BlockNames(HashMap<(u16, u64), u32, FixedState>);

impl BlockNames {
    /// The id of a block, a new one at its first use.
    pub fn id_of(&mut self, tenant: TenantId, number: u64) -> BlockId {
        let next = self.0.len() as u32;
        BlockId(*self.0.entry((tenant.0, number)).or_insert(next))
    }

    /// The named blocks that lie wholly inside a trimmed range, in the order of their ids. Costs
    /// the smaller of the range's blocks and the named ones.
    pub fn trimmed(&self, request: &Request, shift: u32) -> Vec<BlockId> {
        let tenant = request.tenant.0;
        let first = request.offset.0.div_ceil(1 << shift);
        let range = first..request.offset.0.saturating_add(request.length.0) >> shift;
        let mut ids: Vec<BlockId> = if range.end.saturating_sub(first) <= self.0.len() as u64 {
            let known = range.filter_map(|number| self.0.get(&(tenant, number)));
            known.map(|id| BlockId(*id)).collect()
        } else {
            let within = |key: &(u16, u64)| key.0 == tenant && range.contains(&key.1);
            self.0.iter().filter(|(key, _)| within(key)).map(|(_, id)| BlockId(*id)).collect()
        };
        ids.sort_unstable();
        ids
    }

    /// Blocks named.
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Whether no block is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
