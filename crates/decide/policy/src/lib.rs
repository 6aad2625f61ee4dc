//! Replacement policies: which block stays.
//!
//! For: pure state machines over dense block ids. Must never know: the cache engine, tenants, time,
//! files, threads; of requests only what [`PolicyHooks::on_request`] passes on. A policy holds
//! arrays indexed by [`BlockId`]; nothing hashes. [`Policy`] is what every policy does,
//! [`PolicyHooks`] what a few do besides. Invariant: a policy never holds more than its capacity,
//! and `Hit` implies it held the block.

pub mod access_frequency;
pub mod arc;
pub mod belady;
pub mod benefit_oracle;
mod boxed;
pub mod clock;
pub mod entry;
pub mod far_first;
pub mod fifo;
pub mod foreign;
pub mod future;
pub mod ghost_lists;
pub mod hit_queues;
pub mod hooks;
pub mod larc;
pub mod least_first;
pub mod levels;
pub mod lfu;
pub mod links;
pub mod lirs;
pub mod lru;
pub mod oc_smq;
pub mod queue;
pub mod rc_rnn;
pub mod rc_x;
pub mod reca;
pub mod registry;
pub mod replay;
pub mod s3_fifo;
pub mod sieve;
pub mod smq;
pub mod two_q;

pub use entry::{Entry, Need, PolicyVisitor, Registered};
pub use foreign::{CodeFault, ForeignClass, ForeignCode, ForeignPolicy};
pub use future::{Future, FutureColumn, FutureSlice, NEVER};
pub use hooks::{BackgroundOp, PolicyHooks, Region, RegionSizes, RequestInfo};
pub use registry::{entries, entry, visit};

use cachewright_types::BlockId;

/// One access to one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// The block.
    pub block: BlockId,
    /// Whether it is written (whole or in part).
    pub write: bool,
    /// What is known of the future. Only policies that declare [`Need::Future`] or
    /// [`Need::Benefit`] read it.
    pub future: Future,
}

impl Access {
    /// A read of `block` with no knowledge of the future.
    #[inline(always)]
    pub fn read(block: BlockId) -> Access {
        Access { block, write: false, future: Future::None }
    }
}

/// What a policy decided about one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The block was in the cache.
    Hit,
    /// The block was not in the cache and now is.
    Admit {
        /// The block that left for it, if the cache was full.
        evicted: Option<BlockId>,
    },
    /// The block was not in the cache and stays out; nothing left.
    Bypass,
}

/// A replacement policy over unit blocks; see [`PolicyHooks`] for what it may do besides.
///
/// Ids passed in must be below the bound given to [`Policy::reserve_ids`].
pub trait Policy: PolicyHooks + Send {
    /// Decides about one access.
    fn access(&mut self, access: Access) -> Verdict;

    /// Whether the block is in the cache.
    fn contains(&self, block: BlockId) -> bool;

    /// Whether the policy remembers anything about the block (resident, ghost or counted). Once
    /// this is false the id may be given to another block.
    fn tracks(&self, block: BlockId) -> bool;

    /// Blocks in the cache.
    fn len(&self) -> u32;

    /// Whether nothing is in the cache.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Blocks the cache may hold.
    fn capacity(&self) -> u32;

    /// Changes the capacity; blocks that must leave are appended to `evicted`, first out first.
    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>);

    /// Forgets a block wherever it is remembered (trim); returns whether it was in the cache.
    fn remove(&mut self, block: BlockId) -> bool;

    /// Makes room for ids `0..count`.
    fn reserve_ids(&mut self, count: usize);

    /// Loads the block's state into the processor's cache ahead of its access; the value means
    /// nothing and is returned so that the load cannot be dropped.
    fn touch(&self, block: BlockId) -> u32;

    /// Checks every invariant, slowly. The error says which one is broken and how.
    fn audit(&self) -> Result<(), String>;
}
