//! Machines under simulated time: a cache in front of devices, and what its tenants wait.
//!
//! For: pricing the plans of a cache. A request goes to the cache ([`ReplayDecider`]), whose plan
//! becomes steps that wait for each other (`decide/steps`) and for devices ([`Machine`]). Must
//! never know: stack files, reports. Units: nanoseconds, bytes, blocks. Of the four systems of
//! papers three are this machine with other devices: `tiered` (a flash or fixed-latency device over
//! disks), `buffer-cache` (memory over a disk with read-ahead) and `flash-store` (memory over a log
//! on flash); `ssd`, a drive that decides inside, is replayed by [`crate::event_loop::run_ssd`].

pub mod channels;
pub mod latency_breakdown;
pub mod machine;
pub mod machine_replay;
pub(crate) mod read_ahead;
pub mod replay_cache;
pub mod requests;
pub mod service;
pub mod settings;

pub use cachewright_control::tenancy::{self, ChannelTenancy};
pub use cachewright_control::{CacheDecider, Decider};
pub use channels::GroupUse;
pub use machine::free_slots::blocks_of;
pub use machine::mover::Migrated;
pub use machine::slots::{RegionBlocks, Slots};
pub use machine::{DirtyBlock, Machine, MachineParts, TimedAnswer};
pub use machine_replay::run_machine;
pub use replay_cache::{ReplayCache, ReplayDecider};
pub use requests::{Layout, PlacedVolumes, Requests, TooSmall};
pub use settings::{InFlight, MachineSettings};
