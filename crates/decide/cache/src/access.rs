//! One access to one block, and what happened to it.
//!
//! For: what is asked of the engine, and its answer. Must never know: pools, counters.

use cachewright_policy::{Future, Verdict};
use cachewright_types::{BlockId, TenantId};

/// One access to one block, with the id in the id space of its pool: an id names one block of all
/// tenants in the pool. Pools hold arrays as long as their largest id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockAccess {
    /// The block.
    pub block: BlockId,
    /// The tenant that asks.
    pub tenant: TenantId,
    /// Whether it is written.
    pub write: bool,
    /// What is known of the future, for policies that need it.
    pub future: Future,
}

/// What happened to one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessOutcome {
    /// The policy's verdict; `Bypass` where the write mode kept the policy out of it.
    pub verdict: Verdict,
    /// The evicted block was dirty and must be written back.
    pub writeback: bool,
    /// The cached copy was dropped because the write mode says so.
    pub invalidated: bool,
}
