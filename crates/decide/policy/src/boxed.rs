//! A policy behind a pointer, as a policy.
//!
//! For: loops whose own cost per access is far above an indirect call (devices, closed loops,
//! training labels): they are compiled once instead of once per policy. Must never know: which
//! policy it is. Hot replays of recordings use the policy's type instead.

use crate::characterize::Characterizer;
use crate::renumber::Renumbering;
use crate::shadow::ShadowSplit;
use crate::{
    Access, BackgroundOp, ForeignCode, Policy, PolicyHooks, Region, RegionSizes, RequestInfo,
    Verdict,
};
use cachewright_types::BlockId;

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
