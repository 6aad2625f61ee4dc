//! The memory in which a drive without a data cache holds writes until they are programmed.
//!
//! For: writes that complete once their data is in memory, and a bound on held data. A flush waits
//! for the data that was held before it. Must never know: pages, what flash does. Units: bytes,
//! nanoseconds. Writes are taken in one after the other, in the order of their arrival; one larger
//! than the memory is taken in alone. Nothing is merged: each write goes to flash as it came, at
//! once. Invariants (audited): what is held is the sum of the writes, and within the bound but for
//! a single write.

use super::drive::FinishedCommand;
use super::host::Slot;
use super::link::Wire;
use super::params::SsdParams;
use crate::{Command, Spent, SpentPart};
use cachewright_types::Nanos;
use slab::Slab;
use std::collections::VecDeque;

/// A write from its place in memory to its last page in flash.
#[derive(Clone, Copy, Debug)]
struct BufferedWrite {
    command: Command,
    slot: Slot,
    waited_ns: u64,
    began_ns: u64,
    /// Place in the order of being taken in.
    order: u64,
    /// Pages that are still to be programmed.
    pages: u32,
}

/// A flush, and how many of the writes held before it are still there.
#[derive(Clone, Copy, Debug)]
struct Flush {
    slot: Slot,
    began_ns: u64,
    order: u64,
    left: usize,
}

/// A write whose data is in memory.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Its number here.
    pub number: u32,
    /// What it writes.
    pub command: Command,
    /// Its completion.
    pub finished: FinishedCommand,
}

/// The memory of one drive.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    capacity: u64,
    time_ns: u64,
    intake: Wire<u32>,
    held: Slab<BufferedWrite>,
    held_bytes: u64,
    held_count: usize,
    waiting: VecDeque<(Slot, Command, u64)>,
    flushes: Vec<Flush>,
    orders: u64,
}

impl WriteBuffer {
    /// The memory that a drive has for writes, if it has some.
    pub fn from_params(params: &SsdParams) -> Option<WriteBuffer> {
        (params.write_buffer.0 > 0).then(|| WriteBuffer {
            capacity: params.write_buffer.0,
            time_ns: params.write_buffer_time.0,
            intake: Wire::default(),
            held: Slab::default(),
            held_bytes: 0,
            held_count: 0,
            waiting: VecDeque::new(),
            flushes: Vec::new(),
            orders: 0,
        })
    }

    /// Takes up a write, at once or when there is space.
    pub fn write(&mut self, now: Nanos, slot: Slot, command: Command) {
        if self.waiting.is_empty() && self.fits(command.length.0) {
            self.begin(now.0, slot, command, now.0);
        } else {
            self.waiting.push_back((slot, command, now.0));
        }
    }

    fn fits(&self, bytes: u64) -> bool {
        self.held_count == 0 || self.held_bytes + bytes <= self.capacity
    }

    fn begin(&mut self, now_ns: u64, slot: Slot, command: Command, arrived_ns: u64) {
        let (waited_ns, began_ns, order) = (now_ns - arrived_ns, now_ns, self.orders);
        self.orders += 1;
        self.held_bytes += command.length.0;
        self.held_count += 1;
        let held = BufferedWrite { command, slot, waited_ns, began_ns, order, pages: 0 };
        let number = self.held.insert(held) as u32;
        self.intake.send(now_ns, self.time_ns, number);
    }

    /// When the next write is in memory.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        self.intake.due_ns()
    }

    /// The next write that is in memory by `now`.
    #[inline]
    pub fn take(&mut self, now: Nanos) -> Option<Taken> {
        let number = self.intake.receive(now.0)?;
        let held = self.held.get(number as usize)?;
        let mut spent = Spent::default();
        spent.add(SpentPart::Queue, held.waited_ns);
        spent.add(SpentPart::Dram, now.0 - held.began_ns);
        let finished = FinishedCommand { slot: held.slot, spent };
        Some(Taken { number, command: held.command, finished })
    }

    /// A write that is in memory goes to flash as so many pages, at least one.
    pub fn sent(&mut self, number: u32, pages: u32) {
        if let Some(held) = self.held.get_mut(number as usize) {
            held.pages = pages;
        }
    }

    /// A page of a write is programmed. Flushes that waited for it alone go to `finished`.
    pub fn programmed(&mut self, now: Nanos, number: u32, finished: &mut Vec<FinishedCommand>) {
        let Some(held) = self.held.get_mut(number as usize) else { return };
        held.pages -= 1;
        if held.pages > 0 {
            return;
        }
        let (order, bytes) = (held.order, held.command.length.0);
        self.held.try_remove(number as usize);
        self.held_bytes -= bytes;
        self.held_count -= 1;
        for flush in self.flushes.iter_mut().filter(|flush| order < flush.order) {
            flush.left -= 1;
        }
        self.flushes.retain(|flush| {
            if flush.left == 0 {
                let mut spent = Spent::default();
                spent.add(SpentPart::Queue, now.0 - flush.began_ns);
                finished.push(FinishedCommand { slot: flush.slot, spent });
            }
            flush.left > 0
        });
        while let Some((slot, command, arrived_ns)) = self.waiting.front().copied() {
            if !self.fits(command.length.0) {
                return;
            }
            self.waiting.pop_front();
            self.begin(now.0, slot, command, arrived_ns);
        }
    }

    /// Takes up a flush; whether it must wait.
    pub fn flush(&mut self, now: Nanos, slot: Slot) -> bool {
        let (order, left) = (self.orders, self.held_count);
        if left > 0 {
            self.flushes.push(Flush { slot, began_ns: now.0, order, left });
        }
        left > 0
    }

    /// Commands taken up and not yet completed.
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + self.intake.len() + self.flushes.len()
    }

    /// Pages on their way to flash.
    pub fn pages(&self) -> u64 {
        self.held.iter().map(|(_, held)| u64::from(held.pages)).sum()
    }

    /// Checks every invariant. Errors: the first found broken.
    pub fn audit(&self) -> Result<(), String> {
        self.intake.audit()?;
        let bytes: u64 = self.held.iter().map(|(_, held)| held.command.length.0).sum();
        let count = self.held.iter().count();
        if (bytes, count) != (self.held_bytes, self.held_count) {
            let known = self.held_bytes;
            return Err(format!("{count} writes of {bytes} bytes are held, known are {known}"));
        }
        if count > 1 && bytes > self.capacity {
            return Err(format!("{bytes} bytes are held, more than {}", self.capacity));
        }
        let first = self.waiting.front();
        match first {
            Some((_, command, _)) if self.fits(command.length.0) => {
                Err("a write waits beside space for it".to_owned())
            }
            _ => Ok(()),
        }
    }
}
