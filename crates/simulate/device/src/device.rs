//! What a device is to its caller, and where the time of a command went.
//!
//! A device is a value: two of them never share state, and the same commands at the same times give
//! the same completions. Units: bytes, nanoseconds of simulated time.

use crate::report::Report;
use cachewright_types::{Bytes, Nanos, Op, TenantId};
use std::ops::Range;

/// A device behind its seam.
pub type AnyDevice = Box<dyn Device + Send>;

/// One command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Returned with the completion; the device gives it no meaning.
    pub tag: u64,
    /// What is asked.
    pub op: Op,
    /// First byte on the device.
    pub offset: Bytes,
    /// Length; 0 for a flush.
    pub length: Bytes,
    /// Whose command it is: the submission queue of an SSD, the owner of shares and counters.
    pub tenant: TenantId,
}

/// One command done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's tag.
    pub tag: u64,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it was done.
    pub finished: Nanos,
    /// Where the time between went.
    pub spent: Spent,
}

/// Addresses that a drive keeps on channels of their own (open-channel mode). Cleaning and programs
/// of one such range take no channel or die of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The channels.
    pub channels: Vec<u32>,
    /// The bytes of the drive.
    pub bytes: Range<u64>,
    /// Bytes that are programmed together.
    pub page: Bytes,
}

/// A device under simulated time.
///
/// The caller moves time: it submits at a time no earlier than the last one it named, and advances
/// to times it chooses, usually [`Device::next_due`]. Nothing happens between calls.
pub trait Device {
    /// Bytes that can be addressed.
    fn capacity(&self) -> Bytes;

    /// Accepts a command at `now`. It completes exactly once, by an advance to its time. A command
    /// beyond the capacity is the caller's fault: callers check it with [`Device::capacity`].
    fn submit(&mut self, now: Nanos, command: Command);

    /// When something next happens inside; nothing when the device is idle.
    fn next_due(&self) -> Option<Nanos>;

    /// Lets everything due at or before `now` happen, in order of time, and appends what completed,
    /// in the order of completion.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// Commands accepted and not yet completed.
    fn outstanding(&self) -> usize;

    /// The ranges of addresses that lie on channels of their own, in the order of addresses; empty
    /// for a device that has no such thing.
    fn exposed(&self) -> Vec<Exposed> {
        Vec::new()
    }

    /// What it did from time 0 up to `now`, and what the devices behind it did. Slow, because it
    /// copies statistics.
    fn report(&self, _now: Nanos) -> Report {
        Report::default()
    }

    /// Checks everything that must hold between calls. Errors: the first rule found broken, in
    /// words. Slow; for tests and debug builds.
    fn audit(&self) -> Result<(), String>;
}
/// Where the time of a command went; the parts of [`Spent`], in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SpentPart {
    /// Waiting in a queue of the host interface or the device's scheduler.
    Queue = 0,
    /// On the link between host and device.
    Link = 1,
    /// In the device's memory: its transfer and the wait for it.
    Dram = 2,
    /// For an entry of the mapping table that had to be read from flash.
    Map = 3,
    /// Waiting for a channel, and on it.
    Channel = 4,
    /// Waiting for a die that works for another host command.
    DieWait = 5,
    /// Waiting for a die that cleans.
    CleanWait = 6,
    /// Sensing, programming or erasing flash.
    Flash = 7,
    /// Moving a disk's arm.
    Seek = 8,
    /// Waiting for a disk's sector to come round.
    Rotation = 9,
    /// Between medium and buffer of a disk.
    Transfer = 10,
    /// For a segment of a log that is still to be cleaned and reset.
    Segment = 11,
}

impl SpentPart {
    /// All parts, in the order of their numbers.
    pub const ALL: [SpentPart; 12] = [
        SpentPart::Queue,
        SpentPart::Link,
        SpentPart::Dram,
        SpentPart::Map,
        SpentPart::Channel,
        SpentPart::DieWait,
        SpentPart::CleanWait,
        SpentPart::Flash,
        SpentPart::Seek,
        SpentPart::Rotation,
        SpentPart::Transfer,
        SpentPart::Segment,
    ];

    /// The word used in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            SpentPart::Queue => "queue",
            SpentPart::Link => "link",
            SpentPart::Dram => "dram",
            SpentPart::Map => "map miss",
            SpentPart::Channel => "channel",
            SpentPart::DieWait => "die wait",
            SpentPart::CleanWait => "cleaning wait",
            SpentPart::Flash => "flash",
            SpentPart::Seek => "seek",
            SpentPart::Rotation => "rotation",
            SpentPart::Transfer => "transfer",
            SpentPart::Segment => "segment wait",
        }
    }
}

/// Nanoseconds of one command by [`SpentPart`], along the path that ended last; they add up to the
/// time between submission and completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// By the number of the part.
    pub parts_ns: [u64; SpentPart::ALL.len()],
}

impl Spent {
    /// Adds time to a part.
    pub fn add(&mut self, part: SpentPart, time_ns: u64) {
        self.parts_ns[part as usize] += time_ns;
    }

    /// The time of a part.
    pub fn part_ns(&self, part: SpentPart) -> u64 {
        self.parts_ns[part as usize]
    }

    /// Adds the time of what came next.
    pub fn then(&mut self, next: &Spent) {
        for (sum, part) in self.parts_ns.iter_mut().zip(&next.parts_ns) {
            *sum += part;
        }
    }

    /// The sum of all parts.
    pub fn total_ns(&self) -> u64 {
        self.parts_ns.iter().sum()
    }
}
