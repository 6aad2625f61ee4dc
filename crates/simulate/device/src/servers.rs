//! Servers in parallel before which one queue forms, first come, first served.
//!
//! For: devices whose every command takes a time known when it is submitted (memory, fixed
//! latency). Must never know: what the time is made of. Units: nanoseconds. With one server this is
//! the queue of theory: Poisson arrivals and equal times wait as M/D/1 does.

use crate::seam::{Command, Completion, Part, Spent};
use cachewright_types::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A command that will end: when, its number, its tag, when it was submitted, its time in service.
type Ending = Reverse<(u64, u64, u64, u64, u64)>;

/// The servers of one device.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    /// When each server is free.
    free_ns: BinaryHeap<Reverse<u64>>,
    endings: BinaryHeap<Ending>,
    count: u64,
    /// What the time in service is called.
    part: Part,
}

impl Servers {
    /// `count` idle servers.
    pub fn new(count: u32, part: Part) -> Servers {
        let free_ns = (0..count.max(1)).map(|_| Reverse(0)).collect();
        Servers { free_ns, endings: BinaryHeap::new(), count: 0, part }
    }

    /// Accepts a command that takes `service_ns` once it is its turn.
    pub fn submit(&mut self, now: Nanos, command: &Command, service_ns: u64) {
        let free = self.free_ns.peek_mut().map(|mut earliest| {
            let start_ns = earliest.0.max(now.0);
            *earliest = Reverse(start_ns + service_ns);
            start_ns + service_ns
        });
        let finish_ns = free.unwrap_or(now.0 + service_ns);
        self.endings.push(Reverse((finish_ns, self.count, command.tag, now.0, service_ns)));
        self.count += 1;
    }

    /// When the next command ends.
    pub fn next_due(&self) -> Option<Nanos> {
        self.endings.peek().map(|Reverse(ending)| Nanos(ending.0))
    }

    /// Ends what ends until `now`.
    pub fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.next_due().is_some_and(|due| due <= now)
            && let Some(Reverse((finish_ns, _, tag, submitted_ns, service_ns))) = self.endings.pop()
        {
            let mut spent = Spent::default();
            spent.add(self.part, service_ns);
            spent.add(Part::Queue, finish_ns - submitted_ns - service_ns);
            let (submitted, finished) = (Nanos(submitted_ns), Nanos(finish_ns));
            done.push(Completion { tag, submitted, finished, spent });
        }
    }

    /// Commands accepted and not yet completed.
    pub fn outstanding(&self) -> usize {
        self.endings.len()
    }

    /// Checks that nothing ends before it was submitted and served. Errors: what does, in words.
    pub fn audit(&self) -> Result<(), String> {
        let early = |Reverse((finish, _, _, start, service)): &&Ending| *finish < *start + *service;
        match self.endings.iter().find(early) {
            Some(Reverse((_, _, tag, _, _))) => Err(format!("command {tag} ends too early")),
            None => Ok(()),
        }
    }
}
