//! Which waiting command a disk serves next.
//!
//! For: the four orders found in disks and operating systems. Must never know: how long anything
//! takes; it is told. Sources: Jacobson and Wilkes, HPL-CSP-91-7 (shortest access time first);
//! Worthington, Ganger and Patt, SIGMETRICS'94.

use super::geometry::DiskPlace;
use crate::seam::Command;
use cachewright_types::choices;
use std::collections::VecDeque;

choices! {
    /// The order in which waiting commands are served.
    pub enum Schedule {
        /// First come, first served.
        Fifo = "fifo",
        /// The shortest way for the arm.
        Sstf = "sstf",
        /// Onwards in one direction, then in the other.
        Scan = "scan",
        /// The least time until the first sector is under its head.
        Satf = "satf",
    }
}

/// A command that waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCommand {
    /// The command.
    pub command: Command,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// First sector.
    pub first: u64,
    /// The sector after its last.
    pub end: u64,
    /// Where its first sector lies.
    pub place: DiskPlace,
}

/// The waiting commands of one disk, in order of arrival.
#[derive(Clone, Debug)]
pub struct DiskQueue {
    waiting: VecDeque<WaitingCommand>,
    schedule: Schedule,
    /// How many, from the oldest on, are chosen from.
    depth: usize,
    /// A command that has waited so long goes first; 0 for never.
    age_limit_ns: u64,
    inwards: bool,
}

impl DiskQueue {
    /// An empty queue.
    pub fn new(schedule: Schedule, depth: usize, age_limit_ns: u64) -> DiskQueue {
        DiskQueue { waiting: VecDeque::new(), schedule, depth, age_limit_ns, inwards: true }
    }

    /// Commands waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds the youngest.
    pub fn push(&mut self, waiting: WaitingCommand) {
        self.waiting.push_back(waiting);
    }

    /// Takes the next to serve, the arm being at `cylinder`; `access_ns` tells how long a command's
    /// first sector takes to come under its head. Ties go to the oldest.
    pub fn take(
        &mut self,
        now_ns: u64,
        cylinder: u64,
        access_ns: impl Fn(&WaitingCommand) -> u64,
    ) -> Option<WaitingCommand> {
        let oldest = self.waiting.front()?;
        let waited_ns = now_ns.saturating_sub(oldest.submitted_ns);
        let overdue = self.age_limit_ns > 0 && waited_ns >= self.age_limit_ns;
        let choice = self.waiting.iter().take(self.depth).enumerate();
        let chosen = match self.schedule {
            _ if overdue || self.waiting.len() == 1 => 0,
            Schedule::Fifo => 0,
            Schedule::Sstf => nearest(choice, |waiting| waiting.place.cylinder.abs_diff(cylinder)),
            Schedule::Satf => nearest(choice, access_ns),
            Schedule::Scan => self.scan(cylinder),
        };
        self.waiting.remove(chosen)
    }

    /// The nearest in the arm's direction, which turns when there is none.
    fn scan(&mut self, cylinder: u64) -> usize {
        let onwards = |inwards: bool| {
            let ahead = move |waiting: &WaitingCommand| match inwards {
                true => waiting.place.cylinder >= cylinder,
                false => waiting.place.cylinder <= cylinder,
            };
            let choice = self.waiting.iter().take(self.depth).enumerate();
            choice
                .filter(|(_, waiting)| ahead(waiting))
                .min_by_key(|(index, waiting)| (waiting.place.cylinder.abs_diff(cylinder), *index))
                .map(|(index, _)| index)
        };
        if let Some(found) = onwards(self.inwards) {
            return found;
        }
        self.inwards = !self.inwards;
        onwards(self.inwards).unwrap_or(0)
    }
}

fn nearest<'a>(
    choice: impl Iterator<Item = (usize, &'a WaitingCommand)>,
    far: impl Fn(&WaitingCommand) -> u64,
) -> usize {
    choice.map(|(index, waiting)| (far(waiting), index)).min().map_or(0, |(_, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::{Bytes, Op, TenantId};

    fn order(schedule: Schedule, depth: usize, age_limit_ns: u64) -> Vec<u64> {
        let mut queue = DiskQueue::new(schedule, depth, age_limit_ns);
        for (tag, cylinder) in [50, 10, 60, 90, 40].into_iter().enumerate() {
            let (offset, length) = (Bytes(0), Bytes(512));
            let tenant = TenantId(0);
            let command = Command { tag: tag as u64, op: Op::Read, offset, length, tenant };
            let place = DiskPlace { cylinder, head: 0, angle: 0 };
            queue.push(WaitingCommand { command, submitted_ns: 0, first: 0, end: 1, place });
        }
        let mut at = 52;
        let mut order = Vec::new();
        while let Some(next) = queue.take(100, at, |one| 100 - one.place.cylinder) {
            at = next.place.cylinder;
            order.push(at);
        }
        order
    }

    #[test]
    fn each_order_by_hand() {
        assert_eq!(order(Schedule::Fifo, 32, 0), [50, 10, 60, 90, 40]);
        assert_eq!(order(Schedule::Sstf, 32, 0), [50, 60, 40, 10, 90]);
        assert_eq!(order(Schedule::Sstf, 2, 0), [50, 60, 90, 40, 10]);
        assert_eq!(order(Schedule::Scan, 32, 0), [60, 90, 50, 40, 10]);
        assert_eq!(order(Schedule::Satf, 32, 0), [90, 60, 50, 40, 10]);
        assert_eq!(order(Schedule::Satf, 32, 100), [50, 10, 60, 90, 40], "all are overdue");
    }
}
