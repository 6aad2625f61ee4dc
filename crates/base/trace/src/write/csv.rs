//! The Alibaba cloud-block order as CSV, as our captured traces have it.
//!
//! `volume,opcode,offset,length,timestamp` lines without a header; opcodes R, W, T (trim) and F
//! (flush); bytes; microseconds, nanoseconds cut off.
//!
//! The format's volumes are numbers. If all names are numbers, they stay; if none is, volumes are
//! numbered from 0 in order of appearance. A trace with both kinds is refused.

use super::container_of;
use super::{TraceSink, failed};
use super::{TraceWriter, WriteSummary, nothing_to_write};
use crate::{Batch, TraceError};
use cachewright_types::Op;
use std::io::Write;
use std::path::Path;

/// Bytes gathered before they go to the file.
const GATHERED: usize = 1 << 16;

/// Writes Alibaba's order.
pub struct CsvWriter {
    file: TraceSink,
    lines: Vec<u8>,
    /// What is written for each volume.
    volumes: Vec<String>,
    /// Whether volumes keep their names, once one is known.
    keeps_names: Option<bool>,
    requests: u64,
}

impl CsvWriter {
    /// Starts a file that will be called `path`. Errors: the operating system's.
    pub fn create(path: &Path) -> Result<CsvWriter, TraceError> {
        let file = TraceSink::create(path, container_of(path))?;
        Ok(CsvWriter {
            file,
            lines: Vec::with_capacity(2 * GATHERED),
            volumes: Vec::new(),
            keeps_names: None,
            requests: 0,
        })
    }

    /// Takes up volumes not met before. Errors: names of both kinds.
    fn name_volumes(&mut self, volumes: &[String]) -> Result<(), TraceError> {
        for name in volumes.iter().skip(self.volumes.len()) {
            let is_number = name.parse::<u64>().is_ok_and(|number| number.to_string() == *name);
            if *self.keeps_names.get_or_insert(is_number) != is_number {
                return Err(TraceError::Option {
                    key: "format".to_owned(),
                    found: format!("alibaba for volumes of which only some are numbers, `{name}`"),
                    expected: "`parquet`, which keeps all names".to_owned(),
                });
            }
            let number = self.volumes.len().to_string();
            self.volumes.push(if is_number { name.clone() } else { number });
        }
        Ok(())
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
        self.name_volumes(volumes)?;
        for record in batch.iter() {
            self.lines.extend_from_slice(self.volumes[record.volume as usize].as_bytes());
            self.lines.extend_from_slice(&[b',', opcode(record.op), b',']);
            let rest = writeln!(
                self.lines,
                "{},{},{}",
                record.offset_bytes,
                record.length_bytes,
                record.time_ns / 1_000
            );
            rest.map_err(|source| failed(self.file.target(), source))?;
            if self.lines.len() > GATHERED {
                self.drain()?;
            }
        }
        self.requests += batch.len() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, TraceError> {
        if self.requests == 0 {
            return Err(nothing_to_write(self.file.target(), 0));
        }
        self.drain()?;
        self.file.commit()?;
        Ok(WriteSummary { requests: self.requests, left_out: 0, moved_s: 0 })
    }
}
