//! The order of things: commands beneath, their ends, and what goes next.
//!
//! For: time, the share of cleaning, the numbers of commands beneath. Must never know: where pages
//! lie. Unit: nanoseconds.

use super::LogStore;
use crate::{Command, Completion};
use cachewright_types::{Bytes, Nanos, Op, TenantId};
use std::cmp::Reverse;

/// What a command beneath is for.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// Pages that a request reads.
    Read {
        /// The request's command.
        command: u32,
        /// Where they lie.
        life: u32,
    },
    /// A page that a write needs before it can go.
    Before {
        /// The write.
        write: u32,
        /// Where the page lies.
        life: u32,
    },
    /// Pages that are written.
    Append {
        /// Where they go.
        life: u32,
        /// The first of them.
        first: u32,
        /// How many.
        pages: u32,
        /// Requests wait for them.
        of_requests: bool,
    },
    /// Pages that are read to be moved.
    Gather {
        /// Where they lie.
        life: u32,
        /// Their writes.
        writes: Vec<u32>,
    },
    /// A segment is reset.
    Reset {
        /// Whose life ends.
        life: u32,
    },
    /// A flush.
    Flush {
        /// The request's command.
        command: u32,
    },
}

impl LogStore {
    /// Sends a command of bytes `(first, length)` to the device beneath.
    pub(super) fn ask(&mut self, ask: Ask, op: Op, range: (u64, u64), tenant: TenantId) {
        let tag = u64::from(self.asks.insert(ask));
        let (offset, length) = (Bytes(range.0), Bytes(range.1));
        self.used.submitted(Nanos(self.now_ns), op, length);
        self.inner.submit(Nanos(self.now_ns), Command { tag, op, offset, length, tenant });
        self.look_inside();
    }

    fn look_inside(&mut self) {
        self.inner_due_ns = self.inner.next_due().map_or(u64::MAX, |due| due.0);
    }

    /// When something next happens; never if nothing does.
    pub(super) fn due_ns(&self) -> u64 {
        let reset = self.resets.peek().map_or(u64::MAX, |Reverse(reset)| reset.0);
        self.inner_due_ns.min(reset)
    }

    /// Lets happen what is due next.
    pub(super) fn step(&mut self) {
        self.now_ns = self.now_ns.max(self.due_ns());
        if self.inner_due_ns <= self.now_ns {
            let mut done = std::mem::take(&mut self.inner_done);
            self.inner.advance(Nanos(self.now_ns), &mut done);
            self.look_inside();
            for completion in done.drain(..) {
                self.used.completed(completion.finished);
                self.answered(&completion);
            }
            self.inner_done = done;
        }
        while let Some(Reverse((due_ns, life))) = self.resets.peek().copied()
            && due_ns <= self.now_ns
        {
            self.resets.pop();
            self.reset(life);
        }
        self.dispatch();
    }

    /// A command beneath is done.
    fn answered(&mut self, done: &Completion) {
        match self.asks.take(done.tag as u32) {
            None => {}
            Some(Ask::Read { command, life }) => {
                self.part_done(command, done.spent);
                self.unpin(life);
            }
            Some(Ask::Flush { command }) => self.part_done(command, done.spent),
            Some(Ask::Before { write, life }) => {
                if let Some(found) = self.writes.get_mut(write) {
                    found.waits -= 1;
                    found.spent = done.spent;
                }
                self.ready_if_complete(write);
                self.unpin(life);
            }
            Some(Ask::Append { life, first, pages, of_requests }) => {
                self.moving -= u32::from(!of_requests);
                self.appended(life, first..first + pages, done.submitted.0, &done.spent);
            }
            Some(Ask::Gather { life, writes }) => {
                self.moving -= 1;
                self.gathered(life, &writes);
            }
            Some(Ask::Reset { life }) => self.trimmed(life),
        }
    }

    /// Sends what can go: appends of requests, then as much of cleaning as may be.
    pub(super) fn dispatch(&mut self) {
        let mut at = 0;
        while let Some(life) = self.active.range(at..).next().copied() {
            while self.append(life, true) {}
            at = life + 1;
        }
        let waited_for = self.blocked > 0 || self.commands.is_empty();
        let settings = &self.settings;
        let most = if waited_for { settings.move_depth } else { settings.move_depth_busy };
        at = 0;
        while let Some(life) = self.active.range(at..).next().copied() {
            while self.moving < most && self.append(life, false) {}
            at = life + 1;
        }
        while self.moving < most && self.gather() {}
    }
}
