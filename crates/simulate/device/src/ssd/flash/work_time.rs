//! How long one transaction has taken so far, and for what.
//!
//! For: the parts of its time that flash knows of, and its wait in a queue by what its unit did
//! meanwhile. Must never know: what the transaction does. Units: nanoseconds. Invariant: the parts
//! add up to the time from its submission to the last moment accounted for.

use crate::spent::{Spent, SpentPart};

/// Parts of the time that flash knows of.
const PARTS: [SpentPart; 6] = [
    SpentPart::Queue,
    SpentPart::Map,
    SpentPart::Channel,
    SpentPart::DieWait,
    SpentPart::CleanWait,
    SpentPart::Flash,
];

/// The time of one transaction.
#[derive(Clone, Copy, Debug)]
pub struct WorkTime {
    submitted: u64,
    /// Up to when its time is accounted for.
    mark: u64,
    /// Time its unit had worked for hosts when it joined its queue.
    worked_before: u64,
    /// Time its unit had cleaned by then.
    cleaned_before: u64,
    /// Time by part, in the order of `PARTS`.
    parts_ns: [u64; PARTS.len()],
}

impl WorkTime {
    /// Of a transaction submitted now.
    #[inline]
    pub fn new(now: u64) -> WorkTime {
        WorkTime {
            submitted: now,
            mark: now,
            worked_before: 0,
            cleaned_before: 0,
            parts_ns: [0; PARTS.len()],
        }
    }

    /// Accounts the time up to `until` to a part.
    #[inline]
    pub fn account(&mut self, part: SpentPart, until: u64) {
        debug_assert!(until >= self.mark);
        self.add(part, until - self.mark);
        self.mark = until;
    }

    /// It joins the queue of a unit that has worked for hosts and cleaned for so long.
    #[inline]
    pub fn join_queue(&mut self, worked: u64, cleaned: u64) {
        self.worked_before = worked;
        self.cleaned_before = cleaned;
    }

    /// It leaves the queue; how long it waited. What its unit did meanwhile is waited for as such,
    /// the rest is a wait for the channel.
    #[inline(always)]
    pub fn leave_queue(&mut self, now: u64, worked: u64, cleaned: u64) -> u64 {
        let worked = worked - self.worked_before;
        let cleaned = cleaned - self.cleaned_before;
        let waited = now - self.mark;
        self.add(SpentPart::DieWait, worked);
        self.add(SpentPart::CleanWait, cleaned);
        self.add(SpentPart::Channel, waited - worked - cleaned);
        self.mark = now;
        waited
    }

    /// A command begins that takes so long on the channel and then in the die; it ends at `end`.
    #[inline]
    pub fn begin(&mut self, channel_ns: u64, flash_ns: u64, end: u64) {
        self.add(SpentPart::Channel, channel_ns);
        self.add(SpentPart::Flash, flash_ns);
        self.mark = end;
    }

    #[inline]
    fn add(&mut self, part: SpentPart, time_ns: u64) {
        let index = match part {
            SpentPart::Queue => 0,
            SpentPart::Map => 1,
            SpentPart::Channel => 2,
            SpentPart::DieWait => 3,
            SpentPart::CleanWait => 4,
            _ => 5,
        };
        self.parts_ns[index] += time_ns;
    }

    /// The whole time so far by part.
    #[inline]
    pub fn spent(&self) -> Spent {
        let mut spent = Spent::default();
        for (part, time_ns) in PARTS.iter().zip(self.parts_ns) {
            spent.add(*part, time_ns);
        }
        debug_assert_eq!(spent.total_ns(), self.mark - self.submitted);
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_by_part_adds_up() {
        let mut time = WorkTime::new(100);
        time.account(SpentPart::Map, 150);
        time.join_queue(1_000, 500);
        // Of 60 ns, the unit worked for hosts for 30 and cleaned for 20.
        assert_eq!(time.leave_queue(210, 1_030, 520), 60);
        time.begin(5, 100, 315);
        time.account(SpentPart::Queue, 322);
        let spent = time.spent();
        let parts = PARTS.map(|part| spent.part_ns(part));
        assert_eq!(parts, [7, 50, 10 + 5, 30, 20, 100]);
        assert_eq!(spent.total_ns(), 222);
    }
}
