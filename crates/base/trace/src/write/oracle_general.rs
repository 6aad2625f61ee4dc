//! libCacheSim's oracleGeneral records.
//!
//! 24 B little-endian records `u32 seconds, u64 object, u32 bytes, i64 next access`. The next
//! access is the 1-based number of the object's next record, -1 for none (facts: libCacheSim's
//! oracleGeneralBin.h and its sample data).
//!
//! The format has no kind of request and no volume. Reads and writes become equal, trims and
//! flushes are left out and counted, and a second volume is refused. Times that the 32 bits of a
//! second do not reach (those of MSR count from 1601) are moved back to begin at 0. Records are
//! held in memory (20 B each and the interner) until the file is finished, as each needs its
//! future.

use super::TraceSink;
use super::container_of;
use super::{TraceWriter, WriteSummary, nothing_to_write};
use crate::formats::objects::ObjectOptions;
use crate::reader::declared;
use crate::{Batch, InternError, Interner, Record, TraceError};
use cachewright_types::Op;
use std::collections::BTreeMap;
use std::path::Path;

const NEVER: u32 = u32::MAX;
/// How far requests may lie before the first one in the file, where times are moved.
const EARLIER_S: u64 = 1 << 31;

/// Writes oracleGeneral.
pub struct OracleGeneralWriter {
    file: TraceSink,
    unit_bytes: u64,
    volume: Option<u32>,
    objects: Interner,
    /// Last record of each object.
    latest: Vec<u32>,
    /// Seconds that are taken off each time.
    base_s: u64,
    time_s: Vec<u32>,
    object: Vec<u64>,
    length_bytes: Vec<u32>,
    next: Vec<u32>,
    left_out: u64,
}

impl OracleGeneralWriter {
    /// Starts a file that will be called `path`. Errors: the operating system's; an address unit
    /// that is not a size above 0.
    pub fn create(
        path: &Path,
        options: &BTreeMap<String, String>,
    ) -> Result<OracleGeneralWriter, TraceError> {
        let own: ObjectOptions = declared(options)?;
        Ok(OracleGeneralWriter {
            unit_bytes: own.address_unit.bytes(),
            file: TraceSink::create(path, container_of(path))?,
            volume: None,
            objects: Interner::new(),
            latest: Vec::new(),
            base_s: 0,
            time_s: Vec::new(),
            object: Vec::new(),
            length_bytes: Vec::new(),
            next: Vec::new(),
            left_out: 0,
        })
    }

    fn refuse(&self, what: String, expected: &str) -> TraceError {
        TraceError::File {
            path: self.file.target().to_owned(),
            found: format!("{what} in request {}", self.next.len() as u64 + self.left_out + 1),
            expected: expected.to_owned(),
        }
    }

    fn push(&mut self, record: Record) -> Result<(), TraceError> {
        if matches!(record.op, Op::Trim | Op::Flush) {
            self.left_out += 1;
            return Ok(());
        }
        if *self.volume.get_or_insert(record.volume) != record.volume {
            let expected = "one volume, which is all oracle-general holds; choose one";
            return Err(self.refuse("a second volume".to_owned(), expected));
        }
        let time_s = record.time_ns / 1_000_000_000;
        if self.next.is_empty() && time_s > u64::from(u32::MAX) {
            // Requests before the first one in time have room as well.
            self.base_s = time_s - EARLIER_S;
        }
        let Some(time_s) =
            time_s.checked_sub(self.base_s).and_then(|time_s| u32::try_from(time_s).ok())
        else {
            let expected =
                "times from 0 s to 4294967295 s, or all within 2147483648 s of the first";
            return Err(self.refuse(format!("time {time_s} s"), expected));
        };
        let Ok(length_bytes) = u32::try_from(record.length_bytes) else {
            let what = format!("length {} B", record.length_bytes);
            return Err(self.refuse(what, "at most 4294967295 B"));
        };
        if !record.offset_bytes.is_multiple_of(self.unit_bytes) {
            let what = format!("offset {} B", record.offset_bytes);
            return Err(self.refuse(what, "a multiple of `address_unit` (try `address_unit=1B`)"));
        }
        if self.next.len() >= NEVER as usize {
            return Err(self.refuse("a record too many".to_owned(), "at most 4294967295 records"));
        }
        let object = record.offset_bytes / self.unit_bytes;
        let position = self.next.len() as u32;
        let id = self.objects.intern(0, object).map_err(|error: InternError| {
            self.refuse(error.to_string(), "fewer distinct objects")
        })?;
        match self.latest.get_mut(id as usize) {
            Some(latest) => {
                self.next[*latest as usize] = position;
                *latest = position;
            }
            None => self.latest.push(position),
        }
        self.time_s.push(time_s);
        self.object.push(object);
        self.length_bytes.push(length_bytes);
        self.next.push(NEVER);
        Ok(())
    }
}

impl TraceWriter for OracleGeneralWriter {
    fn write(&mut self, batch: &Batch, _volumes: &[String]) -> Result<(), TraceError> {
        batch.iter().try_for_each(|record| self.push(record))
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, TraceError> {
        if self.next.is_empty() {
            return Err(nothing_to_write(self.file.target(), self.left_out));
        }
        let earliest_s = match self.base_s {
            0 => 0,
            _ => self.time_s.iter().min().copied().unwrap_or(0),
        };
        for index in 0..self.next.len() {
            let next = match self.next[index] {
                NEVER => -1,
                position => i64::from(position) + 1,
            };
            let mut record = [0_u8; 24];
            record[..4].copy_from_slice(&(self.time_s[index] - earliest_s).to_le_bytes());
            record[4..12].copy_from_slice(&self.object[index].to_le_bytes());
            record[12..16].copy_from_slice(&self.length_bytes[index].to_le_bytes());
            record[16..].copy_from_slice(&next.to_le_bytes());
            self.file.put(&record)?;
        }
        let written = WriteSummary {
            requests: self.next.len() as u64,
            left_out: self.left_out,
            moved_s: self.base_s + u64::from(earliest_s),
        };
        self.file.commit()?;
        Ok(written)
    }
}
