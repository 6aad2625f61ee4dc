//! The directories of `duel-x`: what each candidate would hold if it alone decided.
//!
//! For: `duel-x`. Must never know: which candidate leads. A directory is a policy whose blocks have
//! no data. Each candidate wins where the others lose: `cacheus` where recency and frequency change
//! places, `access-frequency` where few blocks are used often, `rc-x` where the waits before tell
//! what comes back. `rc-x` counts hits alike here, without a price of writes: `duel-x` has its own.
//! It is not told of requests, so that `duel-x` needs accesses alone and runs wherever `lru` does.

use crate::access_frequency::AccessFrequency;
use crate::cacheus::Cacheus;
use crate::entry::Registered;
use crate::rc_x::{RcX, RcXSettings};
use crate::renumber::Renumbering;
use crate::{Access, BackgroundOp, Policy, PolicyHooks, Verdict};
use cachewright_types::{BlockId, Seed};

/// Candidates.
pub const CANDIDATES: usize = 3;

/// What one candidate would hold. Boxed, because their sizes differ by eight times.
#[derive(Clone, Debug)]
pub enum Directory {
    /// Of `cacheus`.
    Adaptive(Box<Cacheus>),
    /// Of `access-frequency`.
    Frequency(Box<AccessFrequency>),
    /// Of `rc-x`.
    Waits(Box<RcX>),
}

/// Runs an expression for the policy of a directory, whichever it is.
macro_rules! with_policy {
    ($directory:expr, $policy:ident => $do:expr) => {
        match $directory {
            Directory::Adaptive($policy) => $do,
            Directory::Frequency($policy) => $do,
            Directory::Waits($policy) => $do,
        }
    };
}

impl Directory {
    /// Empty directories of `capacity_blocks`; the first candidate leads at first.
    pub fn all(capacity_blocks: u32, seed: Seed) -> [Directory; CANDIDATES] {
        let waits = RcXSettings { by_request: false, write_price: 0.0, ..RcXSettings::default() };
        [
            Directory::Adaptive(Box::new(made(capacity_blocks, seed))),
            Directory::Frequency(Box::new(made(capacity_blocks, seed))),
            Directory::Waits(Box::new(RcX::new(capacity_blocks, &waits, seed))),
        ]
    }

    /// Decides about one access, as if its blocks were in the cache.
    #[inline(always)]
    pub fn access(&mut self, access: Access) -> Verdict {
        with_policy!(self, policy => policy.access(access))
    }

    /// The next block that leaves the directory ahead of need.
    #[inline(always)]
    pub fn leaves_ahead(&mut self) -> Option<BlockId> {
        match with_policy!(self, policy => policy.background_op()) {
            Some(BackgroundOp::Demote(block)) => Some(block),
            _ => None,
        }
    }

    /// Takes in a block that the cache holds, past admission.
    pub fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        with_policy!(self, policy => policy.adopt(block, dirty))
    }

    /// Whether the block is in the directory.
    #[inline(always)]
    pub fn contains(&self, block: BlockId) -> bool {
        with_policy!(self, policy => policy.contains(block))
    }

    /// Whether the candidate remembers anything about the block.
    pub fn tracks(&self, block: BlockId) -> bool {
        with_policy!(self, policy => policy.tracks(block))
    }

    /// The most blocks that the candidate remembers at one time.
    pub fn max_tracked(&self) -> u64 {
        with_policy!(self, policy => policy.max_tracked())
    }

    /// Changes the capacity; blocks that leave the directory are appended to `left`.
    pub fn resize(&mut self, capacity_blocks: u32, left: &mut Vec<BlockId>) {
        with_policy!(self, policy => policy.resize(capacity_blocks, left));
    }

    /// Forgets a block wherever it is remembered.
    pub fn remove(&mut self, block: BlockId) {
        with_policy!(self, policy => policy.remove(block));
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        with_policy!(self, policy => policy.reserve_ids(count));
    }

    /// Gives the blocks that are kept new ids; every candidate can.
    pub fn renumber(&mut self, ids: &Renumbering) {
        with_policy!(self, policy => policy.renumber(ids));
    }

    /// Loads the block's state ahead of use.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        with_policy!(self, policy => policy.touch(block));
    }

    /// Checks every invariant of the candidate.
    pub fn audit(&self) -> Result<(), String> {
        with_policy!(self, policy => policy.audit())
    }
}

/// An empty policy with the settings of its source.
fn made<P: Registered>(capacity_blocks: u32, seed: Seed) -> P {
    P::new(capacity_blocks, &P::Settings::default(), seed)
}
