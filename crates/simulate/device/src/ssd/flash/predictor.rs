//! The controller's time for a separation that predicts.
//!
//! For: steps of a model, one after the other, and pages that are not programmed before theirs is
//! taken. Must never know: what is predicted. Units: nanoseconds. A step that no page waits for
//! takes the controller's time all the same, so that it delays the steps after it.

use super::ids::WorkId;
use std::collections::VecDeque;

/// The part of the controller that runs models, for one page after the other.
#[derive(Clone, Debug)]
pub struct BusyPredictor {
    /// Time of one step; 0 where steps cost nothing.
    step_ns: u64,
    /// When it has taken all steps asked for so far.
    free_at: u64,
    /// Time of all steps asked for.
    busy_ns: u64,
    /// Pages that wait for a step, in the order of its end.
    waiting: VecDeque<WorkId>,
}

impl BusyPredictor {
    /// A controller whose steps take so long.
    pub fn new(step_ns: u64) -> BusyPredictor {
        BusyPredictor { step_ns, free_at: 0, busy_ns: 0, waiting: VecDeque::new() }
    }

    /// Whether steps cost nothing.
    pub fn is_free(&self) -> bool {
        self.step_ns == 0
    }

    /// Takes one step more; when it ends.
    pub fn take_step(&mut self, now: u64) -> u64 {
        self.free_at = self.free_at.max(now) + self.step_ns;
        self.busy_ns += self.step_ns;
        self.free_at
    }

    /// Takes a step that a page waits for; when it ends.
    pub fn take_step_for(&mut self, page: WorkId, now: u64) -> u64 {
        self.waiting.push_back(page);
        self.take_step(now)
    }

    /// The page whose step ends now: the one that has waited longest.
    pub fn decided(&mut self) -> Option<WorkId> {
        self.waiting.pop_front()
    }

    /// Pages that wait for a step.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Time it has worked up to `now`.
    pub fn busy_ns(&self, now: u64) -> u64 {
        // From now on it works without a pause until it is free.
        self.busy_ns - self.free_at.saturating_sub(now)
    }
}
