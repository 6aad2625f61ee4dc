//! The keys of blocks, by space and tenant.
//!
//! For: the recorder. Must never know: requests, recordings. A volume of a tenant is a space of the
//! workload; its blocks have keys that no other volume has.

use cachewright_types::{BlockKey, TenantId, VolumeKeys};

/// The volumes of each tenant, numbered in the order of their first blocks.
pub(crate) struct VolumeNumbers {
    /// The keys of each space, once one of its blocks is recorded.
    keys: Vec<Option<VolumeKeys>>,
    /// Spaces recorded of each tenant.
    counts: Vec<u32>,
}

impl VolumeNumbers {
    /// No volumes of so many tenants.
    pub fn new(tenants: usize) -> VolumeNumbers {
        VolumeNumbers { keys: Vec::new(), counts: vec![0; tenants] }
    }

    /// Numbers a space as the next volume of its tenant, unless it has a number.
    pub fn open(&mut self, tenant: u16, space: u32) {
        let index = space as usize;
        if index >= self.keys.len() {
            self.keys.resize(index + 1, None);
        }
        if self.keys[index].is_none() {
            let count = &mut self.counts[usize::from(tenant)];
            self.keys[index] = Some(VolumeKeys::new(TenantId(tenant), *count));
            *count += 1;
        }
    }

    /// The key of a block of a space.
    pub fn key(&self, space: u32, block: u64) -> BlockKey {
        match self.keys.get(space as usize).copied().flatten() {
            Some(volume) => volume.key(block),
            None => BlockKey(block),
        }
    }
}
