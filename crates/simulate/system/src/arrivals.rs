//! When each request of a recording arrives, and where its accesses begin.
//!
//! For: replays and searches by time. Must never know: blocks, tenants, what a request asks for.
//! Units: nanoseconds, positions of accesses. A recording without times knows no requests.

use cachewright_memory::Column;
use std::ops::Range;

/// The requests of a recording, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Empty when recorded without times.
    times_ns: Column<u64>,
    /// First access of each request; empty when every request is one access.
    starts: Column<u32>,
}

impl Arrivals {
    /// Requests at these times; `starts` is empty when every request is one access.
    pub(crate) fn new(times_ns: Column<u64>, starts: Column<u32>) -> Arrivals {
        Arrivals { times_ns, starts }
    }

    /// The time of each request in nanoseconds.
    #[inline(always)]
    pub fn times_ns(&self) -> &[u64] {
        &self.times_ns
    }

    /// The first access of a request; `accesses`, which is their number, behind the last request.
    #[inline]
    pub fn start_of(&self, request: usize, accesses: usize) -> usize {
        if request >= self.times_ns.len() {
            accesses
        } else if self.starts.is_empty() {
            request
        } else {
            self.starts[request] as usize
        }
    }

    /// The first request whose accesses begin at `position` or later.
    pub fn request_from(&self, position: usize) -> usize {
        if self.starts.is_empty() {
            position
        } else {
            self.starts.partition_point(|start| (*start as usize) < position)
        }
    }

    /// Gives back the memory of requests that will not be read soon, where it can be read again.
    pub fn release(&self, requests: Range<usize>) {
        self.times_ns.release(requests.clone());
        self.starts.release(requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_by_accesses_and_accesses_by_requests() {
        // Two accesses, one, and three.
        let arrivals = Arrivals::new(vec![5, 6, 9].into(), vec![0, 2, 3].into());
        let starts: Vec<usize> = (0..5).map(|request| arrivals.start_of(request, 6)).collect();
        assert_eq!(starts, [0, 2, 3, 6, 6]);
        let requests: Vec<usize> = (0..5).map(|access| arrivals.request_from(access)).collect();
        assert_eq!(requests, [0, 1, 1, 2, 3]);
        let single = Arrivals::new(vec![5, 6].into(), Vec::new().into());
        assert_eq!(
            (single.start_of(1, 2), single.start_of(2, 2), single.request_from(1)),
            (1, 2, 1)
        );
    }
}
