//! Groups on their way to the devices, and how far the log is written and durable.
//!
//! For: answers in the order of the log: a group counts as written when all groups before it are.
//! Must never know: records. Units: numbers of groups, pages.

use super::format::PAGE;
use super::set::SegmentId;
use crate::io::{Buffer, SpareBuffers};
use std::collections::VecDeque;
use std::sync::Arc;

/// Groups whose memory is kept for the next.
const KEPT_GROUPS: usize = 8;

/// A group that was handed to its device.
#[derive(Clone, Debug)]
pub struct Flying {
    /// Its number.
    pub number: u64,
    /// Its segment.
    pub segment: SegmentId,
    /// The page of the segment at which its memory begins.
    pub first_page: u32,
    /// What is written.
    pub memory: Arc<Buffer>,
    /// Whether the device has taken it.
    pub done: bool,
}

/// Groups under way.
#[derive(Debug)]
pub struct Flight {
    /// In the order of their numbers.
    groups: VecDeque<Flying>,
    /// Memory of groups that are written.
    spare: SpareBuffers,
    begun: u64,
    written: u64,
    durable: u64,
}

impl Flight {
    /// All groups up to `last` are durable.
    pub fn new(last: u64) -> Flight {
        let (groups, spare) = (VecDeque::new(), SpareBuffers::new(KEPT_GROUPS));
        Flight { groups, spare, begun: last, written: last, durable: last }
    }

    /// The number of a group that begins to be filled.
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// The number of the last group that was begun.
    pub fn last(&self) -> u64 {
        self.begun
    }

    /// Whether devices have groups to write. Some that are written may wait for an earlier group of
    /// another stream, which is still being filled.
    pub fn is_busy(&self) -> bool {
        self.groups.iter().any(|group| !group.done)
    }

    /// All groups up to this one are written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// All groups up to this one are durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// A group is handed to its device.
    pub fn launch(&mut self, group: Flying) {
        let place = self.groups.partition_point(|other| other.number < group.number);
        self.groups.insert(place, group);
    }

    /// Memory of `bytes` bytes of any content, for a group.
    pub fn memory(&mut self, bytes: usize) -> Buffer {
        self.spare.take(bytes)
    }

    /// The device has taken a group.
    pub fn land(&mut self, number: u64) {
        if let Ok(place) = self.groups.binary_search_by_key(&number, |group| group.number) {
            self.groups[place].done = true;
        }
        while let Some(group) = self.groups.front() {
            if !group.done || group.number != self.written + 1 {
                break;
            }
            self.written += 1;
            let memory = self.groups.pop_front().map(|group| Arc::try_unwrap(group.memory));
            memory.into_iter().flatten().for_each(|memory| self.spare.give_back(memory));
        }
    }

    /// The segment of a group that is under way.
    pub fn segment_of(&self, number: u64) -> Option<SegmentId> {
        let place = self.groups.binary_search_by_key(&number, |group| group.number).ok()?;
        Some(self.groups[place].segment)
    }

    /// All groups up to `number` are durable.
    pub fn settle(&mut self, number: u64) {
        debug_assert!(number <= self.written, "what is durable was written");
        self.durable = self.durable.max(number);
    }

    /// The content of a block of `pages` pages, if its group is under way.
    pub fn content(&self, segment: SegmentId, page: u32, pages: u32) -> Option<&[u8]> {
        let start = |group: &Flying| {
            let end = group.first_page as usize + group.memory.len() / PAGE;
            let inside = group.first_page < page && (page + pages) as usize <= end;
            (group.segment == segment && inside).then(|| (page - group.first_page) as usize * PAGE)
        };
        self.groups.iter().find_map(|group| {
            let start = start(group)?;
            Some(&group.memory[start..start + pages as usize * PAGE])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u64, first_page: u32, value: u8) -> Flying {
        let mut memory = Buffer::zeroed(2 * PAGE);
        memory.fill(value);
        let (segment, memory) = (SegmentId(1), Arc::new(memory));
        Flying { number, segment, first_page, memory, done: false }
    }

    /// The log waited for ever where an earlier group of another stream was not full.
    #[test]
    fn a_group_that_waits_for_an_open_one_keeps_no_device_busy() {
        let mut flight = Flight::new(0);
        assert_eq!([flight.begin(), flight.begin()], [1, 2]);
        flight.launch(group(2, 4, 2));
        assert!(flight.is_busy());
        flight.land(2);
        assert!(!flight.is_busy(), "group 1 is to be handed over");
    }

    #[test]
    fn a_group_is_written_when_all_before_it_are() {
        let mut flight = Flight::new(10);
        assert_eq!([flight.begin(), flight.begin(), flight.begin()], [11, 12, 13]);
        flight.launch(group(12, 4, 2));
        flight.launch(group(11, 2, 1));
        flight.land(12);
        assert_eq!((flight.written(), flight.last()), (10, 13));
        assert!(flight.is_busy());
        assert_eq!(flight.content(SegmentId(1), 5, 1).map(|data| data[0]), Some(2));
        assert_eq!(flight.content(SegmentId(1), 4, 1), None, "a descriptor is no content");
        assert_eq!(flight.content(SegmentId(0), 5, 1), None);
        flight.land(11);
        assert_eq!((flight.written(), flight.durable(), flight.groups.len()), (12, 10, 0));
        assert_eq!(flight.memory(PAGE)[0], 2, "memory of a group is used again");
        flight.settle(12);
        assert_eq!(flight.durable(), 12);
    }
}
