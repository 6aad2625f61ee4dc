//! Which cached blocks are on the cache device, and until when.
//!
//! A resident begins when the cache admits a block. It ends when the block is evicted and no step
//! pins it: only then may another block take its slot, so that no dirty block is overwritten before
//! it is written back. A resident takes one word, and its name one word per id of the cache. What
//! steps know of it stands in a [`WorkTable`] while steps are under way, or its content is lost.

use crate::step_graph::{ResidentId, SlotId, StepRef};
use cachewright_cache::Cached;
use cachewright_policy::Region;
use std::fmt;

/// A resident by its number and generation: told apart from others of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentRef {
    id: ResidentId,
    generation: u32,
}

/// A resident's generation, or its place in the table of work under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResidentState(u32);

/// All residents.
#[derive(Clone, Debug, Default)]
pub struct ResidentTable {
    /// The resident of each id of the cache.
    names: ResidentNames,
    states: Vec<ResidentState>,
    free: Vec<ResidentId>,
    work: WorkTable,
    /// Residents whose content is lost.
    lost: usize,
}

impl ResidentState {
    const AT_WORK: u32 = 1 << 31;

    fn idle(generation: u32) -> ResidentState {
        ResidentState(generation & !ResidentState::AT_WORK)
    }

    fn at_work(place: u32) -> ResidentState {
        ResidentState(place | ResidentState::AT_WORK)
    }

    /// The place in the table of work under way.
    #[inline]
    fn place(self) -> Option<u32> {
        (self.0 & ResidentState::AT_WORK != 0).then_some(self.0 & !ResidentState::AT_WORK)
    }
}

impl ResidentRef {
    /// Its number.
    pub fn id(self) -> ResidentId {
        self.id
    }
}

impl ResidentTable {
    /// The resident of a block that the cache holds.
    #[inline]
    pub fn find(&self, cached: &Cached) -> Option<ResidentId> {
        self.names.get(cached)
    }

    /// What is under way for a resident, if something is.
    #[inline]
    fn work(&self, id: ResidentId) -> Option<&Work> {
        self.states[id.index()].place().map(|place| self.work.get(place))
    }

    /// What is under way for a resident; begins it.
    #[inline]
    fn work_mut(&mut self, id: ResidentId) -> &mut Work {
        let state = &mut self.states[id.index()];
        let place = state.place().unwrap_or_else(|| {
            let place = self.work.begin(state.0);
            *state = ResidentState::at_work(place);
            place
        });
        self.work.get_mut(place)
    }

    /// A resident's steps.
    #[inline]
    pub fn steps(&self, id: ResidentId) -> &ResidentSteps {
        self.work(id).map_or(&ResidentSteps::DONE, |work| &work.steps)
    }

    /// The steps of a resident that a step pins, to be changed.
    #[inline]
    pub fn steps_mut(&mut self, id: ResidentId) -> &mut ResidentSteps {
        &mut self.work_mut(id).steps
    }

    /// The block's number on its tenant's volume, while a step of a plan touches the resident.
    pub fn number(&self, id: ResidentId) -> Option<u64> {
        self.work(id).and_then(Work::number)
    }

    fn generation(&self, id: ResidentId) -> u32 {
        self.work(id).map_or(self.states[id.index()].0, |work| work.generation)
    }

    /// A resident as it is now.
    pub fn reference(&self, id: ResidentId) -> ResidentRef {
        ResidentRef { id, generation: self.generation(id) }
    }

    /// Whether a resident is still there and not evicted.
    pub fn stays(&self, resident: ResidentRef) -> bool {
        self.generation(resident.id) == resident.generation && !self.is_evicted(resident.id)
    }

    /// Whether the cache has evicted a resident that has not ended.
    #[inline]
    pub fn is_evicted(&self, id: ResidentId) -> bool {
        self.work(id).is_some_and(|work| work.evicted)
    }

    /// Whether the content of any resident is lost.
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Whether the content of a resident is lost.
    #[inline]
    pub fn is_lost(&self, id: ResidentId) -> bool {
        self.work(id).is_some_and(|work| work.lost)
    }

    /// Notes whether the content of a resident that a step touches is lost.
    pub fn set_lost(&mut self, id: ResidentId, lost: bool) {
        let was = std::mem::replace(&mut self.work_mut(id).lost, lost);
        self.lost = self.lost + usize::from(lost) - usize::from(was);
    }

    /// A plan uses a resident, whose block has a number: a step will touch it.
    #[inline]
    pub fn note_plan(&mut self, id: ResidentId, number: u64, plan: u64) {
        let work = self.work_mut(id);
        work.plan = plan;
        work.set_number(number);
    }

    /// A resident's block is written back: a step will touch it.
    pub fn note_number(&mut self, id: ResidentId, number: u64) {
        self.work_mut(id).set_number(number);
    }

    /// Whether a plan uses a resident.
    #[inline]
    pub fn is_in_plan(&self, id: ResidentId, plan: u64) -> bool {
        self.work(id).is_some_and(|work| work.plan == plan)
    }

    /// The cache has admitted a block: its resident begins.
    pub fn admit(&mut self, cached: &Cached) -> ResidentId {
        let id = self.free.pop().unwrap_or_else(|| ResidentId::new(self.states.len()));
        match self.states.get_mut(id.index()) {
            Some(old) => *old = ResidentState::idle(old.0.wrapping_add(1)),
            None => self.states.push(ResidentState::idle(0)),
        }
        self.names.set(cached, id);
        id
    }

    /// The cache has evicted a block; returns its resident, which leaves.
    pub fn evict(&mut self, cached: &Cached) -> Option<ResidentId> {
        let id = self.names.take(cached)?;
        self.work_mut(id).evicted = true;
        Some(id)
    }

    /// A step begins to touch a resident.
    #[inline]
    pub fn pin(&mut self, id: ResidentId) {
        self.work_mut(id).pins += 1;
    }

    /// Steps under way that touch a resident.
    pub fn pins(&self, id: ResidentId) -> u32 {
        self.work(id).map_or(0, |work| work.pins)
    }

    /// A step no longer touches a resident; returns whether that has ended.
    #[inline]
    pub fn unpin(&mut self, id: ResidentId) -> bool {
        let Some(place) = self.states[id.index()].place() else { return false };
        let work = self.work.get_mut(place);
        debug_assert!(work.pins > 0, "a resident is unpinned as often as pinned");
        work.pins -= 1;
        work.pins == 0 && self.settle_at(id, place)
    }

    /// Ends what is under way for a resident that no step touches; returns whether the resident has
    /// ended, as the cache has evicted it.
    #[inline]
    pub fn settle(&mut self, id: ResidentId) -> bool {
        self.states[id.index()].place().is_some_and(|place| self.settle_at(id, place))
    }

    #[inline]
    fn settle_at(&mut self, id: ResidentId, place: u32) -> bool {
        let Work { pins, lost, evicted, generation, .. } = *self.work.get(place);
        if pins > 0 || (lost && !evicted) {
            return false;
        }
        self.lost -= usize::from(lost);
        self.work.end(place);
        self.states[id.index()] = ResidentState::idle(generation.wrapping_add(u32::from(evicted)));
        if evicted {
            self.free.push(id);
        }
        evicted
    }

    /// All numbers of residents, also of those that have ended.
    pub fn ids(&self) -> impl Iterator<Item = ResidentId> + use<> {
        (0..self.states.len()).map(ResidentId::new)
    }

    /// Checks that the residents that stay are those of the `held` blocks that the cache holds.
    /// Errors: the rule broken, in words.
    pub fn audit(&self, held: u64) -> Result<(), String> {
        let mut alive = vec![true; self.states.len()];
        self.free.iter().for_each(|id| alive[id.index()] = false);
        let stays = |id: &ResidentId| alive[id.index()] && !self.is_evicted(*id);
        let staying = self.ids().filter(stays).count() as u64;
        let (known, found) =
            self.names.iter().fold((0, true), |(sum, all), id| (sum + 1, all && stays(&id)));
        if staying != held {
            return Err(format!("{staying} stay, the cache holds {held}"));
        }
        if known != held || !found {
            return Err(format!("{known} blocks have residents of {held}, or one has left"));
        }
        let lost = self.ids().filter(|id| self.is_lost(*id)).count();
        if lost != self.lost {
            return Err(format!("{lost} residents are lost, {} are counted", self.lost));
        }
        let works = self.ids().filter_map(|id| self.work(id));
        let (at_work, needed) = works
            .fold((0, 0), |(all, needed), work| (all + 1, needed + u64::from(work.is_needed())));
        let places = self.work.len() as u64;
        if needed != places || at_work != places {
            return Err(format!("{needed} residents of {at_work} need the {places} lines of work"));
        }
        Ok(())
    }
}

/// The resident of each id that the cache gives a block, by the ids of each pool. Memory: one word
/// per id.
#[derive(Clone, Debug, Default)]
pub struct ResidentNames {
    /// Per pool of the cache.
    pools: Vec<Vec<ResidentId>>,
}

impl ResidentNames {
    /// The resident of a block that the cache holds.
    #[inline]
    pub fn get(&self, cached: &Cached) -> Option<ResidentId> {
        let pool = self.pools.get(usize::from(cached.pool))?;
        pool.get(cached.id.index())?.present()
    }

    /// A block of the cache has a resident from now on.
    #[inline]
    pub fn set(&mut self, cached: &Cached, resident: ResidentId) {
        let pool = usize::from(cached.pool);
        if self.pools.len() <= pool {
            self.pools.resize(pool + 1, Vec::new());
        }
        let ids = &mut self.pools[pool];
        if ids.len() <= cached.id.index() {
            ids.resize(cached.id.index() + 1, ResidentId::NONE);
        }
        ids[cached.id.index()] = resident;
    }

    /// A block leaves the cache: it has no resident any more. Returns that.
    #[inline]
    pub fn take(&mut self, cached: &Cached) -> Option<ResidentId> {
        let pool = self.pools.get_mut(usize::from(cached.pool))?;
        std::mem::replace(pool.get_mut(cached.id.index())?, ResidentId::NONE).present()
    }

    /// All residents of blocks that the cache holds.
    pub fn iter(&self) -> impl Iterator<Item = ResidentId> + '_ {
        self.pools.iter().flatten().filter_map(|id| id.present())
    }
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

impl ResidentSteps {
    /// Nothing is under way.
    pub const DONE: ResidentSteps = ResidentSteps {
        slot_granted: StepRef::DONE,
        fetch: StepRef::DONE,
        fill: StepRef::DONE,
        writer: StepRef::DONE,
    };
}

/// What is under way for one resident.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Work {
    pub steps: ResidentSteps,
    /// The block's number on its tenant's volume, once a plan has named it.
    number: u64,
    /// The last plan that uses it.
    pub plan: u64,
    /// Steps under way that touch it.
    pub pins: u32,
    /// The resident's.
    pub generation: u32,
    is_numbered: bool,
    /// The cache has evicted it.
    pub evicted: bool,
    /// A step that was to bring its content has failed.
    pub lost: bool,
}

impl Work {
    /// None of a resident of this generation.
    fn new(generation: u32) -> Work {
        Work {
            steps: ResidentSteps::DONE,
            number: 0,
            plan: 0,
            pins: 0,
            generation,
            is_numbered: false,
            evicted: false,
            lost: false,
        }
    }

    /// The block's number on its tenant's volume; nothing if no plan has named it.
    pub fn number(&self) -> Option<u64> {
        self.is_numbered.then_some(self.number)
    }

    /// A plan names the block.
    pub fn set_number(&mut self, number: u64) {
        (self.number, self.is_numbered) = (number, true);
    }

    /// Whether a step touches the resident, or its content is lost.
    pub fn is_needed(&self) -> bool {
        self.pins > 0 || self.lost
    }
}

/// The residents with steps under way, by a place that each keeps meanwhile: a line of a
/// processor's cache each, out of a table as large as the most of them at once.
#[derive(Clone, Debug, Default)]
pub struct WorkTable {
    all: Vec<Work>,
    free: Vec<u32>,
}

impl WorkTable {
    /// A place for a resident of this generation, for which nothing is under way.
    #[inline]
    pub fn begin(&mut self, generation: u32) -> u32 {
        let work = Work::new(generation);
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = work;
            return place;
        }
        self.all.push(work);
        self.all.len() as u32 - 1
    }

    /// Gives a place back.
    #[inline]
    pub fn end(&mut self, place: u32) {
        self.free.push(place);
    }

    /// What is under way in a place.
    #[inline]
    pub fn get(&self, place: u32) -> &Work {
        &self.all[place as usize]
    }

    /// What is under way in a place, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> &mut Work {
        &mut self.all[place as usize]
    }

    /// Residents with a place.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

/// Gives places to residents and takes them back: the part of a cache device that steps do not
/// decide. A simulator has slots in regions; a store appends to a log.
pub trait Placement {
    /// What it does beside plans, as steps of its own; an empty type where it does nothing.
    type Action: Copy + fmt::Debug;

    /// A resident of a block begins, with a slot if there is one for it, else in the queue for a
    /// slot. Numbers of residents come without a gap.
    fn admit(&mut self, residents: &ResidentTable, id: ResidentId, cached: &Cached);

    /// The slot of a resident; nothing while it waits for one.
    fn slot(&self, id: ResidentId) -> Option<SlotId>;

    /// Whether a resident may lie in another slot when a step begins that is made now.
    fn is_moving(&self, id: ResidentId) -> bool;

    /// The cache has evicted a resident, whose slot is still in use.
    fn leave(&mut self, id: ResidentId);

    /// An evicted resident no longer uses its slot; the residents that get slots for it are added
    /// to `granted`.
    fn end(&mut self, id: ResidentId, granted: &mut Vec<ResidentId>);

    /// A resident that waited has a slot now.
    fn on_granted(&mut self, residents: &ResidentTable, id: ResidentId);

    /// The policy prefers a region for a resident from now on.
    fn prefer(&mut self, residents: &ResidentTable, id: ResidentId, preferred: Region);

    /// The policy exchanges two blocks between regions: their residents, if they have some, and the
    /// regions that it prefers from now on.
    fn swap(&mut self, residents: &ResidentTable, pair: [(Option<ResidentId>, Region); 2]);

    /// The step created as number `serial` no longer touches a resident; returns a step that was
    /// held back for it and that may begin now.
    fn end_step(&mut self, id: ResidentId, serial: u64) -> Option<StepRef>;
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!((all.number(again), all.is_evicted(again)), (None, false));
    }

    #[test]
    fn a_resident_without_steps_takes_two_words() {
        let mut all = ResidentTable::default();
        let residents: Vec<ResidentId> = (0..1000).map(|id| all.admit(&block(id))).collect();
        let before: Vec<ResidentRef> = residents.iter().map(|id| all.reference(*id)).collect();
        for id in &residents {
            all.note_plan(*id, 9, 1);
            all.pin(*id);
            assert_eq!(
                (all.number(*id), all.is_in_plan(*id, 1), all.pins(*id)),
                (Some(9), true, 1)
            );
            assert!(!all.unpin(*id), "it stays");
            assert_eq!((all.number(*id), all.is_in_plan(*id, 1), all.pins(*id)), (None, false, 0));
        }
        assert_eq!(all.work.len(), 0, "one line for all of them");
        assert_eq!(size_of::<ResidentState>() + size_of::<ResidentId>(), 8);
        assert!(before.iter().all(|resident| all.stays(*resident)), "work is no new stay");
    }

    #[test]
    fn lost_content_is_known_until_the_resident_ends_or_is_written() {
        let mut all = ResidentTable::default();
        let ids = [0, 1].map(|id| all.admit(&block(id)));
        for id in ids {
            all.pin(id);
            all.set_lost(id, true);
            assert!(!all.unpin(id) && all.is_lost(id), "no step is under way");
        }
        assert_eq!(all.audit(2), Ok(()));
        all.pin(ids[0]);
        all.set_lost(ids[0], false);
        assert!(!all.unpin(ids[0]) && !all.is_lost(ids[0]));
        assert_eq!(all.evict(&block(1)), Some(ids[1]));
        assert!(all.settle(ids[1]));
        assert_eq!((all.is_lost(ids[1]), all.work.len(), all.audit(1)), (false, 0, Ok(())));
    }

    /// Blocks 0, 1 and 2; the last is evicted while a step touches it.
    #[test]
    fn the_audit_finds_names_counts_and_lines_of_work_that_are_wrong() {
        let mut good = ResidentTable::default();
        let ids = [0, 1, 2].map(|id| good.admit(&block(id)));
        good.pin(ids[2]);
        good.evict(&block(2));
        assert_eq!((good.audit(2), good.has_lost()), (Ok(()), false));
        let found = |wrong: fn(&mut ResidentTable, ResidentId)| {
            let mut table = good.clone();
            wrong(&mut table, ids[2]);
            table.audit(2).unwrap_err()
        };
        let nameless =
            |table: &mut ResidentTable, _| assert!(table.names.take(&block(0)).is_some());
        assert_eq!(found(nameless), "1 blocks have residents of 2, or one has left");
        let gone = |table: &mut ResidentTable, gone| table.names.set(&block(0), gone);
        assert_eq!(found(gone), "2 blocks have residents of 2, or one has left");
        let lost = |table: &mut ResidentTable, _| table.lost += 1;
        assert_eq!(found(lost), "0 residents are lost, 1 are counted");
        let idle = |table: &mut ResidentTable, _| table.work_mut(ResidentId::new(0)).pins = 0;
        assert_eq!(found(idle), "1 residents of 2 need the 2 lines of work");
        let unknown = |table: &mut ResidentTable, _| assert_eq!(table.work.begin(0), 1);
        assert_eq!(found(unknown), "1 residents of 1 need the 2 lines of work");
        let mut lost = good.clone();
        lost.set_lost(ids[2], true);
        assert!(lost.has_lost() && lost.unpin(ids[2]) && !lost.has_lost());
    }

    #[test]
    fn a_place_that_was_given_back_is_the_next_and_knows_nothing() {
        let mut table = WorkTable::default();
        let places = [7, 8].map(|generation| table.begin(generation));
        table.get_mut(places[0]).set_number(3);
        table.get_mut(places[0]).pins += 1;
        assert_eq!((table.get(places[0]).number(), table.get(places[1]).number()), (Some(3), None));
        table.end(places[0]);
        assert_eq!(table.len(), 1);
        assert_eq!(table.begin(9), places[0]);
        let fresh = table.get(places[0]);
        assert_eq!((fresh.number(), fresh.generation, fresh.is_needed()), (None, 9, false));
        assert_eq!(size_of::<Work>(), 64);
    }
}
