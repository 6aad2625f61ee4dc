//! Steps that wait for each other.
//!
//! For: the order in which the moves of plans may be carried out. Must never know: devices, slots,
//! what requests mean. A step is ready when it is released and everything it waits for is done.
//! Steps that wait for the same step become ready in the order in which they began to wait.
//! Everything is in slabs: no allocation per step once the slabs have grown.

use super::super::latency_breakdown::LatencyBreakdown;
use super::ids::{RequestId, StepId};
use std::collections::VecDeque;

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
    #[cfg(test)]
    pub fn id(self) -> StepId {
        self.id
    }
}

/// One step; `A` is what it does.
#[derive(Clone, Debug)]
struct Step<A> {
    action: Option<A>,
    generation: u32,
    /// Steps it still waits for, and one more until it is released.
    waits_for: u32,
    /// First and last edge to the steps that wait for it.
    first: u32,
    last: u32,
    /// The request it belongs to, if any.
    request: RequestId,
    /// Steps created before it.
    serial: u64,
    latency: LatencyBreakdown,
}

/// One step waiting for another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    step: StepId,
    next: u32,
}

/// A step that is done.
#[derive(Clone, Debug)]
pub struct Finished<A> {
    /// What it did.
    pub action: A,
    /// The request it belonged to.
    pub request: Option<RequestId>,
    /// Steps created before it.
    pub serial: u64,
    /// Where the time of its request has gone until now.
    pub latency: LatencyBreakdown,
}

/// All steps not yet done.
#[derive(Clone, Debug)]
pub struct StepGraph<A> {
    steps: Vec<Step<A>>,
    free_steps: Vec<StepId>,
    edges: Vec<Edge>,
    free_edges: Vec<u32>,
    /// Steps that may begin, in order.
    ready: VecDeque<StepId>,
    /// Steps ever created.
    created: u64,
}

impl<A> Default for StepGraph<A> {
    fn default() -> Self {
        StepGraph {
            steps: Vec::new(),
            free_steps: Vec::new(),
            edges: Vec::new(),
            free_edges: Vec::new(),
            ready: VecDeque::new(),
            created: 0,
        }
    }
}

impl<A> StepGraph<A> {
    /// A new step, not ready before it is released.
    pub fn add(&mut self, action: A, request: Option<RequestId>) -> StepRef {
        let serial = self.created;
        self.created += 1;
        let request = request.unwrap_or(RequestId::NONE);
        if let Some(id) = self.free_steps.pop() {
            let step = &mut self.steps[id.index()];
            step.action = Some(action);
            (step.waits_for, step.first, step.last) = (1, END, END);
            (step.request, step.serial) = (request, serial);
            step.latency = LatencyBreakdown::default();
            return StepRef { id, generation: step.generation };
        }
        let id = StepId::new(self.steps.len());
        self.steps.push(Step {
            action: Some(action),
            generation: 0,
            waits_for: 1,
            first: END,
            last: END,
            request,
            serial,
            latency: LatencyBreakdown::default(),
        });
        StepRef { id, generation: 0 }
    }

    /// Whether a step is done.
    pub fn is_done(&self, step: StepRef) -> bool {
        let known = self.steps.get(step.id.index());
        known.is_none_or(|known| known.generation != step.generation)
    }

    /// Lets `step` wait for `other` too, unless that is done.
    pub fn wait(&mut self, step: StepRef, other: StepRef) {
        if self.is_done(other) || self.is_done(step) {
            return;
        }
        self.steps[step.id.index()].waits_for += 1;
        let edge = Edge { step: step.id, next: END };
        let at = match self.free_edges.pop() {
            Some(at) => {
                self.edges[at as usize] = edge;
                at
            }
            None => {
                self.edges.push(edge);
                self.edges.len() as u32 - 1
            }
        };
        let other = &mut self.steps[other.id.index()];
        let before = std::mem::replace(&mut other.last, at);
        if before == END {
            other.first = at;
        } else {
            self.edges[before as usize].next = at;
        }
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

    /// The request of a step, and where its time has gone, to be added to.
    pub fn latency_mut(&mut self, id: StepId) -> (Option<RequestId>, &mut LatencyBreakdown) {
        let step = &mut self.steps[id.index()];
        (step.request.present(), &mut step.latency)
    }

    /// Ends a step; what waited for nothing else is ready. Steps of the same request continue its
    /// latency.
    pub fn finish(&mut self, id: StepId) -> Option<Finished<A>> {
        let step = &mut self.steps[id.index()];
        let action = step.action.take()?;
        let (request, serial, latency) = (step.request, step.serial, step.latency);
        let mut edge = step.first;
        step.generation = step.generation.wrapping_add(1);
        while edge != END {
            let Edge { step: next, next: following } = self.edges[edge as usize];
            self.free_edges.push(edge);
            edge = following;
            let waiting = &mut self.steps[next.index()];
            if waiting.request == request && request != RequestId::NONE {
                waiting.latency = latency;
            }
            waiting.waits_for -= 1;
            if waiting.waits_for == 0 {
                self.ready.push_back(next);
            }
        }
        self.free_steps.push(id);
        Some(Finished { action, request: request.present(), serial, latency })
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
            let mut at = step.first;
            while at != END {
                let edge = self.edges[at as usize];
                edges_to[edge.step.index()] += 1;
                edges += 1;
                at = edge.next;
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
    use super::super::super::latency_breakdown::Wait;
    use super::*;
    use cachewright_types::Seed;

    #[test]
    fn a_step_begins_when_all_it_waits_for_is_done() {
        let mut graph: StepGraph<char> = StepGraph::default();
        let request = Some(RequestId(7));
        let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(|name| graph.add(name, request));
        graph.wait(c, a);
        graph.wait(c, b);
        graph.wait(d, a);
        graph.wait(d, StepRef::DONE);
        [a, b, c, d].into_iter().for_each(|step| graph.release(step));
        let ready = [graph.next_ready(), graph.next_ready(), graph.next_ready()];
        assert_eq!(ready, [Some(a.id()), Some(b.id()), None]);
        graph.latency_mut(a.id()).1.wait(Wait::Slot, 3);
        let done = graph.finish(a.id()).unwrap();
        assert_eq!((done.action, done.request, done.serial), ('a', request, 0));
        assert_eq!((graph.next_ready(), graph.next_ready()), (Some(d.id()), None));
        assert_eq!(graph.latency_mut(d.id()).1.total_ns(), 3, "goes on from a");
        assert!(graph.is_done(a) && !graph.is_done(b) && graph.open() == 3);
        assert_eq!(graph.audit(), Ok(()));
        graph.finish(b.id());
        assert_eq!(graph.next_ready(), Some(c.id()));
        assert_eq!(graph.latency_mut(c.id()).1.total_ns(), 0, "b ended last");
        let again = graph.add('e', None);
        assert!(graph.is_done(b) && !graph.is_done(again), "a reused place is another step");
        assert!(graph.finish(a.id()).is_none(), "a step ends once");
        assert_eq!((graph.created(), graph.audit()), (5, Ok(())));
    }

    /// Random steps that wait for earlier ones: each begins after all of those, and all end.
    #[test]
    fn steps_begin_after_everything_they_wait_for() {
        let mut rng = Seed(11).rng();
        let mut graph: StepGraph<usize> = StepGraph::default();
        let (mut steps, mut before): (Vec<StepRef>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let mut done = Vec::new();
        for number in 0..500_usize {
            let step = graph.add(number, None);
            let waits: Vec<usize> =
                (0..rng.below(4)).map(|_| rng.below(number as u64 + 1) as usize).collect();
            let waits: Vec<usize> = waits.into_iter().filter(|one| *one < number).collect();
            waits.iter().for_each(|one| graph.wait(step, steps[*one]));
            steps.push(step);
            before.push(waits);
            graph.release(step);
            if rng.below(2) == 0
                && let Some(next) = graph.next_ready()
            {
                done.push(graph.finish(next).unwrap().action);
            }
            assert_eq!(graph.audit(), Ok(()));
        }
        while let Some(next) = graph.next_ready() {
            done.push(graph.finish(next).unwrap().action);
        }
        let mut place = vec![usize::MAX; 500];
        done.iter().enumerate().for_each(|(at, number)| place[*number] = at);
        for (number, waits) in before.iter().enumerate() {
            assert!(waits.iter().all(|one| place[*one] < place[number]), "step {number}");
        }
        assert_eq!((done.len(), graph.open()), (500, 0));
    }
}
