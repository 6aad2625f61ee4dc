//! What happens later, in order of time.
//!
//! For: the calendar of the back-end: a binary heap of two words per event, no allocation per
//! event. Must never know: what an event does. Events at the same nanosecond come in the order in
//! which they were made. Units: nanoseconds.

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
}

const KINDS: [What; 5] = [What::Channel, What::Out, What::Sensed, What::Worked, What::Halted];
/// Bits of the index of a channel or unit.
const INDEX_BITS: u32 = 20;
/// Bits of the kind.
const KIND_BITS: u32 = 3;

/// The most channels or units there may be.
pub const MOST: u32 = 1 << INDEX_BITS;

/// Events to come.
#[derive(Clone, Debug, Default)]
pub struct Events {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    made: u64,
}

impl Events {
    /// Adds an event of the channel or unit `index`.
    #[inline]
    pub fn push(&mut self, time: u64, what: What, index: u32) {
        let low = u64::from(what as u32) << INDEX_BITS | u64::from(index);
        self.heap.push(Reverse((time, self.made << (INDEX_BITS + KIND_BITS) | low)));
        self.made += 1;
    }

    /// The time of the next one.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((time, _))| *time)
    }

    /// Takes the next one if it is due at `now`.
    #[inline]
    pub fn pop(&mut self, now: u64) -> Option<(u64, What, u32)> {
        let Reverse((time, low)) = *self.heap.peek()?;
        if time > now {
            return None;
        }
        self.heap.pop();
        let kind = low >> INDEX_BITS & ((1 << KIND_BITS) - 1);
        Some((time, KINDS[kind as usize % KINDS.len()], (low & u64::from(MOST - 1)) as u32))
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
}
