//! How a device was used: commands and bytes by kind, and how many were inside over time.
//!
//! For: callers that submit to a device and report what it did. Must never know: which device, or
//! why. Units: commands, bytes, nanoseconds.

use cachewright_types::measure::Population;
use cachewright_types::{Bytes, Nanos, Op};

/// How a device was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Commands by kind, indexed by [`Op`].
    pub commands: [u64; 4],
    /// Bytes by kind, indexed by [`Op`].
    pub bytes: [u64; 4],
    /// Commands inside over time.
    pub population: Population,
}

impl Use {
    /// A command enters.
    pub fn submitted(&mut self, now: Nanos, op: Op, length: Bytes) {
        self.commands[op as usize] += 1;
        self.bytes[op as usize] += length.0;
        self.population.enter(now.0);
    }

    /// A command is done.
    pub fn completed(&mut self, now: Nanos) {
        self.population.leave(now.0);
    }
}
