//! Identifiers that must not be mixed up.
//!
//! For: newtypes of indices. Must never know: what they index. Units: counts, no bytes.

/// A block interned once per trace: a dense index `0..distinct`, so that per-block state is an
/// array. The highest value is reserved as the empty link of intrusive lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TenantId(pub u16);

impl TenantId {
    /// The index into per-tenant arrays.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
