//! The cache engine: a request in, a plan out.
//!
//! [`Cache`] splits a request into blocks and finds their ids ([`index`]); [`Engine`] decides about
//! each block by write mode and policy; blocks come in and are evicted in the pools of the engine.
//! The [`Plan`] says what must be done: a simulator prices it, a server performs it.

pub mod any_cache;
pub mod blame;
pub mod engine;
pub mod index;
pub mod plan;
mod pools;
pub mod request_cache;
pub mod sequential;

pub use any_cache::{AnyCache, CacheAnswer};
pub use blame::Causes;
pub use engine::{AccessOutcome, BlockAccess, Engine, WriteMode};
pub use plan::{Cached, Move, Plan};
pub use pools::{Quotas, Shrink};
pub use request_cache::{Cache, Left, TrimRest};
pub use sequential::{SequentialCutoff, SequentialStreams};
