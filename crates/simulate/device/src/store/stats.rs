//! What a log-structured store has done.
//!
//! Units: pages, segments, commands to the device beneath.

use cachewright_ftl::FtlCounts;

/// What a store has read, and what it did not have to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreReads {
    /// Commands that read for requests.
    pub requests: u64,
    /// Commands that read pages to move them.
    pub moves: u64,
    /// Pages read because a request wrote a part of them.
    pub update: u64,
    /// Pages of a separation's own read for writes.
    pub meta: u64,
    /// Pages read while they were on their way to the device.
    pub memory: u64,
    /// Pages read that hold nothing.
    pub unwritten: u64,
}

impl StoreReads {
    fn add(&mut self, other: &StoreReads) {
        self.requests += other.requests;
        self.moves += other.moves;
        self.update += other.update;
        self.meta += other.meta;
        self.memory += other.memory;
        self.unwritten += other.unwritten;
    }
}

/// What a store has done since it was filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Pages written and moved, segments cleaned, as decided.
    pub counts: FtlCounts,
    /// Segments reset, as done.
    pub resets: u64,
    /// Commands that appended, and the pages they wrote.
    pub appends: u64,
    /// See [`StoreStats::appends`].
    pub appended_pages: u64,
    /// Reads, by what they are for.
    pub reads: StoreReads,
    /// Pages written by requests that had to wait for a segment to be reset.
    pub held_pages: u64,
    /// Logical pages.
    pub logical_pages: u64,
    /// Segments.
    pub segments: u64,
    /// Why a write was refused, if one was.
    pub fault: Option<String>,
}

impl StoreStats {
    /// The work of several stores together.
    pub fn add(&mut self, other: &StoreStats) {
        let (ours, theirs) = (&mut self.counts, &other.counts);
        ours.user_pages += theirs.user_pages;
        ours.moved_pages += theirs.moved_pages;
        ours.meta_pages += theirs.meta_pages;
        ours.meta_reads += theirs.meta_reads;
        ours.collections += theirs.collections;
        ours.reclaimed_pages += theirs.reclaimed_pages;
        ours.trimmed_pages += theirs.trimmed_pages;
        ours.misplaced_pages += theirs.misplaced_pages;
        ours.dropped_pages += theirs.dropped_pages;
        self.resets += other.resets;
        self.appends += other.appends;
        self.appended_pages += other.appended_pages;
        self.reads.add(&other.reads);
        self.held_pages += other.held_pages;
        self.logical_pages += other.logical_pages;
        self.segments += other.segments;
        self.fault = self.fault.take().or_else(|| other.fault.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_add_up_and_the_first_fault_stays() {
        let reads =
            StoreReads { requests: 1, moves: 2, update: 3, meta: 4, memory: 5, unwritten: 6 };
        let fault = Some("full".to_owned());
        let store = StoreStats { reads, segments: 7, fault, ..StoreStats::default() };
        let mut all = StoreStats::default();
        all.add(&store);
        assert_eq!(all, store);
        all.add(&StoreStats { fault: Some("later".to_owned()), ..store });
        let twice =
            StoreReads { requests: 2, moves: 4, update: 6, meta: 8, memory: 10, unwritten: 12 };
        assert_eq!((all.reads, all.segments, all.fault.as_deref()), (twice, 14, Some("full")));
    }
}
