//! The clock and the timers that both production siblings use.
//!
//! For: [`Io::now_ns`](crate::io::Io::now_ns) and timers. Must never know: files, sockets. Units:
//! nanoseconds of the system's monotonic clock, so that all threads share them.

use crate::io::{Done, Output, Token};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The time.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A span of time as the system takes it.
pub fn timespec(span_ns: u64) -> Timespec {
    let (seconds, rest) = (span_ns / 1_000_000_000, span_ns % 1_000_000_000);
    Timespec { tv_sec: seconds as i64, tv_nsec: rest as i64 }
}

/// Timers under way, the earliest first; of equal times the one that was begun first.
#[derive(Debug, Default)]
pub struct Timers {
    waiting: BinaryHeap<Reverse<(u64, u64, Token)>>,
    begun: u64,
}

impl Timers {
    /// Begins a timer.
    pub fn add(&mut self, at_ns: u64, token: Token) {
        self.waiting.push(Reverse((at_ns, self.begun, token)));
        self.begun += 1;
    }

    /// When the earliest ends.
    pub fn next_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((at_ns, _, _))| *at_ns)
    }

    /// How long the earliest still takes.
    pub fn left_ns(&self) -> Option<u64> {
        self.next_ns().map(|at_ns| at_ns.saturating_sub(now_ns()))
    }

    /// Ends those that are due; the clock is read only if there are timers.
    pub fn end_due(&mut self, done: &mut Vec<Done>) {
        if !self.waiting.is_empty() {
            self.end_until(now_ns(), done);
        }
    }

    fn end_until(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        while self.next_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            if let Some(Reverse((_, _, token))) = self.waiting.pop() {
                done.push(Done { token, output: Output::Nothing, error: None });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_end_by_time_then_by_age() {
        let mut timers = Timers::default();
        for (token, at_ns) in [(0, 30), (1, 10), (2, 30), (3, 20), (4, 31)] {
            timers.add(at_ns, Token(token));
        }
        let mut done = Vec::new();
        timers.end_until(9, &mut done);
        assert!(done.is_empty());
        timers.end_until(30, &mut done);
        let tokens: Vec<u64> = done.iter().map(|done| done.token.0).collect();
        assert_eq!((tokens, timers.next_ns()), (vec![1, 3, 0, 2], Some(31)));
    }

    #[test]
    fn spans_are_split_into_seconds_and_the_rest() {
        let span = timespec(3_000_000_007);
        assert_eq!((span.tv_sec, span.tv_nsec), (3, 7));
        assert!(now_ns() <= now_ns());
    }
}
