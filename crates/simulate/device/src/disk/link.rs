//! The link of a disk: commands that end without the arm.
//!
//! For: reads that the track buffer holds, flushes, trims. Must never know: the medium. Units:
//! bytes, nanoseconds.

use crate::seam::{Command, Completion, Spent, SpentPart};
use cachewright_types::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A command on the link: when it ends, its number in order of submission, the rest.
type OnLink = Reverse<(u64, u64, u64, u64, u64)>;

/// The link, which carries one command after the other.
#[derive(Clone, Debug)]
pub struct DiskLink {
    bytes_per_s: f64,
    commands: BinaryHeap<OnLink>,
    count: u64,
    free_ns: u64,
}

impl DiskLink {
    /// An idle link.
    pub fn new(bytes_per_s: f64) -> DiskLink {
        DiskLink { bytes_per_s, commands: BinaryHeap::new(), count: 0, free_ns: 0 }
    }

    /// Ends a command after `bytes` have gone over the link, from `now_ns` on or once it is free.
    pub fn send(&mut self, command: &Command, submitted_ns: u64, now_ns: u64, bytes: u64) {
        let time_ns = (bytes as f64 * 1e9 / self.bytes_per_s).round() as u64;
        let finish_ns = now_ns.max(self.free_ns) + time_ns;
        self.free_ns = finish_ns;
        self.commands.push(Reverse((finish_ns, self.count, command.tag, submitted_ns, time_ns)));
        self.count += 1;
    }

    /// When the next command ends.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.commands.peek().map(|Reverse(command)| command.0)
    }

    /// Takes out the next command to end.
    pub fn complete(&mut self) -> Option<Completion> {
        let Reverse((finish_ns, _, tag, submitted_ns, link_ns)) = self.commands.pop()?;
        let mut spent = Spent::default();
        spent.add(SpentPart::Link, link_ns);
        spent.add(SpentPart::Queue, finish_ns - submitted_ns - link_ns);
        let (submitted, finished) = (Nanos(submitted_ns), Nanos(finish_ns));
        Some(Completion { tag, submitted, finished, spent })
    }

    /// Commands on the link.
    pub fn len(&self) -> usize {
        self.commands.len()
    }
}
