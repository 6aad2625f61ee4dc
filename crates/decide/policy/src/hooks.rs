//! What a policy may do beside its verdicts: each hook has a default that does nothing.
//!
//! For: policies that look at whole requests, run models, place blocks in regions of the cache
//! device, or want work done in the background. Must never know: the cache engine, devices. Units:
//! nanoseconds, bytes, blocks. Most policies implement none of it and pay nothing for it.

use crate::characterize::Characterizer;
use crate::foreign_code::ForeignCode;
use crate::shadow::ShadowSplit;
use cachewright_types::{BlockId, Op, Request};

/// A request as a policy sees it that declares [`Need::Requests`](crate::Need::Requests).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// When it arrives, in nanoseconds since the start of the workload.
    pub time_ns: u64,
    /// Its first byte on the tenant's volume.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Whether it writes.
    pub write: bool,
}

impl From<&Request> for RequestInfo {
    fn from(request: &Request) -> RequestInfo {
        RequestInfo {
            time_ns: request.time.0,
            offset: request.offset.0,
            length: request.length.0,
            write: request.op == Op::Write,
        }
    }
}

/// The region of the cache device in which a block lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Region {
    /// Wherever there is a slot.
    #[default]
    Any,
    /// The channels that its tenant has to itself.
    Private,
    /// The channels that tenants share.
    Shared,
}

/// The sizes of the two regions in which a policy places its blocks; their sum is its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionSizes {
    /// Blocks of [`Region::Private`].
    pub private_blocks: u32,
    /// Blocks of [`Region::Shared`].
    pub shared_blocks: u32,
}

/// An operation that a policy wants done in the background. A policy that returns one has noted it
/// in its own state already. The blocks named were in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundOp {
    /// The block has left the cache; it is written back first if it is dirty.
    Demote(BlockId),
    /// The block stays and is written back if it is dirty.
    Clean(BlockId),
    /// The two blocks have exchanged their regions.
    Swap(BlockId, BlockId),
}

/// The hooks of a policy. A policy without any writes `impl PolicyHooks for X {}`.
pub trait PolicyHooks {
    /// Takes the request whose blocks are accessed next; called for policies that declare
    /// [`Need::Requests`](crate::Need::Requests).
    #[inline(always)]
    fn on_request(&mut self, _request: &RequestInfo) {}

    /// Takes trained models, each with its name, in place of those before; called for policies that
    /// declare [`Need::Model`](crate::Need::Model), at any time. Blocks stay in the cache. A model
    /// whose name and file are as before goes on with its state. Errors: what was found and
    /// expected, in words; the models before stay in use.
    fn load_models(&mut self, _models: &[(String, Vec<u8>)]) -> Result<(), String> {
        Ok(())
    }

    /// Takes the code that decides, before the first access; called for policies that declare
    /// [`Need::Code`](crate::Need::Code).
    fn attach_code(&mut self, _code: &ForeignCode) {}

    /// Takes the kind of workload that runs now, by the name of its model; a kind without a model
    /// changes nothing.
    fn set_workload(&mut self, _kind: &str) {}

    /// Takes a characterizer that finds the kind of workload, to be run every `every_ns`; at any
    /// time, in place of the one before.
    fn characterize(&mut self, _characterizer: Box<dyn Characterizer>, _every_ns: u64) {}

    /// Whether [`PolicyHooks::region`] or [`PolicyHooks::background_op`] ever return anything.
    /// Without, neither these nor [`PolicyHooks::clock`] are called.
    #[inline(always)]
    fn has_regions_or_background_ops() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Whether it takes blocks of adjacent ids for neighbours, which they are not in a live cache.
    fn has_adjacent_ids(&self) -> bool {
        false
    }

    /// Takes the time, after each request on devices.
    #[inline(always)]
    fn clock(&mut self, _now_ns: u64) {}

    /// Takes new sizes of the regions. Blocks that must leave are appended to `evicted`.
    fn divide_regions(&mut self, _sizes: RegionSizes, _evicted: &mut Vec<BlockId>) {}

    /// Takes a new split of its two shadow partitions. Blocks that must leave are appended to
    /// `evicted`. A policy without such partitions ignores it.
    fn split(&mut self, _split: ShadowSplit, _evicted: &mut Vec<BlockId>) {}

    /// The region of a block in the cache.
    #[inline(always)]
    fn region(&self, _block: BlockId) -> Region {
        Region::Any
    }

    /// The next operation to be done in the background; called after each request until there is
    /// none.
    #[inline(always)]
    fn background_op(&mut self) -> Option<BackgroundOp> {
        None
    }
}
