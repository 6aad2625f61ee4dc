//! Response times of a tenant's hits and misses, as measured.
//!
//! For: partitioners that weigh hits by time. Must never know: the causes of a response time.
//! Units: nanoseconds.

use crate::signal::ResponseClasses;

/// Responses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Requests answered.
    pub count: u64,
    /// Sum of their response times.
    pub sum_ns: u64,
    /// The part of it behind memory: at a backing device, or in flash.
    pub behind_ns: u64,
}

/// Responses of an interval, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Reads that memory answered.
    pub read_hits: Price,
    /// Reads that waited behind memory.
    pub read_misses: Price,
    /// Writes that memory accepted at once.
    pub write_hits: Price,
    /// Writes that waited behind memory.
    pub write_misses: Price,
    /// All of them by their response time.
    pub responses: ResponseClasses,
}

impl Price {
    /// Counts one response, with `behind_ns` behind memory.
    pub fn add(&mut self, response_ns: u64, behind_ns: u64) {
        self.count += 1;
        self.sum_ns += response_ns;
        self.behind_ns += behind_ns;
    }
}
