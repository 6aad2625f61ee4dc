//! Machines under simulated time: a cache in front of devices, and what its tenants wait.
//!
//! A request goes to the cache ([`ReplayDecider`]), whose plan becomes steps that wait for each
//! other (`simulate/steps`) and for devices ([`Machine`]). Of the four systems of papers three are
//! this machine with other devices: `tiered` (a flash or fixed-latency device over disks),
//! `buffer-cache` (memory over a disk with read-ahead) and `flash-store` (memory over a log on
//! flash); `ssd`, a drive that decides inside, is replayed by [`crate::event_loop::run_ssd`].

pub mod latency;
pub mod machine;
pub mod machine_replay;
mod mover;
mod places;
pub(crate) mod read_ahead;
pub mod requests;
mod slots;

pub use cachewright_control::tenancy::{self, ChannelTenancy};
pub use cachewright_control::{CacheDecider, Decider};
pub use cachewright_steps::{Decision, DirtyBlock, Fill};
pub use latency::TimedAnswer;
pub use machine::{
    GroupUse, InFlight, Machine, MachineParts, MachineSettings, ReadAhead, WriteBack,
};
pub use machine_replay::{ReplayCache, ReplayDecider, run_machine};
pub use mover::Migrated;
pub use requests::{Layout, PlacedVolumes, Requests, TooSmall};
pub use slots::{RegionBlocks, Slots, blocks_of};
