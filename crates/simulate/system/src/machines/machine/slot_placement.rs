//! The slots of a cache device as the placement of its residents.
//!
//! For: slots with regions, and blocks that change places, behind the steps of plans. Must never
//! know: plans, devices, time.

use super::ids::{ResidentId, SlotId};
use super::mover::Mover;
use super::placement_steps::{MachineStepGraph, PlacementAction};
use super::places::ResidentPlaces;
use super::slots::Slots;
use cachewright_cache::Cached;
use cachewright_policy::Region;
use cachewright_steps::{Placement, ResidentTable, StepRef, StepState};

/// Slots, and the blocks that change places among them.
#[derive(Clone, Debug)]
pub struct SlotPlacement {
    places: ResidentPlaces,
    mover: Mover,
}

impl SlotPlacement {
    /// Empty slots; at most `swap_depth` changes of places at once of blocks of `1 << block_shift`
    /// bytes.
    pub fn new(slots: Slots, swap_depth: u32, block_shift: u32) -> SlotPlacement {
        SlotPlacement {
            places: ResidentPlaces::new(slots),
            mover: Mover::new(swap_depth, block_shift),
        }
    }

    /// Where residents lie.
    pub fn places(&self) -> &ResidentPlaces {
        &self.places
    }

    /// Where residents lie, to be changed.
    pub fn places_mut(&mut self) -> &mut ResidentPlaces {
        &mut self.places
    }

    /// Blocks that change places.
    pub fn mover(&self) -> &Mover {
        &self.mover
    }

    /// Begins the changes of places that may begin; returns whether any did.
    pub fn begin_changes<N: Copy + Default>(
        &mut self,
        graph: &mut MachineStepGraph<N>,
        residents: &mut ResidentTable,
    ) -> bool {
        self.mover.begin_changes(graph, residents, &mut self.places)
    }

    /// Notes a block if it is misplaced, to be moved when it may.
    fn note_misplaced(&mut self, residents: &ResidentTable, id: ResidentId) {
        self.mover.note_misplaced(&self.places, residents, id);
    }

    /// Notes all misplaced blocks.
    pub fn note_all_misplaced(&mut self, residents: &ResidentTable) {
        residents.ids().for_each(|id| self.note_misplaced(residents, id));
    }

    /// Checks slots and changes. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.places.audit()?;
        self.mover.audit()
    }
}

/// Carries out a step of the placement.
pub fn perform<N: Copy + Default>(
    state: &mut StepState<SlotPlacement, N>,
    action: PlacementAction,
) {
    let SlotPlacement { places, mover } = &mut state.placement;
    match action {
        PlacementAction::Exchange(change) => mover.exchange(places, change),
        PlacementAction::EndChange(change) => {
            let mut granted = Vec::new();
            for id in mover.end_change(places, change) {
                granted.clear();
                state.placement.places.end_change(id, &mut granted);
                state.on_granted(&granted);
                state.placement.note_misplaced(&state.residents, id);
            }
        }
    }
}

impl Placement for SlotPlacement {
    type Action = PlacementAction;

    fn admit(&mut self, residents: &ResidentTable, id: ResidentId, cached: &Cached) {
        self.places.admit(id, cached.tenant, cached.region);
        self.note_misplaced(residents, id);
    }

    #[inline]
    fn slot(&self, id: ResidentId) -> Option<SlotId> {
        self.places.get(id).slot()
    }

    fn is_moving(&self, id: ResidentId) -> bool {
        self.places.get(id).change().is_some()
    }

    fn leave(&mut self, id: ResidentId) {
        self.places.leave(id);
    }

    fn end(&mut self, id: ResidentId, granted: &mut Vec<ResidentId>) {
        self.places.end(id, granted);
    }

    fn on_granted(&mut self, residents: &ResidentTable, id: ResidentId) {
        self.note_misplaced(residents, id);
    }

    fn prefer(&mut self, residents: &ResidentTable, id: ResidentId, preferred: Region) {
        if self.places.set_preferred(id, preferred) {
            self.note_misplaced(residents, id);
        }
    }

    fn swap(&mut self, residents: &ResidentTable, pair: [(Option<ResidentId>, Region); 2]) {
        self.mover.swap(&mut self.places, residents, pair);
    }

    fn end_step(&mut self, id: ResidentId, serial: u64) -> Option<StepRef> {
        self.mover.end_step(&self.places, id, serial)
    }
}
