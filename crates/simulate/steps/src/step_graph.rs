//! Steps that wait for each other.
//!
//! A step is ready when it is released and everything it waits for is done. Steps that wait for the
//! same step become ready in the order in which they began to wait. A step that needs another one,
//! and not only its order, fails with it. A step pins every resident it touches until it is done.
//! Everything is in slabs: no allocation per step once the slabs have grown.

use cachewright_types::{Op, TenantId};
use std::collections::VecDeque;
use std::ops::Deref;

cachewright_types::index_ids! {
    /// A slot: the place of one block on the cache device.
    SlotId,
    /// A block's stay on the cache device; used again when it is over.
    ResidentId,
    /// A step under way; used again when it is done.
    StepId,
    /// A request under way; used again when it is answered.
    RequestId,
    /// A device: the cache device, then the backing devices.
    DeviceId,
}

impl DeviceId {
    /// The cache device.
    pub const CACHE: DeviceId = DeviceId(0);
}

/// What a step does; `X` is what a placement does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<X> {
    /// Nothing: it ends when what it waits for has ended.
    Pass,
    /// Waits until a resident has a slot.
    WaitForSlot,
    /// The cache decides about the request.
    Decide,
    /// A command to the cache device, from a byte of a resident's slot on.
    Cache {
        /// Read or write.
        op: Op,
        /// The resident whose slot it is when the command begins.
        resident: ResidentId,
        /// Bytes of the slot left out before it.
        skip: u64,
        /// Bytes.
        length: u64,
    },
    /// Fetched blocks are put on the cache device, in the slots from a resident's on.
    Fill {
        /// The first of the residents.
        resident: ResidentId,
        /// Bytes.
        length: u64,
    },
    /// A command to a device.
    Device {
        /// The device.
        device: DeviceId,
        /// What is done there.
        op: Op,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A step of the placement.
    Placement(X),
}

/// A step: what it does and what must be known when it ends.
#[derive(Clone, Debug)]
pub struct Step<X> {
    /// What it does.
    pub action: Action<X>,
    /// The tenant of its command.
    pub tenant: TenantId,
    /// The number of the decision it belongs to: that of a plan, or of the last one before it.
    pub decision: u64,
    /// Its request is not answered before it ends.
    pub required: bool,
    /// It writes back a block that stays.
    pub cleaning: bool,
    /// The residents it touches.
    pub pins: TouchedResidents,
}

impl<X> Step<X> {
    /// A step that touches no resident and that no request waits for.
    pub fn new(action: Action<X>, tenant: TenantId) -> Step<X> {
        let (decision, required, cleaning) = (0, false, false);
        Step { action, tenant, decision, required, cleaning, pins: TouchedResidents::NONE }
    }

    /// The same step, which touches these residents.
    pub fn pinning(self, pins: TouchedResidents) -> Step<X> {
        Step { pins, ..self }
    }

    /// The same step, of a decision.
    pub fn of_decision(self, decision: u64) -> Step<X> {
        Step { decision, ..self }
    }
}

/// Residents that lie in the list itself: as many as leave it as large as a vector.
const FEW: usize = 3;

/// The residents that a step touches, in order; reads as a slice. Mostly there are one or a few:
/// these cost no allocation.
#[derive(Clone, Debug)]
pub struct TouchedResidents(List);

#[derive(Clone, Debug)]
enum List {
    Few { count: u32, ids: [ResidentId; FEW] },
    Many(Vec<ResidentId>),
}

impl TouchedResidents {
    /// No resident.
    pub const NONE: TouchedResidents =
        TouchedResidents(List::Few { count: 0, ids: [ResidentId::NONE; FEW] });
}

impl Deref for TouchedResidents {
    type Target = [ResidentId];

    #[inline]
    fn deref(&self) -> &[ResidentId] {
        match &self.0 {
            List::Few { count, ids } => &ids[..*count as usize],
            List::Many(ids) => ids,
        }
    }
}

impl FromIterator<ResidentId> for TouchedResidents {
    #[inline]
    fn from_iter<I: IntoIterator<Item = ResidentId>>(residents: I) -> TouchedResidents {
        let mut residents = residents.into_iter();
        let (mut count, mut ids) = (0, [ResidentId::NONE; FEW]);
        while let Some(resident) = residents.next() {
            if count == FEW {
                let more = [resident].into_iter().chain(residents);
                return TouchedResidents(List::Many(ids.into_iter().chain(more).collect()));
            }
            ids[count] = resident;
            count += 1;
        }
        TouchedResidents(List::Few { count: count as u32, ids })
    }
}

impl From<&[ResidentId]> for TouchedResidents {
    fn from(residents: &[ResidentId]) -> TouchedResidents {
        residents.iter().copied().collect()
    }
}

/// The end of a list of edges.
const END: u32 = u32::MAX;

/// A step by its number and generation: known as done also when the number is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRef {
    id: StepId,
    generation: u32,
}

impl StepRef {
    /// A step that was done before the beginning.
    pub const DONE: StepRef = StepRef { id: StepId::NONE, generation: 0 };

    /// The number of a step that is not done.
    pub fn id(self) -> StepId {
        self.id
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it was to do.
    Done,
    /// It did not, or only in part.
    Failed,
}

/// One step; `A` is what it does.
#[derive(Clone, Debug)]
struct StepNode<A> {
    action: Option<A>,
    generation: u32,
    /// Steps it still waits for, and one more until it is released.
    waits_for: u32,
    /// First and last edge to the steps that wait for it.
    first: u32,
    last: u32,
    /// The request it belongs to, if any.
    request: RequestId,
    /// A step that it needs has failed.
    failed: bool,
    /// Steps created before it.
    serial: u64,
}

/// One step waiting for another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    step: StepId,
    next: u32,
    /// It fails with the other one.
    needs: bool,
}

/// A step that is done.
#[derive(Clone, Debug)]
pub struct Finished<A> {
    /// What it did.
    pub action: A,
    /// The request it belonged to.
    pub request: Option<RequestId>,
    /// Whether it, or a step that it needed, has failed.
    pub failed: bool,
    /// Steps created before it.
    pub serial: u64,
}

/// All steps not yet done; `A` is what each does, `N` goes along the steps of a request.
#[derive(Clone, Debug)]
pub struct StepGraph<A, N> {
    steps: Vec<StepNode<A>>,
    /// The note of each step of a request; that of another step is never read.
    notes: Vec<N>,
    free_steps: Vec<StepId>,
    edges: Vec<Edge>,
    free_edges: Vec<u32>,
    /// Steps that may begin, in order.
    ready: VecDeque<StepId>,
    /// Steps ever created.
    created: u64,
}

impl<A, N> Default for StepGraph<A, N> {
    fn default() -> Self {
        StepGraph {
            steps: Vec::new(),
            notes: Vec::new(),
            free_steps: Vec::new(),
            edges: Vec::new(),
            free_edges: Vec::new(),
            ready: VecDeque::new(),
            created: 0,
        }
    }
}

impl<A, N: Copy + Default> StepGraph<A, N> {
    /// A new step, not ready before it is released; its request comes with the note until now.
    pub fn add(&mut self, action: A, request: Option<(RequestId, &N)>) -> StepRef {
        let serial = self.created;
        self.created += 1;
        let (request, note) = request.unzip();
        let request = request.unwrap_or(RequestId::NONE);
        if let Some(id) = self.free_steps.pop() {
            let step = &mut self.steps[id.index()];
            step.action = Some(action);
            (step.waits_for, step.first, step.last) = (1, END, END);
            (step.request, step.serial, step.failed) = (request, serial, false);
            if let Some(note) = note {
                self.notes[id.index()] = *note;
            }
            return StepRef { id, generation: step.generation };
        }
        let id = StepId::new(self.steps.len());
        self.steps.push(StepNode {
            action: Some(action),
            generation: 0,
            waits_for: 1,
            first: END,
            last: END,
            request,
            failed: false,
            serial,
        });
        self.notes.push(note.copied().unwrap_or_default());
        StepRef { id, generation: 0 }
    }

    /// Whether a step is done.
    pub fn is_done(&self, step: StepRef) -> bool {
        let known = self.steps.get(step.id.index());
        known.is_none_or(|known| known.generation != step.generation)
    }

    /// Lets `step` wait for `other` too, unless that is done; it begins also if the other fails.
    pub fn wait(&mut self, step: StepRef, other: StepRef) {
        self.connect(step, other, false);
    }

    /// Lets `step` wait for `other` too, unless that is done; it fails if the other does.
    pub fn need(&mut self, step: StepRef, other: StepRef) {
        self.connect(step, other, true);
    }

    fn connect(&mut self, step: StepRef, other: StepRef, needs: bool) {
        if self.is_done(other) || self.is_done(step) {
            return;
        }
        self.steps[step.id.index()].waits_for += 1;
        let edge = Edge { step: step.id, next: END, needs };
        let index = match self.free_edges.pop() {
            Some(index) => {
                self.edges[index as usize] = edge;
                index
            }
            None => {
                self.edges.push(edge);
                self.edges.len() as u32 - 1
            }
        };
        let other = &mut self.steps[other.id.index()];
        let before = std::mem::replace(&mut other.last, index);
        if before == END {
            other.first = index;
        } else {
            self.edges[before as usize].next = index;
        }
    }

    /// A step will fail when what it waits for is done, because what it needs is lost.
    pub fn fail(&mut self, step: StepRef) {
        if !self.is_done(step) {
            self.steps[step.id.index()].failed = true;
        }
    }

    /// Whether a step that this one needs has failed.
    pub fn has_failed(&self, id: StepId) -> bool {
        self.steps[id.index()].failed
    }

    /// Lets a step begin once everything it waits for is done; a step is released once.
    pub fn release(&mut self, step: StepRef) {
        debug_assert!(!self.is_done(step), "a step is released before it is done");
        let known = &mut self.steps[step.id.index()];
        known.waits_for -= 1;
        if known.waits_for == 0 {
            self.ready.push_back(step.id);
        }
    }

    /// The next step that may begin.
    pub fn next_ready(&mut self) -> Option<StepId> {
        self.ready.pop_front()
    }

    /// What a step does.
    pub fn action(&self, id: StepId) -> Option<&A> {
        self.steps[id.index()].action.as_ref()
    }

    /// The note of a step of a request, to be added to.
    pub fn note_mut(&mut self, id: StepId) -> Option<&mut N> {
        let request = self.steps[id.index()].request.present();
        request.map(|_| &mut self.notes[id.index()])
    }

    /// The note of a step of a request that has just ended: until another step is added.
    pub fn last_note(&self, id: StepId) -> &N {
        &self.notes[id.index()]
    }

    /// Ends a step; what waited for nothing else is ready. Steps of the same request continue its
    /// note.
    pub fn finish(&mut self, id: StepId, outcome: Outcome) -> Option<Finished<A>> {
        let step = &mut self.steps[id.index()];
        let action = step.action.take()?;
        let (request, serial) = (step.request, step.serial);
        let failed = step.failed || outcome == Outcome::Failed;
        let mut edge = step.first;
        step.generation = step.generation.wrapping_add(1);
        while edge != END {
            let Edge { step: next, next: following, needs } = self.edges[edge as usize];
            self.free_edges.push(edge);
            edge = following;
            let waiting = &mut self.steps[next.index()];
            if waiting.request == request && request != RequestId::NONE {
                self.notes[next.index()] = self.notes[id.index()];
            }
            waiting.failed |= needs && failed;
            waiting.waits_for -= 1;
            if waiting.waits_for == 0 {
                self.ready.push_back(next);
            }
        }
        self.free_steps.push(id);
        Some(Finished { action, request: request.present(), failed, serial })
    }

    /// Steps not yet done.
    pub fn open(&self) -> usize {
        self.steps.len() - self.free_steps.len()
    }

    /// Steps ever created: those with a lower serial number than the next one.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Checks that every step waits for as many steps as there are edges to it. Errors: the rule
    /// broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut edges_to = vec![0; self.steps.len()];
        let (mut edges, mut open) = (0, 0);
        for step in self.steps.iter().filter(|step| step.action.is_some()) {
            open += 1;
            let mut index = step.first;
            while index != END {
                let edge = self.edges[index as usize];
                edges_to[edge.step.index()] += 1;
                edges += 1;
                index = edge.next;
            }
        }
        if open != self.open() || edges + self.free_edges.len() != self.edges.len() {
            return Err(format!("{open} steps and {edges} edges are not all that are in use"));
        }
        for (index, step) in self.steps.iter().enumerate() {
            let (waits, known) = (step.waits_for, edges_to[index]);
            if step.action.is_some() && waits != known && waits != known + 1 {
                return Err(format!("step {index} waits for {waits} steps of {known}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_any_length_keeps_its_residents_in_order() {
        assert!(TouchedResidents::NONE.is_empty());
        for length in 0..9 {
            let residents: Vec<ResidentId> = (0..length).map(|id| ResidentId(id * 7)).collect();
            let pins: TouchedResidents = residents.iter().copied().collect();
            assert_eq!(*pins, *residents);
            assert_eq!(*TouchedResidents::from(&residents[..]), *residents);
            assert_eq!(matches!(pins.0, List::Few { .. }), residents.len() <= FEW);
        }
        assert_eq!(size_of::<TouchedResidents>(), size_of::<Vec<ResidentId>>());
    }

    #[test]
    fn a_step_begins_when_all_it_waits_for_is_done() {
        let mut graph: StepGraph<char, u64> = StepGraph::default();
        let request = Some((RequestId(7), &0));
        let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(|name| graph.add(name, request));
        graph.wait(c, a);
        graph.wait(c, b);
        graph.wait(d, a);
        graph.wait(d, StepRef::DONE);
        [a, b, c, d].into_iter().for_each(|step| graph.release(step));
        let ready = [graph.next_ready(), graph.next_ready(), graph.next_ready()];
        assert_eq!(ready, [Some(a.id()), Some(b.id()), None]);
        *graph.note_mut(a.id()).unwrap() += 3;
        let done = graph.finish(a.id(), Outcome::Done).unwrap();
        assert_eq!(
            (done.action, done.request, done.serial, *graph.last_note(a.id())),
            ('a', Some(RequestId(7)), 0, 3)
        );
        assert_eq!((graph.next_ready(), graph.next_ready()), (Some(d.id()), None));
        assert_eq!(graph.note_mut(d.id()), Some(&mut 3), "goes on from a");
        assert!(graph.is_done(a) && !graph.is_done(b) && graph.open() == 3);
        assert_eq!(graph.audit(), Ok(()));
        graph.finish(b.id(), Outcome::Done);
        assert_eq!(graph.next_ready(), Some(c.id()));
        assert_eq!(graph.note_mut(c.id()), Some(&mut 0), "b ended last");
        let again = graph.add('e', None);
        assert!(graph.is_done(b) && !graph.is_done(again), "a reused place is another step");
        assert!(graph.note_mut(again.id()).is_none(), "no request");
        assert!(graph.finish(a.id(), Outcome::Done).is_none(), "a step ends once");
        assert_eq!((graph.created(), graph.audit()), (5, Ok(())));
    }

    #[test]
    fn what_needs_a_failed_step_fails_and_what_comes_after_it_does_not() {
        let mut graph: StepGraph<char, ()> = StepGraph::default();
        let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(|name| graph.add(name, None));
        graph.need(b, a);
        graph.wait(c, a);
        graph.need(d, b);
        [a, b, c, d].into_iter().for_each(|step| graph.release(step));
        let mut ended = Vec::new();
        while let Some(step) = graph.next_ready() {
            let outcome = if step == a.id() { Outcome::Failed } else { Outcome::Done };
            let done = graph.finish(step, outcome).unwrap();
            ended.push((done.action, done.failed));
        }
        assert_eq!(ended, [('a', true), ('b', true), ('c', false), ('d', true)]);
    }

    #[test]
    fn a_note_stays_within_its_request() {
        let mut graph: StepGraph<char, u64> = StepGraph::default();
        let a = graph.add('a', Some((RequestId(7), &1)));
        let b = graph.add('b', Some((RequestId(8), &2)));
        let c = graph.add('c', None);
        let d = graph.add('d', Some((RequestId(8), &3)));
        graph.wait(b, a);
        graph.wait(d, c);
        for step in [a, c] {
            graph.finish(step.id(), Outcome::Done);
        }
        assert_eq!([b, d].map(|step| *graph.last_note(step.id())), [2, 3]);
    }

    #[test]
    fn the_audit_finds_what_is_lost_and_what_waits_for_nothing() {
        let mut good: StepGraph<char, ()> = StepGraph::default();
        let [a, b, c] = ['a', 'b', 'c'].map(|name| good.add(name, None));
        good.wait(b, a);
        good.wait(c, b);
        good.release(c);
        assert_eq!(good.audit(), Ok(()));
        let found = |wrong: fn(&mut StepGraph<char, ()>)| {
            let mut graph = good.clone();
            wrong(&mut graph);
            graph.audit().unwrap_err()
        };
        let both_in_use = "3 steps and 2 edges are not all that are in use";
        assert_eq!(found(|graph| graph.free_edges.push(0)), both_in_use);
        assert_eq!(found(|graph| graph.free_steps.push(StepId::new(0))), both_in_use);
        assert_eq!(found(|graph| graph.steps[1].waits_for = 0), "step 1 waits for 0 steps of 1");
        assert_eq!(found(|graph| graph.steps[2].waits_for = 3), "step 2 waits for 3 steps of 1");
    }
}
