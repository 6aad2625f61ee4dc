//! Devices whose every command takes a time known when it is submitted: memory, fixed latency,
//! measured latency, none.
//!
//! Commands wait in one queue before servers in parallel, first come, first served. With one server
//! this is the queue of theory: Poisson arrivals and equal times wait as M/D/1 does. A command to
//! memory uses one channel for latency and transfer. A command to [`Null`] completes at the time it
//! is submitted, by the next advance. Units: bytes, nanoseconds.

use crate::device::{Command, Completion, Device, Spent, SpentPart};
use crate::report::{Energy, Report};
use cachewright_types::{Bytes, Nanos, Op, Rng, Seed, SettingError, Value, declare};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Draws the times of devices whose times vary.
const SERVICE_SEED: Seed = Seed(1);

/// What tells one such device from another.
pub trait Service: Clone {
    /// What the time in service is called.
    const PART: SpentPart;
    /// Commands served at once.
    fn servers(&self) -> u32;
    /// Bytes that can be addressed.
    fn capacity(&self) -> Bytes;
    /// The time of a read or write once it is its turn; devices whose times vary draw it.
    fn service_ns(&self, command: &Command, rng: &mut Rng) -> u64;
    /// The same of a flush.
    fn flush_ns(&self, _rng: &mut Rng) -> u64 {
        0
    }
    /// Errors: settings that no device has.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }
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
    rng: Rng,
}

impl<S: Service> Served<S> {
    /// An idle device. Errors: as of [`Service::check`].
    pub fn new(service: &S) -> Result<Served<S>, SettingError> {
        service.check()?;
        let rng = SERVICE_SEED.rng();
        let free_ns = (0..service.servers().max(1)).map(|_| Reverse(0)).collect();
        let (endings, done) = (BinaryHeap::new(), ServedWork::default());
        Ok(Served { service: service.clone(), free_ns, endings, count: 0, done, rng })
    }

    /// The time of a command in service; trims take none.
    fn service_ns(&mut self, command: &Command) -> u64 {
        match command.op {
            Op::Read => self.done.reads += 1,
            Op::Write => self.done.writes += 1,
            Op::Trim => return 0,
            Op::Flush => return self.service.flush_ns(&mut self.rng),
        }
        self.done.bytes += command.length.0;
        self.service.service_ns(command, &mut self.rng)
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

    fn service_ns(&self, command: &Command, _rng: &mut Rng) -> u64 {
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

    fn service_ns(&self, command: &Command, _rng: &mut Rng) -> u64 {
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

/// So many of 100 commands take no longer than the times of [`MeasuredSettings`], in their order.
pub const MEASURED_SHARES: [f64; 10] = [0.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0];
/// The length of commands whose times were measured.
const MEASURED_BYTES: u64 = 4096;

declare! {
    /// A device whose times were measured; the defaults are those of fixed latency.
    pub struct MeasuredSettings {
        "device" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(1_099_511_627_776), "bytes", 1 ..= 1e15;
                "as large as wanted";
            /// times of reads of 4 KiB that 0, 5, 25, 50, 75, 90, 95, 99, 99.9 and 100 of 100 do
            /// not exceed, or one time of all
            read: Vec<Nanos> = vec![Nanos(100_000)], "times"; "typical of flash";
            /// the same of writes
            write: Vec<Nanos> = vec![Nanos(60_000)], "times";
                "typical of flash behind a buffer";
            /// the same of flushes
            flush: Vec<Nanos> = vec![Nanos(0)], "times"; "with a power-loss protected buffer";
            /// rate of what a read has beyond 4 KiB; 0 is not given
            read_mb_per_s: f64 = 0.0, "MB/s", 0.0 ..= 10_000_000.0; "not given";
            /// the same of writes
            write_mb_per_s: f64 = 0.0, "MB/s", 0.0 ..= 10_000_000.0; "not given";
            /// commands served at once
            parallelism: u32 = 32, "commands", 1 ..= 65_536; "native command queueing of SATA";
        }
    }
}

/// A device whose times were measured: each command draws one.
pub type MeasuredLatency = Served<MeasuredSettings>;

impl MeasuredSettings {
    /// The mean time of a read of 4 KiB, in nanoseconds.
    pub fn mean_read_ns(&self) -> f64 {
        let Some(shares) = shares(&self.read) else { return first_ns(&self.read) as f64 };
        let spans = shares.windows(2);
        spans.map(|span| (span[1].0 - span[0].0) / 200.0 * (span[0].1 + span[1].1)).sum()
    }

    /// The share of reads of 4 KiB that take longer than a time.
    pub fn read_share_above(&self, time: Nanos) -> f64 {
        let above = |ns: f64| f64::from(u8::from(ns > time.0 as f64));
        let Some(shares) = shares(&self.read) else { return above(first_ns(&self.read) as f64) };
        let part = |span: &[(f64, f64)]| {
            let (from, to) = (span[0].1, span[1].1);
            let inside = if to > from { (to - time.0 as f64) / (to - from) } else { above(to) };
            (span[1].0 - span[0].0) / 100.0 * inside.clamp(0.0, 1.0)
        };
        shares.windows(2).map(part).sum()
    }
}

/// Shares of 100 and times in nanoseconds; nothing where one time holds for all.
fn shares(times: &[Nanos]) -> Option<Vec<(f64, f64)>> {
    let pairs = MEASURED_SHARES.into_iter().zip(times.iter().map(|time| time.0 as f64));
    (times.len() == MEASURED_SHARES.len()).then(|| pairs.collect())
}

fn first_ns(times: &[Nanos]) -> u64 {
    times.first().map_or(0, |time| time.0)
}

/// Errors: a list of times under `key` that [`drawn_ns`] does not know.
pub fn check_measured(key: &str, times: &[Nanos]) -> Result<(), SettingError> {
    let is_list = times.len() == 1 || times.len() == MEASURED_SHARES.len();
    if is_list && times.is_sorted() {
        return Ok(());
    }
    let values = times.iter().map(|time| Value::Text(time.to_string())).collect();
    Err(SettingError {
        key: key.to_owned(),
        found: format!("`{}`", Value::List(values)),
        expected: format!(
            "one time, or {} times none of which is shorter than the one before",
            MEASURED_SHARES.len()
        ),
    })
}

/// The only time, or one between the two whose [shares](MEASURED_SHARES) lie around a random share,
/// in proportion.
pub fn drawn_ns(times: &[Nanos], rng: &mut Rng) -> u64 {
    if times.len() < 2 {
        return first_ns(times);
    }
    let share = 100.0 * rng.unit();
    let above = MEASURED_SHARES.partition_point(|known| *known <= share).clamp(1, times.len() - 1);
    let [low, high] = [above - 1, above].map(|at| (MEASURED_SHARES[at], times[at].0 as f64));
    let part = (share - low.0) / (high.0 - low.0);
    (low.1 + part * (high.1 - low.1)).round() as u64
}

impl Service for MeasuredSettings {
    const PART: SpentPart = SpentPart::Transfer;

    fn servers(&self) -> u32 {
        self.parallelism
    }

    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn service_ns(&self, command: &Command, rng: &mut Rng) -> u64 {
        let (times, mb_per_s) = match command.op {
            Op::Read => (&self.read, self.read_mb_per_s),
            _ => (&self.write, self.write_mb_per_s),
        };
        let more_bytes = command.length.0.saturating_sub(MEASURED_BYTES) as f64;
        let more_ns = if mb_per_s > 0.0 { more_bytes * 1e3 / mb_per_s } else { 0.0 };
        drawn_ns(times, rng) + more_ns.round() as u64
    }

    fn flush_ns(&self, rng: &mut Rng) -> u64 {
        drawn_ns(&self.flush, rng)
    }

    fn check(&self) -> Result<(), SettingError> {
        let lists = [("read", &self.read), ("write", &self.write), ("flush", &self.flush)];
        lists.into_iter().try_for_each(|(key, times)| check_measured(key, times))
    }

    fn energy(&self, _done: &ServedWork, _elapsed_ns: u64) -> Energy {
        Energy::default()
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
