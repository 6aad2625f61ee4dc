//! The cache engine: a request in, a plan out.
//!
//! For: the directory of cached blocks, per-tenant quotas, write modes and dirty state around one
//! replacement policy. Must never know: partitioners, devices, time, files, threads. The engine
//! decides and counts; a simulator prices its plans and a daemon performs them.

mod access;
mod block_part;
mod counted_pools;
pub mod engine;
pub mod index;
mod ledger;
pub mod live;
mod memory;
pub mod mode;
pub mod plan;
mod pool;
pub mod quotas;
pub mod request_cache;
pub mod sequential;
mod tenant_pools;
pub mod trim;

pub use engine::{AccessOutcome, BlockAccess, Engine};
pub use live::{AnyCache, CacheAnswer};
pub use mode::WriteMode;
pub use plan::{Cached, Move, Plan};
pub use quotas::Quotas;
pub use request_cache::{Cache, Left};
pub use sequential::{SequentialCutoff, SequentialStreams};
pub use trim::TrimRest;
