//! Blocks known by tenant, volume and number.
//!
//! For: measures that must know a block again whatever id a cache or a recording gave it. Must
//! never know: ids, caches. Units: block numbers of any one size. Ids of a live cache are recycled:
//! a sample of ids holds other blocks from one moment to the next.

use crate::TenantId;
use crate::seed::mix;

/// A block by tenant, volume and number, in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockKey(pub u64);

/// A volume, which gives its blocks their keys: a mixed tag of the volume, exclusive-or the number.
/// Blocks of one volume never share a key. Two of different volumes do only if the tags agree above
/// the bits of the numbers: for volumes of 2^32 blocks, one pair of volumes in 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeKeys {
    tag: u64,
}

impl VolumeKeys {
    /// The keys of a tenant's volume; a tenant of one volume has volume 0.
    pub fn new(tenant: TenantId, volume: u32) -> VolumeKeys {
        VolumeKeys { tag: mix(u64::from(tenant.0) << 32 | u64::from(volume)) }
    }

    /// The key of the block of that number.
    #[inline(always)]
    pub fn key(self, number: u64) -> BlockKey {
        BlockKey(self.tag ^ number)
    }

    /// The number of a block of this volume.
    #[inline(always)]
    pub fn number(self, key: BlockKey) -> u64 {
        self.tag ^ key.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn blocks_of_all_volumes_have_keys_of_their_own() {
        let mut keys = HashSet::new();
        for volume in 0..1_000 {
            for (tenant, number) in [(0, 0), (0, 1), (1, 0), (1, u64::from(u32::MAX))] {
                let blocks = VolumeKeys::new(TenantId(tenant), volume);
                assert!(keys.insert(blocks.key(number)), "{tenant}, {volume}, {number}");
                assert_eq!(blocks.number(blocks.key(number)), number);
            }
        }
    }

    #[test]
    fn tags_of_thousands_of_volumes_differ_in_their_upper_half() {
        let tag = |volume| VolumeKeys::new(TenantId(3), volume).tag >> 32;
        let tags: HashSet<u64> = (0..5_000).map(tag).collect();
        assert_eq!(tags.len(), 5_000);
    }
}
