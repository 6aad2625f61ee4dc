//! What must be done for one request, in order.
//!
//! For: the value that a simulator prices and a daemon performs. Must never know: either. A plan is
//! reused from request to request; it holds no data, only names of blocks.
//!
//! That a write must be durable before it is answered (FUA) is not a decision: it stays with the
//! request. A write that bypasses the cache is sent to the backing store once no older copy of its
//! block can come back. A store that keeps copies in a log first makes a tombstone durable, also
//! where the plan has no [`Move::Discard`]: the log may hold an older copy of a block that has
//! left.

use cachewright_policy::Region;
use cachewright_types::{BlockId, TenantId};

/// A block named on both sides: where it is cached and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The pool and id under which the cache knows it.
    pub pool: u16,
    /// See `pool`.
    pub id: BlockId,
    /// The tenant whose volume it belongs to.
    pub tenant: TenantId,
    /// Its number on that volume, in units of the block size.
    pub number: u64,
    /// The region of the cache device in which the policy wants it.
    pub region: Region,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Read the block from the cache, or write it there.
    Serve(Cached),
    /// Read the block from the backing store.
    Fetch(Cached),
    /// Put the fetched block into the cache.
    Fill(Cached),
    /// Write a dirty block from the cache to the backing store; it leaves the cache.
    WriteBack(Cached),
    /// Write the request's bytes of the block to the backing store as well.
    WriteThrough(Cached),
    /// Write a dirty block from the cache to the backing store; it stays.
    Clean(Cached),
    /// Two blocks change places on the cache device.
    Swap(Box<[Cached; 2]>),
    /// Forget the cached copy, which the backing store has as well.
    Drop(Cached),
    /// Forget the cached copy, whose content is void: a trim, an invalidation, a copy that is lost.
    Discard {
        /// The block.
        cached: Cached,
        /// The backing store has older content.
        dirty: bool,
    },
    /// Read or write the block on the backing store only.
    Bypass {
        /// The tenant whose volume it belongs to.
        tenant: TenantId,
        /// Its number on that volume.
        number: u64,
    },
    /// Pass the request's own trim on to the backing store.
    Trim,
    /// Make earlier writes durable.
    Flush,
}

/// The steps of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they depend on each other.
    pub moves: Vec<Move>,
    /// Whether every block of the request was found in the cache.
    pub all_hit: bool,
}
