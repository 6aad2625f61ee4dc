//! Evictions of a cache without quotas, in which tenants' lists grow and shrink with requests.
//!
//! For: partitioners that divide as [`Division::Elastic`](crate::Division::Elastic). Must never
//! know: the drive, the cache engine. Units: blocks, channels.

/// A write request that reaches the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRequest<'a> {
    /// The tenant that sends it.
    pub tenant: usize,
    /// Blocks that it writes.
    pub blocks: u32,
    /// Channels of the drive that are busy.
    pub busy_channels: u32,
    /// Channels of the drive.
    pub channels: u32,
    /// Blocks that each tenant holds.
    pub held: &'a [u32],
    /// Whether the cache is full.
    pub full: bool,
}

/// The eviction at the next miss of a full cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VictimChoice {
    /// The tenant whose blocks are evicted; without one, the tenant that then holds most.
    pub victim: Option<usize>,
    /// Blocks evicted together, at most those that the tenant holds. Once their slots are used,
    /// each admission evicts a block of its own tenant.
    pub blocks: u32,
}

/// Chooses the tenant that a full cache evicts from. A choice is used once, and holds until the
/// next write request.
pub trait VictimSelector: Send {
    /// The choice before the first write request.
    fn initial(&self) -> VictimChoice;
    /// The choice from this write request on. Deterministic, as a division is.
    fn on_write(&mut self, request: &WriteRequest<'_>) -> VictimChoice;
}
