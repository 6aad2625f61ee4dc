//! Addresses to dense ids for a cache that lives: ids are given out again when the policy has
//! forgotten their block, so memory follows the cache's size and not the volume's.
//!
//! For: the sparse address space of served volumes. Must never know: what a policy does; it only
//! asks whether an id is still tracked. Cost: O(1) expected per look-up and per new id.

use cachewright_types::seed::mix;
use cachewright_types::{BlockId, TenantId};
use hashbrown::HashTable;

/// Ids looked at for reuse before a fresh one is made; at this depth the table settles at about a
/// seventh above what the policy tracks.
const LOOK_AHEAD: usize = 8;

/// A block's address: whose volume and which block of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockAddress {
    /// The tenant.
    pub tenant: TenantId,
    /// Number of the block on the tenant's volume.
    pub number: u64,
}

impl BlockAddress {
    fn hash(self) -> u64 {
        mix(self.number ^ (u64::from(self.tenant.0) << 48))
    }
}

/// The index of one pool.
#[derive(Clone, Debug, Default)]
pub struct SparseIndex {
    table: HashTable<u32>,
    addresses: Vec<BlockAddress>,
    hand: usize,
}

impl SparseIndex {
    /// Ids in use or waiting to be reused: the bound for `reserve_ids`.
    pub fn ids(&self) -> usize {
        self.addresses.len()
    }

    /// The id of an address, if it has one.
    #[inline]
    pub fn get(&self, address: BlockAddress) -> Option<BlockId> {
        let addresses = &self.addresses;
        let same = |id: &u32| addresses[*id as usize] == address;
        self.table.find(address.hash(), same).map(|id| BlockId(*id))
    }

    /// The address of an id given out by [`SparseIndex::intern`].
    pub fn address(&self, id: BlockId) -> BlockAddress {
        self.addresses[id.index()]
    }

    /// The id of an address, made if it has none. `tracked` tells whether the policy still
    /// remembers an id; one that it does not is taken from its old address.
    pub fn intern(&mut self, address: BlockAddress, tracked: impl Fn(BlockId) -> bool) -> BlockId {
        if let Some(id) = self.get(address) {
            return id;
        }
        let id = self.reusable(tracked).unwrap_or_else(|| {
            self.addresses.push(address);
            BlockId(self.addresses.len() as u32 - 1)
        });
        self.addresses[id.index()] = address;
        let addresses = &self.addresses;
        let hash = |id: &u32| addresses[*id as usize].hash();
        self.table.insert_unique(address.hash(), id.0, hash);
        id
    }

    /// The next id, clockwise, that the policy has forgotten; it is taken out of the table.
    fn reusable(&mut self, tracked: impl Fn(BlockId) -> bool) -> Option<BlockId> {
        for _ in 0..LOOK_AHEAD.min(self.addresses.len()) {
            self.hand = if self.hand + 1 >= self.addresses.len() { 0 } else { self.hand + 1 };
            let id = self.hand as u32;
            if !tracked(BlockId(id)) {
                let hash = self.addresses[self.hand].hash();
                if let Ok(entry) = self.table.find_entry(hash, |other| *other == id) {
                    entry.remove();
                }
                return Some(BlockId(id));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_ids_are_given_out_again_and_memory_stays_bounded() {
        let mut index = SparseIndex::default();
        let mut live = std::collections::VecDeque::new();
        for number in 0..10_000_u64 {
            let address = BlockAddress { tenant: TenantId(1), number: number * 977 };
            let id = index.intern(address, |id| live.contains(&id));
            assert_eq!(index.address(id), address);
            live.push_back(id);
            if live.len() > 100 {
                live.pop_front();
            }
        }
        assert!(index.ids() < 150, "{} ids for 100 live blocks", index.ids());
        let old = BlockAddress { tenant: TenantId(1), number: 0 };
        assert_eq!(index.get(old), None, "a reused id has left its old address");
    }
}
