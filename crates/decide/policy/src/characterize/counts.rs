//! Recent requests per page.
//!
//! For: access frequency as a feature. Must never know: caches, classes. Units: requests; the page
//! of a request is the 4 KiB page in which it starts. Counts cover the last 65,536 requests, so
//! that memory is bounded and a count means the same early and late in a run.

use cachewright_types::Request;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Requests remembered.
pub const REMEMBERED: usize = 65_536;
/// Bins of counts: never, once, 2 to 3, 4 to 7, 8 times or more.
pub const BINS: usize = 5;

const PAGE_BITS: u32 = 12;

/// Counts per page over the last requests.
#[derive(Clone, Debug)]
pub struct PageCounts {
    counts: HashMap<u64, u32, FixedState>,
    /// Pages in order of arrival; once full, `oldest` is overwritten next.
    pages: Vec<u64>,
    oldest: usize,
    remembered: usize,
}

impl PageCounts {
    /// Counts without requests.
    pub fn new() -> PageCounts {
        PageCounts::remembering(REMEMBERED)
    }

    /// Counts over another number of requests; at least one.
    pub fn remembering(requests: usize) -> PageCounts {
        PageCounts {
            counts: HashMap::with_hasher(FixedState::default()),
            pages: Vec::new(),
            oldest: 0,
            remembered: requests.max(1),
        }
    }

    /// Remembered requests that started in the page of this request; then remembers it.
    pub fn count(&mut self, request: &Request) -> u32 {
        let page = request.offset.0 >> PAGE_BITS;
        if self.pages.len() < self.remembered {
            self.pages.push(page);
            return self.add(page);
        }
        let before = self.add(page);
        let forgotten = std::mem::replace(&mut self.pages[self.oldest], page);
        self.oldest = (self.oldest + 1) % self.remembered;
        if let Some(count) = self.counts.get_mut(&forgotten) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&forgotten);
            }
        }
        before
    }

    /// The number of pages remembered: the working set of these requests.
    pub fn pages(&self) -> usize {
        self.counts.len()
    }

    fn add(&mut self, page: u64) -> u32 {
        let count = self.counts.entry(page).or_insert(0);
        *count += 1;
        *count - 1
    }
}

impl Default for PageCounts {
    fn default() -> PageCounts {
        PageCounts::new()
    }
}

/// The bin of a count.
pub fn bin(count: u32) -> usize {
    (u32::BITS - count.leading_zeros()).min(BINS as u32 - 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::{Bytes, Nanos, Op, TenantId};

    fn read(page: u64) -> Request {
        let (offset, length) = (Bytes((page << PAGE_BITS) + 512), Bytes(512));
        Request { time: Nanos(0), offset, length, op: Op::Read, tenant: TenantId(0) }
    }

    #[test]
    fn bins_are_powers_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8, 1000, u32::MAX].map(bin), [0, 1, 2, 2, 3, 3, 4, 4, 4]);
    }

    #[test]
    fn a_forgotten_request_is_no_longer_counted() {
        let mut counts = PageCounts::remembering(3);
        let actual: Vec<u32> = [1, 1, 1, 1, 2, 3, 4, 1].map(|p| counts.count(&read(p))).to_vec();
        assert_eq!(actual, [0, 1, 2, 3, 0, 0, 0, 0]);
        assert_eq!(counts.pages(), 3);
    }
}
