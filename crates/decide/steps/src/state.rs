//! What the commands of plans change.
//!
//! For: the verbs that touch several tables at once: residents with their slots and steps. Must
//! never know: moves of plans, devices, time.

use crate::backings::Backings;
use crate::ids::{RequestId, ResidentId};
use crate::leaving::Leaving;
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
    /// Residents that an end gives slots; kept for its memory.
    pub(crate) granted: Vec<ResidentId>,
    /// Blocks that have left and are not yet on their backing devices.
    pub leaving: Leaving,
}

impl<P: Placement, N: Copy + Default> StepState<P, N> {
    /// Adds a step and pins its residents; the step of a request begins with the request's note.
    pub fn add(&mut self, step: Step<P::Action>, request: Option<RequestId>) -> StepRef {
        step.pins.iter().for_each(|resident| self.residents.pin(*resident));
        self.graph.add(step, request.map(|id| (id, self.requests.note(id))))
    }

    /// A resident for a block that the cache admits.
    pub fn admit(&mut self, cached: &Cached) -> ResidentId {
        let id = self.residents.admit(cached);
        self.placement.admit(&self.residents, id, cached);
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
        let StepState { graph, residents, placement, granted, .. } = self;
        placement.end(id, granted);
        for id in granted.drain(..) {
            grant(graph, residents, placement, id);
        }
    }

    /// Residents that waited have slots now.
    pub fn on_granted(&mut self, granted: &[ResidentId]) {
        let StepState { graph, residents, placement, .. } = self;
        granted.iter().for_each(|id| grant(graph, residents, placement, *id));
    }
}

/// A resident that waited has a slot now.
fn grant<P: Placement, N: Copy + Default>(
    graph: &mut Graph<P, N>,
    residents: &ResidentTable,
    placement: &mut P,
    id: ResidentId,
) {
    let step = residents.steps(id).slot_granted;
    if !graph.is_done(step) {
        graph.release(step);
    }
    placement.on_granted(residents, id);
}
