//! The Alibaba cloud-block order as CSV, as our captured traces have it.
//!
//! For: `volume,opcode,offset,length,timestamp` lines without a header; opcodes R, W, T (trim) and
//! F (flush); bytes; microseconds, nanoseconds cut off. Must never know: readers.

use super::atomic::AtomicFile;
use super::{TraceWriter, Written};
use crate::{Batch, TraceError};
use cachewright_types::Op;
use std::io::Write;
use std::path::Path;

/// Bytes gathered before they go to the file.
const GATHERED: usize = 1 << 16;

/// Writes Alibaba's order.
pub struct CsvWriter {
    file: AtomicFile,
    lines: Vec<u8>,
    requests: u64,
}

impl CsvWriter {
    /// Starts a file that will be called `path`. Errors: the operating system's.
    pub fn create(path: &Path) -> Result<CsvWriter, TraceError> {
        let file = AtomicFile::create(path)?;
        Ok(CsvWriter { file, lines: Vec::with_capacity(2 * GATHERED), requests: 0 })
    }

    fn drain(&mut self) -> Result<(), TraceError> {
        self.file.put(&self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

fn opcode(op: Op) -> u8 {
    match op {
        Op::Read => b'R',
        Op::Write => b'W',
        Op::Trim => b'T',
        Op::Flush => b'F',
    }
}

impl TraceWriter for CsvWriter {
    fn write(&mut self, batch: &Batch, volumes: &[String]) -> Result<(), TraceError> {
        for volume in volumes {
            if volume.is_empty() || volume.contains([',', '"', '\n', '\r']) {
                return Err(TraceError::Option {
                    key: "format".to_owned(),
                    found: format!("alibaba for volume `{}`", volume.escape_debug()),
                    expected: "volume names without comma, quote or line end; write `parquet`"
                        .to_owned(),
                });
            }
        }
        for record in batch.iter() {
            self.lines.extend_from_slice(volumes[record.volume as usize].as_bytes());
            self.lines.extend_from_slice(&[b',', opcode(record.op), b',']);
            let rest = writeln!(
                self.lines,
                "{},{},{}",
                record.offset_bytes,
                record.length_bytes,
                record.time_ns / 1_000
            );
            rest.map_err(|source| self.file.fail(source))?;
            if self.lines.len() > GATHERED {
                self.drain()?;
            }
        }
        self.requests += batch.len() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written, TraceError> {
        self.drain()?;
        self.file.commit()?;
        Ok(Written { requests: self.requests, left_out: 0 })
    }
}
