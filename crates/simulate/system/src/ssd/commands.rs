//! Commands inside the drive, by the slots of its host interface.
//!
//! For: how much of a command is still under way, and what its writes still have to place. Must
//! never know: memory, flash. Units: bytes, parts, nanoseconds. Nothing is allocated per command.

use cachewright_device::Command;
use cachewright_device::ssd::host::Slot;
use cachewright_types::{Bytes, TenantId};

/// A command inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCommand {
    /// As submitted.
    pub tag: u64,
    /// Its tenant.
    pub tenant: TenantId,
    /// First byte that has no place yet (writes).
    pub offset: u64,
    /// Bytes from there.
    pub length: u64,
    /// Accesses to memory and pages of flash that it waits for.
    parts_left: u32,
    arrived_ns: u64,
    open: bool,
}

/// Commands by slot.
#[derive(Clone, Debug, Default)]
pub struct HostCommands {
    commands: Vec<HostCommand>,
    open: usize,
}

impl HostCommands {
    /// A command arrives.
    pub fn arrive(&mut self, slot: Slot, now_ns: u64, command: &Command) {
        let index = slot.0 as usize;
        if index >= self.commands.len() {
            self.commands.resize(index + 1, HostCommand::default());
        }
        let Command { tag, tenant, offset: Bytes(offset), length: Bytes(length), .. } = *command;
        let (parts_left, arrived_ns, open) = (0, now_ns, true);
        self.commands[index] =
            HostCommand { tag, tenant, offset, length, parts_left, arrived_ns, open };
        self.open += 1;
    }

    fn get_mut(&mut self, slot: Slot) -> &mut HostCommand {
        &mut self.commands[slot.0 as usize]
    }

    /// A command.
    pub fn get(&self, slot: Slot) -> &HostCommand {
        &self.commands[slot.0 as usize]
    }

    /// When a command arrived.
    pub fn arrived(&self, slot: Slot) -> u64 {
        self.get(slot).arrived_ns
    }

    /// A command waits for more parts; one that is no write has nothing to place.
    pub fn await_parts(&mut self, slot: Slot, parts: u32) {
        let command = self.get_mut(slot);
        command.parts_left += parts;
        command.length = 0;
    }

    /// A write has placed what lies before `offset`, waits for more parts, and has `length` left.
    pub fn placed(&mut self, slot: Slot, offset: u64, length: u64, parts: u32) {
        let command = self.get_mut(slot);
        command.parts_left += parts;
        (command.offset, command.length) = (offset, length);
    }

    /// Whether a command waits for nothing.
    pub fn idle(&self, slot: Slot) -> bool {
        let command = self.get(slot);
        command.parts_left == 0 && command.length == 0
    }

    /// A part is done; whether the whole command is, which is then forgotten.
    pub fn part_done(&mut self, slot: Slot) -> bool {
        let command = self.get_mut(slot);
        assert!(command.parts_left > 0, "a command waits for each of its parts once");
        command.parts_left -= 1;
        let done = self.idle(slot);
        if done {
            self.leave(slot);
        }
        done
    }

    /// Forgets a command.
    pub fn leave(&mut self, slot: Slot) {
        self.get_mut(slot).open = false;
        self.open -= 1;
    }

    /// Commands inside.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Commands inside are counted.
    pub fn audit(&self) -> Result<(), String> {
        let counted = self.commands.iter().filter(|command| command.open).count();
        if counted == self.open {
            return Ok(());
        }
        Err(format!("{counted} commands are inside, {} are counted", self.open))
    }
}
