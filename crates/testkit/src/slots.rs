//! A cache device of slots in order, for steps that are carried out at once.

use cachewright_cache::Cached;
use cachewright_policy::Region;
use cachewright_steps::{Placement, ResidentId, ResidentTable, SlotId, StepRef};
use std::collections::{BTreeSet, VecDeque};

/// What such a placement does by itself: nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}

/// Slots given out from the first on, and a queue for them.
#[derive(Debug, Default)]
pub struct SlotList {
    free: BTreeSet<u32>,
    slots: Vec<Option<SlotId>>,
    waiting: VecDeque<ResidentId>,
}

impl SlotList {
    pub fn new(count: u32) -> SlotList {
        SlotList { free: (0..count).collect(), ..SlotList::default() }
    }

    /// Every slot is free or one resident's. Panics otherwise.
    pub fn audit(&self, count: usize) {
        let held: Vec<u32> = self.slots.iter().flatten().map(|slot| slot.0).collect();
        let all: BTreeSet<u32> = held.iter().chain(&self.free).copied().collect();
        assert_eq!((all.len(), held.len() + self.free.len()), (count, count));
    }
}

impl Placement for SlotList {
    type Action = Never;

    fn admit(&mut self, _: &ResidentTable, id: ResidentId, _: &Cached) {
        let slot = if self.waiting.is_empty() { self.free.pop_first() } else { None };
        if self.slots.len() <= id.index() {
            self.slots.resize(id.index() + 1, None);
        }
        self.slots[id.index()] = slot.map(SlotId);
        if slot.is_none() {
            self.waiting.push_back(id);
        }
    }

    fn slot(&self, id: ResidentId) -> Option<SlotId> {
        self.slots[id.index()]
    }

    fn is_moving(&self, _: ResidentId) -> bool {
        false
    }

    fn leave(&mut self, _: ResidentId) {}

    fn end(&mut self, id: ResidentId, granted: &mut Vec<ResidentId>) {
        let Some(slot) = self.slots[id.index()].take() else { return };
        match self.waiting.pop_front() {
            Some(next) => {
                self.slots[next.index()] = Some(slot);
                granted.push(next);
            }
            None => {
                self.free.insert(slot.0);
            }
        }
    }

    fn on_granted(&mut self, _: &ResidentTable, _: ResidentId) {}

    fn prefer(&mut self, _: &ResidentTable, _: ResidentId, _: Region) {}

    fn swap(&mut self, _: &ResidentTable, _: [(Option<ResidentId>, Region); 2]) {}

    fn end_step(&mut self, _: ResidentId, _: u64) -> Option<StepRef> {
        None
    }
}
