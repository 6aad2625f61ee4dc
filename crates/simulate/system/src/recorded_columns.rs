//! The columns of a recording while they are written.
//!
//! For: the recorder. Must never know: requests, blocks. Units: positions are those of the whole
//! recording; bytes. What is added between two calls of [`RecordedColumns::settle`] is in memory,
//! and of the rest at most `held_bytes` per column.

use crate::arrivals::Arrivals;
use crate::recording::{LAST, Recording};
use cachewright_memory::{ColumnWriter, Word};
use std::io;
use std::ops::Range;

/// Elements counted into a column between two looks at its length.
const STEP: usize = 1 << 20;

/// One writer per column of [`Recording`].
#[derive(Debug)]
pub(crate) struct RecordedColumns {
    pub ids: ColumnWriter<u32>,
    pub locals: ColumnWriter<u32>,
    pub flags: ColumnWriter<u8>,
    pub tenants: ColumnWriter<u16>,
    pub times_ns: ColumnWriter<u64>,
    pub bytes: ColumnWriter<u32>,
    pub starts: ColumnWriter<u32>,
}

impl RecordedColumns {
    /// Empty columns, each of which holds at most so many bytes in memory.
    pub fn holding(held_bytes: usize) -> RecordedColumns {
        fn column<T: Word>(held_bytes: usize) -> ColumnWriter<T> {
            ColumnWriter::holding(held_bytes)
        }
        RecordedColumns {
            ids: column(held_bytes),
            locals: column(held_bytes),
            flags: column(held_bytes),
            tenants: column(held_bytes),
            times_ns: column(held_bytes),
            bytes: column(held_bytes),
            starts: column(held_bytes),
        }
    }

    /// Moves what is long to scratch files. Errors: no place for them.
    pub fn settle(&mut self) -> io::Result<()> {
        self.ids.settle()?;
        self.locals.settle()?;
        self.flags.settle()?;
        self.tenants.settle()?;
        self.times_ns.settle()?;
        self.bytes.settle()?;
        self.starts.settle()
    }

    /// Begins to keep where requests start: every access before `position` is one of its own.
    pub fn begin_starts(&mut self, position: usize) -> io::Result<()> {
        if self.starts.is_empty() {
            for from in (0..position).step_by(STEP) {
                self.starts.tail.extend(from as u32..(from + STEP).min(position) as u32);
                self.starts.settle()?;
            }
        }
        Ok(())
    }

    /// Begins to keep the bytes of accesses: each before `position` has as many.
    pub fn begin_bytes(&mut self, position: usize, bytes: u32) -> io::Result<()> {
        for from in (0..position).step_by(STEP) {
            let more = STEP.min(position - from);
            let length = self.bytes.tail.len() + more;
            self.bytes.tail.resize(length, bytes);
            self.bytes.settle()?;
        }
        Ok(())
    }

    /// Adds the flags of a request of so many accesses.
    pub fn add_flags(&mut self, accesses: usize, flag: u8) {
        let flags = &mut self.flags.tail;
        flags.resize(flags.len() + accesses - 1, flag);
        flags.push(flag | LAST);
    }

    /// The ids added since the last call of `settle`, from position `before` on, as a range.
    pub fn tail_from(&self, before: usize) -> Range<usize> {
        let written = self.ids.len() - self.ids.tail.len();
        before - written..self.ids.tail.len()
    }

    /// Puts the columns into a recording. Errors: as [`RecordedColumns::settle`].
    pub fn finish(self, recording: &mut Recording) -> io::Result<()> {
        recording.ids = self.ids.finish()?;
        recording.locals = self.locals.finish()?;
        recording.flags = self.flags.finish()?;
        recording.tenants = self.tenants.finish()?;
        recording.arrivals = Arrivals::new(self.times_ns.finish()?, self.starts.finish()?);
        recording.bytes = self.bytes.finish()?;
        Ok(())
    }
}
