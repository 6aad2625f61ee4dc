//! Copies of blocks in the cache: where the content of each lies in the log, and which
//! procedures use it.
//!
//! A copy begins when the cache admits its block. It ends when the block has been evicted and no
//! procedure uses it any more: until then its content stays where it can be read. Its number is
//! the name of its page for schemes of separation: numbers are dense, and the one that became free
//! last is given again (DESIGN F-3). What procedures know of a copy stands in a table of those in
//! use. Units: blocks, decisions counted from the start of the server.

use crate::io::executor::Event;
use crate::log::format::Version;
use crate::log::{Appended, Place, RecoveredBlock};
use cachewright_cache::Cached;
use cachewright_types::{BlockId, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use slab::Slab;
use std::collections::BTreeSet;
use std::ops::Range;

cachewright_types::index_ids! {
    /// The copy of a block; used again when it has ended.
    CopyId,
    /// The place of a copy in the table of those in use.
    UseId,
}

/// Which content of a block it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentOrigin {
    /// The group that brought it into the log; 0 for content from the backing device.
    pub group: u64,
    /// Its version in the log.
    pub version: Version,
}

/// Content in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlock {
    /// Where it lies.
    pub place: Place,
    /// Its checksum.
    pub checksum: u32,
    /// The log says that the backing device has older content.
    pub dirty: bool,
    /// The version of the content: the cleaner copies content and keeps it.
    pub version: Version,
    /// The version of the newest record of it.
    pub recorded: Version,
    /// The group that brought the content into the log.
    pub group: u64,
    /// A request has read it since it was stored or moved.
    pub was_read: bool,
}

impl StoredBlock {
    /// Which content it is.
    pub fn origin(&self) -> ContentOrigin {
        ContentOrigin { group: self.group, version: self.version }
    }

    /// One that recovery found; `dirty` if the server keeps it so.
    pub fn found(block: &RecoveredBlock, dirty: bool) -> StoredBlock {
        let RecoveredBlock { place, checksum, version, .. } = *block;
        let (recorded, group, was_read) = (version, 0, false);
        StoredBlock { place, checksum, dirty, version, recorded, group, was_read }
    }
}

/// A block's copy.
#[derive(Clone, Copy, Debug)]
pub struct BlockCopy {
    /// The block's number on its tenant's volume.
    pub number: u64,
    /// The tenant whose block it is.
    pub tenant: TenantId,
    /// The decision that brought it in; 0 for one that recovery found.
    pub admitted: u64,
    /// The decision that evicted it; 0 while it is cached.
    pub left: u64,
    /// Its content; nothing before that is in the log.
    pub stored: Option<StoredBlock>,
    used: UseId,
}

/// What procedures know of a copy that they use.
#[derive(Default)]
struct Use {
    /// Procedures that use it.
    users: u32,
    /// What fetches it from the backing device and puts it into the log.
    filled: Option<Event>,
    /// The last write to it.
    written: Option<Event>,
    /// The last decision whose plan uses it for its request.
    plan: u64,
    /// A write, or a write-back, needs that it is put into the log.
    must_be_filled: bool,
    /// What was to bring its content has failed.
    is_lost: bool,
}

impl Use {
    /// Whether something of a kind has not ended.
    fn pending(event: &Option<Event>) -> Option<Event> {
        event.as_ref().filter(|event| !event.is_set()).cloned()
    }
}

/// All copies.
#[derive(Default)]
pub struct Copies {
    all: Vec<BlockCopy>,
    free: Vec<CopyId>,
    in_use: Slab<Use>,
    /// The copy of each id that the cache gives a block, by pool of the cache.
    names: Vec<Vec<CopyId>>,
    /// Copies of blocks that were evicted and have not ended.
    leaving: BTreeSet<(TenantId, u64, CopyId)>,
    /// Copies with content.
    stored: u64,
    /// What the cleaner has moved and is not durable, by its place: the group of each, and where it
    /// was copied from.
    moved_from: HashMap<Place, (u64, Place), FixedState>,
}

impl Copies {
    /// Takes memory for as many ids of each pool of the cache, and for copies of all of them.
    pub fn reserve(&mut self, ids: &[usize]) {
        self.names.resize(self.names.len().max(ids.len()), Vec::new());
        for (pool, ids) in self.names.iter_mut().zip(ids) {
            pool.reserve(ids.saturating_sub(pool.len()));
        }
        self.all.reserve(ids.iter().sum::<usize>().saturating_sub(self.all.len()));
    }

    /// The copy of a block that the cache holds.
    #[inline]
    pub fn find(&self, cached: &Cached) -> Option<CopyId> {
        self.names.get(usize::from(cached.pool))?.get(cached.id.index())?.present()
    }

    /// A copy.
    #[inline]
    pub fn get(&self, id: CopyId) -> &BlockCopy {
        &self.all[id.index()]
    }

    /// The content of a copy, once it is in the log.
    #[inline]
    pub fn stored(&self, id: CopyId) -> Option<StoredBlock> {
        self.all.get(id.index()).and_then(|copy| copy.stored)
    }

    /// The cache has admitted a block by a decision.
    pub fn admit(&mut self, cached: &Cached, decision: u64) -> CopyId {
        let copy = BlockCopy {
            number: cached.number,
            tenant: cached.tenant,
            admitted: decision,
            left: 0,
            stored: None,
            used: UseId::NONE,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.all[id.index()] = copy;
                id
            }
            None => {
                self.all.push(copy);
                CopyId::new(self.all.len() - 1)
            }
        };
        let pool = usize::from(cached.pool);
        self.names.resize(self.names.len().max(pool + 1), Vec::new());
        let names = &mut self.names[pool];
        names.resize(names.len().max(cached.id.index() + 1), CopyId::NONE);
        names[cached.id.index()] = id;
        id
    }

    /// The cache has evicted a block by a decision; returns its copy.
    pub fn evict(&mut self, cached: &Cached, decision: u64) -> Option<CopyId> {
        let name = self.names.get_mut(usize::from(cached.pool))?.get_mut(cached.id.index())?;
        let id = std::mem::replace(name, CopyId::NONE).present()?;
        let copy = &mut self.all[id.index()];
        copy.left = decision;
        self.leaving.insert((copy.tenant, copy.number, id));
        Some(id)
    }

    /// Blocks of a pool have new ids: pairs of an old one and a new one that is not higher, both in
    /// ascending order. All blocks that the cache holds in the pool are among them.
    pub fn rename(&mut self, pool: usize, pairs: &[(BlockId, BlockId)]) {
        let Some(names) = self.names.get_mut(pool) else { return };
        let mut kept = 0;
        for (old, new) in pairs {
            debug_assert!(new <= old, "ids are given anew from the lowest on");
            let taken = names.get_mut(old.index()).map(|id| std::mem::replace(id, CopyId::NONE));
            if let Some(id) = taken {
                names[new.index()] = id;
                kept = new.index() + 1;
            }
        }
        debug_assert!(names[kept..].iter().all(|id| *id == CopyId::NONE), "blocks without ids");
        names.truncate(kept);
        names.shrink_to_fit();
    }

    /// Copies of a tenant's blocks that were evicted and are still used.
    pub fn leaving(
        &self,
        tenant: TenantId,
        blocks: Range<u64>,
    ) -> impl Iterator<Item = CopyId> + '_ {
        let first = (tenant, blocks.start, CopyId(0));
        let found = self.leaving.range(first..).copied();
        let found =
            found.take_while(move |(other, number, _)| *other == tenant && *number < blocks.end);
        found.map(|(.., id)| id)
    }

    fn use_of(&self, id: CopyId) -> Option<&Use> {
        self.in_use.get(self.all[id.index()].used.present()?.index())
    }

    fn use_mut(&mut self, id: CopyId) -> &mut Use {
        let copy = &mut self.all[id.index()];
        if copy.used == UseId::NONE {
            copy.used = UseId::new(self.in_use.insert(Use::default()));
        }
        &mut self.in_use[copy.used.index()]
    }

    /// A procedure uses a copy from now on.
    pub fn hold(&mut self, id: CopyId) {
        self.use_mut(id).users += 1;
    }

    /// A plan of a decision uses a copy for its request.
    pub fn hold_for(&mut self, id: CopyId, decision: u64) {
        let used = self.use_mut(id);
        used.users += 1;
        used.plan = decision;
    }

    /// Whether the plan of a decision uses a copy for its request.
    pub fn is_in_plan(&self, id: CopyId, decision: u64) -> bool {
        self.use_of(id).is_some_and(|used| used.plan == decision)
    }

    /// A procedure uses a copy no more; returns the copy if it has ended by that.
    pub fn let_go(&mut self, id: CopyId) -> Option<BlockCopy> {
        let used = self.use_mut(id);
        debug_assert!(used.users > 0, "a copy is let go as often as held");
        used.users = used.users.saturating_sub(1);
        self.end_unused(id)
    }

    /// Ends what is known of a copy that is not in use; returns the copy if it has ended: its block
    /// was evicted. Its content is the caller's.
    pub fn end_unused(&mut self, id: CopyId) -> Option<BlockCopy> {
        let copy = self.all[id.index()];
        if let Some(used) = copy.used.present() {
            let known = &self.in_use[used.index()];
            if known.users > 0 || (known.is_lost && copy.left == 0) {
                return None;
            }
            self.in_use.remove(used.index());
            self.all[id.index()].used = UseId::NONE;
        }
        if copy.left == 0 {
            return None;
        }
        self.leaving.remove(&(copy.tenant, copy.number, id));
        self.free.push(id);
        Some(copy)
    }

    /// What fetches a copy, if that has not ended.
    pub fn filling(&self, id: CopyId) -> Option<Event> {
        self.use_of(id).and_then(|used| Use::pending(&used.filled))
    }

    /// The last write to a copy, if that has not ended.
    pub fn writing(&self, id: CopyId) -> Option<Event> {
        self.use_of(id).and_then(|used| Use::pending(&used.written))
    }

    /// Whether content of a copy is on its way to the log.
    pub fn is_changing(&self, id: CopyId) -> bool {
        self.use_of(id).is_some_and(|used| {
            Use::pending(&used.filled).is_some() || Use::pending(&used.written).is_some()
        })
    }

    /// A copy is being fetched.
    pub fn begin_fill(&mut self, id: CopyId, filled: Event) {
        self.use_mut(id).filled = Some(filled);
    }

    /// A copy is being written to.
    pub fn begin_write(&mut self, id: CopyId, written: Event) {
        self.use_mut(id).written = Some(written);
    }

    /// A write or a write-back needs the content of a copy in the log.
    pub fn need_filled(&mut self, id: CopyId) {
        self.use_mut(id).must_be_filled = true;
    }

    /// Whether a copy is to be put into the log: its block is cached, or something needs it there.
    /// Content of an evicted block would come back at recovery.
    pub fn is_filled(&self, id: CopyId) -> bool {
        self.get(id).left == 0 || self.use_of(id).is_some_and(|used| used.must_be_filled)
    }

    /// Whether what was to bring a copy's content has failed.
    pub fn is_lost(&self, id: CopyId) -> bool {
        self.use_of(id).is_some_and(|used| used.is_lost)
    }

    /// What was to bring the content of a copy has failed, or newer content is there.
    pub fn set_lost(&mut self, id: CopyId, is_lost: bool) {
        if is_lost || self.get(id).used != UseId::NONE {
            self.use_mut(id).is_lost = is_lost;
        }
    }

    /// The content of a copy was appended, or found; returns older content.
    pub fn put(&mut self, id: CopyId, to: StoredBlock) -> Option<StoredBlock> {
        let older = self.all[id.index()].stored.replace(to);
        self.stored += u64::from(older.is_none());
        older
    }

    /// Copies whose content lies in the log.
    pub fn count_stored(&self) -> u64 {
        self.stored
    }

    /// A request reads the content of a copy.
    pub fn note_read(&mut self, id: CopyId) {
        if let Some(stored) = &mut self.all[id.index()].stored {
            stored.was_read = true;
        }
    }

    /// All copies with content.
    pub fn iter(&self) -> impl Iterator<Item = (CopyId, &BlockCopy, StoredBlock)> + '_ {
        let all = self.all.iter().enumerate();
        all.filter_map(|(index, copy)| Some((CopyId::new(index), copy, copy.stored?)))
    }

    /// The cleaner has copied content, which is there twice until the new one is durable.
    pub fn note_moved(&mut self, from: Place, to: &Appended) {
        self.moved_from.insert(to.place, (to.group, from));
    }

    /// All groups up to `durable` are durable.
    pub fn settle(&mut self, durable: u64) {
        self.moved_from.retain(|_, (group, _)| *group > durable);
    }

    /// Where content stands besides, while what the cleaner has made of it is not durable.
    pub fn moved_from(&self, place: Place) -> Option<Place> {
        self.moved_from.get(&place).map(|(_, from)| *from)
    }

    /// The cleaner has moved the content of a copy, with a record of version `recorded`.
    pub fn moved(&mut self, id: CopyId, to: &Appended, recorded: Version) {
        if let Some(stored) = &mut self.all[id.index()].stored {
            (stored.place, stored.recorded) = (to.place, recorded);
            stored.was_read = false;
        }
    }

    /// The backing device has the content of a copy.
    pub fn set_clean(&mut self, id: CopyId) {
        if let Some(stored) = &mut self.all[id.index()].stored {
            stored.dirty = false;
        }
    }

    /// The content of a copy is no longer its own.
    pub fn take_stored(&mut self, id: CopyId) -> Option<StoredBlock> {
        let taken = self.all[id.index()].stored.take();
        self.stored -= u64::from(taken.is_some());
        taken
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use crate::io::executor::Executor;
    use cachewright_policy::Region;

    fn block(number: u64) -> Cached {
        let id = BlockId(number as u32);
        Cached { pool: 0, id, tenant: TenantId(1), number, region: Region::Any }
    }

    #[test]
    fn a_copy_ends_when_its_block_has_left_and_no_procedure_uses_it() {
        let mut copies = Copies::default();
        let [a, b] = [3, 4].map(|number| copies.admit(&block(number), 1));
        copies.hold(a);
        copies.hold(a);
        assert_eq!((copies.find(&block(3)), copies.find(&block(4))), (Some(a), Some(b)));
        assert!(copies.end_unused(b).is_none(), "its block is cached");
        assert_eq!(copies.evict(&block(3), 2), Some(a));
        assert_eq!((copies.find(&block(3)), copies.evict(&block(3), 2)), (None, None));
        assert_eq!(copies.leaving(TenantId(1), 0..9).collect::<Vec<_>>(), [a]);
        assert!(copies.end_unused(a).is_none() && copies.let_go(a).is_none());
        let ended = copies.let_go(a).unwrap();
        assert_eq!((ended.number, ended.admitted, ended.left), (3, 1, 2));
        assert_eq!(copies.leaving(TenantId(1), 0..9).count(), 0);
        assert_eq!(copies.admit(&block(9), 3), a, "the number that became free last");
        assert_eq!(copies.get(a).left, 0);
        assert!(copies.in_use.is_empty());
    }

    #[test]
    fn what_is_fetched_for_a_block_that_has_left_is_not_put_into_the_log_unless_something_needs_it()
    {
        let (mut copies, tasks) = (Copies::default(), Executor::default());
        let [a, b] = [1, 2].map(|number| copies.admit(&block(number), 1));
        for copy in [a, b] {
            copies.hold_for(copy, 1);
            copies.begin_fill(copy, tasks.event());
            assert!(copies.is_filled(copy) && copies.is_changing(copy));
        }
        copies.hold(b);
        copies.need_filled(b);
        assert_eq!([1, 2].map(|number| copies.evict(&block(number), 2)), [Some(a), Some(b)]);
        assert!(!copies.is_filled(a) && copies.is_filled(b));
        assert!(copies.is_in_plan(a, 1) && !copies.is_in_plan(a, 2));
        copies.filling(a).unwrap().set(true);
        assert!(!copies.is_changing(a) && copies.is_changing(b));
    }

    #[test]
    fn a_copy_whose_content_is_lost_is_known_while_its_block_is_cached() {
        let mut copies = Copies::default();
        let a = copies.admit(&block(1), 1);
        copies.set_lost(a, false);
        assert!(copies.in_use.is_empty());
        copies.hold(a);
        copies.set_lost(a, true);
        assert!(copies.let_go(a).is_none() && copies.is_lost(a));
        copies.evict(&block(1), 4);
        assert!(copies.end_unused(a).is_some() && copies.in_use.is_empty());
    }
}
