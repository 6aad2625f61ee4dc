//! Which cached blocks are on the cache device, and until when.
//!
//! For: the life of a resident. Must never know: devices, time, requests, which slot is whose. A
//! resident begins when the cache admits a block. It ends when the block is evicted and no step
//! pins it: only then may another block take its slot, so that no dirty block is overwritten before
//! it is written back.

use crate::ids::ResidentId;
use crate::step_graph::StepRef;
use cachewright_cache::Cached;
use cachewright_types::BlockId;

/// A resident by its number and generation: told apart from others of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentRef {
    id: ResidentId,
    generation: u32,
}

/// The steps of a resident for which others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentSteps {
    /// The step that waits for its slot.
    pub slot_granted: StepRef,
    /// The step that reads it from the backing device.
    pub fetch: StepRef,
    /// The step that puts it on the cache device.
    pub fill: StepRef,
    /// The last step that writes to it.
    pub writer: StepRef,
}

/// One block's stay on the cache device; a line of a processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Resident {
    steps: ResidentSteps,
    /// The block's number on its tenant's volume.
    number: u64,
    /// The last plan that uses it.
    plan: u64,
    /// Steps under way that touch it.
    pins: u32,
    generation: u32,
    /// The cache has evicted it.
    evicted: bool,
    /// A step that was to bring its content has failed.
    lost: bool,
}

/// All residents.
#[derive(Clone, Debug, Default)]
pub struct ResidentTable {
    /// The resident of each id, per pool of the cache.
    by_id: Vec<Vec<ResidentId>>,
    all: Vec<Resident>,
    free: Vec<ResidentId>,
}

impl ResidentRef {
    /// Its number.
    pub fn id(self) -> ResidentId {
        self.id
    }
}

impl ResidentSteps {
    /// Nothing was ever under way.
    pub const DONE: ResidentSteps = ResidentSteps {
        slot_granted: StepRef::DONE,
        fetch: StepRef::DONE,
        fill: StepRef::DONE,
        writer: StepRef::DONE,
    };
}

impl ResidentTable {
    /// The resident of a block that the cache holds.
    pub fn find(&self, cached: &Cached) -> Option<ResidentId> {
        let pool = self.by_id.get(usize::from(cached.pool))?;
        pool.get(cached.id.index())?.present()
    }

    /// A resident's steps.
    #[inline]
    pub fn steps(&self, id: ResidentId) -> &ResidentSteps {
        &self.all[id.index()].steps
    }

    /// A resident's steps, to be changed.
    #[inline]
    pub fn steps_mut(&mut self, id: ResidentId) -> &mut ResidentSteps {
        &mut self.all[id.index()].steps
    }

    /// The block's number on its tenant's volume.
    pub fn number(&self, id: ResidentId) -> u64 {
        self.all[id.index()].number
    }

    /// A resident as it is now.
    pub fn reference(&self, id: ResidentId) -> ResidentRef {
        ResidentRef { id, generation: self.all[id.index()].generation }
    }

    /// Whether a resident is still there and not evicted.
    pub fn stays(&self, resident: ResidentRef) -> bool {
        let known = &self.all[resident.id.index()];
        known.generation == resident.generation && !known.evicted
    }

    /// Whether the cache has evicted a resident that has not ended.
    pub fn is_evicted(&self, id: ResidentId) -> bool {
        self.all[id.index()].evicted
    }

    /// Whether the content of a resident is lost.
    pub fn is_lost(&self, id: ResidentId) -> bool {
        self.all[id.index()].lost
    }

    /// Notes whether the content of a resident is lost.
    pub fn set_lost(&mut self, id: ResidentId, lost: bool) {
        self.all[id.index()].lost = lost;
    }

    /// Notes that a plan uses a resident.
    pub fn note_plan(&mut self, id: ResidentId, plan: u64) {
        self.all[id.index()].plan = plan;
    }

    /// Whether a plan uses a resident.
    pub fn is_in_plan(&self, id: ResidentId, plan: u64) -> bool {
        self.all[id.index()].plan == plan
    }

    /// The cache has admitted a block: its resident begins.
    pub fn admit(&mut self, cached: &Cached) -> ResidentId {
        let id = self.free.pop().unwrap_or_else(|| ResidentId::new(self.all.len()));
        let fresh = Resident {
            steps: ResidentSteps::DONE,
            number: cached.number,
            plan: 0,
            pins: 0,
            generation: 0,
            evicted: false,
            lost: false,
        };
        match self.all.get_mut(id.index()) {
            Some(old) => *old = Resident { generation: old.generation.wrapping_add(1), ..fresh },
            None => self.all.push(fresh),
        }
        self.name(cached, id);
        id
    }

    /// Notes the resident of a block that the cache holds.
    fn name(&mut self, cached: &Cached, id: ResidentId) {
        let pool = usize::from(cached.pool);
        if self.by_id.len() <= pool {
            self.by_id.resize(pool + 1, Vec::new());
        }
        let ids = &mut self.by_id[pool];
        if ids.len() <= cached.id.index() {
            ids.resize(cached.id.index() + 1, ResidentId::NONE);
        }
        ids[cached.id.index()] = id;
    }

    /// Blocks of a pool have new ids: pairs of an old one and a new one that is not higher, both in
    /// ascending order. All blocks that the cache holds in the pool are among them.
    pub fn rename(&mut self, pool: usize, pairs: &[(BlockId, BlockId)]) {
        let Some(ids) = self.by_id.get_mut(pool) else { return };
        let mut kept = 0;
        for (old, new) in pairs {
            debug_assert!(new <= old, "ids are given anew from the lowest on");
            let resident =
                ids.get_mut(old.index()).map(|id| std::mem::replace(id, ResidentId::NONE));
            if let Some(resident) = resident {
                ids[new.index()] = resident;
                kept = new.index() + 1;
            }
        }
        debug_assert!(ids[kept..].iter().all(|id| *id == ResidentId::NONE), "blocks without ids");
        ids.truncate(kept);
        ids.shrink_to_fit();
    }

    /// The cache has evicted a block; returns its resident, which leaves.
    pub fn evict(&mut self, cached: &Cached) -> Option<ResidentId> {
        let id = self.find(cached)?;
        self.by_id[usize::from(cached.pool)][cached.id.index()] = ResidentId::NONE;
        self.all[id.index()].evicted = true;
        Some(id)
    }

    /// A step begins to touch a resident.
    #[inline]
    pub fn pin(&mut self, id: ResidentId) {
        self.all[id.index()].pins += 1;
    }

    /// Steps under way that touch a resident.
    pub fn pins(&self, id: ResidentId) -> u32 {
        self.all[id.index()].pins
    }

    /// A step no longer touches a resident; returns whether that has ended.
    pub fn unpin(&mut self, id: ResidentId) -> bool {
        let resident = &mut self.all[id.index()];
        debug_assert!(resident.pins > 0, "a resident is unpinned as often as pinned");
        resident.pins -= 1;
        self.settle(id)
    }

    /// Ends a resident if it was evicted and no step touches it; returns whether it has ended.
    pub fn settle(&mut self, id: ResidentId) -> bool {
        let resident = &mut self.all[id.index()];
        if resident.pins > 0 || !resident.evicted {
            return false;
        }
        resident.generation = resident.generation.wrapping_add(1);
        resident.evicted = false;
        self.free.push(id);
        true
    }

    /// All numbers of residents, also of those that have ended.
    pub fn ids(&self) -> impl Iterator<Item = ResidentId> + use<> {
        (0..self.all.len()).map(ResidentId::new)
    }

    /// Checks that the residents that stay are those of the `held` blocks that the cache holds.
    /// Errors: the rule broken, in words.
    pub fn audit(&self, held: u64) -> Result<(), String> {
        let mut alive = vec![true; self.all.len()];
        self.free.iter().for_each(|id| alive[id.index()] = false);
        let stays = |id: &ResidentId| alive[id.index()] && !self.all[id.index()].evicted;
        let staying = self.ids().filter(stays).count() as u64;
        let named = self.by_id.iter().flatten().filter_map(|id| id.present());
        let (known, found) = named.fold((0, true), |(sum, all), id| (sum + 1, all && stays(&id)));
        if staying != held {
            return Err(format!("{staying} stay, the cache holds {held}"));
        }
        if known != held || !found {
            return Err(format!("{known} blocks have residents of {held}, or one has left"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_policy::Region;
    use cachewright_types::{BlockId, TenantId};

    fn block(id: u32) -> Cached {
        let (id, number) = (BlockId(id), u64::from(id));
        Cached { pool: 0, id, tenant: TenantId(0), number, region: Region::Any }
    }

    #[test]
    fn a_resident_ends_when_it_is_evicted_and_no_step_touches_it() {
        let mut all = ResidentTable::default();
        let (a, b) = (all.admit(&block(0)), all.admit(&block(1)));
        all.pin(a);
        let before = all.reference(a);
        assert!(all.stays(before));
        assert_eq!(all.evict(&block(0)), Some(a));
        assert!(!all.settle(a) && all.is_evicted(a), "a step is under way");
        assert!(!all.stays(before));
        let c = all.admit(&block(2));
        assert!(c != a && c != b && all.find(&block(0)).is_none());
        assert_eq!(all.audit(2), Ok(()));
        assert!(all.unpin(a));
        assert_eq!(all.audit(2), Ok(()));
        assert!(all.audit(3).is_err());
        assert_eq!(all.evict(&block(9)), None);
        let again = all.admit(&block(3));
        assert_eq!((again, all.stays(before)), (a, false), "another one of that number");
        assert_eq!((all.number(again), all.is_evicted(again)), (3, false));
    }
}
