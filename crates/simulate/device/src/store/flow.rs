//! The order of things: commands beneath, their ends, and what goes next.
//!
//! For: time, the share of cleaning, the numbers of commands beneath. Must never know: where pages
//! lie. Unit: nanoseconds.

use super::log_store::LogStore;
use super::under_way::SubCommand;
use crate::Completion;
use cachewright_types::{Op, TenantId};
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
        self.beneath.send(self.now_ns, command, (op, range), tenant);
    }

    /// When something next happens; never if nothing does.
    pub(super) fn due_ns(&self) -> u64 {
        let reset = self.resets.peek().map_or(u64::MAX, |Reverse(reset)| reset.0);
        self.beneath.due_ns().min(reset)
    }

    /// Lets happen what is due next.
    pub(super) fn step(&mut self) {
        self.now_ns = self.now_ns.max(self.due_ns());
        if self.beneath.due_ns() <= self.now_ns {
            let done = self.beneath.advance(self.now_ns);
            done.iter().for_each(|completion| self.answered(completion));
            self.beneath.keep(done);
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
        match self.beneath.end(done) {
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
                if !of_requests {
                    self.moves.end();
                }
                self.appended(life, first..first + pages, done.submitted.0, &done.spent);
            }
            Some(SubCommand::Gather { life, writes }) => {
                self.moves.end();
                self.gathered(life, &writes);
            }
            Some(SubCommand::Reset { life }) => self.trimmed(life),
        }
    }

    /// Sends what can go: appends of requests, then as much of cleaning as may be.
    pub(super) fn dispatch(&mut self) {
        let mut next_life = 0;
        while let Some(life) = self.lives.next_ready(next_life) {
            while self.append(life, true) {}
            next_life = life + 1;
        }
        let waited_for = self.lives.blocked() > 0 || self.requests.all_done();
        let settings = &self.settings;
        let max_moves = if waited_for { settings.move_depth } else { settings.move_depth_busy };
        next_life = 0;
        while let Some(life) = self.lives.next_ready(next_life) {
            while self.moves.under_way() < max_moves && self.append(life, false) {}
            next_life = life + 1;
        }
        while self.moves.under_way() < max_moves && self.gather() {}
    }
}
