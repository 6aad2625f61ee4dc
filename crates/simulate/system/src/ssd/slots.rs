//! Commands inside the drive and jobs of the cache, each in an array without holes to search.
//!
//! For: how much of a command is still under way, and what its writes still have to place. Must
//! never know: memory, flash. Units: bytes, parts. Nothing is allocated per command.

use cachewright_device::Command;
use cachewright_device::ssd::host::Slot;
use cachewright_types::{Bytes, TenantId};

/// A command inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// As submitted.
    pub tag: u64,
    /// Whose it is.
    pub tenant: TenantId,
    /// First byte that has no place yet (writes).
    pub offset: u64,
    /// Bytes from there.
    pub length: u64,
    /// Accesses to memory and pages of flash that it waits for.
    pub left: u32,
    arrived_ns: u64,
    open: bool,
}

/// Commands by slot.
#[derive(Clone, Debug, Default)]
pub struct Users {
    users: Vec<User>,
    open: usize,
}

impl Users {
    /// A command arrives.
    pub fn arrive(&mut self, slot: Slot, now_ns: u64, command: &Command) {
        let index = slot.0 as usize;
        if index >= self.users.len() {
            self.users.resize(index + 1, User::default());
        }
        let Command { tag, tenant, offset: Bytes(offset), length: Bytes(length), .. } = *command;
        let (left, arrived_ns, open) = (0, now_ns, true);
        self.users[index] = User { tag, tenant, offset, length, left, arrived_ns, open };
        self.open += 1;
    }

    /// A command.
    pub fn get_mut(&mut self, slot: Slot) -> &mut User {
        &mut self.users[slot.0 as usize]
    }

    /// A command.
    pub fn get(&self, slot: Slot) -> &User {
        &self.users[slot.0 as usize]
    }

    /// When a command arrived.
    pub fn arrived(&self, slot: Slot) -> u64 {
        self.users[slot.0 as usize].arrived_ns
    }

    /// A command waits for more parts; one that is no write has nothing to place.
    pub fn await_parts(&mut self, slot: Slot, parts: u32) {
        let user = &mut self.users[slot.0 as usize];
        user.left += parts;
        user.length = 0;
    }

    /// A write waits for more parts.
    pub fn await_more(&mut self, slot: Slot, parts: u32) {
        self.users[slot.0 as usize].left += parts;
    }

    /// Whether a command waits for nothing.
    pub fn idle(&self, slot: Slot) -> bool {
        let user = self.get(slot);
        user.left == 0 && user.length == 0
    }

    /// A part is done; whether the whole command is, which is then forgotten.
    pub fn part_done(&mut self, slot: Slot) -> bool {
        self.users[slot.0 as usize].left -= 1;
        let done = self.idle(slot);
        if done {
            self.leave(slot);
        }
        done
    }

    /// Forgets a command.
    pub fn leave(&mut self, slot: Slot) {
        self.users[slot.0 as usize].open = false;
        self.open -= 1;
    }

    /// Commands inside.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Counts again, for audits.
    pub fn counted(&self) -> usize {
        self.users.iter().filter(|user| user.open).count()
    }
}

/// Things by index, given out again once removed.
#[derive(Clone, Debug)]
pub struct Jobs<J> {
    jobs: Vec<Option<J>>,
    free: Vec<u32>,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        Jobs { jobs: Vec::new(), free: Vec::new() }
    }
}

impl<J: Copy> Jobs<J> {
    /// Adds one and returns its index.
    pub fn insert(&mut self, job: J) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.jobs[index as usize] = Some(job);
                index
            }
            None => {
                self.jobs.push(Some(job));
                self.jobs.len() as u32 - 1
            }
        }
    }

    /// One by its index.
    pub fn get(&self, index: u32) -> Option<J> {
        self.jobs.get(index as usize).copied().flatten()
    }

    /// Takes one away.
    pub fn remove(&mut self, index: u32) -> Option<J> {
        let job = self.jobs.get_mut(index as usize)?.take();
        if job.is_some() {
            self.free.push(index);
        }
        job
    }

    /// All that are there.
    pub fn iter(&self) -> impl Iterator<Item = &J> {
        self.jobs.iter().flatten()
    }
}
