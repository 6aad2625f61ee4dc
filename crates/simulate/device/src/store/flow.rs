//! The order of things: commands beneath, their ends, and what goes next.
//!
//! For: time, the share of cleaning, the numbers of commands beneath. Must never know: where pages
//! lie. Unit: nanoseconds.

use super::log_store::LogStore;
use super::under_way::SubCommand;
use crate::{Command, Completion};
use cachewright_types::{Bytes, Nanos, Op, TenantId};
use std::cmp::Reverse;

impl LogStore {
    /// Sends a command of bytes `(first, length)` to the device beneath.
    pub(super) fn send_down(
        &mut self,
        command: SubCommand,
        op: Op,
        range: (u64, u64),
        tenant: TenantId,
    ) {
        let tag = u64::from(self.sub_commands.insert(command));
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
        match self.sub_commands.take(done.tag as u32) {
            None => {}
            Some(SubCommand::Read { command, life }) => {
                self.part_done(command, done.spent);
                self.unpin(life);
            }
            Some(SubCommand::Flush { command }) => self.part_done(command, done.spent),
            Some(SubCommand::Before { write, life }) => {
                if let Some(found) = self.writes.get_mut(write) {
                    found.waits -= 1;
                    found.spent = done.spent;
                }
                self.ready_if_complete(write);
                self.unpin(life);
            }
            Some(SubCommand::Append { life, first, pages, of_requests }) => {
                self.moving -= u32::from(!of_requests);
                self.appended(life, first..first + pages, done.submitted.0, &done.spent);
            }
            Some(SubCommand::Gather { life, writes }) => {
                self.moving -= 1;
                self.gathered(life, &writes);
            }
            Some(SubCommand::Reset { life }) => self.trimmed(life),
        }
    }

    /// Sends what can go: appends of requests, then as much of cleaning as may be.
    pub(super) fn dispatch(&mut self) {
        let mut next_life = 0;
        while let Some(life) = self.active.range(next_life..).next().copied() {
            while self.append(life, true) {}
            next_life = life + 1;
        }
        let waited_for = self.blocked > 0 || self.commands.is_empty();
        let settings = &self.settings;
        let max_moves = if waited_for { settings.move_depth } else { settings.move_depth_busy };
        next_life = 0;
        while let Some(life) = self.active.range(next_life..).next().copied() {
            while self.moving < max_moves && self.append(life, false) {}
            next_life = life + 1;
        }
        while self.moving < max_moves && self.gather() {}
    }
}
