//! What streams of a log share: the clock, and space where no segment is free.
//!
//! For: content that goes somewhere while any segment has space. Must never know: which stream a
//! block belongs to. Units: blocks.

use super::group::Entry;
use super::writer::{Log, LogError};
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

    /// As [`Log::provide_group`], in any stream whose segment has space.
    pub(super) fn provide_elsewhere(
        &mut self,
        io: &mut impl Io,
        entry: &Entry<'_>,
    ) -> Result<usize, LogError> {
        let mut streams = (0..self.heads.len()).rev();
        let fits = |stream: &usize| {
            self.heads[*stream].is_some() && self.provide_group(io, (*stream, true), entry).is_ok()
        };
        streams.find(fits).ok_or(LogError::Full)
    }
}
