//! What a policy may hear of and do beside its verdicts.
//!
//! For: policies that look at whole requests, place blocks in rooms of the cache device, or have
//! work of their own. Must never know: the cache engine, devices. Units: nanoseconds, bytes,
//! blocks. Most policies use none of it and pay nothing for it.

use cachewright_types::{BlockId, Op, Request};

/// A request whose blocks a policy is asked about next, for those who declare
/// [`Need::Requests`](crate::Need::Requests).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// When it arrives, in nanoseconds since the start of the workload.
    pub time_ns: u64,
    /// Its first byte on the tenant's volume.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Whether it writes.
    pub write: bool,
}

impl From<&Request> for Asked {
    fn from(request: &Request) -> Asked {
        Asked {
            time_ns: request.time.0,
            offset: request.offset.0,
            length: request.length.0,
            write: request.op == Op::Write,
        }
    }
}

/// Where on the cache device a block lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Room {
    /// Wherever there is a slot.
    #[default]
    Any,
    /// In the channels that its tenant has to itself.
    Own,
    /// In the channels that tenants share.
    Common,
}

/// The rooms among which a policy places its blocks; together they are its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rooms {
    /// Blocks of [`Room::Own`].
    pub own_blocks: u32,
    /// Blocks of [`Room::Common`].
    pub common_blocks: u32,
}

/// Work that a policy wants done beside requests. When it names a chore it has already noted it in
/// its own state; blocks named were in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// The block has left the cache; it is written back first if it is dirty.
    Demote(BlockId),
    /// The block stays and is written back if it is dirty.
    Clean(BlockId),
    /// The two blocks have changed their rooms.
    Swap(BlockId, BlockId),
}
