//! The time of the back-end, and what happens later, in order of time.
//!
//! For: two words per event, no allocation per event. A few events stand in a sorted list, which is
//! fastest under a moderate load: a new event is mostly among the last. The others go to a binary
//! heap, so that the cost stays small for any number. Must never know: what an event does. Events
//! at the same nanosecond come in the order in which they were made. Units: nanoseconds.

use super::ids::{ChannelId, UnitId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// A channel is free, and transactions wait for it.
    ChannelFree(ChannelId),
    /// Data of a read has crossed a channel.
    Crossed(ChannelId),
    /// A unit has sensed.
    Sensed(UnitId),
    /// A unit has programmed or erased.
    Worked(UnitId),
    /// A unit has halted.
    Halted(UnitId),
    /// The controller has decided about a page.
    Decided,
}

/// Bits of the index of a channel or unit.
const INDEX_BITS: u32 = 20;
/// Bits of the kind.
const KIND_BITS: u32 = 3;

/// Channels or units there may be at most.
pub const MAX_INDEX: u32 = 1 << INDEX_BITS;

/// Events in the sorted list at most, and those taken out before it moves to its front.
const NEAR: usize = 48;

impl FlashEvent {
    /// The kind and the index as one number.
    #[inline]
    fn packed(self) -> u64 {
        let (kind, index) = match self {
            FlashEvent::ChannelFree(channel) => (0, channel.0),
            FlashEvent::Crossed(channel) => (1, channel.0),
            FlashEvent::Sensed(unit) => (2, unit.0),
            FlashEvent::Worked(unit) => (3, unit.0),
            FlashEvent::Halted(unit) => (4, unit.0),
            FlashEvent::Decided => (5, 0),
        };
        kind << INDEX_BITS | u64::from(index)
    }

    /// The event of a packed number; the bits above it are ignored.
    #[inline]
    fn unpacked(packed: u64) -> FlashEvent {
        let index = (packed & u64::from(MAX_INDEX - 1)) as u32;
        match packed >> INDEX_BITS & ((1 << KIND_BITS) - 1) {
            0 => FlashEvent::ChannelFree(ChannelId(index)),
            1 => FlashEvent::Crossed(ChannelId(index)),
            2 => FlashEvent::Sensed(UnitId(index)),
            3 => FlashEvent::Worked(UnitId(index)),
            4 => FlashEvent::Halted(UnitId(index)),
            _ => FlashEvent::Decided,
        }
    }
}

/// The time and the events to come, each by its time, and then its age above kind and index.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    now: u64,
    /// The earliest first, behind those taken out.
    near: Vec<(u64, u64)>,
    /// Events taken out of `near`.
    taken: usize,
    far: BinaryHeap<Reverse<(u64, u64)>>,
    made: u64,
}

impl Calendar {
    /// The time.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Moves time on to `now`, unless it is later already.
    #[inline]
    pub fn advance_to(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, time: u64, event: FlashEvent) {
        let event = (time, self.made << (INDEX_BITS + KIND_BITS) | event.packed());
        self.made += 1;
        if self.near.len() - self.taken == NEAR {
            return self.far.push(Reverse(event));
        }
        let mut position = self.near.len();
        self.near.push(event);
        // Those of the same time are older.
        while position > self.taken && self.near[position - 1].0 > time {
            self.near[position] = self.near[position - 1];
            position -= 1;
        }
        self.near[position] = event;
    }

    /// The next event, and whether it stands in the heap.
    #[inline]
    fn first(&self) -> Option<((u64, u64), bool)> {
        let near = self.near.get(self.taken).copied();
        if self.far.is_empty() {
            return near.map(|event| (event, false));
        }
        let Reverse(far) = *self.far.peek()?;
        Some(near.filter(|near| *near < far).map_or((far, true), |near| (near, false)))
    }

    /// The time of the next event.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        self.first().map(|((time, _), _)| time)
    }

    /// Takes the next event if it is due by `until`; its time is then the present.
    #[inline]
    pub fn pop(&mut self, until: u64) -> Option<FlashEvent> {
        let ((time, packed), in_heap) = self.first()?;
        if time > until {
            return None;
        }
        if in_heap {
            self.far.pop();
        } else {
            self.taken += 1;
            if self.taken >= NEAR {
                self.near.drain(..self.taken);
                self.taken = 0;
            }
        }
        debug_assert!(time >= self.now, "no event in the past");
        self.now = time;
        Some(FlashEvent::unpacked(packed))
    }

    /// Events made so far.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// No event lies in the past. Whether there are any.
    pub fn audit(&self) -> Result<bool, String> {
        match self.next_due() {
            Some(time) if time < self.now => Err(format!("an event at {time} is in the past")),
            next => Ok(next.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_age() {
        let mut calendar = Calendar::default();
        let last = FlashEvent::ChannelFree(ChannelId(MAX_INDEX - 1));
        calendar.push(20, FlashEvent::Worked(UnitId(7)));
        calendar.push(10, FlashEvent::Crossed(ChannelId(3)));
        calendar.push(20, last);
        assert_eq!(calendar.next_due(), Some(10));
        assert_eq!(calendar.pop(9), None);
        assert_eq!(calendar.pop(30), Some(FlashEvent::Crossed(ChannelId(3))));
        assert_eq!(calendar.now(), 10);
        assert_eq!(calendar.pop(30), Some(FlashEvent::Worked(UnitId(7))));
        assert_eq!(calendar.pop(30), Some(last));
        assert_eq!((calendar.pop(30), calendar.made(), calendar.now()), (None, 3, 20));
    }

    #[test]
    fn events_are_packed_without_loss() {
        let (channel, unit) = (ChannelId(5), UnitId(MAX_INDEX - 1));
        for event in [
            FlashEvent::ChannelFree(channel),
            FlashEvent::Crossed(channel),
            FlashEvent::Sensed(unit),
            FlashEvent::Worked(unit),
            FlashEvent::Halted(unit),
            FlashEvent::Decided,
        ] {
            assert_eq!(FlashEvent::unpacked(event.packed()), event);
        }
    }

    /// More events than the list has room for, at few times: the order is that of times and ages.
    #[test]
    fn many_events_come_in_the_same_order() {
        let mut calendar = Calendar::default();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        let mut popped = 0;
        for index in 0..10 * NEAR as u32 {
            let time = popped + u64::from(index * 7919 % 13);
            calendar.push(time, FlashEvent::Worked(UnitId(index)));
            expected.push((time, index));
            if index % 5 == 4 {
                expected.sort_unstable();
                let (time, index) = expected.remove(0);
                assert_eq!(calendar.pop(u64::MAX), Some(FlashEvent::Worked(UnitId(index))));
                popped = time;
            }
        }
        expected.sort_unstable();
        for (time, index) in expected {
            assert_eq!(calendar.next_due(), Some(time));
            assert_eq!(calendar.pop(time), Some(FlashEvent::Worked(UnitId(index))));
            assert_eq!(calendar.audit(), Ok(calendar.next_due().is_some()));
        }
        assert_eq!(calendar.next_due(), None);
    }
}
