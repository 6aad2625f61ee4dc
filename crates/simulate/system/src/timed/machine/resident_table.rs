//! Which cached blocks are on the cache device, and until when.
//!
//! For: the life of a resident. Must never know: devices, time, requests, which slot is whose. A
//! resident begins when the cache admits a block. It ends when the block is evicted and no step
//! pins it: only then may another block take its slot, so that no dirty block is overwritten before
//! it is written back.

use super::ids::ResidentId;
use super::places::Places;
use super::slots::Slots;
use super::step_graph::StepRef;
use cachewright_cache::Cached;

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

/// One block's stay on the cache device.
#[derive(Clone, Copy, Debug)]
struct Resident {
    steps: ResidentSteps,
    /// Steps under way that touch it.
    pins: u32,
    generation: u32,
    /// The last plan that uses it.
    plan: u64,
}

/// All residents.
#[derive(Clone, Debug)]
pub struct ResidentTable {
    /// The resident of each id, per pool of the cache.
    of_id: Vec<Vec<ResidentId>>,
    all: Vec<Resident>,
    free: Vec<ResidentId>,
    places: Places,
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
    /// An empty cache device.
    pub fn new(slots: Slots) -> ResidentTable {
        let (of_id, all, free) = (Vec::new(), Vec::new(), Vec::new());
        ResidentTable { of_id, all, free, places: Places::new(slots) }
    }

    /// Where residents lie.
    #[inline]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Where residents lie, to be changed.
    #[inline]
    pub fn places_mut(&mut self) -> &mut Places {
        &mut self.places
    }

    /// The resident of a block that the cache holds.
    pub fn find(&self, cached: &Cached) -> Option<ResidentId> {
        let pool = self.of_id.get(usize::from(cached.pool))?;
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

    /// A resident as it is now.
    pub fn reference(&self, id: ResidentId) -> ResidentRef {
        ResidentRef { id, generation: self.all[id.index()].generation }
    }

    /// Whether a number still stands for the same resident, evicted or not.
    fn is_current(&self, resident: ResidentRef) -> bool {
        self.all[resident.id.index()].generation == resident.generation
    }

    /// Whether a resident is still there and not evicted.
    pub fn stays(&self, resident: ResidentRef) -> bool {
        self.is_current(resident) && !self.places.get(resident.id).is_leaving()
    }

    /// Notes that a plan uses a resident.
    pub fn note_plan(&mut self, id: ResidentId, plan: u64) {
        self.all[id.index()].plan = plan;
    }

    /// Whether a plan uses a resident.
    pub fn is_in_plan(&self, id: ResidentId, plan: u64) -> bool {
        self.all[id.index()].plan == plan
    }

    /// The cache has admitted a block: its resident begins, with a slot or in the queue for one.
    pub fn admit(&mut self, cached: &Cached) -> ResidentId {
        let id = self.free.pop().unwrap_or_else(|| ResidentId::new(self.all.len()));
        let fresh = Resident { steps: ResidentSteps::DONE, pins: 0, generation: 0, plan: 0 };
        match self.all.get_mut(id.index()) {
            Some(old) => *old = Resident { generation: old.generation.wrapping_add(1), ..fresh },
            None => self.all.push(fresh),
        }
        self.places.admit(id, cached.tenant, cached.region);
        let pool = usize::from(cached.pool);
        if self.of_id.len() <= pool {
            self.of_id.resize(pool + 1, Vec::new());
        }
        let ids = &mut self.of_id[pool];
        if ids.len() <= cached.id.index() {
            ids.resize(cached.id.index() + 1, ResidentId::NONE);
        }
        ids[cached.id.index()] = id;
        id
    }

    /// The cache has evicted a block; returns its resident, which leaves.
    pub fn evict(&mut self, cached: &Cached) -> Option<ResidentId> {
        let id = self.find(cached)?;
        self.of_id[usize::from(cached.pool)][cached.id.index()] = ResidentId::NONE;
        self.places.leave(id);
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

    /// A step no longer touches a resident; returns those that get slots for it.
    pub fn unpin(&mut self, id: ResidentId) -> Vec<ResidentId> {
        let resident = &mut self.all[id.index()];
        debug_assert!(resident.pins > 0, "a resident is unpinned as often as pinned");
        resident.pins -= 1;
        self.settle(id)
    }

    /// Ends a resident that was evicted and that no step touches; returns those that get slots for
    /// it.
    pub fn settle(&mut self, id: ResidentId) -> Vec<ResidentId> {
        let resident = &mut self.all[id.index()];
        if resident.pins > 0 || !self.places.get(id).is_leaving() {
            return Vec::new();
        }
        resident.generation = resident.generation.wrapping_add(1);
        self.free.push(id);
        self.places.end(id)
    }

    /// All numbers of residents, also of those that have ended.
    pub fn ids(&self) -> impl Iterator<Item = ResidentId> + use<> {
        (0..self.all.len()).map(ResidentId::new)
    }

    /// Checks the places, and that the residents that stay are those of the `held` blocks that the
    /// cache holds. Errors: the rule broken, in words.
    pub fn audit(&self, held: u64) -> Result<(), String> {
        self.places.audit()?;
        let mut alive = vec![true; self.all.len()];
        self.free.iter().for_each(|id| alive[id.index()] = false);
        let stays = |id: &ResidentId| alive[id.index()] && !self.places.get(*id).is_leaving();
        let staying = self.ids().filter(stays).count() as u64;
        let named = self.of_id.iter().flatten().filter_map(|id| id.present());
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
    use super::super::ids::SlotId;
    use super::*;
    use cachewright_policy::Region;
    use cachewright_types::{BlockId, TenantId};

    fn block(id: u32) -> Cached {
        let (id, number) = (BlockId(id), u64::from(id));
        Cached { pool: 0, id, tenant: TenantId(0), number, region: Region::Any }
    }

    #[test]
    fn a_slot_is_not_given_out_again_before_its_block_is_gone() {
        let mut all = ResidentTable::new(Slots::plain(2));
        let (a, b) = (all.admit(&block(0)), all.admit(&block(1)));
        let slot = |all: &ResidentTable, id| all.places().get(id).slot();
        assert_eq!((slot(&all, a), slot(&all, b)), (Some(SlotId(0)), Some(SlotId(1))));
        all.pin(a);
        let before = all.reference(a);
        assert_eq!(all.evict(&block(0)), Some(a));
        assert!(all.settle(a).is_empty(), "a step is under way");
        assert!(all.is_current(before) && !all.stays(before));
        let c = all.admit(&block(2));
        assert_eq!((slot(&all, c), all.find(&block(0))), (None, None));
        assert_eq!(all.audit(2), Ok(()));
        assert_eq!(all.unpin(a), [c]);
        assert_eq!(slot(&all, c), Some(SlotId(0)));
        assert_eq!(all.audit(2), Ok(()));
        assert!(all.audit(3).is_err());
        assert_eq!(all.evict(&block(9)), None);
        let again = all.admit(&block(3));
        assert_eq!((again, all.is_current(before)), (a, false), "another one of that number");
    }
}
