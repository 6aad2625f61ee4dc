//! Servers in parallel before which one queue forms, first come, first served.
//!
//! For: devices whose every command takes a time known when it is submitted (memory, fixed
//! latency). Must never know: what the time is made of. Units: nanoseconds. With one server this is
//! the queue of theory: Poisson arrivals and equal times wait as M/D/1 does.

use crate::energy::Energy;
use crate::report::Report;
use crate::seam::{Command, Completion, Device, Spent, SpentPart};
use cachewright_types::{Bytes, Nanos, Op, SettingError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What tells one such device from another.
pub trait Service: Clone {
    /// What the time in service is called.
    const PART: SpentPart;
    /// Commands served at once.
    fn servers(&self) -> u32;
    /// Bytes that can be addressed.
    fn capacity(&self) -> Bytes;
    /// The time of a read or write once it is its turn.
    fn service_ns(&self, command: &Command) -> u64;
    /// What was spent after `elapsed_ns` on what was done.
    fn energy(&self, done: &ServedWork, elapsed_ns: u64) -> Energy;
}

/// Reads and writes accepted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedWork {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// A command that will end: when, its number, its tag, when it was submitted, its time in service.
type CommandEnd = Reverse<(u64, u64, u64, u64, u64)>;

/// A device of such servers.
#[derive(Clone, Debug)]
pub struct Served<S> {
    service: S,
    /// When each server is free.
    free_ns: BinaryHeap<Reverse<u64>>,
    endings: BinaryHeap<CommandEnd>,
    count: u64,
    done: ServedWork,
}

impl<S: Service> Served<S> {
    /// An idle device. Errors: none today.
    pub fn new(service: &S) -> Result<Served<S>, SettingError> {
        let free_ns = (0..service.servers().max(1)).map(|_| Reverse(0)).collect();
        let (endings, done) = (BinaryHeap::new(), ServedWork::default());
        Ok(Served { service: service.clone(), free_ns, endings, count: 0, done })
    }

    /// The time of a command in service; trims and flushes take none.
    fn service_ns(&mut self, command: &Command) -> u64 {
        match command.op {
            Op::Read => self.done.reads += 1,
            Op::Write => self.done.writes += 1,
            Op::Trim | Op::Flush => return 0,
        }
        self.done.bytes += command.length.0;
        self.service.service_ns(command)
    }
}

impl<S: Service> Device for Served<S> {
    fn capacity(&self) -> Bytes {
        self.service.capacity()
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        let service_ns = self.service_ns(&command);
        let free = self.free_ns.peek_mut().map(|mut earliest| {
            let start_ns = earliest.0.max(now.0);
            *earliest = Reverse(start_ns + service_ns);
            start_ns + service_ns
        });
        let finish_ns = free.unwrap_or(now.0 + service_ns);
        self.endings.push(Reverse((finish_ns, self.count, command.tag, now.0, service_ns)));
        self.count += 1;
    }

    fn next_due(&self) -> Option<Nanos> {
        self.endings.peek().map(|Reverse(ending)| Nanos(ending.0))
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.next_due().is_some_and(|due| due <= now)
            && let Some(Reverse((finish_ns, _, tag, submitted_ns, service_ns))) = self.endings.pop()
        {
            let mut spent = Spent::default();
            spent.add(S::PART, service_ns);
            spent.add(SpentPart::Queue, finish_ns - submitted_ns - service_ns);
            let (submitted, finished) = (Nanos(submitted_ns), Nanos(finish_ns));
            done.push(Completion { tag, submitted, finished, spent });
        }
    }

    fn outstanding(&self) -> usize {
        self.endings.len()
    }

    fn report(&self, now: Nanos) -> Report {
        Report { energy: self.service.energy(&self.done, now.0), ..Report::default() }
    }

    /// Nothing ends before it was submitted and served.
    fn audit(&self) -> Result<(), String> {
        let early =
            |Reverse((finish, _, _, start, service)): &&CommandEnd| *finish < *start + *service;
        match self.endings.iter().find(early) {
            Some(Reverse((_, _, tag, _, _))) => Err(format!("command {tag} ends too early")),
            None => Ok(()),
        }
    }
}
