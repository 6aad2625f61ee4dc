//! Devices whose every command takes a time known when it is submitted: memory, fixed latency,
//! none.
//!
//! Commands wait in one queue before servers in parallel, first come, first served. With one server
//! this is the queue of theory: Poisson arrivals and equal times wait as M/D/1 does. A command to
//! memory uses one channel for latency and transfer. A command to [`Null`] completes at the time it
//! is submitted, by the next advance. Units: bytes, nanoseconds.

use crate::device::{Command, Completion, Device, Spent, SpentPart};
use crate::report::{Energy, Report};
use cachewright_types::{Bytes, Nanos, Op, SettingError, declare};
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

declare! {
    /// Memory; the defaults are one channel of DDR4-3200.
    pub struct RamSettings {
        "memory" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(1_099_511_627_776), "bytes", 1 ..= 1e15;
                "as large as wanted";
            /// time before the first byte of a command
            latency: Nanos = Nanos(100), "time", 0 ..= 1_000_000_000; "typical of DDR4";
            /// rate of one channel
            channel_mb_per_s: f64 = 25_600.0, "MB/s", 0.001 ..= 10_000_000.0;
                "JEDEC JESD79-4: 3,200 MT/s of 8 bytes";
            /// channels
            channels: u32 = 1, "channels", 1 ..= 1024; "one";
        }
        "energy" {
            /// power drawn all the time; 0 is not given
            idle_power: f64 = 0.0, "W", 0.0 ..= 100_000.0; "not given";
            /// energy of moving data, beside that; 0 is not given
            transfer_energy: f64 = 0.0, "pJ/bit", 0.0 ..= 100_000.0; "not given";
        }
    }
}

/// Memory.
pub type Ram = Served<RamSettings>;

impl Service for RamSettings {
    const PART: SpentPart = SpentPart::Dram;

    fn servers(&self) -> u32 {
        self.channels
    }

    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn service_ns(&self, command: &Command) -> u64 {
        let transfer_ns = command.length.0 as f64 * 1e3 / self.channel_mb_per_s;
        self.latency.0 + transfer_ns.round() as u64
    }

    fn energy(&self, done: &ServedWork, elapsed_ns: u64) -> Energy {
        let mut energy = Energy::default();
        energy.draw("idle", self.idle_power, elapsed_ns);
        energy.spend("transfer", self.transfer_energy * 1e-12, done.bytes * 8);
        energy
    }
}

declare! {
    /// A device of fixed latency; the defaults are an SSD on SATA with one queue of 32.
    pub struct FixedSettings {
        "device" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(1_099_511_627_776), "bytes", 1 ..= 1e15;
                "as large as wanted";
            /// time of a read
            read: Nanos = Nanos(100_000), "time", 0 ..= 1e12; "typical of flash";
            /// time of a write
            write: Nanos = Nanos(60_000), "time", 0 ..= 1e12;
                "typical of flash behind a buffer";
            /// commands served at once
            parallelism: u32 = 32, "commands", 1 ..= 65_536; "native command queueing of SATA";
        }
        "energy" {
            /// power drawn all the time; 0 is not given
            idle_power: f64 = 0.0, "W", 0.0 ..= 100_000.0; "not given";
            /// energy of a read, beside that; 0 is not given
            read_energy: f64 = 0.0, "uJ", 0.0 ..= 1_000_000_000.0; "not given";
            /// energy of a write, beside that; 0 is not given
            write_energy: f64 = 0.0, "uJ", 0.0 ..= 1_000_000_000.0; "not given";
        }
    }
}

/// A device of fixed latency.
pub type FixedLatency = Served<FixedSettings>;

impl Service for FixedSettings {
    const PART: SpentPart = SpentPart::Transfer;

    fn servers(&self) -> u32 {
        self.parallelism
    }

    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn service_ns(&self, command: &Command) -> u64 {
        if command.op == Op::Read { self.read.0 } else { self.write.0 }
    }

    fn energy(&self, done: &ServedWork, elapsed_ns: u64) -> Energy {
        let mut energy = Energy::default();
        energy.draw("idle", self.idle_power, elapsed_ns);
        energy.spend("reads", self.read_energy * 1e-6, done.reads);
        energy.spend("writes", self.write_energy * 1e-6, done.writes);
        energy
    }
}

declare! {
    /// A device that takes no time.
    pub struct NullSettings {
        "device" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(1_099_511_627_776), "bytes", 1 ..= 1e15;
                "as large as wanted";
        }
    }
}

/// A device that takes no time.
#[derive(Clone, Debug)]
pub struct Null {
    capacity: Bytes,
    /// Tag and time of each command not yet completed.
    waiting: Vec<(u64, Nanos)>,
}

impl Null {
    /// A device. Errors: none today.
    pub fn new(settings: &NullSettings) -> Result<Null, SettingError> {
        Ok(Null { capacity: settings.capacity, waiting: Vec::new() })
    }
}

impl Device for Null {
    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        self.waiting.push((command.tag, now));
    }

    fn next_due(&self) -> Option<Nanos> {
        self.waiting.first().map(|(_, time)| *time)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let due = self.waiting.partition_point(|(_, time)| *time <= now);
        done.extend(self.waiting.drain(..due).map(|(tag, time)| {
            let spent = Spent::default();
            Completion { tag, submitted: time, finished: time, spent }
        }));
    }

    fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    fn audit(&self) -> Result<(), String> {
        match self.waiting.is_sorted_by_key(|(_, time)| *time) {
            true => Ok(()),
            false => Err("commands are out of order".to_owned()),
        }
    }
}
