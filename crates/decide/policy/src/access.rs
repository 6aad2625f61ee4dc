//! One access to one block, and what a policy decides about it.
//!
//! For: the two ends of [`Policy::access`](crate::Policy::access). Must never know: policies.

use crate::future::Future;
use cachewright_types::BlockId;

/// One access to one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// The block.
    pub block: BlockId,
    /// Whether it is written (whole or in part).
    pub write: bool,
    /// What is known of the future. Only policies that declare
    /// [`Need::Future`](crate::Need::Future) or [`Need::Benefit`](crate::Need::Benefit) read it.
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
