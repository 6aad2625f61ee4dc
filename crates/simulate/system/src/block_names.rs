//! Ids for blocks by number, for the head of a tenant on a machine that reads ahead.
//!
//! For: blocks that are read ahead and that no recording has named. Must never know: caches. Units:
//! blocks of `1 << shift` bytes, numbered on the backing device.

use cachewright_types::{BlockId, BlockKey, Request, TenantId, VolumeKeys, whole_block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Ids of one tenant's blocks in the order of their first use.
#[derive(Debug)]
pub(crate) struct BlockNames {
    ids: HashMap<u64, u32, FixedState>,
    /// The key of each id.
    keys: Vec<BlockKey>,
    volume: VolumeKeys,
    /// The number of the tenant's first block.
    first: u64,
}

impl BlockNames {
    /// No blocks yet; those of the tenant begin at `first`.
    pub fn new(tenant: TenantId, first: u64) -> BlockNames {
        let volume = VolumeKeys::new(tenant, 0);
        BlockNames { ids: HashMap::default(), keys: Vec::new(), volume, first }
    }

    /// The id of a block, a new one at its first use.
    pub fn id_of(&mut self, number: u64) -> BlockId {
        let next = self.keys.len() as u32;
        let id = *self.ids.entry(number).or_insert(next);
        if id == next {
            self.keys.push(self.volume.key(number.saturating_sub(self.first)));
        }
        BlockId(id)
    }

    /// The named blocks that lie wholly inside a trimmed range, in the order of their ids. Costs
    /// the smaller of the range's blocks and the named ones.
    pub fn trimmed(&self, request: &Request, shift: u32) -> Vec<BlockId> {
        let range = whole_block_numbers(request.offset.0, request.length.0, shift);
        let mut ids: Vec<BlockId> = if range.end - range.start <= self.ids.len() as u64 {
            range.filter_map(|number| self.ids.get(&number)).map(|id| BlockId(*id)).collect()
        } else {
            let within = self.ids.iter().filter(|(number, _)| range.contains(number));
            within.map(|(_, id)| BlockId(*id)).collect()
        };
        ids.sort_unstable();
        ids
    }

    /// The key of each id.
    pub fn into_keys(self) -> Vec<BlockKey> {
        self.keys
    }
}
