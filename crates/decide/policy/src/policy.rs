//! The core of every policy.
//!
//! For: engines and simulations, which drive policies through it.

use crate::characterize::Characterizer;
use crate::foreign::ForeignCode;
use crate::future::Future;
use crate::renumber::Renumbering;
use crate::shadow::ShadowSplit;
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Op, Request};

/// A replacement policy over unit blocks; see [`PolicyHooks`] for what it may do besides.
///
/// Ids passed in must be below the bound given to [`Policy::reserve_ids`]. Its [`Snapshot`] is
/// restored into a policy of the same settings, of any capacity, that has the same models.
pub trait Policy: PolicyHooks + Snapshot + Send {
    /// Decides about one access.
    fn access(&mut self, access: Access) -> Verdict;

    /// Whether the block is in the cache.
    fn contains(&self, block: BlockId) -> bool;

    /// Whether the policy remembers anything about the block (resident, ghost or counted). Once
    /// this is false the id may be given to another block.
    fn tracks(&self, block: BlockId) -> bool;

    /// The most blocks that are remembered at one time at the present capacity.
    fn max_tracked(&self) -> u64 {
        u64::from(self.capacity())
    }

    /// Takes in a block that is not in the cache, past admission control: recovery, or a write-back
    /// that failed. Blocks adopted one after the other are in the order of their last uses. Only a
    /// cache of no blocks, code outside, and policies that need the future answer `Bypass`.
    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        self.access(Access { block, write: dirty, future: Future::None })
    }

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

    /// Gives the blocks that are kept new ids, in the same order, and frees the others' space;
    /// every block that is tracked is kept. Decisions stay what they would have been. False, and
    /// nothing is changed, where ids are known outside or stand for what they number.
    fn renumber(&mut self, _ids: &Renumbering) -> bool {
        false
    }

    /// Starts to load the block's state into the processor's cache, ahead of its access.
    fn touch(&self, block: BlockId);

    /// A block that is likely to leave after `later` others, so that what its departure needs can
    /// be loaded ahead; a guess that may be wrong or nothing. O(`later`).
    fn leaves_after(&self, _later: u32) -> Option<BlockId> {
        None
    }

    /// Checks every invariant, slowly. The error says which one is broken and how.
    fn audit(&self) -> Result<(), String>;
}

/// One access to one block.
#[derive(Clone, Copy, Debug, PartialEq, SnapshotValue)]
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

/// A request as a policy sees it that declares [`Need::Requests`](crate::Need::Requests).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
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
///
/// Hooks are for policies that look at whole requests, run models, place blocks in regions of the
/// cache device, or want work done in the background. Each has a default that does nothing and
/// costs nothing.
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

impl Policy for Box<dyn Policy> {
    #[inline]
    fn access(&mut self, access: Access) -> Verdict {
        (**self).access(access)
    }

    #[inline]
    fn contains(&self, block: BlockId) -> bool {
        (**self).contains(block)
    }

    #[inline]
    fn tracks(&self, block: BlockId) -> bool {
        (**self).tracks(block)
    }

    fn max_tracked(&self) -> u64 {
        (**self).max_tracked()
    }

    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        (**self).adopt(block, dirty)
    }

    #[inline]
    fn len(&self) -> u32 {
        (**self).len()
    }

    #[inline]
    fn capacity(&self) -> u32 {
        (**self).capacity()
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        (**self).resize(capacity_blocks, evicted);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        (**self).renumber(ids)
    }

    fn leaves_after(&self, later: u32) -> Option<BlockId> {
        (**self).leaves_after(later)
    }

    #[inline]
    fn remove(&mut self, block: BlockId) -> bool {
        (**self).remove(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        (**self).reserve_ids(count);
    }

    #[inline]
    fn touch(&self, block: BlockId) {
        (**self).touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        (**self).audit()
    }
}

impl PolicyHooks for Box<dyn Policy> {
    #[inline]
    fn on_request(&mut self, request: &RequestInfo) {
        (**self).on_request(request);
    }

    fn load_models(&mut self, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        (**self).load_models(models)
    }

    fn attach_code(&mut self, code: &ForeignCode) {
        (**self).attach_code(code);
    }

    fn set_workload(&mut self, kind: &str) {
        (**self).set_workload(kind);
    }

    fn characterize(&mut self, characterizer: Box<dyn Characterizer>, every_ns: u64) {
        (**self).characterize(characterizer, every_ns);
    }

    /// True of any: the policy behind the pointer is not known here.
    #[inline(always)]
    fn has_regions_or_background_ops() -> bool {
        true
    }

    fn has_adjacent_ids(&self) -> bool {
        (**self).has_adjacent_ids()
    }

    fn clock(&mut self, now_ns: u64) {
        (**self).clock(now_ns);
    }

    fn divide_regions(&mut self, sizes: RegionSizes, evicted: &mut Vec<BlockId>) {
        (**self).divide_regions(sizes, evicted);
    }

    fn split(&mut self, split: ShadowSplit, evicted: &mut Vec<BlockId>) {
        (**self).split(split, evicted);
    }

    #[inline]
    fn region(&self, block: BlockId) -> Region {
        (**self).region(block)
    }

    #[inline]
    fn background_op(&mut self) -> Option<BackgroundOp> {
        (**self).background_op()
    }
}
