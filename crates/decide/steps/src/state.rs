//! What the commands of plans change.
//!
//! For: the verbs that touch several tables at once: residents with their slots and steps. Must
//! never know: moves of plans, devices, time.

use crate::backings::Backings;
use crate::ids::{RequestId, ResidentId};
use crate::open_requests::OpenRequests;
use crate::placement::Placement;
use crate::resident_table::ResidentTable;
use crate::step::Step;
use crate::step_graph::{StepGraph, StepRef};
use cachewright_cache::Cached;

/// Steps of a placement's kind.
pub type Graph<P, N> = StepGraph<Step<<P as Placement>::Action>, N>;

/// All that is under way.
pub struct StepState<P: Placement, N> {
    /// Steps under way.
    pub graph: Graph<P, N>,
    /// Blocks on the cache device.
    pub residents: ResidentTable,
    /// Where they lie.
    pub placement: P,
    /// Requests under way.
    pub requests: OpenRequests<N>,
    /// Writes and trims of backing devices.
    pub backings: Backings,
}

impl<P: Placement, N: Copy + Default> StepState<P, N> {
    /// Adds a step and pins its residents; its request comes with the note until now.
    pub fn add(&mut self, step: Step<P::Action>, request: Option<(RequestId, &N)>) -> StepRef {
        step.pins.iter().for_each(|resident| self.residents.pin(*resident));
        self.graph.add(step, request)
    }

    /// A resident for a block that the cache admits.
    pub fn admit(&mut self, cached: &Cached) -> ResidentId {
        let id = self.residents.admit(cached);
        self.placement.admit(&self.residents, id, cached.tenant, cached.region);
        id
    }

    /// The cache has evicted a block; returns its resident, which leaves.
    pub fn evict(&mut self, cached: &Cached) -> Option<ResidentId> {
        let id = self.residents.evict(cached)?;
        self.placement.leave(id);
        Some(id)
    }

    /// A step no longer touches a resident.
    pub fn unpin(&mut self, id: ResidentId) {
        if self.residents.unpin(id) {
            self.end(id);
        }
    }

    /// Ends a resident if it was evicted and no step touches it.
    pub fn settle(&mut self, id: ResidentId) {
        if self.residents.settle(id) {
            self.end(id);
        }
    }

    fn end(&mut self, id: ResidentId) {
        let granted = self.placement.end(id);
        self.on_granted(granted);
    }

    /// Residents that waited have slots now.
    pub fn on_granted(&mut self, granted: Vec<ResidentId>) {
        for id in granted {
            let step = self.residents.steps(id).slot_granted;
            if !self.graph.is_done(step) {
                self.graph.release(step);
            }
            self.placement.on_granted(&self.residents, id);
        }
    }
}
