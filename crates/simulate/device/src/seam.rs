//! The seam every device model stands behind.
//!
//! For: commands in, completions out, time moved from outside. A device is a value: two of them
//! never share state, and the same commands at the same times give the same completions. Must never
//! know: the caller, or which model answers. Units: bytes, nanoseconds of simulated time.

use crate::report::Report;
pub use crate::spent::{Spent, SpentPart};
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
