//! Identifiers that must not be mixed up.

use crate::seed::mix;
use cachewright_snapshot::SnapshotValue;

/// A block interned once per trace: a dense index `0..distinct`, so that per-block state is an
/// array. The highest value is reserved as the empty link of intrusive lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SnapshotValue)]
pub struct BlockId(pub u32);

impl BlockId {
    /// The number of distinct blocks that can be told apart.
    pub const LIMIT: u32 = u32::MAX - 16;

    /// The index into per-block arrays.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tenant: a dense index in the order of the stack file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SnapshotValue)]
pub struct TenantId(pub u16);

impl TenantId {
    /// The index into per-tenant arrays.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Declares kinds of index of 32 bits, so that an index cannot be used in the table of another
/// kind. Tables store "none" in the number itself, so that an entry takes four bytes; outside a
/// table it is an `Option`.
#[macro_export]
macro_rules! index_ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        #[allow(dead_code, reason = "not every kind is stored, or left out")]
        impl $name {
            /// No number, as tables store it.
            pub const NONE: $name = $name(u32::MAX);

            /// The number of the entry at `index`.
            #[inline]
            pub fn new(index: usize) -> $name {
                debug_assert!(index < u32::MAX as usize, "a table has fewer entries");
                $name(index as u32)
            }

            /// The place in its table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The number, unless it is [`Self::NONE`].
            #[inline]
            pub fn present(self) -> Option<$name> {
                (self.0 != u32::MAX).then_some(self)
            }
        }
    )+};
}

/// A block by tenant, volume and number, in 64 bits: what a measure samples blocks by. Ids of a
/// live cache are recycled, so that a sample of ids holds other blocks from one moment to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SnapshotValue)]
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

    crate::index_ids! {
        /// An index of this test.
        TestId,
    }

    #[test]
    fn none_is_no_number_and_every_other_is_its_index() {
        assert_eq!(TestId::NONE.present(), None);
        for index in [0, 1, 70_000] {
            let id = TestId::new(index);
            assert_eq!((id.index(), id.present()), (index, Some(id)));
        }
        assert_eq!(std::mem::size_of::<TestId>(), 4);
    }

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
