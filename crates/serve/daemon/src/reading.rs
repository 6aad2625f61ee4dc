//! Histories that are read while a server serves.
//!
//! For: a reload whose partitioner takes something ahead. Must never know: what is taken. A thread
//! reads; what is not wanted any more is given up at its next requests.

use crate::error::LiveError;
use crate::history::{self, Ahead};
use crate::plan::LivePlan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::Builder;

/// What is known ahead of each tenant, or why that is not known.
type ReadingOutcome = Result<Vec<Ahead>, LiveError>;

/// Histories that are read.
pub struct HistoryReading {
    outcome: Receiver<ReadingOutcome>,
    given_up: Arc<AtomicBool>,
}

impl HistoryReading {
    /// Begins to read the histories of a plan; nothing if its partitioner wants none. Errors: the
    /// operating system's.
    pub fn begin(plan: &LivePlan) -> Result<Option<HistoryReading>, LiveError> {
        let Some(wanted) = plan.wanted else { return Ok(None) };
        let (stack, capacity_blocks) = (plan.stack.clone(), plan.capacity_blocks);
        let (sender, outcome) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&given_up);
        let work = move || {
            // What is not wanted any more is dropped.
            let _ = sender.send(history::ahead(&stack, capacity_blocks, wanted, &flag));
        };
        Builder::new()
            .name("histories".to_owned())
            .spawn(work)
            .map_err(|error| LiveError::Failed(format!("histories: {error}")))?;
        Ok(Some(HistoryReading { outcome, given_up }))
    }

    /// What was found, when all is read.
    pub fn outcome(&self) -> Option<ReadingOutcome> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(LiveError::Failed("histories: reading them has failed".to_owned())))
            }
        }
    }
}

impl Drop for HistoryReading {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}
