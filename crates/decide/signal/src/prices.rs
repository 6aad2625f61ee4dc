//! What hits and misses cost a tenant, as measured.
//!
//! For: partitioners that weigh hits by time. Must never know: why a response took as long. Units:
//! nanoseconds.

/// Responses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Requests answered.
    pub count: u64,
    /// Their response times together.
    pub sum_ns: u64,
    /// How much of it they spent behind memory: at a backing device, or in flash.
    pub behind_ns: u64,
}

/// Responses of an interval by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Reads that memory answered.
    pub read_hits: Price,
    /// Reads that waited behind memory.
    pub read_misses: Price,
    /// Writes that memory took at once.
    pub write_hits: Price,
    /// Writes that waited behind memory.
    pub write_misses: Price,
}

impl Price {
    /// Counts one response, `behind_ns` of which passed behind memory.
    pub fn add(&mut self, response_ns: u64, behind_ns: u64) {
        self.count += 1;
        self.sum_ns += response_ns;
        self.behind_ns += behind_ns;
    }
}
