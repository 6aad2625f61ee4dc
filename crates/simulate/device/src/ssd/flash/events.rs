//! What happens later, in order of time.
//!
//! For: the calendar of the back-end: two words per event, no allocation per event. A few events
//! stand in a sorted list, which is quickest for the few that a moderate load has; what finds no
//! room there goes to a binary heap, so that the cost stays small for any number. Must never know:
//! what an event does. Events at the same nanosecond come in the order in which they were made.
//! Units: nanoseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A channel is free and someone waits for it.
    Channel,
    /// Data of a read has crossed a channel.
    Out,
    /// A unit has sensed.
    Sensed,
    /// A unit has programmed or erased.
    Worked,
    /// A unit has halted.
    Halted,
    /// The controller has decided about a page.
    Decided,
}

/// By number; those beyond the last are never made.
const KINDS: [What; 1 << KIND_BITS] = [
    What::Channel,
    What::Out,
    What::Sensed,
    What::Worked,
    What::Halted,
    What::Decided,
    What::Decided,
    What::Decided,
];
/// Bits of the index of a channel or unit.
const INDEX_BITS: u32 = 20;
/// Bits of the kind.
const KIND_BITS: u32 = 3;

/// The most channels or units there may be.
pub const MOST: u32 = 1 << INDEX_BITS;

/// Events in the sorted list at most.
const NEAR: usize = 24;

/// Events to come, each by its time, and then its age above kind and index.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// The latest first.
    near: Vec<(u64, u64)>,
    far: BinaryHeap<Reverse<(u64, u64)>>,
    made: u64,
}

impl Events {
    /// Adds an event of the channel or unit `index`.
    #[inline]
    pub fn push(&mut self, time: u64, what: What, index: u32) {
        let low = u64::from(what as u32) << INDEX_BITS | u64::from(index);
        let event = (time, self.made << (INDEX_BITS + KIND_BITS) | low);
        self.made += 1;
        let mut at = self.near.len();
        if at == NEAR {
            return self.far.push(Reverse(event));
        }
        self.near.push(event);
        // Those of the same time are older.
        while at > 0 && self.near[at - 1].0 <= time {
            self.near[at] = self.near[at - 1];
            at -= 1;
        }
        self.near[at] = event;
    }

    /// The next one, and whether it stands in the heap.
    #[inline]
    fn first(&self) -> Option<((u64, u64), bool)> {
        let near = self.near.last().copied();
        if self.far.is_empty() {
            return near.map(|event| (event, false));
        }
        let Reverse(far) = *self.far.peek()?;
        Some(near.filter(|near| *near < far).map_or((far, true), |near| (near, false)))
    }

    /// The time of the next one.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.first().map(|((time, _), _)| time)
    }

    /// Takes the next one if it is due at `now`.
    #[inline]
    pub fn pop(&mut self, now: u64) -> Option<(u64, What, u32)> {
        let ((time, low), in_heap) = self.first()?;
        if time > now {
            return None;
        }
        if in_heap {
            self.far.pop();
        } else {
            self.near.pop();
        }
        let kind = low >> INDEX_BITS & ((1 << KIND_BITS) - 1);
        Some((time, KINDS[kind as usize], (low & u64::from(MOST - 1)) as u32))
    }

    /// Events made so far.
    pub fn made(&self) -> u64 {
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_age() {
        let mut events = Events::default();
        events.push(20, What::Worked, 7);
        events.push(10, What::Out, 3);
        events.push(20, What::Channel, MOST - 1);
        assert_eq!(events.next(), Some(10));
        assert_eq!(events.pop(9), None);
        assert_eq!(events.pop(30), Some((10, What::Out, 3)));
        assert_eq!(events.pop(30), Some((20, What::Worked, 7)));
        assert_eq!(events.pop(30), Some((20, What::Channel, MOST - 1)));
        assert_eq!((events.pop(30), events.made()), (None, 3));
    }
    /// More events than the list has room for, at few times: the order is that of times and ages.
    #[test]
    fn many_events_come_in_the_same_order() {
        let mut events = Events::default();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        for index in 0..10 * NEAR as u32 {
            let time = u64::from(index * 7919 % 13);
            events.push(time, What::Worked, index);
            expected.push((time, index));
            if index % 5 == 4 {
                expected.sort_unstable();
                let (time, index) = expected.remove(0);
                assert_eq!(events.pop(u64::MAX), Some((time, What::Worked, index)));
            }
        }
        expected.sort_unstable();
        for (time, index) in expected {
            assert_eq!(events.next(), Some(time));
            assert_eq!(events.pop(time), Some((time, What::Worked, index)));
        }
        assert_eq!(events.next(), None);
    }
}
