//! The device beneath a store.
//!
//! For: commands to it, what each is for, and how it was used. Must never know: pages, segments.
//! Units: bytes, nanoseconds.

use super::under_way::SubCommand;
use crate::{AnyDevice, Command, Completion, DeviceUse, Use};
use cachewright_types::{Bytes, Nanos, Op, TenantId};
use slab::Slab;

/// The device beneath, and what is under way on it.
pub struct Beneath {
    device: AnyDevice,
    /// How the store used it.
    used: Use,
    /// What each command is for; its tag is the number.
    commands: Slab<SubCommand>,
    due_ns: u64,
    /// Kept for its memory.
    done: Vec<Completion>,
}

impl Beneath {
    /// An idle device.
    pub fn new(device: AnyDevice) -> Beneath {
        let (used, commands, done) = (Use::default(), Slab::default(), Vec::new());
        let mut beneath = Beneath { device, used, commands, due_ns: u64::MAX, done };
        beneath.look_inside();
        beneath
    }

    fn look_inside(&mut self) {
        self.due_ns = self.device.next_due().map_or(u64::MAX, |due| due.0);
    }

    /// Sends a command of bytes `(first, length)`.
    pub fn send(
        &mut self,
        now_ns: u64,
        command: SubCommand,
        (op, range): (Op, (u64, u64)),
        tenant: TenantId,
    ) {
        let tag = self.commands.insert(command) as u64;
        let (offset, length) = (Bytes(range.0), Bytes(range.1));
        self.used.submitted(Nanos(now_ns), op, length);
        self.device.submit(Nanos(now_ns), Command { tag, op, offset, length, tenant });
        self.look_inside();
    }

    /// When the device is due; never if nothing is under way.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Lets the device work up to `now_ns`; returns the commands that are done, each to be ended
    /// with [`Beneath::end`], all to be handed back with [`Beneath::keep`].
    pub fn advance(&mut self, now_ns: u64) -> Vec<Completion> {
        let mut done = std::mem::take(&mut self.done);
        self.device.advance(Nanos(now_ns), &mut done);
        self.look_inside();
        done
    }

    /// Ends a command that is done; returns what it was for.
    pub fn end(&mut self, done: &Completion) -> Option<SubCommand> {
        self.used.completed(done.finished);
        self.commands.try_remove(done.tag as usize)
    }

    /// Keeps the memory of commands that have been ended.
    pub fn keep(&mut self, mut done: Vec<Completion>) {
        done.clear();
        self.done = done;
    }

    /// Commands under way.
    pub fn open(&self) -> usize {
        self.commands.len()
    }

    /// How the device was used until now.
    pub fn report(&self, now: Nanos) -> DeviceUse {
        DeviceUse::new(&self.used, self.device.report(now))
    }

    /// Checks the device, and that its commands are known. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.device.audit().map_err(|error| format!("beneath: {error}"))?;
        let (inside, known) = (self.device.outstanding(), self.commands.len());
        if inside == known {
            Ok(())
        } else {
            Err(format!("{inside} commands are beneath, {known} are known"))
        }
    }
}
