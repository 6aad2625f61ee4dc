//! Where residents get their places: the part of a cache device that steps do not decide.
//!
//! For: a simulator with slots in regions, and a store that appends to a log. Must never know:
//! requests, devices, time. Units: blocks.

use crate::ids::{ResidentId, SlotId};
use crate::resident_table::ResidentTable;
use crate::step_graph::StepRef;
use cachewright_cache::Cached;
use cachewright_policy::Region;
use std::fmt;

/// Gives places to residents and takes them back.
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
