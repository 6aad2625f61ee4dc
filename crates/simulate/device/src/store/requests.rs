//! Commands of a store under way, and the answers to those that are done.
//!
//! For: when a command is done: when all its parts are. Must never know: what the parts are. Unit:
//! nanoseconds.

use super::under_way::OpenCommand;
use crate::{Completion, Spent};
use cachewright_types::Nanos;
use slab::Slab;

/// Commands under way, and answers not yet taken.
#[derive(Clone, Debug, Default)]
pub struct StoreCommands {
    open: Slab<OpenCommand>,
    answers: Vec<Completion>,
}

impl StoreCommands {
    /// A command comes; it has one part until all are known.
    pub fn begin(&mut self, tag: u64, submitted_ns: u64) -> u32 {
        self.open.insert(OpenCommand { tag, submitted_ns, left: 1 }) as u32
    }

    /// One more part of a command begins.
    pub fn add_part(&mut self, number: u32) {
        if let Some(open) = self.open.get_mut(number as usize) {
            open.left += 1;
        }
    }

    /// A part of a command is done, along a way that took the time since it was submitted.
    pub fn end_part(&mut self, number: u32, spent: Spent, now_ns: u64) {
        let Some(open) = self.open.get_mut(number as usize) else { return };
        open.left -= 1;
        if open.left > 0 {
            return;
        }
        if let Some(OpenCommand { tag, submitted_ns, .. }) = self.open.try_remove(number as usize) {
            let (submitted, finished) = (Nanos(submitted_ns), Nanos(now_ns));
            self.answers.push(Completion { tag, submitted, finished, spent });
        }
    }

    /// Whether every command is done.
    pub fn all_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether answers can be taken.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Moves the answers since the last call to `answers`.
    pub fn take_answers(&mut self, answers: &mut Vec<Completion>) {
        answers.append(&mut self.answers);
    }

    /// Commands that are not answered yet.
    pub fn outstanding(&self) -> usize {
        self.open.len() + self.answers.len()
    }
}
