//! Numbers of what steps keep in tables, each kind as a type of its own.
//!
//! For: an index that cannot be used in the table of another kind. Must never know: what the tables
//! hold. Units: counts.

cachewright_types::index_ids! {
    /// A slot: the place of one block on the cache device.
    SlotId,
    /// A block's stay on the cache device; used again when it is over.
    ResidentId,
    /// A step under way; used again when it is done.
    StepId,
    /// A request under way; used again when it is answered.
    RequestId,
    /// A device: the cache device, then the backing devices.
    DeviceId,
}

impl DeviceId {
    /// The cache device.
    pub const CACHE: DeviceId = DeviceId(0);
}
