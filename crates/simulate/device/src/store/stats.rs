//! What a log-structured store has done.
//!
//! For: results. Must never know: the store's state. Units: pages, segments, commands to the device
//! beneath.

use cachewright_ftl::FtlCounts;

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
    /// Commands that read for requests.
    pub reads: u64,
    /// Commands that read pages to move them.
    pub move_reads: u64,
    /// Pages read because a request wrote a part of them.
    pub update_reads: u64,
    /// Pages of a separation's own read for writes.
    pub meta_reads: u64,
    /// Pages read while they were on their way to the device.
    pub memory_reads: u64,
    /// Pages read that hold nothing.
    pub unwritten_reads: u64,
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
        self.reads += other.reads;
        self.move_reads += other.move_reads;
        self.update_reads += other.update_reads;
        self.meta_reads += other.meta_reads;
        self.memory_reads += other.memory_reads;
        self.unwritten_reads += other.unwritten_reads;
        self.held_pages += other.held_pages;
        self.logical_pages += other.logical_pages;
        self.segments += other.segments;
        self.fault = self.fault.take().or_else(|| other.fault.clone());
    }
}
