//! Steps that wait for each other.
//!
//! For: the order in which the moves of plans may be carried out. Must never know: devices, slots,
//! requests' meaning. A step is ready when all it waits for is done; what waits for one step is
//! made ready in the order in which it began to wait. Everything is in slabs: no allocation per
//! step once the slabs have grown.

use super::path::Path;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// A step, also after it is done: then it is known as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRef {
    index: u32,
    generation: u32,
}

impl StepRef {
    /// A step that was done before the beginning.
    pub const DONE: StepRef = StepRef { index: NONE, generation: 0 };

    /// The number of a step that is not done.
    pub fn index(self) -> u32 {
        self.index
    }
}

/// One step; `A` is what it does.
#[derive(Clone, Debug)]
struct Step<A> {
    action: Option<A>,
    generation: u32,
    /// Steps it still waits for, and one more until it is released.
    waits_for: u32,
    /// First and last of what waits for it.
    first: u32,
    last: u32,
    /// The request it belongs to, or [`NONE`].
    request: u32,
    path: Path,
}

/// One step waiting for another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    step: u32,
    next: u32,
}

/// What a step did and for whom, when it is done.
#[derive(Clone, Debug)]
pub struct Finished<A> {
    /// What it did.
    pub action: A,
    /// The request it belonged to.
    pub request: Option<u32>,
    /// Where the time of its request has gone until now.
    pub path: Path,
}

/// All steps not yet done.
#[derive(Clone, Debug)]
pub struct Graph<A> {
    steps: Vec<Step<A>>,
    free_steps: Vec<u32>,
    edges: Vec<Edge>,
    free_edges: Vec<u32>,
    open: usize,
}

impl<A> Default for Graph<A> {
    fn default() -> Self {
        let (steps, edges) = (Vec::new(), Vec::new());
        Graph { steps, free_steps: Vec::new(), edges, free_edges: Vec::new(), open: 0 }
    }
}

impl<A> Graph<A> {
    /// A new step, not ready before it is released.
    pub fn add(&mut self, action: A, request: Option<u32>) -> StepRef {
        self.open += 1;
        let request = request.unwrap_or(NONE);
        if let Some(index) = self.free_steps.pop() {
            let step = &mut self.steps[index as usize];
            step.action = Some(action);
            (step.waits_for, step.first, step.last) = (1, NONE, NONE);
            (step.request, step.path) = (request, Path::default());
            return StepRef { index, generation: step.generation };
        }
        let index = self.steps.len() as u32;
        self.steps.push(Step {
            action: Some(action),
            generation: 0,
            waits_for: 1,
            first: NONE,
            last: NONE,
            request,
            path: Path::default(),
        });
        StepRef { index, generation: 0 }
    }

    /// Whether a step is done.
    pub fn is_done(&self, step: StepRef) -> bool {
        let found = self.steps.get(step.index as usize);
        found.is_none_or(|found| found.generation != step.generation)
    }

    /// Lets `step` wait for `other` too, unless that is done.
    pub fn wait(&mut self, step: StepRef, other: StepRef) {
        if self.is_done(other) || self.is_done(step) {
            return;
        }
        self.steps[step.index as usize].waits_for += 1;
        let edge = Edge { step: step.index, next: NONE };
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
        let other = &mut self.steps[other.index as usize];
        let before = std::mem::replace(&mut other.last, at);
        if before == NONE {
            other.first = at;
        } else {
            self.edges[before as usize].next = at;
        }
    }

    /// Lets a step begin once all it waits for is done; returns whether that is now.
    pub fn release(&mut self, step: StepRef) -> bool {
        let step = &mut self.steps[step.index as usize];
        step.waits_for -= 1;
        step.waits_for == 0
    }

    /// What a step does, by its number.
    pub fn action(&self, index: u32) -> Option<&A> {
        self.steps[index as usize].action.as_ref()
    }

    /// The request of a step, and where its time has gone, to be added to.
    pub fn path_mut(&mut self, index: u32) -> (Option<u32>, &mut Path) {
        let step = &mut self.steps[index as usize];
        ((step.request != NONE).then_some(step.request), &mut step.path)
    }

    /// Ends a step and appends the numbers of those that are ready now. Steps of the same request
    /// go on from this one's path.
    pub fn finish(&mut self, index: u32, ready: &mut Vec<u32>) -> Option<Finished<A>> {
        let step = &mut self.steps[index as usize];
        let action = step.action.take()?;
        let (request, path, mut edge) = (step.request, step.path, step.first);
        step.generation = step.generation.wrapping_add(1);
        while edge != NONE {
            let Edge { step: next, next: following } = self.edges[edge as usize];
            self.free_edges.push(edge);
            edge = following;
            let waiting = &mut self.steps[next as usize];
            if waiting.request == request && request != NONE {
                waiting.path = path;
            }
            waiting.waits_for -= 1;
            if waiting.waits_for == 0 {
                ready.push(next);
            }
        }
        self.free_steps.push(index);
        self.open -= 1;
        Some(Finished { action, request: (request != NONE).then_some(request), path })
    }

    /// Steps not yet done.
    pub fn open(&self) -> usize {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Wait;
    use super::*;

    #[test]
    fn a_step_begins_when_all_it_waits_for_is_done() {
        let mut graph: Graph<char> = Graph::default();
        let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(|name| graph.add(name, Some(7)));
        graph.wait(c, a);
        graph.wait(c, b);
        graph.wait(d, a);
        graph.wait(d, StepRef::DONE);
        assert!(graph.release(a) && graph.release(b));
        assert!(!graph.release(c) && !graph.release(d));
        graph.path_mut(a.index()).1.wait(Wait::Room, 3);
        let mut ready = Vec::new();
        let done = graph.finish(a.index(), &mut ready).unwrap();
        assert_eq!((done.action, done.request, ready.as_slice()), ('a', Some(7), &[d.index()][..]));
        assert_eq!(graph.path_mut(d.index()).1.total_ns(), 3, "goes on from a");
        assert!(graph.is_done(a) && !graph.is_done(b) && graph.open() == 3);
        ready.clear();
        graph.finish(b.index(), &mut ready);
        assert_eq!(ready, [c.index()]);
        assert_eq!(graph.path_mut(c.index()).1.total_ns(), 0, "b ended last");
        let again = graph.add('e', None);
        assert!(graph.is_done(b) && !graph.is_done(again), "a reused place is another step");
        assert!(graph.finish(a.index(), &mut ready).is_none(), "a step ends once");
    }
}
