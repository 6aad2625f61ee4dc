//! A policy behind a pointer, as a policy.
//!
//! For: loops whose own cost per access is far above an indirect call (devices, closed loops,
//! training labels): they are compiled once instead of once per policy. Must never know: which
//! policy it is. Hot replays of recordings use the policy's type instead.

use crate::{Access, Asked, Chore, ForeignCode, Policy, Room, Rooms, Verdict};
use cachewright_characterize::Characterizer;
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

    #[inline]
    fn remove(&mut self, block: BlockId) -> bool {
        (**self).remove(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        (**self).reserve_ids(count);
    }

    #[inline]
    fn touch(&self, block: BlockId) -> u32 {
        (**self).touch(block)
    }

    #[inline]
    fn asked(&mut self, request: &Asked) {
        (**self).asked(request);
    }

    fn learn(&mut self, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        (**self).learn(models)
    }

    fn attach(&mut self, code: &ForeignCode) {
        (**self).attach(code);
    }

    fn workload(&mut self, kind: &str) {
        (**self).workload(kind);
    }

    fn characterize(&mut self, characterizer: Box<dyn Characterizer>, every_ns: u64) {
        (**self).characterize(characterizer, every_ns);
    }

    fn clock(&mut self, now_ns: u64) {
        (**self).clock(now_ns);
    }

    fn divide_rooms(&mut self, rooms: Rooms, evicted: &mut Vec<BlockId>) {
        (**self).divide_rooms(rooms, evicted);
    }

    #[inline]
    fn room(&self, block: BlockId) -> Room {
        (**self).room(block)
    }

    /// True of any: which policy it is, and so what it has, is not known here.
    #[inline(always)]
    fn has_rooms_or_chores() -> bool {
        true
    }

    #[inline]
    fn chore(&mut self) -> Option<Chore> {
        (**self).chore()
    }

    fn audit(&self) -> Result<(), String> {
        (**self).audit()
    }
}
