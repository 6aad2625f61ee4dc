//! Partitioners divide the cache among tenants: deterministic functions of the tenants' facts and
//! of what was measured in the last interval. One file is one scheme, or the schemes of one idea;
//! the schemes are listed in [`registry`]. Units: blocks.

mod active_tenants;
pub mod costpi;
pub mod dp;
pub mod fixed;
pub mod hare;
mod history;
pub mod hull;
pub mod icache;
pub mod icache_x;
pub mod justitia;
pub mod layout;
pub mod memshare;
pub mod mlcache;
mod network;
pub mod opt;
mod partitioner;
pub mod registry;
pub mod response_model;
pub mod robinhood;
pub mod share;
pub mod soft_qos;
pub mod soft_qos_x;
pub mod talus;

pub use active_tenants::ActiveTenants;
pub use partitioner::{
    CacheDivision, CurveKind, Models, Partitioner, Requirement, TenantConstants, TenantGoal,
    TenantView, VictimChoice, VictimSelector, WriteRequest,
};
pub use registry::{Entry, Need, Provision, Registered, boxed, entries, entry};
pub use soft_qos_x::ResponseGoal;
