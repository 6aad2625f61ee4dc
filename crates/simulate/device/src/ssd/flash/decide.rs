//! The controller's time for a separation that predicts.
//!
//! For: steps of a model, one after the other, and pages that are not programmed before theirs is
//! taken. Must never know: what is predicted. Units: nanoseconds. A step that no page waits for
//! takes the controller's time all the same, so that it delays the steps after it.

use super::Backend;
use super::events::What;
use super::transaction::{Id, Step};
use crate::spent::Part;
use std::collections::VecDeque;

/// The part of the controller that runs models, for one page after the other.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    /// When it has taken all steps asked for so far.
    free_at: u64,
    /// Time of all steps asked for.
    busy_ns: u64,
    /// Pages that wait for a step, in the order of its end.
    deciding: VecDeque<Id>,
}

impl Controller {
    /// Time it has worked up to `now`.
    pub fn busy_ns(&self, now: u64) -> u64 {
        // From now on it works without a pause until it is free.
        self.busy_ns - self.free_at.saturating_sub(now)
    }

    /// Works for some time more.
    fn take(&mut self, now: u64, time_ns: u64) {
        self.free_at = self.free_at.max(now) + time_ns;
        self.busy_ns += time_ns;
    }

    /// Pages that wait for it.
    pub fn waiting(&self) -> usize {
        self.deciding.len()
    }
}

impl Backend {
    /// Notes the step that the last write asked for: its work `id`, if the host waits for it, takes
    /// it once what it reads is there (the step may need that metadata), others take it at once.
    #[inline]
    pub(super) fn note_prediction(&mut self, id: Option<Id>) {
        if let Some(waits) = self.steps.predicted.take() {
            self.ask(id.filter(|_| waits));
        }
    }

    fn ask(&mut self, waiting: Option<Id>) {
        self.counters.predictions += 1;
        match (self.params.collect.prediction_ns, waiting) {
            (0, _) => {}
            (_, Some(id)) => self.work[id].predicts = true,
            (time_ns, None) => self.controller.take(self.now, time_ns),
        }
    }

    /// The controller takes the step that a page waits for.
    pub(super) fn decide(&mut self, id: Id) {
        let work = &mut self.work[id];
        work.step = Step::Deciding;
        work.predicts = false;
        self.counters.awaited_predictions += 1;
        self.controller.take(self.now, self.params.collect.prediction_ns);
        self.controller.deciding.push_back(id);
        self.events.push(self.controller.free_at, What::Decided, 0);
    }

    /// The step of the page that has waited longest has been taken: it is queued.
    pub(super) fn decided(&mut self) {
        let Some(id) = self.controller.deciding.pop_front() else { return };
        let work = &mut self.work[id];
        work.account(Part::Queue, self.now);
        work.step = Step::Program;
        self.enqueue(id);
    }
}
