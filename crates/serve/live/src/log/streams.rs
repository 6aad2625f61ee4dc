//! What streams of a log share: the clock, and space where no segment is free.
//!
//! For: content that goes somewhere while any segment has space. Must never know: which stream a
//! block belongs to. Units: blocks.

use super::events::LogError;
use super::group::LogEntry;
use super::set::WritePoint;
use super::writer::Log;
use crate::io::Io;

impl Log {
    /// The clock by which segments age: blocks that were written. Those that a start has found
    /// count as if each segment had been filled.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// A block is about to be written, not moved.
    pub fn tick(&mut self) {
        self.clock += 1;
    }

    /// As [`Log::provide_group`], in any stream of the pool whose segment has space. A record
    /// without content may stand anywhere: where its pool has no space, it goes to the pool with
    /// the most free segments.
    pub(super) fn provide_elsewhere(
        &mut self,
        io: &mut impl Io,
        pool: usize,
        entry: &LogEntry<'_>,
    ) -> Result<WritePoint, LogError> {
        let mut pools = vec![pool];
        if matches!(entry, LogEntry::Note(_)) {
            let mut others: Vec<usize> =
                (0..self.set().pools()).filter(|other| *other != pool).collect();
            others.sort_by_key(|other| std::cmp::Reverse(self.free_segments(*other)));
            pools.extend(others);
        }
        for other in pools {
            for stream in (0..self.settings().streams).rev() {
                let point = WritePoint { pool: other, stream };
                let may_begin = other != pool || self.heads.get(self.heads.place(point)).is_some();
                if may_begin && self.provide_group(io, (point, true), entry).is_ok() {
                    return Ok(point);
                }
            }
        }
        Err(LogError::Full)
    }
}
