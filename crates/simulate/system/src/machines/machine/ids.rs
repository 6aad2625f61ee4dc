//! Numbers of what the slots of a machine keep in tables, beside those of its steps.
//!
//! For: an index that cannot be used in the table of another kind. Must never know: what the tables
//! hold. Units: counts.

pub use cachewright_steps::{DeviceId, ResidentId, SlotId, StepId};

cachewright_types::index_ids! {
    /// A pool of channels that give out slots together.
    PoolId,
    /// A channel, or a group that a drive shows as one.
    ChannelId,
    /// A change of places under way.
    ChangeId,
}
